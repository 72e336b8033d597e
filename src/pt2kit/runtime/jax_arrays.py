"""Arrays whose numbers jax computes, for kernels that are written for NumPy: views, and writes through them, included.

A `JaxArray` implements NumPy's protocols for arrays of other libraries (`__array_function__`, `__array_ufunc__`): a
kernel that calls `np.exp(x)` gets what `jax.numpy.exp` returns. Its sizes, strides and memory are those of a NumPy
array of the same layout that nobody reads, so NumPy itself decides which operators return views. Arrays that share
memory share a `_Memory`; a write replaces its value, and each view reads it anew by the places of its elements.

Numbers that do not depend on inputs are kept as NumPy arrays and computed by NumPy. Those that do are unknown while a
program is traced: whatever needs them as Python numbers is refused.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pt2kit.errors import UnsupportedError
from pt2kit.runtime.arrays import ForeignArray, flattened, in_order, mapped, order_of

READS_NUMBERS: Final = "expected an operator that jax can trace, got one that reads the numbers of a tensor"
_VIEWS: Final = frozenset(
    (
        *("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "diagonal", "expand_dims"),
        *("flip", "fliplr", "flipud", "moveaxis", "ravel", "reshape", "rot90", "split", "squeeze", "swapaxes"),
        *("transpose", "array_split"),
    )
)
"""Functions of NumPy whose results may share memory with their operands."""
_FACTS: Final = frozenset(("shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags"))
_LIKE: Final = frozenset(("empty_like", "full_like", "ones_like", "zeros_like"))
_SYMMETRIC: Final = frozenset(("cholesky", "eigh", "eigvalsh"))
_AT: Final = {"add": "add", "maximum": "max", "minimum": "min", "multiply": "multiply"}
"""Function of NumPy that may be called at indices -> the method of jax's arrays for it."""
_NUMPY_ONLY: Final = frozenset(("copy", "kind", "optimize"))


class _Memory:
    """Memory that arrays share: its value, of the layout's sizes, and how often it was written."""

    __slots__ = ("is_dense", "layout", "value", "version")

    def __init__(self, value: Any, layout: Any) -> None:
        self.value, self.layout, self.version, self.is_dense = value, layout, 0, True


def _address(layout: Any) -> int:
    return int(layout.__array_interface__["data"][0])


def _known(value: Any) -> bool:
    """Return whether a value does not depend on inputs, so that its numbers are known while a program is traced."""
    return not isinstance(value, jax.Array)


