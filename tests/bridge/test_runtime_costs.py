"""Costs against torch: FLOPs of `torch.utils.flop_counter` on real exports, and memory that a session allocates."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch
from tests.bridge.runtime_samples import array_of
from tests.packages import bytes_of
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop

import pt2kit
from pt2kit.bridge.torch_names import schema_version


class Attend(nn.Module):
    """Attention of torch, with its own kernel for CPUs."""

    def forward(self, q, k, v):
        """Attend without a mask."""
        return nn.functional.scaled_dot_product_attention(q, k, v)


class Products(nn.Module):
    """Products of matrices, batches and vectors."""

    def forward(self, a, b, bias):
        """Combine most operators of products."""
        c = torch.bmm(a, b)
        d = torch.baddbmm(bias, a, b) + torch.einsum("bij,bjk->bik", a, b)
        return torch.matmul(a, b[0]) + c + d + torch.addmm(bias, a[0], b[0])


class Einsums(nn.Module):
    """Einsums of which some only multiply, or sum over a dimension of one operand, and a chain of three."""

    def forward(self, a, b, c):
        """Combine them."""
        d = torch.einsum("bij,bij->bij", a, a) + torch.einsum("bij,k->bij", a, c)
        return d + torch.einsum("bij,jk,lk->bil", a, b, b) + torch.einsum("bij,bij->b", a, a)[:, None, None]


class Powers(nn.Module):
    """Powers of matrices, which torch computes by squares."""

    def forward(self, a):
        """Add a power of one, of two, and of more products."""
        b = a @ a.mT
        return b.matrix_power(1) + b.matrix_power(2) + torch.linalg.matrix_power(b, 7)


class Block(nn.Module):
    """A convolutional block with a residual and groups."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(8, 16, 3, padding=1)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.norm = nn.BatchNorm2d(16)
        self.short = nn.Conv2d(8, 16, 1)

    def forward(self, x):
        """Two ways, added."""
        return torch.relu(self.norm(self.depthwise(self.first(x))) + self.short(x))


class UNet(nn.Module):
    """Down and up again, with a skip connection."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.up = nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)
        self.last = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        """One level."""
        low = torch.relu(self.down(x))
        return self.last(torch.cat([x, self.up(torch.relu(self.middle(low)))], 1))


class Language(nn.Module):
    """A small language model: embedding, two blocks of attention, a head of tied weights."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True) for _ in range(2))
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        """Logits of the next tokens."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class LSTM(nn.Module):
    """A recurrent network of cells, as loops over time are exported."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(8, 16)

    def forward(self, x):
        """Run over the first dimension."""
        h = c = torch.zeros(x.shape[1], 16)
        for step in range(x.shape[0]):
            h, c = self.cell(x[step], (h, c))
        return h


class Patches(nn.Module):
    """The stem and one block of a vision transformer."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 4, stride=4)
        self.attention = nn.MultiheadAttention(24, 3, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 96), nn.GELU(), nn.Linear(96, 24))

    def forward(self, x):
        """Patches, attention, MLP."""
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.mlp(x)


def _mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def _conv1d():
    return nn.Sequential(nn.Conv1d(4, 8, 5), nn.ReLU(), nn.ConvTranspose1d(8, 4, 5, groups=2))


def _conv3d():
    return nn.Sequential(nn.Conv3d(2, 4, 3), nn.ReLU(), nn.ConvTranspose3d(4, 2, 3, stride=2))


def _sizes(*sizes):
    return torch.randn(*sizes)


class SharedHeads(nn.Module):
    """Attention whose keys and values are repeated for the heads that share them."""

    def forward(self, q, k, v):
        """Attend with four heads per key."""
        k, v = (one[:, :, None].expand(-1, -1, 4, -1, -1).reshape(q.shape) for one in (k + 1, v + 1))
        return nn.functional.scaled_dot_product_attention(q, k, v)


MODELS = {
    "mlp": (_mlp, lambda n: (_sizes(n, 16),)),
    "convolutions": (Block, lambda n: (_sizes(n, 8, 12, 12),)),
    "conv1d": (_conv1d, lambda n: (_sizes(n, 4, 20),)),
    "conv3d": (_conv3d, lambda n: (_sizes(n, 2, 6, 6, 6),)),
    "unet": (UNet, lambda n: (_sizes(n, 3, 16, 16),)),
    "attention": (Attend, lambda n: (_sizes(n, 2, 6, 8), _sizes(n, 2, 10, 8), _sizes(n, 2, 10, 8))),
    "shared heads": (SharedHeads, lambda n: (_sizes(n, 8, 6, 8), _sizes(n, 2, 6, 8), _sizes(n, 2, 6, 8))),
    "language": (Language, lambda n: (torch.randint(0, 50, (n, 7)),)),
    "vit": (Patches, lambda n: (_sizes(n, 3, 16, 16),)),
    "products": (Products, lambda n: (_sizes(n, 4, 5), _sizes(n, 5, 6), _sizes(4, 6))),
    "powers": (Powers, lambda n: (_sizes(n, 4, 5),)),
    "einsums": (Einsums, lambda n: (_sizes(n, 4, 5), _sizes(5, 6), _sizes(6))),
    "lstm cells": (LSTM, lambda n: (_sizes(3, n, 8),)),
    "linear of a sequence": (lambda: nn.Linear(8, 3), lambda n: (_sizes(n, 7, 8),)),
}
BATCH = {"lstm cells": 1}
FIXED = {"lstm": (lambda: nn.LSTM(8, 16, num_layers=2), lambda: (_sizes(5, 3, 8),))}
CPU_ATTENTION = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, out_shape=None, **__: sdpa_flop(
        q, k, v
    )
}
"""Formulas that the counter of torch 2.13 omits."""


def exported(name, dynamic=True):
    """A model of the table, exported with a dynamic batch, with its inputs and the bytes of its file."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]
    args = inputs(3)
    batch = BATCH.get(name, 0)
    dims = tuple({batch: torch.export.Dim.DYNAMIC} if arg.dim() > 2 or arg.shape[0] == 3 else None for arg in args)
    program = torch.export.export(model().eval(), args, dynamic_shapes=dims if dynamic else None, strict=False)
    return program, inputs, bytes_of(torch.export.save, program)


