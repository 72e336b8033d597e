"""Domains of a dataflow analysis: abstract values (facts), how calls, writes and branches change them, shared memory.

A domain has four methods. The engine (`engine.py`) walks the graph and knows scopes, subgraphs, aliases and in-place
writes; a domain knows what facts mean. Facts are compared with `==`, so frozen data is best.

    class Dtypes(Domain):
        def input(self, value): return value.meta.dtype if value.kind == "tensor" else None
        def call(self, call): ...

`Memory` is a storage that values share; `effects_of` returns which operators alias or write their arguments.

`Changes` finds the inputs of a program that calls write to.

`Sizes` has facts of tensors and numbers that result rules compute; `docs/how-to/analysis.md` shows a whole analysis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from pt2kit import schema
from pt2kit.graph.argument_values import ValueKind, arguments
from pt2kit.graph.traversal import Scope, graphs
from pt2kit.operators.aliasing import aliases, written
from pt2kit.operators.facts import UNKNOWN, Mismatch, Tensor, Unknown
from pt2kit.operators.metas import Symbols
from pt2kit.operators.table import infer
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import nearest
from pt2kit.symbols.polynomials import Polynomial, same, unknown

F = TypeVar("F")


class Value(NamedTuple):
    """An input of a graph.

    Args:
        name: its name in the graph.
        kind: the value table that describes it.
        meta: the entry there; None if it has none.
        scope: the graph.
        position: its number among the inputs of the graph.
    """

    name: str
    kind: ValueKind | None
    meta: Any
    scope: Scope
    position: int

    @property
    def is_root(self) -> bool:
        """Return whether the value is an input of the program, not of a subgraph."""
        return self.scope.depth == 0


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator, with facts instead of values.

    Args:
        target: "torch.ops.aten.add.Tensor".
        arguments: by parameter name: facts for values, plain Python values for the rest (`graph.argument_values`).
        node: the node.
        scope: the graph that it is in.
        number: its number there.
    """

    target: str
    arguments: Mapping[str, Any]
    node: schema.Node
    scope: Scope
    number: int

    @property
    def where(self) -> str:
        """Return the location of the node, for messages."""
        return f"{self.scope.where}.nodes[{self.number}]"


class Domain(Generic[F]):
    """The facts of one analysis. Subclasses define `input` and `call`, and the others where the defaults do not fit."""

    def input(self, value: Value) -> F:
        """Return the fact of an input of the program, or of a subgraph whose operands are unknown.

        Raises:
            NotImplementedError: the class does not define it; the same holds for `call` and `join`.
        """
        raise NotImplementedError

    def call(self, call: Call) -> Sequence[Any]:
        """Return a fact for each output of a node; a list of facts for an output that is a list.

        Fewer than the node has count as unknown: the engine asks `input` for the others.
        """
        raise NotImplementedError

    def write(self, fact: F, call: Call, parameter: str) -> F:
        """Return the fact of a value after a call wrote to its memory, directly or through an alias of it.

        Args:
            fact: what was known of the value before.
            call: the call that wrote.
            parameter: the parameter that was written, an alias of the value.
        """
        return fact

    def join(self, one: F, other: F) -> F:
        """Return what holds if either fact may hold: after branches, and for values that a loop carries."""
        if one == other:
            return one
        raise NotImplementedError(f"{type(self).__name__}.join: this program has branches or loops with other facts")

    def slice(self, fact: F, dim: int) -> F:
        """Return the fact of one slice of an operand of `scan` or `map`; by default that of the whole operand."""
        return fact

    def stack(self, fact: F, operands: Sequence[F]) -> F:
        """Return the fact of slices that `scan` or `map` stack, from the fact of one; by default the same.

        Args:
            fact: of the slice that one run returns.
            operands: the facts of the operands that are sliced.
        """
        return fact


class Effects(NamedTuple):
    """Effects of an operator on memory.

    Args:
        written: the parameters that it writes.
        aliases: which result may share memory with which parameter.
    """

    written: tuple[str, ...] = ()
    aliases: tuple[tuple[int, str], ...] = ()


class Memory:
    """A storage that values share; two that turn out to be one are joined."""

    __slots__ = ("_joined", "holders")

    def __init__(self) -> None:
        self.holders: list[Any] = []
        self._joined: Memory | None = None

    def root(self) -> Memory:
        """Return the memory that this one was joined into, or itself."""
        memory = self
        while memory._joined is not None:
            memory = memory._joined
        return memory

    def joined(self, other: Memory) -> Memory:
        """Merge two memories, and return the result."""
        one, two = self.root(), other.root()
        if one is not two:
            one.holders += two.holders
            two._joined = one
        return one


