"""`pt2 schema`: the versions of the format, one of them in another language, changes between two, and operators.

`pt2 schema operators` prints the operator table of a release of torch, or one row of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from pt2kit.cli.common import Refusal
from pt2kit.cli.frame import Result, ResultOptions, argument, option, print_result
from pt2kit.idl.compat import Level, Verdict, verdict
from pt2kit.idl.sources import FORMATS, current_table, emit, read_table, table, versions
from pt2kit.messages import count_text
from pt2kit.operators.table import describe, overloads
from pt2kit.schema import LOG
from pt2kit.schema.fieldtable import Table, frozen_table

_WORDS = MappingProxyType({Level.MAJOR: "major", Level.MINOR: "minor", Level.NONE: "free"})

_FACTS = ("result_rule", "flops", "writes", "aliases", "nondeterministic_seeded", "core", "requires", "refused")
_MARKS = MappingProxyType({"result_rule": "rule", "nondeterministic_seeded": "random", "requires": "validated"})
"""Facts and tags of an overload that the list of all shows, and the marks of those that are called otherwise there."""


def operators_result(name: str | None, release: str) -> Result:
    """Return one row of the table, or all.

    Args:
        name: the overload; None for all of them.
        release: the release of torch; "" for the newest.

    Raises:
        OperatorError: no such overload.
        VersionError: no such release.
    """
    if name is not None:
        row = describe(name, release)
        return Result(_operator_lines(row), lambda: row)
    rows = list(overloads(release))
    return Result(_overload_lines(rows), lambda: rows)


def _operator_lines(row: dict[str, Any]) -> Iterator[str]:
    yield row["schema"]
    first, last = row["releases"][0], row["releases"][-1]
    yield f"  releases      torch {first} to {last}" if first != last else f"  releases      torch {first}"
    yield f"  tags          {', '.join(row['tags']) or 'none'}"
    shares = [f"result {one['result']} and {one['parameter']} ({one['certainty']})" for one in row["aliases"]]
    yield f"  aliases       {', '.join(shares) or 'none'}"
    yield f"  writes        {', '.join(row['writes']) or 'nothing'}"
    yield f"  result rule   {'yes' if row['result_rule'] else 'no'}"
    yield f"  FLOPs         {'counted' if row['flops'] else 'not counted'}"
    if row["shown"]:
        yield f"  shown         {', '.join(row['shown'])}"
    if row["requires"]:
        yield f"  requires      validated arguments: {row['requires']}"
    if row["refused"]:
        yield f"  refused       {row['refused']}"


def _overload_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        marks = [_MARKS.get(fact, fact) for fact in _FACTS if row.get(fact) or fact in row["tags"]]
        yield f"{row['name']:{width}}  {' '.join(marks)}".rstrip()
    with_rules = sum(row["result_rule"] for row in rows)
    yield f"{count_text(len(rows), 'overload')} of torch {rows[0]['release']}, {with_rules:,} with a result rule"


@dataclass(frozen=True, slots=True)
class Options(ResultOptions):
    """Options of `pt2 schema`."""

    format: str | None = option("Print the definition in this language.", type=click.Choice(list(FORMATS)))
    version: str | None = option("Which version to print; the current one by default.", "V")
    check: tuple[str, str] | None = option(
        "List what changed between two versions, or field tables in files, and what number that demands.", "OLD NEW"
    )
    what: str | None = argument("[operators]", type=click.Choice(["operators"]))
    name: str | None = argument("[NAME]", type=None)
    release: str | None = option("With operators: the release of torch; the newest by default.", "R")


def run(options: Options) -> int:
    """Print the schema of the format in any version for other languages, compare two versions, or list operators.

    Examples:
      pt2 schema                                      every version, and which torch writes it
      pt2 schema --format proto > schema.proto        the current version for Protocol Buffers
      pt2 schema --format cpp --version 8.6           an older one as a C++ header
      pt2 schema --check 8.17 8.20                    the changes, and whether the number fits them
      pt2 schema --check 8.20 current                 the same for the classes of this build
      pt2 schema --check 8.20 my-schema.yaml          the same for a table in a file
      pt2 schema operators --release 2.9              the operators of a release of torch
      pt2 schema operators aten.permute.default       all that is known of one overload

    Exit codes: 0 fine, 1 the new version number does not fit the changes, 2 could not be read.
    """
    form, version, compared = options.format, options.version, options.check
    if options.what is not None:
        if form is not None or version is not None or compared is not None:
            raise click.UsageError("expected operators with --release and --json only")
        return print_result(operators_result(options.name, options.release or ""), options.as_json)
    if options.release is not None:
        raise click.UsageError("expected --release with operators, got it alone")
    if form is not None and (compared is not None or options.as_json):
        raise click.UsageError("expected --format alone or with --version, got it with --check or --json")
    if version is not None and form is None:
        raise click.UsageError("expected --version with --format, got it alone")
    if form is not None:
        click.echo(emit(table(version), form), nl=False)
        return 0
    if compared is None:
        return print_result(_versions(), options.as_json)
    found = verdict(_table(compared[0]), _table(compared[1]))
    return print_result(Result(_lines(found), lambda: _row(found), int(not found.agrees)), options.as_json)


def _table(given: str) -> Table:
    """Return the frozen table of a version, the table of the classes, or the table in a file."""
    if given == "current":
        return current_table()
    if given in versions():
        return frozen_table(given)
    path = Path(given)
    if not path.exists():
        raise Refusal(f"--check: expected a file, current, or one of {', '.join(versions())}, got {given}")
    return read_table(path)


def _row(found: Verdict) -> dict[str, Any]:
    return {
        "old": found.old,
        "new": found.new,
        "demanded": found.demanded.name.lower(),
        "chosen": None if found.chosen is None else found.chosen.name.lower(),
        "least": found.least,
        "agrees": found.agrees,
        "exception": found.exception,
        "changes": [
            {"rule": each.rule, "level": each.level.name.lower(), "where": each.where, "what": each.what}
            for each in found.changes
        ],
    }


def _lines(found: Verdict) -> Iterator[str]:
    for level in sorted(Level, reverse=True):
        chosen = [change for change in found.changes if change.level is level]
        if chosen:
            yield f"{_WORDS[level]} ({len(chosen)})"
            yield from (f"  {change}" for change in chosen)
    if not found.changes:
        yield "no changes"
    yield _conclusion(found)


def _conclusion(found: Verdict) -> str:
    demand = f"expected at least {found.least}" if found.least else f"expected a {_WORDS[found.demanded]} step"
    if found.chosen is None:
        return f"{demand}; no two numbers to compare"
    got = f"got {found.old} -> {found.new}"
    if found.agrees:
        return f"{demand}, {got}: as it must be"
    what = "more than needed" if found.chosen > found.demanded else "not enough"
    return f"{demand}, {got}: {what}{f'. {found.exception}' if found.exception else ''}"


def _versions() -> Result:
    width = max(len(", ".join(each.releases)) for each in LOG)
    return Result(
        [f"{each.number:<5} torch {', '.join(each.releases) or '-':<{width}}  {each.note}" for each in LOG],
        lambda: [{"version": each.number, "releases": each.releases, "note": each.note} for each in LOG],
    )
