"""Numbers as short text."""

from __future__ import annotations

import pytest

from pt2kit.messages import count_text
from pt2kit.text.format import bytes_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (31_200, "31.2 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (2_147_610_847, "2.15 GB"),
        (10**30, "1e+12 EB"),
    ],
)
def test_bytes(count: int, text: str) -> None:
    """Three digits and a decimal unit."""
    assert bytes_text(count) == text


def test_counts() -> None:
    """The noun follows the number."""
    assert [count_text(number, "tensor") for number in (0, 1, 1200)] == ["0 tensors", "1 tensor", "1,200 tensors"]
    assert count_text(2, "entry", "entries") == "2 entries"
