"""load_module: refusals of calls in words, errors with their place, and what else a module is used for."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from tests import samples
from tests.bridge.zoo import zoo
from tests.packages import bytes_of
from tests.threads import in_threads
from torch import nn

import pt2kit
from pt2kit.errors import ArchiveError, InputError, UnsupportedError


class Two(nn.Module):
    """Two inputs that share a size, one of them in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)

    def forward(self, x: torch.Tensor, extra: dict[str, torch.Tensor], *, factor: int) -> dict[str, torch.Tensor]:
        self.calls.add_(1)
        return {"sum": self.linear(x) * factor + extra["y"] * self.scale, "calls": self.calls}


def saved(module: nn.Module, args: Any, kwargs: Any = None, **options: Any) -> bytes:
    """A program as a file in memory."""
    return bytes_of(torch.export.save, torch.export.export(module, args, kwargs, **options))


@pytest.fixture(scope="module")
def two() -> bytes:
    """`Two` with a dynamic batch of 3 to 8."""
    batch = torch.export.Dim("batch", min=3, max=8)
    sizes = {"x": {0: batch}, "extra": {"y": {0: batch}}, "factor": None}
    return saved(Two(), (torch.ones(4, 4), {"y": torch.ones(4, 3)}), {"factor": 3}, dynamic_shapes=sizes)


def call(module: nn.Module, batch: int = 5, other: int | None = None, **changed: Any) -> Any:
    """A call with sizes of one's choice."""
    inputs = {"x": torch.ones(batch, 4), "extra": {"y": torch.ones(other or batch, 3)}, "factor": 3, **changed}
    return module(inputs["x"], inputs["extra"], factor=inputs["factor"])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"batch": 2}, "input x: size of dimension 0: expected at least 3, got 2"),
        ({"batch": 9}, "input x: size of dimension 0: expected at most 8, got 9"),
        (
            {"other": 4},
            "extra['y']: size of dimension 0: expected the same as x: size of dimension 0, got 4 and 5",
        ),
        ({"x": torch.ones(5, 6)}, "input x: size of dimension 1: expected 4, as it was exported, got 6"),
        ({"x": torch.ones(5)}, "input x: expected 2 dimensions, got 1"),
        ({"factor": 4}, "input factor: expected 3, as it was exported, got 4"),
        ({"extra": {"z": torch.ones(5, 3)}}, "input extra: expected the keys ['y'], got ['z']"),
        ({"extra": torch.ones(5, 3)}, "input extra: expected a dict ['y'] of 1, got torch.Tensor"),
        ({"x": [torch.ones(5, 4)]}, "input x: expected a tensor or number, got a list of 1"),
    ],
)
def test_refused_calls(two: bytes, changed: dict[str, Any], said: str) -> None:
    """Which input, which dimension, what was expected, what came; torch refuses the same calls; nothing is written."""
    module = pt2kit.load_module(two)
    with pytest.raises(InputError, match=re.escape(said)):
        call(module, **changed)
    with pytest.raises(
        (AssertionError, ValueError, RuntimeError, IndexError), match=r"Guard failed|input tree spec|out of range"
    ):
        call(torch.export.load(io.BytesIO(two)).module(), **changed)
    assert module.calls.item() == 0


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((1,), {"factor": 3}, "inputs: expected 2 positional arguments (x, extra), got 1 and the keywords factor"),
        ((1, 2), {}, "inputs: expected the keyword argument factor, got none"),
        ((1, 2), {"factor": 3, "more": 1}, "inputs: expected the keyword argument factor, got factor, more"),
    ],
)
def test_refused_arguments(two: bytes, args: Any, kwargs: Any, said: str) -> None:
    """Arguments that are missing or too many."""
    with pytest.raises(InputError, match=re.escape(said)):
        pt2kit.load_module(two)(*args, **kwargs)


