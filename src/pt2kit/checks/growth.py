"""Checks of functions over numbers: growth without bound (rule T9), declared results unlike computed ones (rule T13).

Plain numbers of a graph grow without bound in nodes of `_operator.pow`, for example `n ** n ** 99`.

`_operator.add(s0, 1)` returns `s0 + 1`, and the graph declares an expression for it. Both are computed with the values
of the example, the first by the rule of the operator table. Symbols that have none there, such as those of `item`, are
left to the result rules (`call_results.py`), because torch simplifies expressions by what it knows of their symbols.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema, symbols
from pt2kit.checks.expressions import example_of
from pt2kit.checks.findings import ProgramContext
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.argument_values import FUNCTION_MODULES, arguments, arguments_of, plain
from pt2kit.graph.traversal import Step, graphs
from pt2kit.operators.facts import Mismatch, Unknown
from pt2kit.operators.table import infer
from pt2kit.symbols.functions import TARGETS
from pt2kit.symbols.growth import Part, constant, grown

MAX_OPEN_POWERS: Final = 64
"""Powers of one graph, or of all guards, whose exponent is a size: each takes as long as the size says."""

_UNKNOWN: Final = Part()

Number = int | float | bool

_LARGEST: Final = 1 << 62


def growth_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield the nodes that compute numbers which may take minutes, even for small inputs.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for scope in graphs(context.program, context.graph_place):
        for number, message in growing_numbers(scope.graph):
            yield Problem(f"{scope.where}.nodes[{number}]", "T9", message)


def growing_numbers(graph: schema.Graph) -> Iterator[tuple[int, str]]:
    """Yield the nodes of one graph that compute numbers which may take minutes.

    Yields:
        the number of the node, and "expected …, got …". What is computed from such a number is not reported again.
    """
    parts: dict[str, Part] = {}
    opened = 0
    for number, node in enumerate(graph.nodes):
        function = _function(node)
        if function is None:
            continue
        found = grown(function, _args(node, parts))
        if isinstance(found, str):
            yield number, f"expected {found}, got numbers for {node.target} that may take minutes to compute"
            continue
        opened += found.is_open
        if opened == MAX_OPEN_POWERS + 1 and found.is_open:
            yield number, f"expected at most {MAX_OPEN_POWERS} powers whose exponent is a size, got more"
        parts.update((name, found) for output in node.outputs for name in arguments(output))


def _function(node: schema.Node) -> str | None:
    if node.target == "builtins.round":
        return "RoundDecimal" if len(node.inputs) > 1 else "RoundToInt"
    target = TARGETS.get(node.target)
    return target.function or None if target is not None else None


def _args(node: schema.Node, parts: Mapping[str, Part]) -> list[Part]:
    """Return the bounds of the numbers that a call gets."""
    found: list[Part] = []
    for value in arguments_of(node, lambda name: parts.get(name, _UNKNOWN)).values():
        found += map(_part, value if type(value) is tuple else (value,))
    return found + [_UNKNOWN] * (2 - len(found))


def _part(value: object) -> Part:
    if isinstance(value, int):
        return constant(int(value))
    return Part(is_real=True) if isinstance(value, float) else value if isinstance(value, Part) else _UNKNOWN


def number_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield calls of functions over numbers whose declared result differs from the computed one.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    steps = [step for step in context.steps() if step.node.target.startswith(FUNCTION_MODULES)]
    steps = [step for step in steps if len(step.node.outputs) == 1]
    if not steps:
        return
    example = example_of(context)
    for step in steps:
        if (message := _mismatch(step, example)) is not None:
            yield Problem(f"{step.where}.outputs[0]", "T13", message)


def _mismatch(step: Step, example: Mapping[str, Number]) -> str | None:
    """Return the error of a call; None if its result may be as declared."""
    graph, output, target = step.scope.graph, step.node.outputs[0], step.node.target
    numbers = ChainMap[str, Any](graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values)

    def lookup(name: str) -> Any:
        expr = numbers[name].as_expr
        return numbers[name].value if expr is UNSET else symbols.evaluate(symbols.parse(expr.expr_str), example)

    try:
        computed, declared = infer(target, arguments_of(step.node, lookup)), plain(output, lookup)
    except (Pt2Error, LookupError, ArithmeticError, TypeError, ValueError, Unknown, Mismatch):
        return None
    if not isinstance(computed, (int, float)) or not isinstance(declared, (int, float)):
        return None
    if isinstance(computed, float) and output.type == "as_sym_int":
        return f"expected a float as the result of {target}, got an int declared"
    if abs(computed) > _LARGEST or math.isclose(computed, declared, rel_tol=1e-9):
        return None
    return f"expected {computed} as the result of {target} in the example, got {declared} declared"
