"""A `.pt2` file -> mutants of it: each field of each type of the schema, changed in each way that its type allows.

A *kind* is a field and a way to change it: "Node.inputs: drop one", "TensorMeta.dtype: 0". Mutants of a kind differ in
where they are changed. Which places, and what is put there, follows from the seed alone.
"""

from __future__ import annotations

import copy
import json
import random
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pt2kit import schema
from pt2kit.package import record_names as names

Change = Callable[[Any, str | int, random.Random], None]
"""Changes an entry of a tree in place: (container, key, dice)."""


@dataclass(frozen=True)
class Spot:
    """A place in the tree of a record.

    Args:
        field: the type and the field it belongs to ("Node.inputs"), with `[]` for an entry of a list or map.
        holder, key: the container in the tree, and the key in it.
        type: what the schema says of it.
    """

    field: str
    holder: Any
    key: str | int
    type: Any


RECORDS: Mapping[str, tuple[str, type]] = {
    "": (names.model_json("model"), schema.ExportedProgram),
    "weights ": (names.weights_config("model"), schema.PayloadConfig),
    "constants ": (names.constants_config("model"), schema.PayloadConfig),
}
"""Prefix of a record's kinds -> the record and its type."""


def spots(tree: Any, cls: type, prefix: str = "") -> Iterator[Spot]:
    """Every place in the tree of a record, with the field it belongs to."""
    for info in msgspec.structs.fields(cls):
        if info.encode_name in tree:
            yield from _entries(tree, info.encode_name, info.type, f"{prefix}{cls.__name__}.{info.encode_name}")


def _entries(holder: Any, key: str | int, kind: Any, field: str) -> Iterator[Spot]:
    kind = _bare(kind)
    yield Spot(field, holder, key, kind)
    value = holder[key]
    origin = typing.get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        yield from spots(value, kind, _prefix(field))
    elif origin in (list, tuple) and isinstance(value, list):
        for number in range(len(value)):
            yield from _entries(value, number, typing.get_args(kind)[0], f"{field}[]")
    elif origin is dict and isinstance(value, dict):
        for name in list(value):
            yield from _entries(value, name, typing.get_args(kind)[1], f"{field}[]")


def _bare(kind: Any) -> Any:
    """A type without what may stand in its place (None, nothing) and without annotations."""
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        held = [one for one in typing.get_args(kind) if one not in (type(None), msgspec.UnsetType)]
        kind = _bare(held[0])
    return kind


def _put(value: Any) -> Change:
    def change(holder: Any, key: str | int, dice: random.Random) -> None:
        holder[key] = copy.deepcopy(value)

    return change


def _plus(step: int) -> Change:
    def change(holder: Any, key: str | int, dice: random.Random) -> None:
        holder[key] += step

    return change


def _drop_one(holder: Any, key: str | int, dice: random.Random) -> None:
    held = holder[key]
    del held[dice.choice(list(held) if isinstance(held, dict) else range(len(held)))]


def _double_one(holder: Any, key: str | int, dice: random.Random) -> None:
    held = holder[key]
    held.insert(dice.randrange(len(held) + 1), copy.deepcopy(dice.choice(held)))


def _swap_two(holder: Any, key: str | int, dice: random.Random) -> None:
    held = holder[key]
    one, other = dice.sample(range(len(held)), 2)
    held[one], held[other] = held[other], held[one]


def _rename_key(holder: Any, key: str | int, dice: random.Random) -> None:
    held = holder[key]
    name = dice.choice(list(held))
    held[f"{name}_x"] = held.pop(name)


def _exchange_keys(holder: Any, key: str | int, dice: random.Random) -> None:
    held = holder[key]
    one, other = dice.sample(list(held), 2)
    held[one], held[other] = held[other], held[one]


def _drop(holder: Any, key: str | int, dice: random.Random) -> None:
    del holder[key]


