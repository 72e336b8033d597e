"""Checks of symbolic expressions, symbol ranges and input sizes: syntax, assumptions, overflow (rules E1 to E5, E8).

Rule E8 also reports input sizes that torch cannot prove to be sizes when it loads the program. Torch 2.9 and later goes
through the inputs in order, and learns what a symbol is in the example from the first input that is the symbol, or has
it as a size of its own. A size that is computed from symbols which only later inputs have must be 0 or more for
whatever they may be, or torch does not load the program. An example where it is negative is an error; where there is
none, but the ranges of its parts do not tell either, torch may fail as well: a warning. Releases before 2.9 load both,
so that all is a warning in their files.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema, symbols
from pt2kit.checks.findings import ProgramContext, problem_of
from pt2kit.errors import Problem, Pt2Error, attempt
from pt2kit.graph.argument_values import SYMBOLIC, arguments
from pt2kit.graph.traversal import Scope, graphs, tables
from pt2kit.jsontext import path_text
from pt2kit.messages import cut, printable, quote
from pt2kit.symbols.expr import Call, walk
from pt2kit.symbols.growth import check_terms, compared
from pt2kit.symbols.ranges import Interval

_CALLED: Final = re.compile(r"([A-Za-z_]\w*)\s*\(")
_CODE: Final = re.compile(r"__|[\[\]{}@;:\\]|[\w)\]]\s*\.\s*[A-Za-z_]|\blambda\b")
_UNBACKED: Final = re.compile("u|zuf")
"""How the names of symbols begin that torch counts on loading."""
_NUMBERED: Final = re.compile(r"(u|zuf)\d{1,9}", re.ASCII)
_LARGEST: Final = (1 << 63) - 1
_HINTS: Final[Mapping[str, type]] = {"int": int, "size": int, "offset": int, "float": float, "bool": bool}
_SIZES: Final = frozenset(("size", "offset"))
_LEAVES: Final = frozenset(("Symbol", "Integer", "Float", "Rational", "Boolean"))


MAX_EXPRESSIONS: Final = 4 << 20
"""Characters of the distinct expressions of one program; those of large dynamic models have some 100,000."""
MAX_GUARDS: Final = 1 << 20
"""Characters of the guards of one program."""


_FEW_TERMS: Final = 64
_SHIFTS: Final = frozenset(("LShift", "RShift"))
_MAX_SPENT: Final = 1 << 16
"""Terms of all expressions of one program that have more than a few."""
_MAX_COMPARISONS: Final = 1 << 11
"""Comparisons of calls in all different maxima and minima of one program: each takes sympy some 2 ms."""

MAX_SYMBOLS: Final = 4
"""Symbols of one size for which examples are tried."""
_FAR_END: Final = 1 << 20
"""The value that is tried for a symbol without an upper bound."""
_FIRST_TO_FAIL: Final = (2, 9)
"""The first release that does not load a program with an input whose size may be negative."""
_Ranges = Mapping[str, schema.RangeConstraint]
_Limits = Mapping[str, tuple[int | None, int | None]]
_Example = Mapping[str, int | float | bool]


@dataclass(frozen=True, slots=True)
class Found:
    """An expression of a program: what it has to yield, its text, its value in the example, and where it is first."""

    kind: str
    text: str
    hint: int | float | bool | None
    place: str


def expression_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield problems of the expressions of a program and of the ranges of their symbols.

    Each distinct expression is read once and reported at the first place it has. Those that are code are left to X5.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    ranges = context.program.range_constraints
    yield from _range_problems(ranges, context.record)
    limits = {name: (row.min_val, row.max_val) for name, row in ranges.items()}
    spans: dict[tuple[str, str], Interval | None] = {}
    known: dict[str, symbols.Symbol] = {}
    example = example_of(context)
    unbound: dict[str, str] = {}
    bound: set[str] = set()
    spent = 0
    comparisons, maxima = 0, set[Call]()
    for expression in expressions(context):
        key = (expression.kind, expression.text)
        if key not in spans:
            spans[key] = None
            try:
                tree = _parse(expression)
            except Pt2Error as error:
                if not is_code(expression.text):
                    yield replace(problem_of(error, expression.place), rule="E1")
                continue
            terms = check_terms(tree)
            spent += terms if terms > _FEW_TERMS else 0
            if spent > _MAX_SPENT:
                message = f"expected expressions of at most {_MAX_SPENT:,} terms in one program, multiplied out"
                yield Problem(expression.place, "E1", f"{message}, got more in {quote(expression.text)}")
                continue
            found = compared(tree)
            comparisons += sum(calls**2 for node, calls in found.items() if node not in maxima)
            maxima.update(found)
            if found and comparisons > _MAX_COMPARISONS:
                message = f"expected maxima and minima of at most {_MAX_COMPARISONS:,} comparisons in one program"
                yield Problem(expression.place, "E1", f"{message}, got more in {quote(expression.text)}")
                continue
            yield from _symbol_problems(tree, expression.place, ranges, known, example)
            _note_unbacked(expression, tree, unbound, bound)
            if (count := _negative_shift(tree, limits)) is not None:
                message = f"expected to shift by 0 bits or more, got {quote(symbols.to_str(count))}, which is less"
                yield Problem(expression.place, "E1", message)
                continue
            spans[key] = _span(tree, limits) if expression.kind != "bool" else None
            yield from _span_problems(expression, spans[key])
            yield from _example_problems(expression, tree, spans[key], example)
        yield from _hint_problems(expression, spans[key])
    for name, place in unbound.items():
        if name not in bound:
            message = f"expected a value of the program that is the unbacked symbol {quote(name)} itself, got none"
            yield Problem(place, "E2", message)


def size_problem(context: ProgramContext, record_size: int) -> Problem | None:
    """Return the problem of expressions or guards that take minutes to read (A18); None if there is none.

    Args:
        context: the program.
        record_size: bytes of its record; a small one is skipped.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    if record_size <= MAX_GUARDS:
        return None
    if (count := sum(map(len, context.program.guards_code))) > MAX_GUARDS:
        message = f"expected at most {MAX_GUARDS:,} characters of guards, got {count:,}"
        return Problem(f"{context.record}: $.guards_code", "A18", message)
    count = 0
    for found in expressions(context) if record_size > MAX_EXPRESSIONS else ():
        count += len(found.text)
        if count > MAX_EXPRESSIONS:
            return Problem(
                found.place, "A18", f"expected at most {MAX_EXPRESSIONS:,} characters of expressions, got more"
            )
    return None


