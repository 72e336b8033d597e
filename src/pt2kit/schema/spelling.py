"""Spelling of JSON in each schema version, where the field tables don't define it.

    union            1, 2: every arm is written, null but for one; later the one arm alone
    None             5.1 to 8.2: a field that may be left out and is None is left out; else written as null
    inf, nan         up to 8.2: bare Infinity and NaN; later strings (of 8.6 to 8.8 only "-Infinity" is known)
    open range       2, 5.1, 7.3: Infinity; 1, 5.3: 9223372036854775806; later null
    constant bool    5.3, 7.3: {"as_int": true}

Source: files of torch 2.1 to 2.14.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from pt2kit.schema.fieldtable import Table
from pt2kit.schema.fieldtypes import AnyOf, Scalar, Type

MAX_RANGE: Final = 9223372036854775806
"""Value that versions 1 and 5.3 write for a range without an upper end."""
MIN_RANGE: Final = -9223372036854775808
"""Likewise for the lower end; no file with one is known."""

SPELLED_FLOATS: Final = frozenset({"Infinity", "-Infinity", "NaN"})
"""Floats that JSON has no number for, as later versions write them: strings."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """The spelling of one version.

    Args:
        padded_unions: unions hold every arm, null except for one; else exactly one arm.
        left_out_nones: fields that are None by default and in fact are left out.
        bare_floats: Infinity and NaN are written without quotes, which is no JSON.
        lowest, highest: the values written for the open ends of a range.
        infinite_ranges: files hold infinities in ranges, which the field table declares as integers.
        bools_as_ints: a constant that is a truth value is under `as_int`.
    """

    padded_unions: bool = False
    left_out_nones: bool = False
    bare_floats: bool = False
    lowest: float | None = None
    highest: float | None = None
    infinite_ranges: bool = False
    bools_as_ints: bool = False


_INFINITE: Final = Spelling(bare_floats=True, lowest=-math.inf, highest=math.inf, infinite_ranges=True)
_NUMBERED: Final = Spelling(bare_floats=True, lowest=MIN_RANGE, highest=MAX_RANGE)
_CURRENT: Final = Spelling()

SPELLINGS: Final[Mapping[str, Spelling]] = MappingProxyType(
    {
        "1": replace(_NUMBERED, padded_unions=True),
        "2": replace(_INFINITE, padded_unions=True),
        "5.1": replace(_INFINITE, left_out_nones=True),
        "5.3-traces": replace(_NUMBERED, left_out_nones=True, infinite_ranges=True),
        "5.3": replace(_NUMBERED, left_out_nones=True, infinite_ranges=True, bools_as_ints=True),
        "7.3": replace(_INFINITE, left_out_nones=True, bools_as_ints=True),
        "8.2": Spelling(bare_floats=True, left_out_nones=True),
    }
)
"""Version -> its spelling, where it is not that of the current one."""


def spelling(version: str) -> Spelling:
    """Return the JSON spelling of a version's releases; that of the current version for an unknown one."""
    return SPELLINGS.get(version, _CURRENT)


_INT_OR_FLOAT: Final = AnyOf((Scalar("int"), Scalar("float")))
_INT_OR_BOOL: Final = AnyOf((Scalar("int"), Scalar("bool")))


def as_written(table: Table) -> Table:
    """Return the table with fields that files of its version hold in addition, for generators.

    Wire ids if there are none yet: ten times the position, which is stable because released tables never change, but
    means nothing across versions. And the types of fields where writers did not keep to the table.
    """
    spelled = spelling(table.version)
    types: dict[tuple[str, str], Type] = {}
    if spelled.infinite_ranges:
        types |= {("RangeConstraint", end): _INT_OR_FLOAT for end in ("min_val", "max_val")}
    if spelled.bools_as_ints:
        types |= {("ConstantValue", "as_int"): _INT_OR_BOOL}
    has_ids = table.has_ids
    definitions = {}
    for name, definition in table.definitions.items():
        fields = {
            key: replace(field, id=field.id if has_ids else 10 * position, type=types.get((name, key), field.type))
            for position, (key, field) in enumerate(definition.fields.items(), 1)
        }
        definitions[name] = replace(definition, fields=MappingProxyType(fields))
    return Table(table.version, MappingProxyType(definitions))
