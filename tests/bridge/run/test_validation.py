"""Unchecked kernels in `load_module`: hostile arguments end in a clear error, in whatever context the program runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bridge.run.unchecked_calls import CASES, Program, saved
from tests.bridge.run.unchecked_child import Validating, calls_in
from tests.packages import bytes_of, edited

import pt2kit
from pt2kit.bridge.operators import resolve
from pt2kit.bridge.run.validation import validated
from pt2kit.errors import OperatorError, UnsupportedError
from pt2kit.operators.requirements import UNINITIALIZED

ROOT = Path(__file__).parents[3]
A = torch.ops.aten
NOT_THERE = (
    "is not implemented",
    "not differentiable",
    "does not support it",
    "has not been implemented yet",
    "Expected primals to contain",
    "Batching rule not implemented for aten::sym_size",
    "have same metadata",
    "vmapping over the `repeats` tensor requires",
)
"""Texts of torch's errors for calls, also sound ones, that it cannot run in a context."""
NOT_EXPORTED = (*NOT_THERE, "map doesn't work unless it is captured", "Could not extract specialized integer")
"""The same, of exports; the last two of sizes that follow from numbers, torch 2.9."""
LIMITS = {"through_views": ("ldl_solve",), "through_writes": ("ldl_solve",)}
"""Context -> calls that cannot be written there."""
BEFORE = {"in_cond_with_gradients": ("nll_loss backward",), "dual": ("repeat_interleave", "div")}
"""Context -> calls that torch refuses before the kernel."""
FAST = ("plain", "direct", "differentiated", "compiled", "in_cond", "vmapped")
COSTLY = (
    "inductor",
    "exported_to_inductor",
    "exported",
    "exported_strictly",
    "vmapped_graph",
    "vmapped_compiled",
    "dual",
    "functional",
    "traced",
    "stored",
    "external",
    "through_views",
    "through_writes",
    "weights",
    "in_cond_with_gradients",
    "in_while_loop",
    "in_scan",
    "in_map",
    "in_subgraph",
    "in_checkpoint",
)
EVERY = 4
GROUPS = [FAST, *(pytest.param(part, marks=pytest.mark.slow) for part in (COSTLY[::2], COSTLY[1::2]))]
"""Contexts that share a process, as starting one takes longer than most contexts."""


@pytest.fixture(autouse=True)
def _compiled_anew() -> None:
    """torch compiles a function for few kinds of arguments; those of other tests, which validate by it, count, too."""
    torch.compiler.reset()


@pytest.mark.parametrize("contexts", GROUPS, ids=",".join)
def test_contexts(contexts: Sequence[str], request: pytest.FixtureRequest) -> None:
    """Sound inputs give a result; hostile ones an error that names operator and argument; and the process lives.

    Without --all-samples, each call meets some of the contexts that cost much.
    """
    is_whole = contexts is FAST or request.config.getoption("--all-samples")
    some = {name: (0, 1) if is_whole else (COSTLY.index(name) % EVERY, EVERY) for name in contexts}
    named = (f"{name}:{first}:{step}" for name, (first, step) in some.items())
    command = [sys.executable, "-m", "tests.bridge.run.unchecked_child", *named]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    begun = [(line["context"], line["name"]) for line in lines if len(line) == 2]
    assert done.returncode == 0, f"died in {begun[-1:]}: {done.stderr[-2000:]}"
    assert begun == [(name, call) for name, part in some.items() for call in calls_in(name, *part)]
    for line in lines:
        context, name = line["context"], line["name"]
        if len(line) == 2 or name in LIMITS.get(context, ()):
            continue
        if "built" in line:
            assert any(text in line["built"] for text in NOT_EXPORTED), line
            continue
        assert line["sound"].startswith("result") or any(text in line["sound"] for text in NOT_THERE), line
        if name not in BEFORE.get(context, ()):
            assert "[X10]" in line["hostile"], line
            assert ": expected " in line["hostile"], line


