"""What a conversion has to say and to carry: changes, losses, blocked places, and values that live beside the tree.

One `Ledger` goes through all steps of one conversion. It is the only thing that a step changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pt2kit.codec import path_text
from pt2kit.codec.text import Path
from pt2kit.errors import ConversionError

Kind = Literal["changed", "lost", "blocked"]

_SHOWN: Final = 10

HARMLESS: Final = frozenset(
    {
        "assumptions",
        "equality_constraints",
        "forward_arg_names",
        "graph_metadata",
        "guards_code",
        "hints",
        "input_names",
        "namedtuple_fields",
        "node_names",
        "source_fn_stack",
        "torch_version",
    }
)
"""Losses that change neither what a program computes nor which inputs the older torch accepts: provenance, names that
the older reader makes up anew, and what it works out from the rest. `docs/compatibility.md` has a line for each."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that a conversion did or could not do, in all its places.

    Args:
        kind: "changed" keeps the meaning, "lost" does not, "blocked" means that there is no result.
        name: what the caller allows to be lost ("guards_code"); "" for the other kinds.
        message: what, in words.
        since: the version that brought what is lost or blocked ("8.14"); "" where that says nothing.
        places: the first ten paths.
        count: how many places there are.
    """

    kind: Kind
    name: str
    message: str
    since: str
    places: tuple[str, ...]
    count: int

    def __str__(self) -> str:
        more = f" and {self.count - len(self.places)} more" if self.count > len(self.places) else ""
        since = f" (since {self.since})" if self.since else ""
        return f"{', '.join(self.places)}{more}: {self.message}{since}"


class Ledger:
    """Collects notes, and holds what a step needs or finds that has no place in the tree.

    Args:
        where: the record's name, for messages.
        constants: for lowering: name -> bytes of the constants that the target writes into the program, as torch.save
            wrote them.
        namedtuples: for raising: class name -> name under which it is registered today ("NT" -> "corpus.NT").
    """

    def __init__(
        self,
        where: str,
        *,
        constants: Mapping[str, bytes] | None = None,
        namedtuples: Mapping[str, str] | None = None,
    ) -> None:
        self.where = where
        self.constants: dict[str, bytes] = dict(constants or {})
        self.namedtuples: Mapping[str, str] = dict(namedtuples or {})
        self.namedtuple_fields: dict[str, list[str]] = {}
        self._places: dict[tuple[Kind, str, str, str], list[str]] = {}
        self._counts: dict[tuple[Kind, str, str, str], int] = {}

    def changed(self, message: str, path: Path = ()) -> None:
        """Note a change that keeps the meaning."""
        self._add("changed", "", message, "", path)

    def lost(self, name: str, message: str, path: Path, since: str) -> None:
        """Note that something is dropped; the caller of the conversion must have allowed it by its name."""
        self._add("lost", name, message, since, path)

    def blocked(self, message: str, path: Path, since: str) -> None:
        """Note that the target cannot express something."""
        self._add("blocked", "", message, since, path)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Everything noted so far, in order, equal notes joined."""
        return tuple(Note(*key, tuple(self._places[key]), count) for key, count in self._counts.items())

    def place(self, path: Path) -> str:
        """A path with its record, for errors: "models/model.json: $.graph_module"."""
        return f"{self.where}: {path_text(path)}"

    def settle(self, target: str, allow: Iterable[str]) -> None:
        """Raise if anything is blocked, or lost without having been allowed.

        Raises:
            ConversionError: all of it, each with its place and the version that brought it (M3).
        """
        allowed = frozenset(allow)
        lines = []
        for note in self.notes:
            if note.kind == "blocked":
                lines.append(str(note))
            elif note.kind == "lost" and note.name not in allowed:
                lines.append(f"{note}; allow {note.name!r} to drop it")
        if lines:
            listed = "".join(f"\n  {line}" for line in lines)
            raise ConversionError(
                f"{self.where}: expected a program that schema {target} can express, got one with:{listed}", rule="M3"
            )

    def _add(self, kind: Kind, name: str, message: str, since: str, path: Path) -> None:
        key = (kind, name, message, since)
        self._counts[key] = self._counts.get(key, 0) + 1
        places = self._places.setdefault(key, [])
        if len(places) < _SHOWN:
            places.append(path_text(path))


Tree = dict[str, Any]
"""A program as JSON's containers, in the canonical form of its version."""
