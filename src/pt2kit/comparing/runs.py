"""Comparison of two programs by running them with the same inputs: the first node whose numbers differ.

Numbers differ if the distance of two arrays is beyond the tolerance of their element types.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from pt2kit import schema
from pt2kit.diffs.changes import GraphPair
from pt2kit.diffs.compute import diff
from pt2kit.errors import InputError, Pt2Error
from pt2kit.graph.traversal import node_label, operator_name
from pt2kit.messages import count_text, printable
from pt2kit.node_metadata.frames import lenient, parse_stack_trace
from pt2kit.operators.symbolic import OperatorSpec
from pt2kit.operators.table import find
from pt2kit.package.open import Package, open_package
from pt2kit.runtime.arrays import cast, kind, wide
from pt2kit.runtime.execution import Given
from pt2kit.runtime.inputs import random_inputs
from pt2kit.runtime.session import DEFAULT_RUN_LIMITS, RunLimits, Session, as_recorded, output_leaves
from pt2kit.zip.listing import FileLike

TOLERANCES: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "float16": (1e-3, 1e-5),
        "bfloat16": (1.6e-2, 1e-5),
        "float32": (1.3e-6, 1e-5),
        "float64": (1e-7, 1e-7),
        "complex64": (1.3e-6, 1e-5),
        "complex128": (1e-7, 1e-7),
        "float8_e4m3fn": (0.125, 1e-2),
        "float8_e4m3fnuz": (0.125, 1e-2),
        "float8_e5m2": (0.25, 1e-2),
        "float8_e5m2fnuz": (0.25, 1e-2),
        "float8_e8m0fnu": (1.0, 0.0),
    }
)
"""Element type -> relative and absolute tolerance: those of `torch.testing.assert_close`; one step of 8-bit floats."""


@dataclass(frozen=True, slots=True)
class Error:
    """How far two arrays, or two numbers, are apart.

    Args:
        max, mean: of the absolute differences of finite elements; infinite if sizes differ.
        cosine: of the angle between both, as vectors; 1.0 for equal ones.
        exceeds: whether an element differs beyond the tolerance of the less precise element type.
        nonfinite: how many elements of each are NaN or infinite.
    """

    max: float
    mean: float
    cosine: float
    exceeds: bool
    nonfinite: tuple[int, int] = (0, 0)


NOTHING: Final = Error(0.0, 0.0, 1.0, False)
_OTHER: Final = Error(float("inf"), float("inf"), 0.0, True)


def error_of(old: Any, new: Any, scale: float = 1.0) -> Error:
    """Return how far two values are apart.

    Args:
        old, new: arrays or numbers; other values are equal or not.
        scale: factor on both tolerances.
    """
    if not all(isinstance(one, np.ndarray | int | float | complex) for one in (old, new)):
        return NOTHING if type(old) is type(new) and (old is new or old == new) else _OTHER
    a, b = np.asarray(old), np.asarray(new)
    if a.shape != b.shape:
        return _OTHER
    relative, absolute = _tolerance(a.dtype.name, b.dtype.name)
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), b.astype(wide)
        finite = np.isfinite(x) & np.isfinite(y)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        apart = np.where(finite, np.abs(x - y), 0.0)
        beyond = finite & (apart > scale * (absolute + relative * np.abs(x))) | (~finite & ~same)
        counts = int(np.sum(~np.isfinite(x))), int(np.sum(~np.isfinite(y)))
        x, y = np.where(finite, x, 0), np.where(finite, y, 0)
        norms = float(np.linalg.norm(x)) * float(np.linalg.norm(y))
        cosine = float(np.abs(np.vdot(x, y))) / norms if norms else float(np.array_equal(x, y))
    if not apart.size:
        return NOTHING
    return Error(float(apart.max()), float(apart.mean()), min(1.0, cosine), bool(beyond.any()), counts)


def worst(errors: Iterable[Error]) -> Error:
    """Return the greatest errors among several."""
    found = [NOTHING, *errors]
    old, new = zip(*(one.nonfinite for one in found), strict=True)
    return Error(
        max(one.max for one in found),
        max(one.mean for one in found),
        min(one.cosine for one in found),
        any(one.exceeds for one in found),
        (sum(old), sum(new)),
    )


def _tolerance(*names: str) -> tuple[float, float]:
    found = [TOLERANCES.get(name, (0.0, 0.0)) for name in names]
    return max(one for one, _ in found), max(one for _, one in found)


@dataclass(frozen=True, slots=True)
class NodeError:
    """How far the results of two corresponding nodes are apart.

    Args:
        old, new: the names of the nodes.
        operator: of the new node.
        module: path of the module that the new node belongs to; "" for the root.
        source: "file:line" of the model's code; "" if the file does not have it.
        error: of all results together.
    """

    old: str
    new: str
    operator: str
    module: str
    source: str
    error: Error


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Comparison of the results of two programs for the same inputs.

    Args:
        old, new: what messages call the files.
        nodes: the nodes that correspond, in the new order.
        outputs: how far each output is apart.
        unmatched: how many old and new nodes are not compared: they correspond to none, or a vmap runs them for each
            entry.
    """

    old: str
    new: str
    nodes: tuple[NodeError, ...]
    outputs: tuple[Error, ...]
    unmatched: tuple[int, int]

    @property
    def same(self) -> bool:
        """Return whether all outputs are equal within the tolerances of their element types."""
        return not any(one.exceeds for one in self.outputs)

    @property
    def first(self) -> NodeError | None:
        """Return the first node whose results differ beyond the tolerance of their element type."""
        return next((node for node in self.nodes if node.error.exceeds), None)

    @property
    def nonfinite(self) -> tuple[NodeError | None, NodeError | None]:
        """Return the first node with NaN or infinity in the old and in the new program."""
        return tuple(next((node for node in self.nodes if node.error.nonfinite[side]), None) for side in (0, 1))  # type: ignore[return-value]

    def modules(self) -> dict[str, Error]:
        """Return the greatest errors in each module, by path, in the order of execution."""
        found: dict[str, list[Error]] = {}
        for node in self.nodes:
            found.setdefault(node.module, []).append(node.error)
        return {module: worst(errors) for module, errors in found.items()}

    def to_tree(self) -> dict[str, Any]:
        """Return the comparison as JSON has it."""
        first = self.first
        return {
            "old": self.old,
            "new": self.new,
            "same": self.same,
            "first": None if first is None else asdict(first),
            "nonfinite": [None if node is None else asdict(node) for node in self.nonfinite],
            "outputs": [asdict(one) for one in self.outputs],
            "modules": {module: asdict(error) for module, error in self.modules().items()},
            "unmatched": list(self.unmatched),
        }

    def lines(self) -> Iterator[str]:
        """Return what `pt2 diff --run` prints."""
        count = sum(one.exceeds for one in self.outputs)
        yield f"{count_text(len(self.outputs), 'output')}: " + (
            "equal" if not count else f"{count} beyond the tolerance"
        )
        for number, one in enumerate(self.outputs):
            yield f"  output {number}: {_numbers(one)}"
        if (node := self.first) is not None:
            yield f"first node that differs: {_described(node)}"
            yield f"  {_numbers(node.error)}"
        for side, node in zip((self.old, self.new), self.nonfinite, strict=True):
            if node is not None:
                yield f"first NaN or infinity in {printable(side)}: {_described(node)}"
        for module, error in self.modules().items():
            if error.exceeds:
                yield f"  module {printable(module) or '(root)'}: {_numbers(error)}"
        if any(self.unmatched):
            old, new = self.unmatched
            yield f"not compared: {old} old and {new} new nodes, which correspond to none or are in a vmap"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _numbers(error: Error) -> str:
    mark = "  beyond the tolerance" if error.exceeds else ""
    return f"max {error.max:.3g}, mean {error.mean:.3g}, cosine {error.cosine:.6g}{mark}"


