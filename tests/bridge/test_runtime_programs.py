"""Programs that torch exports and runs: sessions compute the same, in control flow, regions, and with writes."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from tests.bridge.runtime_samples import array_of
from tests.packages import bytes_of
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils import _pytree as pytree

import pt2kit
from pt2kit.comparing.runs import error_of
from pt2kit.runtime.session import output_leaves
from pt2kit.runtime.table import find_kernel


class Scan(torch.nn.Module):
    """Running sums and products, from either end."""

    def __init__(self, reverse: bool) -> None:
        super().__init__()
        self.reverse = reverse

    def forward(self, x, start):
        """Scan the rows of x."""
        return scan(lambda carry, row: (carry + row, carry * row), start, x, dim=0, reverse=self.reverse)


class Loop(torch.nn.Module):
    """A loop whose number of turns is data."""

    def forward(self, x, count):
        """Grow x count times."""
        return while_loop(lambda i, x: i < count, lambda i, x: (i + 1, x * 1.5), (torch.tensor(0), x))


class Branch(torch.nn.Module):
    """A branch on data."""

    def forward(self, x, limit):
        """Sine above the limit, cosine below."""
        return torch.cond(x.sum() > limit, lambda x: x.sin(), lambda x: x.cos(), (x,))


class Map(torch.nn.Module):
    """A function of each row."""

    def forward(self, x, y):
        """The sines of sums."""
        return map_over(lambda a, b: (a + b).sin(), x, y)


class Frames(torch.nn.Module):
    """Frames that overlap, cut out of the memory of results that NumPy leaves in another order than torch."""

    def forward(self, x):
        """Choose columns, pad, and cut frames, also out of a view."""
        padded = torch.nn.functional.pad(x[..., torch.arange(6).clamp(max=3)], (0, 2))
        frames = padded.as_strided((2, 3, 4), (padded.shape[1] * 8, 2, 1))
        return frames, padded.transpose(0, 1).as_strided((4,), (3,), 2)


class Regions(torch.nn.Module):
    """Regions of autocast and without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x, y):
        """A product in bfloat16, then a sum in float32."""
        with torch.autocast("cpu", torch.bfloat16):
            product = self.inner(x)
        with torch.no_grad():
            total = product.float() * 2 + y
        return product, total


class Writes(torch.nn.Module):
    """Writes into views, a buffer, and a tensor whose sizes change in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x, y):
        """Add to parts of x."""
        flat = x.clone().view(-1)
        flat[1:3].add_(5)
        flat.view(5, 4).t()[0].mul_(y)
        self.total.add_(flat[:4])
        flat.unsqueeze_(0)
        return flat, self.total * 1


class Overlapping(torch.nn.Module):
    """A write into a buffer that shares memory with another buffer and a parameter."""

    def __init__(self) -> None:
        super().__init__()
        numbers = torch.linspace(0, 1, 20)
        self.register_buffer("written", numbers[2:8].view(2, 3))
        self.register_buffer("read", numbers.as_strided((4, 4), (1, 1)))
        self.fixed = torch.nn.Parameter(numbers[3:7], requires_grad=False)

    def forward(self, x):
        """Add to one, use the others."""
        self.written.add_(1)
        return x @ self.read + self.fixed


ROWS, ONE = torch.linspace(-1, 2, 20).reshape(5, 4), torch.linspace(0, 1, 4)


class Signed(torch.nn.Module):
    """Divisors that are zeros with a sign."""

    def forward(self, x):
        """Return infinite numbers."""
        return (1 + x.abs()) / torch.full_like(x, -0.0)


class Storage(torch.nn.Module):
    """A buffer of every second element of its memory."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.arange(8.0)[::2])

    def forward(self, x):
        """Use elements that the buffer does not have."""
        return x + torch.as_strided(self.seen, [5], [1], 1)


PROGRAMS = {
    "scan": (Scan(False), (ROWS, ONE)),
    "scan reverse": (Scan(True), (ROWS, ONE)),
    "loop": (Loop(), (ROWS, torch.tensor(4))),
    "loop without turns": (Loop(), (ROWS, torch.tensor(0))),
    "branch": (Branch(), (ROWS, torch.tensor(0.0))),
    "other branch": (Branch(), (ROWS, torch.tensor(99.0))),
    "map": (Map(), (ROWS, ONE)),
    "frames": (Frames(), (torch.linspace(0, 1, 24).reshape(2, 3, 4),)),
    "regions": (Regions(), (ROWS, ONE)),
    "writes": (Writes(), (ROWS, torch.linspace(1, 2, 5))),
    "a zero with a sign": (Signed(), (ROWS,)),
    "a view of the memory of a buffer": (Storage(), (torch.ones(2, 5),)),
    "writes to shared memory": (Overlapping(), (ROWS,)),
    "lstm": (torch.nn.LSTM(4, 6, 2, bidirectional=True).eval(), (ROWS,)),
    "gru": (torch.nn.GRU(4, 6, 2, batch_first=True).eval(), (ROWS[None],)),
    "lstm with projections": (torch.nn.LSTM(4, 6, 2, bidirectional=True, proj_size=3).eval(), (ROWS[None],)),
    "transformer": (torch.nn.TransformerEncoderLayer(4, 2, 8).eval(), (ROWS[None],)),
    "convolution": (torch.nn.Conv2d(1, 2, 3, 2, 1, 1, bias=False, padding_mode="reflect"), (ROWS[None, None],)),
}


