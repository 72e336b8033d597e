"""A call -> what its results are like, computed from what its arguments are like. No torch.

    infer_elements.py   element-wise operators: broadcasting over symbolic sizes, type promotion, casts, creation
    infer_views.py      views, indexing by constants, concatenation
    infer_products.py   linear, matrix products, reductions, normalization, embedding
    infer_numbers.py    arithmetic on sizes

A rule gives nothing where it is not sure; then the caller has to say what the result is like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pt2kit.editing import infer_elements, infer_numbers, infer_products, infer_views
from pt2kit.editing.arguments import to_plain
from pt2kit.editing.calling import Call, Refused, Rule, Unknown
from pt2kit.editing.values import Slot
from pt2kit.errors import GraphError, Pt2Error
from pt2kit.messages import quote
from pt2kit.schema import TensorMeta
from pt2kit.tensors.dtypes import short_name

if TYPE_CHECKING:
    from pt2kit.editing.nodes import Node

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {**infer_elements.RULES, **infer_views.RULES, **infer_products.RULES, **infer_numbers.RULES}
)
"""Operator without "torch.ops." -> its rule."""


def infer_meta(target: str, slots: Sequence[Slot], infer: str | None, edit: str) -> Any:
    """What the results of a call are like.

    Args:
        target: the operator.
        slots: its arguments.
        infer: "torch" to ask torch's fake tensors where this build has no rule, or is not sure.
        edit: what messages call the edit.

    Returns:
        A meta, a tuple of them for several results, a list for a result that is a list.

    Raises:
        GraphError: it cannot be inferred; the message says which meta to give.
    """
    call = _call(slots)
    name = target.removeprefix("torch.ops.")
    try:
        return _inferred(name, call)
    except Unknown as error:
        why = str(error)
    if infer == "torch":
        # The bridge stands above this room, and is asked for by name alone: it needs torch, which need not be there.
        from importlib import import_module

        return import_module("pt2kit.bridge.inference").infer_with_torch(target, call.arguments, edit)
    if infer is not None:
        raise GraphError(f"{edit}: expected infer=None or infer='torch', got {infer!r}")
    raise GraphError(
        f"{edit}: expected meta= for the result of {name}, which cannot be inferred ({why}); give a Value that is like "
        "it, pt2kit.editing.tensor_meta(dtype, sizes), or infer='torch'"
    )


def misstated_type(node: Node) -> str | None:
    """What is wrong with the element types of what a node takes or gives; None where nothing is known to be."""
    if len(node.outputs) != 1 or not isinstance(node.output.meta, TensorMeta):
        return None
    try:
        meta = _inferred(node.target.removeprefix("torch.ops."), _call(node.slots))
    except Refused as error:
        return str(error)
    except Unknown:
        return None
    if not isinstance(meta, TensorMeta) or meta.dtype is node.output.meta.dtype:
        return None
    wanted, stated = short_name(meta.dtype), short_name(node.output.meta.dtype)
    return f"expected {quote(node.output.name)} to be stated as {wanted}, which it is, got {stated}; set its meta"


def _call(slots: Sequence[Slot]) -> Call:
    return Call({slot.name or str(position): to_plain(slot) for position, slot in enumerate(slots)})


def _inferred(name: str, call: Call) -> Any:
    """What the results of a call are like.

    Raises:
        Unknown: there is no rule for it, or the rule is not sure.
    """
    rule = RULES.get(name)
    if rule is None:
        raise Unknown("there is no rule for it")
    try:
        return rule(call)
    except (Pt2Error, ZeroDivisionError, IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise Unknown(f"its arguments do not fit: {error}") from error
