"""Whole programs in another element type and with dynamic sizes, compared with torch doing the same to the model."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.packages import bytes_of
from torch import nn
from torch.nn import functional

import pt2kit
from pt2kit.editing import passes
from pt2kit.errors import GraphError

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes .* were assigned during export")


class Block(nn.Module):
    """A residual block with a strided convolution."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, padding=1)
        self.short = nn.Conv2d(before, after, 1, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        return functional.relu(self.second(functional.relu(self.norm(self.first(x)))) + self.short(x))


class Cnn(nn.Module):
    """A small residual network."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(3, 8), Block(8, 16))
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        return self.head(torch.flatten(functional.adaptive_avg_pool2d(self.blocks(x), 1), 1))


class Vit(nn.Module):
    """A small vision transformer: patches, a class token that is expanded to the batch, encoder layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.positions = nn.Parameter(torch.randn(1, 17, 16))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True) for _ in range(2))
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        n = x.shape[0]
        x = self.patches(x).reshape(n, 16, 16).permute(0, 2, 1)
        x = torch.cat([self.token.expand(n, -1, -1), x], dim=1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0])


class Decoder(nn.Module):
    """A small language model: embedding, rotary positions, grouped causal attention, gated feed-forward, RMS norm."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.q, self.k, self.v, self.o = (nn.Linear(32, n, bias=False) for n in (32, 16, 16, 32))
        self.gate, self.up, self.down = nn.Linear(32, 64), nn.Linear(32, 64), nn.Linear(64, 32)
        self.scale = nn.Parameter(torch.ones(32))

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize in float32, as language models do."""
        wide = x.to(torch.float32)
        return self.scale * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        """Apply rotary positions."""
        positions = torch.arange(x.shape[2])[:, None] * (10000 ** (-torch.arange(0, 8, 2) / 8))
        angles = torch.cat([positions, positions], -1)
        half = torch.cat([-x[..., 4:], x[..., :4]], -1)
        return x * angles.cos().to(x.dtype) + half * angles.sin().to(x.dtype)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return scores of the next token."""
        n, length = ids.shape
        x = self.embed(ids)
        h = self.norm(x)
        q = self.turned(self.q(h).view(n, length, 4, 8).transpose(1, 2))
        k = self.turned(self.k(h).view(n, length, 2, 8).transpose(1, 2)).repeat_interleave(2, dim=1)
        v = self.v(h).view(n, length, 2, 8).transpose(1, 2).repeat_interleave(2, dim=1)
        a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(n, length, 32))
        h = self.norm(x)
        return functional.linear(x + self.down(functional.silu(self.gate(h)) * self.up(h)), self.embed.weight)


class Recurrent(nn.Module):
    """A bidirectional LSTM and its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the last output."""
        return self.rnn(x)[0][:, -1]


class Views(nn.Module):
    """Views with the batch in their sizes: of what has strides of the kernel's choice, and in a region of autocast."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 1)
        self.positions = nn.Parameter(torch.randn(1, 16, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sums of heads."""
        first, second = self.conv(x.transpose(2, 3)).chunk(2, dim=1)
        y = (first + second.flip(3)).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4) + self.positions
        with torch.autocast("cpu", torch.bfloat16, enabled=False):
            y = y.reshape(x.shape[0] * 2, 8, 4).cumsum(1)
        return y.reshape(x.shape[0], 2, 8, 4).sum(2)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], torch.Tensor]]] = {
    "cnn": (Cnn, lambda n: torch.randn(n, 3, 16, 16)),
    "vit": (Vit, lambda n: torch.randn(n, 3, 16, 16)),
    "decoder": (Decoder, lambda n: torch.randint(0, 50, (n, 7))),
    "lstm": (Recurrent, lambda n: torch.randn(n, 5, 8)),
    "views": (Views, lambda n: torch.randn(n, 3, 4, 4)),
}


def exported(name: str) -> tuple[nn.Module, torch.Tensor, bytes]:
    """Return a model, its example, and the file that torch writes of it."""
    torch.manual_seed(0)
    make, example = MODELS[name]
    model, x = make().eval(), example(3)
    return model, x, saved(model, x)


def saved(model: nn.Module, x: torch.Tensor) -> bytes:
    """Return the file that torch writes of a model."""
    return bytes_of(torch.export.save, torch.export.export(model, (x,)))


def loaded(package: pt2kit.Package) -> Any:
    """Return what stock torch loads of a package, as a module."""
    return torch.export.load(io.BytesIO(bytes_of(pt2kit.write, package))).module()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_a_whole_program_computes_in_another_type(name: str, dtype: torch.dtype) -> None:
    """Inputs, weights and results have the type; numbers are those of the model in it, up to its rounding."""
    model, x, data = exported(name)
    with pt2kit.edit(data) as editor:
        assert passes.compute_in(editor, str(dtype)) > 5
    graph = editor.result.graph()
    floats = {value.dtype for value in graph.values.values() if value.dtype and "float" in value.dtype}
    # The decoder divides integers, whose results torch makes float32 in models of any type.
    assert floats - ({"float32"} if name == "decoder" else set()) == {str(dtype).removeprefix("torch.")}
    samples = editor.result.sample_inputs()
    assert samples is not None
    typed = x.to(dtype) if x.is_floating_point() else x
    assert samples[0][0].tobytes() == (typed.view(torch.int16) if x.is_floating_point() else typed).numpy().tobytes()
    result = loaded(editor.result)(typed)
    assert result.dtype is dtype
    reference = model(x)
    in_torch = (model.to(dtype)(typed).float() - reference).abs().max()
    ours = (result.float() - reference).abs().max()
    assert ours <= 2 * in_torch + 4 * torch.finfo(dtype).eps * reference.abs().max()


class Dropped(nn.Module):
    """Dropout of an expanded tensor, whose declared result has strides of its own, and a conversion of that."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the expanded tensor doubled."""
        return functional.dropout(x[None].expand(3, -1, -1), 0.5, False).to(torch.float32) * 2


def test_dropout_that_changes_strides_stays() -> None:
    """A dropout that drops nothing is removed only where its result is laid out as its operand."""
    x = torch.randn(2, 4)
    with pt2kit.edit(saved(Dropped(), x)) as editor:
        passes.identities(editor)
    torch.testing.assert_close(loaded(editor.result)(x), Dropped()(x))


class Masked(nn.Module):
    """Fills and bounds with numbers that smaller types do not have."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what survives a mask."""
        least = torch.finfo(torch.float32).min
        x = x.masked_fill(x > 1, least).clamp(-1e9, 3e38)
        return (x + torch.full_like(x, least).relu()).masked_fill(x > 3, -torch.inf).softmax(-1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_numbers_beyond_the_new_type_become_its_limits(dtype: torch.dtype) -> None:
    """torch refuses to fill a tensor with a finite number that its type does not have."""
    x = torch.randn(4, 8)
    with pt2kit.edit(saved(Masked(), x)) as editor:
        passes.compute_in(editor, str(dtype))
    result = loaded(editor.result)(x.to(dtype))
    torch.testing.assert_close(result.float(), Masked()(x.to(dtype).float()), atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("name", MODELS)
def test_a_static_batch_becomes_dynamic(name: str) -> None:
    """Every size in the range runs in torch with the numbers of the model, and sizes are those of a dynamic export."""
    model, x, data = exported(name)
    with pt2kit.edit(data) as editor:
        symbol = passes.make_dynamic(editor, editor.user_inputs[0].name, 0, 2, 40)
    package = editor.result
    assert [problem for problem in pt2kit.check(package) if problem.kind == "error"] == []
    module = loaded(package)
    example = MODELS[name][1]
    for size in (2, 3, 5, 40):
        inputs = example(size)
        assert torch.allclose(module(inputs), model(inputs), atol=1e-5)
    with pytest.raises((AssertionError, RuntimeError), match=r"40|constraint|Guard"):
        module(example(41))
    dynamic = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=40)},))
    [returned] = [node for node in dynamic.graph.nodes if node.op == "output"]
    result = returned.args[0][0].meta["val"]
    [ours] = package.graph().outputs
    assert ours.shape is not None
    assert [str(size) if isinstance(size, int) else "?" for size in ours.shape] == [
        str(size) if isinstance(size, int) else "?" for size in result.shape
    ]
    assert symbol in str(ours.shape)


