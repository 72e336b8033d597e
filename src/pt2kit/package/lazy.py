"""Names known at once -> values computed when they are first asked for, then kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

V = TypeVar("V")


class Lazy(Mapping[str, V]):
    """A read-only mapping that computes its values. Safe to use from several threads.

    Args:
        names: the keys, in order.
        compute: key -> value; what it raises comes through, and nothing is kept then.
    """

    def __init__(self, names: tuple[str, ...], compute: Callable[[str], V]) -> None:
        self._names = dict.fromkeys(names)
        self._compute = compute
        self._kept: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name in self._kept:
            return self._kept[name]
        if name not in self._names:
            raise KeyError(name)
        # Two threads may both compute; the first result is the one everybody gets.
        return self._kept.setdefault(name, self._compute(name))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<Lazy: {', '.join(map(repr, self._names)) or 'empty'}>"
