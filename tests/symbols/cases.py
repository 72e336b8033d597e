"""The cases of cases.json: texts of real files and of ours, with what sympy says about them; and strategies."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import strategies as st

from pt2kit.symbols import (
    FUNCTIONS,
    Boolean,
    Call,
    Infinity,
    Integer,
    Rational,
    Symbol,
    default_assumptions,
    float_from,
)

_DATA = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))

EXPRESSIONS = _DATA["expressions"]
GUARDS = [case["text"] for case in _DATA["guards"]]
REFUSED = [(case["text"], case["error"], case["says"]) for case in _DATA["refused"]]
REFUSED_GUARDS = [(case["text"], case["error"], case["says"]) for case in _DATA["refused_guards"]]

NAMES = st.sampled_from(["s0", "s1", "s77", "u0", "u12", "zf0", "zuf3", "i4", "batch"])
SYMBOLS = NAMES.map(lambda name: Symbol(name, default_assumptions(name)))
LEAVES = st.one_of(
    SYMBOLS,
    st.builds(Symbol, NAMES, st.sampled_from([(), (("integer", True),), (("positive", False), ("real", True))])),
    st.builds(Integer, st.integers() | st.integers(-(2**200), 2**200)),
    st.sampled_from([(1, 2), (-1, 2), (7, 3), (-22, 7)]).map(lambda pair: Rational(*pair)),
    st.floats(allow_nan=False, allow_infinity=False).map(float_from),
    st.builds(Boolean, st.booleans()),
    st.builds(Infinity, st.booleans(), st.booleans()),
)


def _calls(parts):
    """Calls of any function with as many arguments as it takes, whatever their kinds."""

    def call(name):
        function = FUNCTIONS[name]
        most = function.least + 2 if function.most is None else function.most
        if name == "Piecewise":
            pair = st.tuples(parts, parts).map(lambda pair: Call("ExprCondPair", pair))
            return st.lists(pair, min_size=1, max_size=3).map(lambda args: Call(name, tuple(args)))
        return st.lists(parts, min_size=function.least, max_size=most).map(lambda args: Call(name, tuple(args)))

    return st.sampled_from([name for name in FUNCTIONS if name != "ExprCondPair"]).flatmap(call)


TREES = st.recursive(LEAVES, _calls, max_leaves=12)


def _infix(parts):
    """Texts in the str dialect that combine other ones."""
    binary = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "<", ">=", "&", "|", "^"])
    return st.one_of(
        st.tuples(parts, binary, parts).map(lambda t: f"{t[0]} {t[1]} {t[2]}"),
        st.tuples(parts, binary, parts).map(lambda t: f"({t[0]}){t[1]}({t[2]})"),
        st.tuples(st.sampled_from(["-", "~", "+"]), parts).map("".join),
        st.tuples(
            st.sampled_from(["Max", "Min", "Mod", "FloorDiv", "Eq", "Where", "sqrt", "Abs", "nope"]), parts, parts
        ).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        st.tuples(parts, parts, parts).map(lambda t: f"Piecewise(({t[0]}, {t[1]}), ({t[2]}, True))"),
    )


ATOMS = st.sampled_from(["s0", "s1", "u0", "2", "3", "1", "0", "0.5", "1.25", "oo", "True", "s77", "10"])
INFIX = st.recursive(ATOMS, _infix, max_leaves=10)
PIECES = [
    *"+-*/%<~&|^(),[].='\n é",
    "**",
    "//",
    "==",
    "not ",
    " and ",
    " or ",
    " if ",
    " else ",
    "s0",
    "L['x'].size()[0]",
    "L['n']",
    "Max(",
    "max(",
    "abs(",
    "math.floor(",
    "Eq(",
    "Piecewise(",
    "Add(",
    "Integer(",
    "Symbol('s0', positive=True)",
    "Symbol('",
    "true",
    "oo",
    "1",
    "2.5",
]
SOUP = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=20)
