"""Modes: training and evaluation of a loaded module, calls that fail inside a region, loading inside a transform."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.packages import bytes_of
from torch import nn
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import pt2kit
from pt2kit.bridge.torch_names import FakeTensorMode

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of its exports, of jvp and of quantization
X = torch.ones(4, 3)


def saved(module: nn.Module, *args: Any) -> bytes:
    """A program as a file in memory."""
    return bytes_of(torch.export.save, torch.export.export(module, args or (X,)))


class Norm(nn.Module):
    """A module in a mode of its own, and a branch."""

    def __init__(self, inner: nn.Module, *, branch: bool = False) -> None:
        super().__init__()
        self.inner = inner
        self.branch = branch

    def forward(self, x: torch.Tensor) -> Any:
        if self.branch:
            return torch.cond(x.sum() > 0, self.inner, torch.sin, (x,))
        return self.inner(x)


class Attend(nn.Module):
    """Attention with a share that is dropped."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: torch.Tensor) -> Any:
        query = x.expand(1, 1, 4, 3)
        return nn.functional.scaled_dot_product_attention(query, query, query, dropout_p=self.share)


SAME_IN_BOTH: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(3, 3),
    "dropout of an evaluated module": lambda: nn.Dropout(0.5).eval(),
    "dropout of nothing": lambda: nn.Dropout(0.0),
    "batch norm of an evaluated module": lambda: nn.BatchNorm1d(3).eval(),
    "batch norm without statistics": lambda: nn.BatchNorm1d(3, track_running_stats=False),
    "recurrent": lambda: nn.LSTM(3, 3, num_layers=2),
    "attention": lambda: Attend(0.0),
    "layer norm": lambda: nn.LayerNorm(3),
    "branch": lambda: Norm(nn.Tanh(), branch=True),
}
TRAINED: dict[str, Callable[[], nn.Module]] = {
    "dropout": lambda: nn.Dropout(0.5),
    "alpha dropout": lambda: nn.AlphaDropout(0.5),
    "batch norm": lambda: nn.BatchNorm1d(3),
    "rrelu": nn.RReLU,
    "recurrent with dropout": lambda: nn.LSTM(3, 3, num_layers=2, dropout=0.5),
    "attention with dropout": lambda: Attend(0.5),
    "dropout in a branch": lambda: Norm(nn.Dropout(0.5), branch=True),
}


@pytest.mark.parametrize("name", SAME_IN_BOTH)
def test_evaluate(name: str) -> None:
    """A program of which no call depends on the mode can be set to evaluate, which changes nothing; not to train."""
    module = pt2kit.load_module(saved(Norm(SAME_IN_BOTH[name]())))
    assert module.eval() is module
    assert module.train(False) is module
    with pytest.raises(NotImplementedError, match=r"train\(\) is not supported"):
        module.train()


@pytest.mark.parametrize("name", TRAINED)
def test_do_not_evaluate(name: str) -> None:
    """One that was exported to train cannot, and says which node it is."""
    module = pt2kit.load_module(saved(Norm(TRAINED[name]())))
    with pytest.raises(NotImplementedError, match=r"eval\(\) is not supported: node .* was exported to train"):
        module.eval()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda module: copy.deepcopy(copy.deepcopy(module))])
def test_copies(copied: Any) -> None:
    """Copies take every mode and run as before, as those of torch's module do."""
    data = saved(Norm(nn.BatchNorm1d(3)))
    for original in (pt2kit.load_module(data), torch.export.load(io.BytesIO(data)).module()):
        made = copied(original)
        wanted = copied(original)(X)
        assert not made.eval().training
        assert torch.equal(made(X), wanted)
        assert made.train() is made
        assert all(part.training for part in made.modules())


def test_averaged_and_quantized() -> None:
    """Copies that torch derives work: averaged models and dynamic quantization."""
    module = pt2kit.load_module(saved(Norm(nn.Linear(3, 3))))
    averaged = torch.optim.swa_utils.AveragedModel(module)
    averaged.update_parameters(module)
    assert torch.equal(averaged.eval()(X), module(X))
    averaged.train()
    quantized = torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8)
    assert torch.equal(quantized.eval()(X), module(X))


