"""Programs that call an unchecked kernel, with inputs that it takes and inputs that would have it leave its memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from tests.packages import bytes_of

import pt2kit

A = torch.ops.aten
HUGE = 10**7
"""An index far behind the end of every tensor here."""


class Case(NamedTuple):
    """A call of a kernel.

    Args:
        call: the call, of the inputs.
        sound: inputs that it takes.
        hostile: inputs that it must not get.
        is_fake: torch can call it with fake tensors, so that it can be traced.
    """

    call: Callable[..., Any]
    sound: tuple[Any, ...]
    hostile: tuple[Any, ...]
    is_fake: bool = True


class Program(torch.nn.Module):
    """A module that makes one call."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, *inputs: Any) -> Any:
        """Call the kernel."""
        return self.call(*inputs)


def saved(module: torch.nn.Module, inputs: tuple[Any, ...]) -> bytes:
    """The file of a module, exported as torch traces it."""
    return bytes_of(pt2kit.save, torch.export.export(module, inputs, strict=False))


def changed(tensor: torch.Tensor, number: int = HUGE) -> torch.Tensor:
    """The same with another last number."""
    made = tensor.clone()
    made.view(-1)[-1] = number
    return made


def _pool(count: int, name: str, *arguments: Any) -> tuple[Any, ...]:
    torch.manual_seed(0)
    x = torch.randn(1, 2, *[4] * count)
    out, indices = getattr(A, name)(x, *arguments)
    return torch.ones_like(out), x, indices


_TWO = ([2, 2], [2, 2], [0, 0], [1, 1], False)
_THREE = ([2] * 3, [2] * 3, [0] * 3, [1] * 3, False)
_POOL2, _POOL3 = _pool(2, "max_pool2d_with_indices", [2, 2]), _pool(3, "max_pool3d_with_indices", [2, 2, 2])
_ADAPTIVE = _pool(2, "adaptive_max_pool2d", [2, 2])
_FRACTIONAL = _pool(2, "fractional_max_pool2d", [2, 2], [2, 2], torch.rand(1, 2, 2))


def _with(inputs: tuple[Any, ...], position: int, value: Any) -> tuple[Any, ...]:
    return (*inputs[:position], value, *inputs[position + 1 :])


_WEIGHT = torch.randn(6, 3)
_INDICES = torch.tensor([0, 5, 2, 3])
_OFFSETS = torch.tensor([0, 2])
_, _BAG_OF, _BAG_SIZE, _MAX = A._embedding_bag(_WEIGHT, _INDICES, _OFFSETS, False, 2)
_BAGS = (torch.ones(2, 3), _INDICES, _BAG_OF, _BAG_SIZE, _MAX)
_PROBS = torch.randn(5, 2, 4).log_softmax(-1)
_TARGETS = torch.tensor([[1, 2], [3, 1]])
_LENGTHS = (torch.tensor([5, 5]), torch.tensor([2, 1]))
_LOSS, _ALPHA = A._ctc_loss.Tensor(_PROBS, _TARGETS, *_LENGTHS)
_MATRIX = torch.eye(4) * 3
_LD, _PIVOTS = A.linalg_ldl_factor(_MATRIX)
_LOGITS = torch.randn(3, 4)
_DATA = torch.randn(6, 3)
_SEGMENTS = A.segment_reduce(_DATA, "sum", lengths=torch.tensor([2, 4]))
_COUNTS = torch.tensor([2, 2, 1])
_LSTM = (torch.randn(5, 3), _COUNTS, torch.zeros(1, 2, 4), torch.zeros(1, 2, 4), torch.randn(16, 3), torch.randn(16, 4))
_LEAST = torch.tensor([-(2**63), 5])
_ON = (torch.tensor([1]), torch.tensor([1]))
_PLACES = torch.tensor([[0, 2], [1, 0]])

