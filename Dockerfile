# pt2kit without PyTorch, for pipelines: docker run --rm -v "$PWD:/work:ro" pt2kit check model.pt2
FROM python:3.13-slim AS build
COPY . /src
ARG VERSION=0.1.0.dev0
# The tags are not in the image's context.
RUN SETUPTOOLS_SCM_PRETEND_VERSION_FOR_PT2KIT=${VERSION} \
    python -m pip wheel --no-cache-dir --disable-pip-version-check --wheel-dir /wheels '/src[http]'

FROM python:3.13-slim
RUN --mount=from=build,source=/wheels,target=/wheels \
    python -m pip install --no-cache-dir --disable-pip-version-check --no-index --find-links /wheels 'pt2kit[http]' \
    && python -m pip uninstall --yes pip \
    && useradd --no-create-home --shell /usr/sbin/nologin pt2
USER pt2
WORKDIR /work
ENV PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["pt2"]
CMD ["--help"]
