"""Tree of a symbolic expression: its nodes, one traversal of them, its limits.

A tree is plain, frozen, hashable data. It says what was written and nothing more: no node is simplified, sorted or
evaluated when it is built. Leaves are `Symbol`, `Integer`, `Rational`, `Float`, `Boolean` and `Infinity`; everything
else is a `Call` with the class name that sympy's srepr prints (`Add`, `FloorDiv`, `GreaterThan`, ...), so that both
dialects of `expr_str` give the same tree. Subtrees may be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pt2kit.errors import ExpressionError, LimitError, Pt2Error

if TYPE_CHECKING:
    from fractions import Fraction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the size and the computation of an expression.

    Args:
        text: characters of one expression; a sum over a thousand symbols takes about 40,000.
        nodes: nodes of one tree, counted as often as they are used.
        depth: calls inside calls; real programs stay below 60.
        bits: bits of one integer, literal or computed; sizes have 63, products of sizes a few hundred.
    """

    text: int = 1 << 17
    nodes: int = 1 << 14
    depth: int = 200
    bits: int = 4096

    @property
    def digits(self) -> int:
        """Return the decimal digits that `bits` bits can fill."""
        return self.bits * 30103 // 100000 + 1


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named unknown (`s0`, `u3`, `zuf1`) with sympy's assumptions as `(name, value)` pairs in their written order."""

    name: str
    assumptions: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number of any size."""

    value: int


@dataclass(frozen=True, slots=True)
class Rational:
    """The exact number p/q in lowest terms with q > 1."""

    p: int
    q: int


@dataclass(frozen=True, slots=True)
class Float:
    """A floating point number: its decimal text as srepr writes it, and its precision in bits (53 is a double)."""

    text: str
    precision: int = 53


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    value: bool


@dataclass(frozen=True, slots=True)
class Infinity:
    """An unbounded value: `oo` and `-oo`, or, where `integer`, torch's `int_oo` and `-int_oo`."""

    negative: bool = False
    integer: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function applied to arguments. Hashing costs O(1), comparing O(nodes); neither recurses."""

    function: str
    args: tuple[Expr, ...]
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.function, self.args)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Call):
            return NotImplemented
        pairs: list[tuple[Expr, Expr]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a is b:
                continue
            if isinstance(a, Call) and isinstance(b, Call):
                if a._hash != b._hash or a.function != b.function or len(a.args) != len(b.args):
                    return False
                pairs.extend(zip(a.args, b.args, strict=True))
            elif a != b:
                return False
        return True

    def __reduce__(self) -> tuple[type[Call], tuple[str, tuple[Expr, ...]]]:
        # String hashes differ between processes, so the stored one must not travel.
        return Call, (self.function, self.args)


Constant = Integer | Rational | Float | Boolean | Infinity
Leaf = Symbol | Constant
Expr = Leaf | Call

ONE = Integer(1)
MINUS_ONE = Integer(-1)
TRUE = Boolean(True)


def fold(expr: Expr, leaf: Callable[[Leaf], T], call: Callable[[Call, list[T]], T]) -> T:
    """Compute a value bottom up, without recursion.

    Args:
        expr: the tree.
        leaf: the value of a leaf.
        call: the value of a call, from the values of its arguments in order.

    Returns:
        The value of `expr`. Cost: one call of `leaf` or `call` per node; a shared subtree is visited once per use.
    """
    order: list[Expr] = []
    todo = [expr]
    while todo:
        node = todo.pop()
        order.append(node)
        if isinstance(node, Call):
            todo.extend(node.args)
    values: list[T] = []
    for node in reversed(order):
        if isinstance(node, Call):
            first = len(values) - len(node.args)
            args = values[first:]
            del values[first:]
            values.append(call(node, args))
        else:
            values.append(leaf(node))
    return values[0]


def walk(*exprs: Expr) -> Iterator[Expr]:
    """Yield every node of some trees, in the order in which they are written; a shared subtree once per use."""
    todo = list(reversed(exprs))
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, Call):
            todo.extend(reversed(node.args))


def constant_value(leaf: Constant) -> int | float | Fraction:
    """Return the value of a leaf that is no symbol; both kinds of infinity are floats."""
    match leaf:
        case Integer(value) | Boolean(value):
            return value
        case Rational(p, q):
            from fractions import Fraction  # costs 2 ms to import, and few expressions hold a fraction

            return Fraction(p, q)
        case Float(text, _):
            return float(text)
        case Infinity(negative, _):
            return float("-inf") if negative else float("inf")


def free_symbols(expr: Expr) -> tuple[Symbol, ...]:
    """Return the symbols of a tree, each once, in the order in which they are written."""
    return tuple(dict.fromkeys(node for node in walk(expr) if isinstance(node, Symbol)))


def substitute(
    expr: Expr, mapping: Mapping[str, Expr | int], *, where: str = "", limits: Limits = DEFAULT_LIMITS
) -> Expr:
    """Replace symbols by other expressions, all together.

    Args:
        expr: the tree.
        mapping: symbol name -> what takes its place; an int stands for `Integer`, a bool for `Boolean`. Other symbols
            stay.
        where: the place to name in errors.
        limits: what the result may cost.

    Returns:
        A tree that shares every unchanged part with `expr`. Nothing is simplified.

    Raises:
        LimitError: the result would be larger or deeper than `limits` allow.
    """

    def leaf(node: Leaf) -> tuple[Expr, int, int]:
        new = mapping.get(node.name, node) if isinstance(node, Symbol) else node
        if isinstance(new, int):
            new = Boolean(new) if isinstance(new, bool) else Integer(new)
        return (new, *measure(new)) if isinstance(new, Call) else (new, 1, 0)

    def call(node: Call, args: list[tuple[Expr, int, int]]) -> tuple[Expr, int, int]:
        nodes = 1 + sum(count for _, count, _ in args)
        depth = 1 + max((deep for _, _, deep in args), default=0)
        check_size(nodes, depth, where, limits)
        if all(new is old for (new, _, _), old in zip(args, node.args, strict=True)):
            return node, nodes, depth
        return Call(node.function, tuple(new for new, _, _ in args)), nodes, depth

    return fold(expr, leaf, call)[0]


def measure(expr: Expr) -> tuple[int, int]:
    """Count the nodes of a tree and the calls on its longest path: `(nodes, depth)`."""

    def call(_: Call, args: list[tuple[int, int]]) -> tuple[int, int]:
        return 1 + sum(nodes for nodes, _ in args), 1 + max((depth for _, depth in args), default=0)

    return fold(expr, lambda _: (1, 0), call)


def check_size(nodes: int, depth: int, where: str, limits: Limits) -> None:
    """Refuse a tree of that many nodes or that depth.

    Raises:
        LimitError: either number is over its limit.
    """
    if nodes > limits.nodes:
        fail(where, f"expected at most {limits.nodes} parts, got {nodes}", LimitError)
    if depth > limits.depth:
        fail(where, f"expected at most {limits.depth} calls inside each other, got {depth}", LimitError)


def fail(where: str, message: str, error: type[Pt2Error] = ExpressionError) -> NoReturn:
    """Raise `error` with its location in front.

    Raises:
        Pt2Error: always, of the class `error`.
    """
    raise error(f"{where or 'expression'}: {message}")


def quote(text: str) -> str:
    """Return the text of a file for a message: quoted, on one line, shortened to 80 characters."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


_INTEGER = (("integer", True),)
_DEFAULTS: Mapping[str, tuple[tuple[str, bool], ...]] = MappingProxyType(
    {
        **dict.fromkeys(("s", "shape_", "evaluate_static_shape_"), (("positive", True), ("integer", True))),
        "zf": (("real", True),),
        **dict.fromkeys(("zuf", "f"), ()),
    }
)


def default_assumptions(name: str) -> tuple[tuple[str, bool], ...]:
    """Return torch's assumptions on a symbol of that name, for texts that do not state them.

    `s<n>` is a positive integer, `zf<n>` real, `zuf<n>` (and `f<n>` of 2.1 to 2.3) has none; `u<n>`, `i<n>` of 2.1 and
    2.2 and every other name is an integer. An integer input that may be 0 or negative is called `s<n>` as well, so for
    those `positive` says too much; only srepr tells them apart.

    Source: torch/fx/experimental/symbolic_shapes.py and torch/utils/_sympy/symbol.py, 2.1.2, 2.5.1 and 2.13.
    """
    prefix = name.rstrip("0123456789")
    return _DEFAULTS.get(prefix, _INTEGER) if prefix != name else _INTEGER
