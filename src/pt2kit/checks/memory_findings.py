"""What following the memory of a program finds: the uses that let it out, and what was taken for what the file says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pt2kit.graph.traversal import Step


class Use(NamedTuple):
    """How memory that nothing was written to gets out.

    Args:
        step: the node that reads it; None where the graph returns it.
        position: which of the graph's outputs returns it.
        value: the value that is read or returned.
        origin: the value that brought the memory.
    """

    step: Step | None
    position: int
    value: str
    origin: str


@dataclass(slots=True)
class Assumed:
    """Values of one graph that were taken for what the file declares; without them less would count as written.

    Args:
        sizes: by sizes and type.
        strides: by strides, too.
    """

    sizes: set[str] = field(default_factory=set)
    strides: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Findings:
    """What following a program found.

    Args:
        uses: how unwritten memory gets out.
        cells: how many elements were followed, over all calls.
        assumed: id of a graph -> what was assumed of it.
    """

    uses: list[Use] = field(default_factory=list)
    cells: int = 0
    assumed: dict[int, Assumed] = field(default_factory=dict)
