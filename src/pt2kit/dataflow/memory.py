"""Memory that values share, and which operators alias or write their arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from pt2kit.operators.aliasing import aliases, written
from pt2kit.operators.table import PREFIX
from pt2kit.schema.operators import nearest


class Effects(NamedTuple):
    """Effects of an operator on memory.

    Args:
        written: the parameters that it writes.
        aliases: which result may share memory with which parameter.
    """

    written: tuple[str, ...] = ()
    aliases: tuple[tuple[int, str], ...] = ()


class Memory:
    """A storage that values share; two that turn out to be one are joined."""

    __slots__ = ("_joined", "holders")

    def __init__(self) -> None:
        self.holders: list[Any] = []
        self._joined: Memory | None = None

    def root(self) -> Memory:
        """Return the memory that this one was joined into, or itself."""
        memory = self
        while memory._joined is not None:
            memory = memory._joined
        return memory

    def joined(self, other: Memory) -> Memory:
        """Merge two memories, and return the result."""
        one, two = self.root(), other.root()
        if one is not two:
            one.holders += two.holders
            two._joined = one
        return one


# A pure function of the tables of the package.
@lru_cache(maxsize=4096)
def effects_of(target: str, release: str) -> Effects:
    """Return what an operator writes and aliases: as its schema declares, and as it was measured.

    Args:
        target: what a node calls.
        release: the release of torch that it is called in.
    """
    release = nearest(release)
    name = target.removeprefix(PREFIX)
    if name == target:
        return Effects()
    return Effects(
        tuple(sorted(written(name, release))),
        tuple(sorted({(entry[0], entry[1]) for entry in aliases(name, release)})),
    )
