"""Result rules of views, slices, joined and rearranged tensors: golden calls."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.operators.cases import BOOL, F32, F64, I64, S, refusals, t

from pt2kit.operators.facts import Tensor, Unknown
from pt2kit.operators.table import infer
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size, symbol, unknown

U = symbol("u0")
"""A size without an example."""
C64 = ScalarType.COMPLEXFLOAT


def v(sizes: tuple[Size, ...], strides: tuple[Size, ...] | None, offset: Size | None = 0, dtype: Any = F32) -> Tensor:
    """Return a view: sizes, strides, offset."""
    return replace(t(*sizes, dtype=dtype), strides=strides, offset=offset)


RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("aten.view.default", {"self": t(2, 3, 4), "size": (6, -1)}, t(6, 4)),
    ("aten.view.default", {"self": t(S, 4), "size": (-1,)}, t(4 * S)),
    ("aten.view.default", {"self": t(S, 4), "size": (S, 2, 2)}, t(S, 2, 2)),
    ("aten.view.default", {"self": v((3, 4), (8, 1)), "size": (3, 2, 2)}, v((3, 2, 2), (8, 2, 1))),
    ("aten.view.default", {"self": v((3, 4), (1, 3)), "size": (12,)}, v((12,), None)),
    ("aten.reshape.default", {"self": v((3, 4), (1, 3)), "shape": (12,)}, v((12,), None, None)),
    ("aten.flatten.using_ints", {"self": t(S, 3, 4), "start_dim": 1}, t(S, 12)),
    ("aten.unflatten.int", {"self": t(S, 12), "dim": 1, "sizes": (3, -1)}, t(S, 3, 4)),
    ("aten.permute.default", {"self": t(2, S, 4), "dims": (2, 0, -2)}, v((4, 2, S), (1, 4 * S, 4))),
    ("aten.transpose.int", {"self": t(2, S), "dim0": 0, "dim1": -1}, v((S, 2), (1, S))),
    ("aten.t.default", {"self": t(3)}, t(3)),
    ("aten.movedim.int", {"self": t(2, 3, 4), "source": 0, "destination": 2}, v((3, 4, 2), (4, 1, 12))),
    ("aten.expand.default", {"self": t(1, 4), "size": (S, 3, -1)}, v((S, 3, 4), (0, 0, 1))),
    ("aten.unsqueeze.default", {"self": t(2, 3), "dim": -1}, v((2, 3, 1), (3, 1, 1))),
    ("aten.squeeze.dim", {"self": t(1, S), "dim": 0}, t(S)),
    ("aten.squeeze.dim", {"self": t(1, S), "dim": 1}, t(1, S)),
    ("aten.select.int", {"self": t(S, 4), "dim": 0, "index": -1}, v((4,), (1,), 4 * S - 4)),
    ("aten.slice.Tensor", {"self": t(9, 4), "dim": 0, "start": 1, "end": -1, "step": 3}, v((3, 4), (12, 1), 4)),
    ("aten.slice.Tensor", {"self": t(S, 4), "dim": 0, "end": S - 1}, v((S - 1, 4), (4, 1))),
    ("aten.slice.Tensor", {"self": t(S), "end": 2**63 - 1}, t(S)),
    ("aten.slice_copy.Tensor", {"self": t(9, 4), "start": 2}, t(7, 4)),
    ("aten.narrow.default", {"self": t(5, 2), "dim": 0, "start": 1, "length": 3}, v((3, 2), (2, 1), 2)),
    ("aten.split.Tensor", {"self": t(5, 2), "split_size": 3}, [t(3, 2), v((2, 2), (2, 1), 6)]),
    ("aten.split_with_sizes.default", {"self": t(S), "split_sizes": (2, S - 2)}, [t(2), v((S - 2,), (1,), 2)]),
    (
        "aten.chunk.default",
        {"self": t(5), "chunks": 4},
        [v((size,), (1,), at) for size, at in ((2, 0), (2, 2), (1, 4))],
    ),
    ("aten.tensor_split.sections", {"self": t(5), "sections": 2}, [t(3), v((2,), (1,), 3)]),
    ("aten.unbind.int", {"self": t(2, 3)}, [t(3), v((3,), (1,), 3)]),
    ("aten.unfold.default", {"self": t(S), "dimension": 0, "size": 2, "step": 2}, v(((S - 2) // 2 + 1, 2), (2, 1))),
    ("aten.diagonal.default", {"self": t(3, 4), "offset": 2}, v((2,), (5,), 2)),
    ("aten.view_as_real.default", {"self": t(3, dtype=C64)}, t(3, 2)),
    ("aten.view.dtype", {"self": t(3, 4), "dtype": F64}, t(3, 2, dtype=F64)),
    ("aten.imag.default", {"self": t(3, dtype=C64)}, v((3,), (2,), 1)),
    ("prims.broadcast_in_dim.default", {"a": t(3), "shape": (2, 3), "broadcast_dimensions": (1,)}, v((2, 3), (0, 1))),
    ("prims.split_dim.default", {"a": t(6), "dim": 0, "outer_length": 2}, t(2, 3)),
    ("aten.cat.default", {"tensors": (t(2, 3), t(0), t(S, 3, dtype=F64))}, t(S + 2, 3, dtype=F64)),
    ("aten.stack.default", {"tensors": (t(S), t(8)), "dim": 1}, t(8, 2)),
    ("aten.repeat.default", {"self": t(S), "repeats": (2, 3)}, t(2, 3 * S)),
    ("aten.repeat_interleave.self_int", {"self": t(2, S), "repeats": 3, "dim": 1}, t(2, 3 * S)),
    ("aten.constant_pad_nd.default", {"self": t(2, S), "pad": (1, -2)}, t(2, S - 1)),
    ("aten.pad.default", {"self": t(2, 5), "pad": (2, 2), "mode": "reflect"}, t(2, 9)),
    ("aten.pixel_shuffle.default", {"self": t(S, 8, 3, 3), "upscale_factor": 2}, t(S, 2, 6, 6)),
    ("aten.diag_embed.default", {"self": t(2, 3), "offset": -1}, t(2, 4, 4)),
    ("aten.block_diag.default", {"tensors": (t(2, 3), t(4))}, t(3, 7)),
    ("aten.meshgrid.indexing", {"tensors": (t(2), t(3)), "indexing": "xy"}, [v((3, 2), (0, 1)), v((3, 2), (1, 0))]),
    ("aten.triu_.default", {"self": v((3, 3), (1, 3))}, v((3, 3), (1, 3))),
]
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("aten.view.default", {"self": t(2, 3), "size": (4, -1)}, "sizes", "expected 6 elements in all, got [4, -1]"),
    ("aten.view.default", {"self": t(2, 3), "size": (-2, -3)}, "sizes", "0 or more"),
    ("aten.view.default", {"self": t(S, 2), "size": (2 * S + 1,)}, "sizes", "elements in all"),
    ("aten.permute.default", {"self": t(2, 3), "dims": (0, 0)}, "dimension", "each dimension once"),
    ("aten.permute.default", {"self": t(2, 3), "dims": (0,)}, "dimension", "expected 2 dimensions"),
    ("aten.expand.default", {"self": t(2, 3), "size": (4, 3)}, "sizes", "expected [2, 3] expanded"),
    ("aten.expand.default", {"self": t(1), "size": (-2,)}, "sizes", "0 or more"),
    ("aten.t.default", {"self": t(2, 3, 4)}, "sizes", "expected at most 2 dimensions"),
    ("aten.select.int", {"self": t(2, 3), "dim": 1, "index": 3}, "value", "from -3 to 2, got 3"),
    ("aten.slice.Tensor", {"self": t(3), "step": 0}, "value", "step: expected 1 or more"),
    ("aten.slice.Tensor", {"self": t(3), "dim": 1}, "dimension", "from -1 to 0, got 1"),
    ("aten.split.Tensor", {"self": t(3), "split_size": 0}, "value", "expected 1 or more"),
    ("aten.split_with_sizes.default", {"self": t(3), "split_sizes": (1, 1)}, "sizes", "3 elements in all"),
    ("aten.chunk.default", {"self": t(3), "chunks": 0}, "value", "expected 1 or more"),
    ("aten.narrow.default", {"self": t(3), "dim": 0, "start": 2, "length": 2}, "sizes", "within 3"),
    ("aten.diagonal.default", {"self": t(3, 4), "dim1": 1, "dim2": -1}, "dimension", "two dimensions"),
    ("aten.as_strided.default", {"self": t(3), "size": (3,), "stride": (-1,)}, "sizes", "0 or more, got ["),
    ("aten.view_as_complex.default", {"self": t(3, 3)}, "sizes", "self: expected a size of 2"),
    ("aten.cat.default", {"tensors": (t(2, 3), t(2, 3)), "dim": 5}, "dimension", "from -2 to 1, got 5"),
    ("aten.cat.default", {"tensors": (t(2, 3), t(2, 4))}, "sizes", "one size of dimension 1, got 3 and 4"),
    ("aten.cat.default", {"tensors": ()}, "value", "at least one"),
    ("aten.stack.default", {"tensors": (t(S), t(S + 1))}, "sizes", "one size of dimension 0"),
    (
        "aten.repeat.default",
        {"self": t(2, 3), "repeats": (2,)},
        "sizes",
        "repeats: expected 2 numbers or more, got [2]",
    ),
    ("aten.pad.default", {"self": t(2, 3), "pad": (1, 1, 1)}, "sizes", "an even number"),
    ("aten.pad.default", {"self": t(2, 3), "pad": (3, 0), "mode": "reflect"}, "sizes", "at most 2 for reflect, got 3"),
    ("aten.pad.default", {"self": t(2, 3), "pad": (1, 0), "mode": "edge"}, "value", "'circular', got 'edge'"),
    ("aten.constant_pad_nd.default", {"self": t(2, 3), "pad": (-4, 0)}, "sizes", "0 or more, got -1"),
    (
        "aten.pixel_shuffle.default",
        {"self": t(8, 2, 2), "upscale_factor": 5},
        "sizes",
        "a multiple of square, got self = [8, 2, 2], square = 25",
    ),
    (
        "aten.channel_shuffle.default",
        {"self": t(2, 5, 3), "groups": 2},
        "value",
        "a multiple of groups, got groups = 2",
    ),
    ("aten.flip.default", {"self": t(2, 3), "dims": (1, -1)}, "dimension", "each dimension once"),
    ("aten.meshgrid.indexing", {"tensors": (t(2),), "indexing": "yx"}, "value", '"ij" or "xy"'),
    ("aten.tril.default", {"self": t(3)}, "sizes", "2 or more dimensions"),
]
UNKNOWN: list[tuple[str, dict[str, Any]]] = [
    ("aten.squeeze.dim", {"self": t(U, 3), "dim": 0}),
    ("aten.unbind.int", {"self": t(S, 3)}),
    ("aten.split.Tensor", {"self": t(U), "split_size": 2}),
    ("aten.mT.default", {"self": t(3)}),
    ("aten.select.int", {"self": t(3), "dim": None, "index": 0}),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), RESULTS)
def test_results(name: str, arguments: dict[str, Any], expected: Any) -> None:
    assert infer(name, arguments, is_strict=True) == expected


test_refused = refusals(REFUSED)


@pytest.mark.parametrize(("name", "arguments"), UNKNOWN)
def test_unknown(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Unknown) as caught:
        infer(name, arguments, is_strict=True)
    assert str(caught.value), "expected a reason"


def test_ends_of_slices_that_symbols_decide_leave_the_length_unknown() -> None:
    sliced = infer("aten.slice.Tensor", {"self": t(U, 3), "dim": 0, "end": 5}, is_strict=True)
    assert isinstance(sliced, Tensor)
    assert isinstance(sliced.sizes[0], type(unknown()))
    assert sliced.sizes[1] == 3
    assert sliced.offset is None
    assert sliced.strides == (3, 1)


def test_a_cat_of_masks_and_numbers_has_the_common_dtype() -> None:
    joined = infer("aten.cat.default", {"tensors": (t(2, dtype=BOOL), t(2, dtype=I64))}, is_strict=True)
    assert joined == t(4, dtype=I64)
