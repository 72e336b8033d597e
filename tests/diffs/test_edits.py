"""A program and the same one with one edit: the edit is reported, nothing else, and both ways alike."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.canonical.programs import A, B, graphs, node, program, rewritten, tensor_graph
from tests.diffs.edits import GELU, LINEAR, RELU, changes, layers, stack, told, with_input, with_parameters
from tests.graph.build import arg, meta
from tests.samples import CURRENT_LAYOUT, corpus

from pt2kit import schema
from pt2kit.canonical.facts import rename
from pt2kit.diffs import Change, diff
from pt2kit.digests import digest_program
from pt2kit.graph import node_outputs, references
from pt2kit.graph.argument_values import graph_arguments

C = "torch.ops.aten.c.default"
LATEST = CURRENT_LAYOUT[-3]
Edit = Callable[[schema.Graph, int, random.Random], schema.Graph | None]


def used(graph: schema.Graph) -> set[str]:
    """The names of the values that something in a graph uses."""
    held = [named.arg for one in graph.nodes for named in one.inputs]
    return {ref.name for argument in (*held, *graph.outputs) for ref in references(argument)}


def with_node(graph: schema.Graph, number: int, *new: schema.Node) -> schema.Graph:
    """Return a graph with other nodes instead of one."""
    return replace(graph, nodes=[*graph.nodes[:number], *new, *graph.nodes[number + 1 :]])


def _constant(graph: schema.Graph, number: int, rng: random.Random) -> schema.Graph | None:
    one = graph.nodes[number]
    places = [place for place, named in enumerate(one.inputs) if named.arg.type == "as_int"]
    return with_node(graph, number, with_input(one, places[0], schema.Argument(as_int=7))) if places else None


def _argument_added(graph: schema.Graph, number: int, rng: random.Random) -> schema.Graph | None:
    one = graph.nodes[number]
    return with_node(
        graph, number, replace(one, inputs=[*one.inputs, schema.NamedArgument("new", schema.Argument(as_int=5))])
    )


def _other_value(graph: schema.Graph, number: int, rng: random.Random) -> schema.Graph | None:
    """Return another value of the same kind."""
    one = graph.nodes[number]
    defined = [ref.name for argument in graph.inputs for ref in references(argument)]
    defined += [name for before in graph.nodes[:number] for name in node_outputs(before)]
    for place, named in enumerate(one.inputs):
        if named.arg.type == "as_tensor":
            others = [name for name in defined if name != named.arg.as_tensor.name]
            return (
                with_node(graph, number, with_input(one, place, arg(as_tensor=rng.choice(others)))) if others else None
            )
    return None


def _described(graph: schema.Graph, number: int, rng: random.Random) -> schema.Graph | None:
    names = node_outputs(graph.nodes[number])
    known = replace(meta(9, 9), dtype=schema.ScalarType.HALF)
    return replace(graph, tensor_values={**graph.tensor_values, names[0]: known}) if names else None


def _removed(graph: schema.Graph, number: int, rng: random.Random) -> schema.Graph | None:
    return None if used(graph) & set(node_outputs(graph.nodes[number])) else with_node(graph, number)


def _added(graph: schema.Graph, number: int, rng: random.Random) -> schema.Graph | None:
    """A node after another, of a new kind or doing the same once more, that nobody uses."""
    one = graph.nodes[number]
    same = node(one.target, ["new"], *(named.arg for named in one.inputs if named.arg.type != "as_graph"))
    other = node(C, ["new"], *(arg(as_tensor=name) for name in node_outputs(one)[:1]))
    found = with_node(graph, number, one, rng.choice((same, other)))
    return replace(found, tensor_values={**graph.tensor_values, "new": meta(2, 3)})


EDITS: dict[str, tuple[Edit, str]] = {
    "a constant": (_constant, "modified"),
    "an argument more": (_argument_added, "modified"),
    "another value": (_other_value, "modified"),
    "another result": (_described, "modified"),
    "a node less": (_removed, "removed"),
    "a node more": (_added, "added"),
}


def edited(edit: Edit, graph: schema.Graph, seed: int) -> tuple[schema.ExportedProgram, schema.ExportedProgram]:
    """A program, and the edited one written down in another way; different ones."""
    rng = random.Random(seed)
    others = (edit(graph, number, rng) for number in rng.sample(range(len(graph.nodes)), len(graph.nodes)))
    other = next((other for other in others if other is not None), None)
    assume(other is not None)
    assert other is not None
    old, new = program(graph), rewritten(program(other), seed)
    assume(meanings(old) != meanings(new))
    return old, new


def meanings(found: schema.ExportedProgram) -> dict[str, str]:
    """The digests of a program but that of its metadata."""
    return {part: one for part, one in digest_program(found).items() if part != "metadata"}


def distinct(graph: schema.Graph) -> schema.Graph:
    """A graph whose nodes have a number each, so that no two do the same."""
    nodes = [
        replace(one, inputs=[*one.inputs, schema.NamedArgument("number", schema.Argument(as_int=10 + number))])
        for number, one in enumerate(graph.nodes)
    ]
    return replace(graph, nodes=nodes)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_told_and_nothing_else(name: str) -> None:
    """Under other names and in another order: one change, of the right kind.

    In graphs of nodes that are much alike, too, unless that is what the edit makes ambiguous: a node that uses another
    value may have become the twin of its twin.
    """
    edit, kind = EDITS[name]

    @settings(max_examples=60, deadline=None)
    @given(graphs(), st.integers(0, 2**32))
    def check(graph: schema.Graph, seed: int) -> None:
        assert [change.kind for change in changes(*edited(edit, distinct(graph), seed))] == [kind]
        if edit is not _other_value:
            assert [change.kind for change in changes(*edited(edit, graph, seed))] == [kind]

    check()


def _replaced(graph: schema.Graph, number: int, rng: random.Random) -> schema.Graph | None:
    return with_node(graph, number, replace(graph.nodes[number], target=rng.choice((A, B, C))))


@settings(max_examples=80, deadline=None)
@given(graphs(), st.integers(0, 2**32))
def test_an_operator_is_replaced(graph: schema.Graph, seed: int) -> None:
    """One modified node; a node that uses nothing and is used by nothing is another node."""
    found = changes(*edited(_replaced, graph, seed))
    if [change.kind for change in found] != ["modified"]:
        assert sorted(change.kind for change in found) == ["added", "removed"]
    else:
        assert [detail.what for detail in found[0].details] == ["target"]


def _bypassed(graph: schema.Graph, number: int, rng: random.Random) -> schema.Graph | None:
    """A node less; those that used it use its first argument."""
    one = graph.nodes[number]
    names = [ref.name for named in one.inputs for ref in references(named.arg)]
    results = node_outputs(one)
    if len(results) != 1 or not names:
        return None
    new = {results[0]: names[0]}

    def changed(argument: schema.Argument) -> schema.Argument:
        return rename(argument, new, iter([held for _, held in graph_arguments(argument)]))

    nodes = [
        replace(other, inputs=[replace(named, arg=changed(named.arg)) for named in other.inputs])
        for other in graph.nodes
    ]
    return replace(with_node(replace(graph, nodes=nodes), number), outputs=list(map(changed, graph.outputs)))


@settings(max_examples=80, deadline=None)
@given(graphs(), st.integers(0, 2**32))
def test_a_node_is_taken_out(graph: schema.Graph, seed: int) -> None:
    """It is removed, and those that used it are modified; no others."""
    graph = distinct(graph)
    old, new = edited(_bypassed, graph, seed)
    found = changes(old, new)
    assert [change.kind for change in found if change.kind != "modified"] == ["removed"]
    [gone] = [change.old for change in found if change.kind == "removed"]
    assert gone is not None
    results = set(node_outputs(graph.nodes[gone]))
    users = [
        number
        for number, one in enumerate(graph.nodes)
        if any(ref.name in results for named in one.inputs for ref in references(named.arg))
    ]
    modified = {change.old for change in found if change.kind == "modified" and change.area == "node"}
    assert modified == set(users)
    assert {change.area for change in found} <= {"node", "output"}


def mirrored(found: list[Change], exchange: bool) -> list[tuple[object, ...]]:
    """Changes without their order and the names that things have on one side, the other way round if asked."""
    kinds = {"added": "removed", "removed": "added", "modified": "modified"}
    rows = []
    for one in found:
        kind, places = (kinds[one.kind], (one.new, one.old)) if exchange else (one.kind, (one.old, one.new))
        details = sorted(
            (detail.what, *map(repr, (detail.new, detail.old) if exchange else (detail.old, detail.new)))
            for detail in one.details
        )
        rows.append((kind, one.area, *map(str, places), details))
    return sorted(rows)


@settings(max_examples=100, deadline=None)
@given(graphs(), graphs())
def test_the_other_way_round_the_same_is_told(one: schema.Graph, two: schema.Graph) -> None:
    """Return changes reversed: added is removed, old is new; also names and order where they count."""
    old, new = program(one), program(two)
    assert mirrored(changes(old, new), False) == mirrored(changes(new, old), True)
    asked = changes(old, new, names=True, order=True), changes(new, old, names=True, order=True)
    assert mirrored(asked[0], False) == mirrored(asked[1], True)


def test_files_are_told_the_other_way_round() -> None:
    """Real programs that have little to do with one another, with all that is around them."""
    files = corpus(LATEST)
    for before, after in zip(files[::4], files[1::4], strict=False):
        there, back = diff(before, after, tensors=False), diff(after, before, tensors=False)
        assert mirrored(list(there.changes), False) == mirrored(list(back.changes), True), (before.stem, after.stem)


def test_many_edits_of_a_long_program_are_told_one_by_one() -> None:
    """Replaced, removed and added nodes all along a chain of nodes that are much alike."""
    count = 2000
    chain = [node((A, B, C)[n % 3], [f"v{n}"], arg(as_tensor=f"v{n - 1}" if n else "x")) for n in range(count)]
    other = [replace(one, target=f"{one.target}_x") if n % 100 == 50 else one for n, one in enumerate(chain)]
    old, new = (program(tensor_graph(["x"], nodes, [f"v{count - 1}"])) for nodes in (chain, other))
    found = changes(old, new)
    assert told(found) == [("modified", "node", f"v{n}", "target") for n in range(50, count, 100)]

    kept = [one for n, one in enumerate(chain) if n % 100 != 50]
    renamed = {f"v{n}": f"v{n - 1}" for n in range(50, count, 100)}
    kept = [
        with_input(one, 0, rename(one.inputs[0].arg, renamed, iter(())))
        if one.inputs[0].arg.as_tensor.name in renamed
        else one
        for one in kept
    ]
    shorter = program(tensor_graph(["x"], kept, [f"v{count - 1}"]))
    kinds = [change.kind for change in changes(old, shorter)]
    assert (kinds.count("removed"), kinds.count("added")) == (len(renamed), 0)
    assert kinds.count("modified") <= len(renamed)


def test_layers_in_one_file_and_not_in_the_other() -> None:
    """The nodes of that layer, the one that used it, and its parameter; in the middle and at the end."""
    old = with_parameters(layers(5))
    found = changes(old, with_parameters(layers(4)))
    assert [change.module for change in found if change.kind == "removed" and change.area == "node"] == ["layers.4"] * 3
    assert [change.kind for change in found if change.area == "node"] == ["removed"] * 3


def test_the_last_layer_is_removed_and_not_the_norm_behind_it() -> None:
    """Both norms compute the same from the layer before; the module tells which one stayed."""

    def normed(count: int) -> schema.Graph:
        nodes, last = [], "x"
        for n in range(count):
            norm = replace(node(RELU, [f"norm_{n}"], arg(as_tensor=last)), metadata=stack(f"layers.{n}.norm"))
            linear = node(LINEAR, [f"linear_{n}"], arg(as_tensor=f"norm_{n}"), arg(as_tensor=f"w{n}"))
            nodes += [norm, replace(linear, metadata=stack(f"layers.{n}"))]
            last = f"linear_{n}"
        nodes += [replace(node(RELU, ["last"], arg(as_tensor=last)), metadata=stack("norm"))]
        return tensor_graph([*(f"w{n}" for n in range(count)), "x"], nodes, ["last"])

    found = told(changes(with_parameters(normed(3)), with_parameters(normed(2))))
    assert sorted(found) == [
        ("modified", "node", "last", "argument a0"),
        ("removed", "input", "layers.2.w"),
        ("removed", "node", "linear_2"),
        ("removed", "node", "norm_2"),
    ]


def test_nodes_that_nobody_uses_stay_in_their_module() -> None:
    """Each norm checks its input: the check of the last one reads another value, and is not that of the layer removed.

    Nothing tells these checks apart but where they were traced and what they read. Something else changes behind them,
    so that no use of the norm's result anchors it.
    """
    check = "torch.ops.aten._assert_tensor_metadata.default"

    def normed(count: int, last: str) -> schema.Graph:
        nodes, value = [], "x"
        for n, name in [*((n, f"layers.{n}.norm") for n in range(count)), (count, "norm")]:
            nodes += [
                replace(one, metadata=stack(name))
                for one in (
                    replace(node(check, [], arg(as_tensor=value)), name=f"check_{n}"),
                    node(RELU, [f"norm_{n}"], arg(as_tensor=value)),
                    replace(node(check, [], arg(as_tensor=f"norm_{n}")), name=f"check_again_{n}"),
                )
            ]
            value = f"norm_{n}"
            if n < count:
                linear = node(LINEAR, [f"linear_{n}"], arg(as_tensor=value), arg(as_tensor=f"w{n}"))
                nodes += [replace(linear, metadata=stack(f"layers.{n}"))]
                value = f"linear_{n}"
        nodes += [replace(node(last, ["head"], arg(as_tensor=value)), metadata=stack("head"))]
        return tensor_graph([*(f"w{n}" for n in range(count)), "x"], nodes, ["head"])

    old, new = with_parameters(normed(3, RELU)), with_parameters(normed(2, GELU))
    for before, after, gone in ((old, new, "removed"), (new, old, "added")):
        found = changes(before, after)
        assert {one.module for one in found if one.kind == gone and one.area == "node"} == {"layers.2.norm", "layers.2"}
        assert [(one.module, *(detail.what for detail in one.details)) for one in found if one.kind == "modified"] == [
            ("norm", "argument a0"),
            ("norm", "argument a0"),
            ("head", "target"),
        ]
