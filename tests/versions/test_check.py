"""Trees are compared with the frozen table of their version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.versions.programs import VERSIONS, copied, golden

from pt2kit.errors import LimitError, SchemaError
from pt2kit.versions.check import check_tree, fits, misfits, predicates

GRAPH = ("graph_module", "graph")
NODE = (*GRAPH, "nodes", 1)
CASES = [
    # (version, path, new value or None to delete, text)
    ("8.20", ("schema_version",), "8.20", "$.schema_version: expected SchemaVersion, got 8.20"),
    ("8.20", ("opset_version",), None, "expected the key opset_version of ExportedProgram, got none"),
    ("8.20", (*NODE, "target"), 3, "$.graph_module.graph.nodes[1].target: expected str, got 3"),
    ("8.20", (*NODE, "outputs"), {}, "expected list[Argument], got dict"),
    ("8.20", (*GRAPH, "inputs", 0), {"as_int": True}, "inputs[0].as_int: expected int, got True"),
    ("8.20", (*GRAPH, "inputs", 0), {"as_float": "inf"}, "expected float, got inf"),
    ("8.20", (*GRAPH, "inputs", 0), {"as_what": 1}, "expected an arm of Argument, got as_what"),
    ("8.20", (*GRAPH, "inputs", 0), {}, "expected exactly one arm of Argument, got none"),
    ("8.20", (*GRAPH, "inputs", 0), {"as_int": 1, "as_bool": True}, "got as_int, as_bool"),
    ("8.20", (*GRAPH, "inputs", 0), {"as_scalar_type": 99}, "expected a member of ScalarType, got 99"),
    ("8.20", (*GRAPH, "inputs", 0), {"as_scalar_type": True}, "expected a member of ScalarType, got True"),
    ("8.20", (*GRAPH, "tensor_values", "x", "device"), 1, "expected Device, got 1"),
    ("8.20", ("range_constraints", "s0", "max_val"), "x", "max_val: expected int, got x"),
    ("5.3", (*GRAPH, "inputs", 0), {"as_none": [1]}, "expected tuple[()], got list"),
    ("5.3", (*GRAPH, "inputs", 0), {"as_int_lists": [[1]]}, "got as_int_lists"),
    (
        "1",
        ("equality_constraints",),
        [[["x", 0]]],
        "expected tuple[tuple[str, int], tuple[str, int]], got list",
    ),
    ("draft", ("buffers", "a.buf", "storage", "data"), {}, "expected Buffer | ExternalBuffer, got dict"),
    ("draft", ("buffers", "a.buf", "meta", "dtype"), "f31", "expected a member of ScalarType, got f31"),
]


def put(tree, path, value):
    """A copy of a tree with another value, or none, at a path."""
    new = copied(tree)
    holder = new
    for step in path[:-1]:
        holder = holder[step]
    if value is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return new


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_programs_fit(version):
    """The canonical tree of every version fits its own table."""
    tree = golden(version)
    check_tree(tree, version, "x")
    assert fits(tree, version)
    assert list(misfits(tree, version)) == []


@pytest.mark.parametrize(("version", "path", "value", "text"), CASES)
def test_misfits_are_named(version, path, value, text):
    """Every cause is found, with its place and what was expected."""
    tree = put(golden(version), path, value)
    [found] = misfits(tree, version)
    assert text in found
    assert not fits(tree, version)
    with pytest.raises(SchemaError, match=rf"^x: schema {version}: \$.*\[M1\]$"):
        check_tree(tree, version, "x")


def test_unknown_keys_pass_but_do_not_fit():
    """A key of a newer minor does not keep a program from being read."""
    tree = put(golden("8.7"), (*NODE, "colour"), "red")
    check_tree(tree, "8.7", "x")
    assert not fits(tree, "8.7")
    assert list(misfits(tree, "8.7")) == []


def test_all_misfits_are_listed():
    """The walk goes on after an error."""
    tree = put(put(golden("8.20"), (*NODE, "target"), 3), ("guards_code",), [1, "x", 2])
    assert len(list(misfits(tree, "8.20"))) == 3


def test_a_newer_table_refuses_an_older_tree():
    """Versions are not mixed up: the program of one version fits no other major."""
    for version in VERSIONS:
        for other in VERSIONS:
            if version.partition(".")[0] != other.partition(".")[0]:
                assert not fits(golden(version), other), (version, other)


def test_depth_is_bounded():
    """A tree deeper than the interpreter's stack is refused, not crashed on."""
    graph = golden("8.20")["graph_module"]["graph"]
    inner = copied({**graph, "nodes": []})
    for _ in range(2000):
        argument = {"name": "", "arg": {"as_graph": {"name": "g", "graph": inner}}, "kind": 1}
        inner = {**graph, "nodes": [{**graph["nodes"][0], "inputs": [argument]}]}
    tree = golden("8.20")
    tree["graph_module"]["graph"] = inner
    with pytest.raises(LimitError, match=r"nested deeper \[M2\]"):
        check_tree(tree, "8.20", "x")


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
TREES = st.recursive(LEAVES, lambda t: st.lists(t, max_size=3) | st.dictionaries(st.text(max_size=3), t, max_size=3))


@given(value=TREES, place=st.sampled_from([case[1] for case in CASES if case[0] == "8.20"]))
def test_the_quick_way_agrees_with_the_slow_one(value, place):
    """Predicates and `misfits` are two ways to say the same."""
    tree = put(golden("8.20"), place, value)
    assert predicates("8.20", exact=False)["ExportedProgram"](tree) == (not list(misfits(tree, "8.20")))
