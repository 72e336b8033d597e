"""Calls of operators that torch answers and a kernel of the runtime must answer equally; samples come from op_db."""

from __future__ import annotations

import functools
import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from pt2kit import schema
from pt2kit.errors import Pt2Error, UnsupportedError
from pt2kit.runtime.arrays import cast
from pt2kit.runtime.table import binding, find_kernel, parameter_name
from pt2kit.schema.operators import find_operator, nearest
from pt2kit.schema.versions import release_of

RELEASE = release_of(torch.__version__)
DTYPES = (torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64, torch.float64, torch.uint8)
TO_NUMPY = {
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
    **{
        getattr(torch, name): np.dtype(getattr(ml_dtypes, name))
        for name in (
            "float8_e4m3fn",
            "float8_e5m2",
            "float8_e4m3fnuz",
            "float8_e5m2fnuz",
            "float8_e8m0fnu",
        )
    },
}
BITS = {1: torch.uint8, 2: torch.int16}

RANDOM = frozenset(
    (
        *("bernoulli", "cauchy", "dropout", "exponential", "geometric", "log_normal", "multinomial", "native_dropout"),
        *("normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"),
        *("random", "uniform", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "rrelu"),
        *("rrelu_with_noise", "rrelu_with_noise_functional", "normal_functional", "_standard_gamma", "binomial"),
        *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"),
    )
)
"""Operators whose results are random or uninitialized: types and sizes are compared."""
FIRST = frozenset(
    (
        *("sort", "topk", "kthvalue", "median", "nanmedian", "mode", "_ctc_loss", "embedding_bag"),
        *("_embedding_bag", "_embedding_bag_forward_only"),
    )
)
"""Operators whose first result alone is unique and defined: places of equal values, and memory for gradients."""
NOT_UNIQUE = frozenset(
    (
        *("linalg_svd", "_linalg_svd", "svd", "linalg_eigh", "_linalg_eigh", "linalg_eig", "linalg_qr", "qr", "geqrf"),
        *("linalg_lu_factor_ex", "argsort", "linalg_eigvals", "_linalg_eigvals", "linalg_lstsq", "_linalg_slogdet"),
    )
)
"""Operators without a unique answer: signs of vectors, order of equal values. `PROPERTIES` states what must hold."""


def _product(*factors: Any) -> Any:
    return functools.reduce(np.matmul, factors)


def _lengths(values: Any, size: int) -> Any:
    """Square matrices with given diagonals."""
    return np.asarray(values)[..., None, :] * np.eye(size)


def _unpacked(packed: Any, pivots: Any) -> Any:
    """The matrix that was factored into a lower and an upper triangle, with rows exchanged."""
    size = min(packed.shape[-2:])
    lower = np.tril(packed[..., :, :size], -1) + np.eye(packed.shape[-2], size)
    result = lower @ np.triu(packed[..., :size, :])
    for place in np.ndindex(*pivots.shape[:-1]):
        for row, pivot in reversed([*enumerate(pivots[place] - 1)]):
            result[place][[row, pivot]] = result[place][[pivot, row]]
    return result


def _adjoint(x: Any) -> Any:
    return np.conjugate(x.swapaxes(-1, -2))


def _of_lower(x: Any) -> Any:
    """The Hermitian matrix of a lower triangle, whose diagonal is real."""
    below = np.tril(x, -1)
    return below + _adjoint(below) + np.real(np.tril(np.triu(x)))


def _of_svd(x: Any, u: Any, s: Any, vh: Any) -> Any:
    size = s.shape[-1]
    return _product(u[..., :, :size], _lengths(s, size), vh[..., :size, :])


PROPERTIES: dict[str, Callable[..., tuple[Any, Any]]] = {
    "linalg_svd": lambda x, u, s, vh: (x, _of_svd(x, u, s, vh)),
    "svd": lambda x, u, s, v: (x, _of_svd(x, u, s, _adjoint(v))),
    "linalg_eigh": lambda x, w, v: (_of_lower(x), _product(v, _lengths(w, w.shape[-1]), _adjoint(v))),
    "linalg_eig": lambda x, w, v: (x @ v, v * w[..., None, :]),
    "linalg_qr": lambda x, q, r: (x, q @ r),
    "linalg_lu_factor_ex": lambda x, packed, pivots, info: (x, _unpacked(packed, pivots)),
}
"""Operator -> two arrays that are equal if its results, passed after its first operand, are right."""


