"""Expressions and ranges: what cannot be read, what contradicts itself, and what is code."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from tests import samples
from tests.checks.mutations import DYNAMIC, SYMBOL, Mutation, expression, graph, program, sizes_of, with_input_size
from tests.packages import edited

import pt2kit
from pt2kit.checks import check
from pt2kit.checks.expressions import is_code
from pt2kit.errors import Pt2Error

FLOATS = samples.sample("2.13.0", "sym_float")
PLACE = "models/model.json: $.graph_module.graph.tensor_values.linear_1.sizes[0]"

LOADERS: tuple[Callable[[bytes], Any], ...] = (pt2kit.load, pt2kit.load_module) if find_spec("torch") else ()
"""Functions that refuse the same files as `check`, where torch is installed."""


def said(mutation: Mutation) -> list[tuple[str, str]]:
    """Rule and message of what is said of expressions."""
    return [(found.rule, found.message) for found in check(mutation.data) if found.rule[0] == "E" or found.rule == "X5"]


@pytest.mark.parametrize(
    ("text", "hint", "rule", "message"),
    [
        ("s77 +* 2", None, "E1", "expected a value at character 5, got '* 2' in 's77 +* 2'"),
        ("", None, "E1", "expected an expression, got an empty text"),
        ("s77*0.5", None, "E1", "expected an expression that yields an int, got one that yields a float"),
        ("s77 > 2", None, "E1", "expected an expression that yields an int, got one that yields a bool"),
        ("9**9**9", None, "E1", "expected numbers of at most 4096 bits"),
        ("os.getpid()", None, "X5", "torch evaluates the expression 'os.getpid()'"),
        ("Symbol('s1', positive=True, integer=True)", None, "E2", "expected a range for the symbol 's1'"),
        (SYMBOL, 65, "E4", "from 2 to 64, got 65"),
        (f"Mul(Integer(2), {SYMBOL})", 129, "E4", "from 4 to 128, got 129"),
    ],
)
def test_misfits(text: str, hint: int | None, rule: str, message: str) -> None:
    """Each mismatch is reported at its place."""
    found = [p for p in check(with_input_size(text, hint).data) if p.kind != "note"]
    assert [(problem.rule, problem.loc) for problem in found] == [(rule, PLACE)]
    assert message in found[0].message


@pytest.mark.parametrize(
    ("text", "hint", "message"),
    [
        ("10 // (s77 - 5)", None, "where s77 is 5, got none: division by zero"),
        ("Where(s77 < 3, 1 // (s77 - 5), s77)", None, "where s77 is 5, got none: division by zero"),
        ("TruncToInt(FloatTrueDiv(1.0, ToFloat(s77 - 5)))", None, "got none: division by zero"),
        ("FloorToInt(OpaqueUnaryFn_asin(s77))", None, "got none: the function has no value there"),
        ("FloorToInt(OpaqueUnaryFn_exp(s77*1000))", None, "got none: the number is too large for a float"),
        ("TruncToInt(FloatPow(ToFloat(s77 - 9), 0.5))", None, "got none: a power of a negative number"),
        ("Mod(-s77, 3)", None, "expected Mod of a number from 0 by a number from 1, got -5 and 3"),
        ("LShift(1, s77 - 7)", None, "got none: expected a shift of at least 0, got -2"),
        ("Piecewise((s77, s77 < 3))", None, "got none: expected one of the conditions of Piecewise"),
        ("s77 - 7", None, "expected 's77 - 7' of 0 or more in the example, where s77 is 5, got -2"),
        ("s77 - 7", 3, "expected 's77 - 7' of 0 or more in the example, where s77 is 5, got -2"),
        ("PythonMod(s77, -3)", None, "where s77 is 5, got -1"),
    ],
)
def test_values_in_the_example(text: str, hint: int | None, message: str) -> None:
    """An expression that has no value in the example, or a negative size there, is refused by all three."""
    data = with_input_size(text, hint).data
    [found] = [problem for problem in check(data) if problem.rule == "E4"]
    assert message in found.message
    for load in LOADERS:
        with pytest.raises(Pt2Error) as raised:
            load(data)
        assert (raised.value.rule, message in str(raised.value)) == ("E4", True)


@pytest.mark.parametrize(
    ("text", "hint", "message"),
    [
        ("s78 + 1", None, "expected a range for the symbol 's78'"),
        ("s78 + 1", 6, "expected a range for the symbol 's78'"),
        ("s78", None, "expected a range for the symbol 's78'"),
        ("u0", None, "expected a range for the symbol 'u0'"),
        ("Max(u5 + 1, 2)", None, "expected a value of the program that is the unbacked symbol 'u5' itself, got none"),
    ],
)
def test_symbols_without_a_value(text: str, hint: int | None, message: str) -> None:
    """A symbol without a range and an example, or an unbacked one that no value is, is refused by all three."""
    data = edited(with_input_size(text, hint).data, _with_range_of_u5)
    assert message in next(problem.message for problem in check(data) if problem.rule == "E2")
    for load in LOADERS:
        with pytest.raises(Pt2Error) as raised:
            load(data)
        assert (raised.value.rule, message in str(raised.value)) == ("E2", True)


def _with_range_of_u5(tree: Any) -> None:
    tree["range_constraints"]["u5"] = {"min_val": 0, "max_val": 9}


@pytest.mark.parametrize(("text", "hint"), [("s77 + 1", None), ("10 // (s77 - 5)", 3), ("s78", 6), ("4*u5", None)])
def test_values_that_torch_does_not_compute(text: str, hint: int | None) -> None:
    """Hints and values of their own are what torch needs."""
    data = edited(with_input_size(text, hint).data, _with_range_of_u5)
    assert not {"E2", "E4"} & {problem.rule for problem in check(data) if problem.severity == "error"}
    for load in LOADERS:
        assert load(data)


@pytest.mark.parametrize(("text", "hint"), [(SYMBOL, 64), ("2*s77", None), (f"Mul(Integer(2), {SYMBOL})", 128)])
def test_what_is_fine(text: str, hint: int | None) -> None:
    """Either dialect is read, and a hint inside the range fits."""
    assert said(with_input_size(text, hint)) == []


def test_each_text_is_told_once() -> None:
    """An error in an expression of many places is reported at the first."""

    def change(tree: Any) -> None:
        for name in ("linear", "relu", "linear_1"):
            sizes_of(tree, name, expression("s77 +* 2"), 4)

    assert [rule for rule, _ in said(program(DYNAMIC, change))] == ["E1"]


def test_each_broken_text_is_told() -> None:
    """An expression that cannot be read does not end the search for others."""

    def change(tree: Any) -> None:
        sizes_of(tree, "linear", expression("s77 +* 2"), 4)
        sizes_of(tree, "relu", expression("s77 -* 2"), 4)

    assert [rule for rule, _ in said(program(DYNAMIC, change))] == ["E1", "E1"]


def test_keys_of_ranges() -> None:
    """A key of a range that is no expression is reported at its place, a key that is code as code."""
    found = said(program(DYNAMIC, lambda tree: tree["range_constraints"].update({"a b": {"min_val": 1, "max_val": 2}})))
    assert [rule for rule, _ in found] == ["E1"]
    found = said(program(DYNAMIC, lambda tree: tree["range_constraints"].update({"f()": {"min_val": 1, "max_val": 2}})))
    assert [rule for rule, _ in found] == ["X5"]


def test_floats_and_truth_values() -> None:
    """Values of the other tables are held against their kinds."""

    def change(tree: Any) -> None:
        name = next(iter(graph(tree)["sym_float_values"]))
        graph(tree)["sym_float_values"][name] = {"as_expr": {"expr_str": "s77 > 2", "hint": None}}

    [(rule, message)] = said(program(FLOATS, change))
    assert rule == "E1"
    assert "expected an expression that yields a number, got one that yields a bool" in message


def test_numbers_of_many_digits() -> None:
    """A range whose ends have thousands of digits has a short message."""

    def change(tree: Any) -> None:
        tree["range_constraints"]["s77"] = {"min_val": 10**2000, "max_val": 1}

    [(rule, message)] = said(program(DYNAMIC, change))
    assert rule == "E3"
    assert message == "expected a least value up to the greatest, got a number of many digits and 1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("s0 +* 2", False), ("", False), ("Add(s0", False), ("Symbol('s0', positive=Tru", False), ("2.5.", False)),
        *(("__import__('os')", True), ("factorial(10**8)", True), ("[s0][0]", True), ("s0.args", True)),
        *(("lambda: 1", True), ("(1).__class__", True), ("f ()", True), ("{1}", True)),
    ],
)
def test_is_code(text: str, expected: bool) -> None:
    """Calls of what is no function of expressions, attributes and items are code; misspelt expressions are not."""
    assert is_code(text) == expected


def test_the_order_of_assumptions_has_no_meaning() -> None:
    """Processes write the assumptions of a symbol in the order in which sympy first got them."""

    def mixed(tree: dict[str, Any]) -> None:
        sizes = tree["graph_module"]["graph"]["tensor_values"]["linear_1"]["sizes"]
        written = sizes[0]["as_expr"]["expr_str"]
        sizes[0]["as_expr"]["expr_str"] = written.replace("positive=True, integer=True", "integer=True, positive=True")
        assert sizes[0]["as_expr"]["expr_str"] != written

    assert [one for one in check(edited(samples.sample("2.13.0", "dynamic_batch"), mixed)) if one.kind == "error"] == []
