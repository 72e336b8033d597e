"""The weights of a program and the names that are wanted -> the same weights, those not wanted without their data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pt2kit.package.stored import Payload
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.view import TensorView


def leave_out(weights: Mapping[str, Payload], include: Callable[[str], bool]) -> dict[str, Payload]:
    """Leave out weights.

    Args:
        weights: the weights of a program.
        include: whether a name is wanted; called once for each.

    Returns:
        All of them, in their order. Those not wanted are descriptions on the meta device, with their ties. What shares
        memory with a wanted one is wanted, too, and so is what is no dense tensor: only its data say what it is like.
    """
    names = {name for name in weights if include(name)}
    wanted = {view.storage for name, view in weights.items() if name in names and isinstance(view, TensorView)}
    return {
        name: view if name in names or not isinstance(view, TensorView) or view.storage in wanted else _described(view)
        for name, view in weights.items()
    }


def _described(view: TensorView) -> MetaView:
    return MetaView(
        view.name,
        view.dtype,
        view.sizes,
        view.strides,
        view.requires_grad,
        view.is_param,
        storage_offset=view.storage_offset,
        tie=view.storage.record if view.storage.nbytes else "",
    )
