"""Programs over unusual values: every dtype, infinities, complex numbers, big integers, layouts, devices, metadata."""

from __future__ import annotations

import functools

import numpy as np
import torch
from tests.bridge.zoo.program import Program, Recipe
from torch import nn

FLOAT8 = (
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
)
DTYPES = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
    torch.bool,
    torch.bfloat16,
    torch.uint16,
    torch.uint32,
    torch.uint64,
)


class Dtypes(nn.Module):
    def __init__(self, dtypes):
        super().__init__()
        self.names = []
        for dtype in dtypes:
            name = str(dtype).replace("torch.", "t_")
            self.names.append(name)
            self.register_buffer(name, torch.tensor([0, 1, 2]).to(dtype))

    def forward(self, x):
        return [x.to(getattr(self, name).dtype) for name in self.names], [
            getattr(self, name).view(getattr(self, name).dtype) for name in self.names
        ]


class Casts(nn.Module):
    def forward(self, x):
        return x.to(torch.float8_e4m3fn).to(torch.float32) + x.to(torch.bfloat16).to(torch.float8_e5m2).to(
            torch.float32
        )


class Infinities(nn.Module):
    def forward(self, x):
        y = torch.where(x > 0, float("inf"), float("-inf")).clamp(max=float("inf"))
        z = torch.nan_to_num(y, nan=1e30, posinf=1e-300, neginf=float("nan"))
        return y, z * -0.0, x.masked_fill(x > 0, float("-inf")), torch.full((2,), float("nan")), x * 1e22 + 1.5e-7


class StridedArray(nn.Module):
    """A constant out of NumPy, every second element of an array."""

    def forward(self, x):
        return x + torch.from_numpy(np.arange(8, dtype=np.float32)[::2])


class Complex(nn.Module):
    def forward(self, x):
        return x * (1 + 2j) + complex(float("inf"), -0.0), torch.fft.fft(x).real, torch.view_as_real(x * 1j)


class Integers(nn.Module):
    def forward(self, x):
        return x + (2**62), x & -1, x.clamp(min=-(2**63), max=2**63 - 1), x << 3, ~x


class OptionalArguments(nn.Module):
    def forward(self, x):
        return (
            x.sum(),
            x.sum(None),
            x.sum((0, 1), keepdim=True),
            x.mean(dim=[], dtype=torch.float64),
            x.roll([1, -1], [0, 1]),
            x.permute(1, 0),
            x.expand(2, -1, -1),
            x.clamp(None, 1),
            x[:, None, 1:],
            x[[0, 1], :],
            x[..., torch.tensor([0, 2])],
            torch.nn.functional.pad(x, [1, 2], value=None),
            x.squeeze(),
            x.std(0, correction=0),
            x.var((0,)),
        )


class Indexing(nn.Module):
    def forward(self, x, i):
        y = x.clone()
        y[i, 1] = 5
        y[:, i] = y[i]
        return y, x[i, :, None], x.gather(0, i[:, None]), nn.functional.one_hot(i, 5), x.index_select(1, i), x[i, i]


class Layouts(nn.Module):
    def forward(self, x):
        y = x.contiguous(memory_format=torch.channels_last)
        z = torch.empty_like(y, memory_format=torch.preserve_format).fill_(1)
        w = torch.zeros(2, dtype=torch.float64, layout=torch.strided, device="cpu", pin_memory=False)
        return (
            y,
            z.to(memory_format=torch.contiguous_format),
            w.to("cpu"),
            y.clone(memory_format=torch.contiguous_format),
        )


class Foreach(nn.Module):
    def forward(self, x, y):
        return torch._foreach_add([x, y], [y, x], alpha=2), torch._foreach_mul([x, y], [1.5, 2.5])


class Einsum(nn.Module):
    def forward(self, x, y):
        return torch.einsum("ij,kj->ik", x, y), torch.block_diag(x, y), torch.cartesian_prod(x[0], y[0])


def with_metadata() -> torch.export.ExportedProgram:
    """A program whose nodes carry everything that metadata can."""
    program = torch.export.export(Integers(), (torch.tensor([1, 2]),))
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    nodes[0].meta["custom"] = {"a": [1, None, "ü;,"], "b": {"c": True}}
    nodes[1].meta["source_fn_stack"] = [("add", torch.add), ("l__self___a", nn.Linear), ("f", "some.name")]
    nodes[1].meta["torch_fn"] = ("add_1", "function.add")
    nodes[2].meta["nn_module_stack"] = {"L['self']": ("", "a.B"), "k": ("list[0](1, 2)", "m.C")}
    nodes[2].meta["stack_trace"] = 'File "a;b,c.py", line 1, in é\n    x = "\\n"\u2028'
    nodes[3].meta["from_node"] = None
    nodes[3].meta["custom"] = {}
    program.graph_module.meta["custom"] = {"made by": "a test", "list": [1.5, "x"]}
    return program


def with_separators() -> torch.export.ExportedProgram:
    """A program whose metadata has names with the characters that torch puts between names."""
    program = torch.export.export(Integers(), (torch.tensor([1, 2]),))
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    nodes[1].meta["source_fn_stack"] = [("a,b", "c;d"), ("e%2C", nn.Linear)]
    nodes[1].meta["torch_fn"] = ("add;1", "function.add")
    nodes[2].meta["nn_module_stack"] = {"x,y;z": ("p[1", "m.C(x;y)"), "k": ("é%2C", "m.D")}
    return program


def decomposed_twice() -> torch.export.ExportedProgram:
    """A program whose nodes come from nodes that come from nodes."""
    program = torch.export.export(Casts(), (torch.randn(3),))
    return program.run_decompositions().run_decompositions()


def recipes() -> list[Recipe]:
    """Every model here and how it is exported."""
    three = lambda: (torch.tensor([-1.0, 0.5, 2.0]),)  # noqa: E731
    matrix = lambda: (torch.randn(3, 4),)  # noqa: E731
    two = lambda: (torch.randn(2, 3), torch.randn(2, 3))  # noqa: E731
    return [
        Recipe("strided_array", StridedArray, lambda: (torch.randn(4),)),
        Recipe("dtypes", functools.partial(Dtypes, DTYPES), lambda: (torch.tensor([0, 1, 2]),)),
        Recipe("float8", functools.partial(Dtypes, FLOAT8), three),
        Recipe("casts", Casts, three, variants=("plain", "decomp")),
        Recipe("inf_nan", Infinities, three, variants=("plain", "decomp")),
        Recipe("complex", Complex, lambda: (torch.tensor([1j, 2 + 0j]),), variants=("plain", "decomp")),
        Recipe("integers", Integers, lambda: (torch.tensor([1, -2]),)),
        Recipe("optional_arguments", OptionalArguments, matrix, variants=("plain", "strict", "decomp")),
        Recipe(
            "indexing", Indexing, lambda: (torch.randn(3, 3), torch.tensor([0, 2, 1])), variants=("plain", "decomp")
        ),
        Recipe("layouts", Layouts, lambda: (torch.randn(1, 2, 3, 4),), variants=("plain", "decomp")),
        Recipe("foreach", Foreach, two),
        Recipe("einsum", Einsum, two, variants=("plain", "decomp")),
    ]


def programs() -> list[Program]:
    """Programs of this file that no recipe makes."""
    return [
        Program("metadata", with_metadata, lambda: [((torch.tensor([1, 2]),), {})]),
        Program("metadata_separators", with_separators),
        Program("decomposed_twice", decomposed_twice, lambda: [((torch.randn(3),), {})]),
    ]