def _broken_property(call: Call, before: Any, got: Any, base: str) -> str:
    """Return how results that are not unique break their property."""
    state = PROPERTIES.get(base.removeprefix("_"))
    operand = next((one for one in before.values() if isinstance(one, np.ndarray)), None)
    options = [one for one in before.values() if isinstance(one, bool | str)]
    if state is None or operand is None or not operand.size or options not in ([], ["L"], [True], [False], ["reduced"]):
        return ""  # other options leave results out
    try:
        expected, found = state(operand.astype(np.complex128), *map(np.asarray, got))
    except (IndexError, ValueError) as error:
        return f"results of sizes {[np.shape(one) for one in got]}: {error}"
    return "" if np.allclose(expected, found, 1e-4, 1e-4) else "results that do not give the operand"


def array_of(tensor: torch.Tensor) -> Any:
    """A copy of a tensor as an array with the same strides."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype in TO_NUMPY:
        return tensor.view(BITS[tensor.itemsize]).numpy().copy(order="K").view(TO_NUMPY[tensor.dtype])
    if tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    return tensor.numpy().copy(order="K")


def dtype_of(dtype: torch.dtype) -> Any:
    """The type of the arrays that hold tensors of a type."""
    if dtype in TO_NUMPY:
        return TO_NUMPY[dtype]
    return np.dtype("complex64" if dtype is torch.complex32 else str(dtype).removeprefix("torch."))


FORMATS = {
    torch.contiguous_format: schema.MemoryFormat.ContiguousFormat,
    torch.channels_last: schema.MemoryFormat.ChannelsLast,
    torch.channels_last_3d: schema.MemoryFormat.ChannelsLast3d,
    torch.preserve_format: schema.MemoryFormat.PreserveFormat,
}


def argument_of(value: Any) -> Any:
    """An argument as kernels take it."""
    if isinstance(value, torch.Tensor):
        return array_of(value)
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, torch.memory_format):
        return FORMATS[value]
    if value is torch.strided:
        return schema.Layout.Strided
    if isinstance(value, list | tuple):
        return [argument_of(one) for one in value]
    return value


@dataclass
class Call:
    """A call that torch answered: its operator, arguments as kernels take them, and what torch gave."""

    overload: Any
    arguments: dict[str, Any]
    result: Any
    written: dict[str, Any]

    @property
    def name(self) -> str:
        """The name in the table of kernels."""
        return str(self.overload)


def call_of(overload: Any, args: Any, kwargs: Any) -> Call | None:
    """Call an operator; None where torch refuses."""
    names = [argument.name for argument in overload._schema.arguments]
    given = dict(zip(names, args, strict=False)) | dict(kwargs)
    plain = {parameter_name(name): argument_of(value) for name, value in given.items()}
    result = overload(*args, **kwargs)
    written = {
        argument.name: array_of(given[argument.name])
        for argument in overload._schema.arguments
        if argument.alias_info is not None
        and argument.alias_info.is_write
        and isinstance(given.get(argument.name), torch.Tensor)
    }
    kept = pytree.tree_map(lambda one: one.detach().clone() if isinstance(one, torch.Tensor) else one, result)
    return Call(overload, plain, kept, written)


class Recorder(TorchDispatchMode):
    """Records the operators that a function calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        if (
            any(one.layout is not torch.strided or one.is_quantized for one in tensors)
            or find_kernel(str(func)) is None
        ):
            return func(*args, **(kwargs or {}))
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | dict(kwargs or {})
        plain = {parameter_name(name): argument_of(value) for name, value in given.items()}
        result = func(*args, **(kwargs or {}))
        kept = pytree.tree_map(lambda one: one.detach().clone() if isinstance(one, torch.Tensor) else one, result)
        self.calls.append(Call(func, plain, kept, {}))
        return result


