"""Check of input sizes that torch cannot prove to be sizes when it loads the program (rule E8).

Torch 2.9 and later goes through the inputs in order, and learns what a symbol is in the example from the first input
that is the symbol, or has it as a size of its own. A size that is computed from symbols which only later inputs have
must be 0 or more for whatever they may be, or torch does not load the program. An example where it is negative is an
error; where there is none, but the ranges of its parts do not tell either, torch may fail as well: a warning. Releases
before 2.9 load both, so that all is a warning in their files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import UNSET

from pt2kit import schema, symbols
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.argument_values import arguments
from pt2kit.messages import quote

MAX_SYMBOLS: Final = 4
"""Symbols of one size for which examples are tried."""
_FAR: Final = 1 << 20
"""The value that is tried for a symbol without an upper bound."""
_FIRST: Final = (2, 9)
"""The first release that fails."""
Ranges = Mapping[str, schema.RangeConstraint]


def input_size_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate the inputs with a size that may be negative for all that is known when they are loaded.

    Source: `deserialize_tensor_meta` and `_parse_sym_expr` in torch/_export/serde/serialize.py, 2.13.
    """
    graph = context.program.graph_module.graph
    known: set[str] = set()
    for position, argument in enumerate(graph.inputs):
        sizes = [tree for name in arguments(argument) for tree in _sizes(graph, name)]
        known.update(tree.name for tree in sizes if isinstance(tree, symbols.Symbol))
        for tree in sizes:
            late = [symbol.name for symbol in symbols.free_symbols(tree) if symbol.name not in known]
            if late and (found := _negative(tree, context.program.range_constraints)) is not None:
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
    return not release or tuple(map(int, release.split("."))) >= _FIRST


def _sizes(graph: schema.Graph, name: str) -> Iterator[symbols.Expr]:
    """Yield the expressions of an input's metadata, as far as they can be parsed."""
    meta, number = graph.tensor_values.get(name), graph.sym_int_values.get(name)
    for size in (*(meta.sizes if meta is not None else ()), *(() if number is None else (number,))):
        if size.as_expr is not UNSET:
            try:
                yield symbols.parse(size.as_expr.expr_str)
            except Pt2Error:
                continue  # Rule E1 reports it.


def _negative(tree: symbols.Expr, ranges: Ranges) -> str | None:
    """Return values for which an expression is negative, "s0 is 2"; "" if none is found; None if it cannot be
    negative."""
    names = [symbol.name for symbol in symbols.free_symbols(tree)]
    ends = {name: (row.min_val, row.max_val) for name, row in ranges.items()}
    try:
        if symbols.bounds(tree, ends)[0] >= 0:
            return None
        near = [_near_ends(*ends.get(name, (None, None))) for name in names[:MAX_SYMBOLS]]
        for values in itertools.product(*near) if len(names) <= MAX_SYMBOLS else ():
            example = dict(zip(names, values, strict=True))
            if symbols.evaluate(tree, example) < 0:
                return ", ".join(f"{name} is {value}" for name, value in example.items())
    except Pt2Error:
        return None  # It cannot be computed at all, which other rules say.
    return ""


def _near_ends(low: int | None, high: int | None) -> tuple[int, ...]:
    """Return numbers at both ends of a range of sizes; torch assumes that sizes are at least 1."""
    least = max(low or 1, 1)
    most = _FAR if high is None else high
    return tuple(dict.fromkeys(number for number in (least, least + 1, most - 1, most) if least <= number <= most))