CASES: Mapping[str, Case] = {
    "max_pool2d": Case(
        lambda g, x, i: A.max_pool2d_with_indices_backward(g, x, *_TWO, i), _POOL2, _with(_POOL2, 2, changed(_POOL2[2]))
    ),
    "max_pool2d, negative": Case(
        lambda g, x, i: A.max_pool2d_with_indices_backward(g, x, *_TWO, i),
        _POOL2,
        _with(_POOL2, 2, changed(_POOL2[2], -HUGE)),
    ),
    "max_pool3d": Case(
        lambda g, x, i: A.max_pool3d_with_indices_backward(g, x, *_THREE, i),
        _POOL3,
        _with(_POOL3, 2, changed(_POOL3[2])),
    ),
    "adaptive_max_pool2d": Case(
        A.adaptive_max_pool2d_backward.default, _ADAPTIVE, _with(_ADAPTIVE, 2, changed(_ADAPTIVE[2]))
    ),
    "fractional_max_pool2d": Case(
        lambda g, x, i: A.fractional_max_pool2d_backward(g, x, [2, 2], [2, 2], i),
        _FRACTIONAL,
        _with(_FRACTIONAL, 2, changed(_FRACTIONAL[2])),
    ),
    "embedding_dense_backward": Case(
        lambda g, i: A.embedding_dense_backward(g, i, 6, -1, True),
        (torch.ones(4, 3), _INDICES),
        (torch.ones(4, 3), changed(_INDICES)),
    ),
    "embedding_bag": Case(
        lambda w, i, o: A._embedding_bag(w, i, o)[0],
        (_WEIGHT, _INDICES, _OFFSETS),
        (_WEIGHT, _INDICES, changed(_OFFSETS, -HUGE)),
    ),
    "embedding_bag, no offsets": Case(
        lambda w, i, o: A._embedding_bag.default(w, i, o, False, 0, False, None, False, 0)[0],
        (_WEIGHT, _INDICES, _OFFSETS),
        (_WEIGHT, _INDICES, _OFFSETS[:0]),
        is_fake=False,
    ),
    "int8 product": Case(
        lambda x, w: A._weight_int8pack_mm.default(x, w, torch.ones(4, dtype=torch.bfloat16)),
        (torch.ones(33).bfloat16()[1:].view(2, 16), torch.ones(4, 16, dtype=torch.int8)),
        (torch.ones(2, 8).bfloat16(), torch.ones(4, 8, dtype=torch.int8)),
        is_fake=False,
    ),
    "embedding_bag, dense backward": Case(
        lambda g, i, b, s, m: A._embedding_bag_dense_backward(g, i, b, s, m, 6, True, 0, None),
        _BAGS,
        _with(_BAGS, 2, changed(_BAG_OF)),
    ),
    "embedding_bag, backward without bags": Case(
        lambda g, i, o, s, m: A._embedding_bag_backward(g, i, o, i[:0], s, m, 6, False, 0, False, None),
        (torch.ones(2, 3), _INDICES, _OFFSETS, _BAG_SIZE, _MAX),
        (torch.ones(2, 3), _INDICES, _OFFSETS + 1, _BAG_SIZE, _MAX),
    ),
    "mkldnn_convolution": Case(
        lambda x, w, b: A.mkldnn_convolution.default(x, w, b, [0, 0], [1, 1], [1, 1], 1),
        (torch.ones(1, 3, 8, 8), torch.ones(64, 3, 3, 3), torch.ones(64)),
        (torch.ones(1, 3, 8, 8), torch.ones(64, 3, 3, 3), torch.ones(1).expand(64)),
        is_fake=False,
    ),
    "embedding_bag, sample weights": Case(
        lambda g, w, i, o, b: A._embedding_bag_per_sample_weights_backward(g, w, i, o, b, 0),
        (torch.ones(2, 3), _WEIGHT, _INDICES, _OFFSETS, _BAG_OF),
        (torch.ones(2, 3), _WEIGHT, changed(_INDICES), _OFFSETS, _BAG_OF),
    ),
    "ctc_loss": Case(
        lambda p, t, n, k: A._ctc_loss.Tensor(p, t, n, k)[0],
        (_PROBS, _TARGETS, *_LENGTHS),
        (_PROBS, changed(_TARGETS.flip(1), HUGE).flip(1), *_LENGTHS),
        is_fake=False,
    ),
    "ctc_loss, lengths": Case(
        lambda p, t: A._ctc_loss.default(p, t, [5, 5], [2, 1])[0],
        (_PROBS, _TARGETS),
        (_PROBS, changed(_TARGETS.flip(1), HUGE).flip(1)),
        is_fake=False,
    ),
    "ctc_loss backward": Case(
        lambda g, p, t, n, k, s, a: A._ctc_loss_backward.Tensor(g, p, t, n, k, s, a, 0),
        (torch.ones(2), _PROBS, _TARGETS, *_LENGTHS, _LOSS, _ALPHA),
        (torch.ones(2), _PROBS, changed(_TARGETS.flip(1), -HUGE).flip(1), *_LENGTHS, _LOSS, _ALPHA),
        is_fake=False,
    ),
    "nll_loss backward": Case(
        lambda g, x, t, w: A.nll_loss_backward(g, x, t, None, 1, -100, w),
        (torch.ones(()), _LOGITS, torch.tensor([0, 3, -100]), torch.tensor(2.0)),
        (torch.ones(()), _LOGITS, torch.tensor([0, 3, HUGE]), torch.tensor(2.0)),
    ),
    "ldl_solve": Case(
        lambda m, p, b: A.linalg_ldl_solve(m, p, b),
        (_LD, _PIVOTS, torch.ones(4, 1)),
        (_LD, changed(_PIVOTS, -3), torch.ones(4, 1)),
    ),
    "repeat_interleave": Case(
        lambda r: A.repeat_interleave.Tensor(r), (torch.tensor([1, 2]),), (torch.tensor([2**62, 2**62]),)
    ),
    "segment_reduce": Case(
        lambda d, o: A.segment_reduce(d, "sum", offsets=o),
        (_DATA, torch.tensor([0, 2, 6])),
        (_DATA, torch.tensor([0, 2, HUGE])),
    ),
    "segment_reduce backward": Case(
        lambda g, o, d, n: A._segment_reduce_backward(g, o, d, "sum", lengths=n),
        (torch.ones(2, 3), _SEGMENTS, _DATA, torch.tensor([2, 4])),
        (torch.ones(2, 3), _SEGMENTS, _DATA, torch.tensor([HUGE, 4])),
    ),
    "pad_packed": Case(
        lambda d, b: A._pad_packed_sequence.default(d, b, False, 0.0, -1)[0],
        (torch.ones(5, 3), _COUNTS),
        (torch.ones(5, 3), torch.tensor([2, 2, -1])),
        is_fake=False,
    ),
    "lstm.data": Case(
        lambda d, b, h, c, w, v: A.lstm.data(d, b, [h, c], [w, v], False, 1, 0.0, False, False)[0],
        _LSTM,
        _with(_LSTM, 1, torch.tensor([2, 2, HUGE])),
        is_fake=False,
    ),
    "fused_moving_avg": Case(
        lambda x, low, high: A._fused_moving_avg_obs_fq_helper_functional.default(
            x, *_ON, low, high, torch.ones(3), torch.zeros(3, dtype=torch.int32), 0.1, 0, 255, 0, True
        )[0],
        (torch.ones(3, 4), torch.zeros(3), torch.ones(3)),
        (torch.ones(3, 4), torch.zeros(3), torch.ones(1).expand(3)),
        is_fake=False,
    ),
    "masked_softmax": Case(
        lambda x: A._masked_softmax.default(x, torch.ones_like(x, dtype=torch.bool), 3, 2),
        (torch.randn(1, 2, 3, 4),),
        (torch.randn(1, 2, 3, 0),),
        is_fake=False,
    ),
    "rrelu_with_noise": Case(
        lambda x, out: A.rrelu_with_noise.out(x, torch.ones(4000), 0.1, 0.3, True, out=out),
        (torch.ones(4000), torch.ones(4000)),
        (torch.ones(4000), torch.ones(1)),
        is_fake=False,
    ),
    "masked_softmax, mask of rows": Case(
        lambda x: A._masked_softmax.default(x, torch.ones(1, 3, dtype=torch.bool), 3, 1),
        (torch.randn(1, 2, 3, 3),),
        (torch.randn(1, 2, 3, 3000),),
        is_fake=False,
    ),
    "multi_head_attention": Case(
        lambda x, b: A._native_multi_head_attention.default(
            x, x, x, 8, 2, torch.ones(24, 8), b, torch.ones(8, 8), torch.ones(8)
        )[0],
        (torch.randn(2, 3, 8), torch.ones(24)),
        (torch.randn(2, 3, 8), torch.ones(24, dtype=torch.bool)),
        is_fake=False,
    ),
    "choose_qparams": Case(
        lambda x: A.choose_qparams_optimized.default(x, 64, 200, 0.16, 8)[0],
        (torch.randn(64),),
        (torch.ones(1).expand(64),),
        is_fake=False,
    ),
    "div": Case(
        lambda a, b: A.div.Tensor_mode(a, b, rounding_mode="trunc"),
        (_LEAST, torch.tensor([2, -1])),
        (_LEAST, torch.tensor([-1, -1])),
    ),
    "eigvals": Case(lambda m: A.linalg_eigvals(m), (_MATRIX,), (torch.full((4, 4), float("nan")),)),
    "sparse_coo_tensor": Case(
        lambda i, v: A._sparse_coo_tensor_with_dims_and_tensors.default(
            2, 0, [3, 3], i, v, dtype=torch.float32, layout=torch.sparse_coo, device="cpu"
        ).to_dense(),
        (_PLACES, torch.ones(2)),
        (changed(_PLACES), torch.ones(2)),
        is_fake=False,
    ),
    "sparse_csr_tensor": Case(
        lambda c, i, v: A.sparse_compressed_tensor.comp_plain_value_size(
            c, i, v, [2, 3], layout=torch.sparse_csr, dtype=torch.float32
        ).to_dense(),
        (torch.tensor([0, 1, 2]), torch.tensor([0, 2]), torch.ones(2)),
        (torch.tensor([0, 1, 2]), torch.tensor([0, HUGE]), torch.ones(2)),
        is_fake=False,
    ),
}