def expressions(context: ProgramContext) -> Iterator[Found]:
    """Yield the distinct expressions of a program with their hints, each at the first place it has."""
    seen: set[tuple[str, str, Any]] = set()
    for scope in graphs(context.program, context.graph_place):
        for kind, value, place in _values(scope):
            hint = None if value.hint is None else value.hint.value
            key = (kind, value.expr_str, hint)
            if key not in seen:
                seen.add(key)
                yield Found(*key, place())


def example_of(context: ProgramContext) -> dict[str, int | float | bool]:
    """Return the values that symbols have in the example: the hints of values that are the symbol itself."""
    example: dict[str, int | float | bool] = {}
    for found in expressions(context):
        if found.hint is not None and found.text not in example:
            tree = attempt(symbols.parse, found.text)
            if isinstance(tree, symbols.Symbol) and type(found.hint) is _HINTS[found.kind]:
                example.setdefault(tree.name, found.hint)
    return example


def is_code(text: str) -> bool:
    """Return whether a text is no expression, but does more than fail when torch evaluates it: it calls or looks up."""
    called = (name for name in _CALLED.findall(text) if name not in symbols.FUNCTIONS and name not in _LEAVES)
    if not _CODE.search(text) and not any(called):
        return False
    return attempt(symbols.parse, text) is None


def _parse(found: Found) -> symbols.Expr:
    """Read an expression as its place asks for."""
    if found.kind == "int" or found.kind in _SIZES:
        return symbols.parse_size(found.text, where=found.place)
    parse = symbols.parse_number if found.kind == "float" else symbols.parse_truth
    return parse(found.text, where=found.place)


def _values(scope: Scope) -> Iterator[tuple[str, schema.SymExpr, Callable[[], str]]]:
    """Yield the expressions of a graph: what each must yield, itself, and a function that returns its place.

    Values of a large program share their descriptions; each is checked only once.
    """
    graph = scope.graph
    seen: set[int] = set()
    for name, meta in graph.tensor_values.items():
        if id(meta) in seen:
            continue
        seen.add(id(meta))
        for field, numbers in (("sizes", meta.sizes), ("strides", meta.strides)):
            for index, number in enumerate(numbers):
                if number.as_expr is not UNSET:
                    yield "size", number.as_expr, _place(scope, "tensor_values", name, field, index)
        if meta.storage_offset.as_expr is not UNSET:
            yield "offset", meta.storage_offset.as_expr, _place(scope, "tensor_values", name, "storage_offset")
    for kind, table in tables(graph).items():
        for name, value in table.items() if kind in SYMBOLIC else ():
            if value.as_expr is not UNSET:
                yield kind.removeprefix("sym_"), value.as_expr, _place(scope, f"{kind}_values", name)


def _place(scope: Scope, table: str, name: str, *rest: str | int) -> Callable[[], str]:
    return lambda: f"{scope.where}.{table}{path_text((cut(name), *rest))[1:]}"


