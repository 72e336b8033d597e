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
from pt2kit.schema.operators import find_operator

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


class Several(torch.nn.Module):
    """Results that another implementation can give differently: ties, signs, random numbers."""

    def forward(self, x, m):
        """Return numbers that depend on each choice."""
        _, top = torch.topk(x, 2)
        _, last = torch.sort(x, 0, descending=True)
        places = (top, last, x.argmax(), x.argmin(1), x.max(1).indices, x.median(0).indices, x.kthvalue(3).indices)
        even = m + m.T
        q, r = torch.linalg.qr(m)
        u, s, v = torch.linalg.svd(m)
        values, vectors = torch.linalg.eigh(even)
        factors = (q, r, u, s, v, values, vectors, torch.linalg.eig(even).eigenvectors.real)
        chance = (torch.rand_like(x), torch.nn.functional.dropout(x, training=True), torch.randperm(5))
        alone = (torch.topk(x, 2).values, x.max(1).values, torch.linalg.svd(m).S, m.max(1).values.argmax())
        masked = torch.nn.functional.scaled_dot_product_attention(m[None], m[None], m[None])
        return places, tuple(one.cos() for one in factors), tuple(one * 2 for one in chance), alone, masked


@pytest.fixture(scope="module")
def several():
    """A program whose answers are not unique, and inputs with equal elements."""
    file = io.BytesIO()
    x = torch.tensor([[0.5, 1, 1, 1, 0.5], [1, 1, 0.5, 0.5, 1], [2, 2, 2, 2, 2]] * 7)
    inputs = x, torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    torch.export.save(torch.export.export(Several(), inputs), file)
    return file, [one.numpy() for one in inputs]


def test_answers_that_are_not_unique_do_not_differ(several):
    """Those of torch are right as well: neither these nodes nor later ones are reported."""
    file, inputs = several
    found = compare_with_torch(file, inputs)
    assert found.same, str(found)
    assert found.first is None, str(found)


@pytest.mark.parametrize("operator", ["topk.default", "linalg_eigh.default", "max.dim", "linalg_qr.default"])
def test_wrong_answers_differ_where_several_are_right(several, operator, monkeypatch):
    """Places of other elements, and vectors whose product is another matrix."""
    name = f"aten.{operator}"
    kernel, described = table.find_kernel(name), find_operator(name, "2.13")
    assert kernel is not None
    assert described is not None
    right = table.binding(kernel, described)

    def wrong(*args, **options):
        *others, last = right(*args, **options)
        return *others, last * 0 + (0 if "linalg" not in operator else 1)

    monkeypatch.setitem(table._REGISTERED, name, wrong)
    file, inputs = several
    first = compare_with_torch(file, inputs).first
    assert first is not None
    assert first.operator == name


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
