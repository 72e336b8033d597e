"""Forward dataflow analysis of a program: facts of every value, subgraphs included.

    facts = run(program, MyDomain())
    facts[""]["linear"]                     the fact of a value of the root graph
    facts["cond/true_graph_0"]["relu"]      and of a subgraph, by its path

A subgraph runs as its operator does (`operators.higher_order`): once instead of the call, as a branch whose
results are joined with those of the others, or again until the values that it carries no longer change. Values that
share memory, as the operators declare it or as it was measured, see each other's writes.

Source: `torch/_higher_order_ops`, 2.13, for how subgraphs are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, Final, Generic, TypeVar

from msgspec import UNSET

from pt2kit import schema
from pt2kit.dataflow.domain import Call, Changes, Domain, Effects, Memory, Value, effects_of
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph.argument_values import arguments, arguments_of, plain
from pt2kit.graph.traversal import HIGHER_ORDER, Scope, Step, carried, check_depth, join, operator_name, root, tables
from pt2kit.operators.higher_order import CARRIED, PASSED, SLICED, UNFOLLOWED, Bound, Calls, Runs
from pt2kit.operators.higher_order import HIGHER_ORDER as CONVENTIONS
from pt2kit.schema.versions import release_of

F = TypeVar("F")

MAX_TURNS: Final = 8
"""Runs of a loop's body before what it carries counts as unknown."""
MAX_CALLS: Final = 2_000_000
"""Calls of one analysis: subgraphs that call one another could multiply."""

_MISSING: Final[Any] = object()
"""A value without any facts."""


class _Ref:
    """A value of a graph while the engine runs: its fact, and the memory that it shares."""

    __slots__ = ("fact", "memory")

    def __init__(self, fact: Any, memory: Memory) -> None:
        self.fact = fact
        self.memory = memory
        memory.holders.append(self)


_Frame = dict[str, _Ref]


def run(
    source: schema.ExportedProgram | schema.GraphModule | schema.Graph, domain: Domain[F], *, release: str = ""
) -> dict[str, dict[str, F]]:
    """Analyze a program, without running anything.

    Args:
        source: the program, or a graph of it.
        domain: what is known of values.
        release: the release of torch whose operators it calls ("2.13"); by default the program's.

    Returns:
        The facts of all values by graph and name; of a subgraph that is called several times, those of the last call.

    Raises:
        GraphError: a value is used before it is defined; rule G1 of `check` lists all such places.
        LimitError: subgraphs nest too deep (G11), or call one another too often.

    Cost: linear in the nodes, times up to `MAX_TURNS` for nodes in loops.
    """
    if not release and isinstance(source, schema.ExportedProgram):
        release = release_of(source.torch_version)
    engine = _Engine(domain, release)
    scope = root(source)
    frame = engine.frame(scope, [])
    engine.graph(scope, frame)
    return engine.facts


def changed_inputs(program: schema.ExportedProgram, release: str = "") -> set[str]:
    """Return the inputs of a program that a call writes to, directly or through a view.

    Args:
        program: the program.
        release: as in `run`.

    Raises:
        GraphError, LimitError: as in `run`.
    """
    changes = Changes(release or release_of(program.torch_version))
    run(program, changes, release=release)
    return changes.written


