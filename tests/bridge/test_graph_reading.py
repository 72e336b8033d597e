"""Arguments of `Package.graph`, compared with torch's own schemas and torch's own reading of the files."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.test_operator_tags import RELEASE, overload_of
from tests.samples import corpus, release_id

import pt2kit
from pt2kit.graph.reading import _REQUIRED, Value, defaults
from pt2kit.schema.operators import operators_of


def plain(held: Any) -> Any:
    """Return an argument of fx as `Node.args` has it, with names instead of values."""
    if isinstance(held, torch.fx.Node):
        return held.name
    if isinstance(held, list | tuple):
        return tuple(map(plain, held))
    if isinstance(held, torch.dtype | torch.layout | torch.memory_format):
        return str(held).removeprefix("torch.")
    return str(held) if isinstance(held, torch.device) else held


def named(held: Any) -> Any:
    """Return an argument of `Node.args` with names instead of values."""
    if isinstance(held, Value):
        return held.name
    return tuple(map(named, held)) if isinstance(held, tuple) else held


def default_of(argument: Any) -> Any:
    """Return the default of a parameter as plain data; torch keeps dtypes and memory formats as numbers."""
    held = argument.default_value
    if isinstance(held, int) and "ScalarType" in str(argument.real_type):
        return next(str(one).removeprefix("torch.") for one in (torch.int64,) if held == 4)
    if isinstance(held, int) and "MemoryFormat" in str(argument.real_type):
        return {0: "contiguous_format"}[held]
    return plain(held)


def test_defaults_are_those_of_torch() -> None:
    """Each parameter of each overload has the default that torch's dispatcher has."""
    compared = 0
    for name in operators_of(RELEASE):
        overload = overload_of(name)
        if not isinstance(overload, torch._ops.OpOverload):
            continue
        stated = {
            argument.name: default_of(argument) if argument.has_default_value() else _REQUIRED
            for argument in overload._schema.arguments
        }
        known = dict(defaults(name, RELEASE))
        assert known == stated, name
        assert [type(one) for one in known.values()] == [type(one) for one in stated.values()], name
        compared += 1
    assert compared > 3000


@pytest.mark.parametrize("path", corpus("2.13.0")[::4], ids=release_id)
def test_arguments_are_those_of_torch(path: Any) -> None:
    """The arguments of nodes are those that torch's reader gives its nodes, bound by torch's schema."""
    try:
        program = torch.export.load(path)
    except Exception as error:  # noqa: BLE001 - what torch cannot read has other tests
        pytest.skip(f"torch does not load it: {type(error).__name__}")
    graph = pt2kit.open(path).graph()
    for fx_node in program.graph.nodes:
        if fx_node.op != "call_function" or not isinstance(fx_node.target, torch._ops.OpOverload):
            continue
        if fx_node.target.namespace != "aten":
            continue
        arguments = fx_node.target._schema.arguments
        positional = dict(zip([one.name for one in arguments], fx_node.args, strict=False))
        expected = {one.name: default_of(one) for one in arguments if one.has_default_value()}
        expected |= {name: plain(held) for name, held in {**positional, **fx_node.kwargs}.items()}
        assert {name: named(held) for name, held in graph.node(fx_node.name).args.items()} == expected
