"""Counts of a program: one row per node, sums per module and operator, values at given sizes, roofline time.

A count is a `Size`: a number, or a polynomial of the program's symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from pt2kit.errors import InputError
from pt2kit.messages import printable
from pt2kit.symbols.evaluation import evaluate
from pt2kit.symbols.expr import free_symbols
from pt2kit.symbols.plain import to_str
from pt2kit.symbols.polynomials import Polynomial, Size, Undecided, hint, text, to_expression

_COUNTS: Final = ("flops", "read", "written")


@dataclass(frozen=True, slots=True)
class Sum:
    """Counts of several nodes.

    Args:
        nodes: how many.
        flops: floating-point operations; a multiplication and an addition are two.
        read, written: bytes of the operands and results; views move none.
        parameters: elements of the parameters that a module holds itself or in modules below.
    """

    nodes: int = 0
    flops: Size = 0
    read: Size = 0
    written: Size = 0
    parameters: Size = 0


@dataclass(frozen=True, slots=True)
class NodeCost:
    """Counts of one node; those of nodes in subgraphs are multiplied by the number of runs.

    Args:
        path: names that lead to the node: "linear", "cond/true_graph_0/linear".
        operator: "aten.linear.default".
        module: the module that it was traced in, "" for the root.
        flops, read, written: as in `Sum`.
        live: bytes of activations that are allocated while it runs.
    """

    path: str
    operator: str
    module: str
    flops: Size
    read: Size
    written: Size
    live: Size


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one call of a program, computed without running it.

    Args:
        model: the name of the program.
        nodes: counts of each node that computes something, in the order of execution.
        peak: the most bytes of activations that are allocated at one time: results of nodes, outputs included, but not
            inputs and weights.
        parameters: elements of all parameters, by name.
        weights: bytes of parameters, buffers and constants.
        inputs: bytes of the inputs that the caller passes.
        uncounted: operator -> how many of its nodes have FLOPs that are not known: custom operators without a row in
            `pt2kit.operators`.
    """

    model: str
    nodes: tuple[NodeCost, ...]
    peak: Size
    parameters: Mapping[str, Size]
    weights: Size
    inputs: Size
    uncounted: Mapping[str, int]

    @property
    def total(self) -> Sum:
        """Return the sums over all nodes and parameters."""
        return replace(_sum(self.nodes), parameters=sum(self.parameters.values()))

    @property
    def symbols(self) -> dict[str, int | None]:
        """Return the symbols of the formulas -> their values when the program was exported, None if the file has
        none."""
        found: dict[str, int | None] = {}
        for size in self._sizes():
            for factors in size.terms if isinstance(size, Polynomial) else ():
                for atom in factors:
                    for symbol in free_symbols(atom.expr) if atom.expr is not None else ():
                        is_plain = atom.key == symbol.name
                        found[symbol.name] = (atom.hint if is_plain else None) or found.get(symbol.name)
        return dict(sorted(found.items()))

    @property
    def peak_node(self) -> NodeCost | None:
        """Return the first node that runs while the most memory is allocated, at the sizes of the example."""
        return max(self.nodes, key=lambda node: hint(node.live) or 0, default=None)

    def at(self, values: Mapping[str, int] | None = None, **named: int) -> Cost:
        """Return the counts as numbers.

        Args:
            values, named: symbol -> its value; symbols that are not given have their values of the export.

        Raises:
            InputError: a symbol that the formulas do not have, one without a value, or a value below 0.
            ExpressionError: a formula has no value for these numbers, such as a division by 0.
        """
        given = {**(values or {}), **named}
        known = self.symbols
        for name in given:
            if name not in known:
                expected = ", ".join(known) or "none, as the program has fixed sizes"
                raise InputError(f"symbols: expected one of {expected}, got {printable(name, 80)}")
            if given[name] < 0:
                raise InputError(f"symbols: expected {printable(name, 80)} of at least 0, got {given[name]}")
        filled = {name: given.get(name, value) for name, value in known.items()}
        if missing := [name for name, value in filled.items() if value is None]:
            raise InputError(f"symbols: expected a value for {missing[0]}, which the file does not have; pass one")
        compute = _evaluator({name: value for name, value in filled.items() if value is not None})
        nodes = tuple(replace(node, **_counts(node, compute)) for node in self.nodes)
        parameters = {name: compute(size) for name, size in self.parameters.items()}
        # A peak among too many sizes is no formula; those of the nodes are.
        peak = max((node.live for node in nodes), default=0) if plain(self.peak) == "?" else compute(self.peak)
        weights, inputs = compute(self.weights), compute(self.inputs)
        return replace(self, nodes=nodes, parameters=parameters, peak=peak, weights=weights, inputs=inputs)

    def by_module(self, depth: int | None = None, *, folded: bool = False) -> dict[str, Sum]:
        """Return the counts of each module and those below it, in the order of execution; "" is the root.

        Args:
            depth: levels below the root to list; None for all.
            folded: add up modules that differ in a number alone, as "layers.*.attention".
        """
        rows: dict[str, list[NodeCost]] = {"": list(self.nodes)}
        for node in self.nodes:
            for prefix in _prefixes(node.module, depth, folded):
                rows.setdefault(prefix, []).append(node)
        held: dict[str, list[Size]] = {}
        for name, size in self.parameters.items():
            for prefix in ("", *_prefixes(name.rpartition(".")[0], depth, folded)):
                held.setdefault(prefix, []).append(size)
        return {
            name: replace(_sum(nodes), parameters=sum(held.get(name, ())))
            for name, nodes in sorted(rows.items(), key=lambda row: row[0] != "")
        }

    def by_operator(self) -> dict[str, Sum]:
        """Return the counts of each operator, the one with the most FLOPs first."""
        rows: dict[str, list[NodeCost]] = {}
        for node in self.nodes:
            rows.setdefault(node.operator, []).append(node)
        sums = {name: _sum(nodes) for name, nodes in rows.items()}
        return dict(sorted(sums.items(), key=lambda row: (-(hint(row[1].flops) or 0), -row[1].nodes)))

    def seconds(self, peak_flops: float, bandwidth: float) -> float:
        """Return the roofline time: each node takes as long as its arithmetic or its memory traffic, if that is longer.

        Args:
            peak_flops: FLOPs that the device computes per second.
            bandwidth: bytes that it reads or writes per second.

        Raises:
            InputError: as `at`, whose values of the export count for symbols.
        """
        return sum(
            max(int(node.flops) / peak_flops, (int(node.read) + int(node.written)) / bandwidth)
            for node in self.at().nodes
        )

    def to_tree(self) -> dict[str, Any]:
        """Return the counts as JSON has them: numbers, and formulas as texts."""
        total = self.total
        sums = {"flops": total.flops, "read": total.read, "written": total.written, "peak": self.peak}
        sums |= {"parameters": total.parameters, "weights": self.weights, "inputs": self.inputs}
        return {
            "model": self.model,
            "symbols": self.symbols,
            "total": {key: plain(size) for key, size in sums.items()},
            "peak_node": None if self.peak_node is None else self.peak_node.path,
            "modules": {name: _tree(one) for name, one in self.by_module().items()},
            "operators": {name: _tree(one) for name, one in self.by_operator().items()},
            "nodes": [
                {"path": node.path, "operator": node.operator, "module": node.module} | _counts(node, plain)
                for node in self.nodes
            ],
            "uncounted": dict(self.uncounted),
        }

    def _sizes(self) -> Iterable[Size]:
        for node in self.nodes:
            yield from (node.flops, node.read, node.written)
        yield from (self.peak, self.weights, self.inputs, *self.parameters.values())


