"""Closures compute what `pt2kit.symbols.evaluate` computes; sizes that are a line of a symbol are known as such."""

from __future__ import annotations

import pytest

from pt2kit.bridge.run.expressions import computed, linear
from pt2kit.errors import UnsupportedError
from pt2kit.symbols.dialects import parse_size
from pt2kit.symbols.evaluation import evaluate
from pt2kit.symbols.expr import Call, Integer, free_symbols
from pt2kit.symbols.guards import parse_guard

GUARDS = [
    "L['x'].size()[0] + L['y'].size()[1] >= 2",
    "(L['x'].size()[0] // 2) * 3 != L['y'].size()[1] % 5",
    "max(L['x'].size()[0], 4) < 9 or not L['y'].size()[1] == 3",
    "math.floor(L['x'].size()[0] / 2) <= 3 and abs(L['y'].size()[1] - 7) > 1",
    "math.sqrt(torch.sym_float(L['x'].size()[0])) > 1.5",
    "min(L['x'].size()[0], L['y'].size()[1]) ** 2 == 9",
]


@pytest.mark.parametrize("text", GUARDS)
@pytest.mark.parametrize("sizes", [(2, 3), (5, 8), (9, 3), (0, 1)])
def test_computed(text: str, sizes: tuple[int, int]) -> None:
    """For every operator of guards, with numbers."""
    expr = parse_guard(text).expr
    named = {source.text: size for source, size in zip(parse_guard(text).sources, _sizes(text, sizes), strict=True)}
    reads = {name: (lambda leaves, name=name: leaves[0][name]) for name in named}
    assert bool(computed(expr, reads)([named])) == evaluate(expr, named)


def _sizes(text: str, sizes: tuple[int, int]) -> list[int]:
    return [sizes[0] if "'x'" in source.text else sizes[1] for source in parse_guard(text).sources]


def test_unknown_function() -> None:
    """A function that symbolic values do not have is named in the error."""
    expr = Call("IsNonOverlappingAndDenseIndicator", (Integer(1), Integer(1)))
    with pytest.raises(UnsupportedError, match="got IsNonOverlappingAndDenseIndicator"):
        computed(expr, {})


@pytest.mark.parametrize(
    ("text", "line"),
    [("s0", (1, 0)), ("2*s0", (2, 0)), ("s0 + 3", (1, 3)), ("4*s0 - 1", (4, -1)), ("s0**2", None), ("s0//2", None)],
)
def test_linear(text: str, line: tuple[int, int] | None) -> None:
    """a*s + b, or nothing."""
    expr = parse_size(text)
    found = linear(expr, free_symbols(expr)[0])
    assert found == line
