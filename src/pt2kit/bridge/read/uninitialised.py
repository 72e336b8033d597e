"""Refuses programs that let memory out which nothing was written to: what `empty` gives, read before it is filled.

A result of `empty` and its kin is tainted, and so are views and copies of it. It is clean once something was written
into it or a part of it; which part is not followed. Reading it in any other way, or returning it, is refused.
Operators from outside torch, and higher-order ones, are left to do what they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.operator_tables import words
from pt2kit.errors import OperatorError
from pt2kit.graph import Scope, arguments, node_label

_SOURCES: Final = frozenset(
    f"torch.ops.{name}"
    for name in (
        "aten.empty.memory_format", "aten.empty.names", "aten.empty_like.default", "aten.empty_strided.default",
        "aten.empty_permuted.default", "aten.new_empty.default", "aten.new_empty_strided.default",
        "prims.empty_strided.default", "prims.empty_permuted.default",
    )
)  # fmt: skip
_FILLS: Final = words(
    """fill fill_ zero zero_ copy copy_ uniform uniform_ normal_ normal_functional random random_ bernoulli_ exponential
    exponential_ geometric geometric_ log_normal log_normal_ cauchy cauchy_ full_like zeros_like ones_like rand_like
    randn_like randint_like empty_like new_empty new_empty_strided new_full new_zeros new_ones"""
)
"""Operators, without overload, that write all of their first argument, or take only its type and shape."""
_PARTS: Final = words(
    """slice_scatter select_scatter diagonal_scatter as_strided_scatter index_put index_put_ _index_put_impl_
    _unsafe_index_put index_copy index_copy_ index_fill index_fill_ scatter scatter_ masked_fill masked_fill_
    masked_scatter masked_scatter_ put put_ fill_diagonal_"""
)
"""Operators, without overload, that write a part of their first argument."""
_SHAPES: Final = words(
    """sym_size sym_stride sym_numel sym_storage_offset size stride numel dim is_contiguous _assert_tensor_metadata
    _shape_as_tensor sym_is_contiguous is_same_size"""
)
"""Operators, without overload, that read no elements."""
_COPIES: Final = frozenset(
    ("clone", "_to_copy", "contiguous", "lift_fresh_copy", "alias_copy", "view_copy", "to", "type_as")
)
"""Operators, without overload, whose result has the elements of their first argument."""


def check_initialised(scope: Scope, operators: Mapping[str, Operator]) -> None:
    """Refuse a graph that reads or returns memory that nothing was written to.

    Args:
        scope: the graph.
        operators: target -> operator.

    Raises:
        OperatorError: the first node, or the output, that does.
    """
    if not any(node.target in _SOURCES for node in scope.graph.nodes):
        return
    tainted: dict[str, str] = {}  # value -> the value that brought the memory
    for number, node in enumerate(scope.graph.nodes):
        where = f"{scope.where}.nodes[{number}]: node {node_label(node, number)} ({node.target})"
        used = [name for named in node.inputs for name in arguments(named.arg) if name in tainted]
        if used:
            _use(node, operators[node.target], tainted, where)
        if node.target in _SOURCES:
            for name in _defined(node):
                if not _is_empty(scope.graph.tensor_values.get(name)):
                    tainted[name] = name
    for index, output in enumerate(scope.graph.outputs):
        for name in arguments(output):
            if name in tainted and not scope.depth:
                raise OperatorError(
                    f"{scope.where}.outputs[{index}]: expected values that were computed, got {name}, whose memory "
                    f"nothing was written to (it comes from {tainted[name]})"
                )


def _use(node: schema.Node, operator: Operator, tainted: dict[str, str], where: str) -> None:
    """What a node does with tainted arguments: cleans them, passes them on, or is refused."""
    parts = node.target.split(".")
    if operator.kind != "operator" or len(parts) < 5 or parts[2] not in ("aten", "prims"):
        _clean(tainted, [name for named in node.inputs for name in arguments(named.arg)])
        return
    name = parts[3]
    if name in _SHAPES:
        return
    first, others = _split(node, operator)
    for value in others:
        if value in tainted and not _is_written(node, operator, value):
            raise _refusal(where, value, tainted)
    roots = [value for value in first if value in tainted]
    if not roots:
        _clean(tainted, others)
    elif name in _FILLS or name in _PARTS or parts[4].endswith("out"):
        if name.endswith("_"):
            _clean(tainted, roots)
    elif name in _COPIES or _is_view(operator):
        for value in _defined(node):
            tainted[value] = tainted[roots[0]]
    else:
        raise _refusal(where, roots[0], tainted)


def _split(node: schema.Node, operator: Operator) -> tuple[list[str], list[str]]:
    """The values that the first parameter gets, and those of the others."""
    first: list[str] = []
    others: list[str] = []
    for named in node.inputs:
        found = operator.parameters.get(named.name)
        (first if found is not None and found.index == 0 else others).extend(arguments(named.arg))
    return first, others


def _is_written(node: schema.Node, operator: Operator, value: str) -> bool:
    """Whether a value is passed as something that the operator only writes: an `out` argument."""
    for named in node.inputs:
        if value in arguments(named.arg):
            parameter = operator.parameters[named.name]
            alias = operator.schema.arguments[parameter.index].alias_info
            return parameter.keyword_only and alias is not None and bool(alias.is_write)
    return False


def _is_view(operator: Operator) -> bool:
    """Whether the result shares the memory of an argument without writing it."""
    returns: Any = operator.schema.returns
    return any(value.alias_info is not None and not value.alias_info.is_write for value in returns)


def _clean(tainted: dict[str, str], values: list[str]) -> None:
    """Memory that was written to is clean under every name."""
    roots = {tainted[value] for value in values if value in tainted}
    for value in [value for value, root in tainted.items() if root in roots]:
        del tainted[value]


def _defined(node: schema.Node) -> Iterator[str]:
    for output in node.outputs:
        yield from arguments(output)


def _is_empty(meta: schema.TensorMeta | None) -> bool:
    """Whether a tensor has no element, whatever its symbols are."""
    return meta is not None and any(size.as_int is not UNSET and size.as_int == 0 for size in meta.sizes)


def _refusal(where: str, value: str, tainted: Mapping[str, str]) -> OperatorError:
    return OperatorError(
        f"{where}: expected arguments that were computed, got {value}, whose memory nothing was written to "
        f"(it comes from {tainted[value]})"
    )
