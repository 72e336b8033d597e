"""Aliasing and mutation of operators: what schemas declare, and what was measured."""

from __future__ import annotations

import pytest

from pt2kit.errors import VersionError
from pt2kit.operators.aliasing import Alias, aliases, is_measured, written
from pt2kit.operators.schemas import CORE, overloads_with
from pt2kit.schema.operators import find_operator, known_releases, operators_of

DECLARED = [
    ("aten.add_.Tensor", (Alias(0, "self", "always"),), {"self"}),
    ("aten.add.Tensor", (), set()),
    ("aten.add.out", (Alias(0, "out", "always"),), {"out"}),
    ("aten.permute.default", (Alias(0, "self", "always"),), set()),
    ("aten.split.Tensor", (Alias(0, "self", "always"),), set()),
    ("aten.topk.values", (Alias(0, "values", "always"), Alias(1, "indices", "always")), {"values", "indices"}),
    ("aten._foreach_add_.Scalar", (), {"self"}),
]


@pytest.mark.parametrize(("name", "expected", "changed"), DECLARED, ids=[name for name, *_ in DECLARED])
def test_declared(name: str, expected: tuple[Alias, ...], changed: set[str]) -> None:
    """Annotations of schemas: views, lists of views, in-place and out variants."""
    assert aliases(name, "2.13") == expected
    assert written(name, "2.13") == changed


@pytest.mark.parametrize("name", ["aten.reshape.default", "aten.contiguous.default", "aten.to.dtype"])
def test_declared_but_not_always(name: str) -> None:
    """Some results share memory with an argument in some calls only."""
    assert aliases(name, "2.13") == (Alias(0, "self", "may"),)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("aten.conj_physical.default", "self"),
        ("aten.dropout.default", "input"),
        ("aten._unsafe_view.default", "self"),
        ("aten.unsafe_split.Tensor", "self"),
        ("aten.expand_as.default", "self"),
    ],
)
def test_not_declared(name: str, parameter: str) -> None:
    """Results that share memory with an argument without a note in the schema, in every release."""
    for release in known_releases():
        if name in operators_of(release):
            assert parameter in [alias.parameter for alias in aliases(name, release)], release


def test_writes_that_are_not_declared() -> None:
    """Batch normalization updates its running statistics."""
    assert {"running_mean", "running_var"} <= written("aten.batch_norm.default", "2.13")
    assert {"running_mean", "running_var"} <= written("aten.native_batch_norm.default", "2.1")


def test_every_row_names_parameters_and_results() -> None:
    """Each overload of the table has the parameters and results that it names, in the release that was measured."""
    from pt2kit.operators.aliasing import _measured

    table = _measured()
    assert len(table.aliases) > 140
    for name, rows in table.aliases.items():
        operator = find_operator(name, table.release)
        assert operator is not None, name
        for index, parameter in rows:
            assert index < len(operator.results), name
            assert parameter in operator.parameters, name
    for name, parameters in table.written.items():
        operator = find_operator(name, table.release)
        assert operator is not None, name
        assert parameters <= operator.parameters.keys(), name


def test_what_was_measured() -> None:
    """Most operators were called; those that this build lacks were not."""
    assert is_measured("aten.reshape.default")
    assert not is_measured("aten._cudnn_rnn.default")
    assert not is_measured("aten.nothing.default")
    assert not is_measured("aten.Bool.Tensor")
    names = overloads_with(CORE, "2.13")
    assert sum(map(is_measured, names)) > 0.95 * len(names)


def test_unknown_names_and_releases() -> None:
    """An overload that a release lacks has no aliases; a release that is not known is an error."""
    assert aliases("aten.nothing.default", "2.13") == ()
    assert written("aten.nothing.default", "2.13") == frozenset()
    for ask in (aliases, written):
        with pytest.raises(VersionError, match=r"1\.13"):
            ask("aten.add.Tensor", "1.13")
