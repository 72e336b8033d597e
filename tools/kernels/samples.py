"""Valid calls of operators: recorded from torch's own test databases, or made from a schema. Needs torch.

A recorded call is one that reached the dispatcher while a sample of `op_db`, of `module_db` or of the optimizers ran,
forward and backward; so operators that only derivatives call have valid arguments as well.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import torch
from tools.kernels import by_hand
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

Call = tuple[tuple[Any, ...], dict[str, Any]]
Calls = dict[str, list[Call]]
"""Operator ("aten.add.Tensor") -> valid calls of it."""

MAX_CALLS: Final = 3
MAX_ELEMENTS: Final = 4096
MAX_SAMPLES: Final = 4
PLAIN: Final = (
    *(torch.Tensor, torch.nn.Parameter, int, float, bool, complex, str, type(None)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""Types of what a program can pass."""


class Recorder(TorchDispatchMode):
    """Keeps the first few calls of each operator, those with tensors of other types or ranks than before."""

    def __init__(self, calls: Calls, most: int = MAX_CALLS) -> None:
        super().__init__()
        self.calls = calls
        self.most = most
        self.seen: set[Any] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = (tuple(args), dict(kwargs or {}))
        self.keep(str(func), call)
        return func(*args, **call[1])

    def keep(self, name: str, call: Call) -> None:
        """Keep a call, if it is among the first of its kind and small."""
        held = self.calls.setdefault(name, [])
        if len(held) >= self.most or (key := (name, _shape_of(call))) in self.seen:
            return
        leaves = pytree.tree_leaves(call)
        if not all(type(leaf) in PLAIN for leaf in leaves):
            return
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if any(tensor.layout is torch.strided and tensor.numel() > MAX_ELEMENTS for tensor in tensors):
            return
        with contextlib.suppress(Exception), torch.inference_mode(False):
            held.append(copy(call))
            self.seen.add(key)


def copy(call: Call) -> Call:
    """The call with tensors of its own."""
    return pytree.tree_map_only(torch.Tensor, copy_tensor, call)


def copy_tensor(value: torch.Tensor) -> torch.Tensor:
    """A tensor of the same elements, sizes and strides in memory of its own."""
    if value.layout is not torch.strided or value.is_quantized or value.device.type != "cpu" or value.is_nested:
        return value.detach().clone()
    detached = value.detach()
    made = torch.empty_strided(detached.size(), detached.stride(), dtype=value.dtype)
    if all(stride for stride in detached.stride()):
        made.copy_(detached)
    else:
        made = detached.clone()
    return made


def _shape_of(call: Call) -> Any:
    return str(
        pytree.tree_map(
            lambda leaf: (leaf.dtype, leaf.dim(), leaf.layout) if isinstance(leaf, torch.Tensor) else type(leaf), call
        )
    )


def record(recorder: Recorder | None = None, most_samples: int = MAX_SAMPLES) -> Calls:
    """Run the samples of torch's databases, keep what they call, and add calls by hand. Takes about two minutes.

    Args:
        recorder: keeps the calls; by default the first few of each operator.
        most_samples: of one operator that run.
    """
    recorder = recorder or Recorder({})
    warnings.simplefilter("ignore")
    for run in _programs(recorder, most_samples):
        torch.manual_seed(0)
        with contextlib.suppress(Exception), recorder:
            _backward(run())
    for name, call in by_hand.calls():
        recorder.calls.setdefault(name, []).append(call)
    return recorder.calls


def record_composites(recorder: Recorder, most_samples: int = MAX_SAMPLES) -> Calls:
    """Run the same samples without derivatives, so that operators that decompose into others are seen themselves."""
    warnings.simplefilter("ignore")
    for run in _programs(recorder, most_samples):
        torch.manual_seed(0)
        with contextlib.suppress(Exception), torch.inference_mode(), recorder:
            run()
    return recorder.calls


def _backward(result: Any) -> None:
    """Run the derivatives of whatever was computed."""
    total: Any = None
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.layout is torch.strided:
            part = leaf.sum().abs() if leaf.is_complex() else leaf.sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()


