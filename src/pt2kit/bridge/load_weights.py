"""Weights of a `.pt2` file as live tensors, without the program around them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import TypeAlias

import torch

from pt2kit.bridge.read.pickled_values import is_plain_tensor, live_tensor
from pt2kit.bridge.read.tensors import Moves, Tensors
from pt2kit.bridge.stored import devices_of
from pt2kit.bridge.torch_names import disable_current_modes, not_traced
from pt2kit.collector import no_collection
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.messages import quote, suggestion
from pt2kit.package.open import Package, open_package
from pt2kit.package.stored import Payload
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.zip.listing import FileLike

Wanted: TypeAlias = "Collection[str] | Callable[[str], bool] | None"
"""Which weights: their names, a function of a name, or None for all."""


@not_traced
@disable_current_modes()
@no_collection()
def load_weights(
    f: FileLike,
    names: Wanted = None,
    device: Moves = None,
    *,
    model: str | None = None,
    verify: bool = False,
    weights_root: str | os.PathLike[str] | None = None,
    mmap: bool = False,
) -> dict[str, torch.Tensor]:
    """Load weights of a program without the program itself.

    Args:
        f: a path, bytes, a binary file object, or any URL that fsspec supports.
        names: the names to load, constants included; or a predicate that is called with each name of a
            parameter or persistent buffer; None for all parameters and persistent buffers.
        device: one device for all, or stored device -> device (`{"cuda:0": "cpu"}`).
        model: the program, by default the only one, or "model".
        verify: compare those that are mapped with their checksums; those that are read always are.
        weights_root: directory of the weight files that the archive names, as in `open_package`.
        mmap: as in `pt2kit.load`.

    Returns:
        name -> tensor in the file's order, parameters as `torch.nn.Parameter`; tied ones share memory. On the CPU they
        are read into memory by several threads, unless they are mapped. To other devices they are streamed in
        pieces of 64 MiB, reading one while the last is copied: the host never holds more than two. On the meta device
        nothing is read.

    Raises:
        ArchiveError: no such program.
        PayloadError: no weight or constant of one of the names.
        UnsupportedError: one that takes code to rebuild; a device that is not there.
        OSError, Pt2Error: the file cannot be read.
    """
    with open_package(f, weights_root=weights_root) as package:
        model = package.choose(model)
        devices = devices_of(package, model, device)
        chosen = _chosen(package, model, names)
        tensors = Tensors(devices, package.archive, mmap=mmap, verify=verify)
        tensors.read(chosen.values())
        weights = {name: _tensor(view, tensors) for name, view in chosen.items()}
        tensors.finish()
        return weights


def _chosen(package: Package, model: str, names: Wanted) -> dict[str, Payload]:
    weights = package.weights(model)
    if names is None or callable(names):
        return {name: view for name, view in weights.items() if names is None or names(name)}
    if isinstance(names, str):
        raise TypeError(f"names: expected several names or a function, got the text {names!r}; pass [{names!r}]")
    everything = {**package.constants(model), **weights}
    for name in names:
        if name not in everything:
            raise PayloadError(
                f"{package.name}: {model}: expected a weight or constant {quote(str(name))}, got none of that "
                f"name{suggestion(str(name), everything)}",
                rule="P19",
            )
    wanted = set(names)
    return {name: view for name, view in everything.items() if name in wanted}


def _tensor(view: Payload, tensors: Tensors) -> torch.Tensor:
    if not isinstance(view, OpaquePayload):
        return tensors.any(view)
    if not is_plain_tensor(view):
        raise UnsupportedError(
            f"{view.where}: expected a tensor, got {view.describe()}, which takes code to rebuild: pt2kit.load does so "
            "with trust="
        )
    return live_tensor(view, tensors)
