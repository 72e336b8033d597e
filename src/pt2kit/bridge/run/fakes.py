"""Descriptions of values -> fake tensors, where a program that only runs needs some: what makes them comes late.

Making them brings sympy and torch's compiler with it, a second that other programs need not wait for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from pt2kit import schema
from pt2kit.bridge.read.devices import Devices

if TYPE_CHECKING:
    from pt2kit.bridge.read.shapes import Shapes
    from pt2kit.bridge.read.values import Values


class Fakes:
    """Makes the fake values of one program.

    Args:
        ranges: symbol -> range.
        devices: where its tensors go.
    """

    def __init__(self, ranges: Mapping[str, schema.RangeConstraint], devices: Devices) -> None:
        self._ranges = ranges
        self._devices = devices

    def tensor(self, meta: schema.TensorMeta, where: str) -> torch.Tensor:
        """A new fake tensor, as `Values` makes it."""
        return self._values.tensor(meta, where)

    def inputs(self, graph: schema.Graph, where: str) -> list[Any]:
        """What a subgraph says of its inputs: fake tensors and symbolic numbers; None for those that are neither."""
        return [self._value(argument, graph, f"{where}.inputs[{n}]") for n, argument in enumerate(graph.inputs)]

    def outputs(self, graph: schema.Graph, where: str) -> list[Any]:
        """The same of its outputs."""
        return [self._value(argument, graph, f"{where}.outputs[{n}]") for n, argument in enumerate(graph.outputs)]

    def _value(self, argument: schema.Argument, graph: schema.Graph, where: str) -> Any:
        arm = argument.type
        if arm == "as_tensor":
            return self.tensor(graph.tensor_values[argument.as_tensor.name], where)
        if arm == "as_sym_int" and isinstance(argument.as_sym_int.as_name, str):  # type: ignore[union-attr]
            return self._shapes.integer(graph.sym_int_values[argument.as_sym_int.as_name], where)  # type: ignore
        return None

    @cached_property
    def _shapes(self) -> Shapes:
        from pt2kit.bridge.read.shapes import Shapes

        return Shapes(self._ranges)

    @cached_property
    def _values(self) -> Values:
        from pt2kit.bridge.read.values import Values

        return Values(self._shapes, self._devices)
