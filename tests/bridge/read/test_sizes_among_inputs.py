"""A torch.Size among the sample inputs, at any depth, is plain data: read live, without torch, and sanitized."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.packages import bytes_of
from torch.utils import _pytree as pytree

import pt2kit

X = torch.arange(6.0).reshape(2, 3)
SIZE = torch.Size([3, 2])
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "argument": ((X, SIZE), {}),
    "keyword": ((X,), {"size": SIZE}),
    "in a list": ((X, [SIZE]), {}),
    "in a dict in a tuple": ((X, ({"a": SIZE},)), {}),
    "empty": ((X.sum(), torch.Size([])), {}),
}


class Reshape(torch.nn.Module):
    """Uses the numbers of a size, wherever it is."""

    def forward(self, x: torch.Tensor, size: Any) -> torch.Tensor:
        return x.reshape([leaf for leaf in pytree.tree_leaves(size) if isinstance(leaf, int)])


@pytest.fixture(params=CALLS)
def saved(request: pytest.FixtureRequest) -> tuple[bytes, Any]:
    """A program as torch saves it, and its call."""
    args, kwargs = CALLS[request.param]
    return bytes_of(torch.export.save, torch.export.export(Reshape(), args, kwargs)), (args, kwargs)


def test_read(saved: tuple[bytes, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """load and load_module, of the file, of what pt2kit saves and of what it sanitizes: the inputs are those saved."""
    data, (args, kwargs) = saved
    pt2kit.save(torch.export.load(io.BytesIO(data)), tmp_path / "saved.pt2")
    pt2kit.sanitize(data, tmp_path / "clean.pt2")
    wanted = pytree.tree_leaves((args, kwargs))
    with caplog.at_level(logging.WARNING, "pt2kit"):
        for file in (data, tmp_path / "saved.pt2", tmp_path / "clean.pt2"):
            found = pt2kit.load(file).example_inputs
            assert all(
                torch.equal(torch.as_tensor(a), torch.as_tensor(b))
                for a, b in zip(pytree.tree_leaves(found), wanted, strict=True)
            )
            assert torch.equal(pt2kit.load_module(file)(*args, **kwargs), Reshape()(*args, **kwargs))
            assert torch.equal(pt2kit.load_module(file)(*found[0], **found[1]), Reshape()(*args, **kwargs))
            with pt2kit.open(file) as package:
                assert package.sample_inputs() is not None
    assert "left out" not in caplog.text
