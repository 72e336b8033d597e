"""Tags of operators by release, as the table that ships has them."""

from __future__ import annotations

import pytest
from tools import operator_tags

from pt2kit.errors import VersionError
from pt2kit.operators import schemas
from pt2kit.schema.operators import known_releases, operators_of


def test_every_release_of_the_schemas_has_tags() -> None:
    """The two tables cover the same releases."""
    assert schemas.tagged_releases() == known_releases()


@pytest.mark.parametrize("release", known_releases())
def test_tagged_overloads_exist(release: str) -> None:
    """Each overload with a tag has a schema in that release, but for namespaces that depend on the build."""
    names = {
        name for tag in (schemas.RANDOM, schemas.CORE, "pointwise") for name in schemas.overloads_with(tag, release)
    }
    assert len(names) > 700
    assert names <= operators_of(release).keys()


@pytest.mark.parametrize(
    "name",
    [
        *("aten.bernoulli.p", "aten.uniform.default", "aten.exponential_.default", "aten.rrelu.default"),
        *("aten.scaled_dot_product_attention.default", "aten.native_dropout.default", "aten.multinomial.out"),
    ],
)
def test_random_operators(name: str) -> None:
    """Operators that draw are random, whatever their names are."""
    assert schemas.is_random(name)


@pytest.mark.parametrize("name", ["aten.add.Tensor", "aten.empty.memory_format", "aten.nothing.default", ""])
def test_operators_that_are_not_random(name: str) -> None:
    """Other operators are not, and unknown names neither."""
    assert not schemas.is_random(name)


def test_facts_of_any_release() -> None:
    """An overload that some release tags as random is so in all; core ATen differs by release."""
    for tag in (schemas.RANDOM, "pointwise"):
        union = set().union(*(schemas.overloads_with(tag, release) for release in schemas.tagged_releases()))
        assert union == schemas.overloads_with(tag)
    assert all(map(schemas.is_random, schemas.overloads_with(schemas.RANDOM)))
    assert schemas.is_random("prims.normal.default")
    assert schemas.RANDOM not in schemas.tags_of("prims.normal.default", "2.4")
    assert schemas.CORE in schemas.tags_of("aten.diagonal.default", "2.13")
    assert schemas.CORE not in schemas.tags_of("aten.diagonal.default", "2.1")
    assert schemas.CORE in schemas.tags_of("aten.roll.default", "2.1")
    assert schemas.CORE not in schemas.tags_of("aten.roll.default", "2.13")


def test_the_two_ways_to_ask_agree() -> None:
    """`overloads_with` returns the overloads for which `tags_of` contains the tag."""
    for tag in (schemas.CORE, "view_copy"):
        expected = {name for name in operators_of("2.5") if tag in schemas.tags_of(name, "2.5")}
        assert expected == schemas.overloads_with(tag, "2.5")


def test_unknown_release() -> None:
    """The message lists the releases that are known."""
    with pytest.raises(VersionError, match=r"expected a release whose tags are known \(2\.1, .*got '1\.13'"):
        schemas.tags_of("aten.add.Tensor", "1.13")


def test_table_is_written_as_it_is_read() -> None:
    """Writing what was read results in the same bytes."""
    entries = {release: operator_tags.entries_of_table(release) for release in schemas.tagged_releases()}
    assert operator_tags.text(entries) == operator_tags.TARGET.read_text(encoding="utf-8")
