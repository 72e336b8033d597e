"""Comparison of the weights or constants of two programs: added, removed and changed ones, with numeric distances.

Equal bytes are found by comparing them, which costs less than hashing; numbers are looked at only where bytes differ.
Both tensors are read in pieces.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pt2kit.diffs.changes import Area, Change, Detail
from pt2kit.digests.payloads import parts, shared, span
from pt2kit.tensors.arrays import rows, values
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.export import AnyView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.view import TensorView
from pt2kit.zip.source import Progress

if TYPE_CHECKING:
    import numpy as np

PIECE: Final = 1 << 20
"""Elements compared together."""

MAX_OTHERS: Final = 20
"""Tensors that one is listed to share memory with: a file can have thousands in one storage."""

BLOCK: Final = 1 << 18
"""Bytes compared together."""

FIELDS: Final = (
    *("kind", "dtype", "dtype_name", "layout", "sizes", "strides", "device", "requires_grad", "is_param", "qscheme"),
    *("scale", "zero_point", "axis", "is_coalesced", "storage_offsets", "tensor_meta"),
    *("class_name", "options"),
)
"""Properties of payloads except their values."""

__all__ = ["ValueDifference", "compare_payloads", "compare_values"]


Payloads: TypeAlias = Mapping[str, AnyView]
"""Weights or constants of a program, by name."""


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """How far the numbers of two tensors of one shape are apart.

    Args:
        elements: how many there are.
        changed: how many differ: in their bytes, or as numbers where the types differ.
        max_difference: the greatest |new - old| of those, if any is finite.
        relative_norm: ‖new - old‖ / ‖old‖ over finite numbers, if old is not zero.
    """

    elements: int
    changed: int
    max_difference: float | None
    relative_norm: float | None


def compare_payloads(
    old: Payloads,
    new: Payloads,
    area: Area,
    model: str,
    *,
    renamed: Mapping[str, str],
    values: bool,
    progress: Progress,
) -> Iterator[Change]:
    """Yield the changes of the weights or the constants of a program, in the new order, removed ones first.

    Args:
        old, new: name -> payload.
        area: "weight" or "constant".
        model: whose they are.
        renamed: new name -> old name of those that correspond under other names.
        values: compare bytes and numbers, too.
        progress: called with the bytes done and in all.

    Raises:
        Pt2Error: a record cannot be read.

    Cost: with `values` reads all tensors that both have.
    """
    pairs = {name: before for name in new if (before := _old_name(name, old, new, renamed)) is not None}
    gone = old.keys() - pairs.values()
    yield from (
        Change("removed", area, model, name, details=_described(old[name], True)) for name in old if name in gone
    )
    shared_old, shared_new = _shared(old), _shared(new)
    alike: dict[tuple[int, int], bool] = {}
    total = sum(new[name].nbytes for name in pairs) if values else 0
    done = 0
    for name, payload in new.items():
        if name not in pairs:
            yield Change("added", area, model, name, details=_described(payload, False))
            continue
        before = pairs[name]
        details = [Detail("name", before, name)] if before != name else []
        details += _details(old[before], payload)
        groups = shared_old.get(before), shared_new.get(name)
        key = id(groups[0]), id(groups[1])
        if key not in alike:
            alike[key] = _is_alike(*groups, pairs)
        if not alike[key]:
            details.append(Detail("shares memory with", _others(groups[0], before), _others(groups[1], name)))
        if values:
            details += _values(old[before], payload)
            done += payload.nbytes
            progress(done, total)
        if details:
            yield Change("modified", area, model, name, details=tuple(details))


def _old_name(name: str, old: Payloads, new: Payloads, renamed: Mapping[str, str]) -> str | None:
    """Return the payload that one corresponds to: that of its own name, or the one it was renamed from."""
    before = name if name in old else renamed.get(name)
    return before if before in old and (before == name or before not in new) else None


def _is_alike(old: Mapping[str, int] | None, new: Mapping[str, int] | None, pairs: Mapping[str, str]) -> bool:
    """Return whether two groups of overlapping tensors have the same members, at the same distances."""
    if old is None or new is None:
        return old is new
    renamed = {pairs.get(name, name): start for name, start in new.items()}
    return old.keys() == renamed.keys() and len({start - old[name] for name, start in renamed.items()}) == 1


def _others(group: Mapping[str, int] | None, name: str) -> dict[str, int] | None:
    """Return the first tensors that overlap with one, by name, each with the distance of its first byte."""
    if group is None:
        return None
    others = itertools.islice((other for other in group if other != name), MAX_OTHERS)
    return {other: group[other] - group[name] for other in others}


def _described(payload: AnyView, is_old: bool) -> tuple[Detail, ...]:
    text = payload.describe()
    return (Detail("type", text if is_old else None, None if is_old else text),)


def _details(old: AnyView, new: AnyView) -> Iterator[Detail]:
    if type(old) is not type(new):
        yield Detail("type", old.describe(), new.describe())
        return
    for field in FIELDS:
        before, after = getattr(old, field, None), getattr(new, field, None)
        if before != after and not isinstance(before, TensorView) and not isinstance(after, TensorView):
            if field == "dtype":
                before, after = _dtype_text(before), _dtype_text(after)
            yield Detail(field, before, after)


def _dtype_text(dtype: Any) -> str:
    return DTYPES[dtype].name if dtype in DTYPES else str(dtype)


def _shared(payloads: Payloads) -> dict[str, dict[str, int]]:
    """Return name -> its group: itself and the tensors that overlap with it, by name, each with its first byte; only
    names that overlap with another one.

    Tensors overlap if the spans from their first to their last byte do, directly or by others between them.
    """
    groups = [dict(sorted(group.items())) for group in shared(payloads)]
    return {name: group for group in groups for name in group}


def _values(old: AnyView, new: AnyView) -> Iterator[Detail]:
    """Yield the differences of the values, or of the bytes if there are no values to compare."""
    if isinstance(old, OpaquePayload) and isinstance(new, OpaquePayload):
        if not _equal(old.storage.read(keep=False), new.storage.read(keep=False)):
            yield Detail("bytes", old.nbytes, new.nbytes)
        return
    for one, other in zip(parts(old), parts(new), strict=False):
        if one.sizes == other.sizes and (difference := compare_values(one, other)) is not None:
            yield Detail("values" if one.name == old.name else f"values of {one.name}", None, difference)


def compare_values(old: TensorView, new: TensorView) -> ValueDifference | None:
    """Compare the numbers of two tensors of one shape; None where they are the same.

    Args:
        old, new: of any element types; numbers of different types are compared as numbers.

    Raises:
        Pt2Error: a record cannot be read.
    """
    before, after = old.storage.read(keep=False), new.storage.read(keep=False)
    if old.dtype == new.dtype and _same_bytes(old, new, before, after):
        return None
    return _difference(old, new, before, after)


def _same_bytes(old: TensorView, new: TensorView, before: memoryview, after: memoryview) -> bool:
    """Return whether two tensors have the same memory layout and hold the same bytes."""
    if (old.strides, old.conj, old.neg) != (new.strides, new.conj, new.neg):
        return False
    return _equal(_span(old, before), _span(new, after))


def _equal(one: memoryview, other: memoryview) -> bool:
    """Return whether two byte ranges are the same; copies of pieces compare faster than memoryviews do."""
    return one.nbytes == other.nbytes and all(
        one[start : start + BLOCK].tobytes() == other[start : start + BLOCK].tobytes()
        for start in range(0, one.nbytes, BLOCK)
    )


def _span(view: TensorView, data: memoryview) -> memoryview:
    if not view.numel:
        return data[:0]
    return data[slice(*span(view))]


def _difference(old: TensorView, new: TensorView, before: memoryview, after: memoryview) -> ValueDifference | None:
    import numpy as np

    changed, largest, squares, norm, elements = 0, -1.0, 0.0, 0.0, 0
    for one, other in zip(rows(old.over(before), PIECE), rows(new.over(after), PIECE), strict=True):
        elements += one.size
        with np.errstate(all="ignore"):
            first, second = _wide(one, old), _wide(other, new)
            differs = _bytes_differ(one, other) if old.dtype == new.dtype else first != second
            changed += int(np.count_nonzero(differs))
            distance = np.abs(second - first)
            finite = differs & np.isfinite(distance)
            if finite.any():
                largest = max(largest, float(distance[finite].max()))
                squares += float(np.square(distance[finite]).sum())
            norm += float(np.square(np.abs(first[np.isfinite(first)])).sum())
    if not changed:
        return None
    relative = math.sqrt(squares) / math.sqrt(norm) if norm > 0 and math.isfinite(norm + squares) else None
    return ValueDifference(elements, changed, largest if largest >= 0 else None, relative)


def _bytes_differ(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return which elements of two arrays of one type and shape are not the same to the last bit."""
    import numpy as np

    rows = [np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1) for array in (one, other)]
    mask: np.ndarray[Any, Any] = (rows[0] != rows[1]).any(axis=1).reshape(one.shape)
    return mask


def _wide(array: np.ndarray[Any, Any], view: TensorView) -> np.ndarray[Any, Any]:
    """Return numbers of a view as float64, complex ones as complex128; integers beyond 2**53 are rounded."""
    import numpy as np

    known = values(array, view.dtype, wide=True)
    return known.astype(np.complex128 if known.dtype.kind == "c" else np.float64)
