"""Sizes, dtypes and strides that are computed from the inputs of a program are those that torch declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.samples import corpus

import pt2kit
from pt2kit import dataflow, schema
from pt2kit.checks.call_results import compare
from pt2kit.dataflow.domain import Sizes
from pt2kit.graph.traversal import graphs
from pt2kit.operators.facts import UNKNOWN
from pt2kit.operators.metas import Symbols


def differences(program: schema.ExportedProgram, counts: Counter[str]) -> Iterator[Any]:
    """Return the values that are computed otherwise than they are declared."""
    facts = dataflow.run(program, Sizes(program))
    symbols = Symbols(program.range_constraints, [scope.graph for scope in graphs(program)])
    by_path = {scope.path: scope.graph for scope in graphs(program)}
    for path, values in facts.items():
        for name, fact in values.items():
            counts["unknown" if fact is UNKNOWN else "known"] += 1
            for difference in compare(fact, symbols.value(by_path[path], name)):
                yield path, name, difference


@pytest.mark.parametrize("release", ["2.1.2", "2.5.1", "2.8.0", "2.13.0", "2.15.0"])
def test_computed_facts_are_the_declared_ones(release: str) -> None:
    """In every sample program; of two values in three something is known."""
    counts: Counter[str] = Counter()
    wrong: list[tuple[Path, Any]] = []
    for path in corpus(release):
        with pt2kit.open(path) as package:
            for program in package.programs.values():
                wrong += [(path, found) for found in differences(program, counts)]
    assert wrong == []
    assert counts["known"] > counts["unknown"]
