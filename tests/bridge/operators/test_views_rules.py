"""Result rules of views compared with torch's fake tensors."""

from __future__ import annotations

import math
from typing import Any

import torch
from tests.bridge.operators.fake_calls import Draw, agreement


def view_sizes(draw: Draw) -> list[int]:
    """Draw sizes with the elements of `self`: dimensions merged, split, or one of them as -1; sometimes others."""
    sizes = list(draw.given["self"].sizes)
    for _ in range(draw.rng.randint(0, 2)):
        if len(sizes) >= 2 and draw.rng.random() < 0.6:
            at = draw.rng.randrange(len(sizes) - 1)
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        elif sizes:
            at = draw.rng.randrange(len(sizes))
            by = draw.rng.choice([by for by in range(1, sizes[at] + 1) if sizes[at] % by == 0] or [1])
            sizes[at : at + 1] = [by, sizes[at] // by]
    if sizes and draw.rng.random() < 0.3:
        sizes[draw.rng.randrange(len(sizes))] = -1
    if draw.rng.random() < 0.1:
        sizes = [draw.rng.randint(-2, 4) for _ in range(draw.rng.randint(0, 3))]
    return sizes


def expanded_sizes(draw: Draw) -> list[int]:
    """Draw sizes that `self` expands to."""
    sizes = [draw.rng.choice((size, -1, 3) if size == 1 else (size, -1)) for size in draw.given["self"].sizes]
    front = [draw.rng.randint(0, 3) for _ in range(draw.rng.randint(0, 2))]
    return [*front, *sizes] if draw.rng.random() < 0.9 else [*front, *sizes][1:]


def parts(draw: Draw) -> list[int]:
    """Draw lengths for `split_with_sizes` along the first dimension."""
    size = draw.given["self"].sizes[0] if draw.given["self"].sizes else 1
    first = draw.rng.randint(0, size)
    return [first, size - first, *draw.rng.choice(([], [], [0], [1], [-1, 1]))]


def some_dims(draw: Draw) -> Any:
    return draw.dims() if draw.rng.random() < 0.9 else [0, 0]


def dim(draw: Draw) -> int:
    return draw.dim()


def ints(low: int, high: int) -> Any:
    return lambda draw: draw.rng.randint(low, high)


def optional_index(draw: Draw) -> Any:
    return draw.rng.choice((None, 0, 1, 2, 3, -1, -2, -4, 7, 2**63 - 1))


SIZES = {"size": view_sizes}
SHAPE = {"shape": view_sizes}
DIM = {"dim": dim}
SWAPPED = {"dim0": dim, "dim1": dim}
OPERATORS: dict[str, dict[str, Any]] = {
    **{f"aten.{name}.default": SIZES for name in ("view", "view_copy", "_unsafe_view", "_reshape_copy")},
    "aten.reshape.default": SHAPE,
    "aten.flatten.using_ints": {"start_dim": dim, "end_dim": dim},
    "aten.ravel.default": {},
    "aten.unflatten.int": {
        "dim": dim,
        "sizes": lambda draw: draw.choice([2, -1], [-1], [1, 5], [5, 1], [2, 2], [3], [2, 1, -1], []),
    },
    "aten.permute.default": {"dims": lambda draw: draw.permutation() if draw.rng.random() < 0.9 else [0, 0, 1]},
    "aten.permute_copy.default": {"dims": lambda draw: draw.permutation()},
    **{f"aten.{name}": SWAPPED for name in ("transpose.int", "transpose_copy.int", "swapdims.default")},
    "aten.swapaxes.default": {"axis0": dim, "axis1": dim},
    "aten.t.default": {},
    "aten.t_copy.default": {},
    "aten.numpy_T.default": {},
    "aten.mT.default": {},
    "aten.mH.default": {},
    "aten.adjoint.default": {},
    "aten.movedim.int": {"source": dim, "destination": dim},
    "aten.movedim.intlist": {
        "source": lambda draw: draw.dims(),
        "destination": lambda draw: draw.rng.sample(range(draw.rank()), len(draw.given["source"])),
    },
    "aten.expand.default": {"size": expanded_sizes},
    "aten.expand_copy.default": {"size": expanded_sizes},
    "aten.broadcast_to.default": {"size": expanded_sizes},
    "aten.expand_as.default": {},
    "aten.broadcast_tensors.default": {},
    **{f"aten.{name}.default": DIM for name in ("unsqueeze", "unsqueeze_copy")},
    "aten.squeeze.default": {},
    "aten.squeeze_copy.default": {},
    **{f"aten.{name}.dim": DIM for name in ("squeeze", "squeeze_copy")},
    **{f"aten.{name}.dims": {"dim": some_dims} for name in ("squeeze", "squeeze_copy")},
    **{f"aten.{name}.default": {} for name in ("alias", "detach", "resolve_conj", "resolve_neg", "alias_copy")},
    "aten.view_as_real.default": {"self": lambda draw: draw.tensor(dtypes=(torch.complex64, torch.float32))},
    "aten.view_as_complex.default": {
        "self": lambda draw: draw.tensor(
            *draw.choice((3, 2), (2,), (4, 2), (3, 3)), dtypes=(torch.float32, torch.float64, torch.int64)
        )
    },
    "aten.view.dtype": {},
    "aten.as_strided.default": {
        "size": lambda draw: draw.choice([2, 2], [3], [], [1, 0]),
        "stride": lambda draw: draw.choice([1, 0], [1], [], [2, 1]),
        "storage_offset": lambda draw: draw.choice(None, 0, 1),
        "self": lambda draw: draw.tensor(6, 6),
    },
    **{f"aten.atleast_{count}d.default": {} for count in (1, 2, 3)},
    "aten.atleast_2d.Sequence": {},
    "aten.select.int": {"dim": dim, "index": ints(-4, 4)},
    "aten.select_copy.int": {"dim": dim, "index": ints(-4, 4)},
    "aten.slice.Tensor": {"dim": dim, "start": optional_index, "end": optional_index, "step": ints(0, 3)},
    "aten.slice_copy.Tensor": {"dim": dim, "start": optional_index, "end": optional_index, "step": ints(1, 3)},
    "aten.narrow.default": {"dim": dim, "start": ints(-3, 3), "length": ints(-1, 3)},
    "aten.narrow_copy.default": {"dim": dim, "start": ints(0, 2), "length": ints(0, 3)},
    **{f"aten.{name}.Tensor": {"split_size": ints(-1, 4), **DIM} for name in ("split", "unsafe_split", "split_copy")},
    "aten.split.sizes": {"split_size": parts, "dim": ints(0, 0)},
    **{
        f"aten.{name}.default": {"split_sizes": parts, "dim": ints(0, 0)}
        for name in ("split_with_sizes", "unsafe_split_with_sizes", "split_with_sizes_copy")
    },
    "aten.chunk.default": {"chunks": ints(-1, 5), "dim": dim},
    "aten.unsafe_chunk.default": {"chunks": ints(0, 5), "dim": dim},
    "aten.tensor_split.sections": {"sections": ints(0, 5), "dim": dim},
    "aten.tensor_split.indices": {"indices": lambda draw: draw.choice([1, 2], [], [0, 3, 9], [-1]), "dim": dim},
    **{f"aten.{name}.int": {"sections": ints(0, 5)} for name in ("hsplit", "vsplit", "dsplit")},
    **{f"aten.{name}.array": {"indices": lambda draw: [1, 3]} for name in ("hsplit", "vsplit", "dsplit")},
    "aten.unbind.int": DIM,
    "aten.unbind_copy.int": DIM,
    "aten.unfold.default": {"dimension": dim, "size": ints(0, 5), "step": ints(0, 3)},
    "aten.unfold_copy.default": {"dimension": dim, "size": ints(0, 3), "step": ints(1, 3)},
    "aten.diagonal.default": {"dim1": dim, "dim2": dim, "offset": ints(-6, 6)},
    "aten.diagonal_copy.default": {"dim1": dim, "dim2": dim},
    "aten.linalg_diagonal.default": {"dim1": ints(-2, 2), "dim2": ints(-2, 2)},
    "aten.real.default": {},
    "aten.imag.default": {"self": lambda draw: draw.tensor(dtypes=(torch.complex64, torch.complex128))},
    "prims.transpose.default": {"permutation": lambda draw: draw.permutation("a")},
    "prims.squeeze.default": {
        "dimensions": lambda draw: [i for i, size in enumerate(draw.given["a"].sizes) if size == 1]
    },
    "prims.split_dim.default": {
        "dim": lambda draw: draw.rng.randrange(max(draw.rank("a"), 1)),
        "outer_length": ints(1, 3),
    },
    "prims.view_of.default": {},
    "prims.reshape.default": {"shape": lambda draw: [math.prod(draw.given["a"].sizes)]},
}
test_rules_of_views_agree_with_fake_tensors = agreement(OPERATORS.items())
