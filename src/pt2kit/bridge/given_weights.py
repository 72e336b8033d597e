"""Replacement weights for a loaded program (`weights=`), compared with the descriptions in the program's file.

Memory that tensors share in the file they share here: of a tied weight the numbers are given once, or the same ones
again, and what is given for views of one memory must agree where they overlap.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import torch

from pt2kit.bridge.operators import DTYPES
from pt2kit.bridge.read.tensors import Tensors, finish
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.package.stored import Payload
from pt2kit.schema import Device
from pt2kit.tensors.bounds import extent
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.dtypes import DTYPES as ROWS
from pt2kit.tensors.safetensors_file import SUFFIXES, SafetensorsArchive
from pt2kit.tensors.view import CPU, TensorView
from pt2kit.zip.reader import Archive
from pt2kit.zip.source import DEFAULT_LIMITS, open_bytes

Given: TypeAlias = "Mapping[str, Any] | str | os.PathLike[str]"
"""Weights from elsewhere: name -> tensor, array or payload; or the path of a `.safetensors` file or an index."""
_Stated: TypeAlias = "TensorView | MetaView"

_SHOWN: Final = 5


def given_weights(
    given: Given, views: Mapping[str, Payload], tensors: Tensors, left_out: Collection[str] = ()
) -> dict[str, torch.Tensor]:
    """Build the state dict of a program from replacement weights.

    Args:
        given: name -> tensor, array or payload, or the path of a file.
        views: the wanted weights of the program's file.
        tensors: of the program's file: the devices they go to, and whether files are mapped.
        left_out: names that are accepted and ignored.

    Returns:
        name -> tensor for all of `views`: type, shape, strides and ties as in the file. A live tensor is shared if
        its layout and device are those of the file; others are copied, and files are mapped if they can be.

    Raises:
        PayloadError: names that are unknown to the program or missing (P19); another type or shape, or
            numbers that contradict each other where memory is shared (P14).
        UnsupportedError: a value that is no tensor.
        OSError, Pt2Error: the file cannot be read.
    """
    where = "weights" if isinstance(given, Mapping) else os.fspath(given)
    if not isinstance(given, Mapping) and not where.endswith(SUFFIXES):
        raise UnsupportedError(
            f"{where}: expected a mapping, or a file named {' or '.join(SUFFIXES)}, got another one; "
            "load_weights reads a .pt2"
        )
    # A value in memory is no record of any archive.
    archive = Archive(open_bytes(b""), (), DEFAULT_LIMITS) if isinstance(given, Mapping) else SafetensorsArchive(given)
    weights: Mapping[str, Any] = given if isinstance(given, Mapping) else archive.views  # type: ignore[attr-defined]
    groups = _groups(views, where)
    odd = [name for name in weights if name not in views and name not in left_out]
    missing = [name for group in groups for name in _missing(group, weights)]
    if odd or missing:
        raise PayloadError(
            f"{where}: expected the names of the program's weights, got {odd[:_SHOWN]} besides them and nothing for "
            f"{missing[:_SHOWN]}",
            rule="P19",
        )
    own = tensors.of_other_file(archive)
    if not isinstance(given, Mapping):
        own.read(replace(weights[name], device=_place(view)) for name, view in views.items() if name in weights)
    made = {name: tensor for group in groups for name, tensor in _of_group(group, weights, own, where).items()}
    return {name: finish(made[name], view) for name, view in views.items()}


def _groups(views: Mapping[str, Payload], where: str) -> list[dict[str, _Stated]]:
    """Group the weights by the memory that they share."""
    groups: dict[Any, dict[str, _Stated]] = {}
    for name, view in views.items():
        if not isinstance(view, TensorView | MetaView):
            raise UnsupportedError(
                f"{where}: {name!a}: expected a weight that is one dense tensor, got {view.describe()}, which only its "
                "own file can give"
            )
        shared = view.storage if isinstance(view, TensorView) and view.storage.nbytes else getattr(view, "tie", "")
        groups.setdefault((shared or name, view.dtype), {})[name] = view
    return list(groups.values())


def _missing(group: Mapping[str, _Stated], held: Mapping[str, Any]) -> list[str]:
    """Return the names of a group that are missing and are not aliases of a passed weight."""
    there = {_geometry(view) for name, view in group.items() if name in held}
    return [name for name, view in group.items() if name not in held and _geometry(view) not in there]


def _geometry(view: _Stated) -> tuple[Any, ...]:
    return view.sizes, view.strides, view.storage_offset


def _of_group(
    group: Mapping[str, _Stated], held: Mapping[str, Any], tensors: Tensors, where: str
) -> dict[str, torch.Tensor]:
    """Return the tensors over one memory.

    Raises:
        PayloadError: another type or shape, or numbers that contradict each other (P14).
    """
    live = {name: _live(name, held[name], view, tensors, where) for name, view in group.items() if name in held}
    [first, *others] = live
    same = len({_geometry(view) for view in group.values()}) == 1
    if same and live[first].stride() == group[first].strides:
        made = dict.fromkeys(group, live[first])
    else:
        made = _laid_over(group, live)
    for name in (*others, first) if not same or others else ():
        if live[name] is not made[name] and not _is_equal(live[name], made[name]):
            raise PayloadError(
                f"{where}: {name!a}: expected the numbers that {first!a} has, with which it shares memory in the "
                "program's file, got others",
                rule="P14",
            )
    return made


def _live(name: str, value: Any, stated: _Stated, tensors: Tensors, where: str) -> torch.Tensor:
    """Return the value passed under a name, on its device."""
    # The imports of editing take as long as a small program to load; replacement weights are rare.
    from pt2kit.editing.weights import to_view

    live = value if isinstance(value, torch.Tensor) else to_view(name, value, edit=where)
    dtype = live.dtype if isinstance(live, torch.Tensor) else DTYPES[live.dtype]
    if dtype != DTYPES[stated.dtype] or tuple(live.shape) != stated.sizes:
        raise PayloadError(
            f"{where}: {name!a}: expected {ROWS[stated.dtype].name} {list(stated.sizes)}, as the program's file has "
            f"it, got {str(dtype).removeprefix('torch.')} {list(live.shape)}",
            rule="P14",
        )
    device = _place(stated)
    if isinstance(live, TensorView):
        return tensors.dense(replace(live, device=device, is_param=False, requires_grad=False))
    return live.detach().to(tensors.devices.find(device, f"{where}: {name!a}"))


def _place(stated: Any) -> Device:
    """Return the device of a replacement weight: that of the file, if it has data there."""
    return CPU if stated.device.type == "meta" else stated.device


def _laid_over(group: Mapping[str, _Stated], live: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors of a group over one new memory, filled from the passed ones, the first last."""
    first = next(iter(live.values()))
    elements = max(extent(view.sizes, view.strides, view.storage_offset, itemsize=1) for view in group.values())
    flat = torch.zeros(elements, dtype=first.dtype, device=first.device)
    made = {name: flat.as_strided(view.sizes, view.strides, view.storage_offset) for name, view in group.items()}
    for name, tensor in reversed(list(live.items())):
        # A dimension that is repeated is one element of memory.
        once = tuple(slice(0, 1) if step == 0 else slice(None) for step in group[name].strides)
        made[name][once].copy_(tensor[once])
    return made


def _is_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors hold the same bytes; NaN equals NaN."""
    if one.is_meta:
        return True
    first, second = (part.contiguous().reshape(-1).view(torch.uint8) for part in (one, other))
    return bool(torch.equal(first, second))
