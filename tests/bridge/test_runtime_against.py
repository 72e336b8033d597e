"""Runs against torch and against recorded outputs: equal files agree, and the first wrong kernel is named."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import torch
from tests import samples
from tests.cli.run import pt2

import pt2kit
from pt2kit.bridge.against_torch import compare_with_torch
from pt2kit.errors import InputError
from pt2kit.runtime import table
from pt2kit.runtime.inputs import random_inputs
from pt2kit.runtime.session import output_leaves, write_outputs

RELEASE = "2.13.0"
NAMES = ("mlp", "convnet", "dynamic_two_dims", "sdpa", "multi_output", "dynamic_batch", "buffer_mutation")
FOUND = [name for name in NAMES if samples.sample(RELEASE, name).exists()]


@pytest.mark.parametrize("name", FOUND)
def test_sessions_agree_with_torch(name):
    """All outputs, and the results of the nodes on the way."""
    found = compare_with_torch(samples.sample(RELEASE, name))
    assert found.same, str(found)
    assert found.first is None
    assert found.nodes


def test_a_wrong_kernel_is_reported_first(monkeypatch):
    """The first node whose numbers differ from torch's is that of the kernel."""
    monkeypatch.setitem(table._REGISTERED, "aten.relu.default", lambda self: np.abs(self))
    found = compare_with_torch(samples.sample(RELEASE, "dynamic_batch"))
    assert not found.same
    assert found.first is not None
    assert found.first.operator == "aten.relu.default"


class Fill(torch.nn.Module):
    """Memory that is allocated, then written."""

    def forward(self, x):
        """Return the sum of two copies."""
        made = (torch.empty_like(x), x.new_empty(x.shape), torch.empty_strided(x.shape, x.stride()))
        return sum(one.copy_(x) for one in made)


def test_uninitialized_memory_does_not_differ():
    """Nodes that return memory before it is written are not reported, whatever torch has there."""
    file = io.BytesIO()
    torch.export.save(torch.export.export(Fill(), (torch.ones(3, 2),)), file)
    torch.use_deterministic_algorithms(True)  # Fills the memory with NaN.
    try:
        found = compare_with_torch(file)
    finally:
        torch.use_deterministic_algorithms(False)
    assert found.same
    assert found.first is None


def test_recorded_outputs_are_compared(tmp_path):
    """Outputs in an .npz or .safetensors file or a folder; other numbers are reported, other counts refused."""
    path = samples.sample(RELEASE, "dynamic_batch")
    session = pt2kit.Session(path)
    [x] = random_inputs(session.convention, 3)
    outputs = output_leaves(session(x))
    assert pt2kit.compare_runs(path, outputs, [x]).same
    assert not pt2kit.compare_runs(path, [outputs[0] + np.float32(0.1)], [x]).same
    with pytest.raises(InputError, match=r"expected 1, as .* has, got 2"):
        pt2kit.compare_runs(path, [*outputs, x], [x])
    np.savez(tmp_path / "in.npz", x=x)
    write_outputs(outputs, str(tmp_path / "folder"))
    write_outputs(outputs, str(tmp_path / "out.safetensors"))
    for name in ("folder", "out.safetensors"):
        done = pt2("diff", path, "--run", "--input", tmp_path / "in.npz", "--against", tmp_path / name, "--json")
        assert (done.code, json.loads(done.out)["same"]) == (0, True), done.err
    write_outputs([outputs[0] * 2], str(tmp_path / "out.safetensors"))
    wrong = ("--input", tmp_path / "in.npz", "--against", tmp_path / "out.safetensors")
    assert pt2("diff", path, "--run", *wrong).code == 1


def test_command_compares_with_torch():
    """`pt2 diff FILE --run --against torch`."""
    done = pt2("diff", samples.sample(RELEASE, "dynamic_batch"), "--run", "--against", "torch")
    assert done.code == 0, done.err
    assert "1 output: equal" in done.out
    assert pt2("diff", samples.sample(RELEASE, "dynamic_batch"), "--against", "torch").code == 2
