"""Spellings of files of a version beyond its field table, once per version."""

from __future__ import annotations

from tests.idl.helpers import table

from pt2kit.schema.fieldtable import NAMES, AnyOf, Scalar
from pt2kit.schema.wire import SPELLINGS, Spelling, as_written, spelling


def test_only_versions_with_a_table_have_a_spelling():
    """And from 8.6 on, all spell as the current one does."""
    assert set(SPELLINGS) <= set(NAMES)
    assert {version for version in NAMES if spelling(version) == Spelling()} == {"draft", *NAMES[NAMES.index("8.6") :]}


def test_as_written_fills_in_ids_and_what_writers_did():
    """Only where there are none, only in the versions that need it; the table itself stays."""
    old = table("5.3")
    written = as_written(old).definitions
    assert [field.id for field in written["Node"].fields.values()] == [10, 20, 30, 40]
    assert old.definitions["Node"].fields["target"].id is None
    assert written["RangeConstraint"].fields["min_val"].type == AnyOf((Scalar("int"), Scalar("float")))
    assert written["ConstantValue"].fields["as_int"].type == AnyOf((Scalar("int"), Scalar("bool")))
    assert as_written(table("8.20")) == table("8.20")
