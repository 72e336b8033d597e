"""Operator set versions: changes applied in order, to every graph; what leads nowhere is refused with both numbers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests import samples
from tests.narrow import present

import pt2kit
from pt2kit import schema
from pt2kit.errors import LimitError, OperatorError, VersionError
from pt2kit.messages import count_text
from pt2kit.schema import Argument, GraphArgument, NamedArgument, Node, TensorArgument
from pt2kit.versions.opset_changes import OperatorChange, Replacement, convert_opset


def program(*nodes: Node, **opset: int) -> schema.ExportedProgram:
    """A program with other nodes and numbers."""
    with pt2kit.open(samples.sample("2.13.0", "mlp")) as package:
        found = package.programs["model"]
    module = found.graph_module
    return replace(
        found, graph_module=replace(module, graph=replace(module.graph, nodes=list(nodes))), opset_version=opset
    )


def call(target: str, *inputs: NamedArgument, result: str = "y") -> Node:
    """One call with one result."""
    return Node(f"torch.ops.mine.{target}", list(inputs), [Argument(as_tensor=TensorArgument(result))], {}, None, None)


def rename(old: str, new: str, first: int, last: int) -> OperatorChange:
    """The change of a name."""

    def convert(node: Node, graph: schema.Graph, place: str) -> Node:
        del graph, place
        return replace(node, target=f"torch.ops.mine.{new}")

    return OperatorChange("mine", old, first, last, convert)


VERSIONS = (rename("a", "b", 1, 2), rename("b", "c", 2, 3), rename("c", "b", 3, 2), rename("b", "a", 2, 1))


def targets(found: Any) -> list[str]:
    """The operators of a converted program."""
    return [node.target.rpartition(".")[2] for node in found.program.graph_module.graph.nodes]


@pytest.mark.parametrize(
    ("number", "wanted", "before", "after"),
    [(1, 3, "a", "c"), (1, 2, "a", "b"), (2, 3, "b", "c"), (3, 1, "c", "a"), (3, 2, "c", "b"), (2, 3, "a", "a")],
)
def test_changes_are_applied_in_order(number: int, wanted: int, before: str, after: str) -> None:
    """Up in the order of their numbers, down in the other; the program is stamped and the input stays."""
    given = program(call(before), call("other"), mine=number)
    found = convert_opset(given, "x", expected={"mine": wanted}, changes=VERSIONS)
    assert targets(found) == [after, "other"]
    assert found.program.opset_version == {"mine": wanted}
    assert given.opset_version == {"mine": number}
    count = int(before != after)
    if abs(number - wanted) == 2:
        count = 2
    changed = count_text(count, "node")
    assert found.notes == (f"x: $.opset_version.mine: from {number} to {wanted}, {changed} changed",)


def test_nothing_to_do() -> None:
    """A program of the expected number is the same object."""
    given = program(call("a"), aten=10, mine=3)
    found = convert_opset(given, "x", expected={"aten": 10, "mine": 3}, changes=VERSIONS)
    assert found.program is given
    assert (found.notes, found.problems) == ((), ())


def test_an_unknown_namespace_is_a_warning() -> None:
    """Its operators stay."""
    found = convert_opset(program(call("a"), mine=1), "x")
    assert targets(found) == ["a"]
    [problem] = found.problems
    assert (problem.loc, problem.rule, problem.kind) == ("x: $.opset_version.mine", "O2", "warning")
    assert "expected one of the namespaces aten, got an unknown one" in problem.message


@pytest.mark.parametrize(
    ("number", "wanted", "text"),
    [
        (4, 3, "expected 3 or older, got 4; a newer torch wrote the program"),
        (1, 4, "expected 4, got 1; what changed up to 3 is known here"),
    ],
)
def test_numbers_that_nothing_leads_to(number: int, wanted: int, text: str) -> None:
    """They are refused with both numbers."""
    with pytest.raises(VersionError, match=rf"^x: \$\.opset_version\.mine: {text}.*\[O1\]$"):
        convert_opset(program(call("a"), mine=number), "x", expected={"mine": wanted}, changes=VERSIONS)
    with pytest.raises(VersionError, match=r"expected 11, got 10; what changed up to 10 is known here"):
        convert_opset(program(aten=10), "x", expected={"aten": 11})
    with pytest.raises(VersionError, match=r"expected 2, got 1; what changed up to 1 is known here"):
        convert_opset(program(mine=1), "x", expected={"mine": 2})


def test_subgraphs_and_several_nodes_for_one() -> None:
    """Calls inside subgraphs and dicts of arguments change too; a call may become several, with new values."""

    def split(node: Node, graph: schema.Graph, place: str) -> Replacement:
        assert place.startswith("x: $.graph_module.graph.nodes[0].inputs[0].arg")
        meta = next(iter(values.values()))
        return Replacement((call("first", result="t"), replace(node, target="torch.ops.mine.second")), {"t": meta})

    values = program().graph_module.graph.tensor_values
    inner = schema.Graph([], [], [call("a")], {}, {}, {})
    held = Argument(as_graph=GraphArgument("g", inner))
    outer = call("hop", NamedArgument("", Argument(as_string_to_argument={"k": held})))
    found = convert_opset(
        program(outer, mine=1), "x", expected={"mine": 2}, changes=[OperatorChange("mine", "a", 1, 2, split)]
    )
    [node] = found.program.graph_module.graph.nodes
    inside = present(node.inputs[0].arg.as_string_to_argument)["k"]
    graph = present(inside.as_graph).graph
    assert [one.target for one in graph.nodes] == ["torch.ops.mine.first", "torch.ops.mine.second"]
    assert set(graph.tensor_values) == {"t"}
    assert inner.nodes[0].target == "torch.ops.mine.a"


def test_operators_that_cannot_be_brought_there() -> None:
    """A change that begins before the numbers in question, and a changed operator that is an argument."""
    wide = [OperatorChange("mine", "a", 0, 2, VERSIONS[0].convert)]
    with pytest.raises(OperatorError, match=r"nodes\[0\]: expected torch\.ops\.mine\.a to be known at 1 and 2.*\[O3\]"):
        convert_opset(program(call("a"), mine=1), "x", expected={"mine": 2}, changes=wide)
    argument = call("hop", NamedArgument("", Argument(as_operator="torch.ops.mine.a")))
    with pytest.raises(OperatorError, match=r"as_operator: expected an operator that did not change.*\[O3\]"):
        convert_opset(program(argument, mine=1), "x", expected={"mine": 2}, changes=VERSIONS)


def test_depth() -> None:
    """Subgraphs nested too deep are refused before the stack is."""
    graph = schema.Graph([], [], [call("a")], {}, {}, {})
    for _ in range(40):
        node = call("hop", NamedArgument("", Argument(as_graph=GraphArgument("g", graph))))
        graph = schema.Graph([], [], [node], {}, {}, {})
    [node] = graph.nodes
    with pytest.raises(LimitError, match="nested at most 32 levels deep"):
        convert_opset(program(node, mine=1), "x", expected={"mine": 2}, changes=VERSIONS)