def test_message() -> None:
    """An error names the node, the operator, the argument and the line of the model, and the way out."""
    case = CASES["max_pool2d"]
    data = saved(Program(case.call), case.sound)
    with pytest.raises(OperatorError) as caught:
        pt2kit.load_module(data)(*case.hostile)
    text = str(caught.value)
    assert caught.value.rule == "X10"
    assert "aten.max_pool2d_with_indices_backward: indices: expected indices of the last 2 dimensions of self" in text
    # Nodes have names since torch 2.11.
    assert re.search(r"in the node (max_pool2d_with_indices_backward|nodes\[\d+\])", text)
    assert "unchecked_calls.py:" in text
    assert "trust=('aten.max_pool2d_with_indices_backward',)" in text
    module = pt2kit.load_module(data, trust=("aten.max_pool2d_with_indices_backward",))
    assert torch.equal(module(*case.sound), case.call(*case.sound))


_DIRECTION = torch.randn(6, 3)
_LENGTH = torch.ones(6, 1)
_EXPANDED = torch.ones(1, 1).expand(6, 3)


def _with_last(*inputs: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    """Inputs with a vector, and the same with one that repeats its element."""
    return (*inputs, torch.ones(64)), (*inputs, torch.ones(1).expand(64))


STRIDES = {
    "v": (lambda v, g: A._weight_norm_interface(v, g, 0)[0], (_DIRECTION, _LENGTH), (_EXPANDED, _LENGTH)),
    "g": (lambda v, g: A._weight_norm_interface(v, g, 0)[0], (_DIRECTION, _LENGTH), (_DIRECTION, _EXPANDED[:, :1])),
    "grad_w": (
        lambda w, v, g, n: A._weight_norm_interface_backward(w, v, g, n, 0)[0],
        (_DIRECTION.clone(), _DIRECTION, _LENGTH.clone(), _LENGTH),
        (_EXPANDED, _DIRECTION, _LENGTH.clone(), _LENGTH),
    ),
    "scales": (A._weight_int8pack_mm.default, *_with_last(torch.ones(16, 32), torch.ones(64, 32, dtype=torch.int8))),
    "B": (
        lambda x, w, b: torch.ops.mkldnn._linear_pointwise(x, w, b, "none", [], ""),
        *_with_last(torch.ones(4, 16), torch.ones(64, 16)),
    ),
    "B of convolutions": (
        lambda x, w, b: torch.ops.mkldnn._convolution_pointwise(x, w, b, [0, 0], [1, 1], [1, 1], 1, "none", [], ""),
        *_with_last(torch.ones(1, 3, 8, 8), torch.ones(64, 3, 3, 3)),
    ),
}
"""Argument of a kernel that walks through memory -> the call, sound inputs, and inputs of other strides."""


@pytest.mark.parametrize("argument", STRIDES)
def test_strides(argument: str) -> None:
    """Tensors that repeat their elements are refused by kernels that walk through memory."""
    call, sound, hostile = STRIDES[argument]
    module = pt2kit.load_module(saved(Program(call), sound))
    assert torch.equal(module(*sound), call(*sound))
    with pytest.raises(OperatorError, match=rf"{argument.split()[0]}: expected a contiguous tensor") as caught:
        module(*hostile)
    assert caught.value.rule == "X10"


@pytest.mark.skipif(torch.__version__ < (2, 13), reason="schemas before 8.20 have no form for regions of vmap")
def test_region_of_vmap() -> None:
    """It runs, and refuses hostile numbers; to export it again ends in an error, for want of an assertion in vmap."""
    case = CASES["embedding_dense_backward"]
    call = torch.func.vmap(case.call)
    sound, hostile = ([torch.stack([one, one]) for one in given] for given in (case.sound, case.hostile))
    module = pt2kit.load_module(saved(Program(call), tuple(sound)))
    assert torch.equal(module(*sound), call(*sound))
    with pytest.raises(OperatorError, match=r"indices: expected indices from 0 .*\[X10\]"):
        module(*hostile)
    with pytest.raises(UnsupportedError, match=r"\[X10\], which torch.export cannot assert inside vmap"):
        torch.export.export(module, tuple(sound), strict=False)


def test_elements_that_overlap() -> None:
    """A kernel that takes a tensor for a block of memory gets none whose elements share theirs."""
    call = A.rrelu_with_noise
    module = pt2kit.load_module(
        saved(Program(lambda x, noise: call(x, noise) * 1), (torch.ones(2, 3), torch.ones(2, 3)))
    )
    assert torch.equal(module(torch.ones(2, 3), torch.ones(3, 2).T), torch.ones(2, 3))
    with pytest.raises(OperatorError, match=r"noise: expected a tensor without repeated elements.*\[X10\]"):
        module(torch.ones(2, 3), torch.ones(4).as_strided((2, 3), (1, 1)))


def _native(*given: Any) -> torch.Tensor:
    result: torch.Tensor = A.native_batch_norm(*given[:-1])[0]
    return result


@pytest.mark.parametrize("call", [torch.batch_norm, _native])
@pytest.mark.parametrize("training", [True, False])
def test_strides_of_the_gradient_of_norms(call: Any, training: bool) -> None:
    """A backward kernel that walks through weights and statistics gets them in blocks of memory."""
    torch.manual_seed(0)
    x, given = torch.randn(4, 8), [torch.ones(8) for _ in range(4)]
    options = (training, 0.1, 1e-5, False)
    module = pt2kit.load_module(saved(Program(lambda x, *more: call(x, *more, *options)), (x, *given)))
    hostile = torch.arange(1.0, 9.0)
    for position in (0,) if training else (0, 2, 3):
        found = []
        for one in (hostile[:1].expand(8), torch.ones(8)):
            leaf = x.clone().requires_grad_()
            module(leaf, *given[:position], one, *given[position + 1 :]).backward(x)
            found.append(leaf.grad)
        torch.testing.assert_close(*found)


@pytest.mark.parametrize("position", range(3))
def test_strides_of_attention(position: int) -> None:
    """Attention on the CPU takes rows whose elements are next to each other."""
    sound = [torch.randn(1, 2, 8, 4) for _ in range(3)]
    call = A._scaled_dot_product_flash_attention_for_cpu
    module = pt2kit.load_module(saved(Program(lambda q, k, v: call(q, k, v)[0]), tuple(sound)))
    assert torch.equal(module(*sound), call(*sound)[0])
    for hostile in (torch.ones(1, 1, 1, 1).expand(1, 2, 8, 4), torch.randn(1, 2, 4, 8).transpose(-1, -2)):
        given = [*sound[:position], hostile, *sound[position + 1 :]]
        with pytest.raises(OperatorError, match=r"expected adjacent elements along the last dimension.*\[X10\]"):
            module(*given)


def test_strides_of_the_gradient_of_attention() -> None:
    """It takes the same rows."""
    query, key, value = (torch.randn(1, 2, 8, 4) for _ in range(3))
    out, sums = A._scaled_dot_product_flash_attention_for_cpu(query, key, value)
    sound = (torch.ones_like(out), query, key, value, out, sums)
    call = A._scaled_dot_product_flash_attention_for_cpu_backward
    module = pt2kit.load_module(saved(Program(lambda *given: call(*given, 0.0, False)[0]), sound))
    assert torch.equal(module(*sound), call(*sound, 0.0, False)[0])
    for position in range(1, 5):
        hostile = torch.randn(1, 2, 4, 8).transpose(-1, -2)
        with pytest.raises(OperatorError, match=r"expected adjacent elements along the last dimension.*\[X10\]"):
            module(*sound[:position], hostile, *sound[position + 1 :])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_steps_of_convolutions(dtype: torch.dtype) -> None:
    """Long steps end in an error: the library computes places from their squares in 32 bits; others run."""
    x, weight = torch.ones(1, 2, 1, dtype=dtype), torch.ones(2, 4, 1, dtype=dtype)
    sound, hostile = (
        saved(Program(partial(A.conv_transpose1d, bias=None, stride=[step])), (x, weight)) for step in (1_000, 32_000)
    )
    assert torch.equal(pt2kit.load_module(sound)(x, weight), torch.full((1, 4, 1), 2.0, dtype=dtype))
    with pytest.raises(
        OperatorError, match=r"stride: expected a last step whose square, .* is below 4,194,304.*\[X10\]"
    ):
        pt2kit.load_module(hostile)


_BIASES = (torch.ones(24, 8).double(), torch.ones(24), torch.ones(8, 8).double(), torch.ones(8).double())
TYPES = {
    "qkv_bias": (
        lambda x: A._native_multi_head_attention.default(x, x, x, 8, 2, *_BIASES),
        torch.ones(2, 3, 8).double(),
    ),
    "self": (
        lambda x: A._weight_int8pack_mm.default(x, torch.ones(4, 8, dtype=torch.int8), torch.ones(4).bfloat16()),
        torch.ones(2, 8).bfloat16(),
    ),
    "bins": (lambda x: A.histc.default(x, 1000), torch.ones(4).bfloat16()),
}
"""Argument that does not fit the type of the others -> the call, and its input."""


@pytest.mark.parametrize("argument", TYPES)
def test_types_under_autocast(argument: str) -> None:
    """Operands are judged by their own types: autocast converts neither all of them nor those of all operators."""
    call, x = TYPES[argument]
    with (
        torch.autocast("cpu", torch.float16),
        Validating(),
        pytest.raises(OperatorError, match=f"{argument}: expected"),
    ):
        call(x)


def test_compiled_types() -> None:
    """A rule that asks for the type of an operand compiles in one graph."""
    module = pt2kit.load_module(saved(Program(lambda x: A.histc.default(x, 4, 0, 4)), (torch.arange(4.0),)))
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(torch.tensor([0.5, 0.5, 3.0, 1.0])), torch.tensor([2.0, 1.0, 0.0, 1.0]))


