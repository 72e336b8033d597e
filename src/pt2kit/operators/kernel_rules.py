"""Rules of unchecked kernels: what they trust of sizes, strides and values, as rows that are compiled when asked for.

`data/kernel_rules.txt` has a row for each rule that `data/kernels.json` names. Its statements are required in order:

    pool {2,3}d                                   the names of rules; "$" in the row stands for the word in braces
        given self grad_output padding?           arguments: sizes of tensors, others as they are, None if not known;
                                                  of calls without one that has no "?", nothing more is required
        needed get("padding") != 0                calls with other constants need no rule; `get` returns an argument
        if len(self) > 2                          of calls for which this does not hold, nothing more is required
        last = product(self[-$:])                 a name for a part
        indices: fit(it, self), "the shape of self"   what has to hold of an argument, and what it is expected to be;
                                                  of several arguments, it has to hold of each: `it` stands for the
                                                  argument as `given` has it, `name` for its name, `operand` for itself
        filled self grad_output                   a requirement of each of some arguments (`_WORDS`)
        keep indices                              the kernel gets copies
        also modes                                the demands of another rule

Expressions are those of Python, with the functions that this module has or imports; `call` is the call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from types import CodeType, FunctionType
from typing import Any, Final

from pt2kit.data_files import data_file
from pt2kit.operators.demands import Call, Condition, Operand, Rule, either, equal, every, product, within
from pt2kit.operators.demands import Demand as Demand
from pt2kit.operators.demands import at_least as at_least
from pt2kit.operators.demands import filled as filled
from pt2kit.operators.demands import fit as fit
from pt2kit.operators.demands import ranked as ranked
from pt2kit.operators.demands import rising as rising
from pt2kit.operators.recurrent import weight_sizes as weight_sizes
from pt2kit.operators.rows import choices, read_rows
from pt2kit.schema import ScalarType as ScalarType

MAX_REPEATED: Final = 1 << 36
"""Elements of one tensor, counted as often as it repeats them."""
MAX_REPEATS: Final = 1 << 40
"""Repeats of all elements together."""
MAX_PADDING: Final = 1 << 40
"""Elements that are put before or behind a dimension."""
MAX_STEPS: Final = 1 << 22
"""Square of the last step of a convolution, times the channels of a group: oneDNN computes places of many outputs from
it in 32 bits."""
MIN_SCALE: Final = 2.0**-22
"""Scale of a tensor that is resampled."""
# A dict, as torch.compile looks up no enum in a read-only mapping.
MAX_BINS: Final = {ScalarType.HALF: 1 << 10, ScalarType.BFLOAT16: 1 << 7, ScalarType.FLOAT: 1 << 23}
"""Element type -> bins of a histogram that its rounding does not exceed."""

_WORDS: Final = {
    "filled": 'filled(it), "a tensor with elements"',
    "dense": 'has_no_repeats(operand), "a tensor without repeated elements"',
    "adjacent": 'has_adjacent(operand), "adjacent elements along the last dimension"',
    "contiguous": 'is_contiguous(operand), "a contiguous tensor"',
}
"""Word of a statement -> what it requires of each of its arguments."""
_EACH: Final = re.compile(r"\b(it|name|operand)\b")
_BINDING: Final = re.compile(r"[\w, ]+ = ")


# The file is part of the package and never changes.
@cache
def texts() -> Mapping[str, list[str]]:
    """Return the rows that are written, by the names of rules; none of them is compiled."""
    found: dict[str, list[str]] = {}
    text = data_file("operators/data/kernel_rules.txt").read_text(encoding="utf-8")
    for names, *statements in read_rows(text):
        for name, word in choices(names):
            found[name] = [line.replace("$", word) for line in statements]
    return found


@cache
def find_rule(name: str) -> Rule:
    """Return the rule of a name in `data/kernels.json`: rows are part of the package, and Python compiles them like it.

    Raises:
        KeyError: there is none.
    """
    others: list[Rule] = []
    body = [part for line in texts()[name] for part in _compiled(line, others)]
    rule: Rule = _function("call, others", [*body, "yield from ()"], tuple(others))
    return rule


def is_needed(name: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether calls with some arguments need a rule at all, as far as the arguments are constants."""
    return bool(_condition(name)(arguments.get))


@cache
def _condition(name: str) -> Callable[[Callable[..., Any]], Any]:
    conditions = [line.removeprefix("needed ") for line in texts()[name] if line.startswith("needed ")]
    condition: Callable[[Callable[..., Any]], Any] = _function("get", [f"return {' and '.join(conditions) or True}"])
    return condition


def _function(parameters: str, body: Sequence[str], *defaults: Any) -> Any:
    source = "\n    ".join([f"def rule({parameters}):", *body])
    [code] = [one for one in compile(source, "<a rule of kernels>", "exec").co_consts if isinstance(one, CodeType)]
    return FunctionType(code, globals(), "rule", defaults)


