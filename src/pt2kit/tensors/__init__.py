"""Payloads -> tensors: what a record holds, checked and described; numbers when they are asked for. No torch, no copy.

`views_from_config` describes the raw records of torch 2.9 and later, `views_from_pickled` the torch.save payloads of
earlier releases and of sample inputs. A `TensorView` knows name, type, shape and where its bytes are; `numpy()`
reads them. numpy and `ml_dtypes` are imported by the first function that makes an array, not before.

Rules (the ids that errors carry):
    P1   a `path_name` is the plain name of a file beside the config, and not that of a config
    P2   the record that a `path_name` names exists
    P3   a payload that is not pickled has a `tensor_meta`
    P4   the element type is known, and can be represented where it is asked for
    P5   raw bytes are strided; other layouts come by their parts
    P6   the device is of a type that torch has, its index 0 to 127; `meta` holds no bytes
    P7   sizes, strides and offset are numbers from 0 to 2**63 - 1, one stride per size, at most 64 dimensions
    P8   all elements together have fewer than 2**63 bytes; a size of 0 does not excuse the others
    P9   the last element lies inside the storage, and the storage has the length that the directory states
    P10  a record of raw bytes holds a whole number of elements
    P11  all raw tensors in one record have one element type; an empty record has none
    P12  only floating-point and complex tensors require a gradient; only complex ones are conjugated
    P13  a bool is stored as 0 or 1
    P14  element type, sizes and strides are those that the graph states
    P15  a payload that takes code to rebuild is described, not rebuilt
    P16  a copy takes at most 1 GiB, or as much as the bytes it is made from
    P17  the parts of a sparse or nested tensor fit together, and its indices point inside it
    P18  what is exported has a place in the format that it is exported to

On P11: torch groups raw payloads by (storage, element type), so a view of another type gets a record of its own, and
no release wrote two types into one record. Two types over one record therefore mean that one entry was changed. The
exception is the empty record, which tensors without elements share whatever their type. torch.save payloads do share
storages between types.

On P9: torch fills a tensor with zeros if its record is empty, as it writes it for fake tensors. That is data which the
file does not have, so it is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pt2kit.tensors.bounds import MAX_EXPANDED_BYTES, MAX_NDIM
from pt2kit.tensors.dtypes import DTYPES, DType, numpy_dtype, scalar_type_of, short_name
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.payload import check_against, views_from_config
from pt2kit.tensors.storage import Storage
from pt2kit.tensors.view import TensorView

if TYPE_CHECKING:
    from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView, View
    from pt2kit.tensors.export import to_npy, to_npz
    from pt2kit.tensors.output import AnyView, Progress
    from pt2kit.tensors.pickled import from_pickled, views_from_pickled
    from pt2kit.tensors.safetensors_file import to_safetensors
    from pt2kit.tensors.summary import Statistics, statistics

__all__ = [
    "TensorView",
    "Storage",
    "SparseView",
    "QuantizedView",
    "NestedView",
    "MetaView",
    "View",
    "OpaquePayload",
    "AnyView",
    "views_from_config",
    "check_against",
    "views_from_pickled",
    "from_pickled",
    "to_npy",
    "to_npz",
    "to_safetensors",
    "Progress",
    "Statistics",
    "statistics",
    "DType",
    "DTYPES",
    "numpy_dtype",
    "scalar_type_of",
    "short_name",
    "MAX_NDIM",
    "MAX_EXPANDED_BYTES",
]

_LATER: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("MetaView", "NestedView", "QuantizedView", "SparseView", "View"), "pt2kit.tensors.compound"),
        **dict.fromkeys(("to_npy", "to_npz"), "pt2kit.tensors.export"),
        **dict.fromkeys(("AnyView", "Progress"), "pt2kit.tensors.output"),
        **dict.fromkeys(("from_pickled", "views_from_pickled"), "pt2kit.tensors.pickled"),
        "to_safetensors": "pt2kit.tensors.safetensors_file",
        **dict.fromkeys(("Statistics", "statistics"), "pt2kit.tensors.summary"),
    }
)
"""Name -> the module that it is loaded from when somebody asks for it; `pt2 show` asks for none of them."""


def __getattr__(name: str) -> Any:
    """Load what only some callers need when it is first asked for (PEP 562)."""
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)