def test_two_dimensions_of_a_language_model() -> None:
    """Batch and length become dynamic one after the other."""
    model, _, data = exported("decoder")
    with pt2kit.edit(data) as editor:
        passes.make_dynamic(editor, "ids", 0, 1, 8)
        passes.make_dynamic(editor, "ids", 1, 2, 32)
    module = loaded(editor.result)
    for batch, length in ((1, 2), (3, 7), (8, 32), (2, 19)):
        ids = torch.randint(0, 50, (batch, length))
        assert torch.allclose(module(ids), model(ids), atol=1e-5)


class SequenceFirst(nn.Module):
    """Attention of torch, whose views merge length and batch, and batch and heads."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend to itself."""
        return self.attention(x, x, x, need_weights=False)[0]


class Weighted(SequenceFirst):
    """Attention with its weights, whose length stands twice in a view."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend to itself."""
        return self.attention(x, x, x)


class Pooled(SequenceFirst):
    """Attention of learned queries, which are expanded to the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(4, 1, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend to the input."""
        return self.attention(self.queries.expand(-1, x.shape[1], -1), x, x, need_weights=False)[0]


class Repeated(nn.Module):
    """Repeats each entry of the batch, and the whole batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add both."""
        entries = x.repeat_interleave(4, 1).view(*x.shape[:2], 4, 32)
        return entries + x.repeat(1, 4, 1).view(x.shape[0], 4, x.shape[1], 32).transpose(1, 2)