def _compiled(line: str, others: list[Rule]) -> Iterator[str]:
    """Yield the statements of Python for one of a row.

    Args:
        line: the statement.
        others: the rules whose demands the row has, too; grows.
    """
    word, _, rest = line.partition(" ")
    names = rest.split()
    if _BINDING.match(line):
        yield line
    elif word == "given":
        for name in names:
            yield f"{name.rstrip('?')} = given(call, {name.rstrip('?')!r})"
        yield from [f"if {name} is None: return" for name in names if not name.endswith("?")]
    elif word == "needed":
        return
    elif word == "if":
        yield f"if not ({rest}): return"
    elif word == "also":
        yield f"yield from others[{len(others)}](call)"
        others.append(find_rule(rest))
    elif word == "keep":
        yield from [f"call.keep({name!r})" for name in names]
    elif word in _WORDS:
        yield from _demands(names, _WORDS[word])
    else:
        arguments, _, demand = line.partition(": ")
        yield from _demands(arguments.split(), demand)


def _demands(names: list[str], demand: str) -> Iterator[str]:
    """Yield the statements that require something of each of some arguments.

    Args:
        names: of the arguments.
        demand: the condition, and what is expected: 'filled(it), "a tensor with elements"'.
    """
    condition, _, expected = demand.rpartition(', "')
    if not _EACH.search(condition):
        yield f'yield Demand({condition}, {names[0]!r}, f"{expected})'
        return
    yield f"for name in {names!r}:"
    yield "    it, operand = given(call, name), call.get(name)"
    yield f'    yield Demand({condition}, name, f"{expected})'


def given(call: Call, name: str) -> Any:
    """Return the sizes of a tensor, or another argument as it is; None if it is missing or not known."""
    argument = call.get(name)
    return argument.sizes if isinstance(argument, Operand) else argument


def listed(value: Any) -> Any:
    """Return an argument that is one number or a list of them as a list."""
    return value if isinstance(value, (list, tuple)) else [value]


def dtype_of(operand: Operand | None) -> Any:
    """Return the type of a tensor; None if it is missing or not known."""
    return None if operand is None else operand.dtype


def has_no_repeats(operand: Operand | None) -> Condition:
    """Return whether a tensor spans as many elements of memory as it has."""
    if operand is None or operand.strides is None or None in (*operand.sizes, *operand.strides):
        return True
    count, pairs = product(operand.sizes), zip(operand.sizes, operand.strides, strict=True)
    return either(equal(count, 0), count <= 1 + sum((size - 1) * by for size, by in pairs))


def has_adjacent(operand: Operand | None) -> Condition:
    """Return whether a tensor has the elements of its last dimension next to each other."""
    if operand is None or not operand.strides:
        return True
    return either(equal(operand.sizes[-1], 1), equal(operand.strides[-1], 1))


def is_contiguous(operand: Operand | None) -> Condition:
    """Return whether a tensor is contiguous, as kernels need it that walk through memory.

    Steps along a dimension of one element do not matter: they are whatever an earlier operator left.
    """
    if operand is None or operand.strides is None:
        return True
    steps = [product(operand.sizes[place + 1 :]) for place in range(len(operand.sizes))]
    triples = zip(operand.sizes, operand.strides, steps, strict=True)
    return every(either(equal(size, 1), equal(stride, step)) for size, stride, step in triples)


def is_dense(operand: Operand) -> bool:
    """Return whether the elements of a tensor may be next to each other, in whatever order."""
    sizes, strides = operand.sizes, operand.strides
    if strides is None or None in sizes or None in strides or 0 in sizes:
        return True
    step = 1
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def counted_strides(operand: Operand) -> list[Any] | None:
    """Return the strides of dimensions with other than one element."""
    if operand.strides is None:
        return None
    return [stride for size, stride in zip(operand.sizes, operand.strides, strict=True) if size != 1]


def is_spread(operand: Operand) -> bool:
    """Return whether each stride, from the smallest, is at least the extent of those before, as oneDNN requires."""
    sizes, strides = operand.sizes, operand.strides
    if strides is None or None in sizes or None in strides:
        return True
    step = 1
    for stride, size in sorted(zip(reversed(strides), reversed(sizes), strict=True), key=itemgetter(0)):
        if stride < step:
            return False
        step = stride * size
    return True


def expands(sizes: Any, wanted: Any) -> Condition:
    """Return whether a tensor, of unknown sizes if they are None, expands to some sizes."""
    padded = wanted if sizes is None else (1,) * (len(wanted) - len(sizes)) + tuple(sizes)
    pairs = zip(padded, wanted, strict=False)
    return len(padded) == len(wanted) and every(either(equal(one, 1), equal(one, two)) for one, two in pairs)


def padded(sizes: Any, padding: Any, count: int) -> list[Any]:
    """Return the sizes of a tensor with borders along its last dimensions, which `padding` lists from the last one."""
    result = [*sizes]
    for axis in range(count):
        size, before, after = sizes[-1 - axis], padding[2 * axis], padding[2 * axis + 1]
        result[-1 - axis] = None if None in (size, before, after) else size + before + after
    return result


def is_scaled(size: Any, resampled: Any, scale: Any) -> Condition:
    """Return whether a size is another one times a scale."""
    if size is None or resampled is None:
        return True
    return scale > 0 and (resampled - size * scale <= 1) & (size * scale - resampled <= 1)


def up_to(values: Any, most: Any) -> Condition:
    """Return whether every element is at least 0 and at most a number; True if not known."""
    return within(values, 0, None if most is None else most + 1)


def kept(sizes: Any, dim: int) -> list[Any]:
    """Return sizes with 1 for all dimensions but one."""
    return [size if number == dim % len(sizes) else 1 for number, size in enumerate(sizes)]
