"""Programs of ordinary models: dense, convolutional, recurrent, attention, normalisation, quantized."""

from __future__ import annotations

import functools
import importlib

import torch
from tests.bridge.zoo.program import Recipe
from torch import nn
from torch.export import Dim

F = nn.functional
ALL = ("plain", "strict", "decomp")


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.body(x)


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return F.softmax(self.head(x.mean((2, 3))), dim=-1)


class Lstm(nn.Module):
    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.embedding = nn.Embedding(10, 6, padding_idx=0)
        self.rnn = kind(6, 5, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, ids):
        out, state = self.rnn(self.embedding(ids))
        return out, state


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 3, mode="sum")

    def forward(self, ids, offsets):
        return self.bag(ids, offsets)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.norm = nn.LayerNorm(8)

    def forward(self, x, mask):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        heads = [t.unflatten(-1, (2, 4)).transpose(1, 2) for t in (q, k, v)]
        plain = F.scaled_dot_product_attention(*heads, is_causal=True)
        masked = F.scaled_dot_product_attention(*heads, attn_mask=mask, scale=0.25)
        return (plain + masked).transpose(1, 2).flatten(2)


class MultiHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, activation="gelu")

    def forward(self, x):
        out, weights = self.attention(x, x, x)
        return self.layer(out), weights


class ManyParams(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(50))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Dropout(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, self.training) + torch.rand_like(x)


class UNetBlock(nn.Module):
    """The shape of a diffusion model: time embedding, group norm, skip connection, down and up."""

    def __init__(self):
        super().__init__()
        self.time = nn.Linear(8, 8)
        self.norm = nn.GroupNorm(2, 8)
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.middle = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.out = nn.Conv2d(16, 3, 1)
        self.register_buffer("rates", torch.exp(-torch.arange(4).float()), persistent=False)

    def forward(self, x, t):
        angles = t[:, None].float() * self.rates
        embedding = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        skip = F.silu(self.down(x))
        y = F.silu(self.norm(self.middle(F.avg_pool2d(skip, 2)))) + embedding[:, :, None, None]
        y = torch.cat([self.up(y), skip], dim=1)
        return self.out(F.interpolate(y, scale_factor=2.0, mode="nearest"))


class QuantizedConv(nn.Module):
    """A module after quantization for export: quantized_decomposed operators on weights and activations."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("weight_q", torch.randint(-127, 127, (5, 4), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(5) + 0.1)
        self.register_buffer("zeros", torch.zeros(5, dtype=torch.int64))

    def forward(self, x):
        ops = torch.ops.quantized_decomposed
        q = ops.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
        x = ops.dequantize_per_tensor(q, 0.05, 3, -128, 127, torch.int8)
        x = F.relu(self.conv(x)).mean((2, 3))
        weight = ops.dequantize_per_channel(self.weight_q, self.scales, self.zeros, 0, -128, 127, torch.int8)
        scale, zero = ops.choose_qparams.tensor(x, 0, 255, 1e-5, torch.uint8)
        q = ops.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
        return F.linear(ops.dequantize_per_tensor.tensor(q, scale, zero, 0, 255, torch.uint8), weight)


def _quantized() -> nn.Module:
    importlib.import_module("torch.ao.quantization.fx._decomposed")  # registers the operators
    return QuantizedConv()


def _batch(name: str = "x"):
    return lambda: {name: {0: Dim("batch", min=2, max=64)}}


def recipes() -> list[Recipe]:
    """Every model here and how it is exported."""
    image = lambda: (torch.randn(2, 3, 16, 16),)  # noqa: E731
    ids = lambda: (torch.tensor([[1, 2, 3], [4, 0, 9]]),)  # noqa: E731
    return [
        Recipe("mlp", Mlp, lambda: (torch.randn(3, 4),), variants=ALL),
        Recipe("mlp_bfloat16", lambda: Mlp().bfloat16(), lambda: (torch.randn(3, 4).bfloat16(),)),
        Recipe(
            "mlp_dynamic",
            Mlp,
            lambda: (torch.randn(3, 4),),
            dynamic_shapes=_batch(),
            more=lambda: [((torch.randn(7, 4),), {})],
            variants=ALL,
        ),
        Recipe("convnet", Conv, image, variants=ALL),
        Recipe("convnet_dynamic", Conv, image, dynamic_shapes=_batch(), variants=("plain", "decomp")),
        Recipe("batchnorm_train", Conv, image, train=True, variants=("plain", "decomp")),
        Recipe("lstm", Lstm, ids, variants=("plain", "decomp")),
        Recipe("gru", functools.partial(Lstm, nn.GRU), ids),
        Recipe("embedding_bag", Bag, lambda: (torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2]))),
        Recipe(
            "sdpa",
            Attention,
            lambda: (torch.randn(2, 5, 8), torch.ones(5, 5, dtype=torch.bool).tril()),
            variants=("plain", "decomp"),
        ),
        Recipe("multihead", MultiHead, lambda: (torch.randn(2, 5, 8),), variants=("plain", "decomp")),
        Recipe("many_params", ManyParams, lambda: (torch.randn(3, 2),)),
        Recipe("dropout_train", Dropout, lambda: (torch.randn(3, 2),), train=True, flags={"random": True}),
        Recipe(
            "unet_block",
            UNetBlock,
            lambda: (torch.randn(2, 3, 8, 8), torch.tensor([1, 7])),
            dynamic_shapes=lambda: {"x": {0: Dim("batch", min=2)}, "t": {0: Dim("batch", min=2)}},
            variants=("plain", "decomp"),
        ),
        Recipe("quantized_convnet", _quantized, lambda: (torch.randn(2, 3, 6, 6),), variants=("plain", "decomp")),
    ]
