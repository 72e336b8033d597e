"""Log of a conversion: changes, losses, places that block a downgrade, and values stored outside of the tree.

One `ConversionLog` goes through all steps of one conversion. It is the only thing that a step changes.

Values outside of the tree may be in files next to a program that was not in an archive: `read_folder` reads them, never
outside the program's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final, Literal

from pt2kit.errors import ConversionError, PayloadError
from pt2kit.jsontext import Path, path_text
from pt2kit.pickles.values import PickledTensor
from pt2kit.zip.reader import Storage

Kind = Literal["changed", "lost", "blocked"]

_SHOWN: Final = 10

_HARMLESS: Final = """
argument_kinds assertions assumptions constant_names equality_constraints forward_arg_names graph_metadata guards_code
hints input_names module_calls namedtuple_fields node_names small_sizes source_fn_stack tied torch_version
"""
HARMLESS: Final = frozenset(_HARMLESS.split())
"""Losses that change neither what a program computes nor which inputs the older torch accepts: provenance, names that
the older reader makes up anew, and what it works out from the rest. `docs/compatibility.md` has a line for each."""
_BY_PERMISSION: Final = """
class_fqn compiled_code delegates dialect example_inputs extra_files model_name other_records persistent scan_options
unknown_keys unreadable
"""
BY_PERMISSION: Final = frozenset(_BY_PERMISSION.split())
"""Losses that the caller has to allow by their names."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that a conversion did or could not do, in all its places.

    Args:
        kind: "changed" keeps the meaning, "lost" does not, "blocked" prevents a result.
        name: what the caller allows to be lost ("guards_code"); "" for the other kinds.
        message: a description of the item.
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
        return self.text()

    def text(self, advice: str = "") -> str:
        """Return the reason, an advice, and one of the places."""
        more = f" and {self.count - 1:,} more" if self.count > 1 else ""
        since = f" (since {self.since})" if self.since else ""
        return f"{self.message}{since}{advice}: {self.places[0]}{more}"


def obstacles(notes: Iterable[Note], allow: Iterable[str]) -> list[str]:
    """Return the obstacles of a conversion: a line for each item that is blocked, or lost and not allowed."""
    allowed = frozenset(allow)
    return [
        note.text(f"; allow {note.name!r} to drop it" if note.kind == "lost" else "")
        for note in notes
        if note.kind == "blocked" or (note.kind == "lost" and note.name not in allowed)
    ]


def raise_if_blocked(
    notes: Iterable[Note], where: str, target: str, allow: Iterable[str], *, what: str = "program"
) -> None:
    """Raise if anything is blocked, or lost without being allowed.

    Raises:
        ConversionError: all of it, each with its place and the version that brought it (M3).
    """
    if lines := obstacles(notes, allow):
        listed = "".join(f"\n  {line}" for line in lines)
        raise ConversionError(
            f"{where}: expected a {what} that schema {target} can express, got one with:{listed}", rule="M3"
        )


ReadExternal = Callable[[str, int, int], bytes]
"""(location, offset, length) -> the bytes of a file next to the program."""


@dataclass(frozen=True, slots=True)
class SideInputs:
    """Data outside of a program, for versions that keep it inside.

    Args:
        constants: for schema 1 and the draft: name -> tensor, or the torch.save bytes of one; the bytes of a custom
            object as they are.
        weights: for the draft: name -> tensor, parameters and buffers alike.
        read_external: reads files next to a draft program; `read_folder` returns one.
    """

    constants: Mapping[str, bytes | PickledTensor] = field(default_factory=dict)
    weights: Mapping[str, PickledTensor] = field(default_factory=dict)
    read_external: ReadExternal | None = None


