"""Programs stamped with older operator sets: what torch's own upgraders compute for the old calls, we compute too."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from tests.packages import bytes_of

import pt2kit
from pt2kit import schema
from pt2kit.errors import ConversionError
from pt2kit.schema import ScalarType

A, B = torch.tensor([7, -7, 9]), torch.tensor([2, 2, -4])
X = torch.tensor([7.0, -7.5, 9.0])
TYPES = {torch.int64: ScalarType.LONG, torch.float32: ScalarType.FLOAT, torch.int32: ScalarType.INT}


@dataclass(frozen=True)
class Case:
    """One old call.

    Args:
        call: today's operator that is exported; the node's arguments are then made those of the old call.
        args: of the call, its tensors first.
        operator: the node's target ("div.Tensor").
        upgrader: torch's own name of what mends the old call, and its arguments.
        version: the number that the program is stamped with.
        given: arguments that the old call had instead of the exported ones.
        gone: arguments that the old call did not have.
        exported: what is exported, if that is another operator.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    operator: str
    upgrader: str
    version: int
    given: dict[str, Any] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    exported: str = ""


def divide(name: str, *args: Any, version: int = 3) -> Case:
    """A division of 3."""
    function, overload = name.split(".")
    call = getattr(getattr(torch.ops.aten, function), overload)
    clone = function.endswith("_")
    return Case(
        (lambda x, *rest: call(x.clone(), *rest)) if clone else call,
        args,
        name,
        f"{function}_{overload}_0_3",
        version,
    )


FACTORY = {"dtype": None, "layout": None, "device": None, "pin_memory": None}
CASES = {
    "ints": divide("div.Tensor", A, B),
    "floats": divide("div.Tensor", X, B),
    "int by float": divide("div.Tensor", A, X),
    "32 bits": divide("div.Tensor", A.int(), B.int()),
    "int by number": divide("div.Scalar", A, 2),
    "int by float number": divide("div.Scalar", A, 2.0),
    "float by number": divide("div.Scalar", X, 2),
    "in place": Case(
        lambda x, y: torch.ops.aten.div_.Tensor_mode(x.clone(), y, rounding_mode="trunc"),
        (A, B),
        "div_.Tensor",
        "div__Tensor_0_3",
        3,
        gone=("rounding_mode",),
        exported="div_.Tensor_mode",
    ),
    "in place, floats": divide("div_.Scalar", X, 2),
    "of 1": divide("div.Tensor", A, B, version=1),
    "full of an int": Case(lambda: torch.full([3], 2.0), (), "full.default", "full_0_4", 4, {"fill_value": 2}),
    "full with a dtype": Case(
        lambda: torch.full([3], 2, dtype=torch.int64), (), "full.default", "full_0_4", 4, {"fill_value": 2}
    ),
    "linspace": Case(lambda: torch.linspace(0, 1, 100), (), "linspace.default", "linspace_0_7", 7, gone=("steps",)),
    "linspace with steps": Case(lambda: torch.linspace(0, 1, 7), (), "linspace.default", "linspace_0_7", 7),
    "logspace": Case(lambda: torch.logspace(0, 1, 100), (), "logspace.default", "logspace_0_8", 8, gone=("steps",)),
    "gelu": Case(torch.ops.aten.gelu.default, (X,), "gelu.default", "gelu_0_9", 9),
}


def wanted(case: Case) -> Any:
    """Return the result of torch's upgrader for the old call; its gelu, today's formula, does not compile."""
    if case.upgrader == "gelu_0_9":
        return torch.nn.functional.gelu(*case.args)
    unit = torch.jit.CompilationUnit(torch._C._get_upgraders_entry_map()[case.upgrader])
    call = getattr(unit, case.upgrader)
    args = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in case.args]
    match case.operator:
        case "full.default":
            dtype = 4 if case.call().dtype == torch.int64 else None
            return call([3], case.given["fill_value"], dtype=dtype)
        case "linspace.default":
            return call(0, 1, None if case.gone else 7, **FACTORY)
        case "logspace.default":
            return call(0, 1, None, 10.0, **FACTORY)
    return call(*args)


