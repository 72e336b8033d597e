"""Tensor subclasses of torchao as data: the table of classes whose inner tensors and options are read.

torch saves a quantized weight as a call of `_rebuild_wrapper_subclass` (type, sizes, strides of the whole) and the
attributes of the object. A class of this table has a known list of them; any other class, and any other attribute, is
refused as before. Nothing is called: objects among the options (`OPTIONS`) are read as descriptions.

Source: `tensor_data_names` and its companions in torchao/quantization/quantize_/workflows, 0.13 to 0.18.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pt2kit.messages import printable
from pt2kit.pickles.budget import Place, describe
from pt2kit.pickles.values import Device, DType, Global, Layout, Opaque, Size, SubclassTensor, TensorKind

WRAPPER: Final = "torch._utils._rebuild_wrapper_subclass"
"""The function that torch rebuilds such tensors by."""


@dataclass(frozen=True, slots=True)
class Subclass:
    """The attributes of one class.

    Args:
        tensors: names of the inner tensors that each object has.
        optional: names of inner tensors that may be None or missing.
        options: names of the other attributes.
        is_plain: whether `qdata` has one element for each of the whole, so that its sizes are the same.
    """

    tensors: tuple[str, ...]
    optional: tuple[str, ...]
    options: tuple[str, ...]
    is_plain: bool = False


def _row(tensors: str, optional: str, options: str, *, is_plain: bool = False) -> Subclass:
    return Subclass(tuple(tensors.split()), tuple(optional.split()), tuple(options.split()), is_plain)


_FLOAT8_OPTIONS = "block_size mm_config hp_value_lb hp_value_ub act_quant_kwargs kernel_preference dtype"
_INT8_TENSORS = "zero_point act_quant_scale act_quant_zero_point act_pre_scale"
_INT8_OPTIONS = "block_size dtype act_quant_kwargs reduce_range"
_INTX_OPTIONS = "target_dtype block_size dtype activation_quantization apply_int8_act_asym_per_token_quant"

SUBCLASSES: Final[Mapping[str, Subclass]] = MappingProxyType(
    {
        f"torchao.quantization.{name}": row
        for name, row in {
            "Int8Tensor": _row("qdata scale", _INT8_TENSORS, _INT8_OPTIONS, is_plain=True),
            "Float8Tensor": _row("qdata scale", "", _FLOAT8_OPTIONS, is_plain=True),
            "IntxUnpackedTensor": _row("qdata scale zero_point", "", _INTX_OPTIONS, is_plain=True),
            "IntxUnpackedToInt8Tensor": _row("qdata scale zero_point", "", _INTX_OPTIONS, is_plain=True),
            "Int4Tensor": _row("qdata scale zero_point", "act_pre_scale", "block_size shape activation_dtype"),
            "Int4PlainInt32Tensor": _row("qdata scale zero_point", "act_pre_scale", "block_size shape"),
            "Int4PreshuffledTensor": _row("qdata group_scale", "group_zero row_scale", "block_size shape"),
            "Int4TilePackedTo4dTensor": _row("qdata scale_and_zero", "act_pre_scale", "block_size shape"),
            "Int4OpaqueTensor": _row("qdata scale_and_zero", "act_pre_scale", "block_size shape"),
            "Int4MarlinSparseTensor": _row("qdata scale zero_point meta", "", "block_size num_bits shape"),
        }.items()
    }
)
"""Class -> its attributes."""

_QUANTIZATION = "torchao.quantization"
_WORKFLOWS = f"{_QUANTIZATION}.quantize_.workflows"

OPTIONS: Final[frozenset[str]] = frozenset(
    {
        f"{_QUANTIZATION}.quant_primitives.MappingType",
        f"{_QUANTIZATION}.quantize_.common.kernel_preference.KernelPreference",
        f"{_WORKFLOWS}.int8.int8_tensor.QuantizeTensorToInt8Kwargs",
        f"{_WORKFLOWS}.float8.float8_tensor.QuantizeTensorToFloat8Kwargs",
        *(
            f"{_QUANTIZATION}.granularity.{name}"
            for name in ("PerTensor", "PerAxis", "PerGroup", "PerRow", "PerToken", "PerBlock")
        ),
        "torchao.float8.inference.Float8MMConfig",
    }
)
"""Enumerations and data classes among the options."""


def rebuild_subclass(at: Place, cls: Global, args: tuple[Any, ...], state: Any) -> SubclassTensor:
    """Describe a tensor of one of `SUBCLASSES`.

    Args:
        at: the call.
        cls: the class.
        args: `(cls, dtype, size, stride, storage_offset, layout, device, requires_grad)`.
        state: its attributes.

    Raises:
        UnsupportedError: another class, or an attribute that the table does not have.
        PayloadError: parts of another form.
    """
    subclass = SUBCLASSES.get(cls.path)
    if subclass is None:
        raise at.unsupported("a class of the table", describe(cls))
    at = at.part(cls.name)
    at.arity(args, 8)
    again, dtype, size, stride, offset, layout, device, requires_grad = args
    sizes, strides = at.dims(size, "sizes"), at.dims(stride, "strides")
    is_described = isinstance(dtype, DType) and isinstance(device, Device) and layout == Layout("strided")
    if again != cls or not is_described or len(sizes) != len(strides):
        raise at.wrong("the class, a dtype, sizes and as many strides, strided, a device", args)
    at.count(offset, "storage_offset")
    at.check(state, dict, "a dict of attributes", "state")
    at.budget.spend(100 * len(state))
    known = {*subclass.tensors, *subclass.optional, *subclass.options, *_FLAGS}
    if odd := [name for name in state if name not in known]:
        raise at.unsupported("attributes of torchao 0.13 to 0.18", repr(printable(str(odd[0]), 40)))
    parts = {name: at.tensor(state[name], name) for name in subclass.tensors if name in state}
    if missing := [name for name in subclass.tensors if name not in state]:
        raise at.error(f"the tensor {missing[0]}", "none")
    optional = {name: state[name] for name in subclass.optional if state.get(name) is not None}
    parts |= {name: at.tensor(value, name) for name, value in optional.items()}
    if subclass.is_plain and parts["qdata"].sizes != sizes:
        raise at.error(f"qdata of sizes {list(sizes)}", f"sizes {list(parts['qdata'].sizes)}")
    if math.prod(sizes) > 2 * parts["qdata"].storage.nbytes:
        raise at.error("qdata of at least 4 bits for each element", f"sizes {list(parts['qdata'].sizes)}")
    options = {name: _option(at.part(name), state[name]) for name in subclass.options if name in state}
    is_param = at.flag(state.get("_is_param", False), "_is_param")
    needs = at.flag(requires_grad, "requires_grad")
    kind: TensorKind = "parameter" if is_param else "tensor"
    whole = (sizes, strides, offset, device.text)
    return SubclassTensor(cls.path, dtype.name, *whole, parts, options, requires_grad=needs, kind=kind)


_FLAGS: Final = ("_is_param",)
"""Attributes that torch itself sets."""


def _option(at: Place, value: Any, depth: int = 0) -> Any:
    """Check that an option is plain data, or an object of `OPTIONS` with plain parts."""
    if value is None or isinstance(value, bool | int | float | str | DType | Size):
        return value
    inner: list[Any] | None = None
    if isinstance(value, list | tuple):
        inner = list(value)
    elif isinstance(value, Opaque) and value.cls.path in OPTIONS and not (value.kwargs or value.items or value.pairs):
        fields = value.state if value.built else {}
        if isinstance(fields, dict) and all(isinstance(name, str) and name.isidentifier() for name in fields):
            inner = [*value.args, *fields.values()]
    if inner is None or depth > _MAX_DEPTH:
        raise at.wrong("plain options", value)
    # Lists that repeat lists are small until they are traversed, as here and by everybody who reads them.
    at.budget.spend(_OPTION_BYTES * len(inner))
    for item in inner:
        _option(at, item, depth + 1)
    return value


_MAX_DEPTH: Final = 4
"""Options inside options; torchao nests two."""
_OPTION_BYTES: Final = 1024
"""Memory that an option inside another one counts as, so that a reading has some hundred thousand at most."""
