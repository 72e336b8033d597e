"""Values of drawn calls: what the kernels of the runtime compute, against torch's own kernels."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch
from tests.bridge.runtime_samples import call_of, verdict

from pt2kit.operators.requirements import find_row
from pt2kit.runtime.table import find_kernel
from pt2kit.schema.names import OPS

_INVERSES = ("cholesky_inverse", "cholesky_solve", "linalg_cond", "linalg_tensorinv", "linalg_tensorsolve")
NOT_COMPARED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("bucketize", "searchsorted"), "boundaries that are not sorted"),
        **dict.fromkeys(_INVERSES, "matrices that are nearly singular"),
        **dict.fromkeys(("_linalg_svd", "svd", "linalg_lu"), "decompositions that are not unique"),
        **dict.fromkeys(("polygamma", "special_polygamma"), "poles, where torch returns rounding noise"),
        "addcdiv": "complex numbers that are divided by 0",
        "isin": "elements that repeat although they are said to be unique",
        "topk": "no element of a number, for which torch returns uninitialized memory",
    }
)
"""Operator -> why its drawn calls have no result that kernels must agree on."""


def numbers_of(dtype: torch.dtype, count: int, rng: random.Random) -> torch.Tensor:
    """Draw numbers: of floats some whole ones, of integers small ones, which may be indices."""
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    if dtype.is_complex:
        return torch.randn(count, generator=generator, dtype=torch.complex128).to(dtype)
    if dtype.is_floating_point:
        numbers = torch.randn(count, generator=generator, dtype=torch.float64)
        return (numbers.round() if rng.random() < 0.25 or dtype.itemsize == 1 else numbers).to(dtype)
    least = -3 if dtype.is_signed and rng.random() < 0.4 else 0
    return torch.randint(least, rng.choice((2, 4, 9)), (count,), generator=generator).to(dtype)


def differences(
    name: str, make: Callable[[Callable[[torch.dtype, int], torch.Tensor]], Any], rng: random.Random
) -> Iterator[str]:
    """Yield what a kernel computes otherwise than torch.

    Unchecked kernels of torch read and write what random arguments tell them to, and are not called.

    Args:
        name: the overload.
        make: makes arguments by parameter, with tensors of the numbers that a function draws.
        rng: draws the numbers.
    """
    operator = name.split(".")[1].rstrip("_")
    if operator in NOT_COMPARED or find_row(OPS + name) is not None or find_kernel(name) is None:
        return
    overload: Any = torch.ops
    for part in name.split("."):
        overload = getattr(overload, part)
    try:
        call = call_of(overload, (), make(lambda dtype, count: numbers_of(dtype, count, rng)))
    except Exception:  # noqa: BLE001  # What torch refuses is no sample.
        return
    what, why = ("", "") if call is None else verdict(call)
    if what == "different":
        yield f"values: {why}"
