"""The table of kernels: operator overload -> the NumPy function that computes it.

A kernel has the parameter names of the operator's schema, or others, which are then passed by place. It gets the
default of each parameter that it requires from the schema, and declares no parameter that has no effect on its result.
One that declares a parameter `result` gets the sizes and the element type of its result, as the rule of the operator
computes them, or as `results` those of all results; one of what releases of torch compute otherwise gets the `release`.
Its result may be of a wider element type than torch's, and have its elements in other sizes: the caller casts it to the
type that the program declares, and reshapes it to the sizes that the rule computes. If the operator has a dimension for
a parameter, a first operand without dimensions is passed as one of one element. A rule that is not certain of the sizes
in all calls reshapes nothing in these, so that kernels of such operators return the right sizes themselves.
Operators in place, over lists, with `out=`, and copies of views have the kernel of the operator that they vary.
"""

from __future__ import annotations

import functools
import inspect
import keyword
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from operator import itemgetter
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType
from typing import Any, Final, TypeVar, overload

from pt2kit.errors import OperatorError
from pt2kit.messages import quote
from pt2kit.operators.table import bases, copied, in_place, into_out, overload_name
from pt2kit.schema import ScalarType
from pt2kit.schema.operators import Operator, find_operator, nearest

Kernel = Callable[..., Any]
K = TypeVar("K", bound=Kernel)

_TABLE: Final[dict[str, Kernel]] = {}  # Filled while the families are imported.
_REGISTERED: Final[dict[str, Kernel]] = {}  # By users.
_MUTATED: Final[dict[Kernel, tuple[str, ...]]] = {}

_SAME_AS: Final = """
    absolute=abs clip=clamp concat=cat concatenate=cat det=linalg_det divide=div fix=trunc ger=outer greater=gt
    greater_equal=ge inverse=linalg_inv less=lt less_equal=le matrix_exp=linalg_matrix_exp
    matrix_power=linalg_matrix_power moveaxis=movedim multiply=mul negative=neg not_equal=ne
    orgqr=linalg_householder_product row_stack=vstack special_expit=sigmoid special_gammainc=igamma
    special_gammaincc=igammac _neg_view=neg special_gammaln=lgamma special_multigammaln=mvlgamma
    special_psi=digamma subtract=sub true_divide=div _unsafe_view=reshape slogdet=linalg_slogdet
    pinverse=linalg_pinv conj_physical=conj linalg_matmul=matmul _linalg_eigvals=linalg_eigvals
"""
SAME_AS: Final = MappingProxyType(
    {
        **{f"arc{name}": f"a{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2")},
        **dict(row.split("=") for row in _SAME_AS.split()),
    }
)
"""Operator -> another of the same meaning and parameters."""
_PREFIXES: Final = ("special_", "_unsafe_", "unsafe_")
"""Beginnings of names of operators that compute what those without them do, unless they have kernels of their own."""


WITHOUT_EFFECT: Final = frozenset(
    (
        *("generator", "layout", "device", "pin_memory", "dtype", "memory_format", "non_blocking", "requires_grad"),
        *("sparse", "sparse_grad", "masked_grad", "scale_grad_by_freq", "cudnn_enable", "cudnn_enabled", "benchmark"),
        *("deterministic", "allow_tf32", "driver", "check_errors", "assume_unique", "implicit", "compute_mode"),
        *("unsafe", "output_size", "N", "C", "HxW", "physical_layout", "path", "unroll_dim", "half_to_float"),
        *("sorted", "stable", "input_dtype", "out_dtype", "out_int32", "zero_infinity", "keepdim"),
    )
)
"""Parameters that do not change what most kernels compute: a kernel that they do matter to declares them."""


def overloads_of(names: str) -> Iterator[str]:
    """Yield the overloads that are listed in a text: "aten.add.Tensor .Scalar" has two of one operator."""
    operator = ""
    for name in names.split():
        operator = operator if name.startswith(".") else name.rpartition(".")[0]
        yield operator + name if name.startswith(".") else name


def kernel(*names: str, adapt: Callable[[Any], Any] | None = None) -> Callable[[K], K]:
    """Register the function below as the kernel of overloads, and return the kernel.

    Args:
        names: overloads, separated by blanks; ".Scalar" is an overload of the operator before.
        adapt: makes a kernel of the function, such as one that converts its operands (`arrays.computed`).
    """

    from pt2kit.runtime.arrays import named

    def register_function(function: K) -> K:
        made: K = (adapt or named)(function)
        _TABLE.update(dict.fromkeys(overloads_of(" ".join(names)), made))
        return made

    return register_function


