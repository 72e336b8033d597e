"""The tables by which `pt2kit.checks` knows operators without torch, against torch and the bridge."""

from __future__ import annotations

import inspect

import pytest
import torch
from tests import samples

import pt2kit
from pt2kit.bridge.operators import resolve
from pt2kit.bridge.torch_names import SYMBOLIC
from pt2kit.checks.calls import is_usual
from pt2kit.checks.operators import parameter_arms
from pt2kit.errors import OperatorError
from pt2kit.graph import walk
from pt2kit.operators import requirements, schemas
from pt2kit.operators.higher_order import FUNCTIONS
from pt2kit.operators.promotion import takes_numbers_as_tensors
from pt2kit.operators.requirements import ALLOWED
from pt2kit.operators.table import find
from pt2kit.symbols.functions import TARGETS


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
            assert (parameter.is_keyword_only, parameter.is_required) == (known.is_keyword_only, known.is_required)
            known_arms = operator.arms[name]
            if known_arms is not None:
                numbers = takes_numbers_as_tensors(target.removeprefix("torch.ops."))
                arms = parameter_arms(parameter.type, numbers_as_tensors=numbers)
                assert arms is not None
                assert arms <= known_arms
        assert len(found.results) == len(operator.result_arms)
    assert compared > 80


def test_functions() -> None:
    """Every function that loading accepts is usual, with the same number of arguments."""
    for name in (*SYMBOLIC, *FUNCTIONS):
        assert is_usual(name)
    assert TARGETS.keys() == SYMBOLIC.keys()
    for name, function in SYMBOLIC.items():
        parameters = inspect.signature(function).parameters.values()
        required = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
        assert (TARGETS[name].least, TARGETS[name].most) == (required, len(parameters)), name
    for name in ALLOWED:
        assert is_usual(f"torch.ops.higher_order.{name}")


@pytest.mark.parametrize("target", ["torch.ops.aten.from_file.default", "torch.ops.c10d.send.default"])
def test_refusals_agree(target: str) -> None:
    """A refused operator is refused in both places."""
    assert requirements.refusal(target)
    with pytest.raises(OperatorError, match=r"^target: \S+ is refused: it .*\[X10\]$"):
        resolve(target)


def test_results_without_a_gradient() -> None:
    """The rows whose results require no gradient, and those of similar operators that do, are as torch has it."""
    x = torch.ones(2, 3, requires_grad=True)
    calls: dict[str, tuple[object, ...]] = {
        **{f"{name}_like.default": (x,) for name in ("zeros", "ones", "empty", "rand", "randn")},
        **{f"new_{name}.default": (x, [2]) for name in ("zeros", "ones", "empty")},
        **dict.fromkeys(("detach.default", "detach_copy.default", "clone.default", "alias.default"), (x,)),
        "full_like.default": (x, 1.0),
        "new_full.default": (x, [2], 1.0),
        "new_empty_strided.default": (x, [2], [1]),
        "bernoulli.p": (x, 0.5),
        "contiguous.default": (x,),
    }
    for name, arguments in calls.items():
        operator, _, overload = name.partition(".")
        result = getattr(getattr(torch.ops.aten, operator), overload)(*arguments)
        row = find(f"aten.{name}")
        assert row is not None
        assert result.requires_grad is row.has_gradient, name
