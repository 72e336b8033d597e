"""The operator table as data: every fact about an overload, for readers in any language.

describe("aten.permute.default", "2.13")     one row: schema, tags, aliasing, writes, rule, FLOPs, requirement
catalog("2.13")                              all overloads of a release, in order of their names
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pt2kit.errors import OperatorError
from pt2kit.operators.aliasing import aliases, is_measured, written
from pt2kit.operators.requirements import find_row
from pt2kit.operators.table import PREFIX, find
from pt2kit.operators.tags import tags_of
from pt2kit.schema.operators import find_operator, known_releases, nearest, operators_of


def describe(name: str, release: str = "") -> dict[str, Any]:
    """Return what is known of one operator overload, as plain data with stable keys.

    Args:
        name: "aten.permute.default"; with or without "torch.ops.".
        release: the release of torch ("2.9"); the newest one that has the overload by default.

    Returns:
        A dict with the keys name, release, releases, schema, tags, aliases, writes, measured, result_rule, flops,
        shown, requires and refused.

    Raises:
        OperatorError: no such overload in that release.
        VersionError: no release that the table has.
    """
    name = name.removeprefix(PREFIX).replace("::", ".")
    releases = [one for one in known_releases() if name in operators_of(one)]
    release = release or (releases[-1] if releases else nearest(""))
    text = operators_of(release).get(name)
    if text is None:
        where = f"; torch {releases[0]} to {releases[-1]} has it" if releases else ""
        raise OperatorError(
            f"{name[:80]}: expected an operator overload of torch {release}, got none of that name{where}"
        )
    row, kernel = find(name), find_row(f"{PREFIX}{name}")
    return {
        "name": name,
        "release": release,
        "releases": releases,
        "schema": text,
        "tags": sorted(tags_of(name, release)),
        "aliases": [
            {"result": alias.result, "parameter": alias.parameter, "certainty": alias.certainty}
            for alias in aliases(name, release)
        ],
        "writes": sorted(written(name, release)),
        "measured": is_measured(name),
        "result_rule": row is not None and row.rule is not None,
        "flops": row is not None and row.flops is not None,
        "shown": list(row.shown) if row is not None else [],
        "requires": kernel.requires or None if kernel is not None else None,
        "refused": kernel.reason if kernel is not None and not kernel.requires and not kernel.kept else None,
    }


def overloads(release: str = "") -> Iterator[dict[str, Any]]:
    """Iterate the rows of all overloads of a release, in order of their names.

    Args:
        release: "2.9"; the newest one by default.

    Raises:
        VersionError: no release that the table has.
    """
    release = release or nearest("")
    for name in sorted(operators_of(release)):
        if find_operator(name, release) is not None:
            yield describe(name, release)
