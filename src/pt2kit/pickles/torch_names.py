"""Names of torch that a payload may mention as data: dtypes, storage classes, layouts, memory formats, schemes.

Source: torch/storage.py, torch/_utils.py and the dtype list of torch 2.13; storage class names of torch 1.6 to 2.13.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ITEM_SIZES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("bool", "uint8", "int8", "qint8", "quint8", "quint4x2", "quint2x4"), 1),
        **dict.fromkeys((f"{sign}{bits}" for sign in ("int", "uint") for bits in range(1, 8)), 1),
        **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
        **dict.fromkeys(("float4_e2m1fn_x2", "bits1x8", "bits2x4", "bits4x2", "bits8"), 1),
        **dict.fromkeys(("int16", "uint16", "float16", "bfloat16", "bits16"), 2),
        **dict.fromkeys(("int32", "uint32", "float32", "complex32", "bcomplex32", "qint32"), 4),
        **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
        "complex128": 16,
    }
)
"""Bytes per element of every torch dtype; for types narrower than a byte, of the byte torch keeps each element in."""

ELEMENTS_PER_BYTE: Mapping[str, int] = MappingProxyType({"quint4x2": 2, "quint2x4": 4})
"""The dtypes of which torch packs several elements of the last dimension into one byte."""

QUANTIZED: frozenset[str] = frozenset({"qint8", "quint8", "qint32", "quint4x2", "quint2x4"})
"""The dtypes that mean nothing without a scale and a zero point."""

_TYPED_STORAGES = {
    "BFloat16": "bfloat16",
    "Bool": "bool",
    "Byte": "uint8",
    "Char": "int8",
    "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "Int": "int32",
    "Long": "int64",
    "QInt32": "qint32",
    "QInt8": "qint8",
    "QUInt2x4": "quint2x4",
    "QUInt4x2": "quint4x2",
    "QUInt8": "quint8",
    "Short": "int16",
}

STORAGES: Mapping[str, str] = MappingProxyType(
    {
        **{f"torch.{name}Storage": dtype for name, dtype in _TYPED_STORAGES.items()},
        **{f"torch.cuda.{name}Storage": dtype for name, dtype in _TYPED_STORAGES.items()},
        "torch.UntypedStorage": "uint8",
        "torch.storage.UntypedStorage": "uint8",
        "torch._UntypedStorage": "uint8",
        "torch.storage._UntypedStorage": "uint8",
    }
)
"""Storage class -> element type; the untyped ones count bytes."""

SPARSE_LAYOUTS: tuple[str, ...] = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
LAYOUTS: frozenset[str] = frozenset({"strided", "jagged", "_mkldnn", *SPARSE_LAYOUTS})
MEMORY_FORMATS: tuple[str, ...] = (
    "contiguous_format",
    "preserve_format",
    "channels_last",
    "channels_last_3d",
)
QSCHEMES: tuple[str, ...] = (
    "per_tensor_affine",
    "per_tensor_symmetric",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_channel_affine_float_qparams",
)
