"""How each release wrote its JSON: a parsed record <-> the canonical tree of its version; that tree -> bytes.

The frozen tables say which fields there are; releases differ in how they spell them:

    union            1, 2: every arm is written, null but for one; later the one arm alone
    None             5.1 to 8.2: a field that may be left out and is None is left out; else written as null
    inf, nan         up to 8.2: bare Infinity and NaN; later strings (of 8.6 to 8.8 only "-Infinity" is known)
    open range       2, 5.1, 7.3: Infinity; 1, 5.3: 9223372036854775806; later null
    constant bool    5.3, 7.3: {"as_int": true}
    loss             the development of 1 wrote loss_outout for loss_output

A canonical tree has none of that: one arm, every field, strings for infinities, None for the open end of a range, so
that two trees mean the same if they are equal. Keys that the table does not know are kept. `spell` undoes what `read`
does; `encode(read(parse(data)), version) == data` for what the release itself wrote.
"""

from __future__ import annotations

import copy
import functools
import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit.errors import JsonError
from pt2kit.schema.tables import Shape, Type, table
from pt2kit.versions.check import too_deep
from pt2kit.versions.conforms import SPELLED_FLOATS, shape_of

PADDED_UNIONS: Final = frozenset({"1", "2"})
"""Versions whose unions have every arm in the JSON."""
LEFT_OUT_NONES: Final = frozenset({"5.1", "5.3-traces", "5.3", "7.3", "8.2"})
"""Versions that leave out fields which are None by default."""
BARE_FLOATS: Final = frozenset({"1", "2", "5.1", "5.3-traces", "5.3", "7.3", "8.2"})
"""Versions that write Infinity and NaN without quotes, which is no JSON."""
INFINITE_RANGES: Final = frozenset({"2", "5.1", "7.3"})
NUMBERED_RANGES: Final = frozenset({"1", "5.3-traces", "5.3"})
BOOLS_AS_INTS: Final = frozenset({"5.3", "7.3"})

MAX_RANGE: Final = 9223372036854775806
"""What 1 and 5.3 write for a range without an upper end."""
MIN_RANGE: Final = -9223372036854775808
"""Likewise for the lower end; no file with one is known."""


def read(raw: Any, version: str, where: str, *, root: str = "ExportedProgram") -> Any:
    """Turn parsed JSON into a canonical tree; a new one, nothing shared with `raw`.

    Args:
        raw: as `codec.parse(..., bare_literals=True)` gives it. What does not fit the table is kept as it is, for
            `check_tree` to refuse.
        version: the name of its table ("5.3").
        where: the record's name, for messages.
        root: the type of the tree.

    Raises:
        LimitError: nested too deep for this interpreter.
    """
    try:
        return _readers(version)[root](raw)
    except RecursionError:
        raise too_deep(where) from None


def spell(tree: Any, version: str, where: str, *, root: str = "ExportedProgram") -> Any:
    """Turn a canonical tree into what the release of a version wrote, keys in its order; a new tree.

    Infinities and nan of the versions that write them bare come out as Python floats.

    Raises:
        LimitError: nested too deep for this interpreter.
    """
    try:
        return _spellers(version)[root](tree)
    except RecursionError:
        raise too_deep(where) from None


def encode(tree: Any, version: str, where: str, *, root: str = "ExportedProgram") -> bytes:
    """Write a canonical tree as the release of a version did: spelling, order of keys, blanks, ASCII escapes.

    Raises:
        JsonError: a number that JSON has no spelling for, where the version writes none bare.
        LimitError: nested too deep for this interpreter.
    """
    raw = spell(tree, version, where, root=root)
    try:
        return json.dumps(raw, allow_nan=version in BARE_FLOATS).encode()
    except ValueError as error:
        raise JsonError(f"{where}: expected numbers that JSON can hold, got {error}", rule="J1") from None


Turn = Callable[[Any], Any]
"""A value -> a new one; lists and dicts of it are never shared."""

Change = Callable[[dict[str, Any], str], dict[str, Any]]
"""(object of one type, version) -> what is read or was spelled in its place."""


# Pure functions of a frozen table.
@functools.cache
def _readers(version: str) -> Mapping[str, Turn]:
    """Type name -> what reads a value of it."""
    leaves = MappingProxyType({"float": _read_float})
    found: dict[str, Turn] = {}
    for name, row in table(version).items():
        fields = {key: _turn(shape_of(name, field), found, leaves) for key, field in row.fields.items()}
        if row.kind == "union":
            plain = _union_reader(fields, padded=version in PADDED_UNIONS)
        else:
            plain = _reader(fields, {key: field.default for key, field in row.fields.items() if field.has_default})
        found[name] = _after(_READERS[name], version, plain) if name in _READERS else plain
    return MappingProxyType(found)


def _reader(fields: Mapping[str, Turn | None], defaults: Mapping[str, Any]) -> Turn:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            return copy.deepcopy(value)
        found = {}
        for key, default in defaults.items():
            if key not in value:
                found[key] = copy.deepcopy(default)
        for key, held in value.items():
            turn = fields.get(key, copy.deepcopy)
            found[key] = held if turn is None else turn(held)
        return found

    return read


def _union_reader(fields: Mapping[str, Turn | None], *, padded: bool) -> Turn:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            return copy.deepcopy(value)
        only = len(value) == 1 or not padded
        found = {}
        for arm, held in value.items():
            if only or held is not None or arm not in fields:
                turn = fields.get(arm, copy.deepcopy)
                found[arm] = held if turn is None else turn(held)
        return found

    return read


def _after(change: Change, version: str, turn: Turn) -> Turn:
    return lambda value: turn(change(value, version) if type(value) is dict else value)


