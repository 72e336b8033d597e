"""Calls of everyday operators -> the sizes of what they give, as far as plain numbers decide.

A size that a symbol decides is None, and fits every number. `MADE` has a function for each operator; it gives the
sizes of each result, None where it can't tell, or raises `Misfit` where the arguments do not fit one another. Rule T8
compares with what the graph declares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import prod
from types import MappingProxyType
from typing import Any, Final

Size = int | None
Sizes = tuple[Size, ...]
Call = Mapping[str, Any]
"""Arguments by name: sizes for a tensor, a list of those for a list, numbers; absent where unknown."""
Maker = Callable[[Call], "Sequence[Sizes | None] | None"]
"""A call -> the sizes of each of its results; None where they can't be told."""

TENSORS: Final = frozenset(
    (
        *("self", "input", "weight", "indices", "tensors", "condition", "mat1", "mat2", "batch1", "batch2"),
        "grad_output",
    )
)
"""Parameters that take tensors, or lists of them, not numbers."""


class Misfit(Exception):
    """Arguments that do not fit one another: what was expected, and what was there."""


def text(sizes: Sequence[Size]) -> str:
    """Sizes in words: "[2, ?]"."""
    return f"[{', '.join('?' if size is None else str(size)[:24] for size in sizes)}]"


def meet(one: Size, other: Size) -> bool:
    """Whether two sizes may be the same."""
    return one is None or other is None or one == other


def broadcast(*operands: Sizes) -> Sizes:
    """The sizes of what is computed element by element.

    Raises:
        Misfit: they do not broadcast.
    """
    made: list[Size] = []
    for column in zip_longest(*(reversed(sizes) for sizes in operands), fillvalue=1):
        numbers = {size for size in column if size not in (None, 1)}
        if len(numbers) > 1:
            raise Misfit(f"expected sizes that broadcast, got {' and '.join(map(text, operands))}")
        made.append(numbers.pop() if numbers else None if None in column else 1)
    return tuple(reversed(made))


def _dim(call: Call, name: str, rank: int, default: int | None = None) -> int | None:
    """A dimension counted from the front; None where it isn't one (T12 says so)."""
    dim = call.get(name, default)
    if type(dim) is not int or not -max(rank, 1) <= dim < max(rank, 1):
        return None
    return dim % max(rank, 1)


def _along(call: Call, default: int | None = None) -> tuple[Sizes, int] | None:
    """The sizes of `self`, which has dimensions, and the one that the call names."""
    sizes = call.get("self")
    dim = _dim(call, "dim", len(sizes), default) if sizes else None
    return None if not sizes or dim is None else (sizes, dim)


def _same(name: str = "self", results: int = 1) -> Maker:
    """Results of the sizes of one argument."""
    return lambda call: [call[name]] * results if isinstance(call.get(name), tuple) else None


def _pointwise(*names: str) -> Maker:
    def made(call: Call) -> Sequence[Sizes] | None:
        operands = [() if isinstance(call.get(name), (int, float, complex)) else call.get(name) for name in names]
        known = [operand for operand in operands if operand is not None]
        return [broadcast(*known)] if len(known) == len(names) else None

    return made


def _reduced(results: int = 1) -> Maker:
    """One element for what stands along some dimensions."""

    def made(call: Call) -> Sequence[Sizes] | None:
        sizes = call.get("self")
        if sizes is None or "dim?" in call:
            return None
        dim_argument = call.get("dim")
        listed = dim_argument if isinstance(dim_argument, list) else [] if dim_argument is None else [dim_argument]
        dims = [_dim({"dim": dim}, "dim", len(sizes)) for dim in listed] or list(range(len(sizes)))
        if None in dims or len(set(dims)) != len(dims):
            return None
        if call.get("keepdim") is True:
            return [tuple(1 if at in dims else size for at, size in enumerate(sizes))] * results
        return [tuple(size for at, size in enumerate(sizes) if at not in dims)] * results

    return made