@pytest.mark.parametrize("make", [SequenceFirst, Weighted, Pooled, Repeated])
@pytest.mark.parametrize(("length", "batch"), [(5, 3), (16, 2), (4, 4), (8, 4)])
def test_merged_dimensions_keep_their_order(make: type[nn.Module], length: int, batch: int) -> None:
    """Of a merged dimension the batch may be the first or the last, which sizes that divide each other do not show."""
    model, x = make().eval(), torch.randn(length, batch, 32)
    for dim in range(2):
        with pt2kit.edit(saved(model, x)) as editor:
            passes.make_dynamic(editor, "x", dim, 1, 64)
        sizes = [7 if place == dim else size for place, size in enumerate(x.shape)]
        other = torch.randn(sizes)
        torch.testing.assert_close(loaded(editor.result)(other), model(other))


class Puzzle(nn.Module):
    """Permutes, merges and splits dimensions as a seed says, one of them the batch."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.dice = random.Random(seed)
        self.batch = self.dice.choice([1, 2, 3, 4, 6])
        others: list[int | str] = self.dice.choices([1, 2, 3, 4, self.batch], k=self.dice.choice([2, 3]))
        self.start = self.dice.sample([*others, "batch"], len(others) + 1)
        self.dims: list[list[Any]] = [[one] for one in self.start]
        self.steps = [self.dice.choice([self._permuted, self._merged, self._split])() for _ in range(6)]

    def sizes(self, dims: list[list[Any]], batch: int) -> list[int]:
        """Return the sizes of dimensions for a batch."""
        return [math.prod(batch if one == "batch" else one for one in dim) for dim in dims]

    def _permuted(self) -> Any:
        order = self.dice.sample(range(len(self.dims)), len(self.dims))
        self.dims = [self.dims[one] for one in order]
        return lambda x, batch: x.permute(order)

    def _merged(self) -> Any:
        at = self.dice.randrange(len(self.dims))
        self.dims = [*self.dims[:at], [one for dim in self.dims[at : at + 2] for one in dim], *self.dims[at + 2 :]]
        return self._reshaped()

    def _split(self) -> Any:
        at = self.dice.randrange(len(self.dims))
        dim, cut = self.dims[at], self.dice.randrange(1, max(2, len(self.dims[at])))
        self.dims = [*self.dims[:at], *filter(None, (dim[:cut], dim[cut:])), *self.dims[at + 1 :]]
        return self._reshaped()

    def _reshaped(self) -> Any:
        dims = [*self.dims]
        return lambda x, batch: x.reshape(self.sizes(dims, batch)) * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Do all steps."""
        batch = x.shape[self.start.index("batch")]
        for step in self.steps:
            x = step(x, batch)
        return x


