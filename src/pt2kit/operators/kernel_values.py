"""Values that unchecked kernels trust: rules for indices, offsets, lengths, pivots, parts of sparse tensors, divisors.

Sizes are in `kernel_sizes.py` and `recurrent.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit.operators.demands import (
    Call,
    Demand,
    Operand,
    Rule,
    at_least,
    equal,
    every,
    filled,
    fit,
    known,
    product,
    ranked,
    rising,
    rules,
    together,
    within,
)
from pt2kit.operators.kernel_sizes import MAX_STRIDE, alike, grid, pool_gradient
from pt2kit.operators.recurrent import sequences

MAX_REPEATS: Final = 1 << 40
"""Repeats of all elements together."""


@rules("self")
def _pooled(call: Call, sizes: Any, count: int) -> Iterator[Demand]:
    """Require indices of pooling that are elements of one plane of the input."""
    yield from pool_gradient(count)(call)
    holds = within(call.values("indices"), 0, product(sizes[-count:]))
    yield Demand(holds, "indices", f"indices of the last {count} dimensions of self, from 0")


def _rows(call: Call) -> Iterator[Demand]:
    """Require indices of rows: of the weight, or of as many as `num_weights`."""
    weight = call.sizes("weight")
    rows, name = (weight[0], "the rows of weight") if weight else (call.get("num_weights"), "num_weights")
    yield Demand(within(call.values("indices"), 0, rows), "indices", f"indices from 0 that are less than {name}")


def _embedding(call: Call) -> Iterator[Demand]:
    """Require valid indices of embeddings with scaled or sparse gradients, which the backward kernels do not check."""
    if call.records and (call.get("scale_grad_by_freq") or call.get("sparse")):
        yield from _rows(call)


def _embedding_gradient(call: Call) -> Iterator[Demand]:
    yield from _rows(call)
    indices, grad = call.sizes("indices"), call.sizes("grad_output" if "grad_output" in call.arguments else "grad")
    if indices is not None and grad is not None:
        expected = "a row for each of indices"
        yield Demand(
            fit(tuple(grad[: len(indices)]), indices) and len(grad) == len(indices) + 1, "grad_output", expected
        )


def _places(
    call: Call, name: str, limit: Any, *, ends: str = "offsets", of: str = "the number of indices"
) -> Iterator[Demand]:
    """Require offsets, or ends of groups, in order, from 0 up to a number; the number is None if it is not known."""
    values = call.values(name)
    yield Demand(rising(values), name, f"{ends} that do not fall")
    yield Demand(within(values, 0, None if limit is None else limit + 1), name, f"{ends} from 0 up to {of}")


def _offsets(call: Call) -> Iterator[Demand]:
    """Require offsets of bags: positions in the list of indices, in order."""
    weight, indices, offsets = call.sizes("weight"), call.sizes("indices"), call.sizes("offsets")
    yield Demand(ranked(weight, 2), "weight", "2 dimensions")
    yield from _rows(call)
    # Rows of indices as bags are reshaped before, with offsets for them.
    yield Demand(ranked(indices, 1), "indices", "1 dimension")
    if offsets is None:
        return
    yield Demand(len(offsets) == 1, "offsets", "1 dimension")
    is_empty = indices is not None and equal(indices[0], 0) is True and not call.get("include_last_offset")
    yield Demand(is_empty or filled(offsets), "offsets", "at least one offset")
    yield from _places(call, "offsets", None if indices is None else indices[0])
    yield from alike("indices", "per_sample_weights")(call)


def _bags(call: Call) -> Iterator[Demand]:
    """Require that the bag of each index, and the indices, are rows of the tensors in backward kernels of bags."""
    grad, indices, weight = call.sizes("grad"), call.sizes("indices"), call.sizes("weight")
    yield Demand(ranked(grad, 2), "grad", "2 dimensions")
    yield Demand(ranked(indices, 1), "indices", "1 dimension")
    yield from _rows(call)
    bags = grad[0] if grad else None
    expected = "a row of grad for each index"
    of_bags, is_computed = call.sizes("offset2bag"), False
    if of_bags is not None:
        # `_embedding_bag_backward` computes it from the offsets if it is empty.
        is_optional = call.get("offsets") is not None and "bag_size" in call.arguments
        is_computed = is_optional and equal(product(of_bags), 0) is True
        yield Demand(is_computed or fit(of_bags, indices), "offset2bag", expected)
        yield Demand(within(call.values("offset2bag"), 0, bags), "offset2bag", expected)
    yield Demand(
        fit(call.sizes("bag_size"), None if grad is None else (bags,)), "bag_size", "a size for each row of grad"
    )
    if call.get("mode") == 2 and grad is not None:
        rows = weight[0] if weight else call.get("num_weights")
        yield Demand(fit(call.sizes("maximum_indices"), grad), "maximum_indices", "the shape of grad")
        yield Demand(within(call.values("maximum_indices"), -1, rows), "maximum_indices", "rows of the weight, or -1")
    if weight is not None and grad is not None:
        yield Demand(
            len(weight) == 2 and equal(weight[1], grad[1]), "weight", "2 dimensions, with the features of grad"
        )
    yield from alike("indices", "per_sample_weights")(call)
    if call.get("offsets") is not None and indices is not None and indices[0] is not None:
        yield from _places(call, "offsets", indices[0])
        starts = call.values("offsets")
        if is_computed and starts is not None and bags is not None:
            yield Demand(
                filled(call.sizes("offsets")) or equal(indices[0], 0), "offsets", "an offset for each row of grad"
            )
            yield Demand((starts[:1] == 0).all(), "offsets", "0 first")
            yield Demand((starts < indices[0]).sum() <= bags, "offsets", "an offset for each row of grad")


def _row_wise(call: Call) -> Iterator[Demand]:
    """Refuse bags of quantized rows with a table that maps pruned rows, which the kernel does not check."""
    yield Demand(call.get("pruned_weights") in (None, False), "pruned_weights", "False")
    yield Demand(call.get("compressed_indices_mapping") is None, "compressed_indices_mapping", "None")
    indices, offsets = call.sizes("indices"), call.sizes("offsets")
    yield from _rows(call)
    weight = call.sizes("weight")
    if weight is not None:
        yield Demand(len(weight) == 2 and at_least(weight[1], 5), "weight", "2 dimensions, with scales and numbers")
    if indices is not None:
        yield Demand(len(indices) == 2 or offsets is not None, "offsets", "offsets, for indices of 1 dimension")
    if indices is not None and offsets is not None:
        yield Demand(len(offsets) == 1 and filled(offsets), "offsets", "1 dimension, with elements")
        yield from _places(call, "offsets", None if indices[0] is None else product(indices))
    yield from alike("indices", "per_sample_weights")(call)


@known("log_probs", "targets")
def _ctc(call: Call, probs: Any, targets: Any) -> Iterator[Demand]:
    """Require classes that exist and lengths that fit, in CTC losses."""
    yield Demand(
        len(probs) in (2, 3) and filled((probs[0], probs[-1])), "log_probs", "2 or 3 dimensions, with elements"
    )
    batch = probs[1] if len(probs) == 3 else 1
    yield Demand(len(targets) in (1, 2), "targets", "1 or 2 dimensions")
    classes = call.values("targets")
    steps, lengths = call.numbers("input_lengths", classes), call.numbers("target_lengths", classes)
    expected = "a length for each sequence, from 0 up to the number of steps"
    if steps is not None:
        yield Demand(equal(product(steps.shape), batch), "input_lengths", expected)
        yield Demand(within(steps, 0, probs[0] + 1), "input_lengths", expected)
    if lengths is None:
        yield Demand(within(classes, 0, probs[-1]), "targets", "classes from 0 that log_probs has")
        return
    lengths = lengths.reshape(-1)
    yield Demand(equal(product(lengths.shape), batch), "target_lengths", "a length for each sequence")
    if len(targets) == 2:
        yield Demand(equal(targets[0], batch), "targets", "a row for each sequence")
        yield Demand(
            within(lengths, 0, targets[1] + 1), "target_lengths", "lengths from 0 up to the columns of targets"
        )
    else:
        yield Demand((lengths >= 0).all(), "target_lengths", "lengths from 0")
        yield Demand((lengths <= targets[0]).all(), "target_lengths", "lengths that add up to the length of targets")
        yield Demand(lengths.sum() <= targets[0], "target_lengths", "lengths that add up to the length of targets")
    if classes is not None:
        # Elements after the length of a sequence are padding, which the kernel does not read.
        places = (classes == classes).cumsum(-1) - 1
        used = places < (lengths.sum() if len(targets) == 1 else lengths.reshape(-1, 1))
        holds = (~used | ((classes >= 0) & (classes < probs[-1]))).all()
        yield Demand(holds, "targets", "classes from 0 that log_probs has")
    blank = call.get("blank")
    if blank is not None:
        yield Demand((blank >= 0) & (blank < probs[-1]), "blank", "a class that log_probs has")


@known("log_probs", "log_alpha")
def _ctc_states(call: Call, probs: Any, alpha: Any) -> Iterator[Demand]:
    """Require the states that the loss returned, in its backward kernel."""
    yield Demand(len(probs) == 3 and filled(probs), "log_probs", "3 dimensions, with elements")
    yield Demand(len(alpha) == 3, "log_alpha", "3 dimensions")
    yield Demand(fit(alpha[:2], (probs[1], probs[0])), "log_alpha", "the sequences and steps of log_probs")
    for name in ("neg_log_likelihood", "grad"):
        yield Demand(fit(call.sizes(name), (probs[1],)), name, "a number for each sequence")
    targets = call.get("targets")
    lengths = call.numbers("target_lengths", targets.values)
    if lengths is not None and alpha[2] is not None:
        expected = "twice the longest of target_lengths, and 1, in the last dimension"
        yield Demand((2 * lengths + 1 <= alpha[2]).all(), "log_alpha", expected)


@known("self", "target")
def _classes(call: Call, sizes: Any, target: Any) -> Iterator[Demand]:
    """Require classes that exist, or the ignored one, in backward kernels of losses over classes."""
    yield Demand(len(sizes) >= 1 and filled(sizes[-1:] if len(sizes) == 1 else sizes[1:2]), "self", "classes")
    count = sizes[0] if len(sizes) == 1 else sizes[1]
    values = call.values("target")
    if values is not None:
        ignored = call.get("ignore_index")
        is_class = (values >= 0) & (values < count)
        holds = (is_class if ignored is None else is_class | (values == ignored)).all()
        yield Demand(holds, "target", "classes from 0 that self has, or ignore_index")
    yield Demand(equal(product(call.sizes("total_weight")), 1), "total_weight", "one element")
    yield Demand(fit(call.sizes("weight"), (count,)), "weight", "a weight for each class")


@rules()
def _saved(call: Call, *names: str) -> Iterator[Demand]:
    """Have kernels that compare their arguments use copies, as their backward kernels do not compare them again."""
    for name in names if call.records else ():
        call.keep(name)
    yield from ()


@known("self", "mat2")
def _groups(call: Call, sizes: Any, others: Any) -> Iterator[Demand]:
    """Require the end of each group in order, in products of groups."""
    limit = sizes[-2] if len(sizes) == 2 and len(others) == 3 else others[-1] if len(sizes) == 3 else sizes[-1]
    yield from _places(call, "offs", limit, ends="ends of groups", of="the size that they divide")


@known("LD", "pivots")
def _ldl(call: Call, matrix: Any, pivots: Any) -> Iterator[Demand]:
    """Require that pivots of factors are rows of the matrix from 1; negative ones in pairs, for two rows together."""
    values = call.values("pivots")
    yield Demand(len(matrix) >= 2 and fit(pivots, matrix[:-1]), "pivots", "a pivot for each row of LD")
    if values is None:
        return
    expected = "rows of LD from 1, negative ones in pairs"
    size = matrix[-1]
    yield Demand(((values >= -size) & (values <= size) & (values != 0)).all(), "pivots", expected)
    # At the end of each run of negative ones, the number of all negative ones so far is even.
    negative = values < 0
    odd = negative.cumsum(-1) % 2 != 0
    yield Demand((~(odd[..., :-1] & ~negative[..., 1:])).all(), "pivots", expected)
    yield Demand((~odd[..., -1:]).all(), "pivots", expected)


def _repeats(call: Call) -> Iterator[Demand]:
    """Require numbers of repetitions from 0 whose sum has a limit: the kernel adds them up in 64 bits."""
    values = call.values("repeats")
    if values is None:
        return
    yield Demand((values >= 0).all(), "repeats", "numbers from 0")
    yield Demand((values <= MAX_REPEATS).all(), "repeats", f"numbers up to {MAX_REPEATS:,}")
    yield Demand((values * 1.0).sum() <= MAX_REPEATS, "repeats", f"numbers that add up to at most {MAX_REPEATS:,}")
    length = call.get("output_size")
    if length is not None and "self" not in call.arguments:
        yield Demand(values.sum() == length, "output_size", "the sum of repeats")


def _segments(call: Call) -> Iterator[Demand]:
    """Require segments inside one dimension: by their lengths, or by the begin of each and the end of the last."""
    yield Demand(call.get("unsafe") in (None, False), "unsafe", "False")
    data, axis = call.sizes("data"), call.get("axis") or 0
    lengths = call.values("lengths")
    if data is None:
        return
    yield Demand(bool(data) and 0 <= axis % max(len(data), 1) < len(data), "data", "a dimension for axis")
    axis %= len(data)
    for name in ("lengths", "offsets"):
        sizes = call.sizes(name)
        if sizes is not None:
            holds = len(sizes) == axis + 1 and fit(tuple(sizes[:-1]), tuple(data[:axis])) and filled(sizes[-1:])
            yield Demand(holds, name, "the dimensions of data before axis, and one with elements")
    if lengths is not None:
        yield Demand((lengths >= 0).all(), "lengths", "lengths from 0")
        yield Demand((lengths <= data[axis]).all(), "lengths", "lengths that add up to the size of data")
        yield Demand((lengths.sum(-1) == data[axis]).all(), "lengths", "lengths that add up to the size of data")
    yield from _places(call, "offsets", data[axis], of="the size of data")


def _segments_gradient(call: Call) -> Iterator[Demand]:
    yield from _segments(call)
    yield from alike("output", "grad")(call)
    data, axis = call.sizes("data"), call.get("axis") or 0
    lengths, offsets = call.sizes("lengths"), call.sizes("offsets")
    known = lengths if lengths is not None else offsets
    yield Demand(known is not None, "lengths", "lengths or offsets")
    if data is None or known is None:
        return
    axis %= max(len(data), 1)
    last = known[-1] if lengths is not None else known[-1] - 1
    expected = (*data[:axis], last, *data[axis + 1 :])
    yield Demand(fit(call.sizes("output"), expected), "output", "an element for each segment of data")


def _coordinates(call: Call) -> Iterator[Demand]:
    """Require valid parts of a sparse tensor by coordinates, and copy them, so that the program cannot write to
    them."""
    for name in ("indices", "values"):
        call.keep(name)
    places, numbers, size = call.sizes("indices"), call.sizes("values"), call.get("size")
    if places is None or numbers is None:
        return
    yield Demand(len(places) == 2, "indices", "2 dimensions")
    yield Demand(len(numbers) >= 1 and equal(numbers[0], places[1]), "values", "an entry for each column of indices")
    values = call.values("indices")
    if values is not None:
        yield Demand((values >= 0).all(), "indices", "coordinates from 0")
    if size is None:
        return
    count = places[0]
    sparse = call.get("sparse_dim")
    yield Demand(sparse is None or equal(sparse, count), "sparse_dim", "the rows of indices")
    dense = call.get("dense_dim")
    yield Demand(dense is None or dense == len(numbers) - 1, "dense_dim", "the dimensions of values, less 1")
    yield Demand(
        len(size) == count + len(numbers) - 1, "size", "a size for each row of indices and dimension of values"
    )
    yield Demand(fit(tuple(numbers[1:]), tuple(size[count:])), "values", "the last sizes")
    yield Demand(every(at_least(one, 0) for one in size), "size", "sizes that are not negative")
    if values is None:
        return
    for axis in range(count):
        yield Demand((values[axis] < size[axis]).all(), "indices", "coordinates less than size")
    if call.get("is_coalesced"):
        place: Any = 0
        for axis in range(count):
            place = place * size[axis] + values[axis]
        if count:
            yield Demand((place[1:] > place[:-1]).all(), "indices", "rising coordinates, for is_coalesced")
        else:
            yield Demand(places[1] <= 1, "indices", "at most one entry, for is_coalesced")


def _compressed(call: Call) -> Iterator[Demand]:
    """Require valid parts of a compressed sparse tensor, and copy them."""
    outer = next(
        (name for name in ("compressed_indices", "crow_indices", "ccol_indices") if name in call.arguments), ""
    )
    inner = next((name for name in ("plain_indices", "col_indices", "row_indices") if name in call.arguments), "")
    for name in (outer, inner, "values"):
        call.keep(name)
    starts, places, numbers = call.sizes(outer), call.sizes(inner), call.sizes("values")
    if starts is None or places is None or numbers is None:
        return
    holds = len(starts) == len(places) >= 1 and filled(starts[-1:]) and fit(tuple(starts[:-1]), tuple(places[:-1]))
    yield Demand(holds, outer, "the batches of the other indices, and the first and last place of each row")
    entries = tuple(numbers[: len(places)])
    yield Demand(fit(entries, places), "values", f"an entry for each of {inner}")
    first, second = call.values(outer), call.values(inner)
    if first is not None:
        yield Demand(rising(first), outer, "places that do not fall")
        yield Demand((first[..., 0] == 0).all(), outer, "0 first")
        yield Demand((first[..., -1] == places[-1]).all(), outer, f"the number of {inner} last")
    size = call.get("size")
    if second is not None:
        yield Demand((second >= 0).all(), inner, "indices from 0")
        if size is not None:
            yield from _plain_limit(call, second, inner, len(places) - 1, numbers)


def _plain_limit(call: Call, values: Any, name: str, batches: int, numbers: Any) -> Iterator[Demand]:
    """Require indices inside the dimension that is not compressed, counted in blocks."""
    size = call.get("size")
    yield Demand(len(size) >= batches + 2, "size", "rows and columns")
    rows, columns = size[batches : batches + 2]
    is_columns = name == "row_indices" or str(call.get("layout")).lower().endswith(("csc", "bsc"))
    extra = len(numbers) - batches - 1 - (len(size) - batches - 2)
    blocks = numbers[batches + 1 : batches + 3] if extra == 2 else (1, 1)
    yield Demand(extra in (0, 2) and filled(blocks), "values", "blocks, or single numbers")
    limit = rows // blocks[0] if is_columns else columns // blocks[1]
    yield Demand((values < limit).all(), name, "indices less than the rows or columns")
    starts = call.sizes("compressed_indices") or call.sizes("crow_indices") or call.sizes("ccol_indices")
    count = columns // blocks[1] if is_columns else rows // blocks[0]
    if starts is not None:
        yield Demand(equal(starts[-1], count + 1), name, "a place for each row or column, and the end")


def _quotient(call: Call) -> Iterator[Demand]:
    """Refuse the smallest whole number divided by -1: it has no quotient, and ends the process."""
    if "rounding_mode" in call.arguments and call.get("rounding_mode") != "trunc":
        return
    dividend, divisor = call.get("self"), call.get("other")
    least: list[Any] = [one.least for one in (dividend, divisor) if isinstance(one, Operand)]
    if not least or None in least or not all(isinstance(one, (Operand, int)) for one in (dividend, divisor)):
        return
    ones = call.values("other") if isinstance(divisor, Operand) else divisor
    if ones is None or (not isinstance(divisor, Operand) and divisor != -1):
        return
    numbers = call.values("self") if isinstance(dividend, Operand) else dividend
    if numbers is not None:
        found = (numbers == min(least)) & (ones == -1)
        expected = "numbers above the smallest of their type, to be divided by -1"
        yield Demand(not found if isinstance(found, bool) else (~found).all(), "self", expected)


def _multiples(call: Call) -> Iterator[Demand]:
    """Refuse the smallest whole number in least common multiples: it has no absolute value."""
    for name in ("self", "other"):
        values = call.values(name)
        least = getattr(call.get(name), "least", None)
        if values is not None and least is not None:
            yield Demand((values != least).all(), name, "numbers above the smallest of their type")


def _finite(call: Call) -> Iterator[Demand]:
    """Require finite numbers for eigenvalues: with others the library does not end, or ends the process."""
    values = call.values("self")
    if values is not None:
        yield Demand((values - values == 0).all(), "self", "finite numbers")


def _modes(call: Call) -> Iterator[Demand]:
    """Require modes of sampling that the kernel has: for others its result is memory that nothing was written to."""
    for name in ("interpolation_mode", "padding_mode"):
        mode = call.get(name)
        yield Demand(mode is None or (mode >= 0 and mode <= 2), name, "0, 1 or 2")


VALUES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "pooled 2d": _pooled(2),
        "pooled 3d": _pooled(3),
        "embedding": _embedding,
        "embedding gradient": _embedding_gradient,
        "offsets": _offsets,
        "bags": _bags,
        "row-wise bags": _row_wise,
        "ctc": _ctc,
        "ctc gradient": together(_ctc, _ctc_states),
        "classes": _classes,
        "saved target": _saved("target"),
        "groups": _groups,
        "sequences": sequences,
        "ldl": _ldl,
        "repeats": _repeats,
        "segments": _segments,
        "segments gradient": _segments_gradient,
        "coordinates": _coordinates,
        "compressed": _compressed,
        "quotient": _quotient,
        "multiples": _multiples,
        "finite": _finite,
        "modes": _modes,
        "grid 2d gradient": together(_modes, grid(2)),
        "grid 3d gradient": together(_modes, grid(3)),
        "nothing": _saved(),
    }
)
"""Name in `data/kernels.json` -> rule."""


def _is_trunc(arguments: Mapping[str, Any]) -> bool:
    divisor = arguments.get("other")
    is_plain = isinstance(divisor, (int, float)) and not (isinstance(divisor, int) and divisor == -1)
    return arguments.get("rounding_mode", "trunc") == "trunc" and not is_plain


def _is_recorded(arguments: Mapping[str, Any]) -> bool:
    return any(arguments.get(name) not in (None, False) for name in ("scale_grad_by_freq", "sparse"))


def _is_wide(arguments: Mapping[str, Any]) -> bool:
    stride = arguments.get("stride", 1)
    steps = stride if isinstance(stride, (list, tuple)) else [stride]
    return any(not isinstance(step, int) or step >= MAX_STRIDE for step in steps)


NEEDED: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = MappingProxyType(
    {
        "quotient": _is_trunc,
        "embedding": _is_recorded,
        "grouped heads": lambda given: bool(given.get("enable_gqa")),
        "steps": _is_wide,
    }
)
"""Name of a rule -> whether calls with these arguments need it at all, as far as the arguments are constants."""
