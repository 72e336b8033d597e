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
import json
import math
from typing import Any, Final

from pt2kit.errors import JsonError
from pt2kit.migrate.check import SPELLED_FLOATS, shape_of, too_deep
from pt2kit.schema.tables import Shape, table

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
        return _read(raw, Shape("type", root), version)
    except RecursionError:
        raise too_deep(where) from None


def spell(tree: Any, version: str, where: str, *, root: str = "ExportedProgram") -> Any:
    """Turn a canonical tree into what the release of a version wrote, keys in its order; a new tree.

    Infinities and nan of the versions that write them bare come out as Python floats.

    Raises:
        LimitError: nested too deep for this interpreter.
    """
    try:
        return _spell(tree, Shape("type", root), version)
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


def _read(value: Any, shape: Shape, version: str) -> Any:
    match shape.kind:
        case "leaf" if shape.name == "float" and isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case "type" if isinstance(value, dict):
            return _read_type(value, shape.name, version)
        case "list" if isinstance(value, list):
            return [_read(entry, shape.inner[0], version) for entry in value]
        case "dict" if isinstance(value, dict):
            return {key: _read(entry, shape.inner[0], version) for key, entry in value.items()}
        case "optional" if value is not None:
            return _read(value, shape.inner[0], version)
        case "leaf" | "optional":
            return value
    return copy.deepcopy(value)


def _read_type(value: dict[str, Any], name: str, version: str) -> Any:
    row = table(version)[name]
    value = _READERS[name](value, version) if name in _READERS else value
    if row.kind == "union":
        if version in PADDED_UNIONS and len(value) > 1:
            value = {arm: held for arm, held in value.items() if held is not None or arm not in row.fields}
        found = {}
    else:
        found = {key: copy.deepcopy(field.default) for key, field in row.fields.items() if key not in value}
        found = {key: default for key, default in found.items() if row.fields[key].has_default}
    for key, held in value.items():
        field = row.fields.get(key)
        found[key] = copy.deepcopy(held) if field is None else _read(held, shape_of(name, field), version)
    return found


def _spell(value: Any, shape: Shape, version: str) -> Any:
    match shape.kind:
        case "leaf" if shape.name == "float" and version in BARE_FLOATS and _is_spelled(value):
            return float(value)
        case "type" if isinstance(value, dict):
            return _spell_type(value, shape.name, version)
        case "list" if isinstance(value, list):
            return [_spell(entry, shape.inner[0], version) for entry in value]
        case "dict" if isinstance(value, dict):
            return {key: _spell(entry, shape.inner[0], version) for key, entry in value.items()}
        case "optional" if value is not None:
            return _spell(value, shape.inner[0], version)
        case "leaf" | "optional":
            return value
    return copy.deepcopy(value)


def _spell_type(value: dict[str, Any], name: str, version: str) -> Any:
    row = table(version)[name]
    found: dict[str, Any] = {}
    for key, field in row.fields.items():
        if key in value:
            held = _spell(value[key], shape_of(name, field), version)
            optional = field.has_default and field.default is None
            if row.kind == "union" or not (held is None and optional and version in LEFT_OUT_NONES):
                found[key] = held
        elif row.kind == "union" and version in PADDED_UNIONS:
            found[key] = None
    found |= {key: copy.deepcopy(held) for key, held in value.items() if key not in row.fields}
    return _SPELLERS[name](found, version) if name in _SPELLERS else found


def _is_spelled(value: Any) -> bool:
    return isinstance(value, str) and value in SPELLED_FLOATS


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


_READERS: Final = {
    "RangeConstraint": _read_range,
    "ConstantValue": _read_constant,
    "BackwardSignature": _read_loss,
    "OutputSpec": _read_loss,
}
_SPELLERS: Final = {"RangeConstraint": _spell_range, "ConstantValue": _spell_constant}
