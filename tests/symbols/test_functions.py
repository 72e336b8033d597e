"""The table of functions, and the public API."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.symbols.cases import EXPRESSIONS

from pt2kit.errors import ExpressionError
from pt2kit.symbols import FUNCTIONS, Integer
from pt2kit.symbols.evaluation import _LAZY
from pt2kit.symbols.functions import ALIASES, make_call


def test_every_function_is_computed():
    """A function has what computes it from numbers, or a rule for arguments that it may not need."""
    assert {name for name, function in FUNCTIONS.items() if function.compute is None} == set(_LAZY)
    assert set(ALIASES.values()) <= set(FUNCTIONS)


def test_every_function_is_in_a_case():
    """Each function of the table stands in some case with values, but for those that only hand-written text holds."""
    text = " ".join(case["text"] + case.get("srepr", "") for case in EXPRESSIONS)
    missing = {name for name in FUNCTIONS if f"{name}(" not in text}
    rest = {"Xor", "ITE", "acosh", "atanh"}
    unary = {name for name in missing if FUNCTIONS[name].gives == "float" and FUNCTIONS[name].most == 1}
    assert missing <= rest | unary


def test_make_call():
    """A call is checked for its name and the number of its arguments."""
    assert make_call("Eq", [Integer(1), Integer(2)]).function == "Equality"
    with pytest.raises(ExpressionError, match=r"^x: expected a function that torch writes, got '__import__'$"):
        make_call("__import__", [], "x")
    with pytest.raises(ExpressionError, match=r"^x: expected 3 arguments of Where, got 0$"):
        make_call("Where", [], "x")


@pytest.mark.bare
def test_importing_it_loads_little():
    """Neither torch nor sympy nor numpy, and none of the subpackage's own files before they are needed."""
    script = "import sys, pt2kit.symbols; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "sympy", "numpy", "fractions", "decimal", "pt2kit.symbols.expr"} & set(modules)
