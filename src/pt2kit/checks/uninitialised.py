"""Memory that nothing was written to: what `empty` gives, read or returned before it is filled (rule X11).

A result of `empty` and its kin is tainted, and so are views and copies of it. It is clean once something was written
into it or a part of it; which part is not followed. Operators from outside torch, and higher-order ones, are left to
do what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pt2kit import schema
from pt2kit.checks import schemas
from pt2kit.checks.subject import Subject
from pt2kit.errors import Problem
from pt2kit.graph import Scope, Step, arguments, graphs
from pt2kit.graph.rules import show

_SOURCES: Final = frozenset(
    f"torch.ops.{name}"
    for name in (
        "aten.empty.memory_format", "aten.empty.names", "aten.empty_like.default", "aten.empty_strided.default",
        "aten.empty_permuted.default", "aten.new_empty.default", "aten.new_empty_strided.default",
        "prims.empty_strided.default", "prims.empty_permuted.default",
    )
)  # fmt: skip
_WRITERS: Final = frozenset(
    (
        # These write all of their first argument, or take only its type and shape.
        "fill", "fill_", "zero", "zero_", "copy", "copy_", "uniform", "uniform_", "normal_", "normal_functional",
        "random", "random_", "bernoulli_", "exponential", "exponential_", "geometric", "geometric_", "log_normal",
        "log_normal_", "cauchy", "cauchy_", "full_like", "zeros_like", "ones_like", "rand_like", "randn_like",
        "randint_like", "empty_like", "new_empty", "new_empty_strided", "new_full", "new_zeros", "new_ones",
        # These write a part of it.
        "slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter", "index_put", "index_put_",
        "_index_put_impl_", "_unsafe_index_put", "index_copy", "index_copy_", "index_fill", "index_fill_", "scatter",
        "scatter_", "masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_", "put", "put_",
        "fill_diagonal_",
    )
)  # fmt: skip
"""Operators, without overload, that do not read their first argument."""
_SHAPES: Final = frozenset(
    (
        "sym_size", "sym_stride", "sym_numel", "sym_storage_offset", "size", "stride", "numel", "dim",
        "is_contiguous", "_assert_tensor_metadata", "_shape_as_tensor", "sym_is_contiguous", "is_same_size",
    )
)  # fmt: skip
"""Operators, without overload, that read no elements."""
_COPIES: Final = frozenset(
    ("clone", "_to_copy", "contiguous", "lift_fresh_copy", "alias_copy", "view_copy", "to", "type_as")
)
"""Operators, without overload, whose result has the elements of their first argument."""


@dataclass(slots=True)
class _Taint:
    """The values whose memory nothing was written to.

    Args:
        roots: value -> the value that brought the memory.
        aliases: the latter -> all values that share its memory.
    """

    roots: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)

    def add(self, values: Iterable[str], root: str) -> None:
        """Values that share the memory of a root."""
        for value in values:
            self.roots[value] = root
            self.aliases.setdefault(root, []).append(value)

    def clean(self, values: Iterable[str]) -> None:
        """Memory that was written to is clean under every name."""
        for value in values:
            for alias in self.aliases.pop(self.roots.get(value, ""), ()):
                self.roots.pop(alias, None)


class Use(NamedTuple):
    """A read of such memory, or its return.

    Args:
        step: the node that reads it; None where the graph returns it.
        position: which of the graph's outputs returns it.
        value: the value that is read or returned.
        origin: the value that brought the memory.
    """

    step: Step | None
    position: int
    value: str
    origin: str


def uninitialised_problems(subject: Subject) -> Iterator[Problem]:
    """Iterate reads and results of memory that nothing was written to; after a read the memory counts as clean.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for scope in graphs(subject.program, subject.graph_place):
        for use in uninitialised_uses(scope, lambda target: schemas.find(target, subject.release)):
            place = f"{scope.where}.outputs[{use.position}]" if use.step is None else use.step.where
            of = "" if use.origin == use.value else f" (it comes from {show(use.origin)})"
            said = f"{'reads' if use.step else 'returns'} {show(use.value)}, whose memory nothing was written to{of}"
            yield Problem(place, "X11", said, "safety")


def uninitialised_uses(scope: Scope, find: Callable[[str], schemas.Signature | None]) -> Iterator[Use]:
    """Iterate reads and returns of memory that nothing was written to, in one graph.

    Args:
        scope: the graph.
        find: target of a node -> its signature; None for what is no operator.
    """
    if not any(node.target in _SOURCES for node in scope.graph.nodes):
        return
    tainted = _Taint()
    for number, node in enumerate(scope.graph.nodes):
        is_used = any(name in tainted.roots for named in node.inputs for name in arguments(named.arg))
        if is_used and (read := _read(node, find(node.target), tainted)) is not None:
            yield Use(Step(scope, number, node), 0, *read)
        if node.target in _SOURCES:
            for name in _defined(node):
                if not _is_empty(scope.graph.tensor_values.get(name)):
                    tainted.add([name], name)
    for position, output in enumerate(scope.graph.outputs if not scope.depth else ()):
        for name in arguments(output):
            if name in tainted.roots:
                yield Use(None, position, name, tainted.roots[name])


def _read(node: schema.Node, found: schemas.Signature | None, tainted: _Taint) -> tuple[str, str] | None:
    """What a node does with tainted arguments: cleans them, passes them on, or reads them.

    Returns:
        the first that it reads, and the value that brought its memory.
    """
    parts = node.target.split(".")
    if found is None or len(parts) < 5 or parts[2] not in ("aten", "prims"):
        tainted.clean(name for named in node.inputs for name in arguments(named.arg))
        return None
    name = parts[3]
    if name in _SHAPES:
        return None
    first, others = _split(node, found)
    read = [value for value in others if value in tainted.roots and not _is_written(node, found, value)]
    roots = [value for value in first if value in tainted.roots]
    if roots and not (name in _WRITERS or parts[4].endswith("out")):
        if name in _COPIES or found.is_view:
            tainted.add(_defined(node), tainted.roots[roots[0]])
        else:
            read += roots
    elif roots and name.endswith("_"):
        tainted.clean(roots)
    use = (read[0], tainted.roots[read[0]]) if read else None
    tainted.clean(read)
    if not roots:
        tainted.clean(others)
    return use


def _split(node: schema.Node, found: schemas.Signature) -> tuple[list[str], list[str]]:
    """The values that the first parameter gets, and those of the others."""
    first: list[str] = []
    others: list[str] = []
    leading = next(iter(found.parameters), "")
    for named in node.inputs:
        (first if named.name == leading else others).extend(arguments(named.arg))
    return first, others


def _is_written(node: schema.Node, found: schemas.Signature, value: str) -> bool:
    """Whether a value is passed as something that the operator only writes: an `out` argument."""
    for named in node.inputs:
        parameter = found.parameters.get(named.name)
        if parameter is not None and value in arguments(named.arg):
            return parameter.keyword_only and parameter.is_written
    return False


def _defined(node: schema.Node) -> Iterator[str]:
    for output in node.outputs:
        yield from arguments(output)


def _is_empty(meta: schema.TensorMeta | None) -> bool:
    """Whether a tensor has no element, whatever its symbols are."""
    return meta is not None and any(size.as_int == 0 for size in meta.sizes)
