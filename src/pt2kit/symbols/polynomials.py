"""Symbolic sizes: integer polynomials over symbols, their arithmetic, ranges and comparison.

A `Size` is an `int`, or a `Polynomial` if it depends on symbols. Sizes add, subtract, multiply and divide like ints, so
that a formula for sizes is written once for both. `FloorDiv`, `Mod`, `Max`, `Min` and everything that is no sum or
product are atoms: symbols of a polynomial that remember what they were made from.

    s0 = symbol("s0", low=2, high=64, hint=8)
    (s0 + 2 - 3) // 2 + 1            FloorDiv(s0 - 1, 2) + 1, from 1 to 32, 4 in the example
    same(2 * s0, s0 + s0)            True: one polynomial
    same(s0, s0 + 1)                 False: they differ, whatever s0 is
    same(s0, symbol("s1"))           None: it depends

Comparison is three-valued. Two sizes differ for certain if their difference cannot be 0: by its range, or because the
values of the example, for which every program holds, differ.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final, NoReturn, TypeAlias

from pt2kit.symbols import ranges
from pt2kit.symbols.expr import DEFAULT_LIMITS, Call, Expr, Infinity, Integer, Leaf, Symbol, fold
from pt2kit.symbols.functions import by_name
from pt2kit.symbols.order import by_size
from pt2kit.symbols.ranges import ANY, Interval
from pt2kit.symbols.ranges import End as End
from pt2kit.symbols.srepr import to_srepr

MAX_TERMS: Final = 256
"""Terms of one polynomial; sizes of programs have two or three."""
MAX_DEGREE: Final = 32
"""Factors of one term."""
MAX_POWER: Final = 8
"""Powers above this one are atoms."""
MAX_COMPARED: Final = 8
"""Arguments of `Max` or `Min` that are compared with one another; more are kept without a look."""
MAX_BITS: Final = 2 * DEFAULT_LIMITS.bits
"""Bits of a coefficient of a product, as many as two numbers of an expression have; of powers of powers it could have
more than can be computed."""
MAX_NODES: Final = 512
"""Nodes of an atom: multiplying out repeats atoms, so that an atom inside atoms could grow exponentially."""

Terms: TypeAlias = "dict[Monomial, int]"

_LARGEST: Final = 1 << 512
"""Ends of ranges beyond this count as infinite: a sum of them and infinity is a float. Larger values in the example
count as unknown."""


class Undecided(Exception):
    """A size is compared, or used as a number, where its symbols leave the answer open."""


class Atom:
    """A symbol of a polynomial: a symbol of the program, a function of sizes, or an unknown number.

    Args:
        expr: the expression that it stands for; None for an unknown number, which equals itself alone.
        low, high: its least and greatest value.
        hint: its value in the example; None if there is none, or a huge one.
        nodes: nodes of the expression.
    """

    __slots__ = ("expr", "high", "hint", "key", "low", "nodes")

    def __init__(
        self, expr: Expr | None, low: End = 0, high: End = math.inf, hint: int | None = None, nodes: int = 1
    ) -> None:
        self.expr = expr
        self.low = low
        self.high = high
        self.hint = None if hint is None or abs(hint) > _LARGEST else hint
        self.nodes = nodes
        self.key = f"? {id(self)}" if expr is None else expr.name if isinstance(expr, Symbol) else to_srepr(expr)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return "?" if self.expr is None else self.key


Monomial: TypeAlias = "tuple[Atom, ...]"
"""Factors in the order of their keys, each as often as its power."""


class Polynomial:
    """A size that depends on symbols: monomials with whole coefficients, none of them 0. Frozen and hashable."""

    __slots__ = ("__dict__", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = terms

    @cached_property
    def bounds(self) -> Interval:
        """Return the least and the greatest value, from the ranges of the atoms; never too narrow."""
        low: End = 0
        high: End = 0
        for factors, count in self.terms.items():
            ends = _product_of([(count, count), *((factor.low, factor.high) for factor in factors)])
            low, high = low + ends[0], high + ends[1]
        return low, high

    @cached_property
    def hint(self) -> int | None:
        """Return the value in the example; None if an atom has none there."""
        total = 0
        for factors, count in self.terms.items():
            for factor in factors:
                if factor.hint is None:
                    return None
                count *= factor.hint
            total += count
        return total

    @cached_property
    def _degree(self) -> int:
        return max(map(len, self.terms))

    @cached_property
    def nodes(self) -> int:
        """Return how many nodes the expression of the polynomial has, at most."""
        return sum(1 + sum(factor.nodes for factor in factors) for factors in self.terms)

    @cached_property
    def is_unknown(self) -> bool:
        """Return whether the polynomial has an atom that represents an unknown number."""
        return any(factor.expr is None for factors in self.terms for factor in factors)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and (self is other or self.terms == other.terms)

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __repr__(self) -> str:
        return text(self)

    def __add__(self, other: Size) -> Size:
        return _sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Size) -> Size:
        return _sum(self, other, -1)

    def __rsub__(self, other: int) -> Size:
        return -(self - other)

    def __neg__(self) -> Size:
        return self * -1

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, int):
            return size_of({factors: count * other for factors, count in self.terms.items()}) if other else 0
        if not isinstance(other, Polynomial):
            return NotImplemented
        if len(self.terms) * len(other.terms) > MAX_TERMS or self._degree + other._degree > MAX_DEGREE:
            return unknown(*_product_of([self.bounds, other.bounds]), hint=_computed("Mul", (self, other)))
        terms: Terms = {}
        for left, m in self.terms.items():
            for right, n in other.terms.items():
                factors = tuple(sorted((*left, *right), key=_key)) if left and right else left or right
                terms[factors] = terms.get(factors, 0) + m * n
        return size_of(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return floor_divide(self, other)

    def __rfloordiv__(self, other: int) -> Size:
        return floor_divide(other, self)

    def __mod__(self, other: Size) -> Size:
        return modulo(self, other)

    def __rmod__(self, other: int) -> Size:
        return modulo(other, self)

    def __lt__(self, other: Size) -> bool:
        return _is_less(self, other)

    def __gt__(self, other: Size) -> bool:
        return _is_less(other, self)

    def __le__(self, other: Size) -> bool:
        return not _is_less(other, self)

    def __ge__(self, other: Size) -> bool:
        return not _is_less(self, other)

    def __bool__(self) -> bool:
        if (answer := same(self, 0)) is None:
            raise Undecided(f"whether {self} is 0")
        return not answer

    def __index__(self) -> NoReturn:
        raise Undecided(f"the value of {self}")

    __int__ = __index__


Size: TypeAlias = int | Polynomial
"""A number, or a polynomial of symbols; never a bool."""


def symbol(name: str | Symbol, low: End = 0, high: End = math.inf, hint: int | None = None) -> Polynomial:
    """Return a symbol as a size.

    Args:
        name: "s77", or a symbol with its assumptions, which `to_expression` returns again.
        low, high: its range, both ends included.
        hint: its value in the example.
    """
    return Polynomial({(Atom(Symbol(name) if isinstance(name, str) else name, low, high, hint),): 1})


def unknown(low: End = 0, high: End = math.inf, hint: int | None = None) -> Polynomial:
    """Return an unknown size with a range; it equals only itself."""
    return Polynomial({(Atom(None, low, high, hint),): 1})


def bounds(size: Size) -> Interval:
    """Return the least and the greatest value of a size."""
    return (size, size) if isinstance(size, int) else size.bounds


def hint(size: Size) -> int | None:
    """Return the value of a size in the example; None if it is not known."""
    return size if isinstance(size, int) else size.hint


def same(one: Size, other: Size) -> bool | None:
    """Return whether two sizes are equal: True always, False never, None if their symbols decide."""
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    difference = one - other
    if isinstance(difference, int):
        return difference == 0
    low, high = difference.bounds
    if low > 0 or high < 0:
        return False
    if low == high:
        return True
    return False if difference.hint else None


def floor_divide(size: Size, by: Size) -> Size:
    """Return `size // by`; parts that `by` divides are divided, the rest becomes one `FloorDiv`.

    Raises:
        ZeroDivisionError: by 0.
    """
    if isinstance(size, int) and isinstance(by, int):
        return size // by
    if size == by:
        return 1
    if by == 1 or size == 0:
        return size
    if isinstance(by, int):
        if by == 0:
            raise ZeroDivisionError("a size is divided by 0")
        if by < 0:
            return _function("FloorDiv", (size, by), ranges.floor_divide)
        # (by*q + r) // by is q + r // by, and r // by is 0 if r is a number.
        whole = size_of({factors: count // by for factors, count in terms_of(size).items()})
        rest = size_of({factors: count % by for factors, count in terms_of(size).items()})
        return whole if isinstance(rest, int) else whole + _function("FloorDiv", (rest, by), ranges.floor_divide)
    above, below = _cancelled(terms_of(size), by.terms)
    if (exact := _exact_quotient(above, below)) is not None:
        return exact
    if isinstance(below, int):
        return floor_divide(above, below)
    return _function("FloorDiv", (above, below), ranges.floor_divide)


def ceil_divide(size: Size, by: Size) -> Size:
    """Return `size` divided by `by`, rounded up.

    Raises:
        ZeroDivisionError: by 0.
    """
    return -floor_divide(-size, by)


def modulo(size: Size, by: Size) -> Size:
    """Return `size % by`, as Python computes it.

    Raises:
        ZeroDivisionError: by 0.
    """
    if isinstance(size, int) and isinstance(by, int):
        return size % by
    if size == by or by == 1 or size == 0:
        return 0
    if isinstance(by, int):
        if by == 0:
            raise ZeroDivisionError("a size is divided by 0")
        size = size_of({factors: count % by for factors, count in terms_of(size).items()})
        if isinstance(size, int):
            return size % by
    elif _exact_quotient(*_cancelled(terms_of(size), by.terms)) is not None:
        return 0
    return _function("Mod", (size, by), ranges.modulo)


def largest(*sizes: Size) -> Size:
    """Return the greatest of some sizes; those that another one exceeds are left out."""
    return _extreme("Max", sizes, 1)


def smallest(*sizes: Size) -> Size:
    """Return the least of some sizes; those that exceed another one are left out."""
    return _extreme("Min", sizes, -1)


def total(sizes: Iterable[Size]) -> Size:
    """Return the sum of sizes, however many terms it has."""
    terms: Counter[Monomial] = Counter()
    for size in sizes:
        terms.update(terms_of(size))
    return size_of(terms)


def product(sizes: Iterable[Size]) -> Size:
    """Return the product of sizes; 1 of none, an unknown number if it has a coefficient of many bits."""
    result: Size = 1
    for size in sizes:
        result = result * size
        if any(count.bit_length() > MAX_BITS for count in terms_of(result).values()):
            return unknown(-math.inf)
    return result


def text(size: Size) -> str:
    """Return a size as messages show it: "2*s0 + 1"; "?" for an unknown number."""
    if isinstance(size, int):
        return str(size) if -(10**20) < size < 10**20 else f"{str(size)[:20]}…"
    if size.is_unknown:
        return "?"
    from pt2kit.symbols.plain import to_str

    shown = to_str(to_expression(size))
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def from_expression(expr: Expr, symbols: Callable[[Symbol], Size]) -> Size:
    """Return the polynomial of an expression.

    Args:
        expr: an expression that yields an int.
        symbols: returns the size that a symbol stands for.

    Cost: linear in its nodes, up to `MAX_TERMS` terms; what is larger becomes an unknown number.
    """

    def leaf(node: Leaf) -> Size:
        if isinstance(node, Integer):
            return node.value
        if isinstance(node, Symbol):
            return symbols(node)
        low: End = -math.inf
        if isinstance(node, Infinity):
            low = math.inf if not node.negative else -math.inf
        return Polynomial({(Atom(node, low, math.inf),): 1})

    return fold(expr, leaf, size_of_call)


def size_of_call(node: Call, args: list[Size]) -> Size:
    """Return the polynomial of a call, from those of its arguments."""
    reader = _READERS.get(node.function)
    try:
        if reader is not None and len(args) >= 1:
            return reader(*args)
    except (ZeroDivisionError, Undecided, TypeError):
        pass
    return _atom(node.function, args, ANY)


def to_expression(size: Size) -> Expr:
    """Return a size as an expression, in an order that depends on nothing but its terms.

    Raises:
        Undecided: it holds an unknown number.
    """
    if isinstance(size, int):
        return Integer(size)
    rows = sorted(size.terms.items(), key=lambda row: (-len(row[0]), [factor.key for factor in row[0]]))
    parts = [_term(factors, count) for factors, count in rows]
    return parts[0] if len(parts) == 1 else Call("Add", tuple(parts))


def _term(factors: Monomial, count: int) -> Expr:
    parts: list[Expr] = []
    for factor, power in Counter(factors).items():
        if factor.expr is None:
            raise Undecided("an unknown number has no expression")
        parts.append(factor.expr if power == 1 else Call("Pow", (factor.expr, Integer(power))))
    if count != 1 or not parts:
        parts.insert(0, Integer(count))
    return parts[0] if len(parts) == 1 else Call("Mul", tuple(parts))


def _key(atom: Atom) -> str:
    return atom.key


def terms_of(size: Size) -> Mapping[Monomial, int]:
    """Return the terms of a size; those of a number are the number alone, and none for 0."""
    return ({(): size} if size else {}) if isinstance(size, int) else size.terms


def size_of(terms: Mapping[Monomial, int]) -> Size:
    """Return the size with these terms: a number if no symbol is left."""
    kept = {factors: count for factors, count in terms.items() if count}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Polynomial(kept)


def _sum(one: Polynomial, other: Size, sign: int) -> Size:
    if not isinstance(other, (int, Polynomial)):
        return NotImplemented
    terms = dict(one.terms)
    for factors, count in terms_of(other).items():
        terms[factors] = terms.get(factors, 0) + sign * count
    if len(terms) > MAX_TERMS:
        return unknown(-math.inf)
    return size_of(terms)


def _is_less(one: Size, other: Size) -> bool:
    """Return whether one size is below another one, whatever their symbols stand for.

    Raises:
        Undecided: their symbols decide.
    """
    low, high = bounds(one - other)
    if high < 0:
        return True
    if low >= 0:
        return False
    raise Undecided(f"whether {text(one)} is less than {text(other)}")


def _function(name: str, args: tuple[Size, ...], range_of: Callable[[Sequence[Interval]], Interval]) -> Size:
    """Return a function of sizes as an atom."""
    return _atom(name, args, range_of([*map(bounds, args)]), _computed(name, args))


def _atom(name: str, args: Sequence[Size], ends: Interval, hint: int | None = None) -> Size:
    """Return a call as an atom; as an unknown number if an argument is unknown, or it is too large."""
    nodes = 1 + sum(1 if isinstance(arg, int) else arg.nodes for arg in args)
    if nodes > MAX_NODES or any(not isinstance(arg, int) and arg.is_unknown for arg in args):
        return unknown(*ends, hint=hint)
    inner = tuple(map(to_expression, args))
    call = Call(name, by_size(inner) if name in ("Max", "Min") else inner)
    return Polynomial({(Atom(call, *ends, hint=hint, nodes=nodes),): 1})


def _computed(name: str, args: tuple[Size, ...]) -> int | None:
    """Return the value of a function in the example; None if an argument has none, or is a divisor of 0."""
    numbers = [one for one in map(hint, args) if one is not None]
    if len(numbers) != len(args) or (name in ("FloorDiv", "Mod") and not numbers[1]):
        return None
    return _COMPUTED[name](*numbers)


_COMPUTED: Final[Mapping[str, Callable[..., int]]] = MappingProxyType(
    {"FloorDiv": operator.floordiv, "Mod": operator.mod, "Mul": operator.mul, "Max": max, "Min": min}
)


def _extreme(name: str, sizes: Iterable[Size], sign: int) -> Size:
    """Return `Max` or `Min`: of sizes whose order is known, only the extreme one is kept."""
    kept: list[Size] = []
    distinct = list(dict.fromkeys(sizes))
    for size in distinct:
        covered = False
        for other in list(kept) if len(distinct) <= MAX_COMPARED else ():
            low, high = bounds((size - other) * sign)
            if high <= 0:
                covered = True
                break
            if low >= 0:
                kept.remove(other)
        if not covered:
            kept.append(size)
    if len(kept) == 1:
        return kept[0]
    choose = max if sign > 0 else min
    lows, highs = zip(*map(bounds, kept), strict=True)
    return _atom(name, kept, (choose(lows), choose(highs)), _computed(name, tuple(kept)))


def _product_of(args: Sequence[Interval]) -> Interval:
    # From 1 on, so that a single end beyond the largest one is infinite, too.
    return ranges.product([(1, 1), *args], _LARGEST)


def _cancelled(above: Mapping[Monomial, int], below: Mapping[Monomial, int]) -> tuple[Size, Size]:
    """Return a quotient's two sizes without the factors that all their terms have."""
    number = math.gcd(*above.values(), *below.values())
    shared = Counter(next(iter(below)))
    for factors in (*above, *below):
        shared &= Counter(factors)

    def rest(terms: Mapping[Monomial, int]) -> Size:
        return size_of(
            {tuple(sorted((Counter(key) - shared).elements(), key=_key)): n // number for key, n in terms.items()}
        )

    return rest(above), rest(below)


def _exact_quotient(above: Size, below: Size) -> Size | None:
    """Return the quotient of two sizes without common factors, if the second one is 1 or -1 or divides by a number."""
    if isinstance(below, int):
        return above * below if below in (1, -1) else None
    terms = terms_of(above)
    if terms.keys() != below.terms.keys():
        return None
    factors = {divmod(count, below.terms[key]) for key, count in terms.items()}
    [(quotient, rest)] = factors if len(factors) == 1 else [(0, 1)]
    return quotient if rest == 0 else None


def _power(base: Size, power: Size) -> Size:
    if not isinstance(power, int) or not 0 <= power <= MAX_POWER:
        raise Undecided("a power")
    return product([base] * power)


def _absolute(size: Size) -> Size:
    if isinstance(size, int) or bounds(size)[0] >= 0:
        return abs(size) if isinstance(size, int) else size
    if bounds(size)[1] <= 0:
        return -size
    raise Undecided("the sign of a size")


_READERS: Final[Mapping[str, Callable[..., Size]]] = by_name(
    {
        "Add": lambda *terms: sum(terms[1:], terms[0]),
        "Mul": lambda *factors: product(factors),
        "Pow, PowByNatural": _power,
        "Identity": lambda size: size,
        "FloorDiv, CleanDiv": floor_divide,
        "CeilDiv": ceil_divide,
        "Mod, PythonMod": modulo,
        "ModularIndexing": lambda size, by, modulus: modulo(floor_divide(size, by), modulus),
        "Abs": _absolute,
        "Max": largest,
        "Min": smallest,
    }
)
"""Functions of expressions that have a normal form here; all others are atoms."""