@overload
def register(name: str, function: None = None, *, mutates: Iterable[str] = ()) -> Callable[[K], K]: ...
@overload
def register(name: str, function: K, *, mutates: Iterable[str] = ()) -> K: ...
def register(name: str, function: Kernel | None = None, *, mutates: Iterable[str] = ()) -> Any:
    """Register a kernel for a custom operator, in this process; as a decorator if no function is passed.

    Args:
        name: the operator ("corpus::addmul" for its overload `default`, "corpus::addmul.Tensor" for another).
        function: its parameters have the names of the operator's schema; tensors are NumPy arrays. It may write into
            arrays if the operator does. Its results must have the sizes that the program declares.
        mutates: the names of the parameters that the operator writes to.

    Raises:
        OperatorError: no name of an operator.
    """
    target = overload_name(name)
    if function is None:
        return functools.partial(register, name, mutates=mutates)
    _REGISTERED[target] = function
    _MUTATED[function] = tuple(mutates)
    return function


def unregister(name: str) -> None:
    """Remove the kernel that was registered for a custom operator, if there is one."""
    _REGISTERED.pop(overload_name(name), None)


def is_registered(name: str) -> bool:
    """Return whether a user registered the kernel of an operator overload."""
    return name in _REGISTERED


def mutated_by(function: Kernel) -> tuple[str, ...]:
    """Return the parameters that a kernel of a user writes to."""
    return _MUTATED.get(function, ())