def _programs(recorder: Recorder, most_samples: int) -> Iterator[Callable[[], Any]]:
    from torch.testing._internal import common_methods_invocations as methods

    for info in methods.op_db:
        dtypes = [dtype for dtype in (torch.float32, torch.int64, torch.complex64, torch.bool) if dtype in info.dtypes]
        for number, dtype in enumerate(dtypes):
            yield from _of_operator(info, dtype, recorder, 1 if number else most_samples)
    for name in (
        *("foreach_unary_op_db", "foreach_binary_op_db", "foreach_pointwise_op_db", "foreach_reduce_op_db"),
        *("foreach_other_op_db", "sparse_unary_ufuncs"),
    ):
        for info in getattr(methods, name, ()):
            yield from _of_operator(info, torch.float32, recorder, 2)
    yield from _modules()
    yield from _optimizers()


def _of_operator(info: Any, dtype: torch.dtype, recorder: Recorder, most: int) -> Iterator[Any]:
    wants = info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    try:
        samples = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=wants), most))
    except Exception:  # noqa: BLE001  a sample that does not fit this machine
        return
    packets = [getattr(torch.ops.aten, name, None) for name in {info.aten_name, info.name.rpartition(".")[2]} if name]
    for sample in samples:
        yield lambda sample=sample: info.op(sample.input, *sample.args, **sample.kwargs)
        for packet in packets:
            for overload in packet.overloads() if packet is not None else ():
                _offer(getattr(packet, overload), sample, recorder)


def _offer(overload: Any, sample: Any, recorder: Recorder) -> None:
    """Keep a sample as a call of an operator that has the name of the test and takes its arguments."""
    name = str(overload)
    if len(recorder.calls.get(name, ())) >= 1:
        return
    call = copy(((sample.input, *sample.args), dict(sample.kwargs)))
    with contextlib.suppress(Exception):
        overload(*copy(call)[0], **copy(call)[1])
        recorder.keep(name, call)


def _modules() -> Iterator[Callable[[], Any]]:
    from torch.testing._internal import common_modules

    for info in common_modules.module_db:
        for training in (True, False):
            try:
                inputs = info.module_inputs_func(
                    info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
                )
            except Exception:  # noqa: BLE001  a sample that does not fit this machine
                continue
            for given in inputs[:4]:
                yield partial(_run_module, info, given, training)


def _run_module(info: Any, given: Any, training: bool) -> Any:
    built = given.constructor_input
    module = info.module_cls(*built.args, **built.kwargs).train(training)
    return module(*given.forward_input.args, **given.forward_input.kwargs)


def _optimizers() -> Iterator[Callable[[], Any]]:
    for cls in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad):
        for options in ({"fused": True}, {"foreach": True}, {}):
            yield partial(_optimize, cls, options)


def _optimize(cls: Any, options: dict[str, Any]) -> None:
    parameter = torch.nn.Parameter(torch.ones(4, 3))
    optimizer = cls([parameter], lr=0.1, **options)
    for _ in range(2):
        parameter.sum().backward()
        optimizer.step()


def relatives(name: str, schema: Any, calls: Calls) -> Iterator[Call]:
    """Calls of operators of the same family (`add_`, `add.out`, `add_copy`) that fit a schema.

    Args:
        name: "aten.add_.Tensor".
        schema: its `torch.FunctionSchema`.
        calls: what was recorded.
    """
    base = name.split(".", 2)[1]
    stems = (base, base.removesuffix("_"), base.removesuffix("_copy"), base.removeprefix("_"), base + "_", f"_{base}")
    names = [argument.name for argument in schema.arguments]
    for other, held in calls.items():
        parts = other.split(".", 2)
        if parts[1] not in stems or other == name:
            continue
        found = _schema(other)
        for call in held:
            if found is not None:
                given = {argument.name: value for argument, value in zip(found.arguments, call[0], strict=False)}
                given |= call[1]
                kept = {key: value for key, value in given.items() if key in names}
                missing = [argument for argument in schema.arguments if argument.is_out and argument.name not in kept]
                kept |= _outs(missing, other, call) if missing else {}
                if all(key in kept or a.has_default_value() for key, a in zip(names, schema.arguments, strict=True)):
                    yield (), kept