def test_the_batch_is_right_in_any_views_or_refused() -> None:
    """Views of random programs have the batch where it is for every size; most are proven."""
    refused = []
    for seed in range(40):
        model = Puzzle(seed)
        with pt2kit.edit(saved(model, torch.randn(model.sizes([[one] for one in model.start], model.batch)))) as editor:
            try:
                passes.make_dynamic(editor, "x", model.start.index("batch"), 1, 64)
            except GraphError:
                refused.append(seed)
        for batch in () if seed in refused else (1, 2, 5, 12):
            x = torch.randn(model.sizes([[one] for one in model.start], batch))
            torch.testing.assert_close(loaded(editor.result)(x), model(x), msg=f"seed {seed}, batch {batch}")
    assert len(refused) < 10


class Strided(nn.Module):
    """Pools an image whose channels are last, which decomposes to a mean and strides that are written into a call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the means."""
        return functional.adaptive_avg_pool2d(x.to(memory_format=torch.channels_last), 1).flatten(1)


def test_sizes_written_into_strided_views_are_dynamic() -> None:
    """A view of all elements follows the batch; strides that depend on the size are refused."""
    x = torch.randn(2, 3, 4, 4)
    program = torch.export.export(Strided(), (x,)).run_decompositions()
    assert "aten.as_strided.default" in [str(node.target) for node in program.graph.nodes]
    with pt2kit.edit(bytes_of(torch.export.save, program)) as editor:
        passes.make_dynamic(editor, "x", 0, 1, 64)
    other = torch.randn(7, 3, 4, 4)
    torch.testing.assert_close(loaded(editor.result)(other), Strided()(other))
    with pytest.raises(
        GraphError, match=r"node 'as_strided' \(aten.as_strided.default\), which does not: its sizes and"
    ):
        passes.make_dynamic(pt2kit.edit(bytes_of(torch.export.save, program)), "x", 1, 1, 64)


class Products(nn.Module):
    """Products of heads, whose operands are views of a batch of 1 and copies of a larger one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of all pairs, by head."""
        heads = x.view(*x.shape[:2], 4, 8).transpose(1, 2) * 0.5
        return heads @ heads.transpose(2, 3)


class Interleaved(nn.Module):
    """Puts the batch between the rows of heads, as decomposed attention does; a batch of 1 is between none."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the rows of all batches, twice."""
        heads = x.view(*x.shape[:2], 4, 8).permute(1, 0, 2, 3).clone(memory_format=torch.contiguous_format)
        return heads.permute(1, 0, 2, 3).reshape(-1, x.shape[1], 32).reshape(-1, 32) * 2


@pytest.mark.parametrize("make", [Products, Interleaved])
def test_views_of_a_batch_of_one_are_copied(make: type[nn.Module]) -> None:
    """Dimensions that are adjacent in memory for the example alone are copied first, as a dynamic export does."""
    x = torch.randn(1, 8, 32)[:, :5]
    program = torch.export.export(make(), (x,)).run_decompositions()
    copies = [str(node.target) for node in program.graph.nodes].count("aten.clone.default")
    with pt2kit.edit(bytes_of(torch.export.save, program)) as editor:
        passes.make_dynamic(editor, "x", 0, 1, 64)
    written = editor.result.programs["model"].graph_module.graph.nodes
    assert [node.target for node in written].count("torch.ops.aten.clone.default") > copies
    assert not pt2kit.check(editor.result).errors
    for other in (torch.randn(7, 5, 32), x):
        torch.testing.assert_close(loaded(editor.result)(other), make()(other))


