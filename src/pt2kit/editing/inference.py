"""Shape and dtype inference for calls that are added or edited, by the result rules of the operator table; no torch.

If a rule is not certain, the caller states the result with `meta=`, or asks torch's fake tensors with `infer="torch"`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pt2kit import schema
from pt2kit.editing.metas import Operand
from pt2kit.errors import GraphError, Pt2Error
from pt2kit.front_door import registered
from pt2kit.messages import quote
from pt2kit.operators.facts import Mismatch, Symbolic, Tensor, Unknown
from pt2kit.operators.metas import Symbols, to_meta, to_size
from pt2kit.operators.table import find
from pt2kit.operators.table import infer as infer_facts
from pt2kit.schema import TensorMeta
from pt2kit.schema.names import OPS
from pt2kit.symbols.polynomials import Polynomial, Undecided
from pt2kit.tensors.dtypes import DTYPES, short_name


class Call(Protocol):
    """A call as inference sees it: `graphs.Node`."""

    @property
    def target(self) -> str:
        """Return the operator."""

    @property
    def label(self) -> str:
        """Return its label in messages."""

    @property
    def outputs(self) -> Sequence[Operand]:
        """Return the values it defines."""

    @property
    def plain_arguments(self) -> Mapping[str, Any]:
        """Return its arguments as plain Python, by parameter."""


def infer_meta(target: str, arguments: Mapping[str, Any], infer: str | None, edit: str) -> Any:
    """Return the metas of the results of a call.

    Args:
        target: the operator.
        arguments: by parameter, plain, with values of the graph where it uses them.
        infer: "torch" to ask torch's fake tensors if no rule is certain.
        edit: what messages call the edit.

    Returns:
        A meta, a tuple of them for several results, a list for a result that is a list.

    Raises:
        GraphError: it cannot be inferred; the message says which meta to pass.
    """
    name = target.removeprefix(OPS)
    try:
        return _inferred(name, arguments)
    except (Unknown, Mismatch) as error:
        why = str(error)
    if infer == "torch":
        results: Any = registered("inference with torch")(target, arguments, edit)
        return results
    if infer is not None:
        raise GraphError(f"{edit}: expected infer=None or infer='torch', got {infer!r}")
    raise GraphError(
        f"{edit}: expected meta= for the result of {name}, which cannot be inferred ({why}); pass a Value that is like "
        "it, pt2kit.editing.tensor_meta(dtype, sizes), or infer='torch'"
    )


def misstated_type(node: Call) -> str | None:
    """Return the problem of the dtypes of a node's operands or results; None if there is none."""
    output = node.outputs[0] if len(node.outputs) == 1 else None
    if output is None or not isinstance(output.meta, TensorMeta):
        return None
    try:
        meta = _inferred(node.target.removeprefix(OPS), node.plain_arguments)
    except Mismatch as error:
        return str(error) if error.subject in ("dtype", "value") else None
    except Unknown:
        return None
    if not isinstance(meta, TensorMeta) or meta.dtype is output.meta.dtype:
        return None
    wanted, stated = short_name(meta.dtype), short_name(output.meta.dtype)
    return f"expected {quote(output.name)} to be declared as {wanted}, which it is, got {stated}; set its meta"


def inferred_metas(node: Call) -> list[Any]:
    """Return the metas of a node's results, one for each value, from what is known of its arguments now; [] if unknown.

    Raises:
        GraphError: torch refuses the arguments.
    """
    try:
        metas = _inferred(node.target.removeprefix(OPS), node.plain_arguments)
    except Mismatch as error:
        raise GraphError(f"{node.label}: {error}", rule="T11") from error
    except Unknown:
        return []
    listed = metas if isinstance(metas, list | tuple) else [metas]
    flat = [one for meta in listed for one in (meta if isinstance(meta, list) else [meta])]
    return flat if len(flat) == len(node.outputs) else []


def _inferred(name: str, arguments: Mapping[str, Any]) -> Any:
    """Return the metas of the results of a call.

    Raises:
        Unknown: there is no rule for it, or the rule is not certain.
        Mismatch: torch refuses the arguments.
    """
    known = Symbols(assumed_least=2)  # As torch's own fake tensors assume.
    facts = {parameter: _fact(held, known) for parameter, held in arguments.items()}
    results = infer_facts(name, facts)
    operands = [one for held in arguments.values() for one in (held if isinstance(held, (list, tuple)) else (held,))]
    row = find(name)
    requires_grad = (row is None or row.has_gradient) and any(
        isinstance(one, Operand) and isinstance(one.meta, TensorMeta) and one.meta.requires_grad for one in operands
    )
    try:
        return _meta(results, requires_grad)
    except (Undecided, ValueError, Pt2Error) as error:
        raise Unknown(str(error)) from error


def _fact(held: Any, known: Symbols) -> Any:
    if isinstance(held, Operand):
        return known.fact(held.meta)
    if isinstance(held, (list, tuple)):
        return tuple([_fact(one, known) for one in held])
    return held


def _meta(result: Any, requires_grad: bool) -> Any:
    if isinstance(result, Tensor):
        has_gradient = result.dtype is not None and DTYPES[result.dtype].has_gradient
        if result.strides is None or result.offset is None:
            raise Unknown("its strides are not certain")
        return to_meta(result, requires_grad=requires_grad and has_gradient)
    if isinstance(result, (list, tuple)):
        metas = [_meta(one, requires_grad) for one in result]
        return metas if isinstance(result, list) else tuple(metas)
    if isinstance(result, bool):
        return schema.SymBool(as_bool=result)
    if isinstance(result, (int, Polynomial)):
        return to_size(result)
    if isinstance(result, Symbolic):
        raise Unknown(f"it is a symbolic {result.kind.__name__}")
    raise Unknown("its result is not certain")
