"""Numeric distance of two arrays, and whether it is beyond the tolerance of their element types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

TOLERANCES: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
        "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
        "float8_e4m3fn": (0.125, 1e-2), "float8_e4m3fnuz": (0.125, 1e-2),
        "float8_e5m2": (0.25, 1e-2), "float8_e5m2fnuz": (0.25, 1e-2), "float8_e8m0fnu": (1.0, 0.0),
    }
)  # fmt: skip
"""Element type -> relative and absolute tolerance: those of `torch.testing.assert_close`; one step of 8-bit floats."""


@dataclass(frozen=True, slots=True)
class Error:
    """How far two arrays, or two numbers, are apart.

    Args:
        max, mean: of the absolute differences of finite elements; infinite if sizes differ.
        cosine: of the angle between both, as vectors; 1.0 for equal ones.
        exceeds: whether an element differs beyond the tolerance of the less precise element type.
        nonfinite: how many elements of each are NaN or infinite.
    """

    max: float
    mean: float
    cosine: float
    exceeds: bool
    nonfinite: tuple[int, int] = (0, 0)


NOTHING: Final = Error(0.0, 0.0, 1.0, False)
_OTHER: Final = Error(float("inf"), float("inf"), 0.0, True)


def error_of(old: Any, new: Any, scale: float = 1.0) -> Error:
    """Return how far two values are apart.

    Args:
        old, new: arrays or numbers; other values are equal or not.
        scale: factor on both tolerances.
    """
    if not isinstance(old, np.ndarray | int | float | complex) or not isinstance(
        new, np.ndarray | int | float | complex
    ):
        return NOTHING if type(old) is type(new) and (old is new or old == new) else _OTHER
    a, b = np.asarray(old), np.asarray(new)
    if a.shape != b.shape:
        return _OTHER
    relative, absolute = _tolerance(a.dtype.name, b.dtype.name)
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), b.astype(wide)
        finite = np.isfinite(x) & np.isfinite(y)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        apart = np.where(finite, np.abs(x - y), 0.0)
        beyond = finite & (apart > scale * (absolute + relative * np.abs(x))) | (~finite & ~same)
        counts = int(np.sum(~np.isfinite(x))), int(np.sum(~np.isfinite(y)))
        x, y = np.where(finite, x, 0), np.where(finite, y, 0)
        norms = float(np.linalg.norm(x)) * float(np.linalg.norm(y))
        cosine = float(np.abs(np.vdot(x, y))) / norms if norms else float(np.array_equal(x, y))
    if not apart.size:
        return NOTHING
    return Error(float(apart.max()), float(apart.mean()), min(1.0, cosine), bool(beyond.any()), counts)


def worst(errors: Iterable[Error]) -> Error:
    """Return the greatest errors among several."""
    result = NOTHING
    for one in errors:
        counts = result.nonfinite[0] + one.nonfinite[0], result.nonfinite[1] + one.nonfinite[1]
        result = Error(
            max(result.max, one.max),
            max(result.mean, one.mean),
            min(result.cosine, one.cosine),
            result.exceeds or one.exceeds,
            counts,
        )
    return result


def _tolerance(*names: str) -> tuple[float, float]:
    found = [TOLERANCES.get(name, (0.0, 0.0)) for name in names]
    return max(one for one, _ in found), max(one for _, one in found)
