"""Calls that write where an index or a mask says -> which elements these are, where the file tells the numbers.

Numbers are told by constants and buffers of the file, and by what is computed from them and from `arange` and its like
(`known_numbers.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.plain_calls import Call, argument_of
from pt2kit.checks.shadows import Shadow

if TYPE_CHECKING:
    from pt2kit.checks.following import Follower

_Region = Callable[["Follower", Call, Shadow], Any]


def write_region(follower: Follower, call: Call, target: Shadow, mask: Any) -> bool:
    """Note in an array what a call writes of its first argument.

    Args:
        follower: knows the numbers.
        call: of an operator of `REGIONS`, with or without "_" at its end.
        target: the shadow of its first argument.
        mask: like that of the target, or that itself; True where nothing was written. Changed.

    Returns:
        whether it could be told; if not, nothing is changed.
    """
    region = REGIONS.get(call.name.removesuffix("_"))
    written = region(follower, call, target) if region is not None and target.sizes is not None else None
    if written is None or not mask.flags.writeable:
        return False
    try:
        mask[written] = False
    except (IndexError, ValueError):
        return False  # torch refuses such an index, too
    return True


def _rows(follower: Follower, call: Call, target: Shadow) -> Any:
    """`index_fill`, `index_copy`: entries of one dimension."""
    sizes, dim = target.sizes or (), call.plain.get("dim")
    index = _index(follower, call.values.get("index", []))
    if index is None or index.dtype == bool or type(dim) is not int or not -len(sizes) <= dim < len(sizes):
        return None
    return None if sizes[dim] is None else (slice(None),) * (dim % len(sizes)) + (index.reshape(-1),)


def _places(follower: Follower, call: Call, target: Shadow) -> Any:
    """`index_put`: what is indexed by several tensors at once, or by masks."""
    indices = argument_of(call, "indices")
    if indices is None or call.plain.get("accumulate") not in (None, False):
        return None
    names = _names(indices)
    known: list[Any] = [slice(None) if name is None else _index(follower, [name]) for name in names]
    sizes = target.sizes or ()
    if any(index is None for index in known) or len(known) > len(sizes):
        return None
    has_masks = any(name is not None and index.dtype == bool for name, index in zip(names, known, strict=True))
    indexed = sizes if has_masks else [size for size, name in zip(sizes, names, strict=False) if name is not None]
    # A symbol's dimension has one element here: it cannot be indexed.
    return None if None in indexed else tuple(known)


def _index(follower: Follower, names: list[str]) -> Any:
    """The numbers of an index; None also where a symbol says how many there are, which may be none."""
    numbers = follower.numbers(names)
    return None if numbers is None or None in follower.known[names[0]].sizes else numbers


def _names(given: schema.Argument) -> list[str | None]:
    if given.as_optional_tensors is not UNSET:
        entries = given.as_optional_tensors
        return [None if entry.as_tensor is UNSET else entry.as_tensor.name for entry in entries]
    return [entry.name for entry in given.as_tensors] if given.as_tensors is not UNSET else []


def _masked(follower: Follower, call: Call, target: Shadow) -> Any:
    """`masked_fill_`: where a mask is true."""
    import numpy

    mask = follower.numbers(call.values.get("mask", []))
    if mask is None or mask.dtype != bool or target.mask is None:
        return None
    try:
        return numpy.broadcast_to(mask, target.mask.shape)
    except ValueError:
        return None


REGIONS: Final[Mapping[str, _Region]] = MappingProxyType(
    {
        **dict.fromkeys(("index_fill", "index_copy"), _rows),
        **dict.fromkeys(("index_put", "_unsafe_index_put", "_index_put_impl"), _places),
        "masked_fill": _masked,
    }
)
"""Operator, without "_" at its end -> what finds the elements that it writes: an index for numpy, or None."""
