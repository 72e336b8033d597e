"""Kernels of the runtime against torch: the samples of op_db, by overload and by what they decompose into."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from tests.bridge.operators.fake_calls import overload as find_overload
from tests.bridge.runtime_samples import DTYPES, call_of, calls_of, entries, verdict

from pt2kit.runtime.table import binding, find_kernel
from pt2kit.schema.operators import find_operator, nearest

pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.filterwarnings("ignore")]

ENTRIES = entries()
PARTS = 7
Counts = dict[str, collections.Counter[str]]


def compared(found, dtypes, count):
    """Compare samples of some entries; returns verdicts by operator."""
    by_operator: Counts = collections.defaultdict(collections.Counter)
    reasons: dict[str, str] = {}
    for op in found:
        for dtype in dtypes:
            if not op.supports_dtype(dtype, "cpu"):
                continue
            for call in calls_of(op, dtype, count):
                what, why = verdict(call)
                by_operator[call.name][what] += 1
                if what == "different":
                    reasons.setdefault(call.name, f"{op.name} {dtype}: {why}")
    return by_operator, reasons


@pytest.mark.slow
@pytest.mark.sampled(PARTS + 1)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_kernel_gives_another_result(part, dtype):
    """A part of op_db in one element type: equal, or refused, or without a kernel."""
    by_operator, reasons = compared(ENTRIES[part::PARTS], (dtype,), 3)
    assert not reasons
    total: collections.Counter[str] = sum(by_operator.values(), collections.Counter())
    assert total["equal"] > 0.8 * total.total()


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("pivots", [True, False])
def test_parts_of_lu_that_nobody_asks_for(data, pivots):
    """A part that is not unpacked is empty. op_db unpacks all."""
    factors = torch.linalg.lu_factor(torch.arange(24.0).reshape(2, 4, 3) % 7)
    call = call_of(torch.ops.aten.lu_unpack.default, (*factors, data, pivots), {})
    assert call is not None
    assert verdict(call) == ("equal", "")


RENORM = torch.tensor([[3.0, 4.0], [0.1, 0.2], [0.0, 0.0], [-6.0, 8.0]])


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("overload", ["embedding_renorm", "embedding_renorm_"])
def test_embedding_renorm(overload, norm):
    """The rows that indices name are made as short as the largest norm, each once. op_db has no samples."""
    indices = torch.tensor([[0, 0], [1, 2]])
    call = call_of(getattr(torch.ops.aten, overload).default, (RENORM.clone(), indices, 1.5, norm), {})
    assert call is not None
    assert verdict(call) == ("equal", "")


BYTE = torch.tensor([255, 200, 128, 3], dtype=torch.uint8)
NUMBERS = torch.arange(24.0).reshape(2, 3, 4)
MATRICES = torch.tensor([[[1.0, 2.0], [0.5, -1.0]], [[30.0, 1.0], [2.0, torch.inf]], [[0.0, 0.0], [1e-9, 0.0]]])
SCALES = {"beta": 0.5, "alpha": 1.5}
DECOMPOSED = "quantized_decomposed"
FAKED = torch.tensor([0.3, -0.26, 1.0]), torch.tensor([0.1]), torch.tensor([3])
OFF = torch.tensor([0])
LIMIT = torch.tensor([5])
PLACES = torch.tensor([0.0, 0.5, 2.0, 2.5])
CALLS: dict[str, Any] = {
    # Sums of products take 32 bits, and nothing is left of what is shifted out.
    "products of bytes": (
        "_int_mm.default",
        torch.full((17, 8), -128).to(torch.int8),
        torch.full((8, 8), 127).to(torch.int8),
    ),
    "losses of bytes": ("hinge_embedding_loss.default", BYTE, BYTE // 3 * 3, 1.0, 0),
    "triangle and right side of two types": (
        *("linalg_solve_triangular.default", NUMBERS[0, :, :3] + torch.eye(3), NUMBERS[0].double()),
        {"upper": True},
    ),
    "powers of bytes": ("vander.default", torch.arange(4, dtype=torch.int8), 3, False),
    "powers, the greatest first": ("vander.default", torch.tensor([2.0, 0.5])),
    "powers in order": ("vander.default", torch.arange(4, dtype=torch.int8), None, True),
    "shifts out": ("bitwise_right_shift.Tensor", BYTE, torch.tensor([8, 9, 7, 1], dtype=torch.uint8)),
    # Elements that are cut off do not come back at the other side, and -1 is the last row.
    "cut and wrapped": ("pad.default", NUMBERS, [-1, 1, 0, -1], "circular"),
    "wrapped and cut": ("pad.default", NUMBERS, [2, -1], "circular"),
    "last row": (
        *("embedding_bag.padding_idx", NUMBERS[0], torch.tensor([0, 2, 1, 2]), torch.tensor([0, 2])),
        *(False, 0, False, None, False, -1),
    ),
    # torch gathers nothing by an empty index, whatever its rank is.
    "empty index": ("gather.default", torch.rand(5), 0, torch.zeros(2, 0, dtype=torch.int64)),
    "empty index of another rank": (
        *("scatter_reduce.two", torch.rand(5), 0, torch.zeros(2, 0, dtype=torch.int64), torch.rand(2, 3), "amin"),
    ),
    # Of a dimension whose size stays, or is doubled, some kernels do not look at the factor.
    "copied": ("upsample_nearest2d.vec", torch.rand(1, 2, 5, 5), None, [1.1, 1.1]),
    "doubled": ("upsample_nearest2d.vec", torch.rand(1, 2, 3, 3), None, [2.3, 2.2]),
    "neither copied nor doubled": ("upsample_nearest1d.vec", torch.rand(1, 2, 5), None, [1.1]),
    "volume": ("upsample_nearest3d.vec", torch.rand(1, 2, 3, 3, 3), None, [1.1, 2.3, 2.2]),
    "copied linearly": ("upsample_bilinear2d.vec", torch.rand(1, 2, 5, 5), None, False, [1.1, 2.2]),
    "copied by a wider window": ("upsample_bicubic2d.vec", torch.rand(1, 2, 5, 5), None, False, [1.1, 1.1]),
    "copied with antialiasing": ("_upsample_bilinear2d_aa.vec", torch.rand(1, 2, 5, 5), None, False, [1.1, 2.2]),
    # Without dimensions of its own, the weight of the target is returned even if nothing is reduced.
    "loss of one row": ("nll_loss_forward.default", torch.rand(3), torch.tensor(1), torch.rand(3), 0, -100),
    # Of parts that both are divided by 0, one may be infinite and one nan.
    "no freedom": ("var.correction", torch.tensor([-2 + 0j, -1 + 0j]), [0], {"correction": 2}),
    "squeezed in place": ("squeeze_.default", NUMBERS[:1, :, :1].clone()),
    "axes swapped in place": ("swapaxes_.default", NUMBERS.clone(), 0, 2),
    "dims swapped in place": ("swapdims_.default", NUMBERS.clone(), 0, 1),
    # An infinity is of one matrix alone.
    "exponentials": ("matrix_exp.default", MATRICES),
    # Before torch 2.14, numbers are cut before they are counted, but only to the widest integers.
    "whole numbers up to a fraction": ("arange.default", 2.5, {"dtype": torch.int64}),
    "whole numbers between fractions": ("arange.start_step", -0.5, 5.9, 1.5, {"dtype": torch.int64}),
    "narrow numbers between fractions": ("arange.start", 0.5, 3.9, {"dtype": torch.int32}),
    "poles of zeta": (
        "special_zeta.default",
        torch.tensor([2.5, 3, 0.5, 1, 2.5]),
        torch.tensor([-2, -2, -2, -2, -2.5]),
    ),
    # One triangle is read, whatever stands in the other.
    "upper factor": ("cholesky_solve.default", NUMBERS[0, :, :1], NUMBERS[0, :, :3] + torch.eye(3), True),
    "lower factor": ("cholesky_inverse.default", NUMBERS[0, :, :3] + torch.eye(3), False),
    "row-major or not": ("as_strided_scatter.default", NUMBERS[0, :, :3].T, torch.ones(2, 2), [2, 2], [1, 2], 1),
    # The product is of the type of the result, and steps are not of the type of what is summed.
    "scaled product of integers": ("addr.default", torch.ones(3, 2), torch.arange(3), torch.arange(2), SCALES),
    "scaled product of flags": ("addr.default", torch.ones(2, 2).bool(), BYTE[:2] > 0, torch.ones(2), SCALES),
    "areas of integers": ("trapezoid.x", torch.arange(3), torch.tensor([0.0, 0.5, 2.0])),
    "areas of bytes": ("cumulative_trapezoid.dx", BYTE, {"dx": 1.5}),
    "areas of complex steps": ("trapz.x", torch.ones(3), torch.tensor([1j, 2, 3])),
    "logit of crossing bounds": ("logit.default", torch.tensor([0.1, 0.5, 0.7, float("nan")]), 0.6),
    "runs of one number": ("unique_consecutive.default", torch.tensor(3), True, True, None),
    "runs of one dimension": ("unique_consecutive.default", torch.tensor([1, 1, 2]), False, False, 0),
    "factor of a batch": ("triangular_solve.default", torch.ones(2, 3, 1), NUMBERS[0, :, :3] + torch.eye(3)),
    "fake quantization that is off": (
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
        *FAKED,
        OFF,
        0,
        9,
    ),
    "fake quantization that is on": (
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
        *FAKED,
        ~OFF,
        0,
        9,
    ),
    "range of a tensor": (f"{DECOMPOSED}.choose_qparams.tensor", NUMBERS, -128, 127, 1e-5, torch.int8),
    "even range of a tensor": (f"{DECOMPOSED}.choose_qparams_symmetric.tensor", NUMBERS, -128, 127, 1e-5, torch.int8),
    "limits in tensors": (f"{DECOMPOSED}.quantize_per_tensor.tensor2", *FAKED, LIMIT - 9, LIMIT, torch.int8),
    "limits and a number": (
        f"{DECOMPOSED}.quantize_per_tensor.tensor2",
        FAKED[0][0],
        *FAKED[1:],
        LIMIT,
        LIMIT,
        torch.int8,
    ),
    "slope of a number": ("_prelu_kernel.default", torch.tensor(-2.0), torch.tensor([0.5])),
    "distances of integers": ("pairwise_distance.default", BYTE.long(), BYTE.long() // 2, 1.0, 0.5),
    "no elements of each": ("combinations.default", BYTE, 0),
    "powers in place": ("pow_.Tensor", NUMBERS.clone(), NUMBERS % 3),
    "quotients in place": ("floor_divide_.Tensor", NUMBERS.clone(), NUMBERS % 3 + 1.5),
    "powers of doubles in place": ("float_power_.Tensor", NUMBERS.double(), NUMBERS % 3),
    "scaled in place": ("ldexp_.default", NUMBERS.clone(), torch.arange(4)),
    "view with another sign": ("_neg_view.default", NUMBERS),
    "cosines of other targets": (
        "cosine_embedding_loss.default",
        NUMBERS[0],
        NUMBERS[1],
        torch.tensor([1, -1, 0]),
        0.5,
    ),
    "diagonal": ("fill_diagonal_.default", torch.zeros(7, 3), 2),
    "wrapped diagonal": ("fill_diagonal_.default", torch.zeros(7, 3), 2.5, True),
    "diagonal of three": ("fill_diagonal_.default", torch.zeros(3, 3, 3, dtype=torch.int64), 2),
    "norms of rows": ("norm_except_dim.default", NUMBERS, 2, 1),
    "norms of columns": ("frobenius_norm.dim", NUMBERS, [1, 2], True),
    "slopes": ("gradient.scalarint", NUMBERS**2),
    "slopes of steps": ("gradient.scalarint", NUMBERS**2, {"spacing": 0.5, "dim": 2, "edge_order": 2}),
    "slopes of steps of each": ("gradient.scalarrayarray", NUMBERS**2, {"spacing": [0.5, 2.0], "dim": [1, 2]}),
    "slopes between places": ("gradient.tensorarray", NUMBERS**2, {"spacing": [PLACES], "dim": [2]}),
    "split at places of a tensor": ("tensor_split.tensor_indices_or_sections", NUMBERS, torch.tensor([1, 3]), 2),
    "split into as many as a tensor says": ("tensor_split.tensor_indices_or_sections", NUMBERS, torch.tensor(3), 2),
    "convolution of time first": ("conv_tbc.default", NUMBERS, torch.ones(2, 4, 3), torch.arange(3.0), 1),
    "conjugate of a number": ("mH.default", torch.tensor(1 + 2j)),
    "transpose of a number": ("mT.default", torch.tensor(2.0)),
    "axes of a number": ("swapaxes.default", torch.tensor(2.0), 0, -1),
    "most frequent of elements that equal none": (
        "mode.default",
        torch.tensor([[torch.nan, torch.nan, torch.nan], [1, torch.nan, torch.nan]]),
    ),
    "quantization by a scale of 0": (
        "fake_quantize_per_tensor_affine_cachemask.default",
        torch.tensor([0, 1, -1, torch.nan, torch.inf]),
        0.0,
        3,
        -128,
        127,
    ),
    "quantization of channels by a scale of 0": (
        "fake_quantize_per_channel_affine_cachemask.default",
        NUMBERS,
        torch.zeros(3),
        torch.arange(3, dtype=torch.int32),
        1,
        -9,
        9,
    ),
    "halves and whole zero points": (
        "fake_quantize_per_channel_affine_cachemask.default",
        NUMBERS,
        torch.full((3,), 2.0),
        torch.arange(3, dtype=torch.int32),
        1,
        -9,
        9,
    ),
    "halves and zero points of floats": (
        "fake_quantize_per_channel_affine_cachemask.default",
        NUMBERS,
        torch.full((3,), 2.0),
        torch.arange(3.0),
        1,
        -9,
        9,
    ),
    "equal elements without eps": (
        *("native_batch_norm.default", torch.ones(2, 3), None, None, torch.zeros(3), torch.ones(3)),
        *(True, 0.1, 0.0),
    ),
    "means kept in half precision": (
        *("native_batch_norm.default", 300 + torch.arange(12, dtype=torch.float16).view(3, 2, 2) / 4),
        *(torch.full((2,), 20, dtype=torch.float16), None, None, None, True, 0.1, 1e-5),
    ),
    "equal channels without eps": ("instance_norm.default", torch.ones(2, 3, 4), *[None] * 4, True, 0.1, 0.0, False),
    "quantiles near 0": ("special_ndtri.default", torch.tensor([0, 1e-300, 1e-20, 0.5, 1, 2], dtype=torch.double)),
    "inverse near 0": ("erfinv.default", torch.tensor([-1, -1e-3, -1e-5, 0, 1e-12, 2], dtype=torch.double)),
    "all that half a spectrum has": ("fft_irfftn.default", NUMBERS + 1j, [2, -1], [0, 1]),
    "differences of joined": ("diff.default", NUMBERS, 2, 1, torch.full((2, 1, 4), 1j)),
    # Sizes of 0 next to others that are computed from the number of elements.
    "products of rows of no elements": ("matmul.default", torch.zeros(2, 3, 0), torch.zeros(0, 4)),
    "linear map of no features": ("linear.default", torch.zeros(2, 3, 0), torch.zeros(4, 0), torch.ones(4)),
    "gradient of no words": ("embedding_dense_backward.default", torch.zeros(0, 4), LIMIT[:0].long(), 5, -1, False),
    "maxima of no images": ("adaptive_max_pool2d.default", torch.zeros(0, 3, 4, 4), [2, 2]),
    "no images from their maxima": (
        *("max_unpool2d.default", torch.zeros(0, 3, 2, 2), torch.zeros(0, 3, 2, 2, dtype=torch.int64), [4, 4]),
    ),
    "runs of one row": ("unique_consecutive.default", NUMBERS[0, :1], True, True, 0),
    "runs of no elements": ("unique_consecutive.default", NUMBERS[0, 0, :0]),
    "attention of no sequences": (
        *("_native_multi_head_attention.default", *[torch.zeros(0, 3, 4)] * 3, 4, 2),
        *(torch.zeros(12, 4), torch.zeros(12), torch.zeros(4, 4), torch.zeros(4)),
    ),
    "quantiles of a number": ("quantile.default", torch.tensor(2.5), torch.tensor([0.1, 0.5]), -1),
    "positions and frequencies": ("einsum.default", "i,j->ij", [torch.arange(3), torch.rand(4)]),
    "powers of two in single precision": ("ldexp.Tensor", NUMBERS.double(), torch.tensor([3, -200, 200, 120])),
    "powers of two in half precision": ("ldexp.Tensor", NUMBERS, torch.tensor([1.57, 0.3, -7, 30]).half()),
    "the first of several nan": ("median.dim", torch.tensor([[1, torch.nan, 2, torch.nan], [torch.nan] * 4]), 1),
    "remainders of no elements": ("remainder.Scalar", LIMIT[:0].long(), 0),
    "quantiles next to infinity": (
        *("quantile.default", torch.tensor([0.5, torch.inf, 1.5, torch.inf, -1]), torch.linspace(0, 1, 5)),
    ),
    "means of large integers": ("avg_pool1d.default", torch.tensor([[[-(2**63), -2, 2**62, 1, -3, 2]]]), [2]),
    "a number as a tensor": ("prims.scalar_tensor.default", 2, {"dtype": torch.int16, "device": torch.device("cpu")}),
}


IMAGE = torch.arange(4.0).reshape(1, 4, 1, 1)
COPIES: dict[str, Any] = {
    "pixel_shuffle.default": (IMAGE, 1),
    "pixel_unshuffle.default": (IMAGE, 1),
    "channel_shuffle.default": (IMAGE, 1),
    "im2col.default": (IMAGE, [1, 1], [1, 1], [0, 0], [1, 1]),
    "chain_matmul.default": ([IMAGE[0, :, 0]],),
    "sign.default": (IMAGE > 1,),
    "sgn.default": (IMAGE > 1,),
    "_conj_physical.default": (IMAGE,),
    "logcumsumexp.default": (IMAGE[0, 3, 0, 0], 0),
}
"""Operator -> arguments whose elements are those of the result."""


@pytest.mark.parametrize("name", COPIES)
def test_results_are_copies_where_those_of_torch_are(name):
    """A write to the result later must not change the operand."""
    call = call_of(find_overload(f"aten.{name}"), COPIES[name], {})
    assert call is not None
    assert verdict(call) == ("equal", "")
    operands = [one for given in call.arguments.values() for one in (given if isinstance(given, list) else [given])]
    kernel, operator = find_kernel(call.name), find_operator(call.name, nearest(""))
    assert kernel is not None
    assert operator is not None
    result = binding(kernel, operator)(**call.arguments)
    assert not any(np.shares_memory(result, one) for one in operands if isinstance(one, np.ndarray))


Halves = Callable[..., torch.Tensor]


def recurrent(x: Halves, count: int) -> list[torch.Tensor]:
    """Return weights and biases of so many gates."""
    return [x(count * 8, 6) / 8, x(count * 8, 8) / 8, x(count * 8), x(count * 8)]


HALVES: dict[str, Callable[[Halves], tuple[Any, ...]]] = {
    "add.Tensor": lambda x: (x(), 0.3),
    "sub.Tensor": lambda x: (x(), x(), {"alpha": 0.3}),
    "rsub.Scalar": lambda x: (x(), 0.3),
    "mul.Tensor": lambda x: (x(), 0.3),
    "div.Tensor": lambda x: (x(), 0.3),
    "div.Tensor_mode": lambda x: (x(), x(), {"rounding_mode": "trunc"}),
    "floor_divide.Scalar": lambda x: (x(), 0.3),
    "remainder.Scalar": lambda x: (x(), 0.3),
    "fmod.Scalar": lambda x: (x(), 0.3),
    "pow.Tensor_Scalar": lambda x: (x().abs(), 0.3),
    "pow.Scalar": lambda x: (0.3, x()),
    "eq.Scalar": lambda x: (torch.full_like(x(), 0.3), 0.3),
    "hardshrink.default": lambda x: (torch.full_like(x(), 0.3), 0.3),
    "logit.default": lambda x: (x().sigmoid(), 0.1),
    "log_softmax.int": lambda x: (x(), 1),
    "_log_softmax.default": lambda x: (x(), 0, False),
    "cross_entropy_loss.default": lambda x: (x(), torch.arange(40) % 50, None, 0),
    "mse_loss.default": lambda x: (x(), x(), 0),
    "kl_div.default": lambda x: (x(), x().sigmoid(), 0),
    "soft_margin_loss.default": lambda x: (x(), x().sign(), 0),
    "margin_ranking_loss.default": lambda x: (x(), x(), x().sign(), 0.3, 0),
    "hinge_embedding_loss.default": lambda x: (x(), x().sign(), 8.396, 0),
    "cosine_embedding_loss.default": lambda x: (x(), x(), x()[:, 0].sign(), 0.3, 0),
    "triplet_margin_loss.default": lambda x: (x(), x(), x(), 0.3, 2.0, 1e-6, True, 0),
    "poisson_nll_loss.default": lambda x: (x().abs(), x().abs(), False, True, 1e-8, 0),
    "binary_cross_entropy.default": lambda x: (x().sigmoid(), x().sigmoid(), None, 0),
    "binary_cross_entropy_with_logits.default": lambda x: (x(), x().sigmoid(), None, x()[0].abs(), 0),
    "pairwise_distance.default": lambda x: (x(), x()),
    "cosine_similarity.default": lambda x: (x(), x()),
    "linalg_cross.default": lambda x: (x(40, 3), x(40, 3)),
    "lstm_cell.default": lambda x: (x(40, 6), [x(40, 8)] * 2, *recurrent(x, 4)),
    "gru_cell.default": lambda x: (x(40, 6), x(40, 8), *recurrent(x, 3)),
    "rnn_relu_cell.default": lambda x: (x(40, 6), x(40, 8), *recurrent(x, 1)),
    "gru.input": lambda x: (x(5, 4, 6), x(1, 4, 8), recurrent(x, 3), True, 1, 0.0, False, False, False),
    "rnn_tanh.input": lambda x: (x(5, 4, 6), x(1, 4, 8), recurrent(x, 1), True, 1, 0.0, False, False, False),
    "adaptive_avg_pool3d.default": lambda x: (x(2, 3, 8, 7, 6), [3, 3, 2]),
    "diff.default": lambda x: (x(), 2),
    "addr.default": lambda x: (x(), x(40), x(50), {"beta": 0.3, "alpha": 0.7}),
    "addmv.default": lambda x: (x(40), x(), x(50), {"beta": 0.3, "alpha": 0.7}),
    "addbmm.default": lambda x: (x(5, 9), x(3, 5, 4), x(3, 4, 9), {"beta": 0.3, "alpha": 0.7}),
    "index_put.default": lambda x: (x(), [torch.arange(90) % 7], x(90, 50), True),
    "index_add.default": lambda x: (x(40, 5), 0, torch.arange(90) % 7, x(90, 5), {"alpha": 0.7}),
    "index_reduce.default": lambda x: (x(), 0, torch.arange(90) % 7, x(90, 50), "mean"),
    "scatter_reduce.two": lambda x: (x(), 0, torch.arange(40)[:, None].expand(40, 50) % 7, x(), "mean"),
    "scaled_dot_product_attention.default": lambda x: (x(20, 3, 8, 16), x(20, 3, 8, 16), x(20, 3, 8, 16)),
    "_scaled_dot_product_attention_math.default": lambda x: (x(2, 3, 8, 16), x(2, 3, 8, 16), x(2, 3, 8, 16)),
    "upsample_linear1d.vec": lambda x: (x(2, 3, 8), [13], False, None),
    "upsample_bilinear2d.vec": lambda x: (x(2, 3, 8, 8), [13, 5], False, None),
    "upsample_trilinear3d.vec": lambda x: (x(2, 3, 4, 5, 6), [7, 6, 5], True, None),
    "grid_sampler_2d.default": lambda x: (x(2, 3, 8, 9), x(2, 5, 6, 2).tanh(), 0, 0, False),
    "grid_sampler_3d.default": lambda x: (x(2, 3, 4, 5, 6), x(2, 3, 4, 5, 3).tanh(), 0, 0, True),
}
"""Operator -> its arguments, from a function that draws numbers of a shape, [40, 50] by default."""

FAR = {"scaled_dot_product_attention.default": 6e-3}
"""Operator -> the share of elements that may be beyond the tolerance, 1e-3 by default. The fused attention of torch
sums in vectors of the processor: 3e-3 differ with those of AVX2; 1.2e-2 if nothing is rounded on the way."""


def computed(call):
    """The result of the kernel of a call."""
    kernel, operator = find_kernel(call.name), find_operator(call.name, nearest(""))
    assert kernel is not None
    assert operator is not None
    return binding(kernel, operator)(**call.arguments)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", HALVES)
def test_half_precision_is_rounded_where_torch_does(name, dtype):
    """Of each result, at most one element in a thousand is beyond torch's tolerance, if not `FAR` says why."""
    generator = torch.Generator().manual_seed(0)
    args = list(HALVES[name](lambda *sizes: (torch.randn(sizes or (40, 50), generator=generator) * 3).to(dtype)))
    kwargs = args.pop() if isinstance(args[-1], dict) else {}
    call = call_of(find_overload(f"aten.{name}"), args, kwargs)
    assert call is not None
    results = computed(call), call.result
    array, wanted = (one[0] if isinstance(one, tuple) else one for one in results)
    rtol = 1e-3 if dtype == torch.float16 else 1.6e-2
    got = torch.from_numpy(np.array(array, np.float32)).to(wanted.dtype)
    is_far = ~torch.isclose(got, wanted, rtol=rtol, atol=1e-5, equal_nan=True)
    assert is_far.float().mean() <= FAR.get(name, 1e-3)


