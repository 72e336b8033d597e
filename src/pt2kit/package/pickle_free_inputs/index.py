"""Sample inputs without a pickle: an index and raw records <-> what `pickles.reader` would have read from a pickle.

    data/sample_inputs/<model>.pt                  empty: torch takes it that there are no sample inputs
    data/sample_inputs/tensor_<i>                  storage number i as raw little-endian bytes
    extra/pt2kit/sample_inputs/<model>.json        which storages there are, and what the inputs are made of

The index is text, as torch reads every extra file as text; the bytes are not under `extra/`, for the same reason.
`sanitizing` writes these records. A pickle that is there counts, and the index beside it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pt2kit import codec
from pt2kit.errors import PayloadError
from pt2kit.package import record_names as names
from pt2kit.package.layout import Layout
from pt2kit.package.pickle_free_inputs.kinds import InputValues, decode_values
from pt2kit.package.pickle_free_inputs.names import index_record, is_path_name, storage_record
from pt2kit.pickles.budget import describe
from pt2kit.pickles.torch_names import ITEM_SIZES
from pt2kit.pickles.values import PickledStorage
from pt2kit.zip.reader import Archive

FORMAT: Final = "pt2kit sample inputs 1"
"""What an index says it is; the number is that of the definition in `docs/sanitize.md`."""


@dataclass(frozen=True, slots=True)
class PickleFreeInputs:
    """Sample inputs as an index has them.

    Args:
        where: the index's record, for messages.
        leaves: their values; tensors are descriptions as `pickles.reader` gives them.
        is_flat: whether `leaves` are the leaves of the program's tree spec, in its order. If not, there is one leaf:
            the pair of arguments and keyword arguments.
        records: names of the records that hold them, the index first.
    """

    where: str
    leaves: tuple[Any, ...]
    is_flat: bool
    records: tuple[str, ...]


def write_index(moved: InputValues, *, is_flat: bool, first: int) -> bytes:
    """The content of an index.

    Args:
        moved: the values, one of them if not `is_flat`.
        is_flat: as in `PickleFreeInputs`.
        first: the number of the first storage's record; the others follow.
    """
    rows = [
        {
            "path_name": storage_record(first + number).rpartition("/")[2],
            "dtype": storage.dtype_name,
            "nbytes": storage.nbytes,
            "device": storage.device,
        }
        for number, storage in enumerate(moved.storages)
    ]
    root: dict[str, Any] = {"leaves": moved.roots} if is_flat else {"value": moved.roots[0]}
    return codec.encode({"format": FORMAT, "storages": rows, "values": moved.values, **root})


def read_pickle_free_inputs(archive: Archive, layout: Layout, model: str) -> PickleFreeInputs | None:
    """Read the sample inputs of a program that has an index of them; None where it has none. Reads no storage.

    Raises:
        JsonError: an index that is no JSON.
        PayloadError: one of another form, a storage without its record, values that contradict their storages.
        ArchiveError, UnsupportedError, LimitError: it cannot be read.
    """
    where = index_record(model)
    full = layout.record(where)
    if full not in archive.records:
        return None
    tree = codec.parse(archive.read(full), where)
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        got = tree.get("format") if isinstance(tree, dict) else tree
        raise PayloadError(f"{where}: format: expected {FORMAT!r}, got {describe(got)}")
    is_flat = "leaves" in tree
    if tree.keys() != {"format", "storages", "values", "leaves" if is_flat else "value"}:
        raise PayloadError(
            f"{where}: expected the keys format, storages, values and one of value and leaves, got "
            f"{', '.join(sorted(map(ascii, tree)))[:200]}"
        )
    rows, roots = tree["storages"], tree["leaves"] if is_flat else [tree["value"]]
    for name, entries in (("storages", rows), ("leaves", roots)):
        if not isinstance(entries, list):
            raise PayloadError(f"{where}: {name}: expected a list, got {describe(entries)}")
    storages = [_storage(row, archive, layout, f"{where}: storages[{number}]") for number, row in enumerate(rows)]
    records = dict.fromkeys((where, *(names.SAMPLE_INPUTS + storage.key for storage in storages)))
    return PickleFreeInputs(
        where, tuple(decode_values(tree["values"], roots, storages, where)), is_flat, tuple(records)
    )


def _storage(row: Any, archive: Archive, layout: Layout, where: str) -> PickledStorage:
    match row:
        case {"path_name": str(path_name), "dtype": str(dtype), "nbytes": int(nbytes), "device": str(device)} if (
            len(row) == 4 and dtype in ITEM_SIZES
        ):
            pass
        case _:
            raise PayloadError(f"{where}: expected path_name, dtype, nbytes and device, got {describe(row)}")
    if not is_path_name(path_name):
        raise PayloadError(f"{where}: path_name: expected a name such as 'tensor_0', got {path_name[:80]!a}")
    record = layout.record(names.SAMPLE_INPUTS + path_name)
    entry = archive.records.get(record)
    if entry is None or entry.size != nbytes:
        got = "none of that name" if entry is None else f"{entry.size} bytes"
        raise PayloadError(f"{where}: expected a record {record} of {nbytes} bytes, got {got}")
    return PickledStorage(path_name, dtype, nbytes, device, partial(archive.read, record))