def _range_problems(ranges: _Ranges, record: str) -> Iterator[Problem]:
    for name, row in ranges.items():
        place = f"{record}: {path_text(('range_constraints', cut(name)))}"
        low, high = row.min_val, row.max_val
        if low is not None and high is not None and low > high:
            yield Problem(
                place, "E3", f"expected a least value up to the greatest, got {_short(low)} and {_short(high)}"
            )
        if _UNBACKED.match(name) and not name.lstrip("zuf").isdecimal():
            message = f"expected a number after the prefix of an unbacked symbol, got {quote(name)}"
            yield Problem(place, "E1", message)
            continue
        try:
            symbols.parse(name, where=place)
        except Pt2Error as error:
            if not is_code(name):
                yield replace(problem_of(error, place), rule="E1")


def _symbol_problems(
    tree: symbols.Expr, place: str, ranges: _Ranges, known: dict[str, symbols.Symbol], example: _Example
) -> Iterator[Problem]:
    """Check for symbols without a range (E2) or with other assumptions than before (E5), each reported once.

    torch drops the ranges of symbols that it got rid of; it needs those of symbols that have no value in the example.
    """
    for symbol in symbols.free_symbols(tree):
        first = known.setdefault(symbol.name, symbol)
        if first is symbol and symbol.name not in ranges:
            message = f"expected a range for the symbol {quote(symbol.name)} in range_constraints, got none"
            yield Problem(place, "E2", message, "warning" if symbol.name in example else "error")
        if dict(first.assumptions) != dict(symbol.assumptions):  # sympy writes them as its first caller did
            message = (
                f"expected one meaning of {quote(symbol.name)}, got {_assumptions(symbol)} here and "
                f"{_assumptions(first)} before"
            )
            yield Problem(place, "E5", message)


def _note_unbacked(found: Found, tree: symbols.Expr, unbound: dict[str, str], bound: set[str]) -> None:
    """Note the unbacked symbols of an expression that torch expects a value for, or the one that it is.

    Offsets count for neither: torch's reader leaves them out.
    """
    if found.kind == "offset":
        return
    names = [symbol.name for symbol in symbols.free_symbols(tree) if _NUMBERED.fullmatch(symbol.name)]
    for name in names:
        unbound.setdefault(name, found.place)
    if len(names) == 1 and (isinstance(tree, symbols.Symbol) or _is_bound_in(tree)):
        bound.add(names[0])


def _is_bound_in(tree: symbols.Expr) -> bool:
    """Return whether torch finds the value of a symbol in an expression: a multiple of it, or a comparison with 1."""
    if not isinstance(tree, Call) or len(tree.args) != 2:
        return False
    other = next((arg for arg in tree.args if not isinstance(arg, symbols.Symbol)), None)
    return tree.function in ("Mul", "Equality") and isinstance(other, symbols.Integer)


def _span(tree: symbols.Expr, limits: _Limits) -> Interval | None:
    """Return the least and the greatest value of an expression; None if that is not known.

    Where the range of a symbol contradicts its assumptions, torch asks the range what the example may be, and the
    assumptions whether a size can be 0 or more.
    """
    try:
        low, high = symbols.bounds(tree, limits)
        if low > high and isinstance(tree, symbols.Symbol) and tree.name in limits:
            low, high = symbols.bounds(tree, {})
            least, greatest = limits[tree.name]
            if high >= 0:
                low, high = -math.inf if least is None else least, math.inf if greatest is None else greatest
    except Pt2Error:
        return None  # The expression has a problem of its own.
    return (low, high) if low <= high else None


def _negative_shift(tree: symbols.Expr, limits: _Limits) -> symbols.Expr | None:
    """Return the count of a shift that is below 0 whatever its symbols are; None if there is none."""
    for count in [node.args[1] for node in walk(tree) if isinstance(node, Call) and node.function in _SHIFTS]:
        with contextlib.suppress(Pt2Error):
            if symbols.bounds(count, limits)[1] < 0:
                return count
    return None


def _span_problems(found: Found, span: Interval | None) -> Iterator[Problem]:
    """Check for ints that do not fit into 64 bits, whatever their symbols are, and sizes below 0 (E8)."""
    least = 0 if found.kind in _SIZES else -_LARGEST - 1
    if span is None or found.kind == "float" or (span[1] >= least and span[0] <= _LARGEST):
        return
    expected = "a number from 0 to 2**63 - 1" if found.kind in _SIZES else "a number of 64 bits"
    yield Problem(found.place, "E8", f"expected {expected} as the value of {quote(found.text)}, got none in its range")


