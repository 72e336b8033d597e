"""Weights of a `.pt2` file as live tensors, without the program around them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import TypeAlias

import torch

from pt2kit.bridge.read.devices import Devices, Moves
from pt2kit.bridge.read.tensors import Tensors
from pt2kit.bridge.torch_names import disable_current_modes
from pt2kit.collector import no_collection
from pt2kit.errors import ArchiveError, PayloadError, UnsupportedError
from pt2kit.messages import quote
from pt2kit.package.open import Package, open_package
from pt2kit.package.stored import Payload
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.zip.opening import FileLike
from pt2kit.zip.source import map_privately

Wanted: TypeAlias = "Collection[str] | Callable[[str], bool] | None"
"""Which weights: their names, a function of a name, or None for all."""


def load_weights(
    f: FileLike,
    names: Wanted = None,
    device: Moves = None,
    *,
    model: str = "model",
    verify: bool = False,
    weights_root: str | os.PathLike[str] | None = None,
) -> dict[str, torch.Tensor]:
    """Load weights of a program, and nothing else of it.

    Args:
        f: a path, bytes, a binary file object, or any URL that fsspec knows.
        names: which ones: names, among them those of constants; or a function that says so of each name of a parameter
            or persistent buffer; all parameters and persistent buffers where it is None.
        device: one device for all, or stored device -> device (`{"cuda:0": "cpu"}`).
        model: of which program.
        verify: compare all of them with their checksums; without it, the first 64 MiB of what is mapped or streamed
            from a local file, and everything else.
        weights_root: where files of weights may lie that the archive names, as in `open_package`.

    Returns:
        name -> tensor in the file's order, parameters as `torch.nn.Parameter`; tied ones share memory. On the CPU they
        are mapped copy-on-write where the file has them stored and aligned. To other devices they are streamed in
        pieces of 64 MiB, reading one while the last is copied: the host never holds more than two. On the meta device
        nothing is read.

    Raises:
        ArchiveError: no such program.
        PayloadError: no weight or constant of one of the names.
        UnsupportedError: one that takes code to rebuild; a device that is not there.
        OSError, Pt2Error: the file cannot be read.
    """
    devices = Devices(device)
    with (
        no_collection(),
        disable_current_modes(),
        open_package(f, weights_root=weights_root) as package,
    ):
        if model not in package.layout.models:
            raise ArchiveError(
                f"{package.name}: expected a program {model!a}, got {', '.join(map(ascii, package.layout.models))}"
            )
        container = package.stored[model].model
        if device is None and container is not None:
            devices = Devices(container.devices)
        chosen = _chosen(package, model, names)
        tensors = Tensors(devices, package.archive, map_privately(package.archive.source), verify=verify)
        weights = {name: _tensor(view, tensors) for name, view in chosen.items()}
        tensors.finish()
        return weights


def _chosen(package: Package, model: str, names: Wanted) -> dict[str, Payload]:
    weights = package.weights(model)
    if names is None or callable(names):
        return {name: view for name, view in weights.items() if _is_wanted(name, names)}
    if isinstance(names, str):
        raise TypeError(f"names: expected several names or a function, got the text {names!r}; pass [{names!r}]")
    everything = {**package.constants(model), **weights}
    for name in names:
        if name not in everything:
            close = get_close_matches(str(name), list(everything)[:20_000], n=3, cutoff=0.7)
            hint = f"; did you mean {' or '.join(map(ascii, close))}?" if close else ""
            raise PayloadError(
                f"{package.name}: {model}: expected a weight or constant {quote(str(name))}, got none of that "
                f"name{hint}",
                rule="P19",
            )
    wanted = set(names)
    return {name: view for name, view in everything.items() if name in wanted}


def _is_wanted(name: str, names: Wanted) -> bool:
    if names is None:
        return True
    return bool(names(name)) if callable(names) else name in names


def _tensor(view: Payload, tensors: Tensors) -> torch.Tensor:
    if isinstance(view, OpaquePayload):
        raise UnsupportedError(
            f"{view.where}: expected a tensor, got {view.describe()}, which takes code to rebuild: pt2kit.load does so"
        )
    return tensors.any(view)
