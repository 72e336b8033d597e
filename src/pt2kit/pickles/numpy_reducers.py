"""Pickled arrays, scalars and dtypes of NumPy: calls and states become descriptions with their bytes.

Plain elements only: bool, integers, floats, complex numbers, fixed-length strings and raw bytes. Object arrays hold
pickles, structured and dated types hold more than bytes: both are refused by name.

Source: numpy/_core/multiarray (`_reconstruct`, `scalar`), numpy/_core/numeric (`_frombuffer`), numpy 1.17 to 2.4.
"""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec.structs import force_setattr

from pt2kit.errors import UnsupportedError
from pt2kit.messages import printable
from pt2kit.pickles.argument_checks import check_arity, check_dims
from pt2kit.pickles.budget import Budget, describe
from pt2kit.pickles.values import Global, NumpyArray, NumpyDType, NumpyScalar

_CODE = re.compile(r"(b1|[iu][1248]|f(?:2|4|8|12|16)|c(?:8|16|24|32)|[SUV][0-9]{1,9})")
_ORDERS = ("<", ">", "|")
_BYTES_PER_CHARACTER = 4


def item_size(dtype: str) -> int:
    """Return the bytes per element of an array-interface string ("<f4" -> 4, "<U3" -> 12)."""
    count = int(dtype[2:])
    return count * _BYTES_PER_CHARACTER if dtype[1] == "U" else count


def make_dtype(budget: Budget, path: str, args: tuple[Any, ...]) -> NumpyDType:
    """Handle `numpy.dtype("f4", align, copy)`; little-endian until its state changes it."""
    check_arity(budget, path, args, 1, 2, 3)
    if not isinstance(args[0], str):
        raise budget.error(path, "a type code such as 'f4'", describe(args[0]))
    if not _CODE.fullmatch(args[0]):
        code = printable(args[0], 40)
        raise UnsupportedError(f"{budget.where}: {path}: expected plain numbers, strings or bytes, got type '{code}'")
    return NumpyDType(_ordered(args[0], "<"))


def _ordered(code: str, order: str) -> str:
    byte_wise = code[0] in "SV" or code in ("b1", "i1", "u1")
    return f"|{code}" if byte_wise else f"{order}{code}"


def build_dtype(budget: Budget, dtype: NumpyDType, state: Any) -> None:
    """Set a dtype's byte order from its pickled state (version, order, subtype, names, fields, size, align, flags)."""
    if not isinstance(state, tuple) or len(state) < 5 or state[1] not in _ORDERS:
        raise budget.error("numpy.dtype: state", "a version, a byte order and no fields", describe(state))
    if any(part is not None for part in state[2:5]):
        raise UnsupportedError(f"{budget.where}: numpy.dtype: expected a plain element type, got a structured one")
    # The description is frozen for all other code: a pickle makes an object first and sets its state next.
    force_setattr(dtype, "name", _ordered(dtype.name[1:], state[1]))


def make_scalar(budget: Budget, path: str, args: tuple[Any, ...]) -> NumpyScalar:
    """Handle `numpy.core.multiarray.scalar(dtype, bytes)`."""
    check_arity(budget, path, args, 2)
    dtype, data = args
    if not isinstance(dtype, NumpyDType) or not isinstance(data, bytes):
        raise budget.error(path, "a dtype and bytes", f"{describe(dtype)} and {describe(data)}")
    if len(data) != item_size(dtype.name):
        raise budget.error(path, f"{item_size(dtype.name)} bytes of {dtype.name}", f"{len(data)} bytes")
    return NumpyScalar(dtype.name, data)


def reconstruct(budget: Budget, path: str, args: tuple[Any, ...]) -> NumpyArray:
    """Handle `numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b"b")`: empty until its state fills it."""
    check_arity(budget, path, args, 3)
    if not isinstance(args[0], Global) or args[0].path != "numpy.ndarray":
        raise UnsupportedError(f"{budget.where}: {path}: expected numpy.ndarray, got {describe(args[0])}")
    return NumpyArray("|i1", (0,), False, b"")


def build_array(budget: Budget, array: NumpyArray, state: Any) -> None:
    """Fill an array from its pickled state (version, shape, dtype, is_fortran, bytes)."""
    if not isinstance(state, tuple) or len(state) != 5:
        raise budget.error("numpy.ndarray: state", "5 parts", describe(state))
    filled = _array(budget, "numpy.ndarray", state[4], state[2], state[1], bool(state[3]))
    for name in ("dtype", "shape", "fortran_order", "data"):
        force_setattr(array, name, getattr(filled, name))


def from_buffer(budget: Budget, path: str, args: tuple[Any, ...]) -> NumpyArray:
    """Handle `numpy.core.numeric._frombuffer(buffer, dtype, shape, order)`: how protocol 5 spells an array."""
    check_arity(budget, path, args, 4)
    if args[3] not in ("C", "F"):
        raise budget.error(f"{path}: order", "'C' or 'F'", describe(args[3]))
    return _array(budget, path, args[0], args[1], args[2], args[3] == "F")


def _array(budget: Budget, path: str, data: Any, dtype: Any, shape: Any, fortran_order: bool) -> NumpyArray:
    if not isinstance(dtype, NumpyDType):
        raise budget.error(path, "a dtype", describe(dtype))
    if not isinstance(data, bytes | bytearray):
        raise budget.error(path, "the elements as bytes", describe(data))
    dims = check_dims(budget, f"{path}: shape", shape)
    needed = math.prod(dims) * item_size(dtype.name)
    if len(data) != needed:
        raise budget.error(path, f"{needed} bytes for {list(dims)} of {dtype.name}", f"{len(data)} bytes")
    if isinstance(data, bytearray):
        budget.spend(len(data))
    return NumpyArray(dtype.name, dims, fortran_order, bytes(data))
