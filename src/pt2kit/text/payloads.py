"""List of a program's payloads (weights and constants), as data and as lines.

Totals of tensors are count, elements and bytes, in all and by element type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pt2kit.messages import count_text, printable
from pt2kit.package.open import Package
from pt2kit.schema import ScalarType
from pt2kit.tensors.compound import MetaView, SubclassView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.view import TensorView
from pt2kit.text.format import bytes_text, dotted, table

if TYPE_CHECKING:
    from pt2kit.tensors.export import AnyView
    from pt2kit.tensors.summary import Statistics

LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Entry:
    """One payload of a program.

    Args:
        name: its name.
        kind: "parameter", "buffer" or "constant"; "pickle", "torchbind" or "opaque" for one that is a pickle.
        payload: the payload.
    """

    name: str
    kind: str
    payload: AnyView


def entries_of(package: Package, model: str, *, constants: bool) -> list[Entry]:
    """List the weights of a program, and with `constants` its constants and buffers that are not persistent.

    Raises:
        Pt2Error: the records that describe them cannot be read.
    """
    weights = package.weights(model)
    entries = [Entry(name, _kind(payload, "buffer"), _read(payload)) for name, payload in weights.items()]
    if constants:
        specs = package.programs[model].graph_module.signature.input_specs
        buffers = {spec.value.buffer_name for spec in specs if spec.type == "buffer"}
        for name, payload in package.constants(model).items():
            entries.append(Entry(name, _kind(payload, "buffer" if name in buffers else "constant"), _read(payload)))
    return entries


def _kind(payload: AnyView, otherwise: str) -> str:
    if isinstance(payload, OpaquePayload):
        return payload.kind
    return "parameter" if payload.is_param else otherwise


def _read(payload: AnyView) -> AnyView:
    """Return a pickled tensor of torchao by its parts, and anything else unchanged."""
    meaning = payload.meaning() if isinstance(payload, OpaquePayload) else payload
    return meaning if isinstance(meaning, SubclassView) else payload


def payload_row(entry: Entry, found: Statistics | None = None) -> dict[str, Any]:
    """Return one payload as data.

    Returns:
        name, kind, type (as people read it), record and bytes; of a dense tensor also dtype, sizes, strides,
        storage_offset and requires_grad; of a tensor of torchao dtype, sizes, class, parts and options; statistics
        where they are given.
    """
    payload = entry.payload
    row: dict[str, Any] = {
        "name": entry.name,
        "kind": entry.kind,
        "type": payload.describe(),
        "record": _record(payload),
        "bytes": payload.nbytes,
    }
    if isinstance(payload, TensorView | SubclassView):
        row |= {"dtype": dtype_of(payload), "sizes": payload.sizes}
    if isinstance(payload, TensorView):
        row |= {name: getattr(payload, name) for name in ("strides", "storage_offset", "requires_grad")}
    if isinstance(payload, SubclassView):
        parts = {name: part.describe() for name, part in payload.parts.items()}
        row |= {"class": payload.class_name, "parts": parts, "options": payload.options}
    return {**row, "statistics": asdict(found)} if found else row


def payload_lines(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield a list of payloads: name, type, bytes, kind, record, and the first name of those that share the record."""
    yield _total(entries)
    first: dict[str, str] = {}
    rows = []
    for entry in entries:
        record = _record(entry.payload)
        owner = first.setdefault(record, entry.name) if record else entry.name  # without data there is none
        shared = "" if owner == entry.name else f"shares bytes with {dotted(owner)}"
        rows.append((*_head(entry), entry.kind, printable(record), shared))
    yield from (f"  {line}" for line in table(rows, LONGEST_NAME, right=(2,)))


def statistics_lines(entries: Sequence[Entry], found: Mapping[int, Statistics]) -> Iterator[str]:
    """Yield a list of payloads with statistics of their values.

    Args:
        entries: the payloads.
        found: position in `entries` -> statistics; what is no tensor has none.
    """
    yield _total(entries)
    rows = [("", "", "", "min", "max", "mean", "std", "")]
    for number, entry in enumerate(entries):
        row = found.get(number)
        numbers = (row.min, row.max, row.mean, row.std) if row else (None,) * 4
        shown = [f"{value:.6g}" if value is not None else "" for value in numbers]
        rows.append((*_head(entry), shown[0], shown[1], shown[2], shown[3], _oddities(row)))
    yield from (f"  {line}" for line in table(rows, LONGEST_NAME, right=range(2, 7)))