class _Engine(Generic[F]):
    """One analysis: the facts so far, and how often what was called."""

    def __init__(self, domain: Domain[F], release: str) -> None:
        self.domain = domain
        self.release = release
        self.facts: dict[str, dict[str, F]] = {}
        self._calls = 0

    def frame(self, scope: Scope, bound: Sequence[Any]) -> _Frame:
        """Return the inputs of a graph: what the caller bound to them, else what the domain knows of them."""
        frame: _Frame = {}
        for position, argument in enumerate(scope.graph.inputs):
            given = bound[position] if position < len(bound) else _MISSING
            for name in arguments(argument):
                if isinstance(given, _Ref):
                    frame[name] = given
                    continue
                fact = self._asked(scope, name, position) if given is _MISSING else given
                frame[name] = _Ref(fact, Memory())
        return frame

    def _asked(self, scope: Scope, name: str, position: int = -1) -> F:
        """Return what the domain knows of a value that nothing else tells: an input, or a result left open."""
        found = ((kind, table[name]) for kind, table in tables(scope.graph).items() if name in table)
        kind, meta = next(found, (None, None))
        return self.domain.input(Value(name, kind, meta, scope, position))

    def graph(self, scope: Scope, frame: _Frame) -> list[Any]:
        """Analyze a graph; return what its outputs are: references of values, or constants."""
        for number, node in enumerate(scope.graph.nodes):
            self._calls += 1
            if self._calls > MAX_CALLS:
                raise LimitError(f"{scope.where}: expected at most {MAX_CALLS:,} calls to analyze, got more")
            step = Step(scope, number, node)
            namespace, _, name = operator_name(node.target).partition(".")
            if namespace == HIGHER_ORDER:
                self._higher_order(step, frame, name)
            else:
                self._call(step, frame, effects_of(node.target, self.release))
        self.facts[scope.path] = {name: ref.fact for name, ref in frame.items()}
        return [self._operand(frame, output) for output in scope.graph.outputs]

    def _call(self, step: Step, frame: _Frame, effects: Effects) -> None:
        """Analyze a call without subgraphs, or whose subgraphs are not followed."""
        scope, number, node = step

        def lookup(name: str) -> Any:
            if (ref := frame.get(name)) is None:
                raise GraphError(f"{step.where}: expected a value that is defined before, got {name[:80]!a}", rule="G1")
            return ref.fact

        call = Call(node.target, arguments_of(node, lookup), node, scope, number)
        results = list(self.domain.call(call))
        for named in node.inputs:
            for name in arguments(named.arg) if named.name in effects.written else ():
                for holder in frame[name].memory.root().holders:
                    holder.fact = self.domain.write(holder.fact, call, named.name)
        self._define(step, frame, results, effects)

    def _define(self, step: Step, frame: _Frame, results: Sequence[Any], effects: Effects) -> None:
        """Define the results of a call; those that alias an argument share its memory."""
        by_name = {named.name: named.arg for named in step.node.inputs} if effects.aliases else {}
        for position, output in enumerate(step.node.outputs):
            held = results[position] if position < len(results) else _MISSING
            shared = [by_name[name] for index, name in effects.aliases if index == position and name in by_name]
            facts = held if isinstance(held, (list, tuple)) and isinstance(output.value, list) else [held]
            self._name(step.scope, frame, list(arguments(output)), facts, self._shared(frame, shared))

    def _name(
        self, scope: Scope, frame: _Frame, names: Sequence[str], held: Sequence[Any], memory: Memory | None = None
    ) -> None:
        """Give names to references or facts, in some memory or each in its own; others are asked of the domain."""
        for name, one in zip_longest(names, held[: len(names)], fillvalue=_MISSING):
            fact = _fact(one)
            if fact is one or fact is _MISSING:
                fact = self._asked(scope, name) if fact is _MISSING else fact
                one = _Ref(fact, Memory() if memory is None else memory)
            frame[name] = one

    def _shared(self, frame: _Frame, aliased: Iterable[schema.Argument]) -> Memory | None:
        """Return the memory of some arguments, made one; None if there are none."""
        memory: Memory | None = None
        for argument in aliased:
            for name in arguments(argument):
                if (ref := frame.get(name)) is not None:
                    memory = ref.memory.root() if memory is None else memory.joined(ref.memory)
        return memory

    def _operand(self, frame: _Frame, argument: schema.Argument) -> Any:
        """Return an argument as a subgraph gets it: the reference of a value, a list of them, or a constant."""
        return plain(argument, lambda name: frame.get(name, _MISSING))

    # Subgraphs.

    def _higher_order(self, step: Step, frame: _Frame, name: str) -> None:
        inputs = step.node.inputs
        calls = CONVENTIONS.get(name, UNFOLLOWED)
        positional = [named.arg for named in inputs if named.is_placed]
        graphs = None if calls.runs is Runs.OPAQUE else self._subgraphs(step, calls, positional)
        if graphs is None:  # Whatever it gets may be written.
            self._call(step, frame, Effects(tuple([named.name for named in inputs])))
            return
        operands = [self._operand(frame, argument) for argument in positional]
        bound = calls.bind(operands, lambda held: held if isinstance(held, tuple) else None)
        runner = {Runs.ONCE: self._once, Runs.BRANCH: self._branches}.get(calls.runs, self._loop)
        results = runner(calls, graphs, bound)
        self._define_refs(step, frame, results if calls.results is not None else [])

    def _subgraphs(self, step: Step, calls: Calls, positional: Sequence[schema.Argument]) -> list[Scope] | None:
        """Return the subgraphs of a call; None if it does not have those of its convention."""
        if any(place >= len(positional) or positional[place].as_graph is UNSET for place in calls.graphs):
            return None
        inner = {(scope.path, id(scope.graph)): scope for scope in carried(step)}
        passed = [positional[place].value for place in calls.graphs]
        return [check_depth(inner[join(step.path, one.name), id(one.graph)]) for one in passed]

    def _once(self, calls: Calls, graphs: Sequence[Scope], bound: Sequence[Bound]) -> list[Any]:
        return self.graph(graphs[0], self.frame(graphs[0], [one.value for one in bound]))

    def _branches(self, calls: Calls, graphs: Sequence[Scope], bound: Sequence[Bound]) -> list[Any]:
        """Analyze each branch on what was known before, and join the results and the writes."""
        results: list[list[Any]] = []
        outer = _reachable(bound)
        before = [ref.fact for ref in outer]
        after: list[list[Any]] = []
        for scope in graphs:
            for ref, fact in zip(outer, before, strict=True):
                ref.fact = fact
            results.append(self.graph(scope, self.frame(scope, [one.value for one in bound])))
            after.append([ref.fact for ref in outer])
        for index, ref in enumerate(outer):
            ref.fact = self._joined([facts[index] for facts in after])
        columns = zip(*results, strict=False)
        return [_Ref(self._joined([_fact(held) for held in column]), Memory()) for column in columns]

    def _loop(self, calls: Calls, graphs: Sequence[Scope], bound: Sequence[Bound]) -> list[Any]:
        """Analyze the body of a loop until the facts of what it carries no longer change; without such, once."""
        sliced = [_fact(one.value) for one in bound if one.role is SLICED]
        current = [_fact(one.value) for one in bound if one.role is CARRIED]
        count = len(current)
        results: list[Any] = []
        for turn in range(MAX_TURNS + 1):
            parts = {
                SLICED: (self.domain.slice(fact, 0) for fact in sliced),
                CARRIED: iter([_MISSING] * count if turn == MAX_TURNS else current),
                PASSED: (_fact(one.value) for one in bound if one.role is PASSED),
            }
            inputs = [next(parts[one.role]) for one in bound]
            for scope in graphs:
                results = self.graph(scope, self.frame(scope, inputs))
            following = [_fact(result) for result in results[:count]]
            joined = [self._joined([one, other]) for one, other in zip(current, following, strict=False)]
            if turn == MAX_TURNS or joined == current or len(joined) < count:  # fewer results than are carried
                break
            current = joined
        final = [_Ref(fact, Memory()) for fact in current] if len(results) >= count else []
        return [*final, *self._stacked(calls, results[count:], sliced)]

    def _stacked(self, calls: Calls, results: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        if not calls.is_stacked:
            return list(results)
        return [_Ref(self.domain.stack(_fact(result), operands), Memory()) for result in results]

    def _joined(self, facts: Sequence[Any]) -> Any:
        joined = facts[0]
        for fact in facts[1:]:
            joined = _MISSING if _MISSING in (joined, fact) else self.domain.join(joined, fact)
        return joined

    def _define_refs(self, step: Step, frame: _Frame, results: Sequence[Any]) -> None:
        """Define the results of a call with subgraphs: values keep the memory that they have inside."""
        names = [name for output in step.node.outputs for name in arguments(output)]
        flat = [entry for held in results for entry in (held if isinstance(held, tuple) else [held])]
        entries = [entry for entry in flat if entry is not None] if len(flat) != len(names) else flat
        self._name(step.scope, frame, names, entries)


def _fact(held: Any) -> Any:
    return held.fact if isinstance(held, _Ref) else held


def _reachable(bound: Sequence[Bound]) -> list[_Ref]:
    """Return the values that share memory with some operands."""
    reached: dict[int, _Ref] = {}
    for one in bound:
        if isinstance(one.value, _Ref):
            for holder in one.value.memory.root().holders:
                reached[id(holder)] = holder
    return list(reached.values())
