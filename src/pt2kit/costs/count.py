"""Cost of a program: FLOPs by the rows of `pt2kit.operators`, bytes by declared sizes, memory by liveness of values.

Facts of values are those that the file declares, which rule T4 of `check` compares with the result rules.

Liveness: which storages are allocated at each node, in the order of execution. A storage is freed after the last node
that uses a value in it, as the runtime and torch's interpreter do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pt2kit import schema
from pt2kit.costs.result import Cost, NodeCost
from pt2kit.dataflow.inner_tensors import in_parts
from pt2kit.graph.argument_values import arguments, arguments_of, plain, results_of
from pt2kit.graph.traversal import (
    HIGHER_ORDER,
    Scope,
    Step,
    carried,
    check_depth,
    graphs,
    node_label,
    operator_name,
    root,
)
from pt2kit.node_metadata.modules import module_of
from pt2kit.operators.aliasing import Alias, aliases, written
from pt2kit.operators.facts import Mismatch, Tensor, Unknown, row_major
from pt2kit.operators.higher_order import HIDES, SHOWS, SLICED, UNFOLLOWED, Calls, Runs
from pt2kit.operators.higher_order import HIGHER_ORDER as CONVENTIONS
from pt2kit.operators.metas import Symbols
from pt2kit.operators.symbolic import call_rule
from pt2kit.operators.table import find
from pt2kit.package.open import Package, opened
from pt2kit.schema.operators import nearest
from pt2kit.schema.versions import release_of
from pt2kit.signature.export_signature import from_schema
from pt2kit.signature.specs import InputKind
from pt2kit.symbols.polynomials import Polynomial, Size, bounds, hint, largest, product, symbol, unknown
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.view import TensorView
from pt2kit.zip.listing import FileLike
from pt2kit.zip.source import Source

_FREE_COMPARISONS: Final = 20_000
_COMPARISONS: Final = 4
"""Comparisons for each of many sizes, 0.1 ms each: in programs that export writes, one or two exceed all others."""
_STATE: Final = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class Liveness:
    """The storages of a graph while its nodes are gone through.

    Args:
        graph: the graph; its inputs belong to the caller and count as nothing.
    """

    def __init__(self, graph: schema.Graph) -> None:
        self.now: Size = 0
        uses = [*([named.arg for named in node.inputs] for node in graph.nodes), graph.outputs]
        self._last = {name: number for number, used in enumerate(uses) for one in used for name in arguments(one)}
        self._owner: dict[str, str] = {}
        self._bytes: dict[str, Size] = {}
        self._end: dict[str, int] = {}  # storage -> the last node that uses it, as far as it is known
        self._ending: dict[int, list[str]] = {}

    def define(self, number: int, made: Sequence[tuple[str, str | None, Size]]) -> None:
        """Allocate the results of a node.

        Args:
            number: of the node.
            made: for each result its name, the value whose storage it shares, and its bytes.
        """
        for name, source, size in made:
            owner = self._owner.get(source, source) if source is not None else name
            self._owner[name] = owner
            if source is None:
                self._bytes[name] = size
                self.now = self.now + size
            end = self._end[owner] = max(self._end.get(owner, 0), self._last.get(name, number))
            self._ending.setdefault(end, []).append(owner)

    def release(self, number: int) -> None:
        """Free the storages that no node after this one uses."""
        for owner in self._ending.pop(number, ()):
            if self._end[owner] == number:
                self.now = self.now - self._bytes.pop(owner, 0)


def frontier(sizes: Iterable[Size]) -> Size:
    """Return the greatest of many sizes: those that are never greater than another one are left out first.

    Among very many sizes of which none is the greatest for all symbols, only the range of the greatest is known.
    """
    kept: list[Size] = []
    comparisons = 0
    ordered = sorted(set(sizes), key=lambda one: -(hint(one) or 0))
    for size in ordered:
        if not any(_exceeds(one, size) for one in kept):
            kept.append(size)
        comparisons += len(kept)
        if comparisons > _FREE_COMPARISONS + _COMPARISONS * len(ordered):
            lows, highs = zip(*map(bounds, ordered), strict=True)
            return unknown(max(lows), max(highs), hint(kept[0]))
    return largest(*kept)


def _exceeds(one: Size, other: Size) -> bool:
    difference = one - other
    return difference >= 0 if not isinstance(difference, Polynomial) else bounds(difference)[0] >= 0


def cost(file: FileLike | Source | Package, *, model: str | None = None) -> Cost:
    """Count FLOPs, bytes and memory of one call of a program, as formulas in its symbols. Nothing is run.

    FLOPs are those of matrix products, convolutions, attention and recurrent networks, as `torch.utils.flop_counter`
    counts them; element-wise operators count as free, but the bytes that they read and write count. Of `cond` the more
    expensive branch counts; the turns of a `while_loop` are a symbol, named after its node: `while_loop_turns`.

    Args:
        file: what `pt2kit.open` accepts, or an open package, which stays open.
        model: the program; by default the only one, or "model".

    Raises:
        OSError, Pt2Error: the file cannot be read.

    Examples:
        cost = pt2kit.cost("model.pt2")
        print(cost.total.flops, cost.at(s0=64).peak)
    """
    with opened(file) as package:
        chosen = package.choose(model)
        payloads = {**package.weights(chosen), **package.constants(chosen)}
        program, _ = in_parts(package.programs[chosen], payloads)
        return cost_of_program(program, chosen, _tied(payloads))


def cost_of_program(program: schema.ExportedProgram, name: str = "", tied: Collection[str] = ()) -> Cost:
    """Count the cost of a program, as `cost`.

    Args:
        program: the program.
        name: its name.
        tied: names of tensors that are stored under another name, and count there.
    """
    scope = root(program)
    counter = _Counter(
        Symbols(program.range_constraints, (one.graph for one in graphs(program))),
        nearest(release_of(program.torch_version)),
    )
    specs = from_schema(program.graph_module).input_specs
    sizes: dict[str, Size] = {}
    weights: list[Size] = []
    inputs: list[Size] = []
    for spec, argument in zip(specs, scope.graph.inputs, strict=True):
        fact = plain(argument, lambda name: counter.symbols.value(scope.graph, name))
        if not isinstance(fact, Tensor) or (spec.kind in _STATE and spec.target in tied):
            continue
        if spec.kind is InputKind.PARAMETER and spec.target is not None:
            sizes[spec.target] = fact.numel
        (weights if spec.kind in _STATE else inputs).append(nbytes(fact))
    peak, rows = counter.graph(scope)
    return Cost(name, tuple(rows), peak, sizes, sum(weights), sum(inputs), dict(counter.uncounted))


def _tied(payloads: Mapping[str, Any]) -> set[str]:
    """Return the names of tensors that are stored under another name before."""
    first: dict[Any, str] = {}
    views = {name: one for name, one in payloads.items() if isinstance(one, TensorView) and one.storage.nbytes}
    keys = {name: (id(one.storage), one.storage_offset, tuple(one.sizes)) for name, one in views.items()}
    return {name for name, key in keys.items() if first.setdefault(key, name) != name}


@dataclass(slots=True)
class _Counter:
    """One program while it is counted.

    Args:
        symbols: facts that the program declares of its values.
        release: of torch, whose operators it calls.
        uncounted: operators whose FLOPs are not known.
        batches: graph and value -> the batches that it has in regions of vmap, by their level; its declared sizes do
            not show them.
    """

    symbols: Symbols
    release: str
    uncounted: Counter[str] = field(default_factory=Counter)
    batches: dict[tuple[int, str], dict[int, Size]] = field(default_factory=dict)

    def graph(self, scope: Scope, times: Size = 1, around: Size = 0, module: str = "") -> tuple[Size, list[NodeCost]]:
        """Count the nodes of a graph, and return the most bytes that its own values take at one time, and the rows.

        Args:
            scope: the graph.
            times: how often it runs.
            around: bytes that the graphs around it have allocated meanwhile.
            module: the module of the node that calls it, for nodes that name none.
        """
        live = Liveness(scope.graph)
        peaks: list[Size] = [0]
        rows: list[NodeCost] = []
        for number, node in enumerate(scope.graph.nodes):
            step, name = Step(scope, number, node), operator_name(node.target)
            owner = module_of(node.metadata) or module
            entries = self._entries(step, name)
            inner = self._subgraphs(step, name, times * entries, around + live.now, owner)
            facts = self._results(step)
            made = self._storages(step, name)
            live.define(number, made)
            now = live.now
            if inner is not None:
                runs, peak = inner[0], entries * inner[1]
                rows += inner[2]
                # The result is that of the last run, unless runs are stacked or carried.
                is_repeated = runs in (Runs.LOOP, Runs.MAP, Runs.SCAN)
                results = 0 if is_repeated else sum(size for _, _, size in made)
                now = live.now - results + largest(results, peak)
            elif any(isinstance(fact, Tensor) for fact in facts):
                flops = self._flops(step, name, facts)
                read, stored = self._traffic(step, name, made)
                counts = times * entries * flops, times * read, times * stored
                rows.append(NodeCost(step.path, name, owner, *counts, around + now))
            peaks.append(now)
            live.release(number)
        return frontier(peaks), rows

    def _entries(self, step: Step, name: str) -> Size:
        """Return for how many entries of batches a node computes, and keep the batches of its results."""
        graph, node = id(step.scope.graph), step.node
        operands = [value for named in node.inputs for value in arguments(named.arg)]
        found = {level: size for value in operands for level, size in self.batches.get((graph, value), {}).items()}
        matched = node.inputs if name in (HIDES, SHOWS) else []
        match [plain(named.arg, self._facts(step.scope)) for named in matched]:
            case [Tensor() as tensor, int(dim), int(level)] if name == HIDES and -tensor.rank <= dim < tensor.rank:
                found[level] = tensor.sizes[dim]
            case [_, int(level), *_] if name == SHOWS:
                found.pop(level, None)
        if found:
            self.batches.update(((graph, value), found) for output in node.outputs for value in arguments(output))
        return product(found.values())

    def _facts(self, scope: Scope) -> Callable[[str], Any]:
        """Return what finds the fact of a value of a graph."""
        return lambda name: self.symbols.value(scope.graph, name)

    def _nbytes(self, scope: Scope, name: str, fact: Tensor) -> Size:
        """Return the bytes of a value, with the batches that its declared sizes do not show."""
        return product(self.batches.get((id(scope.graph), name), {}).values()) * nbytes(fact)

    def _flops(self, step: Step, name: str, facts: Sequence[Any]) -> Size:
        if name.startswith(HIGHER_ORDER):  # `with_effects` and its like call the operator that computes
            called = (str(one.arg.value) for one in step.node.inputs if one.arg.type == "as_operator")
            name = operator_name(next(called, step.node.target))
        row = find(name)
        if row is None and not name.startswith(("_operator.", "torch.", "math.", "aten.", "prims.")):
            self.uncounted[name] += 1
        if row is None or row.flops is None:
            return 0
        given = arguments_of(step.node, self._facts(step.scope))
        try:
            count: Size = call_rule(row.flops, {**given, "result": facts[0] if len(facts) == 1 else tuple(facts)})
        except (Unknown, Mismatch):
            self.uncounted[name] += 1
            return 0
        return count

    def _results(self, step: Step) -> list[Any]:
        results = results_of(step.node, self._facts(step.scope))
        return [one for held in results for one in (held if isinstance(held, list) else [held])]

    # Memory.

    def _storages(self, step: Step, name: str) -> list[tuple[str, str | None, Size]]:
        """Return for each result: its name, the value whose storage it shares, the bytes that it allocates."""
        (scope, _, node), fact_of = step, self._facts(step.scope)
        shared = sorted(aliases(name, self.release))
        by_name = {named.name: named.arg for named in node.inputs} if shared else {}
        made: list[tuple[str, str | None, Size]] = []
        for position, output in enumerate(node.outputs):
            for value in arguments(output):
                fact = fact_of(value)
                if not isinstance(fact, Tensor):
                    continue
                views = node.inputs[:1] if node.target in (HIDES, SHOWS) else []
                source = next((one for named in views for one in arguments(named.arg)), None)
                for alias in shared:
                    is_given = alias.result == position and alias.parameter in by_name
                    held = list(arguments(by_name[alias.parameter])) if is_given else []
                    base = fact_of(held[0]) if len(held) == 1 else None
                    if isinstance(base, Tensor) and _is_alias(node, alias, base, fact):
                        source = held[0]
                made.append((value, source, 0 if source is not None else self._nbytes(scope, value, fact)))
        return made

    def _traffic(self, step: Step, name: str, made: Sequence[tuple[str, str | None, Size]]) -> tuple[Size, Size]:
        """Return the bytes that a call reads and writes; a call that returns views alone moves none."""
        changed = written(name, self.release)
        results = sum(size for _, _, size in made)
        if made and not changed and all(source is not None for _, source, _ in made):
            return 0, 0
        read: Size = 0
        seen: set[str] = set()
        row = find(name)
        for named in step.node.inputs:
            for value in arguments(named.arg):
                fact = self.symbols.value(step.scope.graph, value)
                if not isinstance(fact, Tensor) or value in seen:
                    continue
                seen.add(value)
                whole = self._nbytes(step.scope, value, fact)
                is_table = row is not None and row.looks_up == named.name
                read = read + (results if is_table else whole)
                if named.name in changed:
                    results = results + whole
        return read, results

    # Subgraphs.

    def _subgraphs(
        self, step: Step, name: str, times: Size, around: Size, module: str
    ) -> tuple[Runs, Size, list[NodeCost]] | None:
        """Count the subgraphs of a call, and return how they run, the most bytes that one of them takes, and the rows
        of their nodes; None if the call has none.
        """
        inner = [*map(check_depth, carried(step))]
        if not inner:
            return None
        calls = CONVENTIONS.get(name.removeprefix(HIGHER_ORDER + "."), UNFOLLOWED)
        count = self._count(step, calls)
        peaks, rows = zip(*(self.graph(one, times * count, around, module) for one in inner), strict=True)
        if calls.runs is Runs.BRANCH:
            rows = (max(rows, key=lambda some: sum(hint(row.flops) or 0 for row in some)),)
        return calls.runs, largest(*peaks), [row for some in rows for row in some]

    def _count(self, step: Step, calls: Calls) -> Size:
        """Return how often the subgraphs of a call run."""
        if calls.runs in (Runs.ONCE, Runs.BRANCH, Runs.OPAQUE):
            return 1
        if calls.runs is Runs.LOOP:
            return symbol(f"{node_label(step.node, step.number)}_turns", 0)
        facts = [plain(named.arg, self._facts(step.scope)) for named in step.node.inputs]
        for bound in calls.bind(facts, lambda held: held if isinstance(held, tuple) else None):
            if bound.role is SLICED and isinstance(bound.value, Tensor) and bound.value.sizes:
                return bound.value.sizes[0]
        return 1


def _is_alias(node: schema.Node, alias: Alias, base: Tensor, fact: Tensor) -> bool:
    """Return whether a result that may share memory with an operand does so, by their declared strides."""
    if alias.certainty == "always":
        return True
    train = next((named.arg.as_bool for named in node.inputs if named.name in ("train", "training")), False)
    if base.dtype is not fact.dtype or train is True:
        return False
    if base.sizes == fact.sizes:
        return base.strides == fact.strides
    # A copy is row-major: other strides are those of a view, and a row-major operand has views of all shapes.
    return fact.strides != row_major(fact.sizes) or base.strides == row_major(base.sizes)


def nbytes(fact: Tensor) -> Size:
    """Return the bytes of the elements of a tensor; those that an expanded one repeats count once."""
    item = DTYPES[fact.dtype].itemsize if fact.dtype is not None and fact.dtype in DTYPES else 1
    strides = fact.strides if fact.strides is not None else (1,) * fact.rank
    return item * product(size for size, stride in zip(fact.sizes, strides, strict=True) if stride != 0)
