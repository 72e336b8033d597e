"""Guards whose numbers grow beyond all sizes are refused when they are read, and no others."""

from __future__ import annotations

import pytest

from pt2kit.errors import LimitError
from pt2kit.symbols.dialects import parse_number, parse_size, parse_truth
from pt2kit.symbols.guards import parse_guard

N = "L['x'].size()[0]"


@pytest.mark.parametrize(
    "text",
    [
        f"2 ** {N} < 10000",  # what export writes for 2 ** n
        f"2 ** ({N} + 1) < 10000",
        f"2 ** (4*{N} - 3) < 10000",
        f"{N} ** {N} == 4",
        f"{N} ** (-{N}) == 4",
        f"{N} ** 3 + {N} ** 2 < 9",
        f"torch.sym_float({N}) ** 0.5 < 100.0",
        f"torch.sym_float({N}) ** {N} ** 0.5 < 100.0",
        f"round({N}/3, 2) == 4.0",
        f"({N}//2) ** ({N} % 7) == 1",
        f"(2 ** {N}) % 7 == 2",
        "*".join([N] * 100) + " == 4",
    ],
)
def test_ordinary_powers(text: str) -> None:
    """Powers of sizes by sizes, and products of many of them, are read."""
    parse_guard(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L['a0'].size()[0] ** L['a0'].size()[0] ** 99 == 4", "a power whose base and exponent are sizes"),
        (f"({N} ** {N}) ** {N} == 4", "a power whose base and exponent are sizes"),
        (f"{N} ** ({N} * {N}) == 4", "a power whose base and exponent are sizes"),
        (f"2 ** 2 ** {N} == 4", "a power whose base and exponent are sizes"),
        (f"{N} ** -({N} ** 9) == 4", "a power whose base and exponent are sizes"),
        (f"math.floor({N} * 1.5) ** {N} == 4", "a power whose base and exponent are sizes"),
        (f"max({N} ** 99, 1.5) ** {N} == 4", "a power whose base and exponent are sizes"),
        (f"{N} ** 5000 ** 2 == 4", "numbers of at most 262144 bits"),
        (f"{N} ** (10 ** 9) == 4", "numbers of at most 262144 bits"),
        (f"{N} // ({N} ** (999 * 99999 + 1)) == 0", "numbers of at most 262144 bits"),
        (f"{N} ** ({N} * 60000) == 4", "a power whose base and exponent are sizes"),
        (f"{N} ** 9999999 == 4", "numbers of at most 262144 bits"),
        (f"(({N} ** 99) ** 99) ** 99 == 1", "numbers of at most 262144 bits"),
        ("*".join([f"2 ** {N}"] * 5) + " == 4", "numbers of at most 262144 bits"),
        ("+".join([f"2 ** {N}"] * 9) + " == 4", "at most 8 powers"),
        (f"round({N}, -99999999) == 4", "a rounding to at most 400 digits"),
        (f"round({N}, -{N}) == 4", "a rounding to at most 400 digits"),
    ],
)
def test_numbers_that_take_minutes(text: str, expected: str) -> None:
    """A power of a power of a size, a huge exponent, a rounding to many digits: refused, with the part that grows."""
    with pytest.raises(LimitError, match=expected):
        parse_guard(text)


@pytest.mark.parametrize(
    "text",
    ["s0**4", "(s0 + s1)**3*s2", "(s0//2 + 1)*(s1//2 + 1)*(s2//2 + 1)", "2**s0", "(s0 + s1 + s2 + s3)**2//7"],
)
def test_ordinary_sizes(text: str) -> None:
    """Sizes that exports have are read."""
    parse_size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mod(s0**1000000000, 7)", "numbers of at most 262144 bits"),
        ("s0**s0**99", "a power whose base and exponent are sizes"),
        ("Mod(s0**4096, 7)", "at most 512 terms"),
        ("(s0 + s1 + s2 + s3 + s4)**20//(s0 + s1)", "at most 512 terms"),
        ("((s0 + 1)**60 + 1)**60//3", "at most 512 terms"),
        ("*".join(f"(s{n} + 1)" for n in range(10)), "at most 512 terms"),
        ("(s0 + 1)**10", "at most 512 terms"),
    ],
)
def test_sizes_that_take_minutes(text: str, expected: str) -> None:
    """Sizes that sympy would multiply out for minutes are refused when they are read, whatever they are used for."""
    for parse in (parse_size, parse_number):
        with pytest.raises(LimitError, match=expected):
            parse(text)
    with pytest.raises(LimitError, match=expected):
        parse_truth(f"({text}) > 3")


def test_terms_of_a_negative_power() -> None:
    """The terms of a divisor count as those of a factor."""
    with pytest.raises(LimitError, match="at most 512 terms"):
        parse_number("1.5*(s0 + 1)**-600")