def _permuted(call: Call) -> Sequence[Sizes] | None:
    sizes, dims = call.get("self"), call.get("dims")
    if sizes is None or not isinstance(dims, list):
        return None
    order = [_dim({"dim": dim}, "dim", len(sizes)) for dim in dims]
    return None if None in order else [tuple(sizes[at] for at in order if at is not None)]


def _transposed(call: Call) -> Sequence[Sizes] | None:
    sizes = call.get("self")
    if sizes is None:
        return None
    if "dim0" not in call:
        return [sizes[::-1]] if len(sizes) <= 2 else None
    one, other = _dim(call, "dim0", len(sizes)), _dim(call, "dim1", len(sizes))
    if one is None or other is None or not sizes:
        return None
    made = list(sizes)
    made[one], made[other] = made[other], made[one]
    return [tuple(made)]


def _flattened(call: Call) -> Sequence[Sizes] | None:
    sizes = call.get("self")
    if not sizes:
        return None
    start, end = _dim(call, "start_dim", len(sizes), 0), _dim(call, "end_dim", len(sizes), -1)
    if start is None or end is None or start > end:
        return None
    joined = sizes[start : end + 1]
    size = None if None in joined else prod(size for size in joined if size is not None)
    return [(*sizes[:start], size, *sizes[end + 1 :])]


def _unsqueezed(call: Call) -> Sequence[Sizes] | None:
    sizes = call.get("self")
    dim = None if sizes is None else _dim(call, "dim", len(sizes) + 1)
    return None if sizes is None or dim is None else [(*sizes[:dim], 1, *sizes[dim:])]


def _selected(call: Call) -> Sequence[Sizes] | None:
    if (along := _along(call, 0)) is None:
        return None
    sizes, dim = along
    index, size = call.get("index"), sizes[dim]
    if type(index) is int and size is not None and not -size <= index < size:
        raise Misfit(f"expected an index of dimension {dim} from {-size} to {size - 1}, got {str(index)[:24]}")
    return [sizes[:dim] + sizes[dim + 1 :]]


def _sliced(call: Call) -> Sequence[Sizes] | None:
    if (along := _along(call, 0)) is None:
        return None
    sizes, dim = along
    start, end, step, size = call.get("start"), call.get("end"), call.get("step", 1), sizes[dim]
    if type(step) is int and step < 1:
        raise Misfit(f"expected a step of 1 or more, got {str(step)[:24]}")
    is_known = "start?" not in call and "end?" not in call and type(step) is int
    length = None if size is None or not is_known else len(range(*slice(start, end, step).indices(size)))
    return [(*sizes[:dim], length, *sizes[dim + 1 :])]


def _joined(call: Call) -> Sequence[Sizes] | None:
    """Tensors one behind the other."""
    parts = [part for part in call.get("tensors") or () if part != (0,)]
    if not parts or None in parts or (None,) in parts:
        return None
    dim = _dim(call, "dim", len(parts[0]), 0)
    if dim is None or not parts[0]:
        return None
    rests = [part[:dim] + part[dim + 1 :] for part in parts]
    if any(len(rest) != len(rests[0]) or not all(map(meet, rest, rests[0])) for rest in rests):
        raise Misfit(f"expected tensors that differ along dimension {dim} alone, got {', '.join(map(text, parts))}")
    along = [part[dim] for part in parts]
    rest = tuple(next((size for size in column if size is not None), None) for column in zip(*rests, strict=True))
    return [(*rest[:dim], None if None in along else sum(along), *rest[dim:])]


def _stacked(call: Call) -> Sequence[Sizes] | None:
    parts = call.get("tensors")
    if not parts or None in parts:
        return None
    dim = _dim(call, "dim", len(parts[0]) + 1, 0)
    if any(len(part) != len(parts[0]) or not all(map(meet, part, parts[0])) for part in parts):
        raise Misfit(f"expected tensors of one size, got {', '.join(map(text, parts))}")
    return None if dim is None else [(*parts[0][:dim], len(parts), *parts[0][dim:])]


