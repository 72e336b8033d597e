"""The engine follows values through calls, writes, aliases and subgraphs: an analysis of what depends on an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests import samples

import pt2kit
from pt2kit import dataflow, schema
from pt2kit.dataflow.domain import Changes
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph.argument_values import arguments

Sources = frozenset[str]


class Dependencies(dataflow.Domain[Sources]):
    """Which inputs of the program a value depends on."""

    def input(self, value: dataflow.Value) -> Sources:
        """An input depends on itself; what is not known inside a subgraph on nothing."""
        return frozenset((value.name,)) if value.is_root and value.position >= 0 else frozenset()

    def call(self, call: dataflow.Call) -> Sequence[Any]:
        """Results depend on what all arguments depend on."""
        return [self._all(list(call.arguments.values()))] * len(call.node.outputs)

    def write(self, fact: Sources, call: dataflow.Call, parameter: str) -> Sources:
        """A value that is written depends on what is written, too."""
        return fact | self._all(list(call.arguments.values()))

    def join(self, one: Sources, other: Sources) -> Sources:
        """Either may hold."""
        return one | other

    def _all(self, held: Any) -> Sources:
        if isinstance(held, frozenset):
            return held
        if isinstance(held, (list, tuple)):
            return frozenset().union(*map(self._all, held))
        return frozenset()


def tensor(name: str) -> schema.Argument:
    """The argument that names a tensor."""
    return schema.Argument(as_tensor=schema.TensorArgument(name))


def node(target: str, outputs: Sequence[str], **arguments: schema.Argument) -> schema.Node:
    """A call of an operator of aten."""
    inputs = [
        schema.NamedArgument(name, argument, schema.ArgumentKind.POSITIONAL) for name, argument in arguments.items()
    ]
    return schema.Node(f"torch.ops.{target}", inputs, [tensor(name) for name in outputs], {})


def graph(inputs: Sequence[str], nodes: Sequence[schema.Node], outputs: Sequence[str]) -> schema.Graph:
    """A graph of tensors of two elements."""
    names = [*inputs, *(name for one in nodes for output in one.outputs for name in arguments(output))]
    meta = schema.TensorMeta(
        schema.ScalarType.FLOAT,
        [schema.SymInt(as_int=2)],
        False,
        schema.Device("cpu"),
        [schema.SymInt(as_int=1)],
        schema.SymInt(as_int=0),
        schema.Layout.Strided,
    )
    return schema.Graph(
        [tensor(i) for i in inputs], [tensor(o) for o in outputs], list(nodes), dict.fromkeys(names, meta), {}, {}
    )


def dependencies(program: schema.Graph) -> dict[str, list[str]]:
    """Name of a value of the root graph -> the inputs that it depends on."""
    facts = dataflow.run(program, Dependencies(), release="2.13")
    return {name: sorted(fact) for name, fact in facts[""].items()}


def test_writes_are_seen_through_views() -> None:
    """`x.view(-1).add_(y)`: afterwards x depends on y, and so does a view of it that was taken before."""
    found = dependencies(
        graph(
            ["x", "y", "z"],
            [
                node("aten.view.default", ["flat"], self=tensor("x"), size=schema.Argument(as_ints=[-1])),
                node("aten.relu.default", ["before"], self=tensor("x")),
                node("aten.add_.Tensor", ["added"], self=tensor("flat"), other=tensor("y")),
                node("aten.relu.default", ["after"], self=tensor("x")),
                node("aten.relu.default", ["other"], self=tensor("z")),
            ],
            ["after"],
        )
    )
    assert found["before"] == ["x"]
    assert found["after"] == found["x"] == found["flat"] == found["added"] == ["x", "y"]
    assert found["other"] == ["z"]


def test_inputs_that_calls_write_to() -> None:
    """`x.view(-1).add_(y)` writes to x, not to y; `x.add(y)` to neither."""
    written = graph(
        ["x", "y"],
        [
            node("aten.view.default", ["v"], self=tensor("x"), size=schema.Argument(as_ints=[-1])),
            node("aten.add_.Tensor", ["a"], self=tensor("v"), other=tensor("y")),
        ],
        ["a"],
    )
    plain = graph(["x", "y"], [node("aten.add.Tensor", ["a"], self=tensor("x"), other=tensor("y"))], ["a"])
    for one, expected in ((written, {"x"}), (plain, set())):
        changes = Changes("2.13")
        dataflow.run(one, changes, release="2.13")
        assert changes.written == expected


def test_writes_before_a_view_reach_it() -> None:
    """A result that is the argument itself (`detach_`, `contiguous`) shares later writes, too."""
    found = dependencies(
        graph(
            ["x", "y"],
            [
                node("aten.contiguous.default", ["same"], self=tensor("x")),
                node("aten.copy_.default", ["copied"], self=tensor("same"), src=tensor("y")),
                node("aten.clone.default", ["own"], self=tensor("x")),
                node("aten.mul_.Tensor", ["scaled"], self=tensor("own"), other=tensor("own")),
            ],
            ["x"],
        )
    )
    assert found["x"] == ["x", "y"]
    assert found["own"] == ["x", "y"]


def _with_subgraphs(operator: str, bodies: Sequence[schema.Graph], *arguments: schema.Argument) -> schema.Node:
    held = [schema.Argument(as_graph=schema.GraphArgument(f"body_{n}", body)) for n, body in enumerate(bodies)]
    order = {"cond": [*arguments[:1], *held, *arguments[1:]], "while_loop": [*held, *arguments]}.get(
        operator, [*held, *arguments]
    )
    inputs = [schema.NamedArgument("", argument, schema.ArgumentKind.POSITIONAL) for argument in order]
    outputs = [schema.Argument(as_tensors=[schema.TensorArgument("out")])]
    return schema.Node(f"torch.ops.higher_order.{operator}", inputs, outputs, {}, False)


def test_branches_are_joined() -> None:
    """A result of cond depends on what either branch uses."""
    first = graph(["a", "b"], [node("aten.relu.default", ["r"], self=tensor("a"))], ["r"])
    second = graph(["a", "b"], [node("aten.relu.default", ["r"], self=tensor("b"))], ["r"])
    operands = schema.Argument(as_tensors=[schema.TensorArgument("x"), schema.TensorArgument("y")])
    call = _with_subgraphs("cond", [first, second], tensor("p"), operands)
    root = graph(["p", "x", "y"], [call], [])
    assert dependencies(root)["out"] == ["x", "y"]


_CONSTANTS = [
    schema.Argument(as_bool=True),
    schema.Argument(as_string="s"),
    schema.Argument(as_tensors=[schema.TensorArgument("a")]),
]


@pytest.mark.parametrize("result", _CONSTANTS, ids=lambda one: one.type)
def test_constants_of_branches(result: schema.Argument) -> None:
    """A branch may return a constant, or a list as one result (which rule G9 refuses): its changes are none."""
    first = graph(["a"], [], ["a"])
    second = replace(first, outputs=[result])
    operands = schema.Argument(as_tensors=[schema.TensorArgument("x")])
    call = _with_subgraphs("cond", [first, second], tensor("p"), operands)
    assert "out" in dataflow.run(graph(["p", "x"], [call], []), Changes("2.13"))[""]


@pytest.mark.parametrize("results", [["b", "a"], ["b"], []])
def test_loops_run_until_nothing_changes(results: list[str]) -> None:
    """In `while …: x, y = y, x` either carried value depends on both after some turns; a body may return too little."""
    condition = graph(["a", "b"], [node("aten.relu.default", ["go"], self=tensor("a"))], ["go"])
    body = graph(["a", "b"], [], results)
    operands = schema.Argument(as_tensors=[schema.TensorArgument("x"), schema.TensorArgument("y")])
    additional = schema.Argument(as_tensors=[])
    call = _with_subgraphs("while_loop", [condition, body], operands, additional)
    root = graph(["x", "y"], [call], [])
    assert dependencies(root)["out"] == (["x", "y"] if len(results) == 2 else [])


@pytest.mark.parametrize("name", ["cond", "while_loop_hop", "associative_scan_hop", "map_hop", "checkpoint_hop"])
def test_sample_programs_with_subgraphs(name: str) -> None:
    """Each value of each subgraph has a fact, and outputs depend on an input of the user."""
    with pt2kit.open(samples.sample("2.13.0", name)) as package:
        program = package.programs["model"]
    facts = dataflow.run(program, Dependencies())
    root = program.graph_module.graph
    users = {
        spec.value.arg.as_tensor.name
        for spec in program.graph_module.signature.input_specs
        if spec.type == "user_input" and spec.value.arg.type == "as_tensor"
    }
    for output in root.outputs:
        if output.type == "as_tensor":
            assert facts[""][output.as_tensor.name] & users


def test_undefined_values_are_an_error() -> None:
    """With the place of the node that uses it."""
    broken = graph(["x"], [node("aten.relu.default", ["r"], self=tensor("nobody"))], ["r"])
    with pytest.raises(
        GraphError, match=r"\$\.nodes\[0\]: expected a value that is defined before, got 'nobody' \[G1\]"
    ):
        dataflow.run(broken, Dependencies())


def test_subgraphs_that_multiply_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subgraphs that call subgraphs, each twice, end with an error of ours."""
    monkeypatch.setattr("pt2kit.dataflow.engine.MAX_CALLS", 100)
    inner = graph(["a"], [node("aten.relu.default", ["r"], self=tensor("a"))], ["r"])
    for _ in range(8):
        operand = schema.Argument(as_tensors=[schema.TensorArgument("a")])
        call = _with_subgraphs("invoke_subgraph", [inner], schema.Argument(as_string="id"), operand)
        inner = graph(["a"], [call, call], ["out"])
    with pytest.raises(LimitError, match="expected at most 100 calls to analyze"):
        dataflow.run(inner, Dependencies())
