"""Normal form of symbolic expressions: integers as polynomials, reduced Max and Min, and symbols under new names.

`docs/digest.md` is normative. torch evaluates expressions with sympy when it loads a program, so `Min(32, 32*s53)`
becomes 32: arguments of Max and Min that cannot win are left out. Two expressions that sympy treats as one have one
normal form here; nothing depends on sympy.

Names of symbols are arbitrary: the symbol `s0` of one export is `s77` in the next. Symbols that are in the sizes of
inputs, or are inputs themselves, become `_s0`, `_s1`, … in the order in which they occur there, those that are a size
by themselves first. The letters that a name begins with denote the kind of symbol, and are kept. Other symbols, such as
those of data-dependent numbers, keep their names.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeGuard

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.errors import Pt2Error, attempt
from pt2kit.graph.traversal import Meta, tables, with_numbers
from pt2kit.symbols.dialects import parse
from pt2kit.symbols.expr import Call, Integer, Leaf, Symbol, fold, free_symbols
from pt2kit.symbols.functions import FUNCTIONS
from pt2kit.symbols.polynomials import End, Monomial, Size, product, size_of, symbol, terms_of, total
from pt2kit.symbols.srepr import to_srepr
from pt2kit.symbols.value_kinds import symbol_kind

UNORDERED: Final = frozenset(("Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equality", "Unequality"))
"""Functions whose arguments have no order of their own: they are written sorted by their texts."""
MAX_TERMS: Final = 64
"""Terms of a product that is multiplied out."""
MAX_FACTORS: Final = 32
"""Factors of each of its terms."""
MAX_BITS: Final = 1024
"""Bits of its coefficients."""
MAX_TEXT: Final = 256
"""Characters of an atom that multiplying out may repeat."""
MAX_COMPARED: Final = 8
"""Arguments of Max or Min that are compared with one another."""
MAX_REST: Final = 16
"""Terms that a term becomes when each atom that is at least 1 is written as 1 and a rest."""

_INTEGERS: Final = frozenset(name for name, function in FUNCTIONS.items() if function.gives == "int")
"""Functions whose value is an integer, whatever their arguments are."""
_OF_INTEGERS: Final = frozenset(("Mul", "Mod", "PythonMod"))
"""Functions whose value is an integer if their arguments are, besides those that are always evaluated."""
_SYMBOL: Final = re.compile(r"Symbol\('([^']*)'")
_UNDEFINED: Final = re.compile(r"\bFunction\('(OpaqueUnaryFn_\w+)'\)")
"""How sympy prints torch's opaque functions after torch loaded them."""

_LETTERS: Final = re.compile(r"[A-Za-z_]*")
"""Prefix of a name, without the normal form's own `_`."""
_WORD: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[A-Za-z_]\w*")