def _total(entries: Sequence[Entry]) -> str:
    return f"{count_text(len(entries), 'tensor')}, {bytes_text(sum(entry.payload.nbytes for entry in entries))}"


def _head(entry: Entry) -> tuple[str, str, str]:
    payload = entry.payload
    text = payload.describe()
    # The length of a pickle is in the next column.
    what = text.partition(",")[0] if isinstance(payload, OpaquePayload) else text
    return dotted(entry.name), what, bytes_text(payload.nbytes)


def _record(payload: AnyView) -> str:
    """Return the location of the bytes; "" for a tensor without bytes."""
    return str(getattr(payload, "record", ""))


def _oddities(found: Statistics | None) -> str:
    if found is None:
        return "not read"
    zeros = [count_text(found.zeros, "zero")] if found.zeros else []
    others = [f"{found.non_finite:,} not finite"] if found.non_finite else []
    return ", ".join(zeros + others) or ("" if found.numel else "no elements")


@dataclass(frozen=True, slots=True)
class Amount:
    """Some tensors taken together.

    Args:
        tensors: how many.
        elements: of all of them; what two tensors share counts for each.
        bytes: of these elements.
    """

    tensors: int = 0
    elements: int = 0
    bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tensors + other.tensors, self.elements + other.elements, self.bytes + other.bytes)


NOTHING = Amount()


DTypes: TypeAlias = Mapping[str, Amount]


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """The parameters, the buffers or the constants of a program.

    Args:
        total: all of them.
        dtypes: torch's name of the element type ("float32") -> those of that type.
        opaque: names of those that are pickles, which take code to rebuild, with what they are.
    """

    total: Amount = NOTHING
    dtypes: DTypes = field(default_factory=dict)
    opaque: Mapping[str, str] = field(default_factory=dict)


def amount_of(payload: AnyView) -> Amount:
    """Return the amount of one payload; a pickle has no known elements, only bytes."""
    return Amount(1, elements_of(payload), payload.nbytes)


def elements_of(payload: AnyView) -> int:
    """Return numel of a payload; 0 for a pickle."""
    if isinstance(payload, OpaquePayload):
        return 0
    sizes: Any = payload.sizes
    if isinstance(sizes, tuple):
        return math.prod(sizes)
    return payload.nbytes // DTYPES[getattr(payload, "dtype", ScalarType.BYTE)].itemsize  # a nested tensor


def dtype_of(payload: AnyView) -> str:
    """Return torch's name of the element type of a payload ("float32"); "" for a pickle."""
    dtype = getattr(payload, "dtype", None)
    return DTYPES[dtype].name if dtype is not None else getattr(payload, "dtype_name", "")


def group_of(payloads: Mapping[str, AnyView]) -> TensorGroup:
    """Return payloads by name as a group."""
    dtypes: dict[str, Amount] = {}
    opaque: dict[str, str] = {}
    for name, payload in payloads.items():
        if isinstance(payload, OpaquePayload):
            opaque[name] = payload.describe()
        else:
            dtype = dtype_of(payload)
            dtypes[dtype] = dtypes.get(dtype, NOTHING) + amount_of(payload)
    return TensorGroup(sum_of(map(amount_of, payloads.values())), dict(sorted(dtypes.items())), opaque)


def sum_of(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of several amounts."""
    return sum(amounts, NOTHING)


def stored_bytes(payloads: Iterable[AnyView]) -> int:
    """Return the bytes of the records that hold some payloads; a record that several share counts once."""
    bytes_by_record: dict[str, int] = {}
    for number, payload in enumerate(payloads):
        storage = getattr(payload, "storage", None)
        nbytes = 0 if isinstance(payload, MetaView) else payload.nbytes
        bytes_by_record[getattr(payload, "record", str(number))] = storage.nbytes if storage is not None else nbytes
    return sum(bytes_by_record.values())