def counted(program, args):
    """Return torch's count for a call of a program."""
    with torch.no_grad(), FlopCounterMode(display=False, custom_mapping=CPU_ATTENTION) as counter:
        program.module()(*args)
    return counter.get_total_flops()


@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("name", MODELS)
def test_flops_are_those_of_torch(name, training):
    """One formula gives the counts of torch for several batch sizes, in both dialects."""
    program, inputs, data = exported(name)
    if not training:
        program = program.run_decompositions()
        data = bytes_of(torch.export.save, program)
    cost = pt2kit.cost(data)
    assert not cost.uncounted
    [symbol] = cost.symbols
    for size in (2, 3, 8):
        at = cost.at({symbol: size})
        assert at.total.flops == counted(program, inputs(size))
        weights = {id(one): one for one in program.state_dict.values()}
        assert at.total.parameters == sum(one.numel() for one in weights.values() if isinstance(one, nn.Parameter))


@pytest.mark.filterwarnings("ignore:The tensor attributes")
def test_recurrent_layer_counts_its_products():
    """A whole LSTM is one node: torch counts its cells one by one, where they are decomposed."""
    torch.manual_seed(0)
    model, inputs = FIXED["lstm"]
    program = torch.export.export(model().eval(), inputs())
    file = bytes_of(torch.export.save, program)
    decomposed = program.run_decompositions()
    assert pt2kit.cost(file).total.flops == counted(decomposed, inputs())


class Mapped(nn.Module):
    """Products of vectors of a batch with weights, of weights alone, and of each vector with all others."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        """Map the products over the batch, twice."""

        def product(v, w):
            return (self.weight @ v) * (w @ self.weight @ v).sum() + (self.weight @ self.weight).sum()

        return torch.vmap(lambda v: torch.vmap(product, in_dims=(None, 0))(v, x))(x)


@pytest.mark.skipif(schema_version() < (8, 20), reason="this torch does not write regions of vmap")
def test_products_in_vmap_count_for_each_entry():
    """Sizes of values in a region of vmap do not show its batch; what does not depend on the entry counts once."""
    program = torch.export.export(Mapped(), (_sizes(3, 8),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    cost = pt2kit.cost(bytes_of(torch.export.save, program))
    [symbol] = cost.symbols
    for size in (2, 5):
        assert cost.at({symbol: size}).total.flops == counted(program, (_sizes(size, 8),))
    assert cost.at({symbol: 4}).peak >= 4 * 4 * 8 * 4  # the sum of all pairs is the largest


def measured(data, args):
    """The most bytes of results that a session has allocated at one time."""
    session = pt2kit.Session(data)
    leaves = [array_of(one) for one in pytree.tree_leaves(args)]
    given = {id(_base(one)) for one in (*leaves, *session.state.values())}
    alive: dict[int, tuple[weakref.ref[np.ndarray], int]] = {}
    most = 0

    def observe(number, values, _):
        nonlocal most
        for value in values:
            base = _base(value) if isinstance(value, np.ndarray) else None
            if base is not None and id(base) not in given:
                alive[id(base)] = weakref.ref(base), base.nbytes
        most = max(most, sum(size for one, size in alive.values() if one() is not None))

    session.run_leaves(leaves, observe)
    return most


def _base(array):
    """The array that owns the memory; one of other strides refers to it through an object that is no array."""
    while isinstance(inner := getattr(array.base, "base", None), np.ndarray) or isinstance(array.base, np.ndarray):
        array = array.base if isinstance(array.base, np.ndarray) else inner
    return array


@pytest.mark.parametrize("name", MODELS)
def test_peak_memory_is_that_of_a_run(name):
    """The formula of the peak, at two batch sizes, is within a tenth of what a session allocates for results."""
    _, inputs, data = exported(name)
    cost = pt2kit.cost(data)
    [symbol] = cost.symbols
    for size in (2, 16):
        found, expected = cost.at({symbol: size}).peak, measured(data, inputs(size))
        assert abs(found - expected) <= 0.1 * expected, (found, expected)
