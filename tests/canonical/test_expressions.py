"""Normal form of expressions: what it decides, and that hostile ones stay cheap."""

from __future__ import annotations

import pytest
from tests.calls import count_calls

from pt2kit.canonical import expressions
from pt2kit.canonical.expressions import Normalizer
from pt2kit.symbols import polynomials


def size(number: int) -> str:
    """A symbol as srepr has it."""
    return f"Symbol('s{number}', positive=True, integer=True)"


def test_integers_are_polynomials() -> None:
    """Sums and products are multiplied out and sorted; other text is unchanged."""
    normal = Normalizer().normal
    assert normal("Add(Mul(Integer(2), Integer(3)), Integer(-6))") == 0
    assert normal("2*(s0 + 1) - s0") == normal("s0 + 2") != normal("s0 + 3")
    assert normal("Min(s0*s1, s0)") == normal("s0")
    assert normal("Max(s0, s1)") == normal("Max(s1, s0, s1)")
    assert normal("(32 + s0)//32") == normal("1 + s0//32")
    assert normal("no expression (") == "no expression ("


def test_what_is_expanded_is_known() -> None:
    """Products within the limits of the normal form are within those of polynomials."""
    assert expressions.MAX_TERMS <= polynomials.MAX_TERMS
    assert expressions.MAX_FACTORS <= polynomials.MAX_DEGREE
    assert expressions.MAX_BITS <= polynomials.MAX_BITS


def _nested(template: str, levels: int) -> str:
    text = size(0)
    for number in range(1, levels):
        text = template.format(text, size(number % 5), size(number % 5 + 1))
    return text


@pytest.mark.parametrize(
    "text",
    [
        _nested("Mul({}, Add({}, {}))", 190),
        _nested("Pow(Add({}, {}), Integer(2))", 150),
        _nested("Pow(Mul({}, {}), Integer(2))", 190),
        _nested("Max({}, Mul({}, {}))", 190),
        "Max(" + ", ".join(f"Mul({', '.join(size(n + k) for k in range(7))})" for n in range(300)) + ")",
        "Add(" + ", ".join(map(size, range(2500))) + ")",
    ],
)
def test_hostile_expressions_are_cheap(text: str) -> None:
    """Calls and the size of the result are about linear."""
    results: list[str] = []
    calls = count_calls(lambda: results.append(str(Normalizer().normal(text))))
    assert calls < 16 * len(text)
    assert len(results[0]) < 64 * len(text)
