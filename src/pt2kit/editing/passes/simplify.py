"""Simplification passes: remove dead nodes, common subexpressions, known sizes, identities, assertions, metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from pt2kit import schema
from pt2kit.canonical.form import writes
from pt2kit.checks.calls import named_operators
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.editor import Editor
from pt2kit.editing.graphs import Graph, Node, Slot, Value
from pt2kit.editing.interface_edits import put_number
from pt2kit.editing.metas import infer_meta
from pt2kit.errors import attempt
from pt2kit.graph.argument_values import renamed
from pt2kit.graph.traversal import operator_name, operator_namespace
from pt2kit.operators.aliasing import aliases
from pt2kit.operators.higher_order import PREDISPATCH
from pt2kit.operators.rows import texts
from pt2kit.operators.schemas import is_random
from pt2kit.operators.table import find
from pt2kit.schema.names import ATEN_OPS
from pt2kit.schema.operators import find_operator, nearest
from pt2kit.tensors.dtypes import DTYPES


def has_effect(node: Node) -> bool:
    """Return whether a node may do more than compute its results: write, draw random numbers, assert, switch a mode."""
    name = operator_name(node.target)
    is_function = name.startswith(("torch.", "export."))
    is_region = name.startswith(PREDISPATCH) or (is_function and find(name) is None)  # opens, closes or marks one
    called = named_operators(node.written()) if name.startswith("higher_order.") else (node.target,)
    if writes(node.origin) or not node.outputs or is_region or any(is_random(operator_name(one)) for one in called):
        return True
    return any(has_effect(inner) for graph in node.subgraphs.values() for inner in graph.nodes)


def is_shared(value: Value) -> bool:
    """Return whether the caller gets a value, or may get another one in the same memory: a view of it."""
    seen = {value}
    stack = [value]
    while stack:
        one = stack.pop()
        if one.is_output:
            return True
        for user in one.users:
            if user.subgraphs or _may_alias(user):
                stack += [result for result in user.outputs if result not in seen]
                seen.update(user.outputs)
    return False


def _may_alias(node: Node) -> bool:
    """Return whether a result may share memory with an argument, by schema or measured, or as nothing is known."""
    name, release = operator_name(node.target), nearest("")
    return find_operator(name, release) is None or bool(aliases(name, release))


def dce(editor: Editor) -> int:
    """Erase nodes whose results nobody uses and that have no effect, subgraphs included."""
    count = 0
    for graph in list(editor.graph.walk()):
        for node in reversed(list(graph.nodes)):
            if not any(value.is_used for value in node.outputs) and not has_effect(node):
                node.erase()
                count += 1
    return count


def drop_assertions(editor: Editor) -> int:
    """Erase what only asserts or constrains, guards among it, and then what was computed for it alone."""
    count = len(editor.guards)
    editor.guards.clear()
    for node in list(editor.nodes):
        if _only_asserts(node) and not any(value.is_used for value in node.outputs):
            node.erase()
            count += 1
    return count + (dce(editor) if count else 0)


def _only_asserts(node: Node) -> bool:
    """Return whether a node calls an operator that has no results, writes nothing and does not print."""
    name = operator_name(node.target)
    operator = find_operator(name, nearest(""))
    is_without_effect = operator is not None and not operator.results and not node.writes
    return is_without_effect and find(name) is not None and name != "aten._print.default"


def cse(editor: Editor) -> int:
    """Use the results of the first of several nodes that call the same operator with the same arguments.

    Nodes that write, draw random numbers, or see or show memory that something writes are left alone.
    """
    graphs = [graph for graph in editor.graph.walk() if not any(node.writes for node in graph.nodes)]
    return sum(map(_merge_equal, graphs))  # Two tensors that are equal now may not be when one was written to.


def _merge_equal(graph: Graph) -> int:
    known: dict[Any, Any] = {}
    count = 0
    for node in list(graph.nodes):
        if node.subgraphs or operator_namespace(node.target) not in ("aten", "_operator", "torch") or has_effect(node):
            continue
        key = (node.target, tuple((slot.name, _key(slot)) for slot in node.slots))
        first = known.setdefault(key, node)
        if first is node or [_result(v) for v in first.outputs] != [_result(v) for v in node.outputs]:
            continue
        if any(map(is_shared, node.outputs)):
            continue  # outputs have memory of their own, which a caller may write to
        for old, new in zip(node.outputs, first.outputs, strict=True):
            graph.replace_uses(old, new)
        node.erase()
        count += 1
    return count


def _result(value: Value) -> Any:
    return value.kind, repr(value.meta)


def _key(slot: Slot) -> Any:
    """Return a hashable key of an argument, with values by identity."""
    text = repr(renamed(slot.template, lambda _: "v", iter(())))
    return tuple(id(value) for value in slot.values), slot.template.type, text


def fold_shapes(editor: Editor) -> int:
    """Replace known sizes by numbers, and erase the nodes that computed them.

    Sizes become known when a symbol is specialized or an input frozen; metas of what is computed from them follow.
    """
    count = 0
    for node in list(editor.nodes):
        values = node.outputs
        if len(values) != 1 or values[0].kind != "sym_int" or node.writes:
            continue
        number = _known(node)
        if number is None or values[0].is_output or any(user.subgraphs for user in values[0].users):
            continue  # a subgraph takes a value, and no number
        put_number(editor, values[0], number, "fold_shapes")
        node.erase()
        count += 1
    return count


def _known(node: Node) -> int | None:
    if (number := arithmetic.known(node.output.meta)) is not None:
        return number
    meta = attempt(infer_meta, node.target, node.plain_arguments, None, "fold_shapes")
    return arithmetic.known(meta) if isinstance(meta, schema.SymInt) else None


def identities(editor: Editor) -> int:
    """Replace the results of identity operators by their operands."""
    count = 0
    for graph in list(editor.graph.walk()):
        writes = any(node.writes for node in graph.nodes)
        for node in list(graph.nodes):
            source = _same_as(node)
            if source is None or (node.output.is_output and source.producer is None):
                continue
            if not _is_view(operator_name(node.target)) and (writes or is_shared(node.output)):
                continue  # what is written to one, here or by the caller, must not be seen through the other
            graph.replace_uses(node.output, source)
            node.erase()
            count += 1
    return count


def strip_metadata(editor: Editor) -> int:
    """Remove the source metadata of nodes: stack traces, module stacks, functions."""
    count = 0
    for node in editor.nodes:
        count += bool(node.metadata)
        node.metadata = {}
    return count


def _same_as(node: Node) -> Value | None:
    """Return the value that a node returns unchanged; None if it does more."""
    name = node.target.removeprefix(ATEN_OPS)
    if operator_namespace(node.target) != "aten" or len(node.outputs) != 1:
        return None
    first = node.slots[0].plain if node.slots else None
    if not isinstance(first, Value) or first.kind != "tensor" or not isinstance(first.meta, schema.TensorMeta):
        return None
    old, new = first.meta, node.output.meta
    if not isinstance(new, schema.TensorMeta):
        return None
    if (old.dtype, old.device, old.layout) != (new.dtype, new.device, new.layout):
        return None
    is_same = arithmetic.all_same(old.sizes, new.sizes) and arithmetic.all_same(old.strides, new.strides)
    numbers = {slot.name: slot.template.value for slot in node.slots[1:] if not slot.values}
    if _is_view(f"aten.{name}"):
        return first if is_same and arithmetic.same(old.storage_offset, new.storage_offset) else None
    if name in ("add.Tensor", "sub.Tensor", "add.Scalar", "sub.Scalar"):
        return first if is_same and _adds_nothing(name, numbers, old.dtype) else None
    if name in ("mul.Tensor", "div.Tensor", "mul.Scalar", "div.Scalar", "pow.Tensor_Scalar"):
        other = numbers.get("exponent" if name.startswith("pow") else "other", UNSET)
        return first if is_same and other == 1 and "rounding_mode" not in numbers else None
    if name == "dropout.default":
        return first if is_same and (numbers.get("train") is False or numbers.get("p") == 0) else None
    return None


def _is_view(name: str) -> bool:
    """Return whether an operator returns elements of its operand where they are, or where sizes are equal a copy."""
    operator, row = find_operator(name, nearest("")), texts().get(name)
    is_view = operator is not None and operator.is_view and row is not None and row.family in ("views", "indexing")
    elements = row.value("elements") if row is not None else ""
    return elements == "kept" or (is_view and elements != "changed")


def _adds_nothing(name: str, numbers: Mapping[str, Any], dtype: schema.ScalarType) -> bool:
    """Return whether adding or subtracting a number changes no bit: -0.0 + 0 is 0.0, but -0.0 - 0 and -0.0 + -0.0 are
    -0.0."""
    other = numbers.get("other")
    if other is False or other != 0 or numbers.get("alpha", 1) != 1:
        return False
    if not DTYPES[dtype].has_gradient:
        return True
    return (math.copysign(1.0, other) < 0) is name.startswith("add")