class Normalizer:
    """Brings expressions into normal form, each text once. An integer is a `Size` whose atoms are named by their texts.

    Args:
        names: the symbols in all of the results.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._extremes: dict[str, tuple[str, Sequence[Size]]] = {}
        self._known: dict[str, str | int] = {}

    def normal(self, text: str) -> str | int:
        """Return the normal form of an expression: srepr, or its value if it is an integer; other text is unchanged.

        Args:
            text: an expression in either dialect.

        Cost: linear, but for products and comparisons within the limits of this file.
        """
        if text not in self._known:
            computed = attempt(self._computed, _UNDEFINED.sub(r"\1", text))
            self._known[text] = text if computed is None else computed  # None: it is no expression
        return self._known[text]

    def _computed(self, text: str) -> str | int:
        self._extremes.clear()
        value = fold(parse(text), _leaf, self._call)
        if isinstance(value, int):
            return value
        written = _text(value)
        self.names.update(_SYMBOL.findall(written))
        return written

    def _call(self, call: Call, args: list[Size | str]) -> Size | str:
        function = call.function
        integers = [arg for arg in args if not isinstance(arg, str)]
        if len(integers) < len(args):
            written = _call_text(function, args)
            return symbol(written, -math.inf) if function in _INTEGERS else written
        if (value := self._evaluated(function, integers)) is not None:
            return value
        is_natural_power = function == "Pow" and len(args) == 2 and _is_natural(integers[1])
        if function in _INTEGERS or function in _OF_INTEGERS or is_natural_power:
            return self._made(function, integers)
        return _call_text(function, args)

    def _evaluated(self, function: str, args: list[Size]) -> Size | None:
        """Return the value of a function of integers; None if it stays a call."""
        if function == "Add":
            return total(args)
        if function == "Mul":
            return product(args) if _fits(args) else None
        if function in ("Max", "Min"):
            return self._extreme(function, args)
        if len(args) != 2 or not _is_natural(by := args[1]):
            return None
        if function in ("Pow", "PowByNatural") and by <= MAX_FACTORS:
            return product([args[0]] * by) if _fits([args[0]] * by) else None
        if function in ("FloorDiv", "CleanDiv") and by:
            return self._quotient(function, args[0], by)
        if function in ("Mod", "PythonMod") and by and isinstance(args[0], int):
            return args[0] % by
        return None

    def _quotient(self, function: str, above: Size, by: int) -> Size:
        """Divide by a positive number: terms that it divides leave the call, and a shared factor goes."""
        whole = size_of({factors: count // by for factors, count in terms_of(above).items() if count % by == 0})
        rest = {factors: count for factors, count in terms_of(above).items() if count % by}
        if rest.keys() <= {()}:
            return total([whole, rest.get((), 0) // by])
        shared = math.gcd(by, *rest.values())
        inner = size_of({factors: count // shared for factors, count in rest.items()})
        return total([whole, self._made(function, [inner, by // shared])])

    def _extreme(self, function: str, args: list[Size]) -> Size:
        """Return the Max or Min of the arguments that others do not decide."""
        left = list(dict.fromkeys(one for arg in args for one in self._nested(function, arg)))
        if len(left) <= MAX_COMPARED:
            left = [one for one in left if not any(_wins(function, other, one) for other in left)]
        return left[0] if len(left) == 1 else self._made(function, left)

    def _nested(self, function: str, arg: Size) -> Sequence[Size]:
        """Return the arguments of an argument that is a call of the same function, alone; else the argument."""
        inner, args = self._extremes.get(_text(arg), ("", ()))
        return args if inner == function else (arg,)

    def _made(self, function: str, args: Sequence[Size]) -> Size:
        """Return a call as an atom."""
        written = _call_text(function, args)
        if function in ("Max", "Min"):
            self._extremes[written] = function, args
        return symbol(written, _least(function, args))


def _leaf(leaf: Leaf) -> Size | str:
    if isinstance(leaf, Integer):
        return leaf.value
    written = to_srepr(leaf)
    if isinstance(leaf, Symbol) and symbol_kind(leaf) == "int":
        assumed = dict(leaf.assumptions)
        return symbol(written, 1 if assumed.get("positive") else 0 if assumed.get("nonnegative") else -math.inf)
    return written


def _wins(function: str, one: Size, other: Size) -> bool:
    """Return whether one of two different integers is provably never less (Max) or greater (Min) than the other."""
    more, less = (one, other) if function == "Max" else (other, one)
    return one is not other and _is_least(total([more, -less]), 0)


def _least(function: str, args: Sequence[Size]) -> End:
    """Return 1 or 0 if a call is evidently not less; else minus infinity."""
    if function in ("Max", "Min"):
        decide = any if function == "Max" else all
        return next((least for least in (1, 0) if decide(_is_least(arg, least) for arg in args)), -math.inf)
    natural = {"Mod": (), "PythonMod": args[1:], "FloorDiv": args, "CleanDiv": args, "CeilDiv": args}.get(function)
    return -math.inf if natural is None or not all(_is_least(arg, 0) for arg in natural) else 0


def _is_least(value: Size, least: int) -> bool:
    """Return whether an integer is provably not less than a number.

    It is if no coefficient is negative, and no atom without a least value is left, when each atom that is at least
    1 is written as 1 and a rest.
    """
    counts: Counter[tuple[str, ...]] = Counter({(): -least})
    lows = {atom.key: atom.low for factors in terms_of(value) for atom in factors}
    for factors, count in terms_of(value).items():
        parts: list[tuple[str, ...]] = [()]
        for atom in factors:
            longer = [(*part, atom.key) for part in parts]
            parts = parts + longer if atom.low == 1 else longer
            if len(parts) > MAX_REST:
                return False
        for part in parts:
            counts[part] += count
    return all(count == 0 or (count > 0 and all(lows[key] >= 0 for key in keys)) for keys, count in counts.items())


def _text(value: Size | str) -> str:
    """Return the text of a value: a sum of products."""
    if isinstance(value, str):
        return value
    return _joined("Add", [_term(factors, count) for factors, count in terms_of(value).items()], 0)


def _term(factors: Monomial, count: int) -> str:
    texts = [f"Integer({count})"] if count != 1 else []
    powers = Counter(factors).items()
    texts += [atom.key if times == 1 else f"Pow({atom.key}, Integer({times}))" for atom, times in powers]
    return _joined("Mul", texts, 1)


def _joined(function: str, texts: list[str], empty: int) -> str:
    if len(texts) < 2:
        return texts[0] if texts else f"Integer({empty})"
    return f"{function}({', '.join(sorted(texts))})"


def _call_text(function: str, args: Sequence[Size | str]) -> str:
    texts = [_text(arg) for arg in args]
    return f"{function}({', '.join(sorted(texts) if function in UNORDERED else texts)})"


def _is_natural(value: Size) -> TypeGuard[int]:
    return isinstance(value, int) and value >= 0


def _fits(args: Sequence[Size]) -> bool:
    """Return whether a product is small enough to be expanded; one beyond the limits of `polynomials` is unknown."""
    each = [terms_of(arg) for arg in args]
    terms = math.prod(map(len, each))
    factors = sum(max(map(len, arg), default=0) for arg in each)
    bits = sum(max((count.bit_length() for count in arg.values()), default=0) for arg in each)
    if terms > MAX_TERMS or factors > MAX_FACTORS or bits > MAX_BITS:
        return False
    return terms <= 1 or all(len(atom.key) <= MAX_TEXT for arg in each for term in arg for atom in term)


def input_symbols(described: Iterable[Meta]) -> dict[str, str]:
    """Return the new names of the symbols that inputs have.

    Args:
        described: what is known of the inputs, in normal order.

    Returns:
        old name -> new name.
    """
    texts = [text for meta in described for text in _texts(meta)]
    trees = [tree for text in texts if (tree := attempt(parse, text)) is not None]
    alone = [tree.name for tree in trees if isinstance(tree, Symbol)]
    others = [symbol.name for tree in trees for symbol in free_symbols(tree)]
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for name in dict.fromkeys((*alone, *others)):
        letters = _LETTERS.match(name.lstrip("_"))[0]  # type: ignore[index]  # It matches everything.
        names[name] = f"_{letters}{counts[letters]}"
        counts[letters] += 1
    return names


def _texts(meta: Meta) -> Iterable[str]:
    """Yield the expressions of a tensor's sizes, or of a number."""
    numbers: list[Any] = list(meta.sizes) if isinstance(meta, schema.TensorMeta) else [meta]
    for number in numbers:
        expression = getattr(number, "as_expr", UNSET)
        if expression is not UNSET:
            yield expression.expr_str


