"""The tables of what becomes of elements: each name is an operator, of the kind that its table says."""

from __future__ import annotations

import pytest
from tests.checks.test_provenance import CHAR, LONG, POOL, SHAPE, back, chain, one, said

from pt2kit.checks import passing_on, schemas
from pt2kit.schema.operator_text import Operator, parse_operator
from pt2kit.schema.operators import known_releases

NEWEST = known_releases()[-1]
TABLES = {"SAME": passing_on.SAME, "RESHAPED": passing_on.RESHAPED, "PARTS": passing_on.PARTS}
TABLES |= {"SPARSE": passing_on.SPARSE, "ITSELF": passing_on.ITSELF}


def overloads(name: str) -> list[Operator]:
    """What the newest release says of an operator over tensors, without the overloads that write to `out`."""
    found = [
        parse_operator(text)
        for target, text in schemas.operators(NEWEST).schemas.items()
        if target.split(".")[:2] == ["aten", name] and not target.endswith("out")
    ]
    return [operator for operator in found if operator.results[0].base == "Tensor"]


@pytest.mark.parametrize(
    ("table", "name"), [(table, name) for table, names in TABLES.items() for name in sorted(names)]
)
def test_names(table: str, name: str) -> None:
    """An operator of that name gives a tensor; but for those that make sparse ones, of its first argument."""
    found = overloads(name)
    assert found
    for signature in found:
        first = next(iter(signature.parameters.values()))
        assert table == "SPARSE" or str(first.type) == "Tensor"


def test_parts_are_arguments_of_those_that_make_sparse_tensors() -> None:
    """Each argument that becomes a part is one of an operator of the table, and each operator has such an argument."""
    arguments = {name: {key for found in overloads(name) for key in found.parameters} for name in passing_on.SPARSE}
    assert set(passing_on.BECOME_PARTS) <= set().union(*arguments.values())
    assert all(set(passing_on.BECOME_PARTS) & keys for keys in arguments.values())


def test_each_name_has_one_meaning() -> None:
    """What keeps elements in their shape does not give them in another one, or a part."""
    kinds = (passing_on.SAME, passing_on.RESHAPED, passing_on.PARTS, passing_on.SPARSE)
    assert sum(map(len, kinds)) == len(frozenset().union(*kinds))


def test_higher_order_operators() -> None:
    """Those that pass values on are registered by some release."""
    known = {name for release in known_releases() for name in schemas.operators(release).higher_order}
    assert known >= passing_on.PASSING


@pytest.mark.parametrize("name", sorted(passing_on.SAME - {"detach_", "to", "_to_copy"}))
def test_indices_that_stay_as_they_are(name: str) -> None:
    """The derivative of a pooling takes them, through any operator of that table."""
    assert said(chain(POOL, one(f"{name}.default", "j", "i"), back("j"))) == []


@pytest.mark.parametrize("name", ["neg", "abs", "sort", "roll", "flip", "bitwise_not", "sign"])
def test_indices_that_do_not(name: str) -> None:
    """Any other operator makes other numbers of them."""
    (message,) = said(chain(POOL, one(f"{name}.default", "j", "i"), back("j")))
    assert "indices" in message


@pytest.mark.parametrize(("dtype", "fits"), [(LONG, True), (CHAR, False)])
def test_indices_of_another_type(dtype: object, fits: bool) -> None:
    """Whole numbers of a small type are others; in another shape they are the same."""
    calls = (one("_to_copy.default", "j", "i", dtype=dtype), one("view.default", "k", "j", size=SHAPE), back("k"))
    assert bool(said(chain(POOL, *calls))) is not fits