def _described(node: NodeError) -> str:
    place = f", {printable(node.source, 200)}" if node.source else ""
    return (
        f"{printable(node.new, 80)} ({printable(node.operator, 80)}) in {printable(node.module) or 'the root'}{place}"
    )


def compare_runs(
    a: FileLike | Package,
    b: FileLike | Package | list[Any],
    inputs: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    leaves: Sequence[Any] | None = None,
    models: tuple[str, str] | None = None,
    seed: int = 0,
    scale: float = 1.0,
    limits: RunLimits = DEFAULT_RUN_LIMITS,
) -> RunComparison:
    """Run two programs with the same inputs, without torch, and compare the results of nodes that correspond.

    Args:
        a, b: open packages, or files. Inputs of another floating-point type are converted for `b`. A list of arrays
            instead of `b` is recorded outputs: `a` runs alone, and the outputs are compared.
        inputs, kwargs: arguments of the call; random ones within the declared ranges of `a` by default.
        leaves: the inputs without their containers, instead of `inputs` and `kwargs`.
        models: the programs to compare; by default the only ones, or those called "model".
        seed: of random inputs and random operators, the same for both.
        scale: factor on the tolerances.
        limits: what each call may cost. The results of `a` are kept until those of `b` are computed.

    Returns:
        The errors of nodes, modules and outputs. Nodes of subgraphs count as their call.

    Raises:
        OSError, Pt2Error: a file cannot be read, or a program cannot be run with these inputs.
    """
    files = [a] if isinstance(b, list) else [a, b]
    with ExitStack() as stack:
        packages = [one if isinstance(one, Package) else stack.enter_context(open_package(one)) for one in files]
        names = models or [package.choose() for package in packages]
        sessions = [
            Session(package, model=name, limits=limits, seed=seed)
            for package, name in zip(packages, names, strict=False)
        ]
        if not isinstance(b, list):
            changes = diff(packages[0], packages[1], models={names[0]: names[1]}, tensors=False, metadata=False)
    convention = sessions[0].convention
    if leaves is None and inputs is None and kwargs is None and not isinstance(b, list):
        leaves = random_inputs(convention, seed)
    elif leaves is None:
        leaves = convention.leaves(inputs or (), kwargs or {})
    if isinstance(b, list):
        found = output_leaves(sessions[0].run_leaves(copied(leaves)))
        if len(found) != len(b):
            raise InputError(f"recorded outputs: expected {len(found)}, as {packages[0].name} has, got {len(b)}")
        errors = tuple(error_of(x, y, scale) for x, y in zip(map(as_recorded, b, found), found, strict=True))
        return RunComparison("recorded outputs", packages[0].name, (), errors, (0, 0))
    pair = next(graph for graph in changes.models[names[1]].graphs if graph.path == "")
    nodes, errors = _run_both(sessions[0], sessions[1], pair, leaves, scale)
    missing = len(pair.old.nodes) - len(nodes), len(pair.new.nodes) - len(nodes)
    return RunComparison(changes.old, changes.new, nodes, errors, missing)


