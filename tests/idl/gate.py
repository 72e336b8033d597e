"""The classes, the log, the frozen tables, the golden files -> what a change of the schema has forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.samples import DATA

from pt2kit import schema
from pt2kit.errors import Pt2Error
from pt2kit.idl.compat import Verdict, changes, verdict
from pt2kit.schema.fieldtable import UNNUMBERED, DictOf, ListOf, Nullable, Ref, Table, Type, make_table
from pt2kit.schema.versions import Version

GOLDEN = DATA.parent / "golden"
COVERED_FROM = "8.20"
"""From this version on, everything that a version brings is used in one of its golden files."""

HOW = "see docs/changing-the-schema.md"
Plain = Mapping[str, Any]
Golden = Mapping[str, Sequence[tuple[str, Any]]]
"""Version -> (type at the root, tree) of each of its golden files."""


def golden_files() -> dict[str, list[tuple[str, Any]]]:
    """The golden files there are; the type at the root is the file's name. Samples of releases count without a tree."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for path in sorted(GOLDEN.glob("*/*.json")):
        found.setdefault(path.parent.name, []).append((path.stem, json.loads(path.read_text())))
    for version in schema.LOG:
        for release in version.releases:
            if any((DATA / "corpus").glob(f"{release}.*/*.pt2")):
                found.setdefault(version.number, [])
    return found


def problems(types: Plain, log: Sequence[Version], frozen: Mapping[str, Plain], golden: Golden) -> list[str]:
    """Everything that is missing; empty where the schema is in order.

    Args:
        types: the table of the classes.
        log: the versions, oldest first.
        frozen: version -> its frozen table.
        golden: version -> its golden files.
    """
    numbers = [version.number for version in log]
    tables = {number: _table(number, plain) for number, plain in frozen.items()}
    logged = [tables[number] for number in numbers if number in tables]
    return [
        *(f"{number}: logged, but no history/{number}.yaml; {HOW}" for number in numbers if number not in tables),
        *(f"{number}: frozen, but not logged; {HOW}" for number in tables if number not in (*numbers, *UNNUMBERED)),
        *_unfrozen(logged[-1], types),
        *_wrong_numbers(logged),
        *_ids_used_again(logged),
        *(f"{number}: no golden file in tests/golden/{number}/; {HOW}" for number in numbers if number not in golden),
        *_uncovered(logged, golden),
    ]


def _table(number: str, plain: Plain) -> Table:
    return make_table(number, plain, number, docs={}, since={})


def _unfrozen(newest: Table, types: Plain) -> Iterator[str]:
    """The classes differ from the newest frozen table."""
    found = changes(newest, _table(newest.version, types))
    if found:
        least = Verdict(newest.version, "", found).least
        listed = "; ".join(map(str, found))
        yield f"the classes are not the frozen {newest.version}: {listed}. This demands {least} or more; {HOW}"


def _wrong_numbers(logged: Sequence[Table]) -> Iterator[str]:
    for old, new in pairwise(logged):
        step = verdict(old, new)
        if not step.agrees and not step.exception:
            listed = "; ".join(map(str, step.changes)) or "no changes"
            yield f"{old.version} -> {new.version}: expected {step.least}, for {listed}; {HOW}"


def _ids_used_again(logged: Sequence[Table]) -> Iterator[str]:
    """Within a major, a wire id belongs to one name for good."""
    owners: dict[tuple[int, str, int], str] = {}
    for table in logged:
        major, _ = schema.parse_version(table.version)
        for definition in table.definitions.values():
            for field in definition.fields.values():
                if field.id is None:
                    continue
                owner = owners.setdefault((major, definition.name, field.id), field.name)
                if owner != field.name:
                    where = f"{definition.name}.{field.name}"
                    yield f"{table.version}: {where}: expected a new wire id, got {field.id}, which was that of {owner}"


def _uncovered(logged: Sequence[Table], golden: Golden) -> Iterator[str]:
    """Return what a version brought that none of its golden files uses."""
    for old, new in pairwise(logged):
        if schema.parse_version(new.version) < schema.parse_version(COVERED_FROM) or new.version not in golden:
            continue
        used: set[str] = set()
        for root, tree in golden[new.version]:
            try:
                used |= set(uses(new, tree, Ref(root)))
            except (Pt2Error, KeyError, ValueError, AttributeError, TypeError) as error:
                yield f"{new.version}: {root}.json: not a value of this version: {type(error).__name__} {error}"
        for where in sorted(_brought(old, new) - used):
            yield f"{new.version}: {where} is new, but no file in tests/golden/{new.version}/ uses it"


def _brought(old: Table, new: Table) -> set[str]:
    def parts(table: Table) -> set[str]:
        fields = {f"{each.name}.{field.name}" for each in table.definitions.values() for field in each.fields.values()}
        return fields | {
            f"{each.name}.{value.name}" for each in table.definitions.values() for value in each.members.values()
        }

    return parts(new) - parts(old)


def uses(table: Table, tree: Any, kind: Type) -> Iterator[str]:
    """The fields, arms and enum values that occur in a tree; a field occurs where it is not null."""
    match kind:
        case ListOf(item):
            for one in tree:
                yield from uses(table, one, item)
        case DictOf(value):
            for one in tree.values():
                yield from uses(table, one, value)
        case Nullable(inner) if tree is not None:
            yield from uses(table, tree, inner)
        case Ref(name):
            definition = table.definitions[name]
            yield from (f"{name}.{value.name}" for value in definition.members.values() if value.value == tree)
            for field in definition.fields.values():
                if tree.get(field.name) is not None:
                    yield f"{name}.{field.name}"
                    yield from uses(table, tree[field.name], field.type)