def verdict(call: Call) -> tuple[str, str]:
    """Return a kernel's verdict on a call: "equal", "refused" or "different", and why."""
    kernel = find_kernel(call.name)
    if kernel is None:
        return "missing", ""
    before = {
        key: value.copy(order="K") if isinstance(value, np.ndarray) else value for key, value in call.arguments.items()
    }
    shown = {
        key: (f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else value)
        for key, value in call.arguments.items()
    }
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            operator = find_operator(call.name, nearest(""))
            got = (binding(kernel, operator, RELEASE) if operator else kernel)(**call.arguments)
    except UnsupportedError as error:
        return "refused", str(error)[:200]
    except Pt2Error as error:
        return "refused", f"{type(error).__name__}: {error} {shown}"[:400]
    except Exception as error:  # noqa: BLE001  # Sessions turn these into errors of ours.
        return "refused", f"{type(error).__name__}: {error} {shown}"[:400]
    base = call.name.split(".")[1]
    random = base.rstrip("_") in RANDOM
    # `_safe_softmax` and the like return views of one number; a tuple of one is that one.
    why = _difference(got, call.result, base, random)
    for name, want in call.written.items():
        if not why and not random:
            why = _difference(
                call.arguments[name],
                torch.from_numpy(want) if want.dtype not in TO_NUMPY.values() else None,
                base,
                random,
            )
    if why and _is_nearer(call, before, got):
        why = ""
    if not why and base in NOT_UNIQUE:
        why = _broken_property(call, before, got, base)
    return ("different", f"{why} {shown}"[:500]) if why else ("equal", "")


