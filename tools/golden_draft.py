"""A program of the design draft that uses everything its table has, and the file next to it."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from pt2kit.versions.draft.graph import LAYOUTS, MEMORY_FORMATS, SCALAR_TYPES

_WEIGHT = b"?\x80\0\0@\0\0\0@@\0\0"
"""1.0, 2.0 and 3.0, big-endian."""


def external_bytes() -> bytes:
    """The file that one of the buffers lies in."""
    return b"\0" * 4 + _WEIGHT


def draft() -> dict[str, Any]:
    """The program."""
    return {
        "name": "golden",
        "graph": _graph(),
        "metadata": {"key": "text"},
        "parameters": {"a.weight": _tensor({"data_location": "Internal", "data": _internal()})},
        "buffers": {"a.buf": _tensor({"data_location": "External", "data": _external()})},
    }


def _external() -> dict[str, str]:
    checksum = f"sha256:{hashlib.sha256(_WEIGHT).hexdigest()}"
    return {"location": "draft.bin", "offset": "4", "length": str(len(_WEIGHT)), "checksum": checksum}


def _internal() -> dict[str, str]:
    return {"buffer": base64.b64encode(_WEIGHT).decode()}


def _tensor(storage: dict[str, Any]) -> dict[str, Any]:
    return {"storage": storage, "meta": _meta()}


def _meta(**more: Any) -> dict[str, Any]:
    meta = {
        "dtype": "f32",
        "sizes": [{"as_int": 3}],
        "requires_grad": False,
        "device": {"type": "cpu", "index": 0},
        "strides": [{"as_int": 1}],
        "storage_offset": {"as_int": 0},
        "layout": "strided",
    }
    return {**meta, **more}


def _values() -> list[dict[str, Any]]:
    metas = {name: _meta() for name in ("x", "a.weight", "a.buf", "y", "z")}
    metas |= {f"dtype_{name}": _meta(dtype=name) for name in SCALAR_TYPES}
    metas |= {f"layout_{name}": _meta(layout=name) for name in LAYOUTS}
    metas["dynamic"] = _meta(sizes=[{"as_sym": "s0"}], device={"type": "cuda", "index": 1})
    return [{"name": name, "meta": meta} for name, meta in metas.items()]


def _arguments() -> dict[str, Any]:
    arguments: list[dict[str, Any]] = [
        {"as_none": True},
        {"as_tensor": {"name": "x"}},
        {"as_tensors": [{"name": "x"}, {"name": "a.weight"}]},
        {"as_symint": {"name": "n"}},
        {"as_symints": [{"name": "n"}, {"name": "constant_3"}]},
        {"as_bool": True},
        {"as_bools": [True, False]},
        {"as_int": 3},
        {"as_ints": [1, 2]},
        {"as_float": "-Infinity"},
        {"as_floats": [0.5]},
        {"as_str": "abc"},
        {"as_device": {"type": "cpu", "index": 0}},
    ]
    arguments += [{"as_scalar_type": name} for name in SCALAR_TYPES]
    arguments += [{"as_layout": name} for name in LAYOUTS]
    arguments += [{"as_memory_format": name} for name in MEMORY_FORMATS]
    return {f"a{index}": argument for index, argument in enumerate(arguments)}


def _branch() -> dict[str, Any]:
    empty = {"inputs": [{"name": "x"}], "outputs": [{"name": "x"}], "nodes": [], "symint_values": []}
    graph = {**empty, "tensor_values": [{"name": "x", "meta": _meta()}]}
    return {"name": "branch", "graph": graph, "metadata": {}, "parameters": {}, "buffers": {}}


def _graph() -> dict[str, Any]:
    metadata = {"stack_trace": "", "nn_module_stack": "", "extra": {"key": "text"}}
    size = {
        "target": "torch.ops.aten.sym_size.int",
        "args": [],
        "kwargs": {"self": {"as_tensor": {"name": "x"}}, "dim": {"as_int": 0}},
        "outputs": [{"as_symint": {"name": "n"}}],
        "metadata": {**metadata, "extra": {}},
    }
    kitchen = {
        "target": "torch.ops.golden.kitchen.default",
        "args": [],
        "kwargs": _arguments(),
        "outputs": [{"as_tensor": {"name": "y"}}],
        "metadata": metadata,
    }
    cond = {
        "target": "torch.ops.higher_order.cond",
        "args": [
            {"as_tensor": {"name": "x"}},
            {"as_gm": _branch()},
            {"as_gm": _branch()},
            {"as_tensors": [{"name": "x"}]},
        ],
        "kwargs": {},
        "outputs": [{"as_tensor": {"name": "z"}}],
        "metadata": {**metadata, "extra": {}},
    }
    return {
        "inputs": [{"name": "x"}],
        "outputs": [{"name": "y"}, {"name": "z"}],
        "nodes": [size, kitchen, cond],
        "tensor_values": _values(),
        "symint_values": [{"name": "n", "value": {"as_sym": "s0"}}, {"name": "constant_3", "value": {"as_int": 3}}],
    }
