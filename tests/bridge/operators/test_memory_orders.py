"""Strides of results that depend on the memory order of operands: compared with kernels and fake tensors."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.bridge.operators.fake_calls import overload
from tests.packages import bytes_of, errors
from torch._subclasses.fake_tensor import FakeTensorMode

import pt2kit
from pt2kit.checks.call_results import compare
from pt2kit.operators.creation import converted
from pt2kit.operators.facts import Tensor
from pt2kit.operators.table import infer
from pt2kit.schema import MemoryFormat, ScalarType

FORMATS = {
    torch.contiguous_format: MemoryFormat.ContiguousFormat,
    torch.preserve_format: MemoryFormat.PreserveFormat,
    torch.channels_last: MemoryFormat.ChannelsLast,
    torch.channels_last_3d: MemoryFormat.ChannelsLast3d,
}
RANKS = {torch.channels_last: 4, torch.channels_last_3d: 5}
DTYPES = {torch.float32: ScalarType.FLOAT, torch.float64: ScalarType.DOUBLE}
FACTS = {**DTYPES, torch.int16: ScalarType.SHORT}


def strided(rng: random.Random, sizes: list[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor whose dimensions are in any order in memory, some with gaps, some repeated."""
    order = list(range(len(sizes)))
    rng.shuffle(order)
    if len(sizes) in (4, 5) and rng.random() < 0.3:
        order = [0, *range(2, len(sizes)), 1]
    strides, step = [0] * len(sizes), 1
    for dim in reversed(order):
        strides[dim] = 0 if rng.random() < 0.1 else step
        step *= sizes[dim] * (2 if rng.random() < 0.1 else 1)
    return torch.zeros(5000, dtype=dtype).as_strided(sizes, strides)


def fact(tensor: torch.Tensor) -> Tensor:
    """Return a tensor's abstract value."""
    return Tensor(tuple(tensor.shape), FACTS[tensor.dtype], tuple(tensor.stride()), None, None)


def differences(expected: Tensor, *results: torch.Tensor) -> Iterator[str]:
    """How a computed result differs from those of torch."""
    for result in results:
        yield from (message for _, message in compare(expected, fact(result)))


@pytest.mark.parametrize(
    ("name", "dtype", "least"), [("add.Tensor", torch.float32, 150), ("div.Tensor", torch.int16, 140)]
)
@pytest.mark.parametrize("seed", range(3))
def test_broadcast_operands(seed: int, name: str, dtype: torch.dtype, least: int) -> None:
    """A result of operands that broadcast, in any memory order; integers are converted before they are divided."""
    rng, mode, decided = random.Random(seed), FakeTensorMode(), 0
    for _ in range(200):
        whole = [rng.choice([1, 2, 3, 4]) for _ in range(rng.randrange(1, 5))]
        parts = [[size if rng.random() < 0.6 else 1 for size in whole][rng.randrange(len(whole)) :] for _ in range(2)]
        operands = [strided(rng, sizes, dtype) for sizes in parts]
        with mode:
            fake = overload(f"aten.{name}")(*(mode.from_tensor(one) for one in operands))
        real = overload(f"aten.{name}")(*operands)
        expected = infer(f"aten.{name}", dict(zip(("self", "other"), map(fact, operands), strict=True)))
        assert isinstance(expected, Tensor)
        decided += expected.strides is not None
        assert list(differences(expected, real, fake)) == []
    assert decided > least


@pytest.mark.parametrize("name", ["floor_divide.default", "copysign.Tensor", "xlogy.Tensor"])
def test_strides_of_dimensions_of_size_1(name: str) -> None:
    """Decompositions order dimensions by them, and kernels do not."""
    mode = FakeTensorMode()
    operands = [torch.zeros(2, 3, 3, 1), torch.zeros(5).as_strided([2, 1, 1, 1], [1, 1, 3, 4])]
    with mode:
        fake = overload(f"aten.{name}")(*(mode.from_tensor(one) for one in operands))
    expected = infer(f"aten.{name}", dict(zip(("self", "other"), map(fact, operands), strict=True)))
    assert isinstance(expected, Tensor)
    assert list(differences(expected, fake)) == []


