"""Programs whose tensors are the matter: mutated, shared, viewing, strided, empty, sparse, wrapped, fake."""

from __future__ import annotations

import functools

import torch
from tests.bridge.zoo.program import Program, Recipe
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

ALL = ("plain", "strict", "decomp")


class BufferMutation(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))
        self.register_buffer("hidden", torch.ones(2), persistent=False)

    def forward(self, x):
        self.count.add_(1)
        self.hidden.mul_(2)
        return x + self.count * self.hidden


class InputMutation(nn.Module):
    def forward(self, x, y):
        x.add_(1)
        y["a"].mul_(2)
        return x + y["a"]


class ParameterMutation(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        with torch.no_grad():
            self.weight.add_(1)
        return x * self.weight


class Shared(nn.Module):
    """Tied parameters, and buffers that view one storage."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight
        base = torch.arange(12.0)
        self.register_buffer("first", base[:6].view(2, 3))
        self.register_buffer("second", base[3:9])
        self.register_buffer("whole", base)
        self.register_buffer("bits", base.view(torch.int32))
        self.register_buffer("row", self.a.weight.detach()[1])

    def forward(self, x):
        return self.b(self.a(x)) + self.first[0] + self.second[:3] + self.whole[:3] + self.bits[:3] + self.row


class Slices(nn.Module):
    """Buffers that view parts of a storage that no buffer holds whole."""

    def __init__(self):
        super().__init__()
        base = torch.arange(40.0)
        self.register_buffer("left", base[3:9])
        self.register_buffer("right", base[6:12])

    def forward(self, x):
        return x + self.left + self.right


class Strided(nn.Module):
    def __init__(self):
        super().__init__()
        self.turned = nn.Parameter(torch.arange(6.0).view(2, 3).t())
        self.register_buffer("every_other", torch.arange(12.0)[::2])
        self.register_buffer("offset", torch.arange(12.0)[4:10].view(2, 3))
        self.register_buffer("repeated", torch.arange(3.0).expand(2, 3))
        self.register_buffer("channels", torch.randn(1, 2, 2, 3).to(memory_format=torch.channels_last))

    def forward(self, x):
        y = self.turned.t() + self.every_other.view(2, 3) + self.offset + self.repeated + self.channels[0, :, 0]
        return x + y


class Empty(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("none", torch.zeros(0))
        self.register_buffer("wide", torch.zeros(2, 0, 3))
        self.register_buffer("part", torch.arange(4.0)[:0])
        self.register_buffer("whole", torch.arange(4.0))
        self.register_buffer("scalar", torch.tensor(3, dtype=torch.int16))
        self.weight = nn.Parameter(torch.zeros(0, 5))

    def forward(self, x):
        return (
            x + self.none.sum() + self.wide.sum() + self.part.sum() + self.whole.sum() + self.scalar + self.weight.sum()
        )


class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = torch.arange(3.0)
        self.table = [torch.ones(3), torch.zeros(3)]

    def forward(self, x):
        y = x + self.plain + self.table[0] * torch.tensor([1.0, 2.0, 3.0]) + torch.tensor(4)
        return y, self.plain, 7, "text", None, 1.5, True


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(3), requires_grad=False)
        self.b = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.c = nn.Buffer(torch.ones(3))

    def forward(self, x):
        return x * self.a + self.b + self.c


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)
        self.register_buffer("also", torch.ones(2))

    def forward(self, x, y):
        return self.used(x)


class Sparse(nn.Module):
    def __init__(self, layout):
        super().__init__()
        self.register_buffer("table", layout(torch.eye(3)))

    def forward(self, x):
        return self.table.to_dense() @ x


class Conjugate(nn.Module):
    """Tensors whose values are not the bytes of their storage."""

    def __init__(self):
        super().__init__()
        value = torch.tensor([1 + 2j, 3 - 1j])
        self.register_buffer("conjugated", value.conj())
        self.register_buffer("negated", value.conj().imag)
        self.register_buffer("plain", value)

    def forward(self, x):
        return x * self.conjugated, self.negated + x.real, self.plain + x


class Wrapped(nn.Module):
    """A buffer of a tensor subclass."""

    def __init__(self):
        super().__init__()
        self.register_buffer("two", TwoTensor(torch.ones(3), torch.zeros(3)))

    def forward(self, x):
        return x + 1


def fake_weights() -> torch.export.ExportedProgram:
    """A program that was exported without real weights, as one does with models that do not fit."""
    with FakeTensorMode():
        model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2, bias=False))
        model[1].weight = nn.Parameter(model[1].weight)
        return torch.export.export(model, (torch.randn(2, 3),))


def meta_weights() -> torch.export.ExportedProgram:
    """The same on the meta device."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4)).to("meta")
    return torch.export.export(model, (torch.randn(2, 3, device="meta"),))


def wrapped() -> torch.export.ExportedProgram:
    """A state dict with an entry of a tensor subclass that the graph does not take."""
    program = torch.export.export(Unused(), (torch.randn(2), torch.randn(2)))
    program._state_dict["two"] = TwoTensor(torch.ones(3), torch.zeros(3))
    return program


def recipes() -> list[Recipe]:
    """Every model here and how it is exported."""
    three = lambda: (torch.randn(3),)  # noqa: E731
    sparse = {"torch_saves": "sparse tensors have no storage"}
    return [
        Recipe("buffer_mutation", BufferMutation, lambda: (torch.randn(2),), variants=ALL),
        Recipe("input_mutation", InputMutation, lambda: (torch.randn(2), {"a": torch.randn(2)}), variants=ALL),
        Recipe("parameter_mutation", ParameterMutation, three, variants=("plain", "decomp")),
        Recipe("shared_weights", Shared, three, variants=ALL),
        Recipe("slices", Slices, lambda: (torch.randn(6),)),
        Recipe("strided_weights", Strided, lambda: (torch.randn(2, 3),), variants=("plain", "decomp")),
        Recipe(
            "empty_weights",
            Empty,
            three,
            flags={"torch_saves": "an empty view of a storage that no other name has whole"},
        ),
        Recipe("constants", Constants, three, variants=ALL, flags={"torch_reads": "it knows no output that is a text"}),
        Recipe("frozen", Frozen, three),
        Recipe("unused", Unused, lambda: (torch.randn(2), torch.randn(2)), variants=("plain", "strict")),
        Recipe(
            "sparse_coo", functools.partial(Sparse, torch.Tensor.to_sparse), lambda: (torch.randn(3, 2),), flags=sparse
        ),
        Recipe(
            "sparse_csr",
            functools.partial(Sparse, torch.Tensor.to_sparse_csr),
            lambda: (torch.randn(3, 2),),
            flags=sparse,
        ),
        Recipe("conjugate", Conjugate, lambda: (torch.tensor([1j, 2 + 0j]),)),
    ]


def programs() -> list[Program]:
    """Programs of this file that no recipe makes."""
    return [
        Program("fake_weights", fake_weights),
        Program("meta_weights", meta_weights),
        Program("subclass_weight", wrapped, lambda: [((torch.ones(2), torch.ones(2)), {})]),
    ]
