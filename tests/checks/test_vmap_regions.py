"""Uses of values outside of the region of vmap that gave them a batch dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.packages import edited
from tests.samples import corpus, release_id, sample

import pt2kit
from pt2kit.checks.findings import context_of
from pt2kit.checks.higher_order import escape_problems
from pt2kit.errors import GraphError

VMAPPED = [path for path in corpus("2.13.0") if "scan" in path.stem or "vmap" in path.stem]


def test_a_value_of_a_region_is_no_output() -> None:
    """A value without its batch dimension cannot become an output."""
    editor = pt2kit.edit(sample("2.13.0", "associative_scan_hop"))
    editor.add_output("add_1")
    message = r"graph\.outputs\[1\]: expected a value that is not of a region of vmap .* got 'add_1' \[G18\]"
    with pytest.raises(GraphError, match=message):
        editor.finish()


def test_a_value_of_one_region_is_not_used_in_the_next() -> None:
    """Two regions have batches of their own sizes; the edit that mixes them is named."""
    editor = pt2kit.edit(sample("2.13.0", "associative_scan_hop"))
    editor.graph.replace_uses("add_1", "add")
    message = r"replace_uses\('add_1', 'add'\): .* of a region of vmap which is closed already, got 'add' \[G18\]"
    with pytest.raises(GraphError, match=message):
        editor.finish()


def test_a_node_inside_a_region_is_made() -> None:
    """Values of a region are computed with where it is open."""
    editor = pt2kit.edit(sample("2.13.0", "associative_scan_hop"))
    made = editor.graph.nodes["add_1"].insert_after("aten.relu", editor.value("add_1"))
    editor.graph.replace_uses("add_1", made.output, only=lambda user: user is not made)
    assert [problem for problem in pt2kit.check(editor.finish()) if problem.kind == "error"] == []


@pytest.mark.parametrize("path", VMAPPED, ids=release_id)
def test_programs_that_torch_wrote_have_none(path) -> None:
    """Regions of real programs hold their values."""
    with pt2kit.open(path) as package:
        for model in package.layout.models:
            assert list(escape_problems(context_of(package.programs[model], model, "8.20"))) == []


def redirected(tree: Any) -> None:
    """A node of the third region gets a value of the second."""
    (node,) = (node for node in tree["graph_module"]["graph"]["nodes"] if node["name"] == "add_2")
    node["inputs"][0]["arg"] = {"as_tensor": {"name": "add_1"}}


def returned(tree: Any) -> None:
    """The program gives a value of the second region."""
    tree["graph_module"]["graph"]["outputs"][0] = {"as_tensor": {"name": "add_1"}}


@pytest.mark.parametrize(
    ("change", "place"), [(redirected, "graph.nodes[25]"), (returned, "graph.outputs[0]")], ids=["used", "returned"]
)
def test_a_file_whose_values_escape(change: Callable[[Any], None], place: str) -> None:
    """`check` reports it: torch loads such a file, then fails or computes something else."""
    data = edited(sample("2.13.0", "associative_scan_hop").read_bytes(), change)
    (found,) = [problem for problem in pt2kit.check(data) if problem.rule == "G18"]
    assert found.loc == f"models/model.json: $.graph_module.{place}"
    assert found.message == "expected a value that is not of a region of vmap which is closed already, got 'add_1'"
    assert found.severity == "error"


@pytest.mark.parametrize(("name", "rules"), [("add", []), ("slice_1", ["T8"])], ids=["inside", "outside"])
def test_strides_of_a_region_may_skip_the_batch(name: str, rules: list[str]) -> None:
    """Strides are larger than the sizes of the others say if the dimension that vmap hides is an inner one."""

    def change(tree: Any) -> None:
        strides = tree["graph_module"]["graph"]["tensor_values"][name]["strides"]
        strides[0]["as_int"] *= 5

    data = edited(sample("2.13.0", "associative_scan_hop").read_bytes(), change)
    assert [problem.rule for problem in pt2kit.check(data).errors] == rules
