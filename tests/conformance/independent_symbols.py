"""Expressions by docs/format/symbols.md: both dialects -> trees (tuples), and their values. Standard library only.

A tree is an int, Fraction, float, bool, ("Symbol", name, assumptions) or (function, argument, …).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

from independent_zip import Refused, need

LETTERS = r"[A-Za-z_][A-Za-z0-9_]*"
SREPR = re.compile(
    rf"""\s*(?:Symbol\(\s*'({LETTERS})'((?:\s*,\s*\w+\s*=\s*(?:True|False))*)\s*\)
    |Integer\(\s*(-?[0-9]+)\s*\)|Rational\(\s*(-?[0-9]+)\s*,\s*([0-9]+)\s*\)
    |Float\(\s*'(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)'\s*,\s*precision=[0-9]+\s*\)
    |(true|false|-?oo|-?int_oo)\b|({LETTERS})\()\s*""",
    re.VERBOSE,
)
CONSTANTS = {"true": True, "false": False, "oo": math.inf, "-oo": -math.inf, "int_oo": math.inf, "-int_oo": -math.inf}
MANY = {"Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Piecewise"}
ARITY = {
    **dict.fromkeys(("Abs", "Identity", "floor", "ceiling", "FloorToInt", "CeilToInt", "TruncToInt"), 1),
    **dict.fromkeys(("RoundToInt", "Round", "ToFloat", "TruncToFloat", "Not", "exp", "OpaqueUnaryFn_sqrt"), 1),
    **dict.fromkeys(("Pow", "FloorDiv", "CleanDiv", "CeilDiv", "Mod", "PythonMod", "LShift", "RShift"), 2),
    **dict.fromkeys(("PowByNatural", "IntTrueDiv", "FloatTrueDiv", "TrueDiv", "FloatPow", "Equality"), 2),
    **dict.fromkeys(("Unequality", "GreaterThan", "LessThan", "StrictGreaterThan", "StrictLessThan"), 2),
    **dict.fromkeys(("ExprCondPair", "RoundDecimal"), 2),
    **dict.fromkeys(("ModularIndexing", "Where", "ITE"), 3),
}
ALIASES = {
    "Eq": "Equality",
    "Ne": "Unequality",
    "Ge": "GreaterThan",
    "Le": "LessThan",
    "Gt": "StrictGreaterThan",
    "Lt": "StrictLessThan",
}
RELATIONS = {"<": "StrictLessThan", "<=": "LessThan", ">": "StrictGreaterThan", ">=": "GreaterThan"}


def whole(digits: str) -> int:
    """An integer within the limit."""
    need(len(digits) <= 1234, "E1", "a long integer")
    return int(digits)


def rational(p: int, q: int) -> Fraction:
    """A fraction in lowest terms that is not whole."""
    need(q > 1 and math.gcd(p, q) == 1, "E1", f"Rational({p}, {q})")
    return Fraction(p, q)


def call(name: str, args: list[Any]) -> Any:
    """A call of a function of the table."""
    name = ALIASES.get(name, name)
    pairs = [isinstance(arg, tuple) and arg[0] == "ExprCondPair" for arg in args]
    need(all(pairs) if name == "Piecewise" else not any(pairs), "E1", f"pairs in {name}")
    need(len(args) == ARITY[name] if name in ARITY else name in MANY and args, "E1", f"function {name[:40]!r}")
    return (name, *args)


def parse_srepr(text: str) -> Any:
    """The tree of a text of the srepr dialect."""
    need(len(text) <= 131_072, "E1", "a long expression")
    at = 0
    opened: list[tuple[str, list[Any]]] = []
    args: list[Any] = []
    while True:
        token = SREPR.match(text, at)
        need(token, "E1", f"expression {text[:60]!r}")
        assert token is not None
        name, assumptions, integer, p, q, decimal, constant, function = token.groups()
        at = token.end()
        if function:
            need(len(opened) < 200, "E1", "a deep expression")
            opened.append((function, args))
            args = []
            if not text.startswith(")", at):
                continue
        elif name:
            args.append(("Symbol", name, tuple(re.findall(r"(\w+)\s*=\s*(True|False)", assumptions))))
        elif constant:
            args.append(CONSTANTS[constant])
        else:
            args.append(whole(integer) if integer else float(decimal) if decimal else rational(whole(p), whole(q)))
        while opened and text.startswith(")", at):
            function, outer = opened.pop()
            outer.append(call(function, args))
            args = outer
            at = re.compile(r"\s*").match(text, at + 1).end()  # type: ignore[union-attr]
        if not opened:
            break
        need(text.startswith(",", at), "E1", f"expression {text[:60]!r}")
        at += 1
    need(at == len(text), "E1", f"expression {text[:60]!r}")
    need(not (isinstance(args[0], tuple) and args[0][0] == "ExprCondPair"), "E1", "a pair alone")
    return args[0]


class Plain:
    """A text of the str dialect, by recursive descent."""

    def __init__(self, text: str) -> None:
        need(len(text) <= 10_000, "E1", "a long expression")
        pattern = rf" *([0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+|{LETTERS}|\*\*|//|<=|>=|[-+*/%<>~&|^(),])"
        self.tokens: list[str] = re.findall(pattern, text)
        need("".join(self.tokens) == text.replace(" ", ""), "E1", f"expression {text[:60]!r}")
        self.at = self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        if self.peek() in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def chain(self, level: int) -> Any:
        """Operators that group from the left, loosest first."""
        if level == len(LEVELS):
            return self.unary()
        left = self.chain(level + 1)
        while operator := self.take(*LEVELS[level]):
            right = self.chain(level + 1)
            left = combine(operator, left, right)
            if operator in RELATIONS:
                break
        return left

    def unary(self) -> Any:
        self.depth += 1
        need(self.depth < 100, "E1", "a deep expression")
        if operator := self.take("-", "+", "~"):
            inner = self.unary()
            number = isinstance(inner, int | float) and not isinstance(inner, bool)
            value = (
                (-inner if number else ("Mul", -1, inner))
                if operator == "-"
                else ("Not", inner)
                if operator == "~"
                else inner
            )
        else:
            value = self.primary()
            if self.take("**"):
                value = ("Pow", value, self.unary())
        self.depth -= 1
        return value

    def primary(self) -> Any:
        token = self.peek()
        self.at += 1
        if token == "(":
            inner = [self.chain(0)]
            while self.take(","):
                inner.append(self.chain(0))
            need(self.take(")") and len(inner) <= 2, "E1", "brackets")
            return inner[0] if len(inner) == 1 else ("ExprCondPair", *inner)
        if re.fullmatch(r"[0-9].*", token):
            return float(token) if "." in token else whole(token)
        need(re.fullmatch(LETTERS, token) and token not in ("nan", "zoo", "I", "E", "pi"), "E1", f"token {token!r}")
        if not self.take("("):
            constants = {"True": True, "False": False, **CONSTANTS}
            return constants.get(token, ("Symbol", token, ()))
        args: list[Any] = []
        while not self.take(")"):
            args.append(self.chain(0))
            need(self.take(",") or self.peek() == ")", "E1", "arguments")
        return ("Pow", args[0], Fraction(1, 2)) if token == "sqrt" and len(args) == 1 else call(token, args)


LEVELS = (("|",), ("^",), ("&",), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "//", "%"))


def combine(operator: str, a: Any, b: Any) -> Any:
    """The tree of a two-sided operator."""
    if operator == "-":
        return ("Add", a, ("Mul", -1, b))
    if operator == "/":
        return ("Mul", a, ("Pow", b, -1))
    names = {"|": "Or", "^": "Xor", "&": "And", "+": "Add", "*": "Mul", "//": "FloorDiv", "%": "Mod", **RELATIONS}
    return (names[operator], a, b)


def parse(text: str) -> Any:
    """The tree of a text of either dialect."""
    need(text.strip(), "E1", "an empty expression")
    if any(mark in text for mark in ("Symbol('", "Integer(", "Float('", "Rational(", "ExprCondPair(")):
        return parse_srepr(text)
    reader = Plain(text)
    tree = reader.chain(0)
    need(reader.at == len(reader.tokens), "E1", f"expression {text[:60]!r}")
    return tree


def symbols(tree: Any) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """The symbols of a tree: names and assumptions."""
    if not isinstance(tree, tuple):
        return set()
    return {(tree[1], tree[2])} if tree[0] == "Symbol" else set().union(*map(symbols, tree[1:]))


def kind(tree: Any) -> str:
    """int, fraction, float or bool, as far as a size needs it."""
    if isinstance(tree, bool):
        return "bool"
    if isinstance(tree, int | Fraction | float):
        return "int" if isinstance(tree, int) else "fraction" if isinstance(tree, Fraction) else "float"
    name, *args = tree
    if name == "Symbol":
        given = dict(args[1]) or {"integer": str(not re.fullmatch(r"z?u?f[0-9]+", args[0]))}
        return "int" if given.get("integer") == "True" else "float"
    if name in ("GreaterThan", "LessThan", "StrictGreaterThan", "StrictLessThan", "And", "Or", "Xor", "Not", "ITE"):
        return "bool"
    if name in ("Equality", "Unequality"):
        return "bool"
    if name in ("ToFloat", "TruncToFloat", "IntTrueDiv", "FloatTrueDiv", "TrueDiv", "FloatPow", "exp"):
        return "float"
    if name == "OpaqueUnaryFn_sqrt":
        return "float"
    kinds = [kind(arg) for arg in args]
    if name in ("Piecewise", "Where", "ExprCondPair"):
        return kinds[1] if name == "Where" else kinds[0]
    need("bool" not in kinds, "E1", f"a truth value in {name}")
    if name in ("Add", "Mul", "Max", "Min", "Abs", "Identity", "Mod", "PythonMod"):
        return "float" if "float" in kinds else "fraction" if "fraction" in kinds else "int"
    if name == "Pow":
        natural = not isinstance(args[1], int) or args[1] >= 0
        return "float" if kinds[0] == "float" or kinds[1] != "int" else kinds[0] if natural else "fraction"
    return kinds[0] if name == "RoundDecimal" else "int"


DIVISORS = {"FloorDiv", "CleanDiv", "CeilDiv", "Mod", "PythonMod", "IntTrueDiv", "FloatTrueDiv", "TrueDiv"}


def check_constants(tree: Any) -> None:
    """Parts without symbols have a value, and no divisor is 0 (E1)."""
    if not isinstance(tree, tuple) or tree[0] == "Symbol":
        return
    for arg in tree[1:]:
        check_constants(arg)
    need(not (tree[0] in DIVISORS and tree[2] == 0), "E1", "a division by zero")
    if not symbols(tree) and tree[0] != "ExprCondPair":
        need(evaluate(tree, 0) is not None, "E1", f"no value: {str(tree)[:60]}")


def count_terms(tree: Any) -> int:
    """Terms of a tree multiplied out: at most 512 (E1)."""
    if not isinstance(tree, tuple) or tree[0] == "Symbol":
        return 1
    name, *args = tree
    terms = [count_terms(arg) for arg in args]
    count = sum(terms) if name == "Add" else math.prod(terms) if name == "Mul" else 1
    if name in ("Pow", "PowByNatural", "FloatPow") and isinstance(args[1], int):
        count = max(abs(args[1]), 1) if terms[0] == 1 else terms[0] ** min(abs(args[1]), 10)
    need(count <= 512, "E1", "many terms")
    return count


def count_compared(tree: Any, found: dict[Any, int]) -> int:
    """Calls of a tree that a maximum around it would compare; `found` gets the maxima: at most 16 calls each (E1)."""
    if not isinstance(tree, tuple) or tree[0] == "Symbol":
        return 0
    counts = [count_compared(arg, found) for arg in tree[1:]]
    if tree[0] not in ("Max", "Min"):
        return 1
    need(sum(counts) <= 16, "E1", "a maximum of many calls")
    if sum(counts) > 1:
        found[tree] = sum(counts)
    return sum(counts)


def evaluate(tree: Any, value: int | dict[str, Any]) -> Any:
    """Evaluate a tree for the values of its symbols, or one value for all; None if it has no value."""
    try:
        found = _value(tree, value)
        return float(found) if isinstance(found, Fraction) and found.denominator > 1 else found
    except (ZeroDivisionError, ValueError, OverflowError, Refused):
        return None


def _value(tree: Any, value: int | dict[str, Any]) -> Any:
    if not isinstance(tree, tuple):
        return tree
    name, *args = tree
    if name == "Symbol":
        return value[args[0]] if isinstance(value, dict) else value
    if name == "Piecewise":
        return next(_value(arg[1], value) for arg in args if _value(arg[2], value))
    if name in ("Where", "ITE"):
        return _value(args[1 if _value(args[0], value) else 2], value)
    values = [_value(arg, value) for arg in args]
    a, b = values[0], values[-1]
    if name == "Add":
        return sum(values)
    if name == "Mul":
        return math.prod(values)
    if name in ("Pow", "PowByNatural", "FloatPow"):
        need(not isinstance(b, int) or abs(b) * (abs(int(a)).bit_length() - 1) <= 4096, "E1", "a large power")
        power = Fraction(a) ** b if isinstance(a, int) and isinstance(b, int) else a**b
        return int(power) if isinstance(power, Fraction) and power.denominator == 1 else power
    table: dict[str, Any] = {
        "Max": lambda: max(values),
        "Min": lambda: min(values),
        "Abs": lambda: abs(a),
        "Identity": lambda: a,
        "FloorDiv": lambda: math.floor(Fraction(a) / b),
        "CleanDiv": lambda: math.floor(Fraction(a) / b),
        "CeilDiv": lambda: math.ceil(Fraction(a) / b),
        "Mod": lambda: a % b,
        "PythonMod": lambda: a % b,
        "ModularIndexing": lambda: (a // values[1]) % b,
        "LShift": lambda: a << b,
        "RShift": lambda: a >> b,
        "floor": lambda: math.floor(a),
        "FloorToInt": lambda: math.floor(a),
        "ceiling": lambda: math.ceil(a),
        "CeilToInt": lambda: math.ceil(a),
        "TruncToInt": lambda: math.trunc(a),
        "RoundToInt": lambda: round(a),
        "Round": lambda: round(a),
        "RoundDecimal": lambda: round(a, b),
        "ToFloat": lambda: float(a),
        "TruncToFloat": lambda: float(math.trunc(a)),
        "IntTrueDiv": lambda: a / b,
        "FloatTrueDiv": lambda: a / b,
        "TrueDiv": lambda: a / b,
        "exp": lambda: math.exp(a),
        "OpaqueUnaryFn_sqrt": lambda: math.sqrt(a),
        "Equality": lambda: a == b,
        "Unequality": lambda: a != b,
        "GreaterThan": lambda: a >= b,
        "LessThan": lambda: a <= b,
        "StrictGreaterThan": lambda: a > b,
        "StrictLessThan": lambda: a < b,
        "And": lambda: all(values),
        "Or": lambda: any(values),
        "Not": lambda: not a,
        "Xor": lambda: sum(map(bool, values)) % 2 == 1,
    }
    return table[name]()