class ConversionLog:
    """Collects notes, and holds what a step needs or finds that has no place in the tree.

    Args:
        where: the record's name, for messages.
        side_inputs: data outside of the program.
        namedtuples: for an upgrade: class name -> name under which it is registered today ("NT" -> "corpus.NT").

    Attributes:
        constants: name -> value of constants that were inside the program (upgrade), or go there (downgrade).
        weights: likewise for the parameters and buffers of the draft.
        namedtuple_fields: registered name -> field names, between the versions that have a place for them.
        graph_metadata: metadata of the graph module, likewise.
        written: storages that were written into the program, each with its element type.
        since: the version that brought what the current step loses: the newer one of a downgrade.
    """

    def __init__(
        self, where: str, *, side_inputs: SideInputs | None = None, namedtuples: Mapping[str, str] | None = None
    ) -> None:
        side_inputs = side_inputs or SideInputs()
        self.where = where
        self.namedtuples: Mapping[str, str] = dict(namedtuples or {})
        self.constants: dict[str, bytes | PickledTensor] = dict(side_inputs.constants)
        self.weights: dict[str, PickledTensor] = dict(side_inputs.weights)
        self.read_external = side_inputs.read_external
        self.namedtuple_fields: dict[str, list[str]] = {}
        self.graph_metadata: dict[str, str] = {}
        self.written: set[tuple[Storage, str]] = set()
        self.since = ""
        self._noted: dict[tuple[Kind, str, str, str], list[Path]] = {}

    def changed(self, message: str, path: Path = ()) -> None:
        """Note a change that keeps the meaning."""
        self._add("changed", "", message, "", path)

    def lost(self, name: str, message: str, path: Path, since: str | None = None) -> None:
        """Note that something is dropped; the caller of the conversion must have allowed it by its name."""
        self._add("lost", name, message, self.since if since is None else since, path)

    def blocked(self, message: str, path: Path, since: str | None = None) -> None:
        """Note that the target cannot express something."""
        self._add("blocked", "", message, self.since if since is None else since, path)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return everything noted so far, in order, equal notes joined."""
        return tuple(
            Note(*key, tuple(map(path_text, paths[:_SHOWN])), len(paths)) for key, paths in self._noted.items()
        )

    def place(self, path: Path) -> str:
        """Return a path with its record, for errors: "models/model.json: $.graph_module"."""
        return f"{self.where}: {path_text(path)}"

    def _add(self, kind: Kind, name: str, message: str, since: str, path: Path) -> None:
        self._noted.setdefault((kind, name, message, since), []).append(path)


Tree = dict[str, Any]
"""A program as JSON's containers, in the canonical form of its version."""


def read_folder(folder: str | FilePath) -> ReadExternal:
    """Return a reader of files in one folder; it refuses to leave it.

    Args:
        folder: the program's folder.
    """
    root = FilePath(folder)

    def read(location: str, offset: int, length: int) -> bytes:
        path = path_below(root, location, repr(location))
        try:
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except OSError as error:
            raise PayloadError(f"{location!r}: expected a readable file, got {error.strerror}") from None

    return read


def path_below(folder: FilePath, location: str, place: str) -> FilePath:
    """Return the path of a file that a program names.

    Args:
        folder: the program's folder.
        location: the path that the program names, with forward slashes.
        place: the location of the name, for messages.

    Raises:
        PayloadError: no relative path, or one that leads out of the folder, by dots or by a link.
    """
    path = folder / check_location(location, place)
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links that go in a circle
        inside = False
    if not inside:
        raise PayloadError(f"{place}: expected a file below {folder.name!r}, got a link that leads out of it")
    return path


def check_location(text: str, place: str) -> str:
    """Return a path in the form that a program may name: relative, with forward slashes, never leading upwards.

    Raises:
        PayloadError: any other.
    """
    parts = text.split("/")
    if not text or "\\" in text or "\0" in text or ":" in parts[0] or any(part in ("", ".", "..") for part in parts):
        raise PayloadError(
            f"{place}: location: expected a relative path inside the program's folder, got {text[:80]!r}"
        )
    return text