def _example_problems(found: Found, tree: symbols.Expr, span: Interval | None, example: _Example) -> Iterator[Problem]:
    """Check the value that an expression has in the example: torch computes it for those without a hint (E4)."""
    is_size = found.kind in _SIZES and (span is None or span[0] < 0)
    names = [symbol.name for symbol in symbols.free_symbols(tree)]
    if isinstance(tree, symbols.Symbol) or not names or not (found.hint is None or is_size):
        return
    if any(name not in example for name in names):
        return
    given = ", ".join(f"{printable(name)} is {_short(example[name])}" for name in names)
    try:
        value = symbols.evaluate(tree, example, eager=True)
    except Pt2Error as error:
        if found.hint is None:
            reason = error.message.removeprefix("expression: ")
            yield Problem(found.place, "E4", f"expected a value in the example, where {given}, got none: {reason}")
        return
    if is_size and value < 0:
        message = f"expected {quote(found.text)} of 0 or more in the example, where {given}, got {_short(value)}"
        yield Problem(found.place, "E4", message)


def _hint_problems(found: Found, span: Interval | None) -> Iterator[Problem]:
    hint = found.hint
    if hint is not None and type(hint) is not _HINTS[found.kind]:
        expected = _HINTS[found.kind].__name__
        message = f"expected {expected} as the value of {quote(found.text)} in the example, got {quote(str(hint))}"
        yield Problem(found.place, "E9", message)
        return
    if span is None or hint is None or hint != hint or span[0] <= hint <= span[1]:
        return
    low, high = span
    message = f"expected a hint of {quote(found.text)} from {_short(low)} to {_short(high)}, got {_short(hint)}"
    yield Problem(found.place, "E4", message)


def _assumptions(symbol: symbols.Symbol) -> str:
    return ", ".join(f"{key}={value}" for key, value in symbol.assumptions) or "the usual assumptions"


def _short(number: int | float) -> str:
    return "a number of many digits" if isinstance(number, int) and number.bit_length() > 256 else str(number)


def input_size_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield the inputs whose size may be negative, as far as their ranges and hints tell.

    Source: `deserialize_tensor_meta` and `_parse_sym_expr` in torch/_export/serde/serialize.py, 2.13.
    """
    graph = context.program.graph_module.graph
    known: set[str] = set()
    for position, argument in enumerate(graph.inputs):
        sizes = [tree for name in arguments(argument) for tree in _sizes(graph, name)]
        known.update(tree.name for tree in sizes if isinstance(tree, symbols.Symbol))
        for tree in sizes:
            late = [symbol.name for symbol in symbols.free_symbols(tree) if symbol.name not in known]
            if late and (found := attempt(_negative, tree, context.program.range_constraints)) is not None:
                listed = ", ".join(map(quote, late))
                shown = f": where {found}" if found else ""
                message = (
                    f"expected an input before {quote(next(arguments(argument)))} with a size {listed}, which one of "
                    f"its sizes is made of, got none; by the ranges alone that may be negative{shown}"
                )
                place = f"{context.graph_place}.inputs[{position}]"
                yield Problem(place, "E8", message, "error" if found and _is_failing(context.release) else "warning")
                break


def _is_failing(release: str) -> bool:
    """Return whether a release ("2.13"; "" for an unknown one) does not load such a program."""
    return not release or tuple(map(int, release.split("."))) >= _FIRST_TO_FAIL


def _sizes(graph: schema.Graph, name: str) -> Iterator[symbols.Expr]:
    """Yield the expressions of an input's metadata, as far as they can be parsed."""
    meta, number = graph.tensor_values.get(name), graph.sym_int_values.get(name)
    for size in (*(meta.sizes if meta is not None else ()), *(() if number is None else (number,))):
        if size.as_expr is not UNSET and (tree := attempt(symbols.parse, size.as_expr.expr_str)) is not None:
            yield tree


def _negative(tree: symbols.Expr, ranges: _Ranges) -> str | None:
    """Return values for which an expression is negative, "s0 is 2"; "" if none is found; None if it cannot be
    negative.

    Raises:
        ExpressionError: it cannot be computed.
    """
    names = [symbol.name for symbol in symbols.free_symbols(tree)]
    ends = {name: (row.min_val, row.max_val) for name, row in ranges.items()}
    if symbols.bounds(tree, ends)[0] >= 0:
        return None
    near = [_near_ends(*ends.get(name, (None, None))) for name in names[:MAX_SYMBOLS]]
    for values in itertools.product(*near) if len(names) <= MAX_SYMBOLS else ():
        example = dict(zip(names, values, strict=True))
        if symbols.evaluate(tree, example) < 0:
            return ", ".join(f"{name} is {value}" for name, value in example.items())
    return ""


def _near_ends(low: int | None, high: int | None) -> tuple[int, ...]:
    """Return numbers at both ends of a range of sizes; torch assumes that sizes are at least 1."""
    least = max(low or 1, 1)
    most = _FAR_END if high is None else high
    return tuple(dict.fromkeys(number for number in (least, least + 1, most - 1, most) if least <= number <= most))
