"""Sizes that kernels take on trust -> what does not fit in one call. `data/kernels.json` says which call keeps what.

A call is what its arguments are: sizes for a tensor, a list of them for a list of tensors, numbers, texts. What is not
known is None, and fits. Where what a kernel trusts comes from another call, that one's arguments are there, too, as
"made.weight".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.recurrent_sizes import RECURRENT
from pt2kit.checks.shapes import Call, Rule, Shape, Sizes, fit, meet

MAX_REPEATED: Final = 1 << 36
"""Elements of one tensor, counted as often as it repeats them."""
MAX_PADDING: Final = 1 << 40
"""Elements that are put before or behind a dimension."""


def _alike(first: str, *others: str) -> Rule:
    """Tensors of one shape."""

    def rule(call: Call) -> Iterator[str]:
        for other in others:
            if not fit(call.get(first), call.get(other)):
                yield f"{other} in the shape of {first}"

    return rule


def _all_of(*rules: Rule) -> Rule:
    def rule(call: Call) -> Iterator[str]:
        for one in rules:
            yield from one(call)

    return rule


def _filled(*names: str) -> Rule:
    """Tensors with elements."""

    def rule(call: Call) -> Iterator[str]:
        for name in names:
            if call.get(name) is not None and 0 in call[name]:
                yield f"{name} with elements"

    return rule


def _dense(*names: str) -> Rule:
    """Tensors whose elements lie side by side, each in memory of its own."""

    def rule(call: Call) -> Iterator[str]:
        for name in names:
            shape = call.get(name)
            if isinstance(shape, Shape) and any(
                stride == 0 and size not in (0, 1) for size, stride in zip(shape, shape.strides, strict=False)
            ):
                yield f"{name} without repeated elements"

    return rule


def _padded(count: int) -> Rule:
    """Padding of the last `count` dimensions, and its derivative."""

    def rule(call: Call) -> Iterator[str]:
        sizes, grad, padding = call.get("self"), call.get("grad_output"), call.get("padding")
        if padding is not None and (len(padding) != 2 * count or any(abs(by or 0) >= MAX_PADDING for by in padding)):
            yield f"{2 * count} numbers below {MAX_PADDING:,} as padding"
        elif grad is not None and sizes is not None and padding is not None:
            if len(sizes) not in (count + 1, count + 2):
                yield f"self of {count + 1} or {count + 2} dimensions"
                return
            made = [*sizes]
            for axis in range(count):
                size, before, after = sizes[-1 - axis], padding[2 * axis], padding[2 * axis + 1]
                made[-1 - axis] = None if None in (size, before, after) else size + before + after
            if not fit(grad, made):
                yield "grad_output of the padded sizes"

    return rule


def _per_channel(data: str, *names: str) -> Rule:
    """One element for each channel, which dimension 1 counts."""

    def rule(call: Call) -> Iterator[str]:
        sizes = call.get(data)
        if sizes is None:
            return
        if len(sizes) < 2:
            yield f"{data} of 2 dimensions or more"
            return
        for name in names:
            if not fit(call.get(name), (sizes[1],)):
                yield f"{name} of one element for each channel of {data}"

    return rule


def _trained_without_statistics(call: Call) -> Iterator[str]:
    if call.get("training") is False and (call.get("running_mean") is None or call.get("running_var") is None):
        yield "running_mean and running_var, or training"


def _dimensions(call: Call) -> Iterator[str]:
    """Transforms: each dimension once, counted from the front."""
    sizes, dims = call.get("self"), call.get("dim")
    if sizes is None or dims is None or None in dims:
        return
    if len(set(dims)) != len(dims) or not all(0 <= dim < len(sizes) for dim in dims) or not dims:
        yield f"dimensions of self, each once and from 0 to {len(sizes) - 1}"


def _half(call: Call) -> Iterator[str]:
    """Transforms to real numbers: half of them and one are there."""
    sizes, dims, length = call.get("self"), call.get("dim"), call.get("last_dim_size")
    if sizes is None or not dims or None in dims or next(_dimensions(call), None):
        return
    if length is not None and sizes[dims[-1]] is not None and not 0 < length // 2 + 1 <= sizes[dims[-1]]:
        yield f"last_dim_size of at most {max(2 * sizes[dims[-1]] - 1, 0)}"


def _attention(call: Call) -> Iterator[str]:
    """Attention: batches and heads agree, keys and values are as many, and all have elements."""
    query, key, value = (call.get(name) for name in ("query", "key", "value"))
    if query is None or key is None or value is None:
        return
    if not len(query) == len(key) == len(value) == 4:
        yield "query, key and value of 4 dimensions"
        return
    if not (fit(key, value) and fit((*query[:2], query[3]), (*key[:2], key[3]))):
        yield "key and value in one shape, with the batches, heads and features of query"
    mask = call.get("attn_mask")
    if mask is not None:
        expected = (query[0], query[1], query[2], key[2])
        padded = (1,) * (4 - len(mask)) + tuple(mask)
        if len(padded) != 4 or not all(meet(a, b) or a == 1 for a, b in zip(padded, expected, strict=True)):
            yield "attn_mask that fits query and key"


def _sums(call: Call) -> Iterator[str]:
    """One sum for each query, at least: torch's own decompositions pass all that was summed up."""
    query, sums = call.get("query"), call.get("logsumexp")
    if query is not None and sums is not None and not fit(tuple(sums[:3]), tuple(query[:3])):
        yield "logsumexp that begins with the batches, heads and lengths of query"


