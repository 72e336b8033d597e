"""Operator schemas of every release of torch, from a table that ships with the package; no torch.

`history/operators.txt` is one table of all releases: its first line names them, a line "@ 2.1-2.4 2.6" lists the
releases of the lines below it, up to the next. A line is the text of an operator's schema as torch prints it, the name
of a higher-order operator ("higher_order::cond"), or that of a Python function that programs call ("_operator.add").
`tools/operator_schemas.py` writes it from installations of the releases.

    operators_of("2.6")["aten.add.Tensor"]     the text of one schema
    find_operator("aten.add.Tensor", "2.6")    the same, parsed
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from pt2kit.errors import VersionError
from pt2kit.schema.operator_text import Operator, operator_name, parse_operator
from pt2kit.schema.versions import LOG

RELEASES: Final = tuple(release for version in LOG for release in version.releases)
"""The releases of torch, oldest first. The table has them all once `tools/operator_schemas.py` has seen the newest."""

COMPLETE: Final = frozenset(("aten", "prim", "prims"))
"""The namespaces that every build of a release registers whole; others depend on the build and on what is imported."""

_DIGITS: Final = 9
"""Digits of one part of a release; a longer one is no number that a release has."""
_HIGHER_ORDER: Final = "higher_order::"


@dataclass(frozen=True, slots=True)
class ReleaseOperators:
    """Operators that one release registers.

    Args:
        schemas: "aten.add.Tensor" -> the text of its schema.
        higher_order: the names of the operators that take subgraphs ("cond").
        functions: the Python functions that a program may call ("_operator.add", "torch.sym_max").
    """

    schemas: Mapping[str, str]
    higher_order: frozenset[str]
    functions: frozenset[str]


def known_releases() -> tuple[str, ...]:
    """Return the releases that the table has, oldest first."""
    return _table().releases


def nearest(release: str) -> str:
    """Return the release of the table for programs of a release: itself, the next newer one, or the newest.

    Args:
        release: "2.6"; "" or any other text if it is not known.
    """
    known = known_releases()
    if release in known:
        return release
    order = _order(release)
    return next((one for one in known if order and _order(one) > order), known[-1])


def _order(release: str) -> tuple[int, ...]:
    return tuple(
        int(part) for part in release.split(".") if len(part) <= _DIGITS and part.isascii() and part.isdecimal()
    )


def operators_of(release: str) -> Mapping[str, str]:
    """Return the schemas of one release ("2.6") as texts, by overload name ("aten.add.Tensor").

    Raises:
        VersionError: a release that is missing in the table.

    Cost: some 10 ms for the first call with a release; nothing for the next.
    """
    return release_operators(release).schemas


def find_operator(name: str, release: str) -> Operator | None:
    """Return the parsed schema of one overload; None if the release has none of that name.

    Args:
        name: "aten.add.Tensor", without "torch.ops.".
        release: "2.6".

    Raises:
        VersionError: a release that is missing in the table.
    """
    text = operators_of(release).get(name)
    return None if text is None else parse_operator(text)


# Files of the package never change; a release is read on access.
@functools.cache
def release_operators(release: str) -> ReleaseOperators:
    """Return everything that one release registers.

    Raises:
        VersionError: a release that is missing in the table.
    """
    table = _table()
    if release not in table.releases:
        known = ", ".join(table.releases)
        raise VersionError(f"operators: expected a release of torch that the table has ({known}), got {release!r}")
    lines = [line for spans, group in table.groups if release in spans for line in group]
    schemas = {operator_name(line): line for line in lines if "(" in line}
    higher_order = (line.removeprefix(_HIGHER_ORDER) for line in lines if line.startswith(_HIGHER_ORDER))
    functions = (line for line in lines if "::" not in line)
    return ReleaseOperators(MappingProxyType(schemas), frozenset(higher_order), frozenset(functions))


@dataclass(frozen=True, slots=True)
class _Table:
    """The file: its releases, and lines by the releases that have them."""

    releases: tuple[str, ...]
    groups: tuple[tuple[frozenset[str], tuple[str, ...]], ...]


@functools.cache
def _table() -> _Table:
    text = (files("pt2kit.schema") / "history" / "operators.txt").read_text(encoding="utf-8")
    head, *parts = text.split("\n@ ")
    releases = tuple(head.split())
    groups = []
    for part in parts:
        spans, *lines = part.splitlines()
        groups.append((releases_in(spans, releases), tuple(lines)))
    return _Table(releases, tuple(groups))


def releases_in(spans: str, releases: tuple[str, ...]) -> frozenset[str]:
    """Return the releases of a text of spans, such as "2.1-2.4 2.6".

    Args:
        spans: single releases, and first and last releases of spans, with spaces between them.
        releases: all releases of the table, oldest first.
    """
    named: set[str] = set()
    for span in spans.split():
        first, _, last = span.partition("-")
        named.update(releases[releases.index(first) : releases.index(last or first) + 1])
    return frozenset(named)
