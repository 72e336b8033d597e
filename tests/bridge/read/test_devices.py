"""Devices of loaded tensors: the caller's moves, in all their forms."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pt2kit.bridge.read.tensors import Devices
from pt2kit.errors import UnsupportedError
from pt2kit.schema import Device

CPU, META, GPU, SECOND = Device("cpu"), Device("meta"), Device("cuda", 0), Device("cuda", 1)
MOVES: list[tuple[Any, dict[str, str]]] = [
    (None, {"cpu": "cpu", "cuda:0": "cuda:0", "cuda:1": "cuda:1", "meta": "meta"}),
    ("cpu", {"cpu": "cpu", "cuda:0": "cpu", "cuda:1": "cpu", "meta": "meta"}),
    (torch.device("cuda", 1), {"cpu": "cuda:1", "cuda:0": "cuda:1", "meta": "meta"}),
    ({"cuda:0": "cpu"}, {"cpu": "cpu", "cuda:0": "cpu", "cuda:1": "cuda:1"}),
    ({"cuda:0": torch.device("cpu"), "cpu": "cuda:1"}, {"cpu": "cuda:1", "cuda:0": "cpu"}),
    ({}, {"cpu": "cpu", "cuda:0": "cuda:0"}),
]


@pytest.mark.parametrize(("moves", "wanted"), MOVES, ids=[str(moves) for moves, _ in MOVES])
def test_find(moves: Any, wanted: dict[str, str]) -> None:
    """Each stored device, and where it goes; asking again gives the same."""
    devices = Devices(moves)
    for stored in (CPU, META, GPU, SECOND, CPU):
        name = stored.type if stored.index is None else f"{stored.type}:{stored.index}"
        if name in wanted:
            assert devices.find(stored, "x") == torch.device(wanted[name])
            assert devices.move(torch.device(name)) == torch.device(wanted[name])


@pytest.mark.parametrize(
    ("moves", "places"),
    [
        (None, None),
        ("cpu", "cpu"),
        (torch.device("cuda", 1), "cuda:1"),
        ({"cuda:0": "cpu"}, {"cuda:0": "cpu"}),
        ({}, None),
    ],
)
def test_map_location(moves: Any, places: Any) -> None:
    """The same moves as torch.load takes them."""
    assert Devices(moves).map_location() == places


@pytest.mark.parametrize("given", ["evil", {"cpu": "evil"}, {"evil": "cpu"}, "cuda:x", object(), ("cpu",)])
def test_unknown_targets(given: Any) -> None:
    """A device that torch does not know is refused when it is given."""
    with pytest.raises(UnsupportedError, match="device: expected a device that torch knows, got"):
        Devices(given)


@pytest.mark.parametrize("stored", [Device("evil"), Device(""), Device("cuda", -1), Device("cuda", 2**40)])
def test_unknown_sources(stored: Device) -> None:
    """A stored device that torch does not know is refused at its place."""
    with pytest.raises(
        UnsupportedError, match=r"weight_0: expected a device (that torch knows|index from 0 to 127), got "
    ):
        Devices(None).find(stored, "weight_0")
