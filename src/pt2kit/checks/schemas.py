"""The operators of the release that a program is of -> their schemas, from the table that ships; no torch.

The table (`schema.operators`) has the releases of torch. A program of another one, newer or unknown, is held against
the release next to it, and what does not fit weighs less.
"""

from __future__ import annotations

import functools
from typing import Final

from pt2kit.schema.operator_text import Operator, parse_operator
from pt2kit.schema.operators import COMPLETE as COMPLETE
from pt2kit.schema.operators import ReleaseOperators, known_releases, release_operators
from pt2kit.versions.line.attention import FLASH_CPU

_TARGET: Final = "torch.ops."

RAISED: Final = frozenset((FLASH_CPU.removeprefix(_TARGET),))
"""Operators that a program of an older release gets in the place of others when it is raised to the current version."""


def nearest(release: str) -> str:
    """The release of the table that programs of a release are held against: itself, the next newer one, or the newest.

    Args:
        release: "2.6"; "" where it is not known.
    """
    known = known_releases()
    if release in known or not release:
        return release or known[-1]
    newer = (one for one in known if _order(one) > _order(release))
    return next(newer, known[-1])


def is_known(release: str) -> bool:
    """Whether the table has the operators of a release."""
    return release in known_releases()


def operators(release: str) -> ReleaseOperators:
    """What the release that stands for `release` registers."""
    return release_operators(nearest(release))


def find(target: str, release: str) -> Operator | None:
    """The schema of an operator ("torch.ops.aten.add.Tensor"); None where the release has none of that name.

    Args:
        target: what a node calls.
        release: of the program ("2.2").
    """
    name = target.removeprefix(_TARGET)
    text = operators(release).schemas.get(name)
    if text is None and name in RAISED:
        text = release_operators(known_releases()[-1]).schemas.get(name)
    return None if text is None else parse_operator(text)


def releases_with(target: str) -> tuple[str, ...]:
    """The releases of the table that have an operator, or a higher-order operator, oldest first."""
    name = target.removeprefix(_TARGET)
    higher_order = name.removeprefix("higher_order.")
    return tuple(
        release
        for release in known_releases()
        if name in (registered := release_operators(release)).schemas
        or (higher_order != name and higher_order in registered.higher_order)
    )


@functools.cache
def namespaces() -> frozenset[str]:
    """The namespaces that some release of the table registers operators in."""
    return frozenset(
        name.partition(".")[0] for release in known_releases() for name in release_operators(release).schemas
    )


def _order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdecimal())