class Fixed(nn.Module):
    """Adds rows of its own, one for each row of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum."""
        return x + self.rows


def test_a_size_that_is_needed_is_refused() -> None:
    """A weight with as many rows as the batch cannot follow it; the error names the node, and nothing changed."""
    editor = pt2kit.edit(bytes_of(torch.export.save, torch.export.export(Fixed(), (torch.randn(3, 4),))))
    with pytest.raises(GraphError, match=r"make_dynamic\('x', 0\): .*got node 'add' \(aten.add.Tensor\)"):
        passes.make_dynamic(editor, "x", 0, 2, 40)
    assert editor.user_inputs[0].value is not None
    assert editor.user_inputs[0].value.shape == (3, 4)
    assert editor.ranges == {}


class Pair(nn.Module):
    """Adds two inputs."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the sum."""
        return x + y


def test_two_inputs_of_one_size() -> None:
    """Dimensions that are always equal share a symbol; torch refuses inputs that differ."""
    file = bytes_of(torch.export.save, torch.export.export(Pair(), (torch.randn(3, 4), torch.randn(3, 4))))
    with pt2kit.edit(file) as editor:
        passes.make_dynamic(editor, "x", 0, 1, equal=[("y", 0)])
    module = loaded(editor.result)
    x, y = torch.randn(9, 4), torch.randn(9, 4)
    assert torch.equal(module(x, y), x + y)
    with pytest.raises((AssertionError, RuntimeError), match=r"9|size|Guard"):
        module(x, y[:5])


class Divided(nn.Module):
    """A region of autocast that divides integers, which gives float32 whatever the program computes in."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a quotient, and the input times it."""
        with torch.autocast("cpu", torch.bfloat16, enabled=False):
            quotient = torch.arange(4) / 3
        return quotient, x * quotient.mean().to(x.dtype)


def test_what_a_region_gives_has_the_type_that_it_has_there() -> None:
    """Results of subgraphs that stay float32 are float32 outside."""
    x = torch.randn(2, 4)
    with pt2kit.edit(saved(Divided(), x)) as editor:
        passes.compute_in(editor, "bfloat16")
    got, expected = loaded(editor.result)(x.bfloat16()), Divided()(x.bfloat16())
    assert [one.dtype for one in got] == [torch.float32, torch.bfloat16]
    for one, other in zip(got, expected, strict=True):
        assert torch.equal(one, other)


class Distances(nn.Module):
    """Distances of places in two types, one converted to that of the other, as in the positions of DeBERTa."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input times the distances as the type of their third."""
        places = torch.arange(x.shape[0])
        apart = places[:, None] - places[None]
        return x * apart.type_as(apart / 3)


def test_results_without_certain_strides_have_the_type_that_torch_gives_them() -> None:
    """The type of a result follows from the types of its operands, also where its strides are not known."""
    x = torch.randn(5, 5)
    program = torch.export.export(Distances(), (x,), dynamic_shapes=(dict.fromkeys((0, 1), torch.export.Dim.AUTO),))
    with pt2kit.edit(bytes_of(torch.export.save, program)) as editor:
        passes.compute_in(editor, "bfloat16")
    result = loaded(editor.result)(x.bfloat16())
    assert result.dtype is torch.float32
    assert torch.equal(result, Distances()(x.bfloat16()))


class Regional(nn.Module):
    """A region that autocast leaves alone, which names an element type without the name of a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the result of the region."""
        with torch.autocast("cpu", torch.bfloat16, enabled=False):
            return self.linear(x.relu())


def test_a_region_of_autocast_computes_in_another_type() -> None:
    """Arguments by place alone are converted where they are."""
    model, x = Regional().eval(), torch.randn(2, 4)
    with pt2kit.edit(saved(model, x)) as editor:
        passes.compute_in(editor, "float16")
    result = loaded(editor.result)(x.half())
    torch.testing.assert_close(result, model.half()(x.half()), atol=2e-3, rtol=2e-3)
