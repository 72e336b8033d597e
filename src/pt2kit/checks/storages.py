"""Views of given strides compared with the storage that they look at (part of rule T8).

`as_strided` and its relatives take sizes, strides and an offset, and look at any elements of a storage. How long a
storage is, the file tells for weights, buffers and constants, and a call for what it creates; a view of either has the
same storage. torch raises an error where such a view reaches beyond.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.findings import ProgramContext
from pt2kit.checks.stored_inputs import Tables, stored_inputs
from pt2kit.checks.unchecked import may_resize
from pt2kit.dataflow.domain import Call, Domain, Value
from pt2kit.dataflow.engine import run
from pt2kit.errors import GraphError, LimitError, Problem
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import operator_name, spanned_bytes
from pt2kit.operators.aliasing import aliases, is_measured
from pt2kit.operators.rows import texts
from pt2kit.schema.operators import find_operator, nearest
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.view import TensorView

_STRIDED: Final = ".as_strided"
_EXACT: Final = ("creation.", "elementwise.", "linalg.products.")
"""Files of rows, as their names begin, whose results have a storage of their own, no longer than they need."""


def storage_problems(context: ProgramContext, tables: Tables = lambda: ({}, {})) -> Iterator[Problem]:
    """Yield calls of `as_strided` and its relatives that reach beyond the storage of a tensor (T8).

    Args:
        context: the program.
        tables: reads its payloads; without them, only storages that calls create are known.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    if not any(_STRIDED in step.node.target for step in context.steps()):
        return
    payloads = stored_inputs(context.program.graph_module, tables)
    held = {name: view.storage.nbytes for name, view in payloads.items() if isinstance(view, TensorView)}
    domain = _Storages(held, nearest(context.release))
    with suppress(GraphError, LimitError):  # rules of their own
        run(context.program, domain, release=context.release)
    for problem in domain.problems:
        yield replace(problem, loc=f"{context.record}: {problem.loc}")


class _Storages(Domain[Any]):
    """The bytes of the storage under each tensor; None where they are not known.

    Args:
        held: name of an input -> bytes that the file stores.
        release: the release of torch whose operators are called.
    """

    def __init__(self, held: Mapping[str, int], release: str) -> None:
        self._held = held
        self._release = release
        self.problems: list[Problem] = []

    def input(self, value: Value) -> int | None:
        """Return the bytes that the file stores for an input of the program."""
        return self._held.get(value.name) if value.is_root and value.position >= 0 else None

    def call(self, call: Call) -> Sequence[Any]:
        """Return the storage that a result shares with an argument for certain, or has for itself."""
        name = operator_name(call.target)
        if _STRIDED in call.target:
            self._judge(call)
        found = find_operator(name, self._release)
        if found is None:
            self._held = {}
            return [None] * len(call.node.outputs)
        shared = {alias.result: alias for alias in aliases(name, self._release)}
        results = [
            call.arguments.get(shared[position].parameter)
            if position in shared and shared[position].certainty == "always"
            else None
            for position in range(len(call.node.outputs))
        ]
        if not shared and len(results) == 1 and is_measured(name):
            results = [_created(call, name)]
        return [fact if isinstance(fact, int) else None for fact in results]

    def write(self, fact: int | None, call: Call, parameter: str) -> int | None:
        """Return the bytes, unless the call may resize the storage."""
        is_known = find_operator(operator_name(call.target), self._release) is not None
        return fact if is_known and not may_resize(call, parameter) else None

    def join(self, one: int | None, other: int | None) -> int | None:
        """Return the bytes that both branches agree on."""
        return one if one == other else None

    def slice(self, fact: int | None, dim: int) -> None:
        """Return nothing: a slice may be a copy."""

    def stack(self, fact: int | None, operands: Sequence[int | None]) -> None:
        """Return nothing: what is stacked is new."""

    def _judge(self, call: Call) -> None:
        """Report a view that reaches beyond its storage."""
        given = call.arguments
        looked_at = next((key for key in ("self", "a") if key in given), "")
        held, meta = given.get(looked_at), _meta(call, looked_at)
        if not isinstance(held, int) or meta is None or meta.dtype not in DTYPES:
            return
        offset = given.get("storage_offset")
        offset = meta.storage_offset.as_int if offset is None else offset
        reach, length = _reach(given.get("size"), given.get("stride"), offset), held // DTYPES[meta.dtype].itemsize
        if reach is not None and reach > length:
            message = f"{looked_at}: expected a storage of {reach:,} elements or more, got {length:,}"
            self.problems.append(Problem(call.where, "T8", message))


def _meta(call: Call, parameter: str) -> schema.TensorMeta | None:
    """Return what the graph declares of the tensor that is an argument."""
    names = [name for named in call.node.inputs if named.name == parameter for name in arguments(named.arg)]
    return call.scope.graph.tensor_values.get(names[0]) if len(names) == 1 else None


def _created(call: Call, name: str) -> int | None:
    """Return the bytes of the storage that a call creates; None if it may be longer than the result needs."""
    row, output = texts().get(name), call.node.outputs[0].as_tensor
    meta = None if output is UNSET else call.scope.graph.tensor_values.get(output.name)
    if meta is None or row is None or not row.file.startswith(_EXACT) or meta.dtype not in DTYPES:
        return None
    size = spanned_bytes(meta)
    # It fills its storage if its elements are as many as it spans, and start at the beginning.
    count = math.prod(one.as_int for one in meta.sizes if isinstance(one.as_int, int))
    is_packed = count == size // DTYPES[meta.dtype].itemsize and meta.storage_offset.as_int == 0
    return size if size and is_packed else None


def _reach(sizes: Any, strides: Any, offset: Any) -> int | None:
    """Return the elements that a storage needs for such a view; None if they are not known."""
    numbers = (*sizes, *strides, offset) if isinstance(sizes, tuple) and isinstance(strides, tuple) else (None,)
    if not all(isinstance(number, int) for number in numbers) or len(sizes) != len(strides):
        return None
    steps = ((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return 0 if 0 in sizes else offset + sum(steps) + 1
