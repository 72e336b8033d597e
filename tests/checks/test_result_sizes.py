"""What everyday operators give: the sizes that torch gives, and what is said of arguments that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.checks.result_sizes import MADE, Misfit, Sizes, broadcast

CASES: list[tuple[str, dict[str, Any], list[Sizes]]] = [
    ("relu.default", {"self": (2, None)}, [(2, None)]),
    ("sum.dim_IntList", {"self": (2, 3, 4), "dim": [1]}, [(2, 4)]),
    ("sum.dim_IntList", {"self": (2, 3, 4), "dim": []}, [()]),
    ("mean.dim", {"self": (2, 3, 4), "dim": [-1], "keepdim": True}, [(2, 3, 1)]),
    ("max.dim", {"self": (2, 3), "dim": 0}, [(3,), (3,)]),
    ("permute.default", {"self": (2, 3, None), "dims": [2, 0, 1]}, [(None, 2, 3)]),
    ("transpose.int", {"self": (2, 3, 4), "dim0": 0, "dim1": -1}, [(4, 3, 2)]),
    ("t.default", {"self": (2, 3)}, [(3, 2)]),
    ("flatten.using_ints", {"self": (2, 3, 4), "start_dim": 1}, [(2, 12)]),
    ("unsqueeze.default", {"self": (2, 3), "dim": -1}, [(2, 3, 1)]),
    ("select.int", {"self": (2, 3), "dim": 1, "index": -3}, [(2,)]),
    ("slice.Tensor", {"self": (9,), "dim": 0, "start": 1, "end": 1 << 62, "step": 3}, [(3,)]),
    ("slice.Tensor", {"self": (9,), "dim": 0, "start?": True}, [(None,)]),
    ("cat.default", {"tensors": [(2, 3), (0,), (4, 3)]}, [(6, 3)]),
    ("stack.default", {"tensors": [(2, 3), (2, 3)], "dim": -1}, [(2, 3, 2)]),
    ("split.Tensor", {"self": (7, 2), "split_size": 3}, [(3, 2), (3, 2), (1, 2)]),
    ("split_with_sizes.default", {"self": (6,), "split_sizes": [1, 5]}, [(1,), (5,)]),
    ("addmm.default", {"mat1": (2, 3), "mat2": (3, 4)}, [(2, 4)]),
    ("matmul.default", {"self": (7, 2, 3), "other": (3, 4)}, [(7, 2, 4)]),
    ("linear.default", {"input": (7, 2, 3), "weight": (4, 3)}, [(7, 2, 4)]),
    ("conv2d.default", {"input": (1, 3, 8, 8), "weight": (5, 3, 3, 3), "padding": [1, 0]}, [(1, 5, 8, 6)]),
    ("conv2d.default", {"input": (3, 8, 8), "weight": (5, 3, 3, 3), "stride": [2]}, [(5, 3, 3)]),
    ("max_pool2d.default", {"self": (1, 3, 8, 9), "kernel_size": [2, 2]}, [(1, 3, 4, 4)]),
    ("adaptive_avg_pool2d.default", {"self": (1, 3, 8, 9), "output_size": [2, 1]}, [(1, 3, 2, 1)]),
    ("upsample_nearest2d.vec", {"input": (1, 3, 8, 9), "scale_factors": [2.0, 0.5]}, [(1, 3, 16, 4)]),
    ("embedding.default", {"weight": (10, 4), "indices": (2, 3)}, [(2, 3, 4)]),
    ("layer_norm.default", {"input": (2, 3, 4), "normalized_shape": [3, 4]}, [(2, 3, 4)]),
    ("index.Tensor", {"self": (5, 6, 7), "indices": [None, (2, 1), (3,)]}, [(5, 2, 3)]),
    ("index.Tensor", {"self": (5, 6, 7), "indices": [(2,), None, (2,)]}, [(2, 6)]),
    ("topk.default", {"self": (5, 6), "k": 2}, [(5, 2), (5, 2)]),
    ("index_select.default", {"self": (5, 6), "dim": 1, "index": (3,)}, [(5, 3)]),
]
MISFITS: list[tuple[str, dict[str, Any], str]] = [
    ("split_with_sizes.default", {"self": (6,), "split_sizes": [1, 4]}, "parts of 6 elements in all"),
    ("select.int", {"self": (2, 3), "dim": 1, "index": 3}, "from -3 to 2"),
    ("slice.Tensor", {"self": (9,), "step": 0}, "a step of 1 or more"),
    ("cat.default", {"tensors": [(2, 3), (4, 4)]}, "differ along dimension 0 alone"),
    ("stack.default", {"tensors": [(2, 3), (2, 4)]}, "tensors of one size"),
    ("conv2d.default", {"input": (1, 3, 8, 8), "weight": (5, 3, 3, 3), "padding": [-1, 0]}, "padding of 0 or more"),
    ("max_pool2d.default", {"self": (1, 3, 8, 9), "kernel_size": [-1, 2]}, "stride of 1 or more"),
    ("max_pool2d.default", {"self": (1, 3, 8, 9), "kernel_size": [9, 2]}, "a window that fits"),
    ("upsample_nearest2d.vec", {"input": (1, 3, 8, 9), "scale_factors": [2.0]}, "2 numbers as scale_factors"),
    ("layer_norm.default", {"input": (2, 3, 4), "normalized_shape": []}, "the last sizes of [2, 3, 4]"),
    ("index.Tensor", {"self": (5,), "indices": []}, "1 to 1 indices, got 0"),
    ("index.Tensor", {"self": (5,), "indices": [None, (2,)]}, "1 to 1 indices"),
    ("topk.default", {"self": (5, 6), "k": 7}, "k from 0 to 6"),
    ("where.self", {"condition": (2,), "self": (3,), "other": ()}, "sizes that broadcast"),
]


@pytest.mark.parametrize(("name", "call", "expected"), CASES)
def test_sizes(name: str, call: dict[str, Any], expected: list[Sizes]) -> None:
    """They are those that torch gives."""
    assert list(MADE[f"torch.ops.aten.{name}"](call) or ()) == expected


@pytest.mark.parametrize(("name", "call", "text"), MISFITS)
def test_misfits(name: str, call: dict[str, Any], text: str) -> None:
    """What does not fit is said."""
    with pytest.raises(Misfit) as caught:
        MADE[f"torch.ops.aten.{name}"](call)
    assert text in str(caught.value)


SIZE = st.none() | st.integers(0, 5)
TENSOR = st.none() | st.lists(SIZE, max_size=4).map(tuple)
PLAIN = st.none() | st.integers(-9, 9) | st.floats() | st.text(max_size=3) | st.lists(SIZE, max_size=4) | st.booleans()
NAMES = (
    *("dim", "dims", "dim0", "dim1", "start_dim", "end_dim", "index", "start", "end", "step", "split_size", "k"),
    *("split_sizes", "kernel_size", "stride", "padding", "dilation", "output_size", "scale_factors", "keepdim"),
    *("normalized_shape", "exponent", "other", "ceil_mode", "transposed"),
)


@given(
    st.sampled_from(sorted(MADE)),
    st.dictionaries(st.sampled_from(("self", "input", "weight", "index", "mat1", "mat2", "condition")), TENSOR),
    st.dictionaries(st.sampled_from(NAMES), PLAIN),
    st.fixed_dictionaries({}, optional={"tensors": st.lists(TENSOR), "indices": st.lists(TENSOR) | TENSOR}),
)
def test_any_call(name: str, tensors: dict[str, Any], plain: dict[str, Any], lists: dict[str, Any]) -> None:
    """Whatever a call gets, it gives sizes, or says what does not fit."""
    try:
        made = MADE[name]({**plain, **tensors, **lists})
    except Misfit:
        return
    assert made is None or all(sizes is None or isinstance(sizes, tuple) for sizes in made)


def test_symbols_broadcast() -> None:
    """A symbol gives way to a number that is not 1, and stands beside 1."""
    assert broadcast((None, 1), (3, None)) == (3, None)
