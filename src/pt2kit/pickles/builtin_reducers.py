"""Pickled calls of plain types: Python's containers and byte strings, torch's small types, arrays of NumPy.

Containers are Python's own, filled by our code from checked arguments; memory that a call takes beyond its arguments is
charged to the reading. torch's types are sizes, devices, layouts and result tuples.

Arrays, scalars and dtypes of NumPy: calls and states become descriptions with their bytes. Plain elements only: bool,
integers, floats, complex numbers, fixed-length strings and raw bytes. Object arrays hold pickles, structured and dated
types hold more than bytes: both are refused by name.

Source: numpy/_core/multiarray (`_reconstruct`, `scalar`), numpy/_core/numeric (`_frombuffer`), numpy 1.17 to 2.4.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import force_setattr

from pt2kit.messages import count_text, printable
from pt2kit.pickles.budget import Place, describe
from pt2kit.pickles.values import (
    LAYOUTS,
    Device,
    Global,
    Layout,
    NamedTuple,
    NumpyArray,
    NumpyDType,
    NumpyScalar,
    PickledDict,
    Size,
)

FACTORIES: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        **{
            f"builtins.{kind.__name__}": kind
            for kind in (bool, bytes, complex, dict, float, int, list, set, str, tuple)
        },
        "collections.OrderedDict": PickledDict,
    }
)
"""Factories that a defaultdict may have."""

_EMPTY: dict[Any, Any] = {}  # Read only.
_ABSENT: Any = object()
"""The value of an argument that a call does not have."""
_DEVICE = re.compile(r"([a-z][a-z0-9_]{0,31})(?::([0-9]{1,5}))?")
_LATIN1 = ("latin1", "latin-1")

# Bytes of an empty container, rounded up; and of one more item in it.
_CONTAINER = 768
_ITEM = 64

_CODE = re.compile(r"(b1|[iu][1248]|f(?:2|4|8|12|16)|c(?:8|16|24|32)|[SUV][0-9]{1,9})")
_ORDERS = ("<", ">", "|")
_BYTES_PER_CHARACTER = 4


def ordered_dict(at: Place, items: Any = ()) -> PickledDict:
    """Handle `OrderedDict()` or, as Python 2 wrote it, `OrderedDict([[key, value], …])`."""
    made = PickledDict()
    for pair in _items(at, items):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise at.wrong("pairs of key and value", pair)
        at.budget.check_key(pair[0])
        made[pair[0]] = pair[1]
    return made


def counter(at: Place, counts: Any = _EMPTY) -> Counter[Any]:
    """Handle `Counter()` or `Counter({value: count, …})`."""
    at.check(counts, dict, "a dict of counts")
    at.budget.spend(_CONTAINER + _ITEM * len(counts))
    made: Counter[Any] = Counter()
    # dict.update and not Counter's own, which adds counts and so would compute with values of the file.
    dict.update(made, counts)
    return made


def default_dict(at: Place, factory: Any = None) -> defaultdict[Any, Any]:
    """Handle `defaultdict()` or `defaultdict(factory)` with one of `FACTORIES`."""
    at.budget.spend(_CONTAINER)
    if factory is None:
        return defaultdict()
    if not isinstance(factory, Global) or factory.path not in FACTORIES:
        raise at.wrong(f"a factory of {', '.join(FACTORIES)}", factory)
    return defaultdict(FACTORIES[factory.path])


def make_deque(at: Place, items: Any = (), maxlen: Any = None) -> deque[Any]:
    """Handle `deque()`, `deque(items)` or `deque(items, maxlen)`."""
    if maxlen is not None:
        at.count(maxlen, "maxlen")
    return deque(_items(at, items), maxlen)


def make_set(at: Place, items: Any = ()) -> set[Any]:
    """Handle `set()` or `set(items)`."""
    for item in _items(at, items):
        at.budget.check_key(item)
    return set(items)


def make_frozenset(at: Place, items: Any = ()) -> frozenset[Any]:
    """Handle `frozenset()` or `frozenset(items)`."""
    return frozenset(make_set(at, items))


def _items(at: Place, items: Any) -> list[Any] | tuple[Any, ...]:
    checked: list[Any] | tuple[Any, ...] = at.check(items, list | tuple, "a list or tuple of items")
    at.budget.spend(_CONTAINER + _ITEM * len(checked))
    return checked


def encode(at: Place, text: Any, codec: Any) -> bytes:
    """Handle `_codecs.encode(text, "latin1")`: how protocol 2 spells a byte string."""
    if not isinstance(text, str) or codec not in _LATIN1:
        raise at.error("a text and 'latin1'", f"{describe(text)} and {describe(codec)}")
    at.budget.spend(len(text))
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as bad:
        raise at.error("characters up to U+00FF", f"U+{ord(text[bad.start]):04X}") from None


def make_bytes(at: Place) -> bytes:
    """Handle `bytes()`: how protocol 2 spells the empty byte string."""
    return b""


def make_bytearray(at: Place, data: Any = b"", encoding: Any = _ABSENT) -> bytearray:
    """Handle `bytearray()`, `bytearray(bytes)` or `bytearray(text, "latin-1")`."""
    if encoding is not _ABSENT:
        return bytearray(encode(at, data, encoding))
    at.check(data, bytes, "a byte string")
    at.budget.spend(len(data))
    return bytearray(data)


def make_complex(at: Place, real: Any, imag: Any) -> complex:
    """Handle `complex(real, imag)`."""
    for part in (real, imag):
        at.check(part, float, "two floats")
    return complex(real, imag)


def make_slice(at: Place, start: Any, stop: Any, step: Any) -> slice:
    """Handle `slice(start, stop, step)` of integers and None."""
    for part in (start, stop, step):
        at.check(part, int | None, "integers or None")
    return slice(start, stop, step)


def make_range(at: Place, start: Any, stop: Any, step: Any) -> range:
    """Handle `range(start, stop, step)`."""
    for part in (start, stop, step):
        at.check(part, int, "integers")
    if step == 0:
        raise at.error("a step that is not 0", "0")
    return range(start, stop, step)


def make_size(at: Place, sizes: Any) -> Size:
    """Handle `torch.Size((2, 3))`."""
    at.check(sizes, tuple | list, "a tuple of integers")
    for size in sizes:
        if not isinstance(size, int) or isinstance(size, bool):
            raise at.wrong("integers", size)
    at.budget.spend(8 * len(sizes))
    return Size(tuple(sizes))


def make_device(at: Place, name: Any, index: Any = _ABSENT) -> Device:
    """Handle `torch.device("cuda", 1)`, or with the index in the text."""
    match = _DEVICE.fullmatch(name) if isinstance(name, str) else None
    if match is None or (match[2] and index is not _ABSENT):
        raise at.wrong("a device such as 'cpu' or 'cuda:1'", name)
    if index is not _ABSENT:
        return Device(match[1], at.count(index, "index"))
    return Device(match[1], int(match[2]) if match[2] else None)


def get_layout(at: Place, layout: Any) -> Layout:
    """Handle `torch.serialization._get_layout("torch.strided")`."""
    name = layout.removeprefix("torch.") if isinstance(layout, str) else None
    if name not in LAYOUTS:
        raise at.wrong("the name of a layout of torch", layout)
    return Layout(name)


def return_type(at: Place, values: Any, hidden: Any = _EMPTY) -> NamedTuple:
    """Handle `torch.return_types.max((values, indices), {})`: the result tuple of an operator."""
    if not isinstance(values, tuple) or hidden != {}:
        raise at.wrong("a tuple of values and no hidden fields", values if hidden is _EMPTY else hidden)
    return NamedTuple(at.path, values)


def item_size(dtype: str) -> int:
    """Return the bytes per element of an array-interface string ("<f4" -> 4, "<U3" -> 12)."""
    count = int(dtype[2:])
    return count * _BYTES_PER_CHARACTER if dtype[1] == "U" else count


def make_dtype(at: Place, code: Any, align: Any = False, copy: Any = False) -> NumpyDType:
    """Handle `numpy.dtype("f4", align, copy)`; little-endian until its state changes it."""
    at.check(code, str, "a type code such as 'f4'")
    if not _CODE.fullmatch(code):
        shown = printable(code, 40)
        raise at.unsupported("plain numbers, strings or bytes", f"type '{shown}'")
    return NumpyDType(_ordered(code, "<"))


def _ordered(code: str, order: str) -> str:
    byte_wise = code[0] in "SV" or code in ("b1", "i1", "u1")
    return f"|{code}" if byte_wise else f"{order}{code}"


def build_dtype(at: Place, dtype: NumpyDType, state: Any) -> None:
    """Set a dtype's byte order from its pickled state (version, order, subtype, names, fields, size, align, flags)."""
    if not isinstance(state, tuple) or len(state) < 5 or state[1] not in _ORDERS:
        raise at.wrong("a version, a byte order and no fields", state, "state")
    if any(part is not None for part in state[2:5]):
        raise at.unsupported("a plain element type", "a structured one")
    # The description is frozen for all other code: a pickle makes an object first and sets its state next.
    force_setattr(dtype, "name", _ordered(dtype.name[1:], state[1]))