@pytest.mark.parametrize("is_per_row", [True, False])
def test_observers(is_per_row: bool) -> None:
    """Fused observers take statistics of the size of the channels, or empty ones before the first call."""
    target = A.fused_moving_avg_obs_fake_quant.default
    operator = resolve(f"torch.ops.{target}")
    assert operator is not None
    run = validated(operator, (), {}, "node", frozenset())
    on, x = torch.ones(1, dtype=torch.int64), torch.randn(3, 4)

    def given(low: int, high: int) -> tuple[Any, ...]:
        scales = torch.ones(3 if is_per_row else 1)
        numbers = (0.1, 0, 255, 0 if is_per_row else -1, is_per_row)
        return x, on, on, torch.zeros(low), torch.ones(high), scales, scales.int(), *numbers

    for sizes in ((0, 0), (3, 3)) if is_per_row else ((1, 1),):
        assert torch.equal(run(*given(*sizes)), target(*given(*sizes)))
    for sizes in ((2, 2), (3, 0), (1, 0)):
        with pytest.raises(OperatorError, match=r"running_m..: expected an element for each channel.*\[X10\]"):
            run(*given(*sizes))


class Mixture(torch.nn.Module):
    """The inverse of a permutation, as mixtures of experts compute it."""

    def forward(self, p: torch.Tensor) -> torch.Tensor:
        v = torch.empty_like(p)
        v[p] = torch.arange(p.shape[0])
        return v


