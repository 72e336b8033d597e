"""Schemas of operators by release of torch, from the table that is part of the package (`schema.operators`); no torch.

A program of a release that the table lacks, newer or unknown, is compared with the release next to it.
"""

from __future__ import annotations

import functools
from typing import Final

from pt2kit.schema.names import OPS
from pt2kit.schema.operators import (
    Operator,
    ReleaseOperators,
    known_releases,
    nearest,
    parse_operator,
    release_operators,
)
from pt2kit.versions.operator_calls import FLASH_CPU

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
    text = operators(release).schemas.get(name)
    if text is None and name in RAISED:
        text = release_operators(known_releases()[-1]).schemas.get(name)
    return None if text is None else parse_operator(text)


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


@functools.cache
def namespaces() -> frozenset[str]:
    """Return the namespaces in which some release of the table registers operators."""
    return frozenset(
        name.partition(".")[0] for release in known_releases() for name in release_operators(release).schemas
    )