ARMS: Mapping[str, Any] = {
    "as_none": True,
    "as_int": 1,
    "as_ints": [1, 2],
    "as_float": 1.5,
    "as_floats": [1.5],
    "as_string": "cpu",
    "as_strings": ["a", "b"],
    "as_scalar_type": 7,
    "as_memory_format": 1,
    "as_layout": 7,
    "as_device": {"type": "cpu", "index": None},
    "as_bool": True,
    "as_bools": [True],
    "as_complex": {"real": 1.0, "imag": 2.0},
    "as_operator": "torch.ops.aten.add.Tensor",
    "as_int_lists": [[1]],
    "as_expr": {"expr_str": "Eq(Symbol('s0'), 2)", "hint": None},
    "as_name": "nothing_of_this_name",
}
"""Arm of a union -> what is put there by "other arm" changes."""

_TEXTS: Mapping[str, Any] = {"empty": "", "unknown": "nothing_of_this_name", "garbage": "a,b;[(", "number": "1x"}


def _ways(spot: Spot, tree: Any, cls: type) -> Iterator[tuple[str, Change]]:
    """The ways to change a place: what they are called, and what does it."""
    value, kind = spot.holder[spot.key], spot.type
    if isinstance(spot.holder, dict) and isinstance(kind, type) and value is not None and "[]" not in spot.field:
        yield "None", _put(None)
        yield "left out", _drop
    if isinstance(value, bool):
        yield "flipped", _put(not value)
    elif isinstance(kind, type) and issubclass(kind, int) and kind not in (int, bool) and isinstance(value, int):
        yield "0", _put(0)
        yield "99", _put(99)
        yield from ((f"other ({number.value})", _put(number.value)) for number in _others(kind, value))
    elif isinstance(value, int):
        for name, other in (("2**63", 1 << 63), ("-1", -1), ("0", 0), ("2**62", 1 << 62)):
            if value != other:
                yield name, _put(other)
        yield "+1", _plus(1)
    elif isinstance(value, str):
        yield from ((name, _put(text)) for name, text in _TEXTS.items() if text != value)
        yield "another of its kind", _another(spot, tree, cls)
        yield from _text_ways(spot.field, value)
    elif isinstance(value, list):
        yield from _list_ways(value)
        if spot.field == "ExportedProgram.guards_code":
            yield from ((f"one more, {name}", _put([*value, text])) for name, text in GUARDS.items())
    elif isinstance(value, dict):
        yield from _dict_ways(value, kind, tree)


def _others(kind: Any, value: int) -> list[Any]:
    return [one for one in kind if one.value not in (0, value)][:2]


def _list_ways(value: list[Any]) -> Iterator[tuple[str, Change]]:
    if value:
        yield "empty", _put([])
        yield "drop one", _drop_one
        yield "one twice", _double_one
    if len(value) > 1 and any(one != value[0] for one in value):
        yield "two exchanged", _swap_two


def _dict_ways(value: dict[str, Any], kind: Any, tree: Any) -> Iterator[tuple[str, Change]]:
    if isinstance(kind, type) and issubclass(kind, schema.Union):
        arms = {info.encode_name for info in msgspec.structs.fields(kind)}
        known = {**ARMS, **_value_arms(tree)}
        yield from ((f"as {arm}", _put({arm: known[arm]})) for arm in sorted((arms & known.keys()) - value.keys()))
        yield "no arm", _put({})
        return
    if typing.get_origin(kind) is dict and value:
        yield "empty", _put({})
        yield "drop one", _drop_one
        yield "key renamed", _rename_key
        if len(value) > 1 and len({json.dumps(one) for one in value.values()}) > 1:
            yield "two exchanged", _exchange_keys


def _value_arms(tree: Any) -> dict[str, Any]:
    """Arms that hold the name of a value, with that of a graph input."""
    inputs = tree["graph_module"]["graph"]["inputs"] if "graph_module" in tree else []
    tensor = next((one["as_tensor"] for one in inputs if "as_tensor" in one), None)
    if tensor is None:
        return {}
    return {"as_tensor": tensor, "as_tensors": [tensor], "as_optional_tensors": [{"as_tensor": tensor}]}


GUARDS: Mapping[str, str] = {
    "never true": "1 == 2",
    "of no input": "L['nothing_of_this_name'].size()[0] >= 2",
    "no condition": "1 + 1",
    "garbage": "a,b;[(",
}