def stored(case: Case) -> bytes:
    """A file whose program makes the old call."""

    class Model(torch.nn.Module):
        def forward(self, *tensors: torch.Tensor) -> Any:
            return case.call(*tensors, *case.args[len(tensors) :])

    tensors = tuple(arg for arg in case.args if isinstance(arg, torch.Tensor))
    file = bytes_of(pt2kit.save, torch.export.export(Model(), tensors))
    with pt2kit.open(file) as package:
        program = package.programs["model"]
        graph = program.graph_module.graph
        nodes = [_old(node, case) for node in graph.nodes]
        assert nodes != graph.nodes or not case.gone
        assert f"torch.ops.aten.{case.operator}" in {node.target for node in nodes}
        new = replace(
            program,
            graph_module=replace(program.graph_module, graph=replace(graph, nodes=nodes)),
            opset_version={"aten": case.version},
        )
        return bytes_of(pt2kit.write, package, programs={"model": new})


def _old(node: schema.Node, case: Case) -> schema.Node:
    if node.target != f"torch.ops.aten.{case.exported or case.operator}":
        return node
    values = {"fill_value": lambda value: schema.Argument(**{f"as_{type(value).__name__}": value})}
    inputs = []
    for named in node.inputs:
        if named.name in case.given:
            named = replace(named, arg=values[named.name](case.given[named.name]))
        if named.name not in case.gone and not (named.name == "approximate" and case.version < 10):
            inputs.append(named)
    return replace(node, target=f"torch.ops.aten.{case.operator}", inputs=inputs)


def run(program: Any, case: Case) -> Any:
    """Return what a loaded program computes."""
    return program.module()(*(arg.clone() for arg in case.args if isinstance(arg, torch.Tensor)))


@pytest.mark.parametrize("name", CASES)
def test_old_calls(name: str) -> None:
    """Loaded by pt2kit, and converted and loaded by torch, an old call gives what torch's own upgrader gives for it."""
    case = CASES[name]
    data, want = stored(case), wanted(case)
    buffer = io.BytesIO()
    report = pt2kit.convert(data, buffer, target="torch==2.13")
    assert any(f"from {case.version} to 10" in note.message for note in report.changed)
    for program in (pt2kit.load(data), torch.export.load(io.BytesIO(buffer.getvalue()))):
        got = run(program, case)
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want)


def test_down_and_up_again() -> None:
    """Lowered to an older operator set and raised again, a call computes the same."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
            return torch.nn.functional.gelu(x), a / b, torch.full([2], 3), torch.linspace(0, 1, 5)

    live = torch.export.export(Model(), (X, A, B))
    file = bytes_of(pt2kit.save, live)
    down = bytes_of(pt2kit.convert, file, target="8.20", opset_version={"aten": 3})
    with pt2kit.open(down) as package:
        program = package.programs["model"]
        assert program.opset_version == {"aten": 3}
        targets = [node.target for node in program.graph_module.graph.nodes]
        assert "torch.ops.aten.true_divide.Tensor" in targets
        assert not any(
            named.name == "approximate" for node in program.graph_module.graph.nodes for named in node.inputs
        )
    up = pt2kit.load(down)
    for got, want in zip(up.module()(X, A, B), live.module()(X, A, B), strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want)


def test_a_formula_that_the_older_set_does_not_have() -> None:
    """gelu by tanh came with 10."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.nn.functional.gelu(x, approximate="tanh")

    file = bytes_of(pt2kit.save, torch.export.export(Model(), (X,)))
    with pytest.raises(ConversionError, match="expected gelu with approximate 'none' for aten 9, got 'tanh'"):
        pt2kit.convert(file, None, target="8.20", opset_version={"aten": 9})


def test_every_change_that_torch_knows_is_known_here() -> None:
    """Each operator whose meaning changed in torch's table has a change here, or means the same as it did."""
    from pt2kit.versions.opset_changes import ATEN_CHANGES

    ours = {(change.operator, change.to_version) for change in ATEN_CHANGES}
    same = {
        "div.Tensor_mode",
        "div.Scalar_mode",
        "div_.Tensor_mode",
        "div_.Scalar_mode",
        "div.out_mode",
        "full.out",
        "full.names",
    }
    for name, entries in torch._C._get_operator_version_map().items():
        operator = name.removeprefix("aten::")
        operator = operator if "." in operator else f"{operator}.default"
        for entry in entries:
            assert (operator, entry.bumped_at_version) in ours or operator in same
    assert max(to for _, to in ours) == torch._C._get_max_operator_version()
