"""Programs that were exported with another default dtype than float32, which their files do not record."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from tests.packages import edited, errors

import pt2kit
from pt2kit.schema import ScalarType

DTYPES = [torch.float64, torch.bfloat16, torch.float16]


class Positions(torch.nn.Module):
    """A layer whose floats come from parameters, ints and numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        places = torch.arange(4) / 3
        made = torch.ones(4) + torch.full((4,), 1.5) + torch.arange(0, 1, 0.25) + torch.eye(4)
        return self.linear(x) + places, made, 10000 ** (ids / 7), ids * 2.5, torch.sqrt(ids), (ids > 1) / 3


@pytest.fixture(params=DTYPES, ids=str)
def exported(request: pytest.FixtureRequest) -> Iterator[tuple[torch.export.ExportedProgram, bytes]]:
    """A program exported with a default dtype, and its file."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    try:
        program = torch.export.export(Positions(), (torch.randn(2, 4), torch.tensor([1, 2, 3, 4])))
        file = io.BytesIO()
        torch.export.save(program, file)
        yield program, file.getvalue()
    finally:
        torch.set_default_dtype(before)


def test_check(exported: tuple[torch.export.ExportedProgram, bytes]) -> None:
    """A file of torch has no errors; a wrong type is one, and so is float32, which the default is not."""
    _, file = exported
    assert errors(pt2kit.open(file)) == []
    for wrong in (ScalarType.LONG, ScalarType.FLOAT):

        def change(program: Any, dtype: int = wrong) -> None:
            graph = program["graph_module"]["graph"]
            node = next(node for node in graph["nodes"] if node["target"].endswith("sqrt.default"))
            graph["tensor_values"][node["outputs"][0]["as_tensor"]["name"]]["dtype"] = dtype

        [error] = errors(pt2kit.open(edited(file, change)))
        assert "T11" in error
        assert "sqrt" in error


def test_run(exported: tuple[torch.export.ExportedProgram, bytes]) -> None:
    """A session computes in the types that the file declares, as precisely as torch."""
    program, file = exported
    inputs = (torch.randn(2, 4), torch.tensor([1, 2, 3, 4]))
    if inputs[0].dtype == torch.bfloat16:
        given = [inputs[0].view(torch.int16).numpy().view(pt2kit.Session(file).inputs[0].dtype), inputs[1].numpy()]
    else:
        given = [one.numpy() for one in inputs]
    found = pt2kit.Session(file)(*given)
    wanted = program.module()(*inputs)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert str(one.dtype) == str(other.dtype).removeprefix("torch.")
        torch.testing.assert_close(torch.from_numpy(np.asarray(one, float)).to(other.dtype), other)
