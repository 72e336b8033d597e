"""Allow-list of pickles: every global a payload may refer to, and its replacement here.

Nothing is looked up by a name from a file anywhere else: a global is a key of one of these tables, or it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pt2kit.pickles import builtin_reducers, tensor_reducers
from pt2kit.pickles.budget import Handler
from pt2kit.pickles.tensor_subclasses import OPTIONS, SUBCLASSES, WRAPPER
from pt2kit.pickles.values import ITEM_SIZES, MEMORY_FORMATS, QSCHEMES, STORAGES, DType, Global, MemoryFormat, QScheme
from pt2kit.treespec.containers import RETURN_TYPES

CALLS: Mapping[str, Handler] = MappingProxyType(
    {
        **tensor_reducers.REBUILD,
        "torch._tensor._rebuild_from_type": tensor_reducers.rebuild_from_type,
        "torch._tensor._rebuild_from_type_v2": tensor_reducers.rebuild_from_type,
        "torch.Size": builtin_reducers.make_size,
        "torch.device": builtin_reducers.make_device,
        "torch.serialization._get_layout": builtin_reducers.get_layout,
        **dict.fromkeys(RETURN_TYPES, builtin_reducers.return_type),
        "collections.OrderedDict": builtin_reducers.ordered_dict,
        "collections.Counter": builtin_reducers.counter,
        "collections.defaultdict": builtin_reducers.default_dict,
        "collections.deque": builtin_reducers.make_deque,
        "builtins.set": builtin_reducers.make_set,
        "builtins.frozenset": builtin_reducers.make_frozenset,
        "builtins.bytes": builtin_reducers.make_bytes,
        "builtins.bytearray": builtin_reducers.make_bytearray,
        "builtins.complex": builtin_reducers.make_complex,
        "builtins.slice": builtin_reducers.make_slice,
        "builtins.range": builtin_reducers.make_range,
        "_codecs.encode": builtin_reducers.encode,
        "numpy.dtype": builtin_reducers.make_dtype,
        **{f"numpy.{core}.multiarray.scalar": builtin_reducers.make_scalar for core in ("core", "_core")},
        **{f"numpy.{core}.multiarray._reconstruct": builtin_reducers.reconstruct for core in ("core", "_core")},
        **{f"numpy.{core}.numeric._frombuffer": builtin_reducers.from_buffer for core in ("core", "_core")},
    }
)
"""Handler for calls of each global."""

CONSTANTS: Mapping[str, Any] = MappingProxyType(
    {
        **{f"torch.{name}": DType(name) for name in ITEM_SIZES},
        **{f"torch.{name}": QScheme(name) for name in QSCHEMES},
        **{f"torch.{name}": MemoryFormat(name) for name in MEMORY_FORMATS},
        # The pickler finds memory formats through the first module that imported torch, which is this one.
        **{f"torch._utils.torch.{name}": MemoryFormat(name) for name in MEMORY_FORMATS},
        "builtins.Ellipsis": Ellipsis,
    }
)
"""Global -> the value it is."""

CLASSES: frozenset[str] = frozenset(
    {
        *STORAGES,
        *SUBCLASSES,
        WRAPPER,
        *builtin_reducers.FACTORIES,
        "builtins.bytearray",
        "builtins.frozenset",
        "builtins.range",
        "builtins.slice",
        "numpy.ndarray",
        "torch.Tensor",
        "torch._tensor.Tensor",
        "torch.dtype",
        "torch.layout",
        "torch.memory_format",
        "torch.qscheme",
        "torch.nn.parameter.Buffer",
        "torch.nn.parameter.Parameter",
    }
)
"""Classes that may be values of a payload themselves; calling one that is not in `CALLS` too is refused."""

MARKS: frozenset[str] = frozenset({"torch._dynamo.decorators._DimRange"})
"""Marks of dynamic dimensions."""
INERT: frozenset[str] = MARKS | OPTIONS
"""Data classes that are read into `Opaque` without being trusted first."""

_MODULES = MappingProxyType({"__builtin__": "builtins", "copy_reg": "copyreg", "torch.tensor": "torch._tensor"})
_NAMES = MappingProxyType({"builtins.xrange": "range", "builtins.unicode": "str", "builtins.long": "int"})


def name_global(module: str, name: str) -> Global:
    """Return a `Global`, with the spellings of Python 2 and of older torch releases upgraded to current ones."""
    module = _MODULES.get(module, module)
    return Global(module, _NAMES.get(f"{module}.{name}", name))


def is_plain(path: str) -> bool:
    """Return whether a global is on the allow-list: reading a payload that refers to it is reading data.

    Args:
        path: `module.name`, as `globals_in` returns it.
    """
    return path in CALLS or path in CONSTANTS or path in CLASSES or path in INERT