class JaxArray(NDArrayOperatorsMixin, ForeignArray):
    """An array of jax as kernels use it, or a view of one.

    Args:
        value: its numbers: an array of jax, or one of NumPy if they do not depend on inputs; None to read them from the
            memory.
        memory: what it is a view of; its own by default.
        layout: a NumPy array of its sizes and strides in the layout of the memory.
    """

    __slots__ = ("_layout", "_memory", "_seen", "_value")

    def __init__(self, value: Any, memory: _Memory | None = None, layout: Any = None) -> None:
        if memory is None:
            layout = np.empty(value.shape, value.dtype)  # never read, so the system provides no memory for it
            memory = _Memory(value, layout)
        self._memory, self._layout, self._value = memory, layout, value
        self._seen = -1 if value is None else memory.version

    def __getattr__(self, name: str) -> Any:
        """Return what a NumPy array has under a name: a fact of the layout, a view, or a function of NumPy."""
        if name in _FACTS:
            return getattr(self._layout, name)
        if name in ("T", "real", "imag"):
            return self.viewed(operator.attrgetter(name))
        if name in ("reshape", "transpose", "swapaxes", "view"):
            return lambda *args: self.viewed(operator.methodcaller(name, *args))
        if name in ("item", "tolist"):
            return getattr(np.asarray(self), name)
        if name.startswith("_"):  # what NumPy looks for in arrays of its own
            raise AttributeError(name)
        return functools.partial(getattr(np, name), self)

    @property
    def value(self) -> Any:
        """Return the numbers, after all writes to the memory."""
        if self._seen != self._memory.version:
            self._value, self._seen = self._read(), self._memory.version
        return self._value

    @property
    def is_known(self) -> bool:
        """Return whether the numbers do not depend on inputs."""
        return _known(self.value)

    @property
    def is_written(self) -> bool:
        """Return whether the memory was written."""
        return self._memory.version > 0

    @property
    def storage_offset(self) -> int:
        """Return where the array starts in its memory, in elements."""
        return (_address(self._layout) - _address(self._memory.layout)) // int(self.itemsize)

    def storage(self) -> JaxArray:
        """Return the whole memory, as one row of elements."""
        if not self._memory.is_dense:
            raise UnsupportedError("expected tensors whose elements are all of their memory, got one that is a part")
        return JaxArray(None, self._memory, self._memory.layout.reshape(-1))

    def strided(self, shape: Any, strides: Any) -> JaxArray:
        """Return a view of other sizes and strides, in bytes."""
        view = np.lib.stride_tricks.as_strided(self._layout, shape, strides, writeable=self.flags.writeable)
        return JaxArray(None, self._memory, view)

    def viewed(self, change: Callable[[Any], Any]) -> Any:
        """Return a view by a function of arrays, or a copy if NumPy makes one."""
        return _shared(change(self._layout), change(self.value), [self])

    def assign(self, value: Any) -> None:
        """Write numbers, through views to the memory."""
        memory, known = self._memory, _known(value) and _known(self._memory.value)
        home: Any = np if known else jnp
        value = home.broadcast_to(home.asarray(value).astype(self.dtype), self.shape)
        whole = memory.layout
        if self.strides == whole.strides and self.shape == whole.shape and _address(self._layout) == _address(whole):
            memory.value = value
        else:
            memory.value = _replaced(memory.value.reshape(-1), self._places(home), value).reshape(whole.shape)
        memory.version += 1
        self._value, self._seen = value, memory.version

    def _read(self) -> Any:
        known = _known(self._memory.value)
        return self._memory.value.reshape(-1)[self._places(np if known else jnp)]

    def _places(self, home: Any) -> Any:
        """Return the place of each element in the memory, computed from strides."""
        item = self.itemsize
        if self.dtype != self._memory.layout.dtype:
            raise UnsupportedError("expected writes to memory of one element type, got a view as another one")
        places = home.asarray(self.storage_offset, "int64")
        for axis, (size, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            steps = home.arange(size, dtype="int64") * (stride // item)
            places = places + steps.reshape([-1 if i == axis else 1 for i in range(self.ndim)])
        return places

    # Python's protocols.

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if not _known(self.value):
            raise UnsupportedError(READS_NUMBERS)
        return np.array(self.value, dtype)

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __float__(self) -> float:
        return float(np.asarray(self))

    __index__ = __int__

    def __len__(self) -> int:
        return len(self._layout)

    def __iter__(self) -> Any:
        return (self[i, ...] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(one, ForeignArray | np.ndarray | list) for one in keys):
            return _wrapped(_called(operator.getitem, lambda array, at: jnp.asarray(array)[at], (self, key), {}))
        found = self._layout[key]
        value = self.value[key]
        return _shared(found, value, [self]) if isinstance(found, np.ndarray) else _wrapped(value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.assign(_replaced(self, key, value))

    # NumPy's protocols.

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if name == "copyto" and kwargs.keys() <= {"casting"}:
            return _target(args[0]).assign(_values(args[1]))
        if name == "put_along_axis":
            placed = functools.partial(jnp.put_along_axis, inplace=False)
            return _target(args[0]).assign(_called(_copied(function), placed, args, kwargs))
        if name in _LIKE:  # whose numbers are known, as those of the layout are
            args = (args[0]._layout, *args[1:])
        out = kwargs.pop("out", None)
        found = _called(function, _of_jax(function), args, kwargs)
        if name not in _VIEWS:
            return _wrapped(found) if out is None else _assigned(out, found)
        operands = [one for one in flattened(args) if isinstance(one, JaxArray)]
        layouts = function(*mapped(args, lambda one: one._layout, JaxArray), **kwargs)
        if isinstance(layouts, np.ndarray):
            return _shared(layouts, found, operands)
        return [_shared(*pair, operands) for pair in zip(layouts, found, strict=True)]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if method == "at":

            def placed(target: Any, key: Any, values: Any) -> Any:
                is_or = ufunc is np.add and target.dtype == bool
                return getattr(jnp.asarray(target).at[key], "max" if is_or else _AT[ufunc.__name__])(values)

            return _target(inputs[0]).assign(_called(_copied(ufunc.at), placed, inputs, kwargs))
        of_jax = _of_jax(ufunc)
        if method != "__call__":
            of_jax, ufunc = getattr(of_jax, method), getattr(ufunc, method)
        found = _called(ufunc, of_jax, inputs, kwargs)
        like = next((one for one in inputs if isinstance(one, JaxArray) and one.shape == np.shape(found)), None)
        return _wrapped(found, like) if out is None else _assigned(out[0], found)

    # Methods that kernels use.

    def astype(self, dtype: Any, **options: Any) -> Any:
        """Return a copy of another element type."""
        return _wrapped(self.value.astype(dtype), self)

    def copy(self, order: str = "C") -> Any:
        """Return a copy, laid out in the same order if the order is "K"."""
        return _wrapped(self.value, self if order == "K" else None)

    def special(self, name: str, *others: Any) -> Any:
        """Return the values of a special function of the array, or of arrays that it is one of, as jax computes them.

        Raises:
            UnsupportedError: jax has no such function.
        """
        missing = functools.partial(_refuse, f"scipy.special.{name}")
        found: Any = _OWN.get(name) or getattr(jax.scipy.special, name, missing)
        return _wrapped(found(*_values(others or (self,))), self)

    def correlate(self, weight: Any, stride: Any, padding: Any, spread: Any, dilation: Any, groups: int) -> Any:
        """Return the correlation of a batch [n, channels, ...] with a weight, as jax computes it.

        Args:
            weight: [outputs, channels / groups, ...].
            stride, dilation: one number per dimension.
            padding: how much to pad each dimension before and after.
            spread: the distance of neighbors among the elements of the batch.
            groups: of channels.
        """
        x, w = (jnp.asarray(_values(one)) for one in (self, weight))
        return _wrapped(
            jax.lax.conv_general_dilated(x, w, stride, padding, spread, dilation, feature_group_count=groups)
        )


def input_array(value: Any, array: Any) -> JaxArray:
    """Return an input with the layout of the array that it has in the first call."""
    found: JaxArray = _wrapped(value, array)
    found._memory.is_dense = found.strides == array.strides
    return found


def lifted(value: Any) -> Any:
    """Return a result of a kernel with each NumPy array as one that later steps can write unknown numbers to."""
    return mapped(value, JaxArray, np.ndarray)


def _values(value: Any) -> Any:
    return mapped(value, lambda one: one.value, JaxArray)


def _called(of_numpy: Any, of_jax: Any, args: Any, kwargs: Any) -> Any:
    """Call a function of NumPy if all its operands are known, else that of jax."""
    args, kwargs = _values(tuple(args)), _values(kwargs)
    if all(map(_known, flattened((args, *kwargs.values())))):
        return of_numpy(*args, **kwargs)
    return of_jax(*args, **{key: one for key, one in kwargs.items() if key not in _NUMPY_ONLY})


def _replaced(target: Any, key: Any, value: Any) -> Any:
    """Return numbers with others in the places of an index."""

    def of_jax(target: Any, key: Any, value: Any) -> Any:
        return jnp.asarray(target).at[key].set(jnp.asarray(value).astype(target.dtype))

    return _called(_copied(operator.setitem), of_jax, (target, key, value), {})


def _of_jax(function: Any) -> Any:
    """Return the function of jax that has the name of one of NumPy or SciPy."""
    name, home = function.__name__, jnp
    for part in getattr(function, "__module__", "numpy").split(".")[1:]:
        home = getattr(home, part, home)
    found: Any = getattr(home, name, None) or getattr(jax.scipy.special, name, None)
    if name in _SYMMETRIC and home is jnp.linalg:  # NumPy reads one triangle
        return functools.partial(found, symmetrize_input=False)
    return functools.partial(_refuse, f"numpy.{name}") if found is None else found


def _zeta(s: Any, q: Any) -> Any:
    """Return the Hurwitz zeta function, the sum of (q + k) ** -s over k = 0, 1, ….

    jax adds nine terms, and estimates the rest as for positive ones. Below 0, where s has to be whole, this is the sum
    over all whole k, which the distance of q to whole numbers decides, without that of k < 0.
    """
    of_jax, above = jax.scipy.special.zeta, -q - jnp.floor(-q)
    below = of_jax(s, 1 - above) + jnp.where(s % 2 == 0, 1, -1) * (of_jax(s, above) - of_jax(s, 1 - q))
    found = jnp.where((q < 0) & (s % 1 == 0), below, of_jax(s, q))
    return jnp.where(s < 1, jnp.nan, jnp.where((s == 1) | (q <= 0) & (above == 0), jnp.inf, found))


def _digamma(x: Any) -> Any:
    """Return the digamma function; that of jax is nan at its pole at 0."""
    return jnp.where(x == 0, -1 / x, jax.scipy.special.digamma(x))


_OWN: Final[dict[str, Callable[..., Any]]] = {"digamma": _digamma, "zeta": _zeta}
"""Name of a function of SciPy -> ours, if that of jax has other values."""


def _refuse(name: str, *args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError(f"expected functions that jax has, got {name}")


def _wrapped(value: Any, like: Any = None) -> Any:
    """Return results as arrays that own their memory, laid out as another one if that is given."""
    if isinstance(value, list | tuple):
        return tuple(map(_wrapped, value))
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        return value
    if like is None or like.flags.c_contiguous or value.shape != like.shape:
        return JaxArray(value)
    return in_order(_wrapped(value), order_of([*map(abs, like.strides)]))


def _shared(layout: Any, value: Any, operands: Any) -> Any:
    """Return a result of a view: with the memory of the operand that its layout is in, or its own."""
    for one in operands:
        if np.may_share_memory(layout, one._memory.layout):
            return JaxArray(value, one._memory, layout)
    return JaxArray(value)


def _target(array: Any) -> JaxArray:
    if not isinstance(array, JaxArray):
        raise UnsupportedError("expected kernels that write to arrays of their operands' kind, got one of NumPy's own")
    return array


def _assigned(out: Any, value: Any) -> Any:
    _target(out).assign(value)
    return out


def _copied(function: Any) -> Any:
    """Return a function that writes into a copy of its first operand, and returns the copy."""

    def run(target: Any, *rest: Any) -> Any:
        target = target.copy()
        function(target, *rest)
        return target

    return run
