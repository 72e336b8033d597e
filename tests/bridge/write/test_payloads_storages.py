"""Bytes of storages."""

from __future__ import annotations

import pytest
import torch

from pt2kit.bridge.write import payloads
from pt2kit.bridge.write.payloads import storage_bytes, storage_chunks


def data(tensor):
    return b"".join(bytes(chunk) for chunk in storage_chunks(tensor))


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.bfloat16, torch.complex64, torch.bool])
def test_whole_storage(dtype):
    """The whole storage is given, whatever part of it the tensor views."""
    base = torch.arange(12).to(dtype)
    expected = base.view(torch.uint8).numpy().tobytes()
    for view in (base, base[3:5], base[::2], base.view(3, 4).t(), base[:0]):
        assert data(view) == expected
        assert storage_bytes(view) == len(expected)


def test_chunks(monkeypatch):
    """Large storages come in parts, which are views and no copies."""
    monkeypatch.setattr(payloads, "CHUNK", 16)
    tensor = torch.zeros(10)
    chunks = list(storage_chunks(tensor))
    assert [len(chunk) for chunk in chunks] == [16, 16, 8]
    tensor.fill_(1)
    assert b"".join(chunks) == tensor.numpy().tobytes()


def test_other_devices(monkeypatch):
    """Storages of other devices are fetched part by part."""
    monkeypatch.setattr(payloads, "DEVICE_CHUNK", 16)
    monkeypatch.setattr(payloads, "_flat", lambda tensor, size: _Elsewhere(tensor.view(torch.uint8)))
    tensor = torch.arange(10.0)
    chunks = list(storage_chunks(tensor))
    assert [len(chunk) for chunk in chunks] == [16, 16, 8]
    assert b"".join(chunks) == tensor.numpy().tobytes()


class _Elsewhere:
    """Bytes that have to be fetched with `cpu`."""

    is_cpu = False

    def __init__(self, flat):
        self.flat = flat

    def __getitem__(self, part):
        return _Elsewhere(self.flat[part])

    def cpu(self):
        return self.flat


def test_odd_bytes():
    """Bytes that make no whole element are left out; a reader could not take them as elements."""
    tensor = torch.zeros(10, dtype=torch.uint8)[:8].view(torch.float32)
    assert storage_bytes(tensor) == 8
    assert len(data(tensor)) == 8


def test_empty():
    """A storage without bytes gives none."""
    assert data(torch.zeros(0)) == b""
