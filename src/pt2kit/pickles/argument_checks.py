"""Checks that handlers of pickled calls share: each accepts a value of unknown type and returns it, or raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pt2kit.errors import LimitError
from pt2kit.pickles.budget import Budget, describe
from pt2kit.pickles.values import PickledTensor, Size

if TYPE_CHECKING:
    from types import FunctionType

Handler: TypeAlias = Callable[..., Any]
"""Function of (budget, the global's path, the call's arguments) that returns the replacement of a call's result."""

MAX_RANK = 64
"""Dimensions of a tensor or array; numpy's limit, and torch's for every operator that iterates."""

INT64 = 1 << 63


def call_handler(handler: Handler, budget: Budget, path: str, args: tuple[Any, ...]) -> Any:
    """Return the replacement of a call's result; the call has as many arguments as its handler has parameters.

    Raises:
        PayloadError: fewer or more arguments, or whatever the handler refuses.
    """
    function = cast("FunctionType", handler)
    most = function.__code__.co_argcount - 2
    check_arity(budget, path, args, *range(most - len(function.__defaults__ or ()), most + 1))
    return handler(budget, path, *args)


def check_arity(budget: Budget, path: str, args: tuple[Any, ...], *allowed: int) -> None:
    """Check the number of arguments.

    Raises:
        PayloadError: it is none of `allowed`.
    """
    if len(args) not in allowed:
        raise budget.error(
            path, f"{' or '.join(map(str, allowed))} argument{'' if list(allowed) == [1] else 's'}", str(len(args))
        )


def check_dims(budget: Budget, subject: str, value: Any) -> tuple[int, ...]:
    """Check that `value` is a tuple (or `Size`) of at most `MAX_RANK` integers from 0 to 2**63 - 1.

    Raises:
        PayloadError: it is not.
        LimitError: too many dimensions.
    """
    dims = value.sizes if isinstance(value, Size) else value
    if not isinstance(dims, tuple):
        raise budget.error(subject, "a tuple of integers", describe(value))
    if len(dims) > MAX_RANK:
        raise LimitError(f"{budget.where}: {subject}: expected at most {MAX_RANK} dimensions, got {len(dims)}")
    for dim in dims:
        check_count(budget, subject, dim)
    return dims


def check_count(budget: Budget, subject: str, value: Any) -> int:
    """Check that `value` is an integer from 0 to 2**63 - 1.

    Raises:
        PayloadError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < INT64:
        raise budget.error(subject, "an integer from 0 to 2**63 - 1", describe(value))
    return value


def check_bool(budget: Budget, subject: str, value: Any) -> bool:
    """Check that `value` is True or False.

    Raises:
        PayloadError: it is not.
    """
    if not isinstance(value, bool):
        raise budget.error(subject, "True or False", describe(value))
    return value


def check_tensor(budget: Budget, subject: str, value: Any, *dtypes: str) -> PickledTensor:
    """Check that `value` is a dense tensor, of one of `dtypes` if any are given.

    Raises:
        PayloadError: it is not.
    """
    if not isinstance(value, PickledTensor):
        raise budget.error(subject, "a dense tensor", describe(value))
    if dtypes and value.dtype_name not in dtypes:
        raise budget.error(subject, f"a tensor of {' or '.join(dtypes)}", f"one of {value.dtype_name}")
    return value
