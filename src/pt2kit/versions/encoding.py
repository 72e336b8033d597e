"""JSON encoding of each release: a parsed record to the canonical tree of its version, and that tree to bytes.

The frozen tables say which fields there are, `schema.wire` how the releases spelled them. And the development of 1
wrote loss_outout for loss_output.

A canonical tree has none of that: one arm, every field, strings for infinities, None for the open end of a range, so
that two trees mean the same if they are equal. Keys that the table does not know are kept. `to_wire` undoes what
`from_wire` does; `encode(from_wire(parse(data)))` is `data` again for what the release itself wrote.
"""

from __future__ import annotations

import copy
import functools
import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit.codec.encoder import plain_float
from pt2kit.errors import JsonError
from pt2kit.schema.fieldtable import (
    Definition,
    DictOf,
    ListOf,
    Nullable,
    Ref,
    Scalar,
    Type,
    default_values,
    frozen_table,
)
from pt2kit.schema.wire import SPELLED_FLOATS, Spelling, spelling
from pt2kit.versions.check import canonical_type, within_stack


def from_wire(raw: Any, version: str, where: str, *, root: str = "") -> Any:
    """Turn parsed JSON into a canonical tree; a new one, nothing shared with `raw`.

    Args:
        raw: as `codec.parse(..., bare_literals=True)` gives it. What does not fit the table is kept as it is, for
            `check_tree` to refuse.
        version: the name of its table ("5.3").
        where: the record's name, for messages.
        root: the type of the tree; "" for a whole program.

    Raises:
        LimitError: nested too deep for this interpreter.
    """
    with within_stack(where):
        return _readers(version)[root or frozen_table(version).root](raw)


def to_wire(tree: Any, version: str, where: str, *, root: str = "") -> Any:
    """Turn a canonical tree into what the release of a version wrote, keys in its order; a new tree.

    Infinities and nan of the versions that write them bare come out as Python floats.

    Raises:
        LimitError: nested too deep for this interpreter.
    """
    with within_stack(where):
        return _spellers(version)[root or frozen_table(version).root](tree)


def encode(tree: Any, version: str, where: str, *, root: str = "") -> bytes:
    """Write a canonical tree as the release of a version did: spelling, order of keys, blanks, ASCII escapes.

    Raises:
        JsonError: a number that JSON has no spelling for, where the version writes none bare.
        LimitError: nested too deep for this interpreter.
    """
    raw = to_wire(tree, version, where, root=root)
    try:
        return json.dumps(raw, allow_nan=spelling(version).bare_floats).encode()
    except ValueError as error:
        raise JsonError(f"{where}: expected numbers that JSON can hold, got {error}", rule="J1") from None


Turn = Callable[[Any], Any]
"""A value -> a new one; lists and dicts of it are never shared."""

Change = Callable[[dict[str, Any], Spelling], dict[str, Any]]
"""(object of one type, its version's spelling) -> what is read or was spelled in its place."""


# Pure functions of a frozen table.
@functools.cache
def _readers(version: str) -> Mapping[str, Turn]:
    """Return the reader of each type, by name."""
    spelled = spelling(version)
    readers: dict[str, Turn] = {}
    for name, definition in frozen_table(version).definitions.items():
        fields = _turns(definition, readers, _read_float)
        padded = definition.kind == "union" and spelled.padded_unions
        plain = _reader(fields, default_values(definition), padded=padded)
        readers[name] = _after(_READERS[name], spelled, plain) if name in _READERS else plain
    return MappingProxyType(readers)


def _reader(fields: Mapping[str, Turn | None], defaults: Mapping[str, Any], *, padded: bool) -> Turn:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            return copy.deepcopy(value)
        new = {key: copy.deepcopy(default) for key, default in defaults.items() if key not in value}
        drops_nulls = padded and len(value) > 1
        for key, child in value.items():
            if child is None and drops_nulls and key in fields:
                continue
            turn = fields.get(key, copy.deepcopy)
            new[key] = child if turn is None else turn(child)
        return new

    return read


def _after(change: Change, spelled: Spelling, turn: Turn) -> Turn:
    return lambda value: turn(change(value, spelled) if type(value) is dict else value)


@functools.cache
def _spellers(version: str) -> Mapping[str, Turn]:
    """Return the speller of each type, by name."""
    spelled = spelling(version)
    spellers: dict[str, Turn] = {}
    for name, definition in frozen_table(version).definitions.items():
        fields = _turns(definition, spellers, _bare_float if spelled.bare_floats else None)
        defaults = default_values(definition) if spelled.left_out_nones else {}
        left_out = frozenset(key for key, default in defaults.items() if default is None)
        is_padded = definition.kind == "union" and spelled.padded_unions
        plain = _speller(fields, left_out, dict.fromkeys(fields) if is_padded else {})
        spellers[name] = _before(plain, _SPELLERS[name], spelled) if name in _SPELLERS else plain
    return MappingProxyType(spellers)


