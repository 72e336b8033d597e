# One verb per line; `make help` lists them.
PYTHON ?= python3
JOBS ?= auto
VENV := .venv
CORE := .venv-core
LOWEST := .venv-lowest
BIN := $(VENV)/bin
# The release that development and CI use; others are tried by test-torch.
TORCH_PIN := torch==2.13.0
FAST := -m 'not slow' --cases 4 --hypothesis-profile=fast --ignore=tests/bridge --ignore=tests/viewing

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-core test-fast test-torch test-torches test-view lint format bench bench-quick fuzz compatibility docs outputs changelog release regen toolchains jax test-jax
.PHONY: viewer browser clean coverage test-lowest

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

# The stamps name what each environment was made from, so a changed pyproject.toml remakes it.
$(VENV)/.stamp: pyproject.toml Makefile
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,fleet-test]' '$(TORCH_PIN)'
	@touch $@

$(CORE)/.stamp: pyproject.toml
	$(PYTHON) -m venv $(CORE)
	$(CORE)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(LOWEST)/.stamp: pyproject.toml tools/lowest.py
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' \
	  $$($(PYTHON) tools/lowest.py http sign)
	@touch $@

demo: $(VENV)/.stamp ## install into .venv and run the main job on real files
	@$(BIN)/python examples/demo.py

test: $(VENV)/.stamp ## run every test, those of sample files with a cover of 75 of them
	$(BIN)/python -m pytest -n $(JOBS) -q

test-all: $(VENV)/.stamp ## the same with every sample file, as CI does
	$(BIN)/python -m pytest -n $(JOBS) -q --all-samples

test-core: $(CORE)/.stamp ## run everything but tests/bridge in an environment without torch
	@! $(CORE)/bin/python -c 'import torch' 2>/dev/null || { echo 'torch is importable in $(CORE)'; exit 1; }
	$(CORE)/bin/python -m pytest -n $(JOBS) -q --all-samples --ignore=tests/bridge

test-fast: $(CORE)/.stamp ## a few cases of each test, without torch and without starting commands (a minute and a half)
	$(CORE)/bin/python -m pytest -n $(JOBS) -q $(FAST)

test-lowest: $(LOWEST)/.stamp ## the same and all commands, with the lowest versions of all dependencies (a Python up to 3.12)
	$(LOWEST)/bin/python -m pytest -n $(JOBS) -q $(FAST)
	$(LOWEST)/bin/python -m pytest -n $(JOBS) -q tests/cli

coverage: $(if $(BRIDGE),$(VENV),$(CORE))/.stamp ## run test-core (all tests with BRIDGE=1) measured; table in docs/testing.md, lines in coverage/html
	rm -rf coverage
	$(<D)/bin/python -m pytest -n $(JOBS) -q -m 'not bare' $(if $(BRIDGE),,--ignore=tests/bridge) \
	  --cov --cov-report=html --cov-report=json
	$(<D)/bin/python tools/coverage_table.py --write $(if $(BRIDGE),,--without bridge)

test-torch: ## try one release of torch in an environment of its own: tests, sample files, zoo (TORCH=2.15.0)
	$(PYTHON) tools/torches.py $(if $(TORCH),$(TORCH),$(error say TORCH=2.15.0)) $(if $(CORPUS),--corpus $(CORPUS))

test-torches: ## the same for all seven releases; writes the table in docs/compatibility.md (about an hour)
	$(PYTHON) tools/torches.py $(if $(CORPUS),--corpus $(CORPUS))

lint: $(VENV)/.stamp ## ruff (lint and format), mypy --strict, and code lines next to their budgets
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.budgets

format: $(VENV)/.stamp ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.stamp ## run every benchmark, or some (NAMES="open_vs_json show_time"), and print the table of ratios
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,bench,fleet]' '$(TORCH_PIN)'
	$(BIN)/python -m benchmarks $(NAMES)

bench-quick: $(VENV)/.stamp ## run a few benchmarks in two minutes: few rounds, small files
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,bench]' '$(TORCH_PIN)'
	$(BIN)/python -m benchmarks --quick $(NAMES)

fuzz: $(VENV)/.stamp ## coverage-guided fuzzing: each harness for MINUTES=10, and a table
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,torch,fuzz]'
	PYTHONPATH=. $(BIN)/python -m tools.fuzz --minutes $${MINUTES:-10}

compatibility: $(VENV)/.stamp ## the table of releases: which sample files open, load, run (CORPUS=folder)
	$(BIN)/python -m tools.compatibility $(CORPUS)

docs: $(VENV)/.stamp ## build the documents' site into docs/_build/html; a warning is an error
	@echo 'installing what the site needs …'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]' '$(TORCH_PIN)'
	@echo 'building the site, which takes a minute …'
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

outputs: $(VENV)/.stamp ## write what the commands and the notebook of the documents print now into the pages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]' '$(TORCH_PIN)'
	$(BIN)/python -m tests.project.console
	$(BIN)/python -m tests.project.notebook

changelog: $(VENV)/.stamp ## gather changes/ into CHANGELOG.md (VERSION=1.2.0); then commit, tag v1.2.0, make release
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,release]'
	$(BIN)/python -m towncrier build --yes --version $(if $(VERSION),$(VERSION),$(error say VERSION=1.2.0))

release: $(VENV)/.stamp ## build dist/, check it, try it in fresh environments of every Python here and with the oldest dependencies
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,release]'
	$(BIN)/python -m tools.release

regen: $(VENV)/.stamp ## write the generated files: idl/, the version tables, the tables in docs
	$(BIN)/python -m tools.regen

$(VENV)/node_modules/.bin/tsc: | $(VENV)/.stamp
	npm install --silent --no-audit --no-fund --no-save --prefix $(VENV) typescript@7.0.2

toolchains: $(VENV)/node_modules/.bin/tsc ## what proves the generated definitions: tsc, g++, nlohmann/json
	@command -v g++ >/dev/null && test -e /usr/include/nlohmann/json.hpp \
	  || { apt-get update -qq && apt-get install -y -qq g++ nlohmann-json3-dev; }

jax: $(VENV)/.stamp ## the second engine of sessions, into the environment of the tests
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[jax]'

test-jax: jax ## the tests of that engine
	$(BIN)/python -m pytest -q -n 0 --all-samples tests/runtime/test_jax.py

viewer/node_modules/.stamp: viewer/package-lock.json
	npm ci --prefix viewer --silent --no-audit --no-fund
	@touch $@

viewer: viewer/node_modules/.stamp ## build the page of pt2 view from viewer/ into src/pt2kit/viewing/page/
	npm run build --prefix viewer --silent

browser: viewer/node_modules/.stamp $(VENV)/.stamp ## what drives and checks that page: chromium, playwright, axe-core
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[browser]'

test-view: browser ## run the tests of pt2 view in a real browser
	PT2KIT_BROWSER=required $(BIN)/python -m pytest -n $(JOBS) -q tests/viewing tests/cli/test_view.py

clean: ## remove the environments and caches
	rm -rf $(VENV) $(CORE) $(LOWEST) coverage viewer/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