# A pure function of the tables of the package.
@lru_cache(maxsize=4096)
def effects_of(target: str, release: str) -> Effects:
    """Return what an operator writes and aliases: as its schema declares, and as it was measured.

    Args:
        target: what a node calls.
        release: the release of torch that it is called in.
    """
    release = nearest(release)
    name = target.removeprefix(OPS)
    if name == target:
        return Effects()
    return Effects(
        tuple(sorted(written(name, release))),
        tuple(sorted({(entry[0], entry[1]) for entry in aliases(name, release)})),
    )


class Sizes(Domain[Any]):
    """Sizes, dtypes, strides and devices of all values, computed from the inputs.

    What the program declares of its inputs is trusted, what it declares of other values is not. A value that nothing is
    known of is `UNKNOWN`, a size that is not known an unknown number.

    Args:
        program: whose symbols have ranges and examples.
    """

    def __init__(self, program: schema.ExportedProgram) -> None:
        self._symbols = Symbols(program.range_constraints, (scope.graph for scope in graphs(program)))

    def input(self, value: Value) -> Any:
        """Return what the program declares of an input; nothing of values inside."""
        if not value.is_root or value.position < 0:
            return UNKNOWN
        return self._symbols.value(value.scope.graph, value.name)

    def call(self, call: Call) -> Sequence[Any]:
        """Return what the operator's rule computes; nothing if it has none or is not certain."""
        try:
            results = infer(call.target, call.arguments)
        except (Unknown, Mismatch):
            return [UNKNOWN] * len(call.node.outputs)
        # A rule returns None for a result that it does not describe; None as an argument means that it is not given.
        return [UNKNOWN if one is None else one for one in (results if isinstance(results, tuple) else (results,))]

    def join(self, one: Any, other: Any) -> Any:
        """Return what both facts agree on."""
        if one == other:
            return one
        if isinstance(one, Tensor) and isinstance(other, Tensor) and one.rank == other.rank:
            return _joined(one, other)
        if isinstance(one, (int, Polynomial)) and isinstance(other, (int, Polynomial)):
            return unknown(-math.inf)
        return UNKNOWN

    def slice(self, fact: Any, dim: int) -> Any:
        """Return a tensor without one dimension."""
        if not isinstance(fact, Tensor) or not fact.sizes:
            return UNKNOWN
        strides = None if fact.strides is None else (*fact.strides[:dim], *fact.strides[dim + 1 :])
        return Tensor((*fact.sizes[:dim], *fact.sizes[dim + 1 :]), fact.dtype, strides, fact.device, None, fact.layout)

    def stack(self, fact: Any, operands: Sequence[Any]) -> Any:
        """Return a tensor with a leading dimension as long as that of the operands."""
        lengths = [one.sizes[0] for one in operands if isinstance(one, Tensor) and one.sizes]
        if not isinstance(fact, Tensor):
            return UNKNOWN
        return Tensor((lengths[0] if lengths else unknown(), *fact.sizes), fact.dtype, None, fact.device)


def _joined(one: Tensor, other: Tensor) -> Tensor:
    sizes = tuple([a if same(a, b) else unknown() for a, b in zip(one.sizes, other.sizes, strict=True)])
    fields = ("dtype", "strides", "device", "offset")
    return replace(one, sizes=sizes, **{key: None for key in fields if getattr(one, key) != getattr(other, key)})


class Changes(Domain[frozenset[str]]):
    """The inputs of the program that each value may share memory with.

    Attributes:
        written: those that calls write to.
    """

    def __init__(self, release: str) -> None:
        self._release = release
        self.written: set[str] = set()

    def input(self, value: Value) -> frozenset[str]:
        """Return an input of the program itself; nothing for other values."""
        return frozenset((value.name,) if value.is_root and value.position >= 0 else ())

    def call(self, call: Call) -> Sequence[Any]:
        """Return the inputs that the aliased arguments share memory with, for each result and each one of a list."""
        shared: dict[int, frozenset[str]] = {}
        for position, parameter in effects_of(call.target, self._release).aliases:
            given = call.arguments.get(parameter)
            facts = [one for one in (given if isinstance(given, tuple) else (given,)) if isinstance(one, frozenset)]
            shared[position] = shared.get(position, frozenset()).union(*facts)
        facts_of = [shared.get(position, frozenset()) for position in range(len(call.node.outputs))]
        return [
            fact if output.type == "as_tensor" else [fact] * sum(1 for _ in arguments(output))
            for fact, output in zip(facts_of, call.node.outputs, strict=True)
        ]

    def write(self, fact: frozenset[str], call: Call, parameter: str) -> frozenset[str]:
        """Remember the inputs."""
        self.written |= fact
        return fact

    def join(self, one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
        """Return the inputs of both; constants, and lists that a subgraph returns as one result, have none."""
        return frozenset().union(*(fact for fact in (one, other) if isinstance(fact, frozenset)))