def make_scalar(at: Place, dtype: Any, data: Any) -> NumpyScalar:
    """Handle `numpy.core.multiarray.scalar(dtype, bytes)`."""
    if not isinstance(dtype, NumpyDType) or not isinstance(data, bytes):
        raise at.error("a dtype and bytes", f"{describe(dtype)} and {describe(data)}")
    if len(data) != item_size(dtype.name):
        raise at.error(f"{count_text(item_size(dtype.name), 'byte')} of {dtype.name}", count_text(len(data), "byte"))
    return NumpyScalar(dtype.name, data)


def reconstruct(at: Place, cls: Any, shape: Any, code: Any) -> NumpyArray:
    """Handle `numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b"b")`: empty until its state fills it."""
    if not isinstance(cls, Global) or cls.path != "numpy.ndarray":
        raise at.unsupported("numpy.ndarray", describe(cls))
    return NumpyArray("|i1", (0,), False, b"")


def build_array(at: Place, array: NumpyArray, state: Any) -> None:
    """Fill an array from its pickled state (version, shape, dtype, is_fortran, bytes)."""
    if not isinstance(state, tuple) or len(state) != 5:
        raise at.wrong("5 parts", state, "state")
    filled = _array(at, state[4], state[2], state[1], bool(state[3]))
    for name in ("dtype", "shape", "fortran_order", "data"):
        force_setattr(array, name, getattr(filled, name))


def from_buffer(at: Place, data: Any, dtype: Any, shape: Any, order: Any) -> NumpyArray:
    """Handle `numpy.core.numeric._frombuffer(buffer, dtype, shape, order)`: how protocol 5 spells an array."""
    if order not in ("C", "F"):
        raise at.wrong("'C' or 'F'", order, "order")
    return _array(at, data, dtype, shape, order == "F")


def _array(at: Place, data: Any, dtype: Any, shape: Any, fortran_order: bool) -> NumpyArray:
    at.check(dtype, NumpyDType, "a dtype")
    at.check(data, bytes | bytearray, "the elements as bytes")
    dims = at.dims(shape, "shape")
    needed = math.prod(dims) * item_size(dtype.name)
    if len(data) != needed:
        raise at.error(f"{count_text(needed, 'byte')} for {list(dims)} of {dtype.name}", count_text(len(data), "byte"))
    if isinstance(data, bytearray):
        at.budget.spend(len(data))
    return NumpyArray(dtype.name, dims, fortran_order, bytes(data))