@pytest.mark.parametrize("name", CALLS)
def test_calls_without_samples(name):
    """Calls of which op_db has no samples."""
    overload, *args = CALLS[name]
    kwargs = args.pop() if isinstance(args[-1], dict) else {}
    operator = find_overload(overload if overload.count(".") == 2 else f"aten.{overload}")
    call = call_of(operator, args, kwargs)
    assert call is not None
    assert verdict(call) == ("equal", "")


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_numbers_at_the_edges_of_bins(dtype):
    """Rounding decides about them, as in torch; exact places would be other ones, which `verdict` takes for better."""
    for bins, low, high in ((5, -2, 2), (10, 0, 1), (7, -1, 1), (64, -4, 4)):
        numbers = (torch.arange(-20, 21) / 10).to(dtype)
        call = call_of(torch.ops.aten.histc.default, (numbers, bins, low, high), {})
        assert call is not None
        assert computed(call).tolist() == torch.histc(numbers, bins, low, high).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("left", "right", "ends"),
    [
        ((8, 16), (3, 16, 8), [3, 3, 8]),
        ((3, 8, 16), (16, 24), [8, 8, 24]),
        ((8, 48), (48, 16), [16, 16, 48]),
        ((3, 8, 16), (3, 16, 8), None),
    ],
    ids=["rows", "columns", "sums", "batch"],
)
def test_products_of_groups(left, right, ends, dtype):
    """Groups of rows, of columns and of what is summed over; empty groups too. op_db has no sample."""
    torch.manual_seed(0)
    offsets = None if ends is None else torch.tensor(ends, dtype=torch.int32)
    operands = (torch.randn(left).to(dtype), torch.randn(right).to(dtype), offsets)
    call = call_of(torch.ops.aten._grouped_mm.default, operands, {})
    assert call is not None
    assert verdict(call) == ("equal", "")


