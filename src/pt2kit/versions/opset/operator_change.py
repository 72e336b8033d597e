"""Change of an operator's meaning, from one version of the operator set to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pt2kit import schema


@dataclass(frozen=True, slots=True)
class Replacement:
    """The replacement of a node after a change: nodes in order, and the metas of their new tensors.

    The last node must define the values that the old one did.
    """

    nodes: Sequence[schema.Node]
    tensor_values: Mapping[str, schema.TensorMeta] = field(default_factory=dict)


Convert = Callable[[schema.Node, schema.Graph, str], "schema.Node | Replacement"]
"""(node, its graph, its place) -> the node with another meaning of its operator; the same object if nothing changes."""


@dataclass(frozen=True, slots=True)
class OperatorChange:
    """One change of one operator.

    Args:
        namespace: "aten".
        operator: name and overload: "div.Tensor".
        from_version, to_version: numbers of the operator set; the second is the smaller one for a downgrade.
        convert: turns a call with the first meaning into one with the second.
    """

    namespace: str
    operator: str
    from_version: int
    to_version: int
    convert: Convert

    @property
    def target(self) -> str:
        """Return the target of the nodes that it applies to."""
        return f"torch.ops.{self.namespace}.{self.operator}"