def _pool_gradient(count: int) -> Rule:
    """Derivatives of poolings: batches and channels agree; the last `count` dimensions are pooled."""

    def rule(call: Call) -> Iterator[str]:
        sizes, grad = call.get("self"), call.get("grad_output")
        if sizes is None or grad is None:
            return
        if len(sizes) != len(grad) or len(sizes) not in (count + 1, count + 2) or 0 in sizes or 0 in grad:
            yield f"self and grad_output of {count + 1} or {count + 2} dimensions, none of them 0"
        elif not fit(sizes[:-count], grad[:-count]):
            yield "grad_output with the batches and channels of self"

    return rule


def _grid(count: int) -> Rule:
    """Derivatives of sampling a grid: a gradient for each point of the grid, in the channels of the input."""

    def rule(call: Call) -> Iterator[str]:
        sizes, grid, grad = call.get("input"), call.get("grid"), call.get("grad_output")
        if sizes is None or grid is None or grad is None:
            return
        if not len(sizes) == len(grid) == len(grad) == count + 2 or 0 in sizes:
            yield f"input, grid and grad_output of {count + 2} dimensions, with elements"
        elif not fit(grad, (*sizes[:2], *grid[1:-1])) or not fit((sizes[0], count), (grid[0], grid[-1])):
            yield "grad_output with the batches and channels of input and the points of grid"

    return rule


def _layer_norm(call: Call) -> Iterator[str]:
    """Derivatives over the last dimensions: one mean for each of the others."""
    sizes, shape = call.get("input"), call.get("normalized_shape")
    if sizes is None or shape is None:
        return
    rest = (*sizes[: len(sizes) - len(shape)], *(1 for _ in shape))
    for name, expected in (("grad_out", sizes), ("mean", rest), ("rstd", rest), ("weight", tuple(shape))):
        if not fit(call.get(name), expected):
            yield f"{name} that fits input"


def _pivots(call: Call) -> Iterator[str]:
    """Unpacking: a pivot for each row or column, whichever are fewer."""
    data, pivots = call.get("LU_data"), call.get("LU_pivots")
    if data is None or pivots is None or len(data) < 2 or None in data[-2:]:
        return
    if not fit(pivots, (*data[:-2], min(data[-2:]))):
        yield "a pivot for each row or column of LU_data, whichever are fewer"


def _weight_norm(call: Call) -> Iterator[str]:
    """Weights by direction and length: one length for each entry of one dimension."""
    direction, length, dim = (call.get(name) for name in ("v", "g", "dim"))
    if direction is None or length is None:
        return
    dim = (dim or 0) % max(len(direction), 1)
    expected = tuple(size if axis == dim else 1 for axis, size in enumerate(direction))
    if 0 in direction or not direction or not fit(length, expected):
        yield "g with an element for each entry of one dimension of v, which has elements"