def with_expressions(graph: schema.Graph, change: Callable[[str], str | int]) -> schema.Graph:
    """Return a graph with other expressions in its value tables; its subgraphs are unchanged.

    Args:
        graph: not changed.
        change: expression -> another one, or its value, which replaces sizes; other kinds of values keep theirs.
    """

    def number(value: Any) -> Any:
        if value.as_expr is UNSET:
            return value
        new = change(value.as_expr.expr_str)
        if isinstance(new, str):
            return value.__class__(as_expr=replace(value.as_expr, expr_str=new))
        return schema.SymInt(as_int=new) if isinstance(value, schema.SymInt) else value

    values = {
        f"{kind}_values": {name: with_numbers(meta, number) for name, meta in table.items()}
        for kind, table in tables(graph).items()
    }
    return replace(graph, **values)


def renamed_expression(text: str, names: Mapping[str, str]) -> str:
    """Return an expression under other names, its unordered arguments sorted; one without names is returned
    unchanged."""
    try:
        tree = parse(text)
        if not any(symbol.name in names for symbol in free_symbols(tree)):
            return text

        def leaf(held: Any) -> Any:
            is_renamed = isinstance(held, Symbol) and held.name in names
            return Symbol(names[held.name], held.assumptions) if is_renamed else held

        def call(held: Call, arguments: list[Any]) -> Any:
            ordered = sorted(arguments, key=to_srepr) if held.function in UNORDERED else arguments
            return Call(held.function, tuple(ordered))

        return to_srepr(fold(tree, leaf, call))
    except Pt2Error:  # No expression: a text like any other.
        return renamed_words(text, names)


def renamed_words(text: str, names: Mapping[str, str]) -> str:
    """Return a guard, or any other text, under other names; texts in quotes are unchanged."""
    return _WORD.sub(lambda match: names.get(match[0], match[0]), text)


def words(text: str) -> set[str]:
    """Return the names in a guard, or in any other text, except in quotes."""
    return {word for word in _WORD.findall(text) if word[0] not in "'\""}
