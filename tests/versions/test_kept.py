"""A tree that shares parts with one that was checked is judged as if all of it were looked at."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.versions.programs import golden

from pt2kit.versions.check import fits
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.kept import still_fits
from pt2kit.versions.narrowed import accepted, narrowed
from pt2kit.versions.steps import LINE, STEPS, TRACES, root_type

NEIGHBOURS = [(step.older, step.newer) for step in (*STEPS, TRACES) if step.older != "draft"]
BOTH_WAYS = [*NEIGHBOURS, *((newer, older) for older, newer in NEIGHBOURS)]
GRAPH = ("graph_module", "graph")


def places(tree, path=()):
    """Every path of a tree."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, held in items:
        yield from places(held, (*path, key))


def with_value(tree, path, change):
    """A tree with `change(value)` at a path; everything beside the path is shared."""
    if not path:
        return change(tree)
    new = tree.copy()
    new[path[0]] = with_value(tree[path[0]], path[1:], change)
    return new


@pytest.mark.parametrize(("before", "version"), BOTH_WAYS)
def test_the_whole_tree_shared(before, version):
    """The very tree of another version fits where it would without having been checked before."""
    tree = golden(before)
    assert still_fits(tree, tree, version, before) == fits(tree, version)
    assert still_fits(tree, golden(version), version, version) == fits(tree, version)


@pytest.mark.parametrize("step", STEPS[1:], ids=lambda step: step.newer)
def test_steps_up(step):
    """What a step makes fits, and so does a copy, which shares nothing."""
    before = golden(step.older)
    tree = step.upgrade(before, ConversionLog("x"))
    assert still_fits(tree, before, step.newer, step.older)
    assert still_fits(deepcopy(tree), before, step.newer, step.older)


JUNK = (None, True, 7, -0.5, "x", "NaN", [], {}, {"as_int": 1}, {"as_none": True}, {"name": "x"}, [["x"]])
CHANGES = {
    "replace": lambda junk: lambda value: junk,
    "unknown key": lambda junk: lambda value: {**value, "colour": junk} if isinstance(value, dict) else junk,
    "without a key": lambda junk: (
        lambda value: {key: value[key] for key in list(value)[1:]} if isinstance(value, dict) else junk
    ),
    "shift": lambda junk: lambda value: [*value[1:], *value[:1]] if isinstance(value, list) else junk,
    "longer": lambda junk: lambda value: [*value, *value[:1]] if isinstance(value, list) else junk,
    "junk first": lambda junk: lambda value: [junk, *value] if isinstance(value, list) else junk,
}


@given(data=st.data(), pair=st.sampled_from(BOTH_WAYS), junk=st.sampled_from(JUNK), kind=st.sampled_from([*CHANGES]))
def test_one_place_changed(data, pair, junk, kind):
    """Whatever is changed on the way from one version to its neighbour is seen, whatever is shared."""
    before, version = pair
    tree = golden(before)
    path = data.draw(st.sampled_from([*places(tree)]))
    new = with_value(tree, path, CHANGES[kind](junk))
    assert still_fits(new, tree, version, before) == fits(new, version)


@given(data=st.data(), version=st.sampled_from(LINE[1:]), junk=st.sampled_from(JUNK), kind=st.sampled_from([*CHANGES]))
def test_one_place_changed_after_a_step(data, version, junk, kind):
    """The same in the tree that a step made."""
    step = STEPS[LINE.index(version) - 1]
    before = golden(step.older)
    tree = step.upgrade(before, ConversionLog("x"))
    path = data.draw(st.sampled_from([*places(tree)]))
    new = with_value(tree, path, CHANGES[kind](junk))
    if step.older != "draft":
        assert still_fits(new, before, version, step.older) == fits(new, version, root=root_type(version))


def test_accepted_types():
    """Upwards a minor takes everything; downwards what the older table narrowed, and what holds it, is looked at."""
    for older, newer in pairwise(LINE[LINE.index("8.6") :]):
        assert "ExportedProgram" in accepted(newer, older)
        assert set(narrowed(newer, older).values()) == {None}
    assert "ScalarType" not in accepted("8.17", "8.20")
    assert {"TensorMeta", "Argument", "Graph"}.isdisjoint(accepted("8.17", "8.20"))
    assert {"SymInt", "Device", "InputSpec"} & accepted("8.17", "8.20") == {"SymInt", "Device"}


def test_a_key_of_the_newer_table_is_no_key_of_the_older():
    """A field that a step down leaves behind is seen, in an object that it did not touch."""
    tree = golden("8.17")
    assert "name" in tree["graph_module"]["graph"]["nodes"][0]
    bare = with_value(tree, (*GRAPH, "nodes"), lambda nodes: [{**nodes[0], "outputs": []}, *nodes[1:]])
    assert not still_fits(bare, tree, "8.15", "8.17")
