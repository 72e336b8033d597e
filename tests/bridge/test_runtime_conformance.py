"""Executable conformance: the recorded outputs are those of the torch that is installed."""

from __future__ import annotations

import json

import pytest
import torch
from conformance.score import SUITE
from safetensors.torch import load_file
from torch.utils import _pytree as pytree

MANIFEST = json.loads((SUITE / "manifest.json").read_text())


@pytest.mark.parametrize("name", [row["name"] for row in MANIFEST["programs"]])
def test_outputs_are_those_of_torch(name):
    """Torch loads each program, and computes what is recorded."""
    inputs, outputs = (load_file(SUITE / f"{name}.{kind}.safetensors") for kind in ("inputs", "outputs"))
    program = torch.export.load(SUITE / f"{name}.pt2")
    with torch.no_grad():
        found = pytree.tree_leaves(program.module()(*(inputs[f"input_{n}"] for n in range(len(inputs)))))
    for place, one in enumerate(found):
        torch.testing.assert_close(one, outputs[f"output_{place}"])
