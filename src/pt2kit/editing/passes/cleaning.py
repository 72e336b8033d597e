"""What does nothing is taken out: nodes nobody uses, operators that give back what they got, assertions, metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.schemas import operators
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.arguments import to_plain
from pt2kit.editing.editor import Editor
from pt2kit.editing.nodes import Node
from pt2kit.editing.values import Value
from pt2kit.graph.view import operator_namespace
from pt2kit.tensors.dtypes import DTYPES

_ASSERTIONS: Final = frozenset(
    f"torch.ops.aten.{name}"
    for name in (
        *("_assert_async.default", "_assert_async.msg", "_assert_scalar.default", "_assert_tensor_metadata.default"),
        *("sym_constrain_range.default", "sym_constrain_range_for_size.default"),
    )
)
_STATEFUL: Final = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "_assert", "sym_constrain")
"""Parts of names of operators that act without a result: draw from a generator, or stop a program."""

_ACTS: Final = ("_functorch", "_set_grad_enabled", "_autocast", "export")


def has_effect(node: Node) -> bool:
    """Whether a node may do more than compute its results: write, draw random numbers, assert, switch a mode."""
    name = node.target.removeprefix("torch.ops.")
    if node.writes or any(part in name for part in _STATEFUL) or any(part in name for part in _ACTS):
        return True
    if not node.outputs:
        return True
    return any(has_effect(inner) for graph in node.subgraphs.values() for inner in graph.nodes)


def is_shared(value: Value) -> bool:
    """Whether the caller gets a value, or may get another that lies in the same memory: a view of it."""
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
    """Whether a result may lie in the memory of an argument: the operator's signature says so, or is not known."""
    text = operators("").schemas.get(node.target.removeprefix("torch.ops."))
    return text is None or "(a" in text.rpartition("->")[2]


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
    for graph in list(editor.graph.walk()):
        for node in list(graph.nodes):
            if node.target in _ASSERTIONS and not any(value.is_used for value in node.outputs):
                node.erase()
                count += 1
    return count + (dce(editor) if count else 0)


def identities(editor: Editor) -> int:
    """Use what an operator got in the place of what it gives, where both are the same."""
    count = 0
    for graph in list(editor.graph.walk()):
        writes = any(node.writes for node in graph.nodes)
        for node in list(graph.nodes):
            source = _same_as(node)
            if source is None or (node.output.is_output and source.producer is None):
                continue
            is_copy = node.target.removeprefix("torch.ops.aten.") not in _VIEWS
            if is_copy and (writes or is_shared(node.output)):
                continue  # what is written to one, here or by the caller, must not be seen through the other
            graph.replace_uses(node.output, source)
            node.erase()
            count += 1
    return count


def strip_metadata(editor: Editor) -> int:
    """Leave out what nodes say of where they come from: stack traces, module stacks, functions."""
    count = 0
    for node in editor.nodes:
        count += bool(node.metadata)
        node.metadata = {}
    return count


def _same_as(node: Node) -> Value | None:
    """The value that a node gives back unchanged; None where it does more."""
    name = node.target.removeprefix("torch.ops.aten.")
    if operator_namespace(node.target) != "aten" or len(node.outputs) != 1:
        return None
    first = to_plain(node.slots[0]) if node.slots else None
    if not isinstance(first, Value) or first.kind != "tensor" or not isinstance(first.meta, schema.TensorMeta):
        return None
    old, new = first.meta, node.output.meta
    if not isinstance(new, schema.TensorMeta) or (old.dtype, old.device, old.layout) != (
        new.dtype, new.device, new.layout
    ):  # fmt: skip
        return None
    is_same = arithmetic.all_same(old.sizes, new.sizes) and arithmetic.all_same(old.strides, new.strides)
    numbers = {slot.name: slot.template.value for slot in node.slots[1:] if not slot.values}
    if name in _VIEWS:
        return first if is_same and arithmetic.same(old.storage_offset, new.storage_offset) else None
    if name in ("add.Tensor", "sub.Tensor", "add.Scalar", "sub.Scalar"):
        return first if is_same and _adds_nothing(name, numbers, old.dtype) else None
    if name in ("mul.Tensor", "div.Tensor", "mul.Scalar", "div.Scalar", "pow.Tensor_Scalar"):
        other = numbers.get("exponent" if name.startswith("pow") else "other", UNSET)
        return first if is_same and other == 1 and "rounding_mode" not in numbers else None
    if name == "dropout.default":
        return first if numbers.get("train") is False or numbers.get("p") == 0 else None
    return None


def _adds_nothing(name: str, numbers: Mapping[str, Any], dtype: schema.ScalarType) -> bool:
    """Whether adding or taking away a number changes no bit: -0.0 + 0 is 0.0, but -0.0 - 0 and -0.0 + -0.0 are -0.0."""
    other = numbers.get("other")
    if other is False or other != 0 or numbers.get("alpha", 1) != 1:
        return False
    if not DTYPES[dtype].has_gradient:
        return True
    return (math.copysign(1.0, other) < 0) is name.startswith("add")


_VIEWS: Final = frozenset(
    (
        *(
            "alias.default",
            "view.default",
            "reshape.default",
            "expand.default",
            "permute.default",
            "contiguous.default",
        ),
        *("slice.Tensor", "squeeze.default", "squeeze.dim", "flatten.using_ints", "to.dtype", "to.device"),
        *("to.dtype_layout", "type_as.default", "transpose.int"),
    )
)
