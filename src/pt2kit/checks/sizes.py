"""Calls against the sizes that the graph declares, as far as plain numbers decide (rules T8 and T9).

What a call says itself (the size that `full` gets), what it joins (matrix products) and what it broadcasts must agree
with the value tables. Symbols agree with everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from types import MappingProxyType
from typing import Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem
from pt2kit.tensors.dtypes import DTYPES

MAX_CREATED_BYTES: Final = 16 << 30
"""What one call may create out of numbers alone: a causal mask of 131,072 tokens in bools."""

_NUMBERS: Final = frozenset(("as_int", "as_float", "as_bool", "as_complex", "as_sym_int", "as_sym_float"))

Size = int | None
Sizes = tuple[Size, ...]
"""Sizes of a value; None where a symbol decides."""
Values = Mapping[str, schema.TensorMeta]
Call = Mapping[str, schema.Argument]
Rule = Callable[[Call, "Sizes | None", Values], "str | None"]
"""(arguments by name, declared sizes of the result, the value table) -> what is wrong: "expected …, got …"."""


def size_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate the calls that contradict the declared sizes, or create more than `MAX_CREATED_BYTES` from numbers.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for step in context.steps():
        if (problem := size_problem(step.node, step.scope.graph.tensor_values)) is not None:
            yield Problem(step.where, *problem)


def size_problem(node: schema.Node, values: Values) -> tuple[str, str] | None:
    """Say what is wrong with the sizes of one call.

    Args:
        node: the call.
        values: the value table of its graph.

    Returns:
        T8 or T9, and "expected …, got …"; None where nothing is wrong, or plain numbers do not decide.
    """
    rule = _RULES.get(node.target)
    if rule is None:
        return None
    call = {named.name: named.arg for named in node.inputs}
    result = _sizes(node.outputs[0], values) if node.outputs else None
    if (wrong := rule(call, result, values)) is not None:
        return "T8", f"{wrong} ({node.target.removeprefix('torch.ops.')})"
    if rule not in (_created, _repeated) or result is None:
        return None
    if (needed := spanned_bytes(values[node.outputs[0].as_tensor.name])) > MAX_CREATED_BYTES:
        return "T9", f"expected at most {MAX_CREATED_BYTES:,} bytes from one call, got {needed:,}"
    return None


def spanned_bytes(meta: schema.TensorMeta) -> int:
    """The bytes that a value spans, 0 where symbols decide; repeated elements (stride 0) count once."""
    last = 0
    for size, stride in zip(meta.sizes, meta.strides, strict=False):
        length, step = size.as_int, stride.as_int
        if not isinstance(length, int) or not isinstance(step, int) or length <= 0:
            return 0
        last += (length - 1) * step
    row = DTYPES.get(meta.dtype)
    return (last + 1) * (row.itemsize if row else 1)


def _sizes(argument: schema.Argument | None, values: Values) -> Sizes | None:
    """The declared sizes of a tensor argument; None for anything else."""
    if argument is None or argument.as_tensor is UNSET:
        return None
    meta = values.get(argument.as_tensor.name)
    return None if meta is None else tuple([None if size.as_int is UNSET else size.as_int for size in meta.sizes])


def _numbers(argument: schema.Argument | None) -> Sizes | None:
    """A list of numbers in a call; None for entries that are values."""
    value = argument.value if argument is not None and argument.type in ("as_ints", "as_sym_ints") else None
    if not isinstance(value, list):
        return None
    numbers = [item if isinstance(item, int) else item.as_int for item in value]
    return tuple(item if isinstance(item, int) else None for item in numbers)


def _meet(a: Size, b: Size) -> bool:
    return a is None or b is None or a == b


def _created(call: Call, result: Sizes | None, values: Values) -> str | None:
    asked = _numbers(call.get("size"))
    if asked is None or result is None:
        return None
    # What is asked for by a plain number is declared by it, too, whatever symbols stand beside it.
    plain = all(want is None or want == got for want, got in zip(asked, result, strict=False))
    if len(asked) == len(result) and all(map(_meet, asked, result)) and plain:
        return None
    return f"expected a result of the sizes that are asked for, {_text(asked)}, got {_text(result)} declared"


def _repeated(call: Call, result: Sizes | None, values: Values) -> str | None:
    base, times = _sizes(call.get("self"), values), _numbers(call.get("repeats"))
    if base is None or times is None or result is None or len(times) < len(base):
        return None
    padded = (1,) * (len(times) - len(base)) + base
    product = tuple(None if a is None or b is None else a * b for a, b in zip(padded, times, strict=True))
    if len(product) == len(result) and all(map(_meet, product, result)):
        return None
    return f"expected a result of the repeated sizes, {_text(product)}, got {_text(result)} declared"


def _joined(left: str, right: str, axis: int) -> Rule:
    """Matrix products: the last dimension of one operand meets dimension `axis`, from the end, of the other."""

    def rule(call: Call, result: Sizes | None, values: Values) -> str | None:
        a, b = _sizes(call.get(left), values), _sizes(call.get(right), values)
        if not a or not b or _meet(a[-1], b[max(axis, -len(b))]):
            return None
        return f"expected {left} and {right} to meet in one size, got {_text(a)} and {_text(b)}"

    return rule


def _pointwise(call: Call, result: Sizes | None, values: Values) -> str | None:
    a, b = _sizes(call.get("self"), values), _sizes(call.get("other"), values)
    if call.get("other") is not None and call["other"].type in _NUMBERS:
        b = ()
    if a is None or b is None or (a == result and b in ((), a)):
        return None
    if not all(_meet(x, y) or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False)):
        return f"expected self and other to broadcast, got {_text(a)} and {_text(b)}"
    together = tuple(_broadcast(x, y) for x, y in zip_longest(reversed(a), reversed(b), fillvalue=1))[::-1]
    if result is None or (len(together) == len(result) and all(map(_meet, together, result))):
        return None
    return (
        f"expected a result of the sizes {_text(together)}, as self and other broadcast, got {_text(result)} declared"
    )


def _broadcast(one: Size, other: Size) -> Size:
    """One size of a result; None where a symbol decides."""
    if one == 1:
        return other
    return one if other in (1, one) else None


def _convolved(call: Call, result: Sizes | None, values: Values) -> str | None:
    a, b = _sizes(call.get("input"), values), _sizes(call.get("weight"), values)
    groups = call["groups"].as_int if "groups" in call else 1
    if a is None or b is None or not isinstance(groups, int) or len(b) < 2 or len(a) not in (len(b), len(b) - 1):
        return None
    channels, expected = a[1 - len(b)], b[1]
    if channels is None or expected is None or channels == expected * groups:
        return None
    return f"expected {expected * groups} input channels, got {channels}"


def _text(sizes: Sizes) -> str:
    return f"[{', '.join('?' if size is None else str(size)[:24] for size in sizes)}]"


_CREATORS: Final = (
    *("full.default", "zeros.default", "ones.default", "empty.memory_format", "rand.default", "randn.default"),
    *("randint.default", "randint.low", "new_full.default", "new_zeros.default", "new_ones.default"),
    *("new_empty.default", "empty_strided.default", "new_empty_strided.default"),
)
_JOINED: Final = {
    "linear": ("input", "weight", -1),
    "mm": ("self", "mat2", -2),
    "bmm": ("self", "mat2", -2),
    "matmul": ("self", "other", -2),
    "addmm": ("mat1", "mat2", -2),
    "baddbmm": ("batch1", "batch2", -2),
}
_POINTWISE: Final = ("add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge")
_RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **{f"torch.ops.aten.{name}": _created for name in _CREATORS},
        "torch.ops.aten.repeat.default": _repeated,
        **{f"torch.ops.aten.{name}.default": _joined(*operands) for name, operands in _JOINED.items()},
        **{f"torch.ops.aten.{name}.default": _convolved for name in ("conv1d", "conv2d", "conv3d")},
        **{f"torch.ops.aten.{name}.Tensor": _pointwise for name in _POINTWISE},
    }
)