def _four_bits(call: Call) -> Iterator[str]:
    """Products with weights of four bits: a scale and a zero for each group of each row, in order."""
    data, weight, group, scales = (call.get(name) for name in ("self", "mat2", "qGroupSize", "qScaleAndZeros"))
    if scales is None:
        return
    rows = weight[0] if weight else None
    groups = data[-1] // group if data and data[-1] is not None and group else None
    if not fit(scales, (groups, rows, 2)) or 0 in scales:
        yield "qScaleAndZeros with two numbers for each group of each row of mat2"
    elif rows is not None and not fit(scales.strides, (rows * 2, 2, 1)):
        yield "qScaleAndZeros whose elements lie in order"


def _diagonals(call: Call) -> Iterator[str]:
    """Matrices by their diagonals."""
    if any(size is not None and size < 0 for size in call.get("shape") or ()):
        yield "sizes that are not negative"


def _distances(call: Call) -> Iterator[str]:
    """Derivatives of distances: one for each pair of rows, which have equally many features."""
    first, second = call.get("x1"), call.get("x2")
    if first is None or second is None:
        return
    if len(first) < 2 or len(second) < 2 or not meet(first[-1], second[-1]):
        yield "x1 and x2 of 2 dimensions or more, with the same features"
        return
    for name in ("grad", "cdist"):
        shape = call.get(name)
        if shape is not None and not fit(tuple(shape[-2:]), (first[-2], second[-2])):
            yield f"{name} with an element for each pair of rows"


def _few(call: Call) -> Iterator[str]:
    """No more elements, repeated ones counted, than any memory has."""
    count = 1
    for size in call.get("self") or ():
        count *= 1 if size is None else size
    if count > MAX_REPEATED:
        yield f"self of at most {MAX_REPEATED:,} elements"


def _scaled(call: Call) -> Iterator[str]:
    """Resampling: where a scale is given, the sizes are those that it makes."""
    sizes, output = call.get("self") or call.get("input_size"), call.get("output_size")
    if sizes is None or output is None:
        return
    scales = call.get("scale_factors") or [call.get(name) for name in ("scales_d", "scales_h", "scales_w", "scales")]
    given_scales = [scale for scale in scales if scale is not None]
    for size, made, scale in zip(reversed(sizes), reversed(output), reversed(given_scales), strict=False):
        if None not in (size, made) and not (scale > 0 and abs(made - size * scale) <= 1):
            yield f"sizes that the scale {scale} makes of one another"
            return


def _lists(first: str, *others: str) -> Rule:
    """Lists of tensors: as many in each, in pairs of one shape, and some."""

    def rule(call: Call) -> Iterator[str]:
        shapes = call.get(first)
        if shapes is None:
            return
        if not shapes:
            yield f"{first} with tensors"
        for other in others:
            against = call.get(other)
            if against is not None and (len(against) != len(shapes) or not all(map(fit, shapes, against))):
                yield f"{other} as many as {first}, and of the same shapes"

    return rule


