"""Devices of a program, moved as the caller asks: `device="cpu"`, or `device={"cuda:0": "cpu"}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import torch

from pt2kit import schema
from pt2kit.bridge.scalars import to_device
from pt2kit.bridge.torch_names import renamed_backend
from pt2kit.errors import UnsupportedError

Moves: TypeAlias = "torch.device | str | int | Mapping[str, torch.device | str | int] | None"
"""Devices that a caller may request: one for everything, a table, or None to change nothing."""


class Devices:
    """Maps stored devices to live ones, for the tensors of one program.

    Args:
        moves: one device, or stored device ("cuda:0"; "cuda" for one without index) -> device; None changes nothing.

    Raises:
        UnsupportedError: a device unknown to torch.
    """

    def __init__(self, moves: Moves) -> None:
        self._table: dict[str, torch.device] = {}
        self._all: torch.device | None = None
        if isinstance(moves, Mapping):
            self._table = {str(_device(source)): _device(target) for source, target in moves.items()}
        elif moves is not None:
            self._all = _device(moves)
        self._known: dict[tuple[str, int | None], torch.device] = {}

    def find(self, device: schema.Device, where: str) -> torch.device:
        """Return the live device for a stored one.

        Raises:
            UnsupportedError: the stored device is unknown to torch.
        """
        key = (device.type, device.index)
        if key not in self._known:
            try:
                stored = to_device(device)
            except (UnsupportedError, ValueError, OverflowError) as error:
                raise UnsupportedError(f"{where}: expected a device that torch knows, got: {error}") from error
            try:
                self._known[key] = self.move(stored)
            except UnsupportedError as error:
                raise UnsupportedError(f"{where}: {error}") from error
        return self._known[key]

    def move(self, stored: torch.device) -> torch.device:
        """Return the target device for tensors stored on a device; tensors without data (meta) stay on meta.

        Raises:
            UnsupportedError: a device whose package is not imported.
        """
        if self._all is not None:
            destination = stored if stored.type == "meta" else self._all
        else:
            destination = self._table.get(str(stored), stored)
        _check_imported(destination)
        return destination

    def failed(self, device: torch.device, where: str, error: Exception) -> UnsupportedError:
        """Return the error for tensors that could not be put on a device: it is not available, or it is full."""
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError, NotImplementedError):
            if device == self._all or device in self._table.values():
                return UnsupportedError(f"device {device}: not available here")
            return UnsupportedError(f"{where}: device {device}: not available here; pass device= to load it elsewhere")
        return UnsupportedError(f"{where}: expected to put it on the device {device}, got: {error}")

    def map_location(self) -> str | dict[str, str] | None:
        """Return the same moves in the form that `torch.load` accepts; tensor subclasses do not accept a function."""
        if self._all is not None:
            return str(self._all)
        return {str(source): str(target) for source, target in self._table.items()} or None


def _check_imported(device: torch.device) -> None:
    """Refuse a device that torch itself only has a name for: using it would import a module of that name.

    Source: `_get_device_module` in torch/utils/_device.py and torch/_utils.py, 2.13.
    """
    if device.type in ("hpu", renamed_backend()) and not hasattr(torch, device.type):
        raise UnsupportedError(
            f"device {device}: not available here; import the package that brings it before loading, or pass another "
            "one as device="
        )


def _device(given: torch.device | str | int) -> torch.device:
    try:
        return torch.device(given)
    except (RuntimeError, TypeError) as error:
        raise UnsupportedError(f"device: expected a device that torch knows, got {given!r}") from error
