"""Tags of operator overloads (torch.Tag: random, core, pointwise, data-dependent output, …), by release; no torch.

`data/tags.txt` is generated from installations of the releases (`tools/operator_tags.py`). Its first line names the
releases; a line "@ nondeterministic_seeded 2.1-2.4 2.6" names a tag and the releases in which the overloads below have
it; a line "aten.add Tensor Scalar" names overloads of one operator.

    tags_of("aten.bernoulli.p", "2.13")     {"core", "nondeterministic_seeded", …}
    is_random("aten.bernoulli.p")           True
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pt2kit.errors import VersionError
from pt2kit.schema.operators import read_groups, releases_in

RANDOM: Final = "nondeterministic_seeded"
CORE: Final = "core"
DATA_DEPENDENT: Final = "data_dependent_output"
INPLACE_VIEW: Final = "inplace_view"


def tagged_releases() -> tuple[str, ...]:
    """Return the releases whose tags are known, oldest first."""
    return _table().releases


def tags_of(name: str, release: str) -> frozenset[str]:
    """Return the tags of an overload in one release; empty if it has none or the release has no such overload.

    Args:
        name: "aten.add.Tensor", without "torch.ops.".
        release: "2.6".

    Raises:
        VersionError: the tags of this release are not known.

    Cost: a few ms for the first call with a release, none for the next.
    """
    return _tags_of_release(release).get(name, frozenset())


def overloads_with(tag: str, release: str | None = None) -> frozenset[str]:
    """Return the names of the overloads that have a tag.

    Args:
        tag: as torch.Tag names it ("pointwise").
        release: "2.6"; None for every overload that has the tag in any release.

    Raises:
        VersionError: the tags of this release are not known.
    """
    if release is not None:
        _require(release)
    return _overloads_with(tag, release)


def is_random(name: str) -> bool:
    """Return whether an overload draws random numbers, so that two equal calls may return different results.

    An overload that draws does so in each release, but its tag may be younger: torch 2.5 was the first to tag
    `prims.normal`. So an overload is random in every release if torch tags it in any.
    """
    return name in _overloads_with(RANDOM, None)


@dataclass(frozen=True, slots=True)
class _Group:
    """The overloads that have a tag in the same releases."""

    tag: str
    releases: frozenset[str]
    lines: tuple[str, ...]

    def names(self) -> list[str]:
        return [f"{base}.{name}" for base, *names in map(str.split, self.lines) for name in names]


@dataclass(frozen=True, slots=True)
class _Table:
    releases: tuple[str, ...]
    groups: tuple[_Group, ...]


# The file is part of the package and never changes.
@functools.cache
def _table() -> _Table:
    releases, groups = read_groups("pt2kit.operators", "data/tags.txt")
    heads = [(first.partition(" "), lines) for first, lines in groups]
    return _Table(releases, tuple(_Group(tag, releases_in(spans, releases), lines) for (tag, _, spans), lines in heads))


def _require(release: str) -> None:
    known = _table().releases
    if release not in known:
        raise VersionError(f"operators: expected a release whose tags are known ({', '.join(known)}), got {release!r}")


@functools.cache
def _overloads_with(tag: str, release: str | None) -> frozenset[str]:
    groups = (group for group in _table().groups if group.tag == tag and release in (None, *group.releases))
    return frozenset(name for group in groups for name in group.names())


@functools.cache
def _tags_of_release(release: str) -> Mapping[str, frozenset[str]]:
    _require(release)
    found: dict[str, list[str]] = {}
    for group in _table().groups:
        if release in group.releases:
            for name in group.names():
                found.setdefault(name, []).append(group.tag)
    # A few dozen combinations occur: each becomes one set.
    sets: dict[tuple[str, ...], frozenset[str]] = {}
    combined = {name: sets.setdefault(key := tuple(tags), frozenset(key)) for name, tags in found.items()}
    return MappingProxyType(combined)
