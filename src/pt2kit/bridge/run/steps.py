"""Intermediate representation of a program: operators over numbered values, with all names of the file resolved.

Both ways of running a graph start from `Steps`: the source of a Python function (`source.py`), and a module of
torch.fx for subgraphs (`subgraphs.py`). No name of the file is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

# Structs, because each node makes three of these: a frozen dataclass takes five times as long to make.


class Value(Struct, frozen=True, gc=False):
    """A value of a graph, by its number: inputs first, then results in the order of the steps."""

    number: int


class Origin(Struct, frozen=True, gc=False):
    """The node that a step comes from, for messages.

    Args:
        label: its name, or its place where it has none.
        stack_trace: the lines of the model's source, as the file has them; "" where it has none.
    """

    label: str
    stack_trace: str


class Step(Struct, frozen=True):
    """One call.

    Args:
        target: the callable.
        args, kwargs: values, subgraphs, constants, and lists, tuples and dicts of these.
        result: the value that the call returns.
        origin: its node.
    """

    target: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    result: Value
    origin: Origin


@dataclass(frozen=True, slots=True)
class Steps:
    """A graph.

    Args:
        inputs: the number of its inputs, which are numbered from 0.
        steps: its calls, in order.
        outputs: its results: values, constants, and containers of them.
        is_single: it returns the one output itself, not a tuple of it.
    """

    inputs: int
    steps: Sequence[Step]
    outputs: Sequence[Any]
    is_single: bool = False


def values_in(held: Any) -> list[Value]:
    """Return the values in an argument and its nested containers, each as often as it occurs."""
    values: list[Value] = []
    pending = [held]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is Value:
            values.append(item)
        elif kind is tuple or kind is list:
            pending += item
        elif kind is dict:
            pending += item.values()
    return values
