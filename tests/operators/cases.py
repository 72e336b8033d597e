"""Small golden calls of result rules: facts in, facts, `Unknown` or `Mismatch` out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pt2kit.operators.facts import Mismatch, Tensor, new
from pt2kit.operators.symbolic import call_rule
from pt2kit.operators.table import find, infer
from pt2kit.schema import Device, ScalarType
from pt2kit.symbols.polynomials import Size, same, symbol

CPU = Device("cpu", None)
F32, F64, BF16, I64, I32, BOOL = (
    ScalarType.FLOAT,
    ScalarType.DOUBLE,
    ScalarType.BFLOAT16,
    ScalarType.LONG,
    ScalarType.INT,
    ScalarType.BOOL,
)
S = symbol("s0", low=2, high=64, hint=8)
"""A symbolic size, from 2 to 64, 8 in the example."""


def t(*sizes: Size, dtype: ScalarType | None = F32, strides: tuple[Size, ...] | None = None) -> Tensor:
    """Return a tensor on the CPU, row-major if no strides are given."""
    return new(sizes, dtype, CPU, strides)


def results(cases: Sequence[tuple[str, dict[str, Any], Any]]) -> Callable[..., None]:
    """Return a test of (operator, arguments, expected results): sizes, dtype and, if they are known, strides.

    A result that is expected as None is not compared.
    """

    @pytest.mark.parametrize(("name", "arguments", "expected"), cases)
    def test(name: str, arguments: dict[str, Any], expected: Any) -> None:
        found = infer(name, arguments, is_strict=True)
        given = found if isinstance(found, (tuple, list)) else (found,)
        wanted = expected if isinstance(expected, (tuple, list)) else (expected,)
        assert len(given) >= len(wanted)
        for got, want in zip(given, wanted, strict=False):
            if want is None:
                continue
            assert isinstance(got, Tensor)
            assert len(got.sizes) == len(want.sizes), got
            assert all(same(one, other) for one, other in zip(got.sizes, want.sizes, strict=True)), got
            assert got.dtype is want.dtype
            assert got.strides is None or want.strides is None or got.strides == want.strides

    return test


def refusals(cases: Sequence[tuple[str, dict[str, Any], str, str]]) -> Callable[..., None]:
    """Return a test of (operator, arguments, subject, part of the message): arguments that torch refuses."""

    @pytest.mark.parametrize(("name", "arguments", "subject", "text"), cases)
    def test(name: str, arguments: dict[str, Any], subject: str, text: str) -> None:
        with pytest.raises(Mismatch) as caught:
            infer(name, arguments, is_strict=True)
        assert caught.value.subject == subject
        assert text in str(caught.value)

    return test


def flops(name: str, arguments: dict[str, Any]) -> Size:
    """Return the floating-point operations of a call."""
    row = find(name)
    assert row is not None
    assert row.flops is not None
    count: Size = call_rule(row.flops, {**arguments, "result": infer(name, arguments, is_strict=True)}, is_strict=True)
    return count
