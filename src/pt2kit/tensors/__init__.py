"""Tensors of payloads: records are checked and described; numbers are read on access. No torch, no copy.

`views_from_config` describes the raw records of torch 2.9 and later, `from_pickled` the torch.save payloads of earlier
releases and of sample inputs. A `TensorView` has a name, type, shape and the location of its bytes; `numpy()` reads
them. numpy and `ml_dtypes` are imported by the first function that makes an array, not before.

Its errors carry the rules P1 to P18 of `pt2kit.rules`.

On P11: torch groups raw payloads by (storage, element type), so a view of another type gets a record of its own, and
no release wrote two types into one record. Two types over one record therefore mean that one entry was changed. The
exception is the empty record, which tensors without elements share whatever their type. torch.save payloads do share
storages between types.

On P9: torch fills a tensor with zeros if its record is empty, as it writes it for fake tensors. That is data which the
file does not have, so it is refused here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.tensors.bounds import MAX_EXPANDED_BYTES as MAX_EXPANDED_BYTES
    from pt2kit.tensors.bounds import MAX_NDIM as MAX_NDIM
    from pt2kit.tensors.compound import MetaView as MetaView
    from pt2kit.tensors.compound import NestedView as NestedView
    from pt2kit.tensors.compound import QuantizedView as QuantizedView
    from pt2kit.tensors.compound import SparseView as SparseView
    from pt2kit.tensors.compound import SubclassView as SubclassView
    from pt2kit.tensors.compound import View as View
    from pt2kit.tensors.dtypes import DTYPES as DTYPES
    from pt2kit.tensors.dtypes import DType as DType
    from pt2kit.tensors.dtypes import numpy_dtype as numpy_dtype
    from pt2kit.tensors.dtypes import scalar_type_of as scalar_type_of
    from pt2kit.tensors.dtypes import short_name as short_name
    from pt2kit.tensors.export import AnyView as AnyView
    from pt2kit.tensors.export import to_npy as to_npy
    from pt2kit.tensors.export import to_npz as to_npz
    from pt2kit.tensors.opaque import OpaquePayload as OpaquePayload
    from pt2kit.tensors.payload import check_against as check_against
    from pt2kit.tensors.payload import views_from_config as views_from_config
    from pt2kit.tensors.pickled import from_pickled as from_pickled
    from pt2kit.tensors.safetensors_file import read_safetensors as read_safetensors
    from pt2kit.tensors.safetensors_file import to_safetensors as to_safetensors
    from pt2kit.tensors.summary import Statistics as Statistics
    from pt2kit.tensors.summary import statistics as statistics
    from pt2kit.tensors.view import TensorView as TensorView
    from pt2kit.zip.reader import Storage as Storage

__getattr__, __dir__, __all__ = front_door(__name__)
