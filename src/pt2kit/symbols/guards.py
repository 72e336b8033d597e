"""Guards of a program: entries of `guards_code` (schema 8.14 and later) as expressions over the inputs they name.

    (L['x'].size()[0] // 2) + L['y'].size()[1] >= 2

An entry is a Python condition that torch pastes into a function and runs. Here it is read by a grammar of its own,
smaller than Python's: every text it accepts is a Python expression with that meaning, made of numbers, operators, the
functions in `_CALLS`, references to inputs, and nothing else. Nothing is run.

A reference is a path into the arguments (`L['d']['k']`, `L['args'][0]`, `L['nt'].field`), alone or followed by
`.size()[i]`, `.stride()[i]`, `.storage_offset()` or `.item()`. In the expression it is a symbol named by its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, cast

from pt2kit.errors import GraphError, LimitError
from pt2kit.symbols.evaluation import check_constants
from pt2kit.symbols.expr import (
    DEFAULT_LIMITS,
    ONE,
    TRUE,
    Boolean,
    Call,
    Expr,
    Infinity,
    Integer,
    Leaf,
    Limits,
    Symbol,
    fail,
    free_symbols,
    quote,
)
from pt2kit.symbols.functions import OPAQUE, TARGETS, check_arity, make_call
from pt2kit.symbols.growth import check_growth
from pt2kit.symbols.infix import Build, Grammar, parse_infix
from pt2kit.symbols.plain import ARITHMETIC, NUMBER, SIGNS, Binary, call_operator, row_operator
from pt2kit.symbols.srepr import whole_number
from pt2kit.symbols.value_kinds import kind

Property = Literal["value", "size", "stride", "storage_offset", "item"]


Path: TypeAlias = "tuple[Any, ...]"
"""The steps from the arguments of a call to an input: a key or index for `[key]`, `(name,)` for `.name`."""


def entry_path(path: Path) -> Path:
    """Return the path of an entry of `*args` as the input that it is: ("rows", 0) -> ("rows_0",); another unchanged."""
    first, *rest = path
    return (f"{first}_{rest[0]}", *rest[1:]) if rest and isinstance(rest[0], int) else path


@dataclass(frozen=True, slots=True)
class Source:
    """A number or truth value that a guard takes from an input.

    Args:
        text: the reference as written, which is also the name of its symbol.
        path: leads to the input.
        what: the input itself ("value"), or what is asked of the tensor there.
        index: the dimension of a size or stride, else None.
    """

    text: str
    path: Path
    what: Property
    index: int | None

    def find(self, paths: Sequence[Path], where: str) -> int:
        """Return the input that is read: by its number in the list of all, or by its path.

        Source: `_force_ep_signature_match` and `_force_gm_signature_match` in torch/export/_unlift.py, 2.13.

        Args:
            paths: those of all inputs.
            where: the place of the guard, for messages.

        Raises:
            GraphError: there is no such input.
        """
        first, *rest = self.path
        if first == "flat_args" and len(rest) == 1 and isinstance(rest[0], int) and 0 <= rest[0] < len(paths):
            return rest[0]
        for path in (self.path, entry_path(self.path)):
            if path in paths:
                return paths.index(path)
        raise GraphError(f"{where}: expected references to inputs, got {self.text[:80]!a}")

    def moved(self, path: Path) -> str:
        """Return the text of this reference for an input at another path."""
        index = "" if self.index is None else f"[{self.index}]"
        return f"L[{path[0]!r}]{path_text(path)[len(path[0]) :]}" + (
            "" if self.what == "value" else f".{self.what}(){index}"
        )


@dataclass(frozen=True, slots=True)
class Guard:
    """One condition on the inputs: its text, the expression that must be true, and what it reads from the inputs.

    `open_powers` counts powers in it whose exponent is a size; computing one takes as long as the size says.
    """

    text: str
    expr: Expr
    sources: tuple[Source, ...]
    open_powers: int = 0


def path_text(path: Path) -> str:
    """Return a path as messages write it: "d['k'].x"."""
    steps = (f".{step[0]}" if isinstance(step, tuple) and len(step) == 1 else f"[{step!r}]" for step in path[1:])
    return f"{path[0]}{''.join(steps)}"


_KEY = r"\[(?:'[^'\"\\\x00-\x1f\x7f]*'|\"[^'\"\\\x00-\x1f\x7f]*\"|-?\d+)\]"
_FIELD = r"\.[A-Za-z]\w*(?![\w(])"
_PROPERTY = r"\.(?:(?:size|stride)\(\)\[\d+\]|storage_offset\(\)|item\(\))"
_SOURCE = rf"L(?=\[['\"])(?:{_KEY}|{_FIELD})+(?:{_PROPERTY})?"
_OPERATOR = r"(?:and|or|not)\b|\*\*|//|<=|>=|==|!=|[-+*/%<>&|^(),]"
_NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_TOKEN = rf"{NUMBER}|(?P<op>{_OPERATOR})|(?P<source>{_SOURCE})|(?P<name>{_NAME})"
_STEP = rf"({_KEY})|({_FIELD})|\.(\w+)\(\)(?:\[(\d+)\])?"


MAX_NESTING: Final = 150
"""Brackets inside brackets. Python compiles 200, some of which torch needs for itself."""


def parse_guard(text: str, *, where: str = "", limits: Limits = DEFAULT_LIMITS) -> Guard:
    """Parse one entry of `guards_code`.

    Args:
        text: the entry.
        where: the place to name in errors.
        limits: what it may cost.

    Returns:
        The condition. `evaluate(guard.expr, values)` computes it from values named by `source.text`.

    Raises:
        ExpressionError: not a condition of this grammar.
        LimitError: longer, larger or deeper than `limits` allow, or of numbers that may be far larger than the inputs.

    Source: torch/export/exported_program.py and torch/utils/_sympy/printers.py (PythonPrinter), 2.10 to 2.13.
    """
    if not text or text.isspace():
        fail(where, "expected a condition, got an empty text")
    if (depth := _nesting(text)) > MAX_NESTING:
        message = f"expected brackets nested at most {MAX_NESTING} levels deep, got {depth}"
        raise LimitError(f"{where}: {message}: torch compiles guards, and Python takes 200".removeprefix(": "))
    expr = parse_infix(text, _GRAMMAR, where, limits)
    if kind(expr, where=where) not in ("bool", "any"):
        fail(where, f"expected a condition, got a number in {quote(text)}")
    check_constants(expr, where=where)
    open_powers = check_growth(expr, where=where)
    sources = tuple(_source(symbol.name, where, limits) for symbol in free_symbols(expr))
    return Guard(text, expr, sources, open_powers)


def _nesting(text: str) -> int:
    """Return the nesting depth of brackets; those in quoted keys count too, which errs on the safe side."""
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _source(text: str, where: str, limits: Limits) -> Source:
    path: list[str | int | tuple[str]] = []
    what: Property = "value"
    index = None
    for step in re.finditer(_STEP, text[1:], re.ASCII):
        key, field, method, number = step.groups()
        if key is not None:
            inside = key[1:-1]
            path.append(inside[1:-1] if inside[0] in "'\"" else whole_number(inside, where, limits))
        elif field is not None:
            path.append((field[1:],))
        else:
            what = cast("Property", method)  # the pattern of a source has no other
            index = None if number is None else whole_number(number, where, limits)
    return Source(text, tuple(path), what, index)


def _name(written: str, where: str) -> Expr:
    leaf = _NAMES.get(written)
    if leaf is not None:
        return leaf
    if not written.startswith("L["):
        fail(where, f"expected a number or a reference to an input like L['x'].size()[0], got {quote(written)}")
    return Symbol(written, (("integer", True),) if written.endswith("]") and "()[" in written else ())


def _call(name: str, args: Sequence[Expr], where: str) -> Expr:
    if name == "cast_symbool_to_symint_guardless" and len(args) == 1:
        pairs = (Call("ExprCondPair", (ONE, args[0])), Call("ExprCondPair", (Integer(0), TRUE)))
        return Call("Piecewise", pairs)
    if name == "round":
        return make_call("RoundToInt" if len(args) == 1 else "RoundDecimal", args, where)
    function = _CALLS.get(name)
    if function is None:
        fail(where, f"expected a function that torch writes into guards, got {quote(name)}")
    if name in TARGETS:
        check_arity(name, TARGETS[name], len(args), where)
    return make_call(function, args, where)


_NAMES: Mapping[str, Leaf] = MappingProxyType(
    {"True": TRUE, "False": Boolean(False), "math.inf": Infinity(), "inf": Infinity()}
)
_CALLS: Mapping[str, str] = MappingProxyType(
    {
        "abs": "Abs",
        "max": "Max",
        "min": "Min",
        **{f"math.{name}": TARGETS[f"math.{name}"].function for name in ("floor", "ceil", "trunc")},
        **{
            f"torch.{name}": TARGETS[f"torch.{name}"].function
            for name in ("sym_float", "_sym_sqrt", "sym_max", "sym_min")
        },
        "IsNonOverlappingAndDenseIndicator": "IsNonOverlappingAndDenseIndicator",
        **{f"math.{name}": f"OpaqueUnaryFn_{name}" for name in OPAQUE},
    }
)
_BINARY: Binary = MappingProxyType(
    {
        **ARITHMETIC,
        "or": (2, "left", row_operator("Or")),
        "and": (4, "left", row_operator("And")),
        "==": (10, "none", call_operator("Equality")),
        "!=": (10, "none", call_operator("Unequality")),
        "|": (20, "left", call_operator("BitwiseFn_bitwise_or")),
        "^": (22, "left", call_operator("BitwiseFn_bitwise_xor")),
        "&": (24, "left", call_operator("BitwiseFn_bitwise_and")),
        "/": (50, "left", call_operator("TrueDiv")),
        "%": (50, "left", call_operator("PythonMod")),
    }
)
_UNARY: Mapping[str, tuple[int, Build]] = MappingProxyType({**SIGNS, "not": (6, row_operator("Not"))})
_GRAMMAR = Grammar(_TOKEN, _BINARY, _UNARY, _name, _call, conditional=True)
