"""Check of plain numbers of a graph that grow without bound: `n ** n ** 99` in nodes of `_operator.pow` (rule T9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pt2kit import schema
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.calls import arguments_of
from pt2kit.symbols.growth import Part, constant, grown

MAX_OPEN_POWERS: Final = 64
"""Powers of one graph, or of all guards, whose exponent is a size: each takes as long as the size says."""

_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("_operator.add", "_operator.sub", "torch.sym_sum"), "Add"),
        **dict.fromkeys(("_operator.neg", "_operator.pos", "_operator.abs"), "Abs"),
        **dict.fromkeys(("math.trunc", "math.ceil", "math.floor", "torch.sym_int"), "FloorToInt"),
        **dict.fromkeys(("_operator.and_", "_operator.or_"), "BitwiseFn_bitwise_or"),
        "_operator.mul": "Mul",
        "_operator.pow": "Pow",
        "_operator.lshift": "LShift",
        "_operator.rshift": "RShift",
        "_operator.floordiv": "FloorDiv",
        "_operator.mod": "PythonMod",
        "_operator.truediv": "TrueDiv",
        "torch.sym_float": "ToFloat",
        "torch.sym_sqrt": "OpaqueUnaryFn_sqrt",
        "torch.sym_max": "Max",
        "torch.sym_min": "Min",
    }
)
_UNKNOWN: Final = Part()


def growth_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate the nodes that compute numbers which may take minutes, whatever small sizes the inputs have."""
    places: dict[int, tuple[schema.Graph, list[str]]] = {}
    for step in context.steps():
        places.setdefault(id(step.scope.graph), (step.scope.graph, []))[1].append(step.where)
    for graph, where in places.values():
        for number, message in growing_numbers(graph):
            yield Problem(where[number], "T9", message)


def growing_numbers(graph: schema.Graph) -> Iterator[tuple[int, str]]:
    """Iterate the nodes of one graph that compute numbers which may take minutes.

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
    return _FUNCTIONS.get(node.target)


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