def _fused(call: Call) -> Iterator[str]:
    """Fused optimizers: lists as long as that of the parameters, whose tensors lie in memory as theirs do."""
    parameters = call.get("self")
    if parameters is None:
        return
    if not parameters or not all(map(_is_dense, parameters)):
        yield "self with tensors, the elements of each side by side"
    for name in ("grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "state_sums", "momentum_buffer_list"):
        shapes = call.get(name)
        is_needed = name not in ("max_exp_avg_sqs", "momentum_buffer_list") or call.get("amsgrad") is True
        if shapes is None or not (shapes or is_needed):
            continue
        if len(shapes) != len(parameters) or not all(map(_lie_alike, shapes, parameters)):
            yield f"{name} as many as self, each as it lies in memory"
    steps = call.get("state_steps")
    if steps is not None and len(steps) != len(parameters):
        yield "state_steps as many as self"
    yield from _filled("grad_scale", "found_inf")(call)


def _lie_alike(one: Sizes, other: Sizes) -> bool:
    """Whether two tensors may have the same sizes and strides."""
    return fit(one, other) and (one is None or other is None or all(map(meet, one.strides, other.strides)))


def _is_dense(shape: Sizes) -> bool:
    """Whether a tensor's elements may lie side by side, in whatever order."""
    if shape is None or None in shape or None in shape.strides or 0 in shape:
        return True
    step = 1
    for stride, size in sorted((stride or 0, size or 0) for size, stride in zip(shape, shape.strides, strict=True)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _bags(call: Call) -> Iterator[str]:
    """Derivatives of bags: one row of gradients for each bag, one row of weights for each that was there."""
    grad, bags, weight = call.get("grad"), call.get("bag_size"), call.get("made.weight")
    if grad is not None and (len(grad) != 2 or (bags and not meet(grad[0], bags[0]))):
        yield "grad with a row for each bag"
    if weight is not None and not meet(call.get("num_weights"), weight[0]):
        yield "num_weights as many as weight had"
    if grad is not None and len(grad) == 2 and weight is not None and not meet(grad[1], weight[1]):
        yield "grad with the features of weight"


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **RECURRENT,
        "attention": _all_of(_attention, _filled("query", "key", "value")),
        "attention gradient": _all_of(
            _attention, _filled("query", "key", "value"), _alike("query", "out", "grad_out"), _sums
        ),
        "bags": _bags,
        "batch norm": _all_of(
            _per_channel(
                "input", "weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd", "save_var"
            ),
            _trained_without_statistics,
        ),
        "dimensions": _dimensions,
        "half": _all_of(_dimensions, _half),
        "grad like output": _alike("output", "grad", "grad_output"),
        "grad like pdist": _alike("pdist", "grad"),
        "grid 2d": _grid(2),
        "grid 3d": _grid(3),
        "distances": _distances,
        "few": _few,
        "fused": _fused,
        "layer norm": _layer_norm,
        "like self": _alike("self", "target"),
        "grad like self": _alike("self", "target", "grad_output"),
        "pivots": _pivots,
        "four bits": _four_bits,
        "diagonals": _diagonals,
        "weight norm": _weight_norm,
        "weight norm gradient": _alike("saved_v", "grad_w"),
        "group norm": _dense("weight", "bias"),
        "noise": _all_of(_dense("noise"), _alike("self", "noise")),
        "padded 1d": _padded(1),
        "padded 2d": _padded(2),
        "padded 3d": _padded(3),
        "pool 2d": _pool_gradient(2),
        "pool 3d": _pool_gradient(3),
        "scaled": _scaled,
        "copied lists": _lists("self", "src"),
    }
)
"""Name in the table -> rule."""


def misfits(
    rule: str,
    given: Mapping[str, schema.Argument],
    made: Mapping[str, schema.Argument],
    sizes: Callable[[str], Sizes],
    number: Callable[[str], int | None],
) -> Iterator[str]:
    """Iterate what should hold of the sizes of a call and does not.

    Args:
        rule: its name.
        given: the arguments of the call.
        made: those of the call that made what it trusts.
        sizes: name of a tensor -> its sizes, as far as they are known.
        number: name of a symbol -> what it is, if that is known.
    """
    call = {name: _plain(argument, sizes, number) for name, argument in given.items()}
    call |= {f"made.{name}": _plain(argument, sizes, number) for name, argument in made.items()}
    yield from RULES[rule](call)


def declared(values: Mapping[str, schema.TensorMeta]) -> Callable[[str], Sizes]:
    """What a graph says of the sizes of its tensors; symbols are not known."""

    def sizes(name: str) -> Sizes:
        meta = values.get(name)
        if meta is None:
            return None
        return Shape((_whole(size.as_int) for size in meta.sizes), (_whole(step.as_int) for step in meta.strides))

    return sizes


def _whole(number: Any) -> int | None:
    return number if isinstance(number, int) else None


def _plain(argument: schema.Argument, sizes: Callable[[str], Sizes], number: Callable[[str], int | None]) -> Any:
    """An argument as what it is, as far as that is known."""
    value = argument.value
    match argument.type:
        case "as_none":
            return None
        case "as_tensor":
            return sizes(value.name)
        case "as_tensors":
            return [sizes(one.name) for one in value]
        case "as_optional_tensor":
            return None if value.as_tensor is UNSET else sizes(value.as_tensor.name)
        case "as_sym_int":
            return number(value.as_name) if value.as_int is UNSET else value.as_int
        case "as_sym_ints":
            return [number(one.as_name) if one.as_int is UNSET else one.as_int for one in value]
    return value if argument.type in _PLAIN else None


_PLAIN: Final = frozenset(("as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_string"))