def _run_both(
    old: Session, new: Session, pair: GraphPair, leaves: Sequence[Any], scale: float
) -> tuple[tuple[NodeError, ...], tuple[Error, ...]]:
    """Run two programs, and return the errors of nodes that correspond, and of outputs."""
    pairs, guessed = _paired(pair)
    kept: dict[int, list[Any]] = {}
    wanted = {before for before, _ in pairs}

    def keep(number: int, values: list[Any], _: Given) -> None:
        if number in wanted:
            kept[number] = copied(values)

    partner = {after: before for before, after in pairs}
    errors: dict[int, Error] = {}

    def compare(number: int, values: list[Any], given: Given) -> None:
        if number in partner:
            # Variants of an operator return more or fewer results for gradients.
            before = kept.pop(partner[number], [])
            settle(operator_name(pair.new.nodes[number].target), given, before, values)
            error = worst(error_of(x, y, scale) for x, y in zip(before, values, strict=False))
            if number not in guessed or np.isfinite(error.max):  # else of other sizes: no pair after all
                errors[number] = error

    first = output_leaves(old.run_leaves(copied(leaves), keep))
    given = copied(leaves)
    types = [spec.dtype for spec in new.inputs[: len(given)]]
    given[: len(types)] = map(in_type, given, types)
    second = output_leaves(new.run_leaves(given, compare))
    nodes = tuple(_node(pair, partner[number], number, error) for number, error in sorted(errors.items()))
    if len(first) != len(second):
        raise Pt2Error(f"outputs: expected as many of both programs, got {len(first)} and {len(second)}")
    return nodes, tuple(error_of(x, y, scale) for x, y in zip(first, second, strict=True))


