"""Live descriptions of values: symbolic numbers over one ShapeEnv, and fake tensors from `TensorMeta`.

Each distinct expression is read, built and wrapped once; values that hold it share the object. The ShapeEnv ends up
in the state that it has after `torch.export.load`: a range for each symbol that occurs, a hint for each expression
that has one, and counters above every unbacked symbol.

Expressions become sympy's by a closed table of classes; no text is ever evaluated. `to_sympy` calls the constructors
that the names of a tree refer to, so sympy puts sums and products in its own order, as it does when torch reads a file.

Every value gets a fake tensor (a node's `meta["val"]`) and a storage of its own: copies of a shared template for each
distinct (dtype, sizes, strides, offset, device, requires_grad). Going through the dispatcher for each would cost 350
microseconds with symbolic sizes; from a template it is ten.

Source: torch/_export/serde/serialize.py and torch/fx/experimental/symbolic_shapes.py, 2.13, for the state of the
ShapeEnv.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import sympy
import torch
from msgspec import UNSET
from sympy.functions.elementary.piecewise import ExprCondPair

from pt2kit import codec, schema
from pt2kit.bridge.operators import DTYPES, LAYOUTS
from pt2kit.bridge.read.tensors import BLOCKS, Devices, check_number, check_tensor
from pt2kit.bridge.torch_export_names import (
    SLoc,
    ValueRanges,
    count_from,
    fake_over,
    hints,
    int_oo,
    make_fake,
    new_fake_mode,
    new_shape_env,
    note_symbol,
    set_range,
)
from pt2kit.bridge.torch_export_names import sympy_functions as torch_functions
from pt2kit.bridge.torch_names import wrap
from pt2kit.errors import ExpressionError, GraphError, UnsupportedError
from pt2kit.symbols.dialects import parse_number, parse_size, parse_truth
from pt2kit.symbols.expr import (
    Boolean,
    Call,
    Expr,
    Float,
    Infinity,
    Integer,
    Leaf,
    Rational,
    Symbol,
    fold,
    free_symbols,
)
from pt2kit.symbols.functions import FUNCTIONS

ORIGIN: Final = SLoc("range_constraints of the file", None)
"""The place that messages name for ranges and guards of a program that was read."""
_UNBACKED: Final = re.compile(r"(u|zuf)(\d{1,9})", re.ASCII)
_SYMBOL: Final = re.compile(r"(s|u|zf|zuf)\d{1,9}", re.ASCII)
_ASSUMPTIONS: Final[Mapping[str, Mapping[str, bool]]] = MappingProxyType(
    {"s": {"positive": True, "integer": True}, "u": {"integer": True}, "zf": {"real": True}, "zuf": {}}
)
_KINDS: Final[Mapping[type, str]] = MappingProxyType(
    {schema.SymInt: "int", schema.SymFloat: "float", schema.SymBool: "bool"}
)
_PARSERS: Final[Mapping[str, Callable[..., Expr]]] = {"int": parse_size, "float": parse_number, "bool": parse_truth}
_META: Final = torch.device("meta")


class Shapes:
    """The symbols of one program, and the ShapeEnv and FakeTensorMode that all its values belong to.

    Args:
        ranges: symbol name -> range, as in the program.
        where: the place of the ranges, for messages.

    Raises:
        GraphError: a range without values.
    """

    def __init__(self, ranges: Mapping[str, schema.RangeConstraint], where: str = "$.range_constraints") -> None:
        self.env = new_shape_env()
        self.mode = new_fake_mode(self.env)
        self.pending: set[sympy.Symbol] = set()
        """Unbacked symbols that occurred in the graph at hand and that no value in it has been found to define."""
        self._in_offsets: set[sympy.Symbol] = set()
        self._ranges = {name: _range(name, bounds, where) for name, bounds in ranges.items()}
        self._derived = {name for name in ranges if not name.isidentifier()}
        self._symbols: dict[str, sympy.Basic] = {}
        self._made: dict[tuple[str, str, Any], Any] = {}
        self._count_unbacked()

    def number(self, value: schema.SymInt | schema.SymFloat | schema.SymBool, where: str) -> Any:
        """Return a number or truth value: a plain one, or a SymInt, SymFloat or SymBool.

        Raises:
            ExpressionError: an expression that cannot be read, or yields a value of another kind.
            GraphError: a hint of another kind, or that contradicts the range of the symbol.
        """
        if value.as_expr is UNSET:
            return float(value.value) if isinstance(value, schema.SymFloat) else value.value
        made = self._expression(value, where)
        if self._in_offsets and not isinstance(made, (int, float)):
            met = self._in_offsets & made.node.expr.free_symbols
            self._in_offsets -= met
            self.pending |= met
        return made

    def offset(self, value: schema.SymInt, where: str) -> Any:
        """Return a storage offset, as `number`.

        Unbacked symbols that occur there alone need no value that defines them.

        torch's reader leaves offsets out, and with them the symbols that export made for them.
        """
        pending = set(self.pending)
        number = value.as_int if value.as_expr is UNSET else self._expression(value, where)
        self._in_offsets |= self.pending - pending
        self.pending = pending
        return number

    def spanned_bytes(self, sizes: Sequence[Any], strides: Sequence[Any], offset: Any, itemsize: int) -> Any:
        """Return the bytes of a storage up to the last element of a tensor in it: an int or a SymInt.

        Args:
            sizes, strides, offset: ints or SymInts, in elements.
            itemsize: bytes of an element.
        """
        lengths = [_sympy(size) for size in sizes]
        count = 1 + sum((length - 1) * _sympy(stride) for length, stride in zip(lengths, strides, strict=True))
        if 0 in lengths:
            count = 0
        nbytes = itemsize * (_sympy(offset) + count)
        return nbytes if type(nbytes) is int else self._node("int", nbytes, None)

    def constraints(self) -> dict[sympy.Symbol, ValueRanges]:
        """Return the ranges of the symbols that occurred, and of those that export made and used nowhere.

        In the order of the program's table. Ranges of anything else that does not occur are left out.
        """
        constraints = {}
        for name, value_range in self._ranges.items():
            symbol = self._symbols[name] if name in self._symbols else _unused_symbol(name)
            if symbol is not None:
                constraints[symbol] = value_range
        return constraints

    def _expression(self, value: Any, where: str) -> Any:
        kind, expr = _KINDS[type(value)], value.as_expr
        hint = None if expr.hint is None else expr.hint.value
        key = (kind, expr.expr_str, hint)
        if key not in self._made:
            self._made[key] = self._make(kind, expr.expr_str, hint, where)
        return self._made[key]

    def _make(self, kind: str, text: str, hint: Any, where: str) -> Any:
        built = self._build(kind, text, where)
        hint = None if kind == "bool" else self._note_hint(kind, built, hint, where)
        try:
            return self._node(kind, built, hint)
        except (*_TROUBLE, RuntimeError) as error:
            raise GraphError(f"{where}: expected symbols with ranges or hints, got {built}: {error}") from error

    def _node(self, kind: str, built: sympy.Basic, hint: Any) -> Any:
        if kind == "bool":
            return bool(built) if built in (sympy.true, sympy.false) else self.env.create_symboolnode(built)
        if kind == "int":
            return self.env.create_symintnode(built, hint=hint)
        if built.is_Integer or built.is_Rational:
            return float(built)
        return self.env.create_symfloatnode(built, hint=hint)

    def _build(self, kind: str, text: str, where: str) -> sympy.Basic:
        """Return the sympy expression of a text, and register its symbols with the ShapeEnv."""
        tree = _PARSERS[kind](text, where=where)
        built = to_sympy(tree, where)
        for symbol in free_symbols(tree):
            self._note_symbol(symbol.name, sympy.Symbol(symbol.name, **dict(symbol.assumptions)), where)
        if self._derived:
            self._note_derived(built)
        return built

    def _note_symbol(self, name: str, symbol: sympy.Symbol, where: str) -> None:
        known = self._symbols.get(name)
        if known is not None:
            if known != symbol:
                raise ExpressionError(
                    f"{where}: expected one meaning of the symbol {name}, got {known.assumptions0} "
                    f"and {symbol.assumptions0}"
                )
            return
        self._symbols[name] = symbol
        if _UNBACKED.fullmatch(name):
            self.pending.add(symbol)
        value_range = self._ranges.get(name)
        if value_range is not None:
            set_range(self.env, symbol, value_range, ORIGIN)
        note_symbol(self.env, symbol)

    def _note_derived(self, built: sympy.Basic) -> None:
        """Record the range of an expression ("2*s0"): export stores ranges for expressions too, by their text."""
        for part in sympy.postorder_traversal(built):
            name = str(part)
            if name in self._derived and name not in self._symbols:
                # torch's reader also sets a range for it in the ShapeEnv, on which run_decompositions() then fails.
                self._symbols[name] = part

    def _note_hint(self, kind: str, built: sympy.Basic, hint: Any, where: str) -> Any:
        """Set the example value of an expression in the ShapeEnv, and return the hint that a new node may carry."""
        if hint is None:
            return None
        fits = type(hint) is int if kind == "int" else type(hint) in (int, float)
        if not fits:
            raise GraphError(f"{where}: expected a hint that is {kind}, got {hint!r}")
        if isinstance(built, sympy.Integer | sympy.Float) and built != hint:
            raise GraphError(f"{where}: expected the hint {built} of a constant, got {hint}")
        if built.is_number or any(_UNBACKED.fullmatch(symbol.name) for symbol in built.free_symbols):
            return hint if built.is_number else None
        known = hints(self.env)
        if built not in known:
            value = sympy.Integer(hint) if kind == "int" else sympy.Float(hint)
            value_range = self._ranges.get(getattr(built, "name", ""))
            if value_range is not None and value not in value_range:
                raise GraphError(f"{where}: expected a hint of {built} in its range {value_range}, got {hint}")
            if value_range is None and isinstance(built, sympy.Symbol):  # torch needs one to evaluate expressions of it
                set_range(self.env, built, ValueRanges(-int_oo, int_oo), ORIGIN)
            known[built] = value
        return hint

    def _count_unbacked(self) -> None:
        """Make new unbacked symbols start above those of the program."""
        for name in self._ranges:
            match = _UNBACKED.fullmatch(name)
            if match is None:
                continue
            count_from(self.env, "symint" if match[1] == "u" else "symfloat", int(match[2]) + 1)


def _sympy(number: int | torch.SymInt) -> Any:
    return number.node.expr if isinstance(number, torch.SymInt) else number


def _unused_symbol(name: str) -> sympy.Symbol | None:
    """Return the symbol that torch has for a name of its own making; None for another text."""
    match = _SYMBOL.fullmatch(name)
    if match is None:
        return None
    return sympy.Symbol(name, **_ASSUMPTIONS[match[1]])


def _range(name: str, given: schema.RangeConstraint, where: str) -> ValueRanges:
    lower = -int_oo if given.min_val is None else sympy.Integer(given.min_val)
    upper = int_oo if given.max_val is None else sympy.Integer(given.max_val)
    if lower > upper:
        raise GraphError(f"{where}.{name}: expected a range with values, got {lower} to {upper}")
    return ValueRanges(lower, upper)


# Functions of torch whose class has another name, or that later releases write as another one.
_RENAMED: Final[Mapping[str, str]] = MappingProxyType({"Round": "RoundToInt", "TrueDiv": "IntTrueDiv"})
# Functions that torch's reader looks up in sympy although torch has a class of that name too.
_OF_SYMPY: Final = frozenset({"Max", "Min"})
_TROUBLE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)


def _classes() -> dict[str, Callable[..., sympy.Basic]]:
    classes: dict[str, Callable[..., sympy.Basic]] = {"ExprCondPair": ExprCondPair}
    for name in FUNCTIONS.keys() - classes.keys():
        of_torch = vars(torch_functions).get(_RENAMED.get(name, name))
        made = vars(sympy).get(name) if of_torch is None or name in _OF_SYMPY else of_torch
        if made is not None:
            classes[name] = made
    return classes


CLASSES: Final[Mapping[str, Callable[..., sympy.Basic]]] = MappingProxyType(_classes())
"""Name of a function in a tree -> the class that builds it; releases of torch lack some."""


def to_sympy(expr: Expr, where: str = "") -> sympy.Basic:
    """Build the sympy expression of a tree.

    Args:
        expr: the tree; its reader has checked kinds and constants (`pt2kit.symbols.parse_size` and its kin).
        where: the place to name in errors.

    Returns:
        The expression as sympy normalises it; equal symbols in it are one object. Cost: a few microseconds per node.

    Raises:
        ExpressionError: sympy refuses it, or it has no value (a division by zero).
        UnsupportedError: a function that this release of torch does not have.
    """

    def call(node: Call, args: list[sympy.Basic]) -> sympy.Basic:
        if node.function not in CLASSES:
            raise UnsupportedError(
                f"{where or 'expression'}: expected functions that torch {torch.__version__} has, got {node.function}"
            )
        return CLASSES[node.function](*args)

    try:
        built = fold(expr, _leaf, call)
    except _TROUBLE as error:
        raise ExpressionError(
            f"{where or 'expression'}: expected an expression that has a value, got one that has none: {error}"
        ) from error
    if built.has(sympy.nan, sympy.zoo):
        raise ExpressionError(f"{where or 'expression'}: expected an expression that has a value, got {built}")
    return built


def _leaf(leaf: Leaf) -> sympy.Basic:
    match leaf:
        case Symbol(name, assumptions):
            return sympy.Symbol(name, **dict(assumptions))
        case Integer(value):
            return sympy.Integer(value)
        case Rational(p, q):
            return sympy.Rational(p, q)
        case Float(text, precision):
            return sympy.Float(text, precision=precision)
        case Boolean(value):
            return sympy.true if value else sympy.false
        case Infinity(negative, integer):
            infinity = int_oo if integer else sympy.oo
            return -infinity if negative else infinity


@dataclass(frozen=True, slots=True)
class _Template:
    """Template for the fake tensors of one kind.

    Args:
        elem: the meta tensor under them.
        device: the device that they report.
        requires_grad: whether autograd follows them.
        attributes: the Python attributes of a fake tensor that its own constructor made.
        nbytes: the size of their storage.
    """

    elem: torch.Tensor
    device: torch.device
    requires_grad: bool
    attributes: dict[str, Any]
    nbytes: int | torch.SymInt


class Values:
    """Makes the fake tensors of one program.

    Args:
        shapes: its symbols.
        devices: where its tensors go.
    """

    def __init__(self, shapes: Shapes, devices: Devices) -> None:
        self._shapes = shapes
        self._devices = devices
        self._templates: dict[bytes, _Template] = {}
        # Of one file, equal descriptions are one object (`codec/decoder.py`). It is held, so its id stays its own.
        self._known: dict[int, tuple[schema.TensorMeta, _Template]] = {}

    def value(self, meta: schema.TensorMeta | schema.SymInt | schema.SymFloat | schema.SymBool, where: str) -> Any:
        """Return what a description is of: a new fake tensor, or a symbolic or plain number.

        Raises:
            Pt2Error: as `tensor`; a number that cannot be read.
        """
        return self.tensor(meta, where) if isinstance(meta, schema.TensorMeta) else self._shapes.number(meta, where)

    def tensor(self, meta: schema.TensorMeta, where: str) -> torch.Tensor:
        """Return a new fake tensor.

        Args:
            meta: the graph's description of the value.
            where: the place to name in errors.

        Raises:
            GraphError: numbers that no tensor has.
            UnsupportedError: a layout or device that cannot be faked.
            LimitError: more bytes than any device has.
            ExpressionError: a size that cannot be read.
        """
        known = self._known.get(id(meta))
        if known is not None:
            return _from_template(known[1])
        if meta.layout is not schema.Layout.Strided:
            return self._sparse(meta, where)
        key = codec.encode(meta)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = self._template(meta, where)
        self._known[id(meta)] = meta, template
        return _from_template(template)

    def _template(self, meta: schema.TensorMeta, where: str) -> _Template:
        check_tensor(meta, where)
        dtype = DTYPES[meta.dtype]
        sizes = self._numbers(meta.sizes, f"{where}: sizes")
        strides = self._numbers(meta.strides, f"{where}: strides")
        offset = self._shapes.offset(meta.storage_offset, f"{where}: storage_offset")
        check_number(offset, f"{where}: storage_offset")
        device = self._devices.find(meta.device, where)
        try:
            symbolic = [number for number in (*sizes, *strides) if isinstance(number, torch.SymInt)]
            if symbolic and all(number.node.expr.is_positive for number in symbolic):
                nbytes = self._shapes.spanned_bytes(sizes, strides, offset, dtype.itemsize)
                elem = _with_offset(sizes, strides, offset, dtype, nbytes)
            else:
                # Of a size that may be zero or less torch notes guards here, as it does when it loads the program.
                elem = torch.empty_strided(sizes, strides, dtype=dtype, device=_META)
                nbytes = elem.untyped_storage().nbytes()
                if type(offset) is not int or offset:
                    nbytes = nbytes + offset * dtype.itemsize
                    elem = _with_offset(sizes, strides, offset, dtype, nbytes)
            made = make_fake(self._shapes.mode, elem, device)
        except (RuntimeError, AssertionError, ValueError, OverflowError) as error:
            raise GraphError(f"{where}: expected a tensor that torch can describe, got: {error}") from error
        return _Template(elem, device, meta.requires_grad, dict(made.__dict__), nbytes)

    def _sparse(self, meta: schema.TensorMeta, where: str) -> torch.Tensor:
        """Return a fake sparse tensor without elements: the file does not state how many it has."""
        check_tensor(meta, where)
        sizes = self._numbers(meta.sizes, f"{where}: sizes")
        device = self._devices.find(meta.device, where)
        try:
            if meta.layout in BLOCKS:
                made = make_fake(self._shapes.mode, _blocks(sizes, DTYPES[meta.dtype], LAYOUTS[meta.layout]), device)
                return made.requires_grad_(meta.requires_grad)
            with self._shapes.mode:
                return torch.empty(
                    sizes,
                    dtype=DTYPES[meta.dtype],
                    layout=LAYOUTS[meta.layout],
                    device=device,
                    requires_grad=meta.requires_grad,
                )
        except (RuntimeError, AssertionError, ValueError) as error:
            raise UnsupportedError(f"{where}: expected a tensor that torch can describe, got: {error}") from error

    def _numbers(self, values: Sequence[schema.SymInt], where: str) -> list[Any]:
        numbers = [self._shapes.number(value, where) for value in values]
        for number in numbers:
            check_number(number, where)
        return numbers


def _blocks(sizes: Sequence[Any], dtype: torch.dtype, layout: torch.layout) -> torch.Tensor:
    """Return a meta tensor without any of its sparse blocks, of one element each: no file states how large they are."""
    *batch, rows, columns = sizes
    number = rows if layout is torch.sparse_bsr else columns
    return torch.sparse_compressed_tensor(
        torch.empty((*batch, number + 1), dtype=torch.int64, device=_META),
        torch.empty((*batch, 0), dtype=torch.int64, device=_META),
        torch.empty((*batch, 0, 1, 1), dtype=dtype, device=_META),
        sizes,
        layout=layout,
        check_invariants=False,
    )


def _from_template(template: _Template) -> torch.Tensor:
    """Return a fake tensor like the template's, over a storage of its own.

    The template's meta tensor gets a new storage of the same size, which the subclass that is made over it shares. Its
    Python attributes are those that the constructor of FakeTensor set on the first of its kind.
    """
    if type(template.nbytes) is int:
        fresh = torch.empty(template.nbytes, dtype=torch.uint8, device=_META)
    else:
        fresh = wrap(_Bare, [0], [1], 0, dtype=torch.uint8, device=_META, storage_size=template.nbytes)
    return fake_over(template.elem, fresh, template.device, template.requires_grad, template.attributes)


class _Bare(torch.Tensor):  # type: ignore[misc]
    """A tensor whose storage size is passed and not computed; it exists only under a template, or for its storage."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("a template is never computed with")


def _with_offset(sizes: list[Any], strides: list[Any], offset: Any, dtype: torch.dtype, nbytes: Any) -> torch.Tensor:
    """Return a meta tensor that begins inside its storage.

    torch's own operators would add guards for symbolic sizes.
    """
    return wrap(_Bare, sizes, strides, offset, dtype=dtype, device=_META, storage_size=nbytes)