def test_scaled_products_of_float8():
    """One scale, one per row and column, a bias, other types; torch heeds the scale of results for a named float8."""
    torch.manual_seed(0)
    left, right = torch.randn(16, 32).to(torch.float8_e4m3fn), torch.randn(16, 32).to(torch.float8_e4m3fn).t()
    one, rows, columns = torch.tensor([0.5, 3.0]), torch.rand(16, 1) + 0.5, torch.rand(1, 16) + 0.5
    scaled = [
        ((one[0], one[1]), {}),
        ((one[0], one[1]), {"scale_result": one[1]}),
        ((one[0], one[1]), {"scale_result": one[1], "out_dtype": torch.float8_e5m2}),
        ((one[0], one[1]), {"out_dtype": torch.float32, "scale_result": one[1], "bias": torch.randn(16)}),
        ((one[0], one[1]), {"out_dtype": torch.bfloat16, "bias": torch.randn(16).bfloat16()}),
        ((rows, columns), {"out_dtype": torch.float32}),
    ]
    for scales, options in scaled:
        call = call_of(torch.ops.aten._scaled_mm.default, (left, right, *scales), options)
        assert call is not None
        assert verdict(call) == ("equal", ""), options


def test_exponents_have_no_sign_and_no_zero():
    """The type of scales of blocks: what it can not hold becomes what torch makes of it."""
    numbers = torch.tensor([1.0, 1.5, -3.0, 0.0, -0.0, 1e-45, 6e-39, 3e38, torch.inf, torch.nan])
    for given in (numbers, numbers.to(torch.float64), torch.tensor([0, 5, -7])):
        call = call_of(torch.ops.aten._to_copy.default, (given,), {"dtype": torch.float8_e8m0fnu})
        assert call is not None
        assert verdict(call) == ("equal", "")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32], ids=str)
