"""Compatibility of two schema versions: their changes, the version number that these demand, and the chosen one.

A major number forbids old readers to try; a minor one allows it, as long as a file uses nothing new. The number after
8.20 is therefore 8.21 or 9.1. Each change between two tables is listed under the rule (C1 …) that states its demand on
the version number. `history` compares the releases with these rules, and `EXCEPTIONS` lists where they did otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from enum import IntEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from pt2kit import schema
from pt2kit.errors import VersionError
from pt2kit.schema.fieldtable import (
    AnyOf,
    Definition,
    DictOf,
    Field,
    ListOf,
    Nullable,
    Ref,
    Scalar,
    Table,
    Type,
    frozen_table,
    type_text,
)
from pt2kit.schema.wire import SPELLED_FLOATS, spelling

_LITERALS: Mapping[str, str] = {
    "int": r"-?\d+",
    "float": r"-?\d+(\.\d+)?(e[+-]?\d+)?|-?Infinity|NaN",
    "bool": "True|False",
    "str": r"(?s:.*)",
    "bytes": r"(?s:.*)",
}
"""Scalar type -> what the text of one of its values looks like."""

EXCEPTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("5.1", "5.3"): "A tensor in a list of optional tensors was a bare name and became an object, while torch 2.4 "
        "raised the minor only: the numbers do not tell a reader of 5.3 that it cannot read such a file of 5.1.",
        ("8.8", "8.14"): "Program and Model were containers around programs. No file of a release is known to hold "
        "one, so dropping them left none behind.",
        ("5.3-traces", "5.3"): "Two states of development had the number 5.3 at once. Compact stack traces are only in "
        "the one that was not released; the keys of a file tell which it is.",
    }
)
"""(old, new) -> why the number that was chosen is not the one that the rules demand."""


class Level(IntEnum):
    """The demand of a change on the version number."""

    NONE = 0
    MINOR = 1
    MAJOR = 2


RULES: Mapping[str, tuple[Level, str]] = MappingProxyType(
    {
        "C1": (Level.MINOR, "a type is added"),
        "C2": (Level.MAJOR, "a type is removed"),
        "C3": (Level.MAJOR, "a type becomes another kind (struct, union, enum)"),
        "C4": (Level.MINOR, "a struct gains a field with a default, under a new wire id"),
        "C5": (Level.MAJOR, "a struct gains a required field: old files lack it"),
        "C6": (Level.MAJOR, "a struct loses a field: what old files say there is lost"),
        "C7": (Level.MINOR, "a union gains an arm, under a new wire id"),
        "C8": (Level.MAJOR, "a union loses an arm"),
        "C9": (Level.MINOR, "an enum gains a value, under a new number"),
        "C10": (Level.MAJOR, "an enum loses a value, or gives its number another name"),
        "C11": (Level.MAJOR, "an enum value changes its number"),
        "C12": (Level.MAJOR, "a field or an arm changes its type"),
        "C13": (Level.MAJOR, "a field or an arm changes its wire id"),
        "C14": (Level.MAJOR, "a field or an arm takes a wire id that another has or had"),
        "C15": (Level.MAJOR, "a field loses its default, so becomes required"),
        "C16": (Level.MINOR, "a required field gets a default; writers go on writing it"),
        "C17": (Level.MAJOR, "a default changes: the same file means something else"),
        "C18": (Level.MAJOR, "the JSON of unions changes"),
        "C19": (Level.NONE, "a field or an arm gets its first wire id"),
        "C20": (Level.MAJOR, "an enum number has a second name: readers cannot tell the two"),
        "C21": (Level.MAJOR, "a field or an arm is added, or kept, without a wire id where others have theirs"),
        "C22": (Level.MAJOR, "a default is no value of its field's type: an absent key would mean nothing"),
    }
)
"""Rule id -> what it demands, and the change it is about. Order, comments and documentation may change freely."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change between two tables.

    Args:
        rule: the id of the rule it falls under ("C4").
        where: the type, or type and field ("Node.name").
        what: the old and the new state.
    """

    rule: str
    where: str
    what: str

    @property
    def level(self) -> Level:
        """Return the demand of the change on the version number."""
        return RULES[self.rule][0]

    def __str__(self) -> str:
        return f"{self.where}: {self.what} [{self.rule}]"


def changes(old: Table, new: Table) -> tuple[Change, ...]:
    """Return every change from one table to another, in the order of the old one's types, then the types that are
    added.

    Wire ids are compared where both tables have them: before 8.2 there were none, and torch's own YAML leaves them out.
    """
    return tuple(_changes(old, new))


def _changes(old: Table, new: Table) -> Iterator[Change]:
    before, after = old.definitions, new.definitions
    padded = [spelling(table.version).padded_unions for table in (old, new)]
    if padded[0] is not padded[1] and old.version and new.version:
        encodings = ("exactly one key", "every key, null except for one")
        yield Change("C18", "unions", f"{encodings[padded[0]]} -> {encodings[padded[1]]}")
    for name, definition in before.items():
        if name not in after:
            yield Change("C2", name, f"the {definition.kind} is removed")
        elif after[name].kind != definition.kind:
            yield Change("C3", name, f"{definition.kind} -> {after[name].kind}")
        elif definition.kind == "enum":
            yield from _enum_changes(definition, after[name])
        else:
            yield from _field_changes(definition, after[name])
    for name, definition in after.items():
        if name not in before:
            yield Change("C1", name, f"a {definition.kind} is added")
        yield from _own_faults(definition, before.get(name), new, _has_wire_ids(old) and _has_wire_ids(new))


def _has_wire_ids(table: Table) -> bool:
    """Return whether a table has wire ids at all."""
    return any(
        field.id is not None for definition in table.definitions.values() for field in definition.fields.values()
    )


def _own_faults(definition: Definition, old: Definition | None, table: Table, numbered: bool) -> Iterator[Change]:
    """Yield the errors of fields and enum values that are new or have changed, whatever they were."""
    before = old.fields if old is not None else {}
    yield from _second_names(definition, old)
    owners = {field.id: field.name for field in before.values()}
    for field in definition.fields.values():
        known, where = before.get(field.name), f"{definition.name}.{field.name}"
        if numbered and field.id is None and (known is None or known.id is not None):
            yield Change("C21", where, f"no wire id{f', before {known.id}' if known else ''}")
        owner = owners.setdefault(field.id, field.name)
        if field.id is not None and owner != field.name and (known is None or known.id != field.id):
            yield Change("C14", where, f"the wire id {field.id} is or was that of {owner}")
        changed = known is None or (known.default, known.type) != (field.default, field.type)
        if changed and field.default is not None and not _fits(field.default, field.type, table):
            yield Change("C22", where, f"the default {field.default} is no {type_text(field.type)}")


def _second_names(definition: Definition, old: Definition | None) -> Iterator[Change]:
    """Yield the names that an enum gives to numbers which have one already."""
    before = {value.name: value.value for value in old.members.values()} if old is not None else {}
    first: dict[Any, str] = {}
    for value in definition.members.values():
        owner = first.setdefault(value.value, value.name)
        if owner != value.name and before.get(value.name) != value.value:
            yield Change("C20", f"{definition.name}.{value.name}", f"the value {value.value} is that of {owner}")


def _fits(default: str, kind: Type, table: Table) -> bool:
    """Return whether the text of a default is a value of a type."""
    match kind:
        case Nullable(inner):
            return default == "None" or _fits(default, inner, table)
        case AnyOf(kinds):
            return any(_fits(default, each, table) for each in kinds)
        case ListOf():
            return default == "[]"
        case DictOf():
            return default == "{}"
        case Scalar(name):
            fits = re.fullmatch(_LITERALS[name], default, re.ASCII) is not None
            return fits and (name != "float" or default in SPELLED_FLOATS or math.isfinite(float(default)))
        case Ref(name):
            members = table.definitions[name].members.values()
            return default in {str(text) for member in members for text in astuple(member)[:2]}
    return False


def _enum_changes(old: Definition, new: Definition) -> Iterator[Change]:
    before = {value.name: value.value for value in old.members.values()}
    after = {value.name: value.value for value in new.members.values()}
    for name, value in before.items():
        where = f"{old.name}.{name}"
        if name not in after:
            yield Change("C10", where, f"the value {value} is removed")
        elif after[name] != value:
            yield Change("C11", where, f"{value} -> {after[name]}")
    for name, value in after.items():
        if name not in before:
            yield Change("C9", f"{old.name}.{name}", f"the value {value} is added")


def _field_changes(old: Definition, new: Definition) -> Iterator[Change]:
    before, after = old.fields, new.fields
    word, removed = ("arm", "C8") if old.kind == "union" else ("field", "C6")
    for name, field in before.items():
        where = f"{old.name}.{name}"
        if name not in after:
            yield Change(removed, where, f"the {word} is removed")
        else:
            yield from _kept_field(where, field, after[name])
    for name, field in after.items():
        if name not in before:
            yield _added_field(f"{old.name}.{name}", field, old.kind == "union")


def _added_field(where: str, field: Field, in_union: bool) -> Change:
    text = type_text(field.type)
    if in_union:
        return Change("C7", where, f"an arm is added: {text}")
    if field.default is None:
        return Change("C5", where, f"a required field is added: {text}")
    return Change("C4", where, f"a field is added: {text}, by default {field.default}")


def _kept_field(where: str, old: Field, new: Field) -> Iterator[Change]:
    if old.type != new.type:
        yield Change("C12", where, f"{type_text(old.type)} -> {type_text(new.type)}")
    if new.id is not None and old.id != new.id:
        yield Change("C19" if old.id is None else "C13", where, f"wire id {old.id or 'none'} -> {new.id}")
    if old.default == new.default:
        return
    if new.default is None:
        yield Change("C15", where, f"the default {old.default} is removed")
    elif old.default is None:
        yield Change("C16", where, f"the default {new.default} is added")
    else:
        yield Change("C17", where, f"the default {old.default} -> {new.default}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The demand of a change on the version number, and the chosen number.

    Args:
        old: the version it starts from; "" where a file did not say.
        new: the version it got; likewise.
        changes: what changed.
    """

    old: str
    new: str
    changes: tuple[Change, ...]

    @property
    def demanded(self) -> Level:
        """Return the largest demand of any change."""
        return max((change.level for change in self.changes), default=Level.NONE)

    @property
    def chosen(self) -> Level | None:
        """Return the level of the step between the two numbers; None if one is missing.

        Raises:
            VersionError: the new number is below the old one.
        """
        if not (_numbered(self.old) and _numbered(self.new)):
            return None
        old, new = _pair(self.old), _pair(self.new)
        if new < old:
            raise VersionError(f"expected the older version first, got {self.old} and then {self.new}")
        return Level.NONE if old == new else Level.MAJOR if new[0] > old[0] else Level.MINOR

    @property
    def least(self) -> str:
        """Return the smallest number that satisfies the demand; "" if the old one has none."""
        return next_version(self.old, self.demanded) if _numbered(self.old) else ""

    @property
    def agrees(self) -> bool:
        """Return whether the number was increased exactly as demanded; True if there are no two numbers."""
        return self.chosen in (None, self.demanded)

    @property
    def exception(self) -> str:
        """Return why the releases deviate from the demand here, if known."""
        return EXCEPTIONS.get((self.old, self.new), "")


def _numbered(version: str) -> bool:
    return version not in ("", "draft")


def _pair(version: str) -> tuple[int, int]:
    return schema.parse_version(version.removesuffix("-traces"))


def next_version(old: str, demanded: Level) -> str:
    """Return the smallest version after another that a demand allows: "8.20" -> "8.21" or "9.1".

    Raises:
        VersionError: the old version is no number.
    """
    if demanded is Level.NONE:
        return old
    major, minor = _pair(old)
    return f"{major}.{minor + 1}" if demanded is Level.MINOR else f"{major + 1}.1"


def verdict(old: Table, new: Table) -> Verdict:
    """Compare two tables.

    Args:
        old: the table that files were written with.
        new: the one that replaces it.
    """
    return Verdict(old.version, new.version, changes(old, new))


def history() -> tuple[Verdict, ...]:
    """Return every step between logged versions, oldest first, and the one between the two states of 5.3."""
    numbers = [version.number for version in schema.LOG]
    steps = [*pairwise(numbers), ("5.3-traces", "5.3")]
    return tuple(verdict(frozen_table(old), frozen_table(new)) for old, new in steps)