class Factor(nn.Module):
    """A number among the inputs."""

    def forward(self, x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor


@pytest.mark.parametrize("release", ["2.3", "2.13"])
@pytest.mark.parametrize("number", [0.5, 1e-5, 1e30, float("inf"), float("nan")])
def test_constant_numbers(number: float, release: str) -> None:
    """A number is accepted however its file spells it, with sample inputs and without, as in files of torch 2.3."""
    older = bytes_of(pt2kit.convert, saved(Factor(), (torch.ones(2), number)), target=f"torch=={release}")
    module = pt2kit.load_module(older)
    torch.testing.assert_close(module(torch.ones(2), number), torch.full((2,), number), equal_nan=True)
    with pytest.raises(InputError, match=r"expected .*as it was exported|expected nan"):
        module(torch.ones(2), 3.0)


def test_state(two: bytes) -> None:
    """Tensors are attributes under their names; calls take what is there, and write buffers."""
    module = pt2kit.load_module(two)
    assert list(module.state_dict()) == ["calls", "linear.weight", "linear.bias"] or set(module.state_dict()) == {
        "calls",
        "linear.weight",
        "linear.bias",
    }
    first = call(module)["sum"]
    assert module.calls.item() == 1
    with torch.no_grad():
        module.linear.bias.add_(1)
    assert torch.allclose(call(module)["sum"], first + 3)
    module.load_state_dict({"calls": torch.zeros(1), "linear.weight": torch.zeros(3, 4), "linear.bias": torch.ones(3)})
    assert torch.equal(call(module)["sum"], torch.full((5, 3), 5.0))
    module.linear.weight = nn.Parameter(torch.ones(3, 4))
    assert torch.equal(call(module)["sum"], torch.full((5, 3), 17.0))
    assert call(module.double(), x=torch.ones(5, 4).double(), extra={"y": torch.ones(5, 3).double()})["sum"].dtype is (
        torch.float64
    )


def test_gradients(two: bytes) -> None:
    """Autograd goes through a program of the TRAINING dialect, to parameters and inputs."""
    module = pt2kit.load_module(two)
    x = torch.ones(5, 4, requires_grad=True)
    call(module, x=x)["sum"].sum().backward()
    assert torch.equal(module.linear.bias.grad, torch.full((3,), 15.0))
    assert torch.allclose(x.grad, (module.linear.weight.sum(0) * 3).expand(5, 4), atol=1e-5)


def test_copies(two: bytes) -> None:
    """A copy has tensors of its own, and runs with these."""
    module = pt2kit.load_module(two)
    copied = copy.deepcopy(module)
    before = call(module)["sum"]
    with torch.no_grad():
        module.linear.bias.zero_()
        module.linear.weight.zero_()
    assert torch.equal(call(copied)["sum"], before)
    assert not torch.equal(call(module)["sum"], before)
    shared = copy.copy(module)
    assert shared.linear.weight is module.linear.weight
    assert torch.equal(call(shared)["sum"], call(module)["sum"])


def test_pickles(two: bytes) -> None:
    """Pickling says what to do instead; torch's module cannot be pickled either."""
    with pytest.raises(pickle.PicklingError, match=r"pass the path of its file on and call pt2kit\.load_module"):
        pickle.dumps(pt2kit.load_module(two))
    with pytest.raises((AttributeError, pickle.PicklingError), match=r"[Cc]an't pickle"):
        pickle.dumps(torch.export.load(io.BytesIO(two)).module())


def test_names_of_arguments(two: bytes) -> None:
    """Positional arguments are taken by their names, as `inspect` and `pt2 show` have them."""
    module = pt2kit.load_module(two)
    wanted = call(module)["sum"]
    x, extra = torch.ones(5, 4), {"y": torch.ones(5, 3)}
    names = list(inspect.signature(torch.export.load(io.BytesIO(two)).module().forward).parameters)
    assert names == list(inspect.signature(module.forward).parameters) == ["x", "extra", "factor"]
    assert torch.equal(module(factor=3, extra=extra, x=x)["sum"], wanted)
    assert torch.equal(module(x, factor=3, extra=extra)["sum"], wanted)
    for args, kwargs in (((x,), {"extra": extra}), ((x, extra), {"x": x, "factor": 3}), ((), {"x": x, "factor": 3})):
        with pytest.raises(InputError, match="inputs: expected"):
            module(*args, **kwargs)


@pytest.mark.parametrize(("value", "name"), [(numpy.ones((5, 4)), "numpy.ndarray"), (None, "None"), (1.5, "float")])
def test_no_tensors(two: bytes, value: Any, name: str) -> None:
    """Anything but a tensor is named by its class."""
    said = f"input x: expected a torch.Tensor, got {name}"
    with pytest.raises(InputError, match=re.escape(said)):
        call(pt2kit.load_module(two), x=value)


def test_inference_and_autocast(two: bytes) -> None:
    """Modes of the caller hold inside."""
    module = pt2kit.load_module(two)
    with torch.inference_mode():
        assert call(pt2kit.load_module(two))["sum"].is_inference()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got, want = call(module)["sum"], call(torch.export.load(io.BytesIO(two)).module())["sum"]
    assert torch.equal(got, want)
    with torch.no_grad():
        assert not call(module)["sum"].requires_grad


def test_threads() -> None:
    """Calls from several threads at once do not meet."""
    module = pt2kit.load_module(samples.sample("2.13.0", "dynamic_batch"))
    wanted = {batch: module(torch.full((batch, 8), float(batch))) for batch in range(2, 10)}

    def work(batch: int) -> bool:
        return all(torch.equal(module(torch.full((batch, 8), float(batch))), wanted[batch]) for _ in range(20))

    assert all(in_threads(work, wanted))


@pytest.mark.filterwarnings("ignore")
def test_modules_as_inputs() -> None:
    """Several threads pass modules, whose classes torch registers for the process, and another export passes them."""
    program = next(program for program in zoo.programs() if program.name == "module_input")
    name = "tests.bridge.zoo.programs_calling.Layer"
    module = pt2kit.load_module(bytes_of(pt2kit.save, zoo.exported(program)), trust=(name,))
    ((args, kwargs),) = program.calls()
    wanted = module(*args, **kwargs)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        results = in_threads(lambda _: [module(*args, **kwargs) for _ in range(100)], range(8))
    finally:
        sys.setswitchinterval(before)
    assert all(torch.equal(one, wanted) for part in results for one in part)
    again = torch.export.export(module, args, kwargs, strict=False)
    assert torch.equal(again.module()(*args, **kwargs), wanted)


@pytest.mark.parametrize("strict", [False, True])
def test_export_again(two: bytes, strict: bool) -> None:
    """Another export takes the module, with names and sizes of its arguments as before."""
    batch = torch.export.Dim("batch", min=3, max=8)

    def exported(module: nn.Module) -> Any:
        return torch.export.export(
            module,
            (torch.ones(4, 4), {"y": torch.ones(4, 3)}),
            {"factor": 3},
            dynamic_shapes={"x": {0: batch}, "extra": {"y": {0: batch}}, "factor": None},
            strict=strict,
        )

    program = exported(pt2kit.load_module(two))
    try:
        result = call(program.module())
    except NameError as error:
        if not strict or "'L' is not defined" not in str(error):
            raise
        pytest.skip("torch 2.9 cannot run guards of a strict export that go by *args (docs/load-module.md)")
    assert torch.equal(result["sum"], call(pt2kit.load_module(two))["sum"])


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(two: bytes, dynamic: bool) -> None:
    """torch.compile sees the whole program, once for all sizes where it may."""
    torch._dynamo.reset()
    module = pt2kit.load_module(two)
    compiled = torch.compile(module, backend="eager", fullgraph=True, dynamic=dynamic)
    for size in (5, 6):
        got = call(compiled, size)["sum"]
        assert torch.equal(got, call(pt2kit.load_module(two), size)["sum"])


class Fails(nn.Module):
    """Needs as many rows as the values of its input say."""

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.index_select(x, 0, index) + 1


def test_errors_say_where() -> None:
    """An error in an operator keeps its type, and says node, operator, arguments and the line of the model's source."""
    module = pt2kit.load_module(saved(Fails(), (torch.ones(3, 4), torch.tensor([0, 1]))))
    with pytest.raises(IndexError) as caught:
        module(torch.ones(3, 4), torch.tensor([0, 7]))
    said = str(caught.value)
    # Files of torch up to 2.9 have no names of nodes.
    node = r"(index_select|nodes\[0\]) \(torch\.ops\.aten\.index_select\.default\)"
    assert re.match(rf"index out of range in self\nin the node {node}", said)
    assert "called with (float32[3, 4], 0, int64[2])" in said
    assert re.search(rf"from .*{re.escape(Path(__file__).name)}:\d+, in forward: return torch\.index_select", said)


def test_values_are_let_go() -> None:
    """Values die after their last use: a chain of six holds two, and one that the dispatcher just made."""

    class Chain(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(6):
                x = x.sin()
            return x

    module = pt2kit.load_module(saved(Chain(), (torch.ones(8),)))
    alive: list[int] = []

    class Count(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            import weakref

            result = func(*args, **(kwargs or {}))
            refs.append(weakref.ref(result))
            alive.append(sum(ref() is not None for ref in refs))
            return result

    refs: list[Any] = []
    with Count():
        module(torch.ones(8))
    assert len(alive) >= 6
    assert max(alive) <= 3


def test_other_programs() -> None:
    """A model that does not exist is refused, extra files are read, devices are moved."""
    path = samples.sample("2.13.0", "dynamic_batch")
    with pytest.raises(ArchiveError, match="expected a program, one of 'model', got 'other'"):
        pt2kit.load_module(path, model="other")
    extra: dict[str, Any] = {}
    with pytest.raises(UnsupportedError, match=r"^device xpu: not available here$"):
        pt2kit.load_module(path, device="xpu")
    with pytest.raises(TypeError, match=r"^trust: expected a list of names, got True$"):
        pt2kit.load_module(path, trust=True)  # type: ignore[arg-type]
    module = pt2kit.load_module(path, device="meta", extra_files=extra, verify=True)
    assert {parameter.device.type for parameter in module.parameters()} == {"meta"}


class Rows(torch.nn.Module):
    """Two inputs whose sizes are computed from one symbol that is no size itself."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Add rows."""
        return x.sum(0) + y.sum(0)


def test_sizes_that_follow_from_no_size() -> None:
    """Sizes 2*half and 3*half are refused where torch refuses them."""
    half = torch.export.Dim("half", min=1, max=50)
    inputs = torch.ones(4, 3), torch.ones(6, 3)
    program = torch.export.export(Rows(), inputs, dynamic_shapes={"x": {0: 2 * half}, "y": {0: 3 * half}})
    data = bytes_of(torch.export.save, program)
    ours, theirs = pt2kit.load_module(data), pt2kit.load(data).module()

    def is_taken(module: Any, rows: int, other: int) -> bool:
        try:
            module(torch.ones(rows, 3), torch.ones(other, 3))
        except (AssertionError, RuntimeError, ValueError, pt2kit.errors.Pt2Error):
            return False
        return True

    sizes = [(rows, other) for rows in range(1, 9) for other in range(1, 13)] + [(100, 150), (102, 153)]
    taken = [one for one in sizes if is_taken(ours, *one)]
    assert taken == [one for one in sizes if is_taken(theirs, *one)] == [(2, 3), (4, 6), (6, 9), (8, 12), (100, 150)]
