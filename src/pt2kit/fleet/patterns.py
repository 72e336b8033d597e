"""Glob patterns with `*`, `?`, `[…]` and `**`: the fixed prefix, and a matcher that follows names one by one.

Following names, instead of matching whole paths, is what lets a listing leave out folders that hold no match, and what
tells whether anything below a folder could match at all.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

States: TypeAlias = frozenset[int]
"""The parts of a pattern that may come next; its length stands for a match."""

ANY_DEPTH: Final = "**"
_WILD: Final = re.compile(r"[*?\[]")
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern for the part after the fixed prefix.

    Args:
        parts: an expression for each name; None for any number of folders.
    """

    parts: tuple[re.Pattern[str] | None, ...]

    def start(self) -> States:
        """Return the states before the first name."""
        return self._reached((0,))

    def step(self, states: States, name: str) -> States:
        """Return the states after one more name; none if the name does not fit."""
        after = []
        for state in states:
            if state == len(self.parts):
                continue
            part = self.parts[state]
            if part is None:
                after.append(state)
            elif part.fullmatch(name):
                after.append(state + 1)
        return self._reached(after)

    def follow(self, names: Iterable[str]) -> States:
        """Return the states after several names."""
        states = self.start()
        for name in names:
            states = self.step(states, name)
        return states

    def is_match(self, states: States) -> bool:
        """Return whether the names so far match."""
        return len(self.parts) in states

    def goes_on(self, states: States) -> bool:
        """Return whether something in a folder of these names may match."""
        return any(state < len(self.parts) for state in states)

    def is_any_depth(self, states: States) -> bool:
        """Return whether folders of any names may follow, where links could lead in circles."""
        return any(state < len(self.parts) and self.parts[state] is None for state in states)

    def _reached(self, states: Iterable[int]) -> States:
        reached = set()
        for state in states:
            reached.add(state)
            while state < len(self.parts) and self.parts[state] is None:
                state += 1
                reached.add(state)
        return frozenset(reached)


def make_pattern(text: str) -> Pattern:
    """Compile a pattern such as "**/*.pt2", its parts separated by slashes."""
    names = [name for name in text.split("/") if name]
    return Pattern(tuple(None if name == ANY_DEPTH else re.compile(fnmatch.translate(name)) for name in names))


def has_wildcard(target: str) -> bool:
    """Return whether a path or URL is a pattern; in addresses of the web only `*` in the path counts."""
    if _WEB.match(target):
        return "*" in target.partition("?")[0]
    return bool(_WILD.search(target))


def split_pattern(target: str) -> tuple[str, str]:
    """Split a pattern into its fixed prefix and the rest: "s3://b/x/**/*.pt2" -> "s3://b/x", "**/*.pt2".

    The beginning of a relative path may be "", that of an absolute one "/".
    """
    scheme, mark, path = target.rpartition("://")
    names = path.split("/")
    wild = next(number for number, name in enumerate(names) if has_wildcard(f"{scheme}{mark}{name}"))
    root = "/".join(names[:wild])
    if not root and wild and not mark:
        root = "/"
    return f"{scheme}{mark}{root}", "/".join(names[wild:])
