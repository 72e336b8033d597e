"""load_module returns the same module as `load(f).module()`, for every sample file and every program of the zoo."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import samples
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.run.same import differences, structure
from tests.bridge.run.torch_oracle import copied, quiet, variants
from tests.bridge.test_fixed_point import TRUST, WITHOUT_DATA
from tests.bridge.zoo import zoo
from tests.bridge.zoo.program import Program

import pt2kit
from pt2kit.errors import ConversionError

PROGRAMS = [program for program in zoo.programs() if program.name not in WITHOUT_DATA and program.calls()]


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with quiet():
        yield


def check(file: Any, calls: list[Any], trust: Any = (), *, few: bool = False) -> None:
    """Structure, outputs, mutations, gradients and refusals."""
    program = pt2kit.load(file, trust=trust)
    ours = pt2kit.load_module(file, trust=trust)
    try:
        module = program.module()
    except (AssertionError, TypeError):  # up to 2.9 of decomposed effects, since 2.15 of nodes without origin
        pytest.skip("this torch makes no module of its own program")
    found = structure(ours, module)

    def make() -> torch.nn.Module:
        return pt2kit.load_module(file, trust=trust)

    def make_theirs() -> torch.nn.Module:
        return pt2kit.load(file, trust=trust).module()

    for call in calls:
        found += differences(make, make_theirs, call)
    for call in variants(calls[0])[1 : 4 if few else None] if calls else []:
        # A refused call changes nothing, so these share the modules.
        found += differences(lambda: copied(ours), lambda: copied(module), call, grad=False)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", samples.corpus(), ids=samples.release_id)
def test_corpus(path: Path) -> None:
    """Every sample file of every release, called with its sample inputs and with others."""
    examples = pt2kit.load(path).example_inputs
    check(path, [examples] if examples else [], few=True)


@pytest.mark.sampled(4, 2)
@pytest.mark.parametrize("program", zoo.cases(PROGRAMS), ids=repr)
def test_zoo(program: Program) -> None:
    """Every program of the zoo, with all its calls."""
    try:
        live = zoo.exported(program)
    except Exception as error:  # noqa: BLE001  torch has no error family
        pytest.skip(f"this torch does not export it: {type(error).__name__}")
    buffer = io.BytesIO()
    try:
        pt2kit.save(live, buffer)
    except ConversionError:
        pytest.skip("the schema of this torch has no place for it")
    check(buffer.getvalue(), list(program.calls()), TRUST.get(program.name, ()), few=program.slow)
