"""The classes, the frozen tables of all versions and the version log agree."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import get_type_hints

import pytest
import yaml

from pt2kit import schema
from pt2kit.errors import VersionError
from pt2kit.schema.fieldtable import frozen_table

HISTORY = files("pt2kit.schema") / "history"
NAMES = [path.name for path in HISTORY.iterdir() if path.name.endswith(".yaml")]
TABLES = {name.removesuffix(".yaml"): yaml.safe_load((HISTORY / name).read_text()) for name in NAMES}
LOGGED = [version.number for version in schema.LOG]


def test_the_classes_are_the_current_table():
    """Kinds, fields, their order, types, wire ids, defaults: everything the newest table says, the classes say."""
    table, frozen = schema.field_table(), TABLES[schema.CURRENT.number]["types"]
    assert table == frozen
    assert list(table) == list(frozen)
    for name, described in table.items():
        assert list(described["fields"]) == list(frozen[name]["fields"]), name


def test_the_frozen_tables_are_frozen():
    """A table that was released is never edited; a new one adds its line to DIGESTS."""
    lines = (HISTORY / "DIGESTS").read_text().split()
    recorded = dict(zip(lines[1::2], lines[::2], strict=True))
    assert recorded == {name: hashlib.sha256((HISTORY / name).read_bytes()).hexdigest() for name in NAMES}


def test_every_logged_version_has_a_table():
    """The log and the tables name the same versions; the two development states without a number of their own aside."""
    assert set(TABLES) - {"draft", "5.3-traces"} == set(LOGGED)
    for number in LOGGED:
        assert str(TABLES[number]["schema_version"]) == number


def test_the_log_ascends():
    """Versions are logged oldest first, each greater than the one before."""
    pairs = [version.pair for version in schema.LOG]
    assert pairs == sorted(set(pairs))
    assert (schema.LOG[0], schema.LOG[-1]) == (schema.MINIMUM, schema.CURRENT)


def test_no_release_writes_two_versions():
    """A torch release belongs to one version."""
    releases = [release for version in schema.LOG for release in version.releases]
    assert len(releases) == len(set(releases))


def _first_version(type_name: str, field: str) -> str:
    return next(n for n in LOGGED if field in TABLES[n]["types"].get(type_name, {"fields": {}})["fields"])


def test_since_is_the_first_version_that_has_the_field():
    """`since` of every field, and of every enum value, is what the tables say."""
    for cls in schema.TYPES:
        if issubclass(cls, schema.Object | schema.Union):
            for name, hint in get_type_hints(cls, include_extras=True).items():
                assert hint.__metadata__[0].since == _first_version(cls.__name__, name), f"{cls.__name__}.{name}"
        else:
            for member in frozen_table(schema.CURRENT.number).definitions[cls.__name__].members.values():
                assert member.since == _first_version(cls.__name__, member.name), member


def test_wire_ids_are_unique_within_a_type():
    """No two fields of a type share an id."""
    for name, described in schema.field_table().items():
        if described["kind"] != "enum":
            ids = [row["id"] for row in described["fields"].values()]
            assert len(ids) == len(set(ids)), name


@pytest.mark.parametrize("text", ["", "8.", "x", "8.20.1", "-1", "\uff18", "8 ", ".1"])
def test_a_version_is_one_or_two_numbers(text):
    """Anything else is refused with the text in the message."""
    with pytest.raises(VersionError, match=r"expected major.minor like 8.20, got "):
        schema.parse_version(text)


def test_versions_parse():
    """With and without a minor."""
    assert [schema.parse_version(text) for text in ("8.20", "2")] == [(8, 20), (2, 0)]
