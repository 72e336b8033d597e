"""Tags of operators by release, as the table that ships has them."""

from __future__ import annotations

import pytest
from tools import operator_tags

from pt2kit.errors import VersionError
from pt2kit.operators import tags
from pt2kit.schema.operators import known_releases, operators_of


def test_every_release_of_the_schemas_has_tags() -> None:
    """The two tables cover the same releases."""
    assert tags.tagged_releases() == known_releases()


@pytest.mark.parametrize("release", known_releases())
def test_tagged_overloads_exist(release: str) -> None:
    """Each overload with a tag has a schema in that release, but for namespaces that depend on the build."""
    names = {name for tag in (tags.RANDOM, tags.CORE, "pointwise") for name in tags.overloads_with(tag, release)}
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
    assert tags.is_random(name)


@pytest.mark.parametrize("name", ["aten.add.Tensor", "aten.empty.memory_format", "aten.nothing.default", ""])
def test_operators_that_are_not_random(name: str) -> None:
    """Other operators are not, and unknown names neither."""
    assert not tags.is_random(name)


def test_facts_of_any_release() -> None:
    """An overload that some release tags as random is so in all; core ATen differs by release."""
    for tag in (tags.RANDOM, "pointwise"):
        union = set().union(*(tags.overloads_with(tag, release) for release in tags.tagged_releases()))
        assert union == tags.overloads_with(tag)
    assert all(map(tags.is_random, tags.overloads_with(tags.RANDOM)))
    assert tags.is_random("prims.normal.default")
    assert tags.RANDOM not in tags.tags_of("prims.normal.default", "2.4")
    assert tags.CORE in tags.tags_of("aten.diagonal.default", "2.13")
    assert tags.CORE not in tags.tags_of("aten.diagonal.default", "2.1")
    assert tags.CORE in tags.tags_of("aten.roll.default", "2.1")
    assert tags.CORE not in tags.tags_of("aten.roll.default", "2.13")


def test_the_two_ways_to_ask_agree() -> None:
    """`overloads_with` returns the overloads for which `tags_of` contains the tag."""
    for tag in (tags.CORE, "view_copy"):
        expected = {name for name in operators_of("2.5") if tag in tags.tags_of(name, "2.5")}
        assert expected == tags.overloads_with(tag, "2.5")


def test_unknown_release() -> None:
    """The message lists the releases that are known."""
    with pytest.raises(VersionError, match=r"expected a release whose tags are known \(2\.1, .*got '1\.13'"):
        tags.tags_of("aten.add.Tensor", "1.13")


def test_table_is_written_as_it_is_read() -> None:
    """Writing what was read results in the same bytes."""
    entries = {release: operator_tags.entries_of_table(release) for release in tags.tagged_releases()}
    assert operator_tags.text(entries) == operator_tags.TARGET.read_text(encoding="utf-8")