def _speller(fields: Mapping[str, Turn | None], left_out: frozenset[str], padding: Mapping[str, None]) -> Turn:
    """Return the speller of objects: fields in the order of the table, then unknown keys.

    Args:
        fields: field -> its speller.
        left_out: fields that are not written if they are None.
        padding: fields that are always written.
    """

    def spell(value: Any) -> Any:
        if type(value) is not dict:
            return copy.deepcopy(value)
        spelled: dict[str, Any] = dict(padding)
        for key in fields if len(value) > 1 else fields.keys() & value.keys():  # a union has one key of many
            if key in value:
                child, turn = value[key], fields[key]
                if child is not None or key not in left_out:
                    spelled[key] = child if turn is None else turn(child)
        if value.keys() <= fields.keys():
            return spelled
        return spelled | {key: copy.deepcopy(child) for key, child in value.items() if key not in fields}

    return spell


def _before(turn: Turn, change: Change, spelled: Spelling) -> Turn:
    return lambda value: change(turn(value), spelled) if type(value) is dict else turn(value)


def _turns(definition: Definition, known: Mapping[str, Turn], floats: Turn | None) -> dict[str, Turn | None]:
    """Return the converter of each field."""
    fields = definition.fields.items()
    return {key: _turn(canonical_type(definition.name, field), known, floats) for key, field in fields}


def _turn(kind: Type, known: Mapping[str, Turn], floats: Turn | None) -> Turn | None:
    """Return the converter of a type's values; None if they are unchanged."""
    match kind:
        case Scalar(name):
            return floats if name == "float" else None
        case Ref(name):
            return known[name] if name in known else lambda value: known[name](value)
        case ListOf(item):
            return _list_turn(_turn(item, known, floats))
        case DictOf(item):
            return _dict_turn(_turn(item, known, floats))
        case Nullable(inner):
            entry = _turn(inner, known, floats)
            return entry and (lambda value: None if value is None else entry(value))
        case _:
            return copy.deepcopy


def _list_turn(entry: Turn | None) -> Turn:
    if entry is None:
        return lambda value: value.copy() if type(value) is list else copy.deepcopy(value)
    return lambda value: [entry(child) for child in value] if type(value) is list else copy.deepcopy(value)


def _dict_turn(entry: Turn | None) -> Turn:
    if entry is None:
        return lambda value: value.copy() if type(value) is dict else copy.deepcopy(value)
    return lambda value: (
        {key: entry(child) for key, child in value.items()} if type(value) is dict else copy.deepcopy(value)
    )


def _read_float(value: Any) -> Any:
    return plain_float(value) if type(value) is float else value


def _bare_float(value: Any) -> Any:
    return float(value) if type(value) is str and value in SPELLED_FLOATS else value


def _read_range(value: dict[str, Any], spelled: Spelling) -> dict[str, Any]:
    """Open ends as None; numbers of the versions that write them stay what they are elsewhere."""
    ends = {"min_val": spelled.lowest, "max_val": spelled.highest}
    return {
        key: None if bound in (math.inf, -math.inf) or (key in ends and bound == ends[key]) else bound
        for key, bound in value.items()
    }


def _spell_range(value: dict[str, Any], spelled: Spelling) -> dict[str, Any]:
    ends = {"min_val": spelled.lowest, "max_val": spelled.highest}
    return {key: ends[key] if bound is None and key in ends else bound for key, bound in value.items()}


def _read_constant(value: dict[str, Any], spelled: Spelling) -> dict[str, Any]:
    is_bool = spelled.bools_as_ints and isinstance(value.get("as_int"), bool)
    return {"as_bool": value["as_int"]} if is_bool and len(value) == 1 else value


def _spell_constant(value: dict[str, Any], spelled: Spelling) -> dict[str, Any]:
    return {"as_int": value["as_bool"]} if spelled.bools_as_ints and "as_bool" in value else value


def _read_loss(value: dict[str, Any], spelled: Spelling) -> dict[str, Any]:
    del spelled  # the misspelling is nobody's field, so it can be read wherever it occurs
    if "loss_outout" not in value or value.get("loss_output") is not None:
        return value
    return {
        "loss_output" if key == "loss_outout" else key: child for key, child in value.items() if key != "loss_output"
    }


_READERS: Final[Mapping[str, Change]] = {
    "RangeConstraint": _read_range,
    "ConstantValue": _read_constant,
    "BackwardSignature": _read_loss,
    "OutputSpec": _read_loss,
}
_SPELLERS: Final[Mapping[str, Change]] = {"RangeConstraint": _spell_range, "ConstantValue": _spell_constant}