def _is_nearer(call: Call, arguments: dict[str, Any], got: Any) -> bool:
    """Return whether a result is at least as near as torch's to torch's result in double precision.

    Torch rounds between the steps of some operators, and sums in another order.
    """

    def double(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "c":
                return torch.from_numpy(value.astype(np.complex128))
            return torch.from_numpy(value.astype(np.float64) if value.dtype.kind not in "biu" else value.copy())
        if isinstance(value, list):
            return [double(one) for one in value]
        return torch.float64 if value in (torch.bfloat16, torch.float32) else value

    if any(isinstance(value, np.dtype) for value in arguments.values()):
        return False
    named = {key.rstrip("_") if key in ("from_",) else key: double(value) for key, value in arguments.items()}
    named = {key: value for key, value in named.items() if not isinstance(value, schema.MemoryFormat)}
    truth = _attempt(lambda: call.overload(**named))
    parts = zip(
        *(value if isinstance(value, list | tuple) else [value] for value in (truth, got, call.result)), strict=False
    )
    for true, ours, theirs in list(parts):
        if not isinstance(true, torch.Tensor) or not isinstance(theirs, torch.Tensor):
            continue
        wide = torch.complex128 if true.is_complex() else torch.float64
        mine = torch.from_numpy(np.asarray(cast(np.asarray(ours), dtype_of(theirs.dtype))).astype(dtype_of(wide)))
        if mine.shape != true.shape:
            return False
        finite = torch.isfinite(true.to(wide).abs())
        errors = [(one.to(wide) - true.to(wide)).abs()[finite] for one in (mine, theirs)]
        magnitude = true.to(wide).abs()[finite].max() if finite.any() else 0.0
        slack = 2e-6 * (1 + magnitude)
        if bool((errors[0] > errors[1] + slack).any()) or bool((mine.isnan() & ~true.isnan()).any()):
            return False
    return truth is not None


def _difference(got: Any, want: Any, base: str, random: bool) -> str:
    if want is None:
        return ""
    if isinstance(want, list | tuple):
        if not isinstance(got, list | tuple) or len(got) < len(want):
            return f"{type(got).__name__} for {len(want)} results"
        parts = list(zip(got, want, strict=False))
        if base in FIRST:
            parts = parts[:1]
        elif base in NOT_UNIQUE:
            return ""
        return next((why for x, y in parts if (why := _difference(x, y, base, random))), "")
    if isinstance(want, torch.Tensor):
        if isinstance(got, tuple | list):
            got = got[0]
        array = cast(np.asarray(got), dtype_of(want.dtype))
        if array.shape != tuple(want.shape):
            return f"sizes {list(array.shape)}, torch {list(want.shape)}"
        if random or base in NOT_UNIQUE:
            return ""
        expected = array_of(want)
        exact = expected.dtype.kind in "biu"
        if exact:
            same = np.array_equal(array, expected)
            return "" if same else f"values {array.ravel()[:6]} {expected.ravel()[:6]}"
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        try:
            torch.testing.assert_close(
                torch.from_numpy(array.astype(wide)),
                torch.from_numpy(expected.astype(wide)),
                equal_nan=True,
                **_tolerance(want.dtype),
            )
        except AssertionError as error:
            a, b = array.astype(wide).ravel(), expected.astype(wide).ravel()
            bad = np.nonzero(~np.isclose(a, b, 1e-5, 1e-5, equal_nan=True))[0][:3]
            return f"values at {bad}: {a[bad]} torch {b[bad]} ({str(error).splitlines()[0]})"
        return ""
    if isinstance(want, float):
        return (
            ""
            if isinstance(got, float | int) and (got == want or abs(got - want) <= 1e-5 * abs(want) or got != got)
            else f"{got!r}, torch {want!r}"
        )
    return "" if got == want else f"{got!r}, torch {want!r}"


def _tolerance(dtype: torch.dtype) -> dict[str, float]:
    """The tolerances of `assert_close`; 8-bit floats may round the last bit the other way."""
    table = {
        torch.float16: (1e-3, 1e-5),
        torch.bfloat16: (1.6e-2, 1e-5),
        torch.float32: (1.3e-6, 1e-5),
        torch.float64: (1e-7, 1e-7),
        torch.complex32: (1e-3, 1e-5),
        torch.complex64: (1.3e-6, 1e-5),
        torch.complex128: (1e-7, 1e-7),
    }
    relative, absolute = table.get(dtype, (0.0, 0.0))
    return {"rtol": relative, "atol": absolute}


def calls_of(op: Any, dtype: torch.dtype, count: int, seed: int = 0) -> Iterator[Call]:
    """Calls of the overloads of one entry of op_db, and of the operators that it and its gradient are made of."""
    torch.manual_seed(seed)
    samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), 60))
    chosen = random.Random(seed).sample(samples, min(count, len(samples)))
    for sample in chosen:
        args = (sample.input, *sample.args)
        for overload in overloads_of(op):
            call = _attempt(call_of, overload, _copied(args), _copied(sample.kwargs))
            if call is not None:
                yield call
        recorder = Recorder()
        trained = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        _attempt(_recorded, recorder, op, _copied(args, trained), _copied(sample.kwargs))
        yield from recorder.calls


def _recorded(recorder: Recorder, op: Any, args: Any, kwargs: Any) -> None:
    with recorder:
        results = [one for one in pytree.tree_leaves(op.op(*args, **kwargs)) if isinstance(one, torch.Tensor)]
        wanted = [one.abs() if one.is_complex() else one for one in results if one.requires_grad]
        if wanted:
            torch.autograd.backward(wanted, [torch.full_like(one, 1.5) for one in wanted])


def _copied(tree: Any, trained: bool = False) -> Any:
    def copied(one: Any) -> Any:
        if not isinstance(one, torch.Tensor):
            return one
        return one.detach().clone().requires_grad_(trained and (one.is_floating_point() or one.is_complex()))

    return pytree.tree_map(copied, tree)


def _attempt(function: Callable[..., Any], *args: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)
    except Exception:  # noqa: BLE001  # What torch refuses is no sample.
        return None


def overloads_of(op: Any) -> list[Any]:
    """The overloads of the operator of aten that an entry of op_db is about."""
    name = op.aten_name.replace(".", "_")
    found = []
    for candidate in (name, f"{name}_", f"linalg_{name}", f"special_{name}"):
        packet = getattr(torch.ops.aten, candidate, None)
        if packet is None:
            continue
        for overload in packet.overloads():
            one = getattr(packet, overload)
            if "out" not in overload.split("_") and overload != "out":
                found.append(one)
    return found


def entries() -> list[Any]:
    """The entries of op_db."""
    return list(op_db)
