"""Reader of `torch.save` files: plain values and descriptions of tensors. Nothing from the file is run or imported.

A payload is a zip inside a record of the archive::

    <root>/data.pkl        a pickle stream; tensors refer to storages by persistent ids
    <root>/data/<key>      one storage's bytes
    <root>/byteorder       "little" or "big" (from torch 2.1 on)
    <root>/version, .format_version, .storage_alignment, .data/serialization_id    not needed to read it

The stream is read twice. First `scan` collects the globals it refers to, and everything outside the allow-list of
`allowed_globals` is refused by name, all names together. Then `builder` makes the values, and `budget.check_tree`
checks that they can be traversed. Storages are views into the payload, read on access.

Not read, but named, are other kinds of payloads that torch would accept: files of torch before 1.6 and of
`_use_new_zipfile_serialization=False`, tar files, bare pickles, TorchScript archives, TorchBind objects, payloads of
big-endian machines.

`scan` builds nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

from pt2kit.errors import LimitError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.messages import listed, printable
from pt2kit.pickles.allowed_globals import is_plain, name_global
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS, Budget, PickleLimits, check_tree
from pt2kit.pickles.builder import build
from pt2kit.pickles.machine import Hooks
from pt2kit.pickles.opcodes import run
from pt2kit.pickles.values import Global
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.end_record import LOCAL_SIGNATURE
from pt2kit.zip.foreign import LEGACY_MAGIC, identify
from pt2kit.zip.reader import Archive, Storage, open_archive
from pt2kit.zip.source import open_bytes

_LEGACY_PICKLES = 5
_STREAM = "data.pkl"

__all__ = ["DEFAULT_PICKLE_LIMITS", "PickleLimits", "globals_in", "is_plain", "read_payload", "uses_in"]


def is_zip(data: memoryview) -> bool:
    """Return whether torch would open `data` as a zip: by the signature of a local header, at the start alone."""
    return bytes(data[:4]) == LOCAL_SIGNATURE


def open_payload(data: memoryview, where: str) -> tuple[Archive, str]:
    """Open the zip that torch.save wrote.

    Args:
        data: its bytes; not copied.
        where: the record that holds it, for messages.

    Returns:
        the archive and the name of its root folder.

    Raises:
        ArchiveError: a zip that not every reader understands alike.
        PayloadError: not one `data.pkl` under one root folder.
        UnsupportedError: a TorchScript archive.
    """
    archive = open_archive(data, name=where)
    names = archive.records.keys()
    roots = sorted({name.split("/")[0] for name in names})
    for root in roots:
        if f"{root}/constants.pkl" in names or any(name.startswith(f"{root}/code/") for name in names):
            raise UnsupportedError(
                f"{where}: expected a zip of torch.save, got a TorchScript archive (torch.jit.save); it holds code"
            )
    if len(roots) != 1 or f"{roots[0]}/{_STREAM}" not in names:
        shown = ", ".join(printable(name, 60) for name in list(names)[:5]) or "no records"
        raise PayloadError(f"{where}: expected one root folder with {_STREAM}, as torch.save writes, got {shown}")
    return archive, roots[0]


def check_byteorder(archive: Archive, root: str, where: str) -> None:
    """Check that the storages are little-endian; a payload of torch before 2.1 does not state it and counts as such.

    Raises:
        UnsupportedError: they are big-endian.
        PayloadError: neither.
    """
    name = f"{root}/byteorder"
    if name not in archive.records:
        return
    if archive.records[name].size > len("little"):
        raise PayloadError(f"{where}: byteorder: expected little or big, got {archive.records[name].size} bytes")
    order = bytes(archive.read(name))
    if order == b"big":
        raise UnsupportedError(
            f"{where}: byteorder: expected little, got big; load the file with torch and save it again on a "
            "little-endian machine"
        )
    if order != b"little":
        raise PayloadError(f"{where}: byteorder: expected little or big, got {order!r}")


def read_stream(archive: Archive, root: str, where: str, limits: PickleLimits) -> bytes:
    """Read the pickle stream, as a copy.

    Raises:
        LimitError: it is longer than `limits.stream_bytes`.
        ArchiveError: the record is damaged.
    """
    name = f"{root}/{_STREAM}"
    size = archive.records[name].size
    if size > limits.stream_bytes:
        raise LimitError(f"{where}: {_STREAM}: expected at most {limits.stream_bytes} bytes, got {size}")
    return bytes(archive.read(name))


def scan_other(data: memoryview, where: str, limits: PickleLimits, uses: Uses) -> tuple[str, Pt2Error | None]:
    """Scan a payload that is no zip, as torch would unpickle it.

    Args:
        data: the payload.
        where: the record that holds it, for messages.
        limits: bounds on the stream.
        uses: the globals it refers to are added here.

    Returns:
        its kind, in words, and the error that ended the stream too early, if any.

    Raises:
        PayloadError: no pickle either.
    """
    head = bytes(data[:32])
    legacy = head[:1] == b"\x80" and LEGACY_MAGIC in head
    stream = bytes(data[: limits.stream_bytes])
    end, broken = scan(stream, where, limits, 0, uses)
    for _ in range(_LEGACY_PICKLES - 1 if legacy else 0):
        if broken is None:
            end, broken = scan(stream, where, limits, end, uses)
    if broken is not None and not uses.seen and head[:1] != b"\x80":
        got = identify(open_bytes(data)) or head[:8].hex(" ")
        raise PayloadError(f"{where}: expected a zip of torch.save (starting 50 4b 03 04), got {got}")
    if legacy:
        return "a file of the form that torch wrote before 1.6", broken
    return "a bare pickle", broken


def refuse_other(data: memoryview, where: str, limits: PickleLimits, trust: Set[str]) -> UnsupportedError:
    """Return the error that refuses a payload that is no zip, with the globals it refers to.

    Raises:
        PayloadError: no pickle either.
    """
    uses = Uses()
    kind, _ = scan_other(data, where, limits, uses)
    refused = uses.refused(trust)
    rest = f" that refers to {name_paths(refused)}" if refused else "; save its content again with a current torch"
    return UnsupportedError(f"{where}: expected a zip as torch.save writes since 1.6, got {kind}{rest}")


def read_payload(
    data: bytes | memoryview,
    where: str,
    *,
    record: str = "",
    limits: PickleLimits = DEFAULT_PICKLE_LIMITS,
    trust: Set[str] = frozenset(),
) -> Any:
    """Read a torch.save payload as data.

    Args:
        data: the payload's bytes; storages of the result are views into them if the record is stored.
        where: the record's name, for messages.
        record: the name that storages are named after; `where` if empty.
        limits: the limits of the payload's cost.
        trust: globals outside the allow-list ("module.Name") whose use is read into inert `Opaque` descriptions.

    Returns:
        None, bool, int, float, complex, str, bytes, Python's containers, and the types of `pickles.values`. Values
        shared in the payload are shared here. Costs two passes over the stream; no storage is read.

    Raises:
        UnsupportedError: it refers to globals that are not plain data (all are named), or it is another kind of file.
        PayloadError: a malformed stream, contradictory tensor metadata, a value that contains itself.
        ArchiveError: the inner zip is not one that every reader understands alike.
        LimitError: a limit was passed.

    Source: torch/serialization.py (`_load`), releases 1.6 to 2.15.
    """
    view = memoryview(data)
    if not is_zip(view):
        raise refuse_other(view, where, limits, trust)
    archive, root = open_payload(view, where)
    check_byteorder(archive, root, where)
    stream = read_stream(archive, root, where, limits)
    uses = Uses()
    _, broken = scan(stream, where, limits, 0, uses)
    if refused := uses.refused(trust):
        raise refusal(where, refused)
    if broken is not None:
        raise broken
    budget = Budget(where, limits)

    def storage(key: str) -> Storage:
        name = f"{root}/data/{key}"
        if name not in archive.records:
            raise budget.error(f"storage '{printable(key)}'", f"a record {printable(name)}", "none")
        shown = f"{record or where}: storage {show_name(key)}"
        return Storage(shown, archive.records[name].size, lambda: archive.read(name))

    value = build(stream, budget, storage, uses.named_tuples(), trust)
    if stray := check_tree(budget, value, lambda path: is_plain(path) or path in trust):
        raise refusal(where, stray)
    return value


def globals_in(
    data: bytes | memoryview, where: str, *, limits: PickleLimits = DEFAULT_PICKLE_LIMITS
) -> tuple[str, ...]:
    """List every global that unpickling a payload would look up, sorted; arguments and errors are those of
    `uses_in`."""
    return tuple(sorted(uses_in(data, where, limits=limits).seen))


def uses_in(data: bytes | memoryview, where: str, *, limits: PickleLimits = DEFAULT_PICKLE_LIMITS) -> Uses:
    """Return how unpickling a payload would use globals; nothing is made of them.

    Bare pickles and the files of torch before 1.6 are scanned too, as torch would unpickle them. Of a stream
    that breaks off after a global outside the allow-list, the globals up to there are listed: unpickling would have
    used them.

    Args:
        data: the payload's bytes, a torch.save zip or a pickle.
        where: the record's name, for messages.
        limits: the limits of scanning it.

    Raises:
        UnsupportedError: a TorchScript archive.
        PayloadError: neither a zip nor a pickle, or a broken stream.
        ArchiveError: the inner zip is not one that every reader understands alike.
        LimitError: a limit was passed.
    """
    uses = Uses()
    view = memoryview(data)
    if is_zip(view):
        archive, root = open_payload(view, where)
        _, broken = scan(read_stream(archive, root, where, limits), where, limits, 0, uses)
    else:
        _, broken = scan_other(view, where, limits, uses)
    if broken is not None and all(map(is_plain, uses.seen)):
        raise broken
    return uses


_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Uses:
    """Uses of globals in a stream, by `module.name`.

    Args:
        seen: every global referred to.
        shaped: those that some NEWOBJ makes from a tuple of values, as named tuples are made.
        changed: those that are called in any other way, or whose objects get a state or items.
        called: those that are called as functions may be, not only classes.
    """

    seen: set[str] = field(default_factory=set)
    shaped: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)

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
        if not opcode.startswith("NEWOBJ"):
            self.uses.called.add(callee.path)
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
