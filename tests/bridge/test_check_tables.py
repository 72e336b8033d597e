"""The tables by which `pt2kit.checks` knows operators without torch, against torch and the bridge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests import samples

import pt2kit
from pt2kit.bridge.operators import resolve
from pt2kit.bridge.read.argument_kinds import arms_of
from pt2kit.bridge.read.operator_tables import (
    FUNCTIONS,
    HIGHER_ORDER,
    REFUSED_HIGHER_ORDER,
    REFUSED_NAMESPACES,
    REFUSED_OPERATORS,
    SYMBOLIC,
)
from pt2kit.checks import refused, schemas
from pt2kit.checks.parameter_kinds import parameter_arms
from pt2kit.checks.targets import argument_counts, is_usual
from pt2kit.errors import OperatorError
from pt2kit.graph import walk


def test_the_shipped_table_is_what_torch_registers() -> None:
    """`python -m tools.operator_schemas` writes the file that ships; in a process that has imported torch alone."""
    if torch.__version__.partition("+")[0] != schemas.RELEASE:
        pytest.skip(f"needs torch {schemas.RELEASE}")
    command = [sys.executable, "-m", "tools.operator_schemas", "--check"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_signatures_are_those_of_the_dispatcher() -> None:
    """For every operator of real files, parameters and results are those that torch states."""
    targets = set()
    for path in samples.corpus("2.13.0"):
        with pt2kit.open(path) as package:
            for program in package.programs.values():
                targets |= {step.node.target for step in walk(program)}
    compared = 0
    for target in sorted(targets):
        found = schemas.find(target, "2.13") if target.startswith("torch.ops.") else None
        operator = resolve(target) if found is not None else None
        if found is None or operator is None:
            continue
        compared += 1
        assert list(found.parameters) == list(operator.parameters)
        for name, parameter in found.parameters.items():
            known = operator.parameters[name]
            assert (parameter.keyword_only, parameter.required) == (known.keyword_only, known.required)
            if known.arms is not None:
                assert parameter_arms(parameter.type) == known.arms
        assert found.returns == tuple(kind.replace(" ", "") for kind in operator.returns)
    assert compared > 80


def test_kinds_of_arguments() -> None:
    """The same kinds of arguments fit here and in the bridge, for every type that torch has."""
    types = {str(argument.real_type) for schema in torch._C._jit_get_all_schemas() for argument in schema.arguments}
    for kind in types - {"complex", "List[complex]"}:
        assert parameter_arms(kind.replace(" ", "")) == arms_of(kind), kind


def test_refused_operators() -> None:
    """What loading refuses is what checking reports, with the same reason."""
    names = {name.replace("::", "."): reason for name, reason in REFUSED_OPERATORS.items()}
    names |= {f"higher_order.{name}": reason for name, reason in REFUSED_HIGHER_ORDER.items()}
    assert dict(refused.REFUSED_OPERATORS) == names
    assert dict(refused.REFUSED_NAMESPACES) == dict(REFUSED_NAMESPACES)


def test_functions() -> None:
    """Every function that loading accepts is usual, with the same number of arguments."""
    for name in (*SYMBOLIC, *FUNCTIONS):
        assert is_usual(name)
    for name in SYMBOLIC:
        operator = resolve(name)
        assert operator is not None
        assert argument_counts(name) == operator.counts, name
    for name in HIGHER_ORDER:
        assert is_usual(f"torch.ops.higher_order.{name}")


@pytest.mark.parametrize("target", ["torch.ops.aten.from_file.default", "torch.ops.c10d.send.default"])
def test_refusals_agree(target: str) -> None:
    """A refused operator is refused in both places."""
    assert refused.refusal(target)
    with pytest.raises(OperatorError):
        resolve(target)