@pytest.mark.parametrize(
    "sizes", [((2, 3, 4), (3, 4, 5)), ((2, 1, 4), (3, 4, 5)), ((2, 3, 4), (3, 1)), ((1, 4), (3, 1))]
)
def test_products_over_dimensions_of_one_element(sizes, dtype):
    """`tensordot` adds up a dimension whose partner has one element."""
    operands = [torch.randint(-5, 5, one).to(dtype) for one in sizes]
    dims = ([len(sizes[0]) - 2, -1], [0, 1])
    call = call_of(torch.ops.aten.tensordot.default, (*operands, *dims), {})
    assert call is not None
    assert verdict(call) == ("equal", "")


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_transposes_and_products_of_sets(dtype):
    """Other names of transposes; all combinations of elements."""
    matrix, one, other = (torch.randn(sizes, dtype=dtype) for sizes in ((2, 3), (3,), (4,)))
    calls = [(torch.ops.aten.numpy_T.default, torch.randn(2, 3, 4, dtype=dtype))]
    calls += [(getattr(torch.ops.aten, name).default, matrix) for name in ("matrix_H", "mH", "mT", "adjoint")]
    calls += [(torch.ops.aten.cartesian_prod.default, tensors) for tensors in ([one], [one, one], [one, other, one])]
    for overload, operand in calls:
        call = call_of(overload, (operand,), {})
        assert call is not None
        assert verdict(call) == ("equal", ""), overload
