"""`pt2kit.symbols` against sympy, torch's own functions and live exports."""

from __future__ import annotations

import json
import math
import random

import pytest
import sympy
import torch
import torch.utils._sympy.functions as torch_functions
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.bridge import symbol_oracle as oracle
from torch._export.serde.serialize import _print_sympy
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pt2kit.errors import ExpressionError
from pt2kit.symbols import (
    FUNCTIONS,
    bounds,
    default_assumptions,
    evaluate,
    float_from,
    kind,
    parse,
    parse_guard,
    parse_size,
    parse_str,
    to_srepr,
    to_str,
)
from pt2kit.symbols.order import _base_key

CASES = json.loads(oracle.CASES.read_text(encoding="utf-8"))["expressions"]
# str prints fewer digits than srepr holds, and says nothing about these classes.
LOSSY = ("Float(", "CleanDiv(")


def agrees(ours, theirs):
    """Return whether two values are the same, floats up to rounding."""
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_cases_are_current(case):
    """cases.json holds what this sympy says; renew it with `python -m tests.bridge.symbol_oracle`."""
    assert oracle.expected(case["text"]) == {key: value for key, value in case.items() if key != "torch"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_values_of_cases(case):
    """Random values give what sympy gives, inside the bounds."""
    expr = oracle.read(case["text"])
    tree = parse(case["text"])
    chance = random.Random(2)
    for _ in range(5):
        values = oracle.assignment(expr, chance)
        theirs = oracle.value(expr, values)
        if theirs is None:
            with pytest.raises(ExpressionError, match=r"^expression: "):
                evaluate(tree, values)
            continue
        ours = evaluate(tree, values)
        assert agrees(ours, theirs), values
        low, high = bounds(tree, {name: (value, value) for name, value in values.items()})
        assert low <= ours <= high


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_random_expressions(seed):
    """Texts of random sympy expressions are read, printed and computed as sympy does."""
    chance = random.Random(seed)
    expr = oracle.random_expression(chance)
    assume(expr is not None)
    srepr = sympy.srepr(expr)
    with oracle.printing_of_2_5():
        text = str(expr)
    tree = parse(srepr)
    assert to_srepr(tree) == srepr
    assert to_str(tree) == text
    again = parse_str(text)
    assert to_str(again) == text
    if not any(name in srepr for name in LOSSY):
        assert again == tree
    for _ in range(3):
        values = oracle.assignment(expr, chance)
        theirs = oracle.value(expr, values)
        try:
            ours = evaluate(tree, values)
        except ExpressionError:
            # sympy cancels and folds what has no value on the way; we compute what is written.
            continue
        if theirs is None or _is_near_a_step(tree) or ("PowByNatural" in text and not math.isfinite(theirs)):
            continue  # torch gives up on powers beyond 64 bits
        assert agrees(ours, theirs), (text, values)


def _is_near_a_step(tree):
    """Return whether rounding may hit a float that sympy keeps as an exact root."""
    text = to_srepr(tree)
    return "Rational(1, 2)" in text and ("floor(" in text or "ceiling(" in text)


@settings(max_examples=500, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats(value):
    """Floats are written as sympy writes them, alone and in a product."""
    assert to_srepr(float_from(value)) == sympy.srepr(sympy.Float(value))
    assert to_str(float_from(value)) == str(sympy.Float(value))
    product = sympy.Float(value) * sympy.Symbol("zuf0")
    assert to_str(parse(sympy.srepr(product))) == str(product)


def test_every_function_of_torch_is_known():
    """The table holds every function that torch defines, in the places where sympy sorts them."""
    defined = {
        name: cls
        for name, cls in vars(torch_functions).items()
        if isinstance(cls, type) and issubclass(cls, sympy.Function) and cls.__module__ == torch_functions.__name__
    }
    assert set(defined) <= set(FUNCTIONS)
    assert "FloorDiv" in defined
    names = {name: oracle._namespace().get(name) or getattr(sympy, name) for name in FUNCTIONS}
    keys = {name: tuple(_base_key(name, [])[:3]) for name in names if name not in ("TrueDiv", "Round")}
    assert keys == {name: names[name].class_key() for name in keys}


def test_assumptions_of_torch():
    """Symbols get the assumptions that a shape environment gives them by their names."""
    env = ShapeEnv()
    made = [env.create_unbacked_symint(), env.create_unbacked_symfloat(), env.create_unbacked_symbool()]
    symbols = {symbol for value in made for symbol in value.node.expr.free_symbols}
    source = torch._dynamo.source.ConstantSource("x")
    symbols.add(env.create_symbol(5, source))
    symbols.add(env.create_symbol(2.5, torch._dynamo.source.ConstantSource("y"), positive=None))
    assert {symbol.name[0] for symbol in symbols} == {"s", "u", "z"}
    for symbol in symbols:
        assert sympy.srepr(symbol) == to_srepr(parse(sympy.srepr(symbol)))
        assert dict(default_assumptions(symbol.name)) == symbol._assumptions_orig


class Conditions(torch.nn.Module):
    """A program whose trace needs conditions of many forms."""

    def forward(self, x, d, items, n):
        if d["k"].shape[0] * 2 + items[0].shape[0] > 7:
            x = x + 1
        if max(x.shape[0], items[1].shape[0]) > 3:
            x = x * 2
        if n > 3 and n % 4 != 2:
            x = x + n
        if abs(n - 50) > 2 and (n & 3) == 1:
            x = x + 1
        return torch.cat([x, x[: x.shape[0] // 2]]), n * 2 + 1


@pytest.mark.parametrize("strict", [True, False])
def test_live_guards_and_sizes(strict):
    """Guards and sizes of a fresh export are read; its own inputs satisfy the guards."""
    auto = Dim.AUTO
    inputs = (torch.randn(6), {"k": torch.randn(5)}, [torch.randn(4), torch.randn(8)], 9)
    shapes = ((auto,), {"k": (auto,)}, [(auto,), (auto,)], auto)
    program = torch.export.export(Conditions(), inputs, dynamic_shapes=shapes, strict=strict)
    flat = {"flat_args": torch.utils._pytree.tree_leaves(inputs)}
    named = dict(zip(("x", "d", "items", "n"), inputs, strict=True))
    assert program._guards_code
    for text in program._guards_code:
        guard = parse_guard(text)
        values = {source.text: _asked({**flat, **named}, source) for source in guard.sources}
        assert evaluate(guard.expr, values) is True
    texts = set()
    for node in program.graph.nodes:
        value = node.meta.get("val")
        found = value.shape if isinstance(value, torch.Tensor) else [value]
        texts |= {_print_sympy(size) for size in found if isinstance(size, torch.SymInt)}
    assert len(texts) > 4
    for text in texts:
        assert to_srepr(parse_size(text)) == text
        assert kind(parse(text)) == "int"


def _asked(args, source):
    found = args
    for step in source.path:
        found = getattr(found, step[0]) if isinstance(step, tuple) else found[step]
    return found if source.what == "value" else getattr(found, source.what)(source.index)