@functools.cache
def _spellers(version: str) -> Mapping[str, Turn]:
    """Type name -> what spells a value of it."""
    leaves: Mapping[str, Turn] = {"float": _bare_float} if version in BARE_FLOATS else {}
    found: dict[str, Turn] = {}
    for name, row in table(version).items():
        fields = {key: _turn(shape_of(name, field), found, leaves) for key, field in row.fields.items()}
        if row.kind == "union":
            plain = _union_speller(fields, padded=version in PADDED_UNIONS)
        else:
            plain = _speller(fields, _left_out(row) if version in LEFT_OUT_NONES else frozenset())
        found[name] = _before(plain, _SPELLERS[name], version) if name in _SPELLERS else plain
    return MappingProxyType(found)


def _left_out(row: Type) -> frozenset[str]:
    return frozenset(key for key, field in row.fields.items() if field.has_default and field.default is None)


def _speller(fields: Mapping[str, Turn | None], left_out: frozenset[str]) -> Turn:
    def spell_object(value: Any) -> Any:
        if type(value) is not dict:
            return copy.deepcopy(value)
        found = {}
        for key, turn in fields.items():
            if key in value:
                held = value[key]
                if held is not None or key not in left_out:
                    found[key] = held if turn is None else turn(held)
        return _with_unknown(found, value, fields)

    return spell_object


def _union_speller(fields: Mapping[str, Turn | None], *, padded: bool) -> Turn:
    empty = dict.fromkeys(fields) if padded else {}

    def spell_union(value: Any) -> Any:
        if type(value) is not dict:
            return copy.deepcopy(value)
        found = dict(empty)
        for arm, held in value.items():
            if arm in fields:
                turn = fields[arm]
                found[arm] = held if turn is None else turn(held)
        return _with_unknown(found, value, fields)

    return spell_union


def _with_unknown(found: dict[str, Any], value: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    if value.keys() <= fields.keys():
        return found
    return found | {key: copy.deepcopy(held) for key, held in value.items() if key not in fields}


def _before(turn: Turn, change: Change, version: str) -> Turn:
    return lambda value: change(turn(value), version) if type(value) is dict else turn(value)


def _turn(shape: Shape, known: Mapping[str, Turn], leaves: Mapping[str, Turn]) -> Turn | None:
    """What turns a value of a shape; None where it stays what it is."""
    if shape.kind == "leaf":
        return leaves.get(shape.name)
    if shape.kind == "type":
        name = shape.name
        return known[name] if name in known else lambda value: known[name](value)
    if shape.kind not in ("list", "dict", "optional"):
        return copy.deepcopy
    entry = _turn(shape.inner[0], known, leaves)
    if shape.kind == "optional":
        return entry and (lambda value: None if value is None else entry(value))
    return _list_turn(entry) if shape.kind == "list" else _dict_turn(entry)


def _list_turn(entry: Turn | None) -> Turn:
    if entry is None:
        return lambda value: value.copy() if type(value) is list else copy.deepcopy(value)
    return lambda value: [entry(held) for held in value] if type(value) is list else copy.deepcopy(value)


def _dict_turn(entry: Turn | None) -> Turn:
    if entry is None:
        return lambda value: value.copy() if type(value) is dict else copy.deepcopy(value)
    return lambda value: (
        {key: entry(held) for key, held in value.items()} if type(value) is dict else copy.deepcopy(value)
    )


def _read_float(value: Any) -> Any:
    if type(value) is not float or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _bare_float(value: Any) -> Any:
    return float(value) if type(value) is str and value in SPELLED_FLOATS else value


def _read_range(value: dict[str, Any], version: str) -> dict[str, Any]:
    """Open ends as None; numbers of the versions that write them stay what they are elsewhere."""
    found = {key: None if isinstance(held, float) and math.isinf(held) else held for key, held in value.items()}
    if version in NUMBERED_RANGES:
        found |= {"min_val": None} if found.get("min_val") == MIN_RANGE else {}
        found |= {"max_val": None} if found.get("max_val") == MAX_RANGE else {}
    return found


def _spell_range(value: dict[str, Any], version: str) -> dict[str, Any]:
    lowest: float | None = MIN_RANGE if version in NUMBERED_RANGES else -math.inf
    highest: float | None = MAX_RANGE if version in NUMBERED_RANGES else math.inf
    if version not in NUMBERED_RANGES | INFINITE_RANGES:
        return value
    ends = {"min_val": lowest, "max_val": highest}
    return {key: ends[key] if held is None and key in ends else held for key, held in value.items()}


def _read_constant(value: dict[str, Any], version: str) -> dict[str, Any]:
    is_bool = version in BOOLS_AS_INTS and isinstance(value.get("as_int"), bool)
    return {"as_bool": value["as_int"]} if is_bool and len(value) == 1 else value


def _spell_constant(value: dict[str, Any], version: str) -> dict[str, Any]:
    return {"as_int": value["as_bool"]} if version in BOOLS_AS_INTS and "as_bool" in value else value


def _read_loss(value: dict[str, Any], version: str) -> dict[str, Any]:
    del version  # the misspelling is nobody's field, so it can be read wherever it occurs
    if "loss_outout" not in value or value.get("loss_output") is not None:
        return value
    return {"loss_output" if key == "loss_outout" else key: held for key, held in value.items() if key != "loss_output"}


_READERS: Final[Mapping[str, Change]] = {
    "RangeConstraint": _read_range,
    "ConstantValue": _read_constant,
    "BackwardSignature": _read_loss,
    "OutputSpec": _read_loss,
}
_SPELLERS: Final[Mapping[str, Change]] = {"RangeConstraint": _spell_range, "ConstantValue": _spell_constant}
