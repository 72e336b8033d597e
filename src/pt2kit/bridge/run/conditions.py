"""Conditions on the values in a program's inputs, checked at each call.

torch has two ways: conditions written from the graph's inputs and `guards_code`, if the program has example inputs, and
else a check of types, dimensions and symbols. Both are conditions here; the same inputs are refused.

Source: `_get_input_guards_for_graph` in torch/export/_unlift.py and `_check_input_constraints_for_graph` in
torch/_export/utils.py, 2.13.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import torch
from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.run.expressions import computed, linear
from pt2kit.bridge.run.inputs import type_name
from pt2kit.errors import InputError, LimitError, attempt
from pt2kit.messages import count_text, printable
from pt2kit.symbols.dialects import parse_size
from pt2kit.symbols.expr import Expr, Integer, Symbol, free_symbols
from pt2kit.symbols.plain import to_str

Leaves = Sequence[Any]
_SMALLEST: Final = 2
"""Ranges from 0, 1 or 2 on are not checked against the inputs: export itself specializes 0 and 1."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on an input.

    Args:
        place: the input, and the part of it.
        expected: the expected value, as text.
        holds: values in the inputs -> whether it is.
        got: values in the inputs -> the actual value.
    """

    place: str
    expected: str
    holds: Callable[[Leaves], Any]
    got: Callable[[Leaves], Any]


@dataclass(frozen=True, slots=True)
class Input:
    """One value that the caller passes.

    Args:
        name: what messages call it.
        argument: its argument in the graph.
        path: steps that lead to it from the names of the arguments, as guards write them.
    """

    name: str
    argument: schema.Argument
    path: tuple[Any, ...] = ()


def check_conditions(conditions: Iterable[Condition], leaves: Leaves) -> None:
    """Check the values of the inputs against conditions.

    Raises:
        InputError: the first that does not hold.
    """
    for condition in conditions:
        if not condition.holds(leaves):
            raise InputError(f"input {condition.place}: expected {condition.expected}, got {condition.got(leaves)}")


class Conditions:
    """Writes the conditions of one program.

    Args:
        inputs: the values that the caller passes.
        graph: describes them.
        ranges: symbol, or text of an expression -> range.
        is_guarded: write the conditions of torch's guards; else those that torch checks if it has none.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        graph: schema.Graph,
        ranges: Mapping[str, schema.RangeConstraint],
        *,
        is_guarded: bool,
    ) -> None:
        self.found: list[Condition] = []
        self._ranges = {
            expr: given for text, given in ranges.items() if (expr := attempt(parse_size, text)) is not None
        }
        self._sources: dict[Expr, tuple[str, Callable[[Leaves], Any]]] = {}
        self._solved: dict[Symbol, tuple[int, int, str, Callable[[Leaves], Any]]] = {}
        self._derived: list[tuple[Expr, str, Callable[[Leaves], Any]]] = []
        self._is_guarded = is_guarded
        for index, given in enumerate(inputs):
            if given.argument.type == "as_tensor":  # before anything asks for the size of one
                self._add(given.name, "a torch.Tensor", _is_tensor(index), _type_of(index))
        for index, given in enumerate(inputs):
            self._input(index, given, graph)
        for expr, place, read in self._derived:
            symbol = free_symbols(expr)[0]
            if symbol not in self._sources:
                self._solve(expr, symbol, place, read)

    def _input(self, index: int, given: Input, graph: schema.Graph) -> None:
        arm = given.argument.type
        content = getattr(given.argument, arm)
        if arm == "as_tensor":
            self._tensor(index, given.name, graph.tensor_values[content.name])
        elif arm in ("as_int", "as_bool", "as_float", "as_string"):
            self._constant(index, given.name, content)
        elif arm == "as_sym_int" and content.as_name is not UNSET:
            self._number(graph.sym_int_values[content.as_name], given.name, _value_of(index))

    def _tensor(self, index: int, name: str, meta: schema.TensorMeta) -> None:
        count, rank = len(meta.sizes), _rank_of(index)
        if not self._is_guarded:
            self._add(name, count_text(count, "dimension"), lambda leaves: rank(leaves) == count, rank)
        before, after = len(self.found), 0
        for dimension, size in enumerate(meta.sizes):
            after = len(self.found)
            self._number(size, f"{name}: size of dimension {dimension}", _size_of(index, dimension))
        if self._is_guarded and len(self.found) > after:  # follows from the last size, and is the better message
            enough = Condition(name, count_text(count, "dimension"), lambda leaves: rank(leaves) >= count, rank)
            self.found.insert(before, enough)

    def _constant(self, index: int, name: str, value: Any) -> None:
        read = _value_of(index)
        kind = float if isinstance(value, float) else type(value)
        if not self._is_guarded:
            self._add(name, kind.__name__, lambda leaves: type(read(leaves)) is kind, _type_of(index))
        if isinstance(value, float) and math.isnan(value):
            self._add(name, "nan", lambda leaves: math.isnan(read(leaves)), read)
        else:
            self._add(name, f"{value!r}, as it was exported", lambda leaves: read(leaves) == value, read)

    def _number(self, size: schema.SymInt, place: str, read: Callable[[Leaves], Any]) -> None:
        if size.as_int is not UNSET:
            value = size.as_int
            expected = f"{value}, as it was exported"
            self._add(place, expected, lambda leaves: read(leaves) == value, read)
            return
        expr = parse_size(size.as_expr.expr_str)  # type: ignore[union-attr]
        if isinstance(expr, Integer):
            self._add(place, f"{expr.value}", lambda leaves: read(leaves) == expr.value, read)
        elif self._is_guarded and expr in self._ranges:
            self._guarded(expr, place, read)
        elif not self._is_guarded and len(free_symbols(expr)) == 1:
            self._solve(expr, free_symbols(expr)[0], place, read)
            self._in_range(expr, place, read)

    def _guarded(self, expr: Expr, place: str, read: Callable[[Leaves], Any]) -> None:
        if len(free_symbols(expr)) == 1:
            self._derived.append((expr, place, read))
        if expr not in self._sources:
            self._sources[expr] = place, read
            self._in_range(expr, place, read)
            return
        first, other = self._sources[expr]
        self._add(place, f"the same as {first}", lambda leaves: read(leaves) == other(leaves), _both(read, other))

    def _in_range(self, expr: Expr, place: str, read: Callable[[Leaves], Any]) -> None:
        bounds = self._ranges.get(expr)
        least, most = (bounds.min_val, bounds.max_val) if bounds is not None else (None, None)
        if least is not None and least > _SMALLEST:
            self._add(place, f"at least {least}", _compares(read, operator.ge, least), read)
        if most is not None:
            self._add(place, f"at most {most}", _compares(read, operator.le, most), read)

    def _solve(self, expr: Expr, symbol: Symbol, place: str, read: Callable[[Leaves], Any]) -> None:
        """Solve a size for a symbol, or compare it with the known value of the symbol: sizes are a*s + b, or any
        function of a symbol that is a size itself."""
        line = linear(expr, symbol)
        if line is None:
            self._compute(expr, symbol, place, read)
            return
        factor, rest = line
        if symbol not in self._solved:
            self._solved[symbol] = factor, rest, place, read
            return
        other_factor, other_rest, first, other = self._solved[symbol]
        scale = Fraction(factor, other_factor)
        shift = rest - other_rest * scale

        def holds(leaves: Leaves) -> Any:
            size, known = read(leaves), other(leaves)
            are_known = size is not None and known is not None
            return are_known and (size - rest) * other_factor == (known - other_rest) * factor

        line_text = f"{scale} times it{f' plus {shift}' if shift else ''}"
        text = f"the same as {first}" if scale == 1 and not shift else f"what fits {first} ({line_text})"
        self._add(place, text, holds, _both(read, other))

    def _compute(self, expr: Expr, symbol: Symbol, place: str, read: Callable[[Leaves], Any]) -> None:
        """Compare a size with a function of a symbol, if an earlier size is the symbol."""
        factor, rest, first, other = self._solved.get(symbol, (0, 0, "", read))
        if factor != 1 or rest:
            return
        compute = computed(expr, {symbol.name: other})

        def holds(leaves: Leaves) -> Any:
            size, known = read(leaves), other(leaves)
            try:
                return size is not None and known is not None and size == compute(leaves)
            except (ArithmeticError, LimitError, TypeError, ValueError):
                return False

        text = printable(to_str(expr), 80)
        self._add(place, f"{text}, where {symbol.name} is {first}", holds, _both(read, other))

    def _add(self, place: str, expected: str, holds: Callable[[Leaves], Any], got: Callable[[Leaves], Any]) -> None:
        self.found.append(Condition(place, expected, holds, got))