def _text_ways(field: str, value: str) -> Iterator[tuple[str, Change]]:
    """The ways to change texts that have a grammar."""
    if field.endswith("expr_str"):
        yield "relation", _put(f"Eq({value}, 2)")
        yield "half", _put(f"({value})/2")
        yield "huge", _put(str(1 << 64))
        yield "other symbol", _put("s123456")
    elif field.endswith(("in_spec", "out_spec")):
        for name, change in TREE_SPECS.items():
            spec = json.loads(value)
            if (changed := change(spec)) is not None:
                yield name, _put(json.dumps(changed))
    elif field.endswith("guards_code[]"):
        yield "negated", _put(f"not ({value})")


def _top(**changes: Any) -> Callable[[Any], Any]:
    return lambda spec: [spec[0], {**spec[1], **changes}]


TREE_SPECS: Mapping[str, Callable[[Any], Any]] = {
    "without its last child": lambda spec: [spec[0], {**spec[1], "children_spec": spec[1]["children_spec"][:-1]}],
    "without children": _top(children_spec=[]),
    "a leaf": lambda spec: [spec[0], {"type": None, "context": None, "children_spec": []}],
    "its first child": lambda spec: [spec[0], spec[1]["children_spec"][0]] if spec[1]["children_spec"] else None,
    "a list": _top(type="builtins.list"),
    "of an unknown type": _top(type="nothing.of_this_name"),
    "with context": _top(context='["a"]'),
    "of protocol 2": lambda spec: [2, spec[1]],
    "one child more": lambda spec: [
        spec[0],
        {**spec[1], "children_spec": [*spec[1]["children_spec"], {"type": None, "context": None, "children_spec": []}]},
    ],
    "children exchanged": lambda spec: [spec[0], {**spec[1], "children_spec": spec[1]["children_spec"][::-1]}],
}
"""Name -> what changes a tree spec; None where it can't."""


def _another(spot: Spot, tree: Any, cls: type) -> Change:
    """The text that stands at another place of the same field."""

    def change(holder: Any, key: str | int, dice: random.Random) -> None:
        same = (one.holder[one.key] for one in spots(tree, cls, _prefix(spot.field)) if one.field == spot.field)
        if others := sorted({text for text in same if isinstance(text, str) and text != holder[key]}):
            holder[key] = dice.choice(others)

    return change


def _prefix(field: str) -> str:
    return next((prefix for prefix in RECORDS if prefix and field.startswith(prefix)), "")


@dataclass(frozen=True)
class Mutant:
    """A changed record.

    Args:
        kind: the field, and how it was changed.
        record: its name below the root folder.
        tree: what it holds now.
    """

    kind: str
    record: str
    tree: Any


def kinds_of(records: Mapping[str, Any]) -> dict[str, int]:
    """The kinds of mutants that a file has, each with the number of its places.

    Args:
        records: prefix of `RECORDS` -> the tree of the record.
    """
    found: dict[str, int] = defaultdict(int)
    for prefix, tree in records.items():
        for spot in spots(tree, RECORDS[prefix][1], prefix):
            for way, _ in _ways(spot, tree, RECORDS[prefix][1]):
                found[f"{spot.field}: {way}"] += 1
    return dict(found)


def mutant(records: Mapping[str, Any], kind: str, dice: random.Random) -> Mutant | None:
    """One mutant of a kind, at a place that the dice choose; None where the file has no such place, or nothing changed.

    Args:
        records: as `kinds_of`; not changed.
        kind: one of `kinds_of`.
        dice: what chooses.
    """
    field, _, way = kind.partition(": ")
    prefix = _prefix(field)
    if prefix not in records:
        return None
    tree = copy.deepcopy(records[prefix])
    places = [spot for spot in spots(tree, RECORDS[prefix][1], prefix) if spot.field == field]
    dice.shuffle(places)
    for spot in places:
        change = dict(_ways(spot, tree, RECORDS[prefix][1])).get(way)
        if change is None:
            continue
        change(spot.holder, spot.key, dice)
        return Mutant(kind, RECORDS[prefix][0], tree) if tree != records[prefix] else None
    return None