def find_kernel(name: str) -> Kernel | None:
    """Return the kernel of an operator overload ("aten.add_.Tensor"); None if there is none."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    load_families()
    return _find(name)


def supported() -> tuple[str, ...]:
    """Return the names of all operator overloads of the table, without those derived from them, sorted."""
    load_families()
    return tuple(sorted(_TABLE))


@functools.cache
def load_families() -> tuple[ModuleType, ...]:
    """Import the kernels, functions that are registered and the table `KERNELS` of each module; return the modules."""
    found = iter_modules(import_module("pt2kit.runtime.kernels").__path__)
    modules = tuple(import_module(f"pt2kit.runtime.kernels.{family.name}") for family in found)
    for module in modules:
        for names, function in getattr(module, "KERNELS", {}).items():
            kernel(names)(function)
    return modules


@functools.cache
def _find(name: str) -> Kernel | None:
    if name in _TABLE:
        return _TABLE[name]
    namespace, _, rest = name.partition(".")
    base, _, overload = rest.partition(".")
    if namespace not in ("aten", "prims"):
        return None
    ahead = next((prefix for prefix in _PREFIXES if base.startswith(prefix)), "")
    if ahead or base in SAME_AS:
        return _find(f"{namespace}.{SAME_AS.get(base) or base.removeprefix(ahead)}.{overload}")
    for other, how in bases(name):
        if (plain := _find(other)) is not None:
            if how is into_out and (operator := find_operator(other, nearest(""))) is not None:
                plain = binding(plain, operator)  # the sizes of its result decide whether it is that of `out`
            return _each(other, name) if base.startswith("_foreach_") else _VARIANTS[how](plain)
    return None


def binding(function: Kernel, operator: Operator, release: str = "") -> Kernel:
    """Return a kernel that is called with the arguments of its operator, by place or by name, which are checked before.

    Args:
        function: the kernel.
        operator: the schema of the operator.
        release: of torch, for a kernel of what releases compute otherwise; the newest by default.
    """
    from pt2kit.runtime.arrays import DTYPE, check_call, mapped, running, shaped

    if function in _MUTATED:  # a user's, which has defaults of its own
        return function
    names, parameters = [*map(parameter_name, operator.parameters)], operator.parameters.values()
    accepted, required, is_open = _parameters(function)
    if "release" in accepted:
        function = functools.partial(function, release=nearest(release))
    # Up to the last parameter that the kernel calls otherwise, arguments go by place.
    places = [
        place + 1
        for place, (name, parameter) in enumerate(zip(names, parameters, strict=True))
        if not (is_open or name in accepted or name in WITHOUT_EFFECT or parameter.is_keyword_only)
    ]
    by_place = names[: max(places, default=0)]
    used = [one for one in zip(names, parameters, strict=True) if one[0] in required or one[0] in by_place]
    defaults = {name: literal_eval(one.default) for name, one in used if one.default is not None}
    needed = {name for name, one in zip(names, parameters, strict=True) if one.default is None}
    ignored = frozenset() if is_open else WITHOUT_EFFECT - accepted
    wanted = accepted & {"result", "results"}
    dtypes = [name for name, one in zip(names, parameters, strict=True) if one.type.base == "ScalarType"]
    has_axis = any(one.name.startswith("dim") and str(one.type) in ("int", "int?") for one in parameters)
    is_along = has_axis and "out" not in names  # else the kernel that it varies is bound, too
    last: tuple[Any, Sequence[Any]] = None, ()  # the last call, and its results: the next one is mostly like it

    def run(*args: Any, **options: Any) -> Any:
        nonlocal last
        named = {**defaults, **dict(zip(names, args, strict=False)), **options}
        for name in dtypes:
            if type(number := named.get(name)) is int:  # a default of torch, which counts from 0; the format from 1
                named[name] = DTYPE[ScalarType(number + 1)]
        call = running().max_bytes, mapped(named, lambda array: (array.shape, array.dtype))
        known, results = last
        if call != known:
            if missing := needed - named.keys():
                raise OperatorError(f"expected the arguments {', '.join(sorted(missing))}, got none of that name")
            if others := named.keys() - names:
                raise OperatorError(f"expected arguments of {operator.name}, got {quote(min(others))}")
            results = check_call(operator.name, named)
            last = call, results
        if wanted:
            if not results:
                raise OperatorError("expected arguments that determine the sizes of the result, got others")
            named.update({"result": results[0]} if "result" in wanted else {"results": results})
        are_known = len(results) >= len(operator.results)  # all of them
        if is_along and are_known and getattr(tensor := named[names[0]], "ndim", 1) == 0:
            named[names[0]] = tensor.reshape(1)
        given = [named.pop(name) for name in by_place if name in named]
        found = function(*given, **{name: value for name, value in named.items() if name not in ignored})
        return shaped(found, results)

    return run


@functools.cache
def _parameters(function: Kernel) -> tuple[frozenset[str], frozenset[str], bool]:
    """Return the parameters that a kernel accepts, those that it requires, and whether it accepts any other."""
    found = inspect.signature(function).parameters
    required = frozenset(name for name, one in found.items() if one.default is one.empty)
    return frozenset(found), required, any(one.kind is one.VAR_KEYWORD for one in found.values())


def parameter_name(name: str) -> str:
    """Return the parameter of a kernel: its name in the schema, with an underscore if Python reserves the name."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _then(function: Kernel, change: Callable[[Any], Any]) -> Kernel:
    """Return a kernel whose results are changed."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return change(function(*args, **kwargs))

    return run


def first(function: Kernel) -> Kernel:
    """Return the kernel of an operator that returns the first result of another one."""
    return _then(function, itemgetter(0))


def functional(function: Kernel, *written: str) -> Kernel:
    """Return the kernel of an operator that returns, after its results, copies of the arguments that another writes."""
    from pt2kit.runtime.arrays import ARRAYS

    @functools.wraps(function)
    def run(**arguments: Any) -> Any:
        copies = {name: arguments[name].copy(order="K") for name in written if isinstance(arguments.get(name), ARRAYS)}
        result = function(**(arguments | copies))
        return (*(result if isinstance(result, tuple) else (result,)), *copies.values())

    return run


def _copying(view: Kernel) -> Kernel:
    """Return the kernel of a copy of a view, or of several."""
    from pt2kit.runtime.arrays import mapped

    return _then(view, lambda found: mapped(found, lambda one: one.copy()))


def _writing(plain: Kernel) -> Kernel:
    """Return the kernel of an in-place operator."""

    @functools.wraps(plain)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return write(self, plain(self, *args, **kwargs).reshape(self.shape))

    return run


def _each(one: str, name: str) -> Kernel | None:
    """Return the kernel of an operator over lists of tensors: that of one operator, for each place of the lists."""
    kernel, plain, lists = _find(one), find_operator(one, nearest("")), find_operator(name, nearest(""))
    if kernel is None or plain is None or lists is None:
        return None
    call, parameters = binding(kernel, plain), [*map(parameter_name, lists.parameters)]
    is_written = name.partition(".")[2].partition(".")[0].endswith("_")

    def run(**arguments: Any) -> Any:
        given = [arguments[each] for each in parameters if arguments.get(each) is not None]
        rows = [[each[i] if isinstance(each, list) else each for each in given] for i in range(len(given[0]))]
        results = [call(*row) for row in rows]
        return [write(row[0], result) for row, result in zip(rows, results, strict=True)] if is_written else results

    return run


def _writing_out(plain: Kernel) -> Kernel:
    """Return the kernel of an operator that stores its result in a given tensor."""

    @functools.wraps(plain)
    def run(*args: Any, out: Any, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        if result.shape != out.shape:
            raise OperatorError(f"out: expected sizes {list(result.shape)}, got {list(out.shape)}")
        return write(out, result)

    return run


def write(target: Any, value: Any) -> Any:
    """Store a result in an array, converted to its type, and return the array.

    Raises:
        OperatorError: the array is read-only, or of other sizes.
    """
    import numpy as np

    from pt2kit.runtime.arrays import cast

    if not target.size:  # it may be a view of a weight
        return target
    if not target.flags.writeable:
        raise OperatorError("expected a tensor that can be written to, got a read-only one; pass a copy")
    np.copyto(target, cast(value, target.dtype), casting="unsafe")
    return target


_VARIANTS: Final[dict[Any, Callable[[Kernel], Kernel]]] = {in_place: _writing, into_out: _writing_out, copied: _copying}
"""How a rule of an operator follows from that of another one -> how the kernel does."""