def plain(size: Size) -> int | str:
    """Return a count as a number, or its formula as a text; "?" if it depends on an unknown number."""
    if isinstance(size, int):
        return size
    try:
        return to_str(to_expression(size))
    except Undecided:
        return "?"


def _sum(nodes: Iterable[NodeCost]) -> Sum:
    nodes = list(nodes)
    return Sum(len(nodes), *(sum(getattr(node, key) for node in nodes) for key in _COUNTS))


def _counts(node: NodeCost, change: Callable[[Size], Any]) -> dict[str, Any]:
    """Return the counts of a node by name, each changed."""
    return {key: change(getattr(node, key)) for key in (*_COUNTS, "live")}


def _tree(one: Sum) -> dict[str, Any]:
    return {"nodes": one.nodes} | {key: plain(getattr(one, key)) for key in (*_COUNTS, "parameters")}


def _prefixes(module: str, depth: int | None, folded: bool) -> list[str]:
    """Return the modules around a module and itself, the outermost first: "a", "a.0", folded "a.*"."""
    names = module.split(".") if module else []
    if folded:
        names = ["*" if name.isdecimal() else name for name in names]
    return [".".join(names[: count + 1]) for count in range(len(names[:depth]))]


def _evaluator(values: Mapping[str, int]) -> Callable[[Size], int]:
    @cache
    def compute(size: Size) -> int:
        if isinstance(size, int):
            return size
        try:
            return int(evaluate(to_expression(size), values, where="cost"))
        except Undecided as error:
            raise InputError(f"cost: expected sizes that the file declares, got an unknown one ({error})") from None
        except OverflowError:
            raise InputError(f"cost: expected finite sizes, got {text(size)}") from None

    return compute