def _split(call: Call) -> Sequence[Sizes] | None:
    along = _along(call, 0)
    if along is None or not (size := along[0][along[1]]):
        return None
    sizes, dim = along
    lengths = call.get("split_sizes", call.get("split_size"))
    if type(lengths) is int:
        if lengths < 1:
            return None
        lengths = [min(lengths, size - start) for start in range(0, min(size, 4096 * lengths), lengths)]
    if not isinstance(lengths, list) or None in lengths:
        return None
    if sum(lengths) != size:
        raise Misfit(f"expected parts of {size} elements in all, got {text(lengths[:12])}")
    return [(*sizes[:dim], length, *sizes[dim + 1 :]) for length in lengths]


def _product(left: str, right: str) -> Maker:
    """Matrix products."""

    def made(call: Call) -> Sequence[Sizes] | None:
        a, b = call.get(left), call.get(right)
        if a is None or b is None or len(a) < 2 or len(b) < 2:
            return None
        return [(*broadcast(a[:-2], b[:-2]), a[-2], b[-1])]

    return made


def _linear(call: Call) -> Sequence[Sizes] | None:
    sizes, weight = call.get("input"), call.get("weight")
    return [(*sizes[:-1], weight[0])] if sizes and weight and len(weight) == 2 else None


def _each(value: Any, count: int, default: int) -> list[int] | None:
    """One number for each dimension: of a list of as many, or of one, or of none."""
    if value is None:
        return [default] * count
    if not isinstance(value, list) or len(value) not in (1, count) or not all(type(one) is int for one in value):
        return None
    return value * count if len(value) == 1 else value


