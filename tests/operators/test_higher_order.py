"""Conventions of higher-order operators: inputs of subgraphs, and the operators of every release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests import samples

import pt2kit
from pt2kit.graph import walk
from pt2kit.operators import schemas
from pt2kit.operators.higher_order import (
    CARRIED,
    HIGHER_ORDER,
    LOOP,
    MAP,
    ONCE,
    OPAQUE,
    PASSED,
    RETURNS_SINGLE,
    SCAN,
    SLICED,
)
from pt2kit.schema.operators import known_releases

BOUND: list[tuple[str, list[Any], list[Any]]] = [
    ("cond", ["p", "then", "else", ("a", "b")], [(PASSED, "a"), (PASSED, "b")]),
    ("while_loop", ["c", "b", ("i", "x"), ("w",)], [(CARRIED, "i"), (CARRIED, "x"), (PASSED, "w")]),
    ("while_loop", ["c", "b", ("i",), ()], [(CARRIED, "i")]),
    ("map_impl", ["f", ("x", "y"), ("w",)], [(SLICED, "x"), (SLICED, "y"), (PASSED, "w")]),
    ("scan", ["f", ("c",), ("x",), ("w",)], [(CARRIED, "c"), (SLICED, "x"), (PASSED, "w")]),
    ("scan", ["f", ("c",), ("x",), 1, True, ("w",)], [(CARRIED, "c"), (SLICED, "x"), (PASSED, "w")]),
    ("associative_scan", ["f", ("x", "y"), ("w",)], [*[(SLICED, "x"), (SLICED, "y")] * 2, (PASSED, "w")]),
    ("invoke_subgraph", ["f", "name", "a", 3], [(PASSED, "a"), (PASSED, 3)]),
    ("wrap_with_set_grad_enabled", [False, "f", "a"], [(PASSED, "a")]),
    ("wrap_with_autocast", ["cpu", None, True, None, "f", "a", "b"], [(PASSED, "a"), (PASSED, "b")]),
    ("hints_wrapper", ["f", ("a",), {}], [(PASSED, "a")]),
    ("strict_mode", ["f", ("a", "b")], [(PASSED, "a"), (PASSED, "b")]),
]


def items(argument: Any) -> Sequence[object] | None:
    """Return the entries of a tuple."""
    return argument if isinstance(argument, tuple) else None


@pytest.mark.parametrize(("name", "arguments", "bound"), BOUND, ids=[f"{case[0]}-{len(case[1])}" for case in BOUND])
def test_inputs(name: str, arguments: list[Any], bound: list[Any]) -> None:
    """Operands become inputs of the subgraphs in order, each in its role."""
    assert [(one.role, one.value) for one in HIGHER_ORDER[name].bind(arguments, items)] == bound


def test_operators_exist() -> None:
    """Every operator of the tables is one of some release of torch; `map` calls `map_impl`."""
    known = {name for release in known_releases() for name in schemas.operators(release).higher_order}
    assert set(HIGHER_ORDER) - {"map"} <= known
    assert set(RETURNS_SINGLE) <= set(HIGHER_ORDER)


def test_conventions_are_complete() -> None:
    """An operator that runs a subgraph has one, and one that carries values loops."""
    for name, calls in HIGHER_ORDER.items():
        assert calls.runs is OPAQUE or calls.graphs, name
        assert (CARRIED in calls.lists) == (calls.runs in (LOOP, SCAN)), name
        assert calls.runs not in (ONCE, LOOP) or not calls.is_stacked, name
        assert all(position < calls.least for position in calls.graphs), name


@pytest.mark.parametrize("release", ["2.6.0", "2.13.0"])
def test_real_files(release: str) -> None:
    """In files of torch each subgraph has as many inputs as the convention binds."""
    seen = set()
    paths = samples.sample(release, "any").parent.glob("*.pt2")
    for path in sorted(path for path in paths if path.stem.endswith(("_hop", "_region"))):
        with pt2kit.open(path) as package:
            for step in walk(package.programs["model"]):
                name = step.node.target.rpartition(".")[2]
                calls = HIGHER_ORDER.get(name)
                if calls is None or calls.runs is OPAQUE:
                    continue
                values = [named.arg.value for named in step.node.inputs if not named.name]
                bound = calls.bind(values, lambda value: value if isinstance(value, list) else None)
                for position in calls.graphs:
                    graph: Any = values[position]
                    assert len(graph.graph.inputs) == len(bound), (path, step.where)
                seen.add(calls.runs)
    assert {ONCE, MAP} <= seen
