"""Read a `torch.save` file as plain values and descriptions of tensors. Nothing from the file is run or imported.

A payload is a zip inside a record of the archive::

    <root>/data.pkl        a pickle stream; tensors refer to storages by persistent ids
    <root>/data/<key>      one storage's bytes
    <root>/byteorder       "little" or "big" (from torch 2.1 on)
    <root>/version, .format_version, .storage_alignment, .data/serialization_id    not needed to read it

The stream is read twice. First `scan` collects the globals it refers to, and everything outside the allow-list of
`allowed_globals` is refused by name, all names together. Then `builder` makes the values, and `value_limits` checks
that they can be traversed. Storages are views into the payload, read on access.

Not read, but named: files of torch before 1.6 and of `_use_new_zipfile_serialization=False`, tar files, bare pickles,
TorchScript archives, TorchBind objects, payloads of big-endian machines.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from pt2kit.messages import printable
from pt2kit.pickles.allowed_globals import is_plain
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS, Budget, PickleLimits
from pt2kit.pickles.builder import StorageRecord, build
from pt2kit.pickles.container import (
    check_byteorder,
    is_zip,
    open_payload,
    read_stream,
    refuse_other,
    scan_other,
)
from pt2kit.pickles.scan import Uses, refusal, scan
from pt2kit.pickles.value_limits import check_tree

__all__ = ["DEFAULT_PICKLE_LIMITS", "PickleLimits", "globals_in", "is_plain", "read_payload"]


def read_payload(
    data: bytes | memoryview,
    where: str,
    *,
    limits: PickleLimits = DEFAULT_PICKLE_LIMITS,
    trust: Set[str] = frozenset(),
) -> Any:
    """Read a torch.save payload as data.

    Args:
        data: the payload's bytes; storages of the result are views into them if the record is stored.
        where: the record's name, for messages.
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

    def storage(key: str) -> StorageRecord:
        name = f"{root}/data/{key}"
        record = archive.records.get(name)
        if record is None:
            raise budget.error(f"storage '{printable(key)}'", f"a record {printable(name)}", "none")
        return StorageRecord(record.size, lambda: archive.read(name))

    value = build(stream, budget, storage, uses.named_tuples(), trust)
    if stray := check_tree(budget, value, lambda path: is_plain(path) or path in trust):
        raise refusal(where, stray)
    return value


def globals_in(
    data: bytes | memoryview, where: str, *, limits: PickleLimits = DEFAULT_PICKLE_LIMITS
) -> tuple[str, ...]:
    """List every global that unpickling a payload would look up, sorted; nothing is made of them.

    Bare pickles and the files of torch before 1.6 are scanned too, as torch would unpickle them. Of a stream
    that breaks off after a global outside the allow-list, the globals up to there are listed: unpickling would have
    used them.

    Args:
        data: the payload's bytes, a torch.save zip or a pickle.
        where: the record's name, for messages.
        limits: the limits of scanning it.

    Raises:
        UnsupportedError: a tar file or a TorchScript archive.
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
    return tuple(sorted(uses.seen))
