"""Result rules of tensors joined, repeated, padded and rearranged compared with torch's fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.operators.fake_calls import Draw, Drawn, agreement, compare_calls


def parts(draw: Draw) -> list[Drawn]:
    """Draw tensors that differ along one dimension, and sometimes along others."""
    first = draw.tensor()
    listed = [first]
    for _ in range(draw.rng.randint(0, 2)):
        sizes = list(first.sizes)
        if sizes and draw.rng.random() < 0.5:
            sizes[draw.rng.randrange(len(sizes))] = draw.rng.randint(0, 3)
        draw.given["first"] = first
        dtypes = (first.dtype, torch.float32, torch.int64)
        listed.append(draw.like("first", sizes=tuple(sizes) if draw.rng.random() < 0.9 else (0,), dtypes=dtypes))
    draw.given.pop("first", None)
    return listed


def same_parts(draw: Draw) -> list[Drawn]:
    """Draw tensors of one size."""
    draw.given["first"] = draw.tensor(ranks=(0, 1, 2, 3))
    listed = [draw.given["first"], *[draw.like("first") for _ in range(draw.rng.randint(0, 2))]]
    del draw.given["first"]
    return listed


def vectors(draw: Draw) -> list[Drawn]:
    dtype = draw.choice(torch.float32, torch.int64)
    return [draw.tensor(*draw.choice((3,), (1,), (4,)), dtypes=(dtype,)) for _ in range(draw.rng.randint(1, 3))]


def dim_of_first(draw: Draw) -> int:
    rank = len(draw.given["tensors"][0].sizes) if draw.given["tensors"] else 1
    return draw.rng.randrange(-rank, rank) if rank and draw.rng.random() < 0.9 else draw.rng.randint(-2, 2)


def dim(draw: Draw) -> int:
    return draw.dim()


def dims(draw: Draw) -> list[int]:
    return draw.dims()


def ints(low: int, high: int, count: int | None = None) -> Any:
    if count is None:
        return lambda draw: draw.rng.randint(low, high)
    return lambda draw: [draw.rng.randint(low, high) for _ in range(count)]


def some_ints(low: int, high: int) -> Any:
    return lambda draw: [draw.rng.randint(low, high) for _ in range(draw.rng.randint(0, 4))]


def per_dim(low: int, high: int) -> Any:
    return lambda draw: [draw.rng.randint(low, high) for _ in range(draw.rank() + draw.rng.choice((0, 0, 1, -1)))]


def ranks(*choices: int) -> Any:
    return lambda draw: draw.tensor(ranks=choices)


REPEATS = (torch.int64, torch.int32)
OPERATORS: dict[str, dict[str, Any]] = {
    **{f"aten.{name}.default": {"tensors": parts, "dim": dim_of_first} for name in ("cat", "concat", "concatenate")},
    "prims.cat.default": {"tensors": same_parts, "dim": ints(0, 0)},
    "aten.stack.default": {"tensors": same_parts, "dim": ints(-2, 2)},
    "aten._stack.default": {"tensors": same_parts, "dim": ints(-2, 2)},
    **{f"aten.{name}.default": {"tensors": parts} for name in ("hstack", "vstack", "dstack", "column_stack")},
    "aten.block_diag.default": {"tensors": lambda draw: [draw.tensor(ranks=(0, 1, 2)) for _ in range(3)]},
    "aten.cartesian_prod.default": {"tensors": vectors},
    "aten.combinations.default": {"self": ranks(1, 2), "r": ints(-1, 3)},
    "aten.meshgrid.default": {"tensors": vectors},
    "aten.meshgrid.indexing": {"tensors": vectors, "indexing": lambda draw: draw.choice("ij", "xy", "yx")},
    "aten.repeat.default": {"repeats": per_dim(-1, 3)},
    "aten.tile.default": {"dims": some_ints(0, 3)},
    "aten.repeat_interleave.self_int": {"repeats": ints(-1, 3), "dim": lambda draw: draw.choice(None, draw.dim())},
    "aten.constant_pad_nd.default": {"pad": some_ints(-3, 3)},
    "aten.pad.default": {
        "self": ranks(2, 3, 4),
        "pad": lambda draw: ints(-1, 3, draw.choice(2, 4, 6, 3))(draw),
        "mode": lambda draw: draw.choice("constant", "reflect", "replicate", "circular", "x"),
        "value": lambda draw: draw.choice(None, 0.0, 1.0),
    },
    **{
        f"aten.{kind}_pad{count}d.default": {
            "self": ranks(count, count + 1, count + 2),
            "padding": lambda draw, count=count: ints(-1, 2, 2 * count)(draw),
        }
        for kind in ("reflection", "replication")
        for count in (1, 2, 3)
    },
    "aten._pad_circular.default": {"self": ranks(2, 3, 4), "pad": ints(0, 2, 2)},
    "aten.flip.default": {"dims": dims},
    "aten.fliplr.default": {},
    "aten.flipud.default": {},
    "aten.rot90.default": {"k": ints(-2, 5), "dims": lambda draw: draw.choice([0, 1], [1, -1], [0])},
    "aten.roll.default": {
        "shifts": lambda draw: draw.choice([1], [1, -2], []),
        "dims": lambda draw: draw.choice([], [0], [0, 1], [0, 0]),
    },
    "aten.pixel_shuffle.default": {
        "self": lambda draw: draw.tensor(*draw.choice((8, 2, 3), (2, 4, 3, 3), (2, 18, 3, 5), (4, 4))),
        "upscale_factor": ints(0, 3),
    },
    "aten.pixel_unshuffle.default": {
        "self": lambda draw: draw.tensor(*draw.choice((2, 4, 6), (1, 2, 4, 4), (1, 2, 6, 9))),
        "downscale_factor": ints(0, 3),
    },
    "aten.channel_shuffle.default": {"self": lambda draw: draw.tensor(2, 4, 3, 2), "groups": ints(0, 4)},
    "aten.tril.default": {},
    "aten.triu.default": {},
    "aten.tril_.default": {"self": lambda draw: draw.tensor(3, 4)},
    "aten.diag_embed.default": {"dim1": ints(-2, 2), "dim2": ints(-2, 2), "offset": ints(-3, 3)},
    "aten.diag.default": {"self": ranks(1, 2, 3)},
    "aten.diagflat.default": {},
    "aten.trace.default": {"self": ranks(2, 3)},
    "aten._chunk_cat.default": {
        "tensors": lambda draw: [
            draw.tensor(*draw.choice((3, 2), (5, 2), (4,)), dtypes=(torch.float32,)) for _ in "ab"
        ],
        "dim": lambda draw: 0,
        "num_chunks": ints(0, 3),
    },
    "aten.pad_sequence.default": {
        "sequences": lambda draw: [draw.tensor(*draw.choice((3, 2), (5, 2)), dtypes=(torch.float32,)) for _ in "ab"],
        "padding_side": lambda draw: "right",
    },
    "aten.resize_.default": {
        "size": lambda draw: draw.choice(list(draw.given["self"].sizes), [2], [1, 0]),
        "memory_format": lambda draw: None,
    },
    "aten.sum_to_size.default": {"size": lambda draw: [1 for _ in draw.given["self"].sizes]},
}
test_rules_of_rearranged_tensors_agree_with_fake_tensors = agreement(OPERATORS.items())


@pytest.mark.parametrize("output_size", [None, 7])
def test_repeats_by_a_tensor_have_the_output_size_or_an_unknown_one(output_size: int | None) -> None:
    report = compare_calls(
        "aten.repeat_interleave.self_Tensor",
        25,
        symbolic=1,
        self=lambda draw: draw.tensor(4, 3),
        repeats=lambda draw: draw.tensor(4, dtypes=REPEATS),
        dim=lambda draw: 0,
        output_size=lambda draw: output_size,
    )
    assert report.answered or report.no_verdict, report
