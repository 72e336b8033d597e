"""Regions of vmap: sessions compute what torch computes, entry by entry."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch
from torch.func import vmap
from torch.utils import _pytree as pytree

import pt2kit
from pt2kit.bridge.torch_names import schema_version
from pt2kit.runtime.session import output_leaves

pytestmark = pytest.mark.skipif(schema_version() < (8, 20), reason="this torch does not write regions of vmap")


class Mapped(torch.nn.Module):
    """A function of tensors and of a weight."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(torch.randn(4, 4))

    def forward(self, *inputs):
        """Call the function."""
        return self.function(self.weight, *inputs)


def written_once(x):
    """A tensor that does not depend on the batch is written once, whatever the batch is."""
    count = torch.zeros(3)
    count.add_(1)
    return x + count


ROWS = torch.randn(5, 3)
CASES = {
    "product": (lambda w, x, y: vmap(lambda a, b: a @ w + b.sum())(x, y), torch.randn(3, 4), torch.randn(3, 2)),
    "one operand": (lambda w, x, y: vmap(lambda a, b: a + b, in_dims=(0, None))(x, y), ROWS, torch.randn(3)),
    "nested": (lambda w, x, y: vmap(lambda a: vmap(lambda b: (a * b).sum())(y))(x), ROWS, torch.randn(4, 3)),
    "not batched": (lambda w, x: vmap(lambda a: (a, torch.ones(3) * 2))(x), ROWS),
    "written once": (lambda w, x: vmap(written_once)(x), ROWS),
    "written": (lambda w, x: vmap(lambda a: (a.clone().add_(1).mul_(2), a.softmax(-1)))(x), ROWS),
    "indices": (lambda w, x, i: vmap(lambda a, j: a[j])(x, i), ROWS, torch.randint(0, 3, (5, 2))),
    "linear": (lambda w, x: vmap(torch.nn.functional.linear, in_dims=(0, None))(x, w), torch.randn(5, 2, 4)),
    "parts": (lambda w, x: vmap(lambda a: a * 2, chunk_size=2)(x), ROWS),
    "lists": (lambda w, x: vmap(lambda a: a.split(1))(x), ROWS),
    "inner": (lambda w, x: vmap(lambda a: (a * 2 + 1).t().flatten().sin(), in_dims=1)(x), torch.randn(2, 5, 4)),
    "in turn": (lambda w, x: vmap(lambda a: a.cumsum(0))(vmap(lambda a: a.t())(x)), torch.randn(5, 3, 2)),
}


def exported(function, *inputs):
    program, file = torch.export.export(Mapped(function), inputs), io.BytesIO()
    torch.export.save(program, file)
    assert any("_add_batch_dim" in str(node.target) for node in program.graph.nodes)
    return program, file.getvalue()


@pytest.mark.parametrize("name", CASES)
def test_sessions_compute_the_same(name):
    function: Any = CASES[name][0]
    inputs: Any = CASES[name][1:]
    program, file = exported(function, *inputs)
    assert pt2kit.check(file).errors == []
    expected = pytree.tree_leaves(program.module()(*inputs))
    got = output_leaves(pt2kit.Session(file).run_leaves([one.numpy() for one in inputs]))
    assert len(expected) == len(got)
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("randomness", "distinct"), [("different", 5), ("same", 1)])
def test_random_numbers_of_entries(randomness, distinct):
    """Entries draw numbers of their own only if the program asks for that."""
    _, file = exported(lambda w, x: vmap(lambda a: torch.rand(3) + a * 0, randomness=randomness)(x), ROWS)
    rows = np.asarray(output_leaves(pt2kit.Session(file, seed=1).run_leaves([ROWS.numpy()]))[0])
    assert len({tuple(row) for row in rows}) == distinct
