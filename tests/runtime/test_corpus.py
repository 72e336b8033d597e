"""Recorded inputs and outputs of real files of three releases: sessions reproduce them, without torch."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from tests import samples
from tests.runtime.corpus_files import is_reproducible, outcome, register_operators, unregister_operators

RUNS = samples.DATA / "runs"


@functools.cache
def recorded(release):
    return json.loads((RUNS / f"{release}.json").read_text()), dict(np.load(RUNS / f"{release}.npz"))


CASES = [
    (release, name)
    for release in sorted(path.stem for path in RUNS.glob("*.json"))
    for name in json.loads((RUNS / f"{release}.json").read_text())
    if samples.sample(release, name).exists()
]


@pytest.fixture(scope="module", autouse=True)
def _custom_operators():
    register_operators()
    yield
    unregister_operators()


@pytest.mark.parametrize(("release", "name"), CASES, ids=lambda value: value)
def test_recorded_outputs_are_reproduced(release, name):
    """Outputs, and inputs that the program writes to, are those that torch recorded; unsupported files are named."""
    metas, arrays = recorded(release)
    own = {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}
    meta = metas[name] | {"name": name}
    found, why = outcome(samples.sample(release, name), meta, own)
    if is_reproducible(meta):
        assert found in ("equal", "random"), why
