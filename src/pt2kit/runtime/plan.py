"""A graph prepared for execution: kernels found, values numbered, constants ready, the last use of each value known.

NumPy's functions may leave dimensions in another order in memory than torch's, which the elements do not show. A call
of `as_strided` or `stride` does: results of a graph with one get the order that their declared strides have
(`memory_orders`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np
from msgspec import UNSET, structs

from pt2kit import schema
from pt2kit.dataflow.domain import effects_of
from pt2kit.errors import GraphError, LimitError, UnsupportedError
from pt2kit.graph.argument_values import OperatorName, arguments, arguments_of, plain, results_of
from pt2kit.graph.traversal import HIGHER_ORDER, MAX_SUBGRAPH_DEPTH, Source, node_label, operator_name, walk
from pt2kit.messages import count_text, printable, quote
from pt2kit.operators.facts import Mismatch, Tensor, Unknown
from pt2kit.operators.higher_order import CLOSES, HIDES, OPENS
from pt2kit.operators.metas import Symbols
from pt2kit.operators.promotion import FLOAT, KEPT_BEFORE_2_13, category, with_default_float
from pt2kit.operators.schemas import is_random
from pt2kit.operators.table import infer
from pt2kit.runtime.arrays import DTYPE, cast, compute_type, converting, flattened, kind, order_of
from pt2kit.runtime.execution import Plan, Result, Slot, Step
from pt2kit.runtime.table import Kernel, binding, find_kernel, is_registered, parameter_name
from pt2kit.schema import ScalarType
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import find_operator, nearest

_BY_NAME: Final = (OPS, "torch._higher_order_ops.")
"""Beginnings of targets whose arguments have the names of a schema; those of Python functions go by their places."""
_LOOKING: Final = frozenset(
    ("as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter", "stride", "sym_stride")
)
"""Operators of ATen whose results depend on the strides of their first operand."""


def check_operators(source: Source, where: str) -> None:
    """Check that every operator of a program has a kernel.

    Raises:
        UnsupportedError: some have none; the message lists them with the numbers of their nodes.
        LimitError: subgraphs nest too deep.
    """
    missing: Counter[str] = Counter()
    for step in walk(source):
        named = (one.arg.as_operator for one in step.node.inputs if one.arg.as_operator is not UNSET)
        called = map(operator_name, (step.node.target, *named))
        missing.update(name for name in called if find_kernel(name) is None)
    if not missing:
        return
    shown = [f"{printable(name, 100)} ({count})" for name, count in missing.most_common(12)]
    more = f", and {len(missing) - 12} more" if len(missing) > 12 else ""
    raise UnsupportedError(
        f"{where}: expected operators that the runtime has, got {', '.join(shown)}{more}; "
        "add one with pt2kit.runtime.register"
    )


def prepare(graph: schema.Graph, where: str, release: str = "", name: str = "", depth: int = 0) -> Plan:
    """Prepare a graph for execution.

    Args:
        graph: the graph.
        where: its place, for messages.
        release: of torch, whose operators it calls; the newest by default.
        name: what messages call it.
        depth: 0 for the root.

    Raises:
        GraphError: it uses values that are not defined before.
        UnsupportedError: an operator without a kernel, or a custom object.
        LimitError: subgraphs or arguments nest too deep.
    """
    if depth > MAX_SUBGRAPH_DEPTH:
        raise LimitError(f"{where}: expected subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep, got more")
    return _Builder(graph, where, nearest(release), depth).build(name)


def actual_types(graph: schema.Graph) -> dict[str, ScalarType]:
    """Return the element types that values have instead of those declared: of the results of operators that older
    releases describe otherwise (`KEPT_BEFORE_2_13`), and of what is computed from these."""
    found: dict[str, ScalarType] = {}
    symbols = Symbols()

    def fact(name: str) -> Any:
        known = symbols.value(graph, name)
        return structs.replace(known, dtype=found[name]) if name in found else known

    for node in graph.nodes:
        used = (name for one in node.inputs for name in arguments(one.arg)) if found else ()
        if node.target not in KEPT_BEFORE_2_13 and found.keys().isdisjoint(used):
            continue
        with suppress(Unknown, Mismatch):
            results = flattened(infer(node.target, arguments_of(node, fact)))
            names = flattened(results_of(node, str))
            for name, result in zip(names, results, strict=False):
                meta = graph.tensor_values.get(name)
                if meta is None or not isinstance(result, Tensor) or result.dtype is None:
                    continue
                # Another type of floats is that of a program with another default dtype.
                if category(result.dtype) != category(meta.dtype):
                    found[name] = result.dtype
    return found


class _Builder:
    """One graph while it is prepared."""

    def __init__(self, graph: schema.Graph, where: str, release: str, depth: int) -> None:
        self.graph = graph
        self.where = self.place = where
        self.release = release
        self.depth = depth
        self.orders = memory_orders(graph, release)
        self.types = actual_types(graph)
        self.slots: dict[str, int] = {}
        self.count = 0
        self.used: dict[int, int] = {}
        self.batched: set[int] = set()
        self.uses_batch = False
        self.regions: list[bool] = []
        self.number = -1
        self.subgraphs: dict[str, tuple[schema.Graph, Plan]] = {}

    def build(self, name: str) -> Plan:
        """Return the prepared graph."""
        for index, argument in enumerate(self.graph.inputs):
            self.place = f"{self.where}.inputs[{index}]"
            self._define(argument)
        inputs = self.count
        steps = [self._node(number, node) for number, node in enumerate(self.graph.nodes)]
        self.number = len(steps)
        self.place = f"{self.where}.outputs"
        outputs = [self._argument(argument) for argument in self.graph.outputs]
        last: dict[int, list[int]] = {}
        for slot, number in self.used.items():
            last.setdefault(number, []).append(slot)
        kept = [replace(step, last=tuple(last.get(step.number, ()))) for step in steps]
        return Plan(self.count, inputs, self._grouped(kept), outputs, name)

    def _node(self, number: int, node: schema.Node) -> Step:
        label = node_label(node, number)
        self.uses_batch = False
        self.number, self.place = number, f"{self.where}.nodes[{number}] ({printable(label, 80)})"
        kernel, name = self.kernel(node.target), operator_name(node.target)
        by_place = not node.target.startswith(_BY_NAME)
        given: list[Any] = []
        named: dict[str, Any] = {}
        for one in node.inputs:
            value = self._argument(one.arg)
            if by_place or not one.name or (one.is_placed and name.startswith(HIGHER_ORDER)):
                given.append(value)
            else:
                named[parameter_name(one.name)] = value
        is_batched, first = self._is_batched(name, given), self.count
        results = tuple(self._define(output) for output in node.outputs)
        if is_batched:
            self.batched.update(range(first, self.count))
        if name.removeprefix("aten.").partition(".")[0] in _LOWERED:
            kernel = _lowered(kernel, results)
        if is_registered(name):
            kernel = _compared(kernel, [self.graph.tensor_values.get(one) for one in flattened(results_of(node, str))])
        if self._is_default_double(node):
            kernel = _in_double(kernel)
        return Step(kernel, given, named, results, (), label, name, number, is_batched)

    def _is_default_double(self, node: schema.Node) -> bool:
        """Return whether a node makes doubles of no floats, as programs do whose default dtype is float64."""
        metas = self.graph.tensor_values
        made, given = (
            {metas[name].dtype for one in slots for name in arguments(one) if name in metas}
            for slots in (node.outputs, (named.arg for named in node.inputs))
        )
        return not made.isdisjoint(_DOUBLES) and all(category(dtype) < FLOAT for dtype in given)

    def _is_batched(self, name: str, given: Sequence[Any]) -> bool:
        """Return whether the node depends on the entry of a batch: by its arguments, or as it draws other numbers."""
        if name == OPENS:
            self.regions.append(given[1:] == ["different"])
        elif name == CLOSES and self.regions:
            self.regions.pop()
        return name == HIDES or self.uses_batch or (any(self.regions) and is_random(name))

    def _grouped(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Move the steps of each region of vmap into the one that opens it; values are needed until the region ends."""
        opened: list[Step] = []
        levels: list[list[Step]] = [[]]
        for step in steps:
            if step.target == OPENS:
                opened.append(step)
                levels.append([])
            elif step.target == CLOSES and opened:
                inner = (*levels.pop(), step)
                last = [slot for one in (*inner, opened[-1]) for slot in one.last]
                region = replace(opened.pop(), inner=tuple(replace(one, last=()) for one in inner), last=tuple(last))
                levels[-1].append(replace(region, is_batched=any(one.is_batched for one in inner)))
            else:
                levels[-1].append(step)
        if opened:
            raise GraphError(f"{self.where}: expected regions of vmap that end, got none for {quote(opened[-1].label)}")
        return tuple(levels[0])

    def kernel(self, target: str) -> Kernel:
        """Return the kernel of an operator, which accepts the arguments of its schema if there is one."""
        name = operator_name(target)
        kernel, operator = find_kernel(name), find_operator(name, self.release)
        if kernel is None:
            raise UnsupportedError(f"{self.place}: expected an operator that the runtime has, got {quote(target)}")
        return kernel if operator is None else binding(kernel, operator, self.release)

    # Values.

    def _define(self, argument: schema.Argument) -> Any:
        """Number the values that an input or an output of a node defines: a result, a list of them, or None."""
        if argument.as_custom_obj is not UNSET:
            raise UnsupportedError(f"{self.place}: {_NO_OBJECT} ({quote(argument.as_custom_obj.class_fqn)})")
        held = plain(argument, self._new)
        if isinstance(held, tuple):
            return [one if isinstance(one, Result) else None for one in held]
        if isinstance(held, Result):
            return held
        if self.number < 0:  # an input that nothing refers to takes its place all the same
            self.count += 1
        return None

    def _new(self, name: str) -> Result:
        if name in self.slots:
            raise GraphError(f"{self.place}: expected a value that is defined once, got {quote(name)} again")
        slot = self.slots[name] = self.count
        self.count += 1
        self.used[slot] = self.number
        meta = self.graph.tensor_values.get(name)
        if meta is None:
            return Result(slot, None)
        if meta.dtype not in DTYPE:
            raise UnsupportedError(f"{self.place}: expected an element type that NumPy has, got {meta.dtype.name}")
        return Result(slot, DTYPE[self.types.get(name, meta.dtype)], self.orders.get(name))

    def _use(self, name: str) -> int:
        slot = self.slots.get(name)
        if slot is None:
            raise GraphError(f"{self.place}: expected a value that is defined before, got {quote(name)}")
        self.used[slot] = self.number
        self.uses_batch |= slot in self.batched
        return slot

    # Arguments.

    def _argument(self, argument: schema.Argument) -> Any:
        """Return an argument as kernels take it, with slots for values."""
        try:
            return self._converted(plain(argument, lambda name: Slot(self._use(name))))
        except RecursionError:
            raise LimitError(f"{self.place}: expected dicts that nest less deep, got more") from None

    def _converted(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [self._converted(one) for one in value]
        if isinstance(value, dict):
            return {key: self._converted(one) for key, one in value.items()}
        if isinstance(value, ScalarType):
            if value not in DTYPE:
                raise UnsupportedError(f"{self.place}: expected an element type that NumPy has, got {value.name}")
            return DTYPE[value]
        if isinstance(value, schema.GraphArgument):
            return self._subgraph(value)
        if isinstance(value, OperatorName):
            return self.kernel(value)
        return float(value) if isinstance(value, float) else value

    def _subgraph(self, value: schema.GraphArgument) -> Any:
        known = self.subgraphs.get(value.name)
        if known is not None and (known[0] is value.graph or known[0] == value.graph):
            return known[1]
        where = f"{self.place}: subgraph {printable(value.name, 80)}"
        built = prepare(value.graph, where, self.release, value.name, self.depth + 1)
        self.subgraphs[value.name] = value.graph, built
        return built


_LOWERED: Final = frozenset(
    (
        *("linear", "matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm", "einsum", "linalg_vecdot", "conv1d", "conv2d"),
        *("conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution"),
        *("scaled_dot_product_attention", "_native_multi_head_attention"),
    )
)
"""Operators that round their operands in regions of autocast."""
_DOUBLES: Final = frozenset((ScalarType.DOUBLE, ScalarType.COMPLEXDOUBLE))
_NO_OBJECT: Final = "expected tensors and numbers, got a custom object"


def _lowered(kernel: Kernel, results: Sequence[Any]) -> Kernel:
    """Return a kernel that rounds wider operands to the type of its result, as autocast does."""
    dtype = results[0].dtype if len(results) == 1 and isinstance(results[0], Result) else None
    if dtype is None or kind(dtype) != 2 or dtype == compute_type(dtype):
        return kernel

    run: Kernel = converting(lambda array: cast(array, dtype) if kind(array.dtype) == 2 else array)(kernel)
    return run


def _in_double(kernel: Kernel) -> Kernel:
    """Return a kernel that computes floats of other numbers in double precision."""

    def run(*args: Any, **named: Any) -> Any:
        with with_default_float(ScalarType.DOUBLE):
            return kernel(*args, **named)

    return run


def _compared(kernel: Kernel, declared: Sequence[schema.TensorMeta | None]) -> Kernel:
    """Return a kernel of a user that refuses to return other results than the program declares."""

    def run(*args: Any, **named: Any) -> Any:
        result = kernel(*args, **named)
        found = flattened(result)
        if declared and len(found) != len(declared):
            raise Mismatch(f"expected {count_text(len(declared), 'result')} of the kernel, got {len(found)}")
        for meta, value in zip(declared, found, strict=False):
            got = None if value is None else [*np.shape(value)]
            if meta is not None and (got is None or not _may_be(got, meta)):
                sizes = ["?" if one.as_int is UNSET else one.as_int for one in meta.sizes]
                raise Mismatch(f"expected a result of sizes [{', '.join(map(str, sizes))}] of the kernel, got {got}")
        return result

    return run


def _may_be(sizes: Sequence[int], meta: schema.TensorMeta) -> bool:
    """Return whether a tensor of some sizes fits a declaration, whose symbols may be any size."""
    return len(sizes) == len(meta.sizes) and all(
        one.as_int in (UNSET, size) for one, size in zip(meta.sizes, sizes, strict=True)
    )


def memory_orders(graph: schema.Graph, release: str) -> dict[str, tuple[int, ...]]:
    """Return the order of dimensions in memory, outermost first, of results that own it; {} if no call looks at it.

    Args:
        graph: the graph.
        release: of torch, whose operators it calls.
    """
    operators = {operator_name(node.target).partition(".")[2].partition(".")[0] for node in graph.nodes}
    if not operators & _LOOKING:
        return {}
    owners = [node for node in graph.nodes if not effects_of(node.target, release).aliases]
    names = {name for node in owners for output in node.outputs for name in arguments(output)}
    orders = {name: _order(graph.tensor_values[name]) for name in names & graph.tensor_values.keys()}
    return {name: order for name, order in orders.items() if order is not None}


def _order(meta: schema.TensorMeta) -> tuple[int, ...] | None:
    """Return the order that the strides of the example declare; None if the file does not have them."""
    values = [one.as_expr.hint if one.as_expr is not UNSET else one for one in meta.strides]
    strides = [one.as_int for one in values if one is not None and one.as_int is not UNSET]
    if len(strides) != len(meta.sizes):
        return None
    return order_of(strides)
