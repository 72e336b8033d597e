"""Scan a pickle stream for the globals it refers to and their uses, without building anything."""

from __future__ import annotations

import sys
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

from pt2kit.errors import Pt2Error, UnsupportedError
from pt2kit.messages import listed, printable
from pt2kit.pickles.allowed_globals import is_plain, name_global
from pt2kit.pickles.budget import PickleLimits
from pt2kit.pickles.machine import Hooks
from pt2kit.pickles.opcodes import run
from pt2kit.pickles.values import Global

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Uses:
    """Uses of globals in a stream, by `module.name`.

    Args:
        seen: every global referred to.
        shaped: those that some NEWOBJ makes from a tuple of values, as named tuples are made.
        changed: those that are called in any other way, or whose objects get a state or items.
    """

    seen: set[str] = field(default_factory=set)
    shaped: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)

    def named_tuples(self) -> frozenset[str]:
        """Return the classes outside the allow-list that are only ever made as named tuples are.

        Python's own modules have none that a program would pass around, and many functions; they are left out.
        """
        return frozenset(
            path
            for path in self.shaped - self.changed
            if not is_plain(path) and path.split(".")[0] not in sys.stdlib_module_names
        )

    def refused(self, trust: Set[str]) -> list[str]:
        """Return the globals that reading the stream as data would need but that are not allowed, sorted."""
        allowed = self.named_tuples() | trust
        return sorted(path for path in self.seen if not is_plain(path) and path not in allowed)


@dataclass(frozen=True, slots=True)
class _Made:
    """Placeholder for the result of a call while scanning."""

    path: str = ""


class _Scanner(Hooks):
    """Hooks that build nothing; globals and their uses are added to `uses`."""

    def __init__(self, uses: Uses) -> None:
        self.uses = uses

    def find(self, module: str, name: str) -> Global:
        reference = name_global(module, name)
        self.uses.seen.add(reference.path)
        return reference

    def call(self, callee: Any, args: tuple[Any, ...], kwargs: dict[Any, Any], opcode: str) -> _Made:
        if not isinstance(callee, Global):
            return _Made()
        (self.uses.shaped if opcode == "NEWOBJ" and args else self.uses.changed).add(callee.path)
        return _Made(callee.path)

    def build(self, target: Any, state: Any) -> None:
        if isinstance(target, _Made):
            self.uses.changed.add(target.path)

    extend = update = add = build

    def persistent(self, persistent_id: Any) -> _Made:
        return _Made()

    freeze = persistent


def scan(stream: bytes, where: str, limits: PickleLimits, start: int, uses: Uses) -> tuple[int, Pt2Error | None]:
    """Add the globals of one pickle to `uses`.

    Args:
        stream: the pickle, possibly followed by more bytes.
        where: the record, for messages.
        limits: bounds on the stream.
        start: index of the pickle's first byte.
        uses: the found globals are added here, also if the stream then turns out to be broken: unpickling it would have
            used those globals before it came to the break.

    Returns:
        the position after the pickle's STOP, or 0 and the error that ended it.
    """

    try:
        return run(stream, where, _Scanner(uses), limits, start)[1], None
    except Pt2Error as error:
        return 0, error


def name_paths(paths: list[str]) -> str:
    """Return `paths` for a message: made printable, and cut to the first twenty."""
    return listed([_name(path) for path in paths], _SHOWN)


def _name(path: str) -> str:
    torchbind = path == "torch.ScriptObject" or path.startswith("__torch__.")
    return f"{printable(path)} (a TorchBind object)" if torchbind else printable(path)


def refusal(where: str, paths: list[str]) -> UnsupportedError:
    """Return the error that refuses a payload because of `paths`, which are not on the allow-list."""
    return UnsupportedError(
        f"{where}: expected plain data, got a pickle that refers to {name_paths(paths)}; unpickling would import and "
        "run that"
    )