def _windows(call: Call, sizes: Sizes, kernel: Any, steps: Mapping[str, int]) -> Sizes | None:
    """The sizes of what a window gives that is moved over the last dimensions.

    Raises:
        Misfit: a window, step or border that there is not.
    """
    count = len(kernel)
    settings = {name: _each(call.get(name), count, default) for name, default in steps.items()}
    if any(f"{name}?" in call for name in steps) or None in settings.values():
        return None
    for name, least in (("stride", 1), ("dilation", 1), ("padding", 0)):
        if any(number < least for number in settings[name] or ()):
            raise Misfit(f"expected {name} of {least} or more, got {text(settings[name] or [])}")
    if any(number is not None and number < 1 for number in kernel):
        raise Misfit(f"expected a window of 1 or more, got {text(kernel)}")
    made: list[Size] = []
    for at, size in enumerate(sizes[-count:]):
        step, border, apart = ((settings[name] or [])[at] for name in ("stride", "padding", "dilation"))
        if size is None or kernel[at] is None:
            made.append(None)
            continue
        room = size + 2 * border - apart * (kernel[at] - 1) - 1
        if room < 0 and call.get("ceil_mode") is not True:
            raise Misfit(f"expected a window that fits, got one of {text(kernel)} over {text(sizes[-count:])}")
        made.append(None if call.get("ceil_mode") is True else room // step + 1)
    return tuple(made)


def _convolved(call: Call) -> Sequence[Sizes] | None:
    sizes, weight = call.get("input"), call.get("weight")
    if sizes is None or weight is None or len(weight) < 3 or len(sizes) not in (len(weight), len(weight) - 1):
        return None
    if call.get("transposed", False) is not False or isinstance(call.get("padding"), str):
        return None
    made = _windows(call, sizes, weight[2:], {"stride": 1, "padding": 0, "dilation": 1})
    return None if made is None else [(*sizes[: len(sizes) - len(weight) + 1], weight[0], *made)]


def _pooled(count: int, results: int = 1) -> Maker:
    def made(call: Call) -> Sequence[Sizes] | None:
        sizes, kernel = call.get("self"), _each(call.get("kernel_size"), count, 0)
        if sizes is None or kernel is None or len(sizes) <= count:
            return None
        if call.get("stride") in (None, []) and "stride?" not in call:
            call = {**call, "stride": kernel}
        gave = _windows(call, sizes, kernel, {"stride": 1, "padding": 0, "dilation": 1})
        return None if gave is None else [(*sizes[:-count], *gave)] * results

    return made


def _adaptive(call: Call) -> Sequence[Sizes] | None:
    sizes, asked = call.get("self"), call.get("output_size")
    if sizes is None or not isinstance(asked, list) or len(sizes) <= len(asked):
        return None
    return [(*sizes[: -len(asked)], *asked)]


def _resampled(call: Call) -> Sequence[Sizes] | None:
    sizes, asked, scales = call.get("input"), call.get("output_size"), call.get("scale_factors")
    if sizes is None or len(sizes) < 3:
        return None
    for name, numbers in (("output_size", asked), ("scale_factors", scales)):
        if isinstance(numbers, list) and len(numbers) != len(sizes) - 2:
            raise Misfit(f"expected {len(sizes) - 2} numbers as {name}, one for each dimension, got {len(numbers)}")
    if isinstance(asked, list):
        return [(*sizes[:2], *asked)]
    if not isinstance(scales, list):
        return None
    made = [None if size is None else int(size * by) for size, by in zip(sizes[2:], scales, strict=True)]
    return [(*sizes[:2], *made)]


def _embedded(call: Call) -> Sequence[Sizes] | None:
    weight, indices = call.get("weight"), call.get("indices")
    return [(*indices, *weight[1:])] if isinstance(indices, tuple) and weight else None


def _normalized(results: int) -> Maker:
    """Over the last dimensions, which are named."""

    def made(call: Call) -> Sequence[Sizes | None] | None:
        sizes, shape = call.get("input"), call.get("normalized_shape")
        if sizes is None or not isinstance(shape, list):
            return None
        if not shape or len(shape) > len(sizes) or not all(map(meet, shape, sizes[len(sizes) - len(shape) :])):
            raise Misfit(f"expected the last sizes of {text(sizes)} as normalized_shape, got {text(shape)}")
        return [sizes] + [None] * (results - 1)

    return made


def _indexed(call: Call) -> Sequence[Sizes] | None:
    """Indices, one for each dimension; those that are masks take as many as they have."""
    sizes, indices = call.get("self"), call.get("indices")
    if sizes is None or not isinstance(indices, list) or "masks" in call:
        return None
    present = [at for at, index in enumerate(indices) if index is not None]
    if len(indices) > len(sizes) or not present:
        raise Misfit(f"expected 1 to {len(sizes)} indices, got {len(present)} at {len(indices)} places")
    made = broadcast(*(indices[at] for at in present))
    is_together = present == list(range(present[0], present[-1] + 1))
    start = present[0] if is_together else 0
    rest = [size for at, size in enumerate(sizes) if at not in present]
    return [(*rest[:start], *made, *rest[start:])]


def _sorted(call: Call) -> Sequence[Sizes] | None:
    return None if call.get("self") is None else [call["self"]] * 2


def _topmost(call: Call) -> Sequence[Sizes] | None:
    along, many = _along(call, -1), call.get("k")
    if along is None or type(many) is not int:
        return None
    sizes, dim = along
    if (size := sizes[dim]) is not None and not 0 <= many <= size:
        raise Misfit(f"expected k from 0 to {size}, got {str(many)[:24]}")
    return [(*sizes[:dim], many, *sizes[dim + 1 :])] * 2


def _picked(call: Call) -> Sequence[Sizes] | None:
    along, index = _along(call), call.get("index")
    if along is None or not isinstance(index, tuple) or len(index) > 1:
        return None
    sizes, dim = along
    return [(*sizes[:dim], *(index or (1,)), *sizes[dim + 1 :])]


_UNARY: Final = (
    *("relu", "relu_", "sigmoid", "tanh", "gelu", "silu", "exp", "neg", "abs", "sin", "cos", "sqrt", "rsqrt", "log"),
    *("erf", "floor", "ceil", "round", "sign", "square", "reciprocal", "leaky_relu", "elu", "hardtanh", "clamp"),
    *("hardswish", "hardsigmoid", "softplus", "mish", "clone", "contiguous", "alias", "detach", "logical_not"),
    *("bitwise_not", "isnan", "isinf", "cumsum", "cumprod", "tril", "triu", "flip", "roll", "dropout", "_to_copy"),
    *("full_like", "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "masked_fill_", "log1p"),
    *("_softmax", "_log_softmax", "lift_fresh_copy", "zero_", "fill_", "copy_", "add_", "sub_", "mul_", "div_"),
)  # fmt: skip
_MADE: Final[Mapping[str, Maker]] = {
    **{f"{name}.default": _same() for name in _UNARY},
    **{f"{name}_.Tensor": _same() for name in ("add", "sub", "mul", "div")},
    **{f"{name}.int": _same() for name in ("softmax", "log_softmax")},
    **{f"to.{overload}": _same() for overload in ("dtype", "dtype_layout", "device")},
    **{f"{name}.Tensor": _pointwise("self", "other") for name in ("atan2", "remainder", "fmod", "logical_and")},
    **{f"pow.{overload}": _pointwise("self", "exponent") for overload in ("Tensor_Tensor", "Tensor_Scalar")},
    **{f"{name}.Scalar": _same() for name in ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")},
    **{f"logical_{name}.default": _pointwise("self", "other") for name in ("and", "or", "xor")},
    "where.self": _pointwise("condition", "self", "other"),
    **{f"{name}.dim_IntList": _reduced() for name in ("sum", "nansum")},
    **{f"{name}.dim": _reduced() for name in ("mean", "any", "all", "var", "std")},
    **{f"{name}.default": _reduced() for name in ("amax", "amin", "argmax", "argmin", "logsumexp")},
    **{f"{name}.default": lambda call: [()] for name in ("sum", "mean", "max", "min", "any", "all", "prod")},
    **{f"{name}.correction": _reduced() for name in ("var", "std")},
    **{f"{name}.dim": _reduced(2) for name in ("max", "min", "median")},
    "prod.dim_int": _reduced(),
    "permute.default": _permuted,
    "transpose.int": _transposed,
    "t.default": _transposed,
    "flatten.using_ints": _flattened,
    "unsqueeze.default": _unsqueezed,
    "select.int": _selected,
    "slice.Tensor": _sliced,
    "cat.default": _joined,
    "stack.default": _stacked,
    "split_with_sizes.default": _split,
    "split.Tensor": _split,
    "mm.default": _product("self", "mat2"),
    "bmm.default": _product("self", "mat2"),
    "matmul.default": _product("self", "other"),
    "addmm.default": _product("mat1", "mat2"),
    "baddbmm.default": _product("batch1", "batch2"),
    "linear.default": _linear,
    **{f"{name}.default": _convolved for name in ("conv1d", "conv2d", "conv3d", "convolution")},
    **{f"{kind}_pool{count}d.default": _pooled(count) for kind in ("max", "avg") for count in (2, 3)},
    **{f"max_pool{count}d_with_indices.default": _pooled(count, 2) for count in (2, 3)},
    **{f"{name}.default": _adaptive for name in ("adaptive_avg_pool2d", "_adaptive_avg_pool2d")},
    **{f"upsample_{kind}.vec": _resampled for kind in ("nearest1d", "nearest2d", "bilinear2d", "bicubic2d")},
    "embedding.default": _embedded,
    "layer_norm.default": _normalized(1),
    "native_layer_norm.default": _normalized(3),
    "index.Tensor": _indexed,
    "index_select.default": _picked,
    "gather.default": _same("index"),
    **{
        f"{name}.{overload}": _same() for name in ("scatter", "scatter_add") for overload in ("src", "value", "default")
    },
    "sort.default": _sorted,
    "topk.default": _topmost,
}
MADE: Final[Mapping[str, Maker]] = MappingProxyType({f"torch.ops.aten.{name}": maker for name, maker in _MADE.items()})
"""Target -> what tells the sizes of its results."""
