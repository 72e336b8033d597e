"""The rules a graph must keep, by id: the ids that errors and problems carry as `rule` and the documentation lists.

An id keeps its meaning for ever; a rule that is dropped leaves a hole in the numbering.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NoReturn

from pt2kit.errors import GraphError, LimitError, Problem

RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "G1": "a value that is used is a graph input or the result of an earlier node, of the same graph",
        "G2": "a value is defined once",
        "G3": "a value has an entry in the value table of its kind",
        "G4": "a name has an entry in one value table only",
        "G5": "the value tables have no entry for a name that the graph does not define",
        "G6": "a tensor has as many sizes as strides, and none of them nor its storage offset is a negative number",
        "G7": "an argument that holds one value names a value of the kind that it says",
        "G8": "the name of a value is an identifier",
        "G9": "a graph input, or an output of a subgraph, is one value or one constant",
        "G10": "a subgraph stands among the arguments of a node, nowhere else",
        "G11": "subgraphs and dicts of arguments nest no deeper than the limits",
        "G12": "a graph that returns a single tensor has one output, and it is a value",
        "G13": "a higher-order node that returns a single tensor has one output, and it is a tensor",
        "G14": "a node has a name of its own, which no other node and no other node's result has",
        "G15": "names of nodes and arguments are identifiers, those of subgraphs identifiers with dots between them",
        "G16": "subgraphs of one name in one graph are equal: the graph has one module of that name",
        "G17": "a tensor has a known element type and layout, numbers and elements below 2**63, at most 64 dimensions; "
        "of integers, it requires no gradient",
    }
)
"""Rule id -> what must hold."""

LIMIT_RULE: Final = "G11"
_SHOWN: Final = 60


def show(name: str) -> str:
    """Quote a name from the file for a message, cut to a length that a line can hold."""
    return repr(name) if len(name) <= _SHOWN else f"{cut(name)!r} ({len(name)} characters)"


def cut(name: str) -> str:
    """Cut a name from the file to a length that a line can hold."""
    return name if len(name) <= _SHOWN else name[:_SHOWN] + "…"


def raise_problem(problem: Problem) -> NoReturn:
    """Turn a finding into the exception that stands for it.

    Raises:
        LimitError: the finding is about a limit (G11).
        GraphError: any other finding.
    """
    error = LimitError if problem.rule == LIMIT_RULE else GraphError
    raise error(f"{problem.loc}: {problem.message}", rule=problem.rule)