def guard_condition(text: str, expr: Expr, values: Mapping[str, Callable[[Leaves], Any]]) -> Condition:
    """Return the condition of an entry of `guards_code`.

    Args:
        text: the entry.
        expr: its expression.
        values: symbol of the expression -> function that reads it from the values in the inputs.
    """
    compute = computed(expr, values)
    reads = tuple(values.values())

    def holds(leaves: Leaves) -> Any:
        try:
            return all(read(leaves) is not None for read in reads) and compute(leaves)
        except (ArithmeticError, LimitError, TypeError, ValueError) as error:
            raise InputError(
                f"input values: expected {text}, got {got(leaves)}, for which it cannot be computed: {error}"
            ) from error

    def got(leaves: Leaves) -> str:
        return ", ".join(f"{name} = {read(leaves)}" for name, read in values.items())

    return Condition("values", text, holds, got)


def read_source(what: str, index: int, dimension: int | None) -> Callable[[Leaves], Any]:
    """Return a function that reads the source of a guard from the values in the inputs.

    Args:
        what: "value", "size", "stride", "storage_offset" or "item".
        index: of the value.
        dimension: of a size or stride.
    """
    if what == "size":
        return _size_of(index, dimension)
    if what == "stride":
        return lambda leaves: leaves[index].stride()[dimension]
    if what == "storage_offset":
        return lambda leaves: leaves[index].storage_offset()
    if what == "item":
        return lambda leaves: leaves[index].item() if leaves[index].numel() == 1 else None
    return _value_of(index)


def _value_of(index: int) -> Callable[[Leaves], Any]:
    return lambda leaves: leaves[index]


def _size_of(index: int, dimension: int | None) -> Callable[[Leaves], Any]:
    def read(leaves: Leaves) -> Any:
        value = leaves[index]
        if not isinstance(value, torch.Tensor) or len(value.shape) <= (dimension or 0):
            return None
        return value.shape[dimension or 0]

    return read


def _is_tensor(index: int) -> Callable[[Leaves], Any]:
    return lambda leaves: isinstance(leaves[index], torch.Tensor)


def _type_of(index: int) -> Callable[[Leaves], Any]:
    return lambda leaves: type_name(leaves[index])


def _rank_of(index: int) -> Callable[[Leaves], Any]:
    return lambda leaves: len(leaves[index].shape)


def _compares(read: Callable[[Leaves], Any], compare: Callable[[Any, Any], Any], bound: int) -> Callable[[Leaves], Any]:
    return lambda leaves: (size := read(leaves)) is not None and compare(size, bound)


def _both(read: Callable[[Leaves], Any], other: Callable[[Leaves], Any]) -> Callable[[Leaves], Any]:
    return lambda leaves: f"{read(leaves)} and {other(leaves)}"
