"""Entries of `guards_code`."""

from __future__ import annotations

import ast
import math
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.symbols.cases import GUARDS, REFUSED_GUARDS, SOUP

from pt2kit import errors
from pt2kit.errors import Pt2Error
from pt2kit.symbols import evaluate, parse_guard


class FakeTensor:
    """The tensor methods of guards."""

    def __init__(self, sizes, strides):
        self._sizes, self._strides = sizes, strides

    def size(self):
        return self._sizes

    def stride(self):
        return self._strides

    def storage_offset(self):
        return 3

    def item(self):
        return 2.5


def arguments(n, m):
    """Arguments for every reference in the cases, in some sizes."""
    x, y = FakeTensor((n, m), (m, 1)), FakeTensor((m, n), (n, 1))
    return {
        "x": x,
        "y": y,
        "n": n,
        "m": m,
        "b": n > m,
        "f": n / 2,
        "l": [x, y],
        "d": {"k": y},
        "flat_args": [x, y, x, y, n],
        "nt": types.SimpleNamespace(a=x, b=y),
        "a": [types.SimpleNamespace(b=x)],
    }


def value_of(source, args):
    """Return a source's value, found by its parts."""
    found = args
    for step in source.path:
        found = getattr(found, step[0]) if isinstance(step, tuple) else found[step]
    if source.what == "value":
        return found
    asked = getattr(found, source.what)()
    return asked if source.index is None else asked[source.index]


def as_python(text, args):
    """Evaluate a text of ours in Python, with torch's names."""
    names = {
        "L": args,
        "math": math,
        "torch": types.SimpleNamespace(sym_float=float, _sym_sqrt=math.sqrt, sym_max=max, sym_min=min),
        "cast_symbool_to_symint_guardless": int,
        "IsNonOverlappingAndDenseIndicator": lambda size, stride: int(stride == 1 or size < 2),
        "inf": math.inf,
    }
    return eval(compile(text, "guard", "eval"), names)  # noqa: S307 - a text from the cases next to this test


@pytest.mark.parametrize("text", GUARDS)
def test_guards_mean_what_python_says(text):
    """Every real form of a guard is read and has Python's value."""
    guard = parse_guard(text)
    assert guard.text == text
    for n in range(1, 8):
        for m in (1, 2, 5):
            args = arguments(n, m)
            values = {source.text: value_of(source, args) for source in guard.sources}
            assert evaluate(guard.expr, values) is as_python(text, args)


@pytest.mark.parametrize(
    ("text", "path", "what", "index"),
    [
        ("L['x'].size()[0]", ("x",), "size", 0),
        ("L['args'][0][1].stride()[12]", ("args", 0, 1), "stride", 12),
        ("L['d']['a key'].storage_offset()", ("d", "a key"), "storage_offset", None),
        ('L["d"]["k"].item()', ("d", "k"), "item", None),
        ("L['nt'].field.other.size()[1]", ("nt", ("field",), ("other",)), "size", 1),
        ("L['n']", ("n",), "value", None),
        ("L['l'][-1]", ("l", -1), "value", None),
        ("L['x'].size", ("x", ("size",)), "value", None),
    ],
)
def test_sources(text, path, what, index):
    """A reference says which input, and what of it."""
    (source,) = parse_guard(f"{text} == 1").sources
    assert (source.text, source.path, source.what, source.index) == (text, path, what, index)


@pytest.mark.parametrize(("text", "error", "says"), REFUSED_GUARDS)
def test_everything_else_is_refused(text, error, says):
    """Anything but a condition over inputs is refused, with its place."""
    with pytest.raises(getattr(errors, error)) as caught:
        parse_guard(text, where="guards_code[0]")
    assert str(caught.value).startswith("guards_code[0]: ")
    assert says in str(caught.value)


ALLOWED = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)
CALLS = {
    "abs",
    "max",
    "min",
    "round",
    "IsNonOverlappingAndDenseIndicator",
    "cast_symbool_to_symint_guardless",
    "torch.sym_float",
    "torch._sym_sqrt",
    "torch.sym_max",
    "torch.sym_min",
    *(f"math.{name}" for name in ("floor", "ceil", "trunc", "sqrt", "cos")),
}


@given(SOUP | st.lists(st.sampled_from(GUARDS), min_size=1, max_size=3).map(" and ".join))
def test_what_is_accepted_is_harmless_python(text):
    """Any text either gives an error of ours, or is a Python expression of a few kinds of nodes with known calls."""
    try:
        parse_guard(text)
    except Pt2Error:
        return
    for node in ast.walk(ast.parse(text, mode="eval")):
        assert isinstance(node, ALLOWED)
        if isinstance(node, ast.Name):
            called = {name.partition(".")[0] for name in CALLS}
            assert node.id in {"L", "inf", "math", *called}
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name in CALLS or name.endswith((".size", ".stride", ".storage_offset", ".item"))


PARTS = st.sampled_from(["L['x'].size()[0]", "L['n']", "L['m']", "2", "3", "7"])


def _python(parts):
    arithmetic = st.sampled_from(["+", "-", "*", "//", "%"])
    compare = st.sampled_from(["<", "<=", "==", "!=", ">", ">="])
    join = st.sampled_from([" and ", " or "])
    condition = st.tuples(parts, compare, parts).map(" ".join)
    both = st.tuples(condition, join, condition).map("".join) | condition.map(lambda text: f"not {text}") | condition
    return st.one_of(
        st.tuples(parts, arithmetic, parts).map(" ".join),
        st.tuples(parts, arithmetic, parts).map(lambda part: f"({' '.join(part)})"),
        st.tuples(parts, both, parts).map(lambda part: f"({part[0]} if {part[1]} else {part[2]})"),
        st.tuples(st.sampled_from(["max", "min"]), parts, parts).map(lambda part: f"{part[0]}({part[1]}, {part[2]})"),
        parts.map(lambda part: f"-{part}"),
    )


@given(st.recursive(PARTS, _python, max_leaves=8), st.recursive(PARTS, _python, max_leaves=4), st.integers(1, 9))
def test_values_are_those_of_python(left, right, n):
    """Whole numbers, conditions and choices are computed as Python does."""
    text = f"{left} <= {right} or {left} == 1 if {right} > 2 else {left} != {right}"
    args = arguments(n, 4)
    try:
        python = as_python(text, args)
    except ZeroDivisionError:
        return
    try:
        guard = parse_guard(text)
    except Pt2Error as error:
        assert "division by zero" in str(error)  # a constant part, even where Python does not reach it
        return
    values = {source.text: value_of(source, args) for source in guard.sources}
    assert evaluate(guard.expr, values) is python


def test_brackets_nest_as_deep_as_python_compiles() -> None:
    """torch compiles what is read here, so what Python cannot compile is no condition."""
    assert parse_guard("(" * 150 + "True" + ")" * 150).expr
    message = r"^g: expected brackets nested at most 150 levels deep, got 151: torch"
    with pytest.raises(errors.LimitError, match=message):
        parse_guard("(" * 151 + "True" + ")" * 151, where="g")
