"""Rows of the operator table against the operators that releases of torch have, and rules against their schemas."""

from __future__ import annotations

import inspect

import pytest

from pt2kit.operators.rows import texts
from pt2kit.operators.table import find
from pt2kit.schema.operators import RELEASES, find_operator, known_releases, operators_of, release_operators

FUNCTIONS = ("_operator.", "math.", "torch.")
OTHERS = ("quantized_decomposed.", "torchvision.", "transformers.")
"""Namespaces of which the table of releases has no operators: they are registered when they are imported."""


def test_rows_name_operators_that_a_release_has() -> None:
    known: set[str] = set()
    for release in known_releases():
        known |= operators_of(release).keys()
    names = [name for name in texts() if not name.startswith((*FUNCTIONS, *OTHERS))]
    assert not sorted(set(names) - known)


@pytest.mark.parametrize("release", RELEASES[-3:-2])
def test_rules_ask_for_parameters_of_the_schema(release: str) -> None:
    wrong = []
    for name in texts():
        row = find(name)
        assert row is not None
        if row.rule is None or name.startswith(FUNCTIONS) or name not in release_operators(release).schemas:
            continue
        operator = find_operator(name, release)
        assert operator is not None
        rule = inspect.signature(row.rule).parameters.values()
        required = {one.name for one in rule if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD}
        wrong += [(name, one) for one in required - operator.parameters.keys()]
    assert not wrong