def test_inverse_permutation() -> None:
    """Memory that is filled by index is no finding, and the program runs."""
    p = torch.randperm(7)
    data = saved(Mixture(), (p,))
    assert not pt2kit.check(data).errors
    assert pt2kit.load(data).graph
    assert torch.equal(pt2kit.load_module(data)(p)[p], torch.arange(7))


class Norm(torch.nn.Module):
    """A module with factories of torch, from a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.CrossMapLRN2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def test_sound_programs() -> None:
    """Programs that were refused load and run: normalization across channels, a sparse tensor that is decomposed."""
    x = torch.randn(1, 4, 3, 3)
    assert torch.allclose(pt2kit.load_module(saved(Norm(), (x,)))(x), Norm()(x))
    case = CASES["sparse_coo_tensor"]
    operator = resolve("torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors.default")
    assert operator is not None
    arguments = {"dtype": torch.float32, "layout": torch.sparse_coo, "device": torch.device("cpu")}
    call = validated(operator, (2, 0, [3, 3], *case.sound), arguments, "node", frozenset())
    made = call(2, 0, [3, 3], *case.sound, **arguments)
    assert made.to_dense().sum() == 2


@pytest.mark.parametrize("name", sorted(UNINITIALIZED))
def test_filled(name: str) -> None:
    """Every operator that gives uninitialized memory gives zeros, in all its overloads."""
    namespace, short = name.split(".")
    packet = getattr(getattr(torch.ops, namespace), short)
    x = torch.full((4, 4), 7.0)
    calls = {
        "memory_format": ([64],),
        "default": ([64],),
        "out": ([64],),
        "names": None,
        "names_out": None,
        "empty_like": (x,),
        "new_empty": (x, [64]),
        "new_empty_strided": (x, [8, 8], [8, 1]),
        "empty_strided": ([8, 8], [8, 1]),
        "empty_permuted": ([8, 8], [1, 0]),
    }
    for overload in packet.overloads():
        arguments = calls.get(short) or calls.get(overload)
        operator = resolve(f"torch.ops.{name}.{overload}")
        if arguments is None or operator is None or "quantized" in short or overload in ("names", "names_out"):
            continue
        keywords = {"out": torch.full(packet(*arguments).shape, 5.0)} if overload == "out" else {}
        if namespace == "prims":
            keywords = {"dtype": torch.float32, "device": torch.device("cpu"), "requires_grad": False}
        for _ in range(3):
            torch.full((64,), 9.0)  # Memory that the next allocation may get again.
            made = validated(operator, arguments, keywords, "node", frozenset())(*arguments, **keywords)
            assert made.count_nonzero() == 0, overload


@pytest.mark.parametrize("module", ["torch.ops.higher_order", "torch._higher_order_ops.effects"])
def test_filled_through_effects(module: str) -> None:
    """An operator that a token orders is validated, or its memory filled, in either spelling of `with_effects`."""

    def change(tree: Any) -> None:
        node = tree["graph_module"]["graph"]["nodes"][0]
        inputs = [{"as_none": True}, {"as_operator": "torch.ops.aten.empty_like.default"}, node["inputs"][0]["arg"]]
        node["inputs"] = [{"name": "", "arg": argument, "kind": 1} for argument in inputs]
        node["outputs"].insert(0, {"as_none": True})
        node["target"] = f"{module}.with_effects"

    loaded = pt2kit.load_module(edited(saved(Program(torch.relu), (torch.ones(64),)), change))
    for _ in range(3):
        torch.full((64,), 9.0)  # Memory that the next allocation may get again.
        assert loaded(torch.ones(64)).count_nonzero() == 0


def test_grown() -> None:
    """Memory that is added to a tensor is zero; what was there stays."""
    operator = resolve("torch.ops.aten.resize_.default")
    assert operator is not None
    x = torch.ones(3)
    grown = validated(operator, (), {}, "node", frozenset())(x, [64])
    assert grown[:3].sum() == 3
    assert grown.sum() == 3
    assert grown.untyped_storage().nbytes() == grown.nbytes
    again = resolve("torch.ops.aten.resize.default")
    assert again is not None
    functional = validated(again, (), {}, "node", frozenset())(torch.ones(3), [64])
    assert functional.sum() == 3


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_operands_that_grow() -> None:
    """Results may replace an operand of their size, but not one that has to grow: it is read after that."""

    class Into(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            read = x.clone()
            A.linalg_vector_norm.out(read, 1.2, [0], out=read)
            return read

    one, none = pt2kit.load_module(saved(Into(), (torch.ones(1),))), pt2kit.load_module(saved(Into(), (torch.ones(0),)))
    assert one(torch.full((1,), 2.0)).item() == 2
    with pytest.raises(OperatorError, match="out: expected at least 1 elements in an operand, got 0"):
        none(torch.ones(0))


class Growing(torch.nn.Module):
    """Has a buffer grow, which is memory of the file."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call = call
        self.register_buffer("held", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        read = self.held + x
        self.call(x, self.held)
        return read


GROWTH = {
    "resize_": lambda x, out: A.resize_.default(out, [1 << 12]),
    "out": lambda x, out: A.add.out(x.repeat(1 << 12), x.repeat(1 << 12), out=out),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("backend", ["", "eager", "aot_eager"])
@pytest.mark.parametrize("how", ["resize_", "out"])
def test_memory_that_cannot_grow(how: str, backend: str) -> None:
    """After an error a tensor has the sizes that it had: torch gives it new ones before its memory has them."""
    x = torch.ones(2)
    module = pt2kit.load_module(saved(Growing(GROWTH[how]), (x,)))
    run = torch.compile(module, backend=backend) if backend else module
    for _ in range(2):
        # Of some errors, the compiler of torch 2.9 shows the line that raises them.
        with pytest.raises((RuntimeError, UnsupportedError, OperatorError), match=r"resizable|traced|raise Unsupp"):
            run(x)
        assert module.held.shape == (2,)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_results_into_a_buffer(backend: str) -> None:
    """A call that is traced writes its results to the tensors that it was given."""

    def call(x: torch.Tensor, out: torch.Tensor) -> None:
        A.max.dim_max(x.view(2, 1), 1, max=out, max_values=torch.ones_like(out, dtype=torch.int64))

    module = pt2kit.load_module(saved(Growing(call), (torch.ones(2),)))
    run = torch.compile(module, backend=backend, fullgraph=True)
    assert torch.equal(run(torch.ones(2)), torch.ones(2))
    assert torch.equal(run(torch.full((2,), 3.0)), torch.full((2,), 4.0))
    assert torch.equal(module.held, torch.full((2,), 3.0))


def test_memory_of_lists_that_cannot_grow() -> None:
    """The same of results that are written to a list."""
    operator = resolve("torch.ops.aten._foreach_add.Scalar_out")
    assert operator is not None
    out = [torch.frombuffer(bytearray(8), dtype=torch.float32)]
    call = validated(operator, (), {"out": out}, "node", frozenset())
    with pytest.raises(RuntimeError, match="not resizable"):
        call([torch.ones(1 << 12)], 1, out=out)
    assert out[0].shape == (2,)


class Scaled(torch.nn.Module):
    """An embedding whose indices change after it, under a name that torch does not follow."""

    def forward(self, w: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        indices = i.clone()
        other = A._unsafe_view(indices, [-1])
        rows = A.embedding(w, indices, -1, True)
        other.fill_(10**7)
        return rows


class Pooled(torch.nn.Module):
    """A pooling whose indices change after it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, indices = A.max_pool2d_with_indices(x, [2, 2])
        A._unsafe_view(indices, [-1]).fill_(10**7)
        return out


CHILD = """
import torch, pt2kit
from tests.bridge.run.test_validation import Pooled, Scaled
from tests.bridge.run.unchecked_calls import saved
w = torch.randn(6, 3, requires_grad=True)
i = torch.tensor([0, 5, 2])
pt2kit.load_module(saved(Scaled(), (w.detach(), i)))(w, i).sum().backward()
assert w.grad.sum().round() == 9, w.grad
x = torch.randn(1, 2, 4, 4, requires_grad=True)
pt2kit.load_module(saved(Pooled(), (x.detach(),)))(x).sum().backward()
assert x.grad.sum() == 8, x.grad
print("lives")
"""


def test_backward() -> None:
    """Backward kernels get the indices that the forward ones validated, whatever was written since."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip().endswith("lives"), done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_backward_of_compiled_code() -> None:
    """Machine code has the gradients of copies that depend on assertions."""
    module = pt2kit.load_module(saved(Program(lambda x: A.linalg_eigvals(x).real.sum()), (torch.eye(3),)))
    results = []
    for call in (module, torch.compile(module)):
        x = torch.tensor([[4.0, 1, 0], [2, 3, 1], [0, 1, 9]], requires_grad=True)
        call(x).backward()
        results.append(x.grad)
    torch.testing.assert_close(*results)


def test_plain_calls_are_not_wrapped() -> None:
    """A call of any other operator, or one that its constants make harmless, is the operator itself."""
    for text, args, kwargs in (
        ("torch.ops.aten.add.Tensor", (), {}),
        ("torch.ops.aten.embedding.default", (), {}),
        ("torch.ops.aten.div.Tensor_mode", (), {"rounding_mode": "floor"}),
        ("torch.ops.aten.div.Tensor_mode", (None, 2), {"rounding_mode": "trunc"}),
    ):
        operator = resolve(text)
        assert operator is not None
        assert validated(operator, args, kwargs, "node", frozenset()) is operator.target


class Selected(torch.nn.Module):
    """A call with an index that the program creates."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.index_select(x, 0, torch.zeros(2, dtype=torch.int64, device="cpu"))


def test_without_memory() -> None:
    """A tensor on the meta device next to others that have memory is refused when a kernel gets it."""

    def change(tree: Any) -> None:
        for node in tree["graph_module"]["graph"]["nodes"]:
            for named in node["inputs"]:
                if "as_device" in named["arg"]:
                    named["arg"]["as_device"] = {"type": "meta", "index": None}

    data = saved(Selected(), (torch.ones(3, 2),))
    assert pt2kit.load_module(data)(torch.ones(3, 2)).shape == (2, 2)
    module = pt2kit.load_module(edited(data, change))
    with pytest.raises(OperatorError, match="expected tensors with memory, got one on the meta device next to others"):
        module(torch.ones(3, 2))


def test_sparse_values() -> None:
    """Resizing an alias of the values of a sparse tensor does not resize the values."""
    operator = resolve("torch.ops.aten._values.default")
    assert operator is not None
    sparse = torch.eye(3).to_sparse()
    values = validated(operator, (), {}, "node", frozenset())(sparse)
    values.mul_(2)
    values.resize_(0)
    assert torch.equal(sparse.to_dense(), torch.eye(3) * 2)


class Normed(torch.nn.Module):
    """Kernels that trust sizes, of a batch of any length."""

    def forward(self, g: torch.Tensor, x: torch.Tensor, i: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        grad = A.max_pool2d_with_indices_backward(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, i)
        return A._native_batch_norm_legit_no_training(grad, None, None, m, m + 1, 0.1, 1e-5)[0]


def test_dynamic_sizes() -> None:
    """Sizes that are symbols stay symbols: one compiled function, and one export, takes batches of any length."""
    batch = torch.export.Dim("batch", min=2, max=64)

    def inputs(count: int) -> tuple[torch.Tensor, ...]:
        x = torch.randn(count, 2, 4, 4)
        out, indices = A.max_pool2d_with_indices(x, [2, 2])
        return torch.ones_like(out), x, indices, torch.zeros(2)

    shapes = ({0: batch}, {0: batch}, {0: batch}, None)
    file = bytes_of(pt2kit.save, torch.export.export(Normed(), inputs(3), dynamic_shapes=shapes, strict=False))
    module = pt2kit.load_module(file)
    again = torch.export.export(module, inputs(3), dynamic_shapes=shapes, strict=False).module()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=True)
    for count in (3, 5, 7):
        given = inputs(count)
        expected = Normed()(*given)
        for run in (module, again, compiled):
            assert torch.equal(run(*given), expected)
            with pytest.raises((OperatorError, RuntimeError), match="X10"):
                run(*given[:2], given[2] + 10**7, given[3])
