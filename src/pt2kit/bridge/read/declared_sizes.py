"""Refuses programs whose value tables contradict the calls: sizes asked for and declared, operands that cannot meet.

The sizes of a value are what the file says. They are compared with what a call itself says, wherever both are plain
numbers: the size that `full` or `repeat` gets, the dimensions that a matrix product joins, the ones that broadcasting
aligns. Symbols agree with everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.read.operator_tables import words
from pt2kit.bridge.scalars import DTYPES
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph import Scope, node_label

MAX_CREATED_BYTES: Final = 16 << 30
"""What one call may create out of numbers alone: a causal mask of 131,072 tokens in bools."""

MAX_STATIC_BYTES: Final = 1 << 40
"""What any one value without symbols may need: more than the memory of any one device."""

Size = int | None
Sizes = tuple[Size, ...]
"""Sizes of a value; None where a symbol decides."""

_CREATORS: Final = words(
    """full zeros ones empty rand randn randint new_full new_zeros new_ones new_empty empty_strided new_empty_strided
    empty_permuted zero normal arange eye linspace logspace"""
)
_POINTWISE: Final = frozenset(
    f"torch.ops.aten.{name}.Tensor" for name in words("add sub mul div maximum minimum eq ne lt le gt ge")
)


def check_sizes(scope: Scope) -> None:
    """Hold every call against the sizes that the graph declares.

    Raises:
        GraphError: a call and the declared sizes contradict each other.
        LimitError: a call creates more than `MAX_CREATED_BYTES` out of numbers.
    """
    metas = scope.graph.tensor_values
    for number, node in enumerate(scope.graph.nodes):
        check = _CHECKS.get(node.target)
        if check is None:
            continue
        where = f"{scope.where}.nodes[{number}]: node {node_label(node, number)} ({node.target})"
        try:
            call = {named.name: named.arg for named in node.inputs}
            result = _sizes(node.outputs[0], metas) if node.outputs else None
            check(call, result, metas, where)
        except KeyError:
            continue  # An argument that is not there is reported when the call is built.
        if node.target.split(".")[3] in _CREATORS or node.target in _REPEATS:
            _check_created(node, metas, where)


def check_extent(meta: schema.TensorMeta, where: str) -> None:
    """Refuse a value that no device could hold.

    Raises:
        LimitError: it has no symbols, and needs more than `MAX_STATIC_BYTES`.
    """
    needed = _static_bytes(meta)
    if needed > MAX_STATIC_BYTES:
        raise LimitError(f"{where}: expected at most {MAX_STATIC_BYTES} bytes, got {needed}")


def _check_created(node: schema.Node, metas: Mapping[str, schema.TensorMeta], where: str) -> None:
    tensor = node.outputs[0].as_tensor if node.outputs else UNSET
    meta = None if tensor is UNSET else metas.get(tensor.name)
    needed = 0 if meta is None else _static_bytes(meta)
    if needed > MAX_CREATED_BYTES:
        raise LimitError(f"{where}: expected at most {MAX_CREATED_BYTES} bytes to be created, got {needed}")


def _static_bytes(meta: schema.TensorMeta) -> int:
    """The bytes that a value spans, 0 where symbols decide; repeated elements (stride 0) count once."""
    last = 0
    for size, stride in zip(meta.sizes, meta.strides, strict=False):
        if size.as_int is UNSET or stride.as_int is UNSET:
            return 0
        if size.as_int == 0:
            return 0
        last += (size.as_int - 1) * stride.as_int
    dtype = DTYPES.get(meta.dtype)
    return (last + 1) * (dtype.itemsize if dtype is not None else 1)


def _sizes(argument: schema.Argument, metas: Mapping[str, schema.TensorMeta]) -> Sizes | None:
    """The declared sizes of a tensor argument; None for anything else."""
    if argument.as_tensor is UNSET or argument.as_tensor.name not in metas:
        return None
    return tuple(None if size.as_int is UNSET else size.as_int for size in metas[argument.as_tensor.name].sizes)


def _numbers(argument: schema.Argument) -> Sizes | None:
    """A list of numbers in a call; None for entries that are values."""
    if argument.as_ints is not UNSET:
        return tuple(argument.as_ints)
    if argument.as_sym_ints is not UNSET:
        return tuple(None if item.as_int is UNSET else item.as_int for item in argument.as_sym_ints)
    return None


def _meet(a: Size, b: Size) -> bool:
    return a is None or b is None or a == b


def _require(fits: bool, where: str, what: str, got: Any) -> None:
    if not fits:
        raise GraphError(f"{where}: expected {what}, got {got}")


Call = Mapping[str, schema.Argument]
Check = Callable[[Call, Sizes | None, Mapping[str, schema.TensorMeta], str], None]


def _created(call: Call, result: Sizes | None, metas: Any, where: str) -> None:
    asked = _numbers(call["size"])
    if asked is None or result is None:
        return
    fits = len(asked) == len(result) and all(a is None or a == b for a, b in zip(asked, result, strict=True))
    _require(fits, where, f"the declared sizes {list(result)} to be the ones asked for", list(asked))


def _repeated(call: Call, result: Sizes | None, metas: Any, where: str) -> None:
    base, times = _sizes(call["self"], metas), _numbers(call["repeats"])
    if base is None or times is None or result is None:
        return
    padded = (1,) * (len(times) - len(base)) + base
    product = [None if a is None or b is None else a * b for a, b in zip(padded, times, strict=False)]
    fits = len(product) == len(result) and all(map(_meet, product, result))
    _require(fits, where, f"the declared sizes {list(result)} to be the repeated ones", product)


def _joined(left: str, right: str, axis: int) -> Check:
    """Matrix products: the last dimension of one operand meets dimension `axis`, from the end, of the other."""

    def check(call: Call, result: Sizes | None, metas: Any, where: str) -> None:
        a, b = _sizes(call[left], metas), _sizes(call[right], metas)
        if a and b:
            meets = b[max(axis, -len(b))]
            _require(_meet(a[-1], meets), where, f"{left} and {right} to meet in one size", f"{a[-1]} and {meets}")

    return check


def _pointwise(call: Call, result: Sizes | None, metas: Any, where: str) -> None:
    a, b = _sizes(call["self"], metas), _sizes(call["other"], metas)
    if a is None or b is None:
        return
    for x, y in zip(reversed(a), reversed(b), strict=False):
        fits = x is None or y is None or x == y or 1 in (x, y)
        _require(fits, where, "self and other to broadcast", f"{list(a)} and {list(b)}")


def _convolved(call: Call, result: Sizes | None, metas: Any, where: str) -> None:
    a, b = _sizes(call["input"], metas), _sizes(call["weight"], metas)
    groups = call["groups"].as_int if "groups" in call else 1
    if a is None or b is None or not isinstance(groups, int) or len(a) not in (len(b), len(b) - 1):
        return
    channels, expected = a[1 - len(b)], b[1]
    if channels is not None and expected is not None:
        _require(channels == expected * groups, where, f"{expected * groups} input channels", channels)


_REPEATS: Final = frozenset(("torch.ops.aten.repeat.default",))
_CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        **{
            f"torch.ops.aten.{name}": _created
            for name in (
                "full.default", "zeros.default", "ones.default", "empty.memory_format", "rand.default",
                "randn.default", "randint.default", "randint.low", "new_full.default", "new_zeros.default",
                "new_ones.default", "new_empty.default", "empty_strided.default", "new_empty_strided.default",
            )
        },
        "torch.ops.aten.repeat.default": _repeated,
        "torch.ops.aten.linear.default": _joined("input", "weight", -1),
        "torch.ops.aten.mm.default": _joined("self", "mat2", -2),
        "torch.ops.aten.bmm.default": _joined("self", "mat2", -2),
        "torch.ops.aten.matmul.default": _joined("self", "other", -2),
        "torch.ops.aten.addmm.default": _joined("mat1", "mat2", -2),
        "torch.ops.aten.baddbmm.default": _joined("batch1", "batch2", -2),
        "torch.ops.aten.conv1d.default": _convolved,
        "torch.ops.aten.conv2d.default": _convolved,
        "torch.ops.aten.conv3d.default": _convolved,
        **dict.fromkeys(_POINTWISE, _pointwise),
    }
)  # fmt: skip