def fails(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Fails if the index is out of range."""
    return torch.index_select(x, 0, index).sum()


class Regions(nn.Module):
    """Fails inside regions that are open in the process."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> Any:
        if self.kind == "vmap":
            return torch.func.vmap(lambda row: torch.func.vmap(lambda y: fails(y.expand(3), index))(row))(x)
        if self.kind == "jvp":
            return torch.func.jvp(lambda y: fails(y, index), (x,), (x,))
        if self.kind == "autocast":
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return fails(x @ x.T, index)
        with torch.set_grad_enabled(self.kind == "grad"):
            return fails(x, index)


@pytest.mark.parametrize("kind", ["vmap", "jvp", "autocast", "no_grad", "grad"])
def test_failures_close_regions(kind: str) -> None:
    """A call that fails leaves the process as it was, and the next one works."""
    good, bad = torch.tensor([0, 1]), torch.tensor([9, 9])
    with torch.no_grad() if kind == "grad" else contextlib.nullcontext():
        program = torch.export.export(Regions(kind), (X, good))
    module = pt2kit.load_module(bytes_of(pt2kit.save, program))
    wanted = module(X, good)
    had_grad = kind != "grad"
    with torch.set_grad_enabled(had_grad):
        for _ in range(2):
            with pytest.raises((IndexError, RuntimeError), match="in the node"):
                module(X, bad)
            assert torch.is_grad_enabled() is had_grad
            assert not torch.is_autocast_enabled("cpu")
            assert torch._C._functorch.peek_interpreter_stack() is None
            with forward_ad.dual_level():
                assert forward_ad.unpack_dual(forward_ad.make_dual(X, X)).tangent is not None
            assert torch.equal(torch.func.vmap(torch.sin)(X), X.sin())
        torch.testing.assert_close(module(X, good), wanted)


class Affine(nn.Module):
    """A parameter, buffers and constants."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("scale", torch.full((3,), 2.0))
        self.shift = torch.ones(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale + self.shift + torch.ones(3)


class Dispatch(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Function(TorchFunctionMode):
    """The same for functions."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda function: torch.func.grad(function)(X),
    "vmap": lambda function: torch.func.vmap(function)(X),
    "jvp": lambda function: torch.func.jvp(function, (X,), (X,)),
    "hessian": lambda function: torch.func.hessian(function)(X),
    "functionalize": lambda function: torch.func.functionalize(function)(X),
    "trace": lambda function: torch.jit.trace(function, (X,), check_trace=False),
}
CONTEXTS: dict[str, Callable[[], Any]] = {
    "inference": torch.inference_mode,
    "device": lambda: torch.device("meta"),
    "fake": lambda: FakeTensorMode(allow_non_fake_inputs=True),
    "dispatch": Dispatch,
    "function": Function,
    "dual": forward_ad.dual_level,
    "no_grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


def _saved_again(data: bytes) -> nn.Module:
    return pt2kit.load_module(bytes_of(pt2kit.save, PROGRAM))


PROGRAM = torch.export.export(Affine(), (X,))
LOADS: dict[str, Callable[[bytes], nn.Module]] = {
    "load_module": pt2kit.load_module,
    "load": lambda data: pt2kit.load(data).module(),
    "save": _saved_again,
}


@pytest.mark.parametrize("mode", [*TRANSFORMS, *CONTEXTS])
@pytest.mark.parametrize("what", LOADS)
def test_inside_modes(what: str, mode: str) -> None:
    """Inside a transform or a mode of torch, a program is loaded as outside, and the transform goes on."""
    file = bytes_of(torch.export.save, PROGRAM)
    loaded: list[nn.Module] = []

    def load(x: torch.Tensor) -> torch.Tensor:
        loaded.append(LOADS[what](file))
        return x.sum()

    if mode in TRANSFORMS:
        TRANSFORMS[mode](load)
    else:
        with CONTEXTS[mode]():
            loaded.append(LOADS[what](file))
    assert torch._C._functorch.peek_interpreter_stack() is None
    [module] = loaded
    assert torch.equal(module(X), PROGRAM.module()(X))
    assert {type(parameter) for parameter in module.parameters()} == {nn.Parameter}


def test_traced() -> None:
    """torch.compile calls it as it is; a strict export, which cannot represent it, ends in one clear error."""
    data = bytes_of(torch.export.save, PROGRAM)

    class Loads(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pt2kit.load_weights(data)
            return x + 1

    assert torch.equal(torch.compile(Loads(), backend="eager")(X), X + 1)
    with pytest.raises(RuntimeError, match=r"pt2kit\.load_weights reads or writes a file"):
        torch.export.export(Loads(), (X,), strict=True)


def test_saved_in_compiled_code() -> None:
    """Code that torch.compile compiles saves a program without looking into it: its symbols stay symbols."""
    program = torch.export.export(Affine(), (X,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))

    def saved_program() -> bytes:
        return bytes_of(pt2kit.save, program)

    wanted, got = saved_program(), []

    @torch.compile(backend="eager")
    def step(x: torch.Tensor) -> torch.Tensor:
        got.append(saved_program())
        return x + 1

    assert torch.equal(step(X), X + 1)
    assert got == [wanted]
    assert saved_program() == wanted


class Refusing(TorchFunctionMode):
    """A mode that allows nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"not in this mode: {func}")


def test_no_mode_sees_a_file() -> None:
    """Function modes are suspended as well: programs are saved and loaded where one would refuse every function."""
    with Refusing():
        file = bytes_of(pt2kit.save, PROGRAM)
        program, module = pt2kit.load(file), pt2kit.load_module(file)
        weights = pt2kit.load_weights(file)
    assert torch.equal(module(X), program.module()(X))
    assert weights.keys() == program.state_dict.keys()