@pytest.mark.filterwarnings("ignore")  # of torch, about what it exports
@pytest.mark.parametrize("name", PROGRAMS)
def test_sessions_compute_what_torch_does(name):
    """The exported program gives the same in two calls, of which the second starts from changed buffers."""
    module, inputs = PROGRAMS[name]
    exported = torch.export.export(module, inputs)
    file = bytes_of(torch.export.save, exported)
    live = exported.module()
    session = pt2kit.Session(io.BytesIO(file))
    for _ in range(2):
        with torch.no_grad():
            wanted = pytree.tree_leaves(live(*inputs))
        got = output_leaves(session(*map(array_of, inputs)))
        assert len(got) == len(wanted)
        for one, tensor in zip(got, wanted, strict=True):
            expected = array_of(tensor)
            assert (one.dtype, one.shape) == (expected.dtype, expected.shape)
            assert not error_of(expected, one).exceeds
            assert np.isfinite(error_of(expected, one).max)


def test_packed_sequences_are_run():
    """Sequences of several lengths, in both directions, with a projection."""
    torch.manual_seed(0)
    sizes = torch.tensor([3, 2, 2, 1])
    network = torch.nn.LSTM(4, 6, 2, bidirectional=True, proj_size=3)
    data, state = torch.randn(8, 4), [torch.randn(4, 3, 3), torch.randn(4, 3, 6)]
    options = {"has_biases": True, "num_layers": 2, "dropout": 0.0, "train": False, "bidirectional": True}
    weights = network._flat_weights
    with torch.no_grad():
        wanted = torch.ops.aten.lstm.data(data, sizes, state, weights, *options.values())
    kernel = find_kernel("aten.lstm.data")
    assert kernel is not None
    arrays = [array_of(one) for one in weights]
    got = kernel(array_of(data), array_of(sizes), [array_of(one) for one in state], params=arrays, **options)
    for one, tensor in zip(got, wanted, strict=True):
        assert not error_of(array_of(tensor), one).exceeds


def test_decomposed_solvers_are_run():
    """Solvers and determinants run as `run_decompositions` writes them."""

    class Solve(torch.nn.Module):
        def forward(self, a, b):
            return torch.linalg.solve(a, b), torch.linalg.det(a), torch.linalg.inv(a)

    a, b = torch.eye(3) + torch.linspace(0, 1, 9).reshape(3, 3), torch.ones(3, 2)
    program = torch.export.export(Solve(), (a, b)).run_decompositions()
    got = pt2kit.run(bytes_of(torch.export.save, program), array_of(a), array_of(b))
    for one, tensor in zip(got, program.module()(a, b), strict=True):
        assert not error_of(array_of(tensor), one).exceeds


ASKED = {
    "cumsum": lambda x: x.cumsum(1, dtype=torch.float16),
    "cumprod": lambda x: x.cumprod(1, dtype=torch.float32),
    "softmax": lambda x: x.softmax(1, dtype=torch.float16),
    "sum": lambda x: x.sum(1, dtype=torch.int8),
    "mean": lambda x: x.mean(1, dtype=torch.float64),
    "norm": lambda x: torch.linalg.vector_norm(x, dtype=torch.float64),
    "svd": lambda x: torch.linalg.svd(x.T, full_matrices=False)[0].square().sum(),
    "cross": lambda x: torch.ops.aten.cross.default(x[:3, :4], x[:3, 4:8]),
}
"""Calls with another type than that of the operand, or without an argument that another overload has a default for."""


@pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim")
@pytest.mark.parametrize("is_decomposed", [False, True])
@pytest.mark.parametrize("name", ASKED)
def test_types_and_defaults_are_those_of_the_overload(name, is_decomposed):
    """The operand is converted first, and an argument that is left out has the default of the overload."""

    class Call(torch.nn.Module):
        def forward(self, x):
            return ASKED[name](x)

    x = 60 * torch.sin(torch.arange(200.0)).reshape(5, 40)
    program = torch.export.export(Call(), (x,), strict=False)
    program = program.run_decompositions() if is_decomposed else program
    expected, got = program.module()(x), pt2kit.run(bytes_of(torch.export.save, program), array_of(x))
    assert expected.shape == got.shape
    assert not error_of(array_of(expected), got).exceeds
