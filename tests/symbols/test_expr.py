"""The tree: equality, hashing, walking, substitution, measures and limits."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from tests.narrow import instance
from tests.symbols.cases import TREES

from pt2kit.errors import ExpressionError, LimitError
from pt2kit.symbols import (
    Boolean,
    Call,
    Float,
    Integer,
    Limits,
    Rational,
    Symbol,
    default_assumptions,
    evaluate,
    fold,
    free_symbols,
    parse,
    substitute,
    to_srepr,
    to_str,
)
from pt2kit.symbols.expr import fail, measure, quote

S0 = Symbol("s0", (("positive", True), ("integer", True)))


def nested(depth: int, inner=S0):
    """FloorDiv inside FloorDiv, `depth` times."""
    for _ in range(depth):
        inner = Call("FloorDiv", (inner, Integer(2)))
    return inner


@given(TREES)
def test_equal_trees_are_one_key(tree):
    """A copy of a tree is equal to it and has its hash; pickling keeps both."""
    for other in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert other == tree
        assert hash(other) == hash(tree)
        assert {tree: 1}[other] == 1


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Integer(1), Boolean(True)),
        (Integer(1), Float("1.0")),
        (Integer(1), Rational(1, 2)),
        (Symbol("s0"), S0),
        (Call("Add", (S0, S0)), Call("Mul", (S0, S0))),
        (Call("Add", (S0, S0)), Call("Add", (S0, S0, S0))),
        (Call("Add", (S0, Integer(1))), Call("Add", (Integer(1), S0))),
        (Call("Add", (S0,)), "Add(s0)"),
        (nested(3), nested(3, Integer(1))),
    ],
)
def test_different_trees_differ(left, right):
    """Class, value, function, number and order of arguments all count."""
    assert left != right


def test_deep_trees_do_not_recurse():
    """Building, comparing, hashing, walking and printing need no stack, however deep a tree is."""
    one, other = nested(5000), nested(5000)
    assert one == other
    assert hash(one) == hash(other)
    assert one != nested(5000, Integer(1))
    assert measure(one) == (10001, 5000)
    assert free_symbols(one) == (S0,)
    assert to_srepr(one).startswith("FloorDiv(FloorDiv(")
    assert to_str(one).startswith("((((")
    assert evaluate(one, {"s0": 2**64}) == 0


def test_fold_gives_arguments_in_order():
    """The arguments of a call come in their written order."""
    written = fold(parse("Max(1, s0 + 2, s1)"), repr, lambda node, args: f"{node.function}[{' '.join(args)}]")
    assert written.startswith("Max[Integer(value=1) Symbol(name='s1'")
    assert written.endswith("Integer(value=2)]]")


def test_free_symbols_in_written_order():
    """Each symbol once, in the order of the text."""
    names = [symbol.name for symbol in free_symbols(parse("s2*u0 + s10 - u0 + Where(s1 > s2, s0, 1)"))]
    assert names == ["s2", "u0", "s10", "s1", "s0"]


def test_substitute():
    """Symbols are replaced at once, numbers become leaves, and what does not change is shared."""
    expr = parse("(s0 + s1)*(s2 + 1)")
    swapped = substitute(expr, {"s0": parse("s1"), "s1": parse("s0"), "s9": 4})
    assert to_str(swapped) == "(s1 + s0)*(s2 + 1)"
    assert instance(Call, swapped).args[1] is instance(Call, expr).args[1]
    assert substitute(expr, {}) is expr
    assert substitute(parse("Where(u0 > 1, s0, 2)"), {"u0": 3, "s0": True}) == parse("Where(3 > 1, True, 2)")


def test_substitute_is_limited():
    """Doubling a tree again and again ends in a LimitError, not in memory."""
    expr = parse("s0")
    for _ in range(13):
        expr = substitute(parse("s0 + s0"), {"s0": expr}, where="size")
    with pytest.raises(LimitError, match=r"^size: expected at most 16384 parts, got 32767$"):
        substitute(parse("s0 + s0"), {"s0": expr}, where="size")
    with pytest.raises(LimitError, match="expected at most 200 calls inside each other, got 201"):
        substitute(nested(101), {"s0": nested(100)})


def test_limits_name_both_numbers():
    """Text, parts, depth and digits have limits, and the error says how far over a text is."""
    small = Limits(text=50, nodes=5, depth=2, bits=64)
    cases = {
        "s0" * 26: "x: expected at most 50 characters, got 52",
        "s0 + 1 + 2 + 3 + 4": "x: expected at most 5 parts, got",
        "Max(1, Max(2, Max(3, s0)))": "expected at most",
        "s0 + 123456789012345678901": "x: expected at most 20 digits, got 21",
        "Add(Integer(1), Integer(2), Integer(3), oo, oo)": "x: expected at most 5 parts, got 6",
        "Abs(Abs(Abs(Integer(1))))": "x: expected at most 2 calls inside each other, got 3",
    }
    for text, message in cases.items():
        with pytest.raises(LimitError) as caught:
            parse(text, where="x", limits=small)
        assert message in str(caught.value), text


def test_default_limits_hold_in_both_dialects():
    """Long, large and deep texts are refused quickly; a sum of a thousand symbols is read."""
    assert len(instance(Call, parse(" + ".join(f"s{i}" for i in range(1000)))).args) == 1000
    terms = ", ".join(f"Symbol('s{i}', positive=True, integer=True)" for i in range(1000))
    assert len(instance(Call, parse(f"Add({terms})")).args) == 1000
    for text in (
        "(" * 100_000 + "s0",
        "-" * 100_000 + "s0",
        "s0" + "//2" * 50_000,
        "s0" + "**s0" * 50_000,
        "Abs(" * 50_000 + "Integer(1)" + ")" * 50_000,
        "s0+" * 80_000 + "s0",
        "s0" * 1_000_000,
        "1" * 5000,
        f"Integer({'1' * 5000})",
        "~" * 300 + "True",
    ):
        with pytest.raises((LimitError, ExpressionError), match=r"^expression: expected at most "):
            parse(text)


@pytest.mark.parametrize(
    ("name", "assumptions"),
    [
        ("s0", (("positive", True), ("integer", True))),
        ("s77", (("positive", True), ("integer", True))),
        ("evaluate_static_shape_3", (("positive", True), ("integer", True))),
        ("u0", (("integer", True),)),
        ("i4", (("integer", True),)),
        ("zf1", (("real", True),)),
        ("zuf1", ()),
        ("f2", ()),
        ("s", (("integer", True),)),
        ("size", (("integer", True),)),
    ],
)
def test_default_assumptions(name, assumptions):
    """A symbol that says nothing about itself has the assumptions torch makes on its name."""
    assert default_assumptions(name) == assumptions


def test_messages_are_short_and_placed():
    """An error starts with its place, and text of a file is quoted and cut."""
    with pytest.raises(ExpressionError, match=r"^here: wrong$"):
        fail("here", "wrong")
    with pytest.raises(ExpressionError, match=r"^expression: wrong$"):
        fail("", "wrong")
    assert quote("a\nb") == "'a\\nb'"
    assert len(quote("x" * 1000)) == 82
