"""Functions over numbers -> those whose declared result is another than they compute (rule T13).

`_operator.add(s0, 1)` gives `s0 + 1`, and the graph declares an expression for it. Both are computed with the values of
the example; symbols that have none there, such as those of `item`, get several values of their range. Only what differs
for all of them is wrong: torch simplifies expressions by what it knows of their symbols.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema, symbols
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.traversal import Step

Number = int | float | bool

_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{
        f"_operator.{name}": getattr(operator, name)
        for name in (
            "add",
            "sub",
            "mul",
            "floordiv",
            "mod",
            "truediv",
            "neg",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "not_",
        )
    },
    "_operator.abs": abs,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.trunc": math.trunc,
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_not": operator.not_,
    "torch.sym_float": float,
}
_SAMPLES: Final = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 60, 64, 120, 128, 256, 720, 1024, 5040, 0, 1)
"""What symbols without a value in the example are taken for, as far as their range has it."""
_LARGEST: Final = 1 << 62


def number_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate functions over numbers whose result is declared otherwise than they compute it.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    steps = [step for step in context.steps() if step.node.target in _FUNCTIONS and len(step.node.outputs) == 1]
    if not steps:
        return
    example = _example(context)
    for step in steps:
        if (message := _misfit(step, example, context.program.range_constraints)) is not None:
            yield Problem(f"{step.where}.outputs[0]", "T13", message)


def _misfit(step: Step, example: Mapping[str, Number], ranges: Mapping[str, schema.RangeConstraint]) -> str | None:
    """What is said of a call; None where its result may be what is declared."""
    entry = _entry(step.scope.graph, step.node.outputs[0])
    operands = [_entry(step.scope.graph, named.arg) for named in step.node.inputs]
    if entry is None or None in operands:
        return None
    is_int = step.node.outputs[0].type == "as_sym_int"
    names = {
        symbol.name
        for tree in (entry, *operands)
        if not isinstance(tree, (int, float, bool)) and tree is not None
        for symbol in symbols.free_symbols(tree)
    }
    seen: list[tuple[Any, Any]] = []
    for sample in _SAMPLES if names - example.keys() else _SAMPLES[:1]:
        values = {name: example[name] if name in example else _fitted(sample, ranges.get(name)) for name in names}
        try:
            computed = _FUNCTIONS[step.node.target](*(_value(tree, values) for tree in operands))
            declared = _value(entry, values)
        except (Pt2Error, ArithmeticError, TypeError, ValueError):
            return None
        if isinstance(computed, float) and is_int:
            return f"expected a float as the result of {step.node.target}, got an int declared"
        if abs(computed) > _LARGEST or math.isclose(computed, declared, rel_tol=1e-9):
            return None
        seen.append((computed, declared))
    got = f"{seen[0][1]} declared"
    return f"expected {seen[0][0]} as the result of {step.node.target} in the example, got {got}"


def _fitted(sample: int, limits: schema.RangeConstraint | None) -> int:
    low = limits.min_val if limits is not None and limits.min_val is not None else 0
    high = limits.max_val if limits is not None and limits.max_val is not None else _LARGEST
    return max(low, min(high, sample))


def _value(tree: Any, values: Mapping[str, Number]) -> Number:
    """The value of an expression; a number is its own."""
    return tree if isinstance(tree, (int, float, bool)) else symbols.evaluate(tree, values)


def _entry(graph: schema.Graph, argument: schema.Argument) -> Any:
    """A number, or the expression that the graph declares for a value; None for anything else."""
    value = argument.value
    if argument.type in ("as_int", "as_float", "as_bool"):
        return value
    if argument.type not in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        return None
    if value.as_name is UNSET:
        return value.value
    tables: Any = (graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values)
    for table in tables:
        if value.as_name in table:
            return _parsed(table[value.as_name])
    return None


def _parsed(value: Any) -> Any:
    if value.as_expr is UNSET:
        return value.value
    try:
        return symbols.parse(value.as_expr.expr_str)
    except Pt2Error:
        return None


def _example(context: ProgramContext) -> dict[str, Number]:
    """What each symbol was in the example, as far as the program tells."""
    hints: dict[str, Number] = {}
    graph = context.program.graph_module.graph
    sizes: list[Any] = [size for meta in graph.tensor_values.values() for size in meta.sizes]
    for value in (*sizes, *graph.sym_int_values.values(), *graph.sym_float_values.values()):
        if value.as_expr is not UNSET and value.as_expr.hint is not None:
            tree = _parsed(value)
            if isinstance(tree, symbols.Symbol):
                hints.setdefault(tree.name, value.as_expr.hint.value)
    return hints