def _outs(missing: list[Any], other: str, call: Call) -> dict[str, Any]:
    """Tensors to write results to, as an operator of the same family gives them."""
    results: Any = ()
    with contextlib.suppress(Exception):
        args, kwargs = copy(call)
        results = find(other)(*args, **kwargs)
        results = results if isinstance(results, tuple) else (results,)
        results = pytree.tree_map_only(torch.Tensor, lambda result: result.new_empty(0), results)
    if len(results) != len(missing):
        results = [[torch.empty(0)] if "List" in str(argument.type) else torch.empty(0) for argument in missing]
    return {argument.name: value for argument, value in zip(missing, results, strict=True)}


def find(name: str) -> Any:
    """The operator of a name."""
    namespace, base, overload = name.split(".", 2)
    return getattr(getattr(getattr(torch.ops, namespace), base), overload)


def _schema(name: str) -> Any:
    try:
        return find(name)._schema
    except (AttributeError, RuntimeError):
        return None


SHAPES: Final = ((3, 4), (2, 3, 4, 4), (4,), (2, 3, 4), (), (2, 3, 4, 4, 4))
NUMBERS: Final = (1, 2, 0, 4)
_VECTORS: Final = ("bias", "mean", "var", "invstd", "rstd", "scale", "zero_point", "gamma", "beta", "weight")
"""Parts of names of arguments that have one element for each channel."""
_WHOLE: Final = ("indices", "index", "offset", "lengths", "sizes", "rows", "cols", "ids", "batch_sizes", "perm")


def made(schema: Any, namespace: str) -> Iterator[Call]:
    """Calls made from a schema alone: shapes, numbers and types that often fit; none is known to be valid."""
    required = [argument for argument in schema.arguments if not argument.has_default_value() or argument.is_out]
    dtypes: tuple[torch.dtype | None, ...] = (torch.float32, torch.int64)
    if "quantized" in namespace:
        dtypes += (torch.quint8,)
    if any(word in schema.name for word in ("sparse", "smm", "coalesce", "indices", "values", "hspmm", "spmm", "nnz")):
        dtypes = (None, *dtypes)
    for dtype, has_vectors, shape, number in itertools.product(dtypes, (True, False), SHAPES, NUMBERS):
        yield (), {argument.name: _value(argument, dtype, shape, number, has_vectors) for argument in required}


def _value(argument: Any, dtype: torch.dtype | None, shape: Iterable[int], number: int, has_vectors: bool) -> Any:
    kind = str(argument.real_type)
    sizes = tuple(shape)
    if has_vectors and "Tensor" in kind and len(sizes) > 1 and any(word in argument.name for word in _VECTORS):
        shape = sizes[1:2]
    if "Tensor" in kind:
        one = _tensor(argument.name, dtype, tuple(shape))
        return [one, one.clone()] if "List" in kind else one
    base = kind.removeprefix("Optional[").removesuffix("]")
    if base.startswith("List["):
        return [_number_of(base[5:].rstrip("]"), number)] * max(len(tuple(shape)) - 2, 1)
    return _number_of(base, number)


NUMBERS_OF: Final[dict[str, Callable[[int], Any]]] = {
    "float": float,
    "bool": bool,
    "str": lambda _: "mean",
    "Device": lambda _: torch.device("cpu"),
    "Generator": lambda _: None,
    "complex": complex,
}


def _number_of(kind: str, number: int) -> Any:
    made = NUMBERS_OF.get(kind)
    return made(number) if made else number


def _tensor(name: str, dtype: torch.dtype | None, shape: tuple[int, ...]) -> torch.Tensor:
    if any(word in name for word in _WHOLE):
        return torch.zeros(shape, dtype=torch.int64)
    if dtype is None:
        return torch.ones(shape).to_sparse() if len(shape) == 2 else torch.ones(shape)
    if dtype is torch.quint8:
        return torch.quantize_per_tensor(torch.ones(shape), 0.1, 0, dtype)
    return torch.ones(shape, dtype=dtype)
