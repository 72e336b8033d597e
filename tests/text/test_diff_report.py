"""Differences as text: what is said, what is folded, and that nothing in a file can break a line."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from msgspec.structs import replace
from tests.canonical.programs import node, program, tensor_graph
from tests.diffs.cases import data, pairs
from tests.diffs.edits import ADD, GELU, RELU, layers, stack, with_input, with_nodes, with_parameters
from tests.graph.build import arg

from pt2kit import schema
from pt2kit.diffs import Change, Detail, Diff, ValueDifference, diff
from pt2kit.diffs.compute import compare_programs
from pt2kit.diffs.graphs import DiffOptions
from pt2kit.text.change_details import ALIKE, SHOWN
from pt2kit.text.diff_report import MAX_NODE, RUN, diff_lines

PAIRS = pairs()


def compared(old: schema.ExportedProgram, new: schema.ExportedProgram) -> Diff:
    """The differences between two programs."""
    changes, pair = compare_programs(old, new, "model", DiffOptions())
    return Diff("old.pt2", "new.pt2", tuple(changes), {"model": pair})


def lines(old: schema.Graph, new: schema.Graph, *, full: bool = False) -> list[str]:
    """The differences between two programs with these graphs, as text."""
    return list(diff_lines(compared(with_parameters(old), with_parameters(new)), full=full))


def replaced(graph: schema.Graph, *names: str) -> schema.Graph:
    """A graph in which some nodes call gelu."""
    return with_nodes(graph, lambda nodes: [replace(one, target=GELU) if one.name in names else one for one in nodes])


def test_a_changed_node_is_shown_with_what_stands_around_it() -> None:
    """The summary first, then the place, two nodes on either side, and what differs."""
    assert lines(layers(3), replaced(layers(3), "relu_1")) == [
        "old.pt2 -> new.pt2: 1 difference",
        "  nodes          1 modified (of 9), in layers.1",
        "nodes",
        "  @ layers.1: old 2 to 6 of 9, new 2 to 6 of 9",
        "    %add_0: f32[2, 3] = aten.add.Tensor(a0=%x, a1=%relu_0)  # layers.0",
        "    %linear_1: f32[2, 3] = aten.linear.default(a0=%add_0, a1=%w1)  # layers.1",
        "  ~ %relu_1: f32[2, 3] = aten.gelu.default(a0=%linear_1)  # layers.1",
        "      target: aten.relu.default -> aten.gelu.default",
        "    %add_1: f32[2, 3] = aten.add.Tensor(a0=%add_0, a1=%relu_1)  # layers.1",
        "    %linear_2: f32[2, 3] = aten.linear.default(a0=%add_1, a1=%w2)  # layers.2",
    ]


def test_what_came_and_what_went_is_marked() -> None:
    """`+` and `-`, with the place in the graph that has it; arguments that were not there are said so."""
    graph = layers(2)

    def edit(nodes: list[schema.Node]) -> list[schema.Node]:
        new = replace(node(GELU, ["gelu"], arg(as_tensor="relu_0")), metadata=stack("layers.0"))
        after = with_input(nodes[2], 1, arg(as_tensor="gelu"))
        more = replace(after, inputs=[*after.inputs, schema.NamedArgument("alpha", schema.Argument(as_int=2))])
        return [*nodes[:2], new, more, *nodes[3:]]

    found = lines(graph, with_nodes(graph, edit))
    assert "  + %gelu: f32[2, 3] = aten.gelu.default(a0=%relu_0)  # layers.0" in found
    assert found[found.index("      argument a1: %relu_0 -> %gelu") + 1] == "      argument alpha: absent -> 2"
    back = lines(with_nodes(graph, edit), graph)
    assert "  - %gelu: f32[2, 3] = aten.gelu.default(a0=%relu_0)  # layers.0" in back
    assert "      argument alpha: 2 -> absent" in back


def test_no_difference_is_one_line() -> None:
    """And it is said if the numbers were not looked at."""
    same = diff(data("mlp"), data("mlp"), tensors=False)
    assert list(diff_lines(same)) == ["<bytes> -> <bytes>: no differences (numbers of tensors not compared)"]


def test_what_is_alike_is_counted() -> None:
    """The same change in many layers is shown three times, unless everything is to be shown."""
    graph = layers(40)
    names = [f"relu_{n}" for n in range(40)]
    short = lines(graph, replaced(graph, *names))
    assert sum(line.startswith("  ~ ") for line in short) == ALIKE
    assert short[-1] == "    … 37 more modified like these: relu_3, relu_4, relu_5, relu_6, relu_7, …"
    whole = lines(graph, replaced(graph, *names), full=True)
    assert sum(line.startswith("  ~ ") for line in whole) == 40
    assert not any("more modified" in line for line in whole)


def test_long_runs_are_counted() -> None:
    """Of a hundred nodes in a row some are shown; the others are counted by operator and module."""
    old = tensor_graph(["x"], [node(ADD, ["y"], arg(as_tensor="x"))], ["y"])
    row = [
        replace(
            node((RELU, GELU, ADD)[n % 3] + str(n % 50), [f"v{n}"], arg(as_tensor=f"v{n - 1}" if n else "y")),
            metadata=stack("block"),
        )
        for n in range(100)
    ]
    new = tensor_graph(["x"], [*old.nodes, *row], ["v99"])
    found = list(diff_lines(compared(program(old), program(new))))
    shown = sum(line.startswith("  + ") for line in found)
    assert RUN <= shown <= RUN + 2
    assert any(line.startswith(f"    … {100 - shown} more added in block: ") for line in found)
    back = list(diff_lines(compared(program(new), program(old))))
    assert any(re.match(r"    … \d+ more removed in block: ", line) for line in back)


def test_thousands_of_differences_take_few_lines() -> None:
    """Also if no two of them are alike."""
    graph = layers(700)
    other = with_nodes(graph, lambda nodes: [replace(one, target=f"{one.target}{n}") for n, one in enumerate(nodes)])
    found = lines(graph, other)
    assert len(found) < 8 * SHOWN
    assert found[1].startswith("  nodes          2,100 modified (of 2,100), in layers.")
    assert found[-1].endswith("other ways")


def test_long_nodes_are_cut() -> None:
    """A node with hundreds of arguments takes one line of bounded length, unless everything is to be shown."""
    names = [f"x{n}" for n in range(300)]
    old = tensor_graph(names, [node(ADD, ["y"], arg(as_tensors=names), schema.Argument(as_int=1))], ["y"])
    new = replace(old, nodes=[with_input(old.nodes[0], 1, schema.Argument(as_int=2))])
    found = list(diff_lines(compared(program(old), program(new))))
    assert max(map(len, found)) <= MAX_NODE + 5
    whole = list(diff_lines(compared(program(old), program(new)), full=True))
    assert max(map(len, whole)) > 1000


def test_metadata_is_named_and_shown_where_asked() -> None:
    """Of nodes that do something else; nodes of which nothing but metadata differs are counted in the summary."""
    graph = layers(1)
    other = with_nodes(
        replaced(graph, "relu_0"), lambda nodes: [replace(one, metadata={"stack_trace": "there"}) for one in nodes]
    )
    found = lines(graph, other)
    assert found[2] == "  node metadata  nn_module_stack of 2, stack_trace of 2"
    assert "      metadata: nn_module_stack, stack_trace" in found
    assert any(
        line.startswith("      metadata stack_trace: absent -> there") for line in lines(graph, other, full=True)
    )


def listed(*changes: Change, full: bool = False) -> list[str]:
    """Some changes that belong to no program, as text, without the summary."""
    found = list(diff_lines(Diff("a", "b", changes, {}), full=full))
    return found[next(n for n, line in enumerate(found) if n and not line.startswith(" ")) :]


def test_names_that_differ_in_numbers_are_one_line() -> None:
    """Tensors of many layers; of changed numbers the sums and extremes."""
    gone = [
        Change("removed", "weight", "", f"layers.{n}.w", details=(Detail("type", "f32[4]", None),)) for n in range(9)
    ]
    assert listed(*gone) == ["weights", "  - layers.….w: f32[4]  (9 of these)"]
    assert len(listed(*gone, full=True)) == 10
    assert listed(*gone[:3])[1:] == [f"  - layers.{n}.w: f32[4]" for n in range(3)]
    values = [ValueDifference(10, n, n / 8, n / 4 or None) for n in range(1, 6)]
    moved = [
        Change("modified", "weight", "", f"layers.{n}.w", details=(Detail("values", None, value),))
        for n, value in enumerate(values)
    ]
    assert listed(*moved) == [
        "weights",
        "  ~ layers.….w  (5 of these)",
        "      values: 15 of 50 differ, by at most 0.625, relative norm 0.25 … 1.25",
    ]
    assert listed(moved[0])[1:] == [
        "  ~ layers.0.w",
        "      values: 1 of 10 differ, by at most 0.125, relative norm 0.25",
    ]
    odd = Change("modified", "weight", "", "w", details=(Detail("values", None, ValueDifference(2, 1, None, None)),))
    assert listed(odd)[2] == "      values: 1 of 2 differ"


def test_long_lists_end() -> None:
    """Hundreds of names that have nothing in common are counted."""
    names = [chr(ord("a") + n % 26) + "x" * (n // 26) for n in range(400)]
    found = listed(*(Change("added", "weight", "", name) for name in names))
    assert found[-1] == f"    … {400 - SHOWN:,} more: {400 - SHOWN:,} added"
    assert len(found) == SHOWN + 2


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("full", [False, True])
def test_all_lines_print(name: str, full: bool) -> None:
    """Whatever a file holds: no control character, no line end, no direction mark; every change in the whole text."""
    found = diff(*PAIRS[name])
    text = list(diff_lines(found, full=full))
    assert all(line.isprintable() for line in text)
    if full:
        marks = Counter(line[2] for line in text if line[:2] == "  " and line[2:4] in ("+ ", "- ", "~ "))
        mark_of = {"added": "+", "removed": "-", "modified": "~"}
        assert marks == Counter(mark_of[change.kind] for change in found.changes)