def _paired(pair: GraphPair) -> tuple[list[tuple[int, int]], set[int]]:
    """Return the nodes that correspond, and which new ones are a guess: as many between two that do, in their order."""
    known = sorted(pair.pairs, key=lambda one: one[1])
    pairs = list(known)
    edges = [(-1, -1)]
    for one in known:  # those that are in the same order in both graphs
        if one[0] > edges[-1][0]:
            edges.append(one)
    edges.append((len(pair.old.nodes), len(pair.new.nodes)))
    taken = {before for before, _ in known}, {after for _, after in known}
    for (old_start, new_start), (old_end, new_end) in pairwise(edges):
        before = [number for number in range(old_start + 1, old_end) if number not in taken[0]]
        after = [number for number in range(new_start + 1, new_end) if number not in taken[1]]
        if len(before) == len(after):
            pairs += zip(before, after, strict=True)
    return pairs, {after for _, after in pairs} - taken[1]


def settle(operator: str, given: Given, old: Sequence[Any], new: Sequence[Any]) -> None:
    """Write what the other run answered to the results of a node, if that is as right and several answers are.

    So places of equal elements and signs of vectors are no differences, neither here nor in later nodes.

    Args:
        operator: of both nodes.
        given: the arguments of the new node.
        old, new: the results of both; the last is written to.
    """
    row = find(operator)
    if row is None or not row.answers or len(old) != len(new):
        return
    pairs = list(zip(old, new, strict=True))
    if row.answers == "places":
        pairs = pairs[-1:]
    if not all(isinstance(one, np.ndarray) and one.size and one.shape == np.shape(other) for one, other in pairs):
        return
    if row.answers == "places":
        is_right = _are_equal_elements(next(iter(given.values())), given.get("dim", _default(row, "dim")), *pairs[0])
    else:
        is_right = _have_equal_products(old, new)
    if is_right:
        for one, other in pairs:
            other[...] = one


def _default(row: OperatorSpec, parameter: str) -> Any:
    return inspect.signature(row.rule).parameters[parameter].default if row.rule is not None else None


def _are_equal_elements(array: Any, axis: int | None, old: Any, new: Any) -> bool:
    """Return whether an array has the same elements in two arrays of places, along a dimension or in a row."""
    array = np.atleast_1d(array) if axis is not None else array.reshape(-1)
    if old.dtype != new.dtype or old.max() >= array.shape[axis or 0]:
        return False
    if axis is None:
        return not error_of(array[old], array[new]).exceeds
    places = [one if one.ndim == array.ndim else np.expand_dims(one, axis) for one in (old, new)]
    first, second = (np.take_along_axis(array, one, axis) for one in places)
    return not error_of(first, second).exceeds


def _have_equal_products(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Return whether two sequences of factors have the same product, up to rounding."""
    if not all(np.isfinite(one).all() for one in (*old, *new)):
        return False
    first, second = _product(*map(wide, old)), _product(*map(wide, new))
    return bool(np.abs(first - second).max() <= 1000 * np.finfo(second.dtype).eps * np.abs(second).max())


def _product(*factors: Any) -> Any:
    """Return the matrix whose factors are singular vectors and values, eigenvalues and vectors, or two matrices."""
    if len(factors) == 3:
        left, values, right = factors
        return (left[..., : values.shape[-1]] * values[..., None, :]) @ right[..., : values.shape[-1], :]
    left, right = factors
    return left @ right if left.ndim == right.ndim else (right * left[..., None, :]) @ np.linalg.pinv(right)


def copied(values: Sequence[Any]) -> list[Any]:
    """Return values that no call writes to."""
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


def in_type(value: Any, dtype: Any) -> Any:
    """Return a value in the floating-point type of another program."""
    if isinstance(value, np.ndarray) and dtype is not None and kind(dtype) == kind(value.dtype) == 2:
        return cast(value, dtype)
    return value


def _node(pair: GraphPair, before: int, after: int, error: Error) -> NodeError:
    node = pair.new.nodes[after]
    return NodeError(
        node_label(pair.old.nodes[before], before),
        node_label(node, after),
        operator_name(node.target),
        pair.new_modules[after],
        source_line(node),
        error,
    )


def source_line(node: schema.Node) -> str:
    """Return the line of the model's code that a node comes from."""
    text = node.metadata.get("stack_trace", "")
    trace = lenient(parse_stack_trace, text) if text else None
    return f"{trace.frames[-1].file}:{trace.frames[-1].line}" if trace else ""
