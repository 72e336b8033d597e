"""Schemas and tags of operators by release of torch, from the tables that are part of the package; no torch.

A program of a release that the table of schemas (`schema.operators`) lacks, newer or unknown, is compared with the
release next to it.

Tags are those of torch.Tag: random, core, pointwise, data-dependent output, … `data/tags.txt` is generated from
installations of the releases (`tools/operator_tags.py`). Its first line names the releases; a line "@
nondeterministic_seeded 2.1-2.4 2.6" names a tag and the releases in which the overloads below have it; a line "aten.add
Tensor Scalar" names overloads of one operator.

    tags_of("aten.bernoulli.p", "2.13")     {"core", "nondeterministic_seeded", …}
    is_random("aten.bernoulli.p")           True
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pt2kit.errors import VersionError
from pt2kit.messages import listed, suggestion
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import (
    Operator,
    ReleaseOperators,
    find_operator,
    known_releases,
    nearest,
    read_groups,
    release_operators,
    releases_in,
)
from pt2kit.versions.operator_calls import FLASH_CPU

_LISTED: Final = 8
"""Overloads that a message lists."""

RAISED: Final = frozenset((FLASH_CPU.removeprefix(OPS),))
"""Operators that replace others when a program of an older release is upgraded to the current version."""


def is_known(release: str) -> bool:
    """Return whether the table has the operators of a release."""
    return release in known_releases()


def operators(release: str) -> ReleaseOperators:
    """Return the operators of the release that represents `release`."""
    return release_operators(nearest(release))


def find(target: str, release: str) -> Operator | None:
    """Return the schema of an operator ("torch.ops.aten.add.Tensor"); None if the release has none of that name.

    Args:
        target: what a node calls.
        release: of the program ("2.2").
    """
    name = target.removeprefix(OPS)
    found = find_operator(name, nearest(release))
    return find_operator(name, known_releases()[-1]) if found is None and name in RAISED else found


def releases_with(target: str) -> tuple[str, ...]:
    """Return the releases of the table that have an operator, or a higher-order operator, oldest first."""
    name = target.removeprefix(OPS)
    higher_order = name.removeprefix("higher_order.")
    return tuple(
        release
        for release in known_releases()
        if name in (registered := release_operators(release)).schemas
        or (higher_order != name and higher_order in registered.higher_order)
    )


def similar(name: str, known: Collection[str]) -> str:
    """Return what exists in place of an operator that does not, as the end of a message; "" if nothing is close.

    Args:
        name: "aten.rellu.default"; the overload may be missing, the namespace too.
        known: the overloads that exist.
    """
    stem = ".".join(name.split(".")[:2])
    inside = [one for one in known if f"{one.partition('.')[2]}.".startswith(f"{stem}.")]
    if overloads := [one for one in known if one.startswith(f"{stem}.")] or inside:
        return f"; there is {listed(overloads, _LISTED)}"
    return suggestion(stem, sorted({one.rpartition(".")[0] for one in known}))


@functools.cache
def namespaces() -> frozenset[str]:
    """Return the namespaces in which some release of the table registers operators."""
    return frozenset(
        name.partition(".")[0] for release in known_releases() for name in release_operators(release).schemas
    )


RANDOM: Final = "nondeterministic_seeded"
CORE: Final = "core"
DATA_DEPENDENT: Final = "data_dependent_output"
INPLACE_VIEW: Final = "inplace_view"


def tagged_releases() -> tuple[str, ...]:
    """Return the releases whose tags are known, oldest first."""
    return _table()[0]


def tags_of(name: str, release: str) -> frozenset[str]:
    """Return the tags of an overload in one release; empty if it has none or the release has no such overload.

    Args:
        name: "aten.add.Tensor", without "torch.ops.".
        release: "2.6".

    Raises:
        VersionError: the tags of this release are not known.

    Cost: a few ms for the first call with a release, none for the next.
    """
    return frozenset(tag for tag in _table()[1] if name in overloads_with(tag, release))


@functools.cache
def overloads_with(tag: str, release: str | None = None) -> frozenset[str]:
    """Return the names of the overloads that have a tag.

    Args:
        tag: as torch.Tag names it ("pointwise").
        release: "2.6"; None for every overload that has the tag in any release.

    Raises:
        VersionError: the tags of this release are not known.
    """
    known, groups = _table()
    if release not in (None, *known):
        raise VersionError(f"operators: expected a release whose tags are known ({', '.join(known)}), got {release!r}")
    lines = [line for having, lines in groups.get(tag, ()) if release in (None, *having) for line in lines]
    return frozenset(f"{base}.{name}" for base, *names in map(str.split, lines) for name in names)


def is_random(name: str) -> bool:
    """Return whether an overload draws random numbers, so that two equal calls may return different results.

    An overload that draws does so in each release, but its tag may be younger: torch 2.5 was the first to tag
    `prims.normal`. So an overload is random in every release if torch tags it in any.
    """
    return name in overloads_with(RANDOM)


# The file is part of the package and never changes.
@functools.cache
def _table() -> tuple[tuple[str, ...], Mapping[str, Sequence[tuple[frozenset[str], tuple[str, ...]]]]]:
    """Return the releases whose tags are known, and for each tag the releases and lines of its groups of overloads."""
    releases, groups = read_groups("operators/data/tags.txt")
    found: dict[str, list[tuple[frozenset[str], tuple[str, ...]]]] = {}
    for first, lines in groups:
        tag, _, spans = first.partition(" ")
        found.setdefault(tag, []).append((releases_in(spans, releases), lines))
    return releases, found
