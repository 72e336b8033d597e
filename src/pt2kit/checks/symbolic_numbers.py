"""Check of functions over numbers whose declared result differs from the computed one (rule T13).

`_operator.add(s0, 1)` returns `s0 + 1`, and the graph declares an expression for it. Both are computed with the values
of the example, the first by the rule of the operator table. Symbols that have none there, such as those of `item`, are
left to the result rules (`call_results.py`), because torch simplifies expressions by what it knows of their symbols.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema, symbols
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.calls import FUNCTION_MODULES
from pt2kit.graph.traversal import Step
from pt2kit.operators.facts import Mismatch, Unknown
from pt2kit.operators.table import infer

Number = int | float | bool

_LARGEST: Final = 1 << 62


def number_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate functions over numbers whose result is declared otherwise than they compute it.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    steps = [step for step in context.steps() if step.node.target.startswith(FUNCTION_MODULES)]
    steps = [step for step in steps if len(step.node.outputs) == 1]
    if not steps:
        return
    example = _example(context)
    for step in steps:
        if (message := _misfit(step, example)) is not None:
            yield Problem(f"{step.where}.outputs[0]", "T13", message)


def _misfit(step: Step, example: Mapping[str, Number]) -> str | None:
    """Return the error of a call; None if its result may be as declared."""
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
    if names - example.keys():
        return None
    try:
        given = {str(position): _value(tree, example) for position, tree in enumerate(operands)}
        computed, declared = infer(step.node.target, given), _value(entry, example)
    except (Pt2Error, ArithmeticError, TypeError, ValueError, Unknown, Mismatch):
        return None
    if not isinstance(computed, (int, float)):
        return None
    if isinstance(computed, float) and is_int:
        return f"expected a float as the result of {step.node.target}, got an int declared"
    if abs(computed) > _LARGEST or math.isclose(computed, declared, rel_tol=1e-9):
        return None
    return f"expected {computed} as the result of {step.node.target} in the example, got {declared} declared"


def _value(tree: Any, values: Mapping[str, Number]) -> Number:
    """Return the value of an expression; a number is its own."""
    return tree if isinstance(tree, (int, float, bool)) else symbols.evaluate(tree, values)


def _entry(graph: schema.Graph, argument: schema.Argument) -> Any:
    """Return a number, or the expression that the graph declares for a value; None for anything else."""
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
    """Return the value of each symbol in the example, as far as the program has it."""
    hints: dict[str, Number] = {}
    graph = context.program.graph_module.graph
    sizes: list[Any] = [size for meta in graph.tensor_values.values() for size in meta.sizes]
    for value in (*sizes, *graph.sym_int_values.values(), *graph.sym_float_values.values()):
        if value.as_expr is not UNSET and value.as_expr.hint is not None:
            tree = _parsed(value)
            if isinstance(tree, symbols.Symbol):
                hints.setdefault(tree.name, value.as_expr.hint.value)
    return hints
