"""`pt2 schema operators`: the operator table of a release of torch, or one row of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pt2kit.cli.frame import Result
from pt2kit.operators.catalog import describe, overloads


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
        return Result(_lines(row), lambda: row)
    rows = list(overloads(release))
    return Result(_table(rows), lambda: rows)


def _lines(row: dict[str, Any]) -> Iterator[str]:
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


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        marks = [
            "rule" if row["result_rule"] else "",
            "flops" if row["flops"] else "",
            "writes" if row["writes"] else "",
            "aliases" if row["aliases"] else "",
            "random" if "nondeterministic_seeded" in row["tags"] else "",
            "core" if "core" in row["tags"] else "",
            "validated" if row["requires"] else "",
            "refused" if row["refused"] else "",
        ]
        yield f"{row['name']:{width}}  {' '.join(filter(None, marks))}".rstrip()
    with_rules = sum(row["result_rule"] for row in rows)
    yield f"{len(rows):,} overloads of torch {rows[0]['release']}, {with_rules:,} with a result rule"