@pytest.mark.parametrize("seed", range(3))
def test_conversions_to_a_memory_format(seed: int) -> None:
    """`to` returns a tensor that is not contiguous as it is if torch suggests the format that was asked for."""
    rng, mode, decided = random.Random(seed), FakeTensorMode(), 0
    for _ in range(200):
        memory_format = rng.choice(list(FORMATS))
        tensor = strided(rng, [rng.choice([1, 2, 3]) for _ in range(RANKS.get(memory_format, rng.randrange(1, 6)))])
        dtype, is_copy = rng.choice(list(DTYPES)), rng.random() < 0.2
        with mode:
            fake = mode.from_tensor(tensor).to(dtype, copy=is_copy, memory_format=memory_format)
        real = tensor.to(dtype, copy=is_copy, memory_format=memory_format)
        expected = converted(fact(tensor), DTYPES[dtype], None, None, is_copy, FORMATS[memory_format])
        decided += expected.strides is not None
        assert list(differences(expected, real, fake)) == []
    assert decided > 150


SHAPES = ((2, 8, 1, 1), (2, 1, 4, 4), (1, 8, 1, 4), (2, 8, 2, 2), (2, 8, 1, 1, 1), (1, 8, 2, 1, 2))
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("constant_pad_nd.default", {"self": None, "pad": (0, 1)}),
    ("constant_pad_nd.default", {"self": None, "pad": (0, 0, 0, 0, 1, 1)}),
    ("pad.default", {"self": None, "pad": (1, 1, 1, 1), "mode": "replicate"}),
    ("replication_pad3d.default", {"self": None, "padding": (1, 1, 1, 1, 1, 1)}),
    ("pixel_shuffle.default", {"self": None, "upscale_factor": 2}),
    ("pixel_unshuffle.default", {"self": None, "downscale_factor": 2}),
    ("stack.default", {"tensors": (None, None)}),
    ("stack.default", {"tensors": (None, None), "dim": 2}),
    ("cat.default", {"tensors": (None, None), "dim": 1}),
    ("upsample_nearest2d.default", {"self": None, "output_size": (3, 3)}),
    ("_adaptive_avg_pool2d.default", {"self": None, "output_size": (2, 2)}),
    ("repeat.default", {"self": None, "repeats": (1, 1, 2, 2, 2)}),
    ("mean.dim", {"self": None, "dim": (2, 3), "keepdim": True}),
)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_images_with_two_memory_formats(shape: tuple[int, ...]) -> None:
    """Images of one pixel or channel can be contiguous and have channels last at once; torch often takes the last."""
    mode, count = FakeTensorMode(), 0
    image = torch.zeros(shape[0], *shape[2:], shape[1]).movedim(-1, 1)

    def filled(value: Any, tensor: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(filled(one, tensor) for one in value)
        return tensor if value is None else value

    for name, arguments in CALLS:
        try:
            with mode:
                given = {key: filled(one, mode.from_tensor(image)) for key, one in arguments.items()}
                fake = overload(f"aten.{name}")(**given)
        except (RuntimeError, NotImplementedError):  # of another number of dimensions
            continue
        expected = infer(f"aten.{name}", {key: filled(one, fact(image)) for key, one in arguments.items()})
        assert isinstance(expected, Tensor)
        assert list(differences(expected, fake)) == [], name
        count += 1
    assert count >= 5


def test_dimensions_with_one_element_in_the_example() -> None:
    """Sizes that happen to be 1 in the example count as such: torch adds a guard, and declares strides as for 1."""

    class Chunked(torch.nn.Module):
        def forward(self, x):
            chunks = x.new_ones(4, (x.shape[0] + 7) // 8, 3).permute(1, 0, 2)
            return torch.zeros_like(chunks), chunks.exp(), chunks.clone(), chunks.contiguous()

    dynamic = ({0: torch.export.Dim.DYNAMIC},)
    file = bytes_of(pt2kit.save, torch.export.export(Chunked(), (torch.ones(5),), dynamic_shapes=dynamic))
    assert errors(pt2kit.open(file)) == []
