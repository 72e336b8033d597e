"""MLflow: check a model before it is loaded, and load it without running code from it.

MLflow's `pytorch` flavor saves programs as `data/model.pt2` and loads them by `torch.export.load`; it has no hook in
between. `load_model` is what takes the place of `mlflow.pytorch.load_model`; and a model whose `MLmodel` names this
module as `loader_module` is loaded so by `mlflow.pyfunc.load_model` as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pt2kit.checks.run import check
from pt2kit.errors import UnsupportedError
from pt2kit.messages import count_text

if TYPE_CHECKING:
    from pt2kit.checks.findings import Report


def check_model(model_uri: str, *, dst_path: str | None = None) -> Mapping[str, Report]:
    """Check every `.pt2` of a model.

    Args:
        model_uri: as MLflow takes it: `models:/name/3`, `runs:/id/model`, a path.
        dst_path: where its files are downloaded to.

    Returns:
        path below the model's folder -> what `pt2kit.check` says.

    Raises:
        OSError, Pt2Error: a file cannot be read. MLflow's own errors: there is no such model.
    """
    folder = _downloaded(model_uri, dst_path)
    return MappingProxyType({path.relative_to(folder).as_posix(): check(path) for path in _programs(folder)})


def load_model(model_uri: str, *, dst_path: str | None = None, device: Any = None, trust: Sequence[str] = ()) -> Any:
    """Load the program of a model as a module, after it was checked: `mlflow.pytorch.load_model` for programs.

    Args:
        model_uri, dst_path: as for `check_model`.
        device, trust: as for `pt2kit.load`.

    Returns:
        a `torch.nn.Module`.

    Raises:
        UnsupportedError: the model has no program, or several; or the check finds errors: nothing was loaded.
        Pt2Error: as `pt2kit.load`.
    """
    return _loaded(_downloaded(model_uri, dst_path), device, trust)


def _load_pyfunc(path: str, *_: Any) -> Program:
    """Load a model for MLflow, for a model that names this module as its `loader_module`."""
    return Program(_loaded(Path(path), None, ()))


class Program:
    """A module as a `pyfunc` model: arrays or data frames in, an array out.

    Args:
        module: what `load_model` gives.
    """

    def __init__(self, module: Any) -> None:
        self.module = module

    def predict(self, data: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Call the program with `data` as one array of 32-bit floats, or with one for each value of a dict."""
        from pt2kit.bridge.operators import call_with_arrays

        return call_with_arrays(
            self.module, data.values() if isinstance(data, dict) else [getattr(data, "values", data)]
        )


def _downloaded(model_uri: str, dst_path: str | None) -> Path:
    from mlflow.artifacts import download_artifacts

    return Path(download_artifacts(artifact_uri=model_uri, dst_path=dst_path))


def _programs(folder: Path) -> Iterator[Path]:
    yield from [folder] if folder.is_file() else sorted(folder.rglob("*.pt2"))


def _loaded(folder: Path, device: Any, trust: Sequence[str]) -> Any:
    from pt2kit.bridge.load import load

    paths = list(_programs(folder))
    if len(paths) != 1:
        raise UnsupportedError(
            f"{folder}: expected one .pt2, got {len(paths)}; MLflow's own loader reads other formats"
        )
    [path] = paths
    wrong = [one for one in check(path) if one.severity == "error" and one.rule not in trust]
    if wrong:
        raise UnsupportedError(
            f"{path}: expected a model that a check finds sound, got {count_text(len(wrong), 'error')}: {wrong[0]}"
        )
    return load(path, device=device, trust=trust).module()
