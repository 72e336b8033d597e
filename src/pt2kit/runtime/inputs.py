"""Inputs of a session: a call's arguments as one value per graph input, checked against the exported ones; or random.

The same inputs are refused as by `load_module`: another structure, other sizes than the program declares, symbols out
of their range, guards that do not hold. Element types are checked as well: NumPy makes float64 where torch makes
float32, and no operator would report it.

Random inputs are within the declared ranges of a program: for `pt2 run --random` and comparisons of programs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from msgspec import UNSET

from pt2kit import schema
from pt2kit.errors import ExpressionError, GraphError, InputError, LimitError, Pt2Error
from pt2kit.messages import count_text, kind_of, printable, quote
from pt2kit.runtime.arrays import DTYPE, Array, DType, cast, kind, reserve
from pt2kit.symbols.dialects import parse_size
from pt2kit.symbols.evaluation import evaluate
from pt2kit.symbols.expr import Expr, Integer, Symbol, free_symbols
from pt2kit.symbols.guards import Guard, Path, Source, parse_guard, path_text
from pt2kit.symbols.plain import to_str
from pt2kit.treespec.callsig import input_paths, named_arguments, split_call
from pt2kit.treespec.containers import FieldTable
from pt2kit.treespec.spec import TreeSpec, parse
from pt2kit.treespec.values import flatten, unflatten

SMALLEST: Final = 2
"""Lower bounds of symbols up to this one are not checked: export itself specializes sizes 0 and 1."""

ATTEMPTS: Final = 200
SPAN: Final = 6
"""How far above its least value a symbol without an example is drawn."""


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One value that the caller passes.

    Args:
        name: what messages call it ("x", "d['k']").
        argument: its argument in the graph.
        dtype: the element type of a tensor.
        numbers: what each size of a tensor, or a symbolic number, must be: numbers and expressions.
        hints: the value that each of `numbers` had at export, if the file has it.
    """

    name: str
    argument: schema.Argument
    dtype: DType | None = None
    numbers: tuple[int | Expr, ...] = ()
    hints: tuple[int | None, ...] = ()

    @property
    def sizes(self) -> tuple[int | Expr, ...]:
        """Return the sizes of a tensor."""
        return self.numbers if self.argument.as_tensor is not UNSET else ()

    @property
    def constant(self) -> Any:
        """Return the value that a constant of the calling convention must have; None for inputs that are no
        constants."""
        return self.argument.value if self.argument.type in ("as_int", "as_float", "as_bool", "as_string") else None

    def describe(self) -> str:
        """Return element type and sizes, as graphs print them: "float32[s0, 8]"."""
        shown = [str(number) if isinstance(number, int) else to_str(number) for number in self.numbers]
        if self.dtype is not None:
            return f"{self.dtype.name}[{', '.join(shown)}]"
        if shown:
            return f"int = {shown[0]}"
        return {"as_sym_float": "float", "as_sym_bool": "bool"}.get(
            self.argument.type, printable(repr(self.constant), 80)
        )


@dataclass(frozen=True, slots=True)
class Convention:
    """How a program is called.

    Args:
        in_spec, out_spec: the containers of the inputs and outputs; None if the file has none.
        names: those of the arguments, then of the keyword arguments.
        fields: field names of named tuples.
        inputs: the values that the caller passes.
        ranges: symbol -> its least and greatest value; None for no bound.
        guards: conditions on the inputs.
    """

    in_spec: TreeSpec | None
    out_spec: TreeSpec | None
    names: tuple[str, ...]
    fields: FieldTable
    inputs: tuple[InputSpec, ...]
    ranges: Mapping[str, tuple[int | None, int | None]]
    guards: tuple[tuple[Guard, tuple[tuple[Source, int], ...]], ...]

    def leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the values in the arguments of a call, arrays for tensors, checked.

        Raises:
            InputError: inputs that the program does not take.
        """
        return self.checked(self._flat(args, kwargs))

    def checked(self, values: Sequence[Any]) -> list[Any]:
        """Return the flattened inputs of a call as kernels take them, checked.

        Raises:
            InputError: inputs that the program does not take.
        """
        if len(values) != len(self.inputs):
            raise InputError(f"inputs: expected {count_text(len(self.inputs), 'value')}, got {len(values)}")
        found = [_converted(spec, value) for spec, value in zip(self.inputs, values, strict=True)]
        self._check_sizes(found)
        self._check_guards(found)
        return found

    def outputs(self, values: Sequence[Any]) -> Any:
        """Return output values in the program's containers.

        Raises:
            GraphError: another number of values than the containers have.
        """
        if self.out_spec is None:
            return values[0] if len(values) == 1 else tuple(values)
        return unflatten(values, self.out_spec, "outputs", fields=self.fields)

    def _flat(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        if self.in_spec is None:
            return [*args, *kwargs.values()]
        positional, by_name = split_call(self.in_spec)
        missing = self.names[len(args) : len(positional)]
        if all(name in kwargs for name in missing):
            args = (*args, *(kwargs[name] for name in missing))
            kwargs = {name: value for name, value in kwargs.items() if name not in missing}
        if len(args) != len(positional):
            names = ", ".join(map(printable, self.names[: len(positional)]))
            count = count_text(len(positional), "positional argument")
            raise InputError(f"inputs: expected {count} ({names}), got {len(args)}")
        if kwargs.keys() != by_name.keys():
            expected = ", ".join(map(printable, by_name)) or "none"
            noun = "argument" if len(by_name) == 1 else "arguments"
            raise InputError(f"inputs: expected the keyword {noun} {expected}, got {', '.join(kwargs) or 'none'}")
        values, specs = (*args, *(kwargs[name] for name in by_name)), (*positional, *by_name.values())
        leaves: list[Any] = []
        for name, value, spec in zip(self.names, values, specs, strict=True):
            try:
                leaves += flatten(value, spec, f"input {printable(name)}", fields=self.fields, expand=_expand)
            except GraphError as error:
                raise InputError(str(error)) from error
        return leaves

    def _check_sizes(self, values: Sequence[Any]) -> None:
        """Check sizes that are numbers, equal for equal expressions, and the ranges of symbols."""
        known: dict[str, int] = {}
        # Sizes that are symbols come before those that are solved for symbols.
        for expected, got, place in sorted(self._numbers(values), key=lambda one: not isinstance(one[0], int | Symbol)):
            missing = [one for one in _symbols(expected) if one not in known]
            if len(missing) == 1 and (solved := _solve(expected, missing[0], known, got)) is not None:
                known[missing[0]] = solved
                missing = []
            if not missing and (wanted := _value(expected, known)) != got:
                of_symbol = f", the value of {expected.name}" if isinstance(expected, Symbol) else ""
                why = ", as it was exported" if isinstance(expected, int) else of_symbol
                raise InputError(f"input {place}: expected {wanted}{why}, got {got}")
        for name, value in known.items():
            least, most = self.ranges.get(name, (None, None))
            if least is not None and least > SMALLEST and value < least:
                raise InputError(f"input sizes: expected {printable(name)} of at least {least}, got {value}")
            if most is not None and value > most:
                raise InputError(f"input sizes: expected {printable(name)} of at most {most}, got {value}")

    def _numbers(self, values: Sequence[Any]) -> Iterator[tuple[int | Expr, Any, str]]:
        """Yield what each size and symbolic number is expected to be, what it is, and what messages call it."""
        for spec, value in zip(self.inputs, values, strict=True):
            if spec.sizes:
                for axis, (expected, got) in enumerate(zip(spec.sizes, value.shape, strict=True)):
                    yield expected, got, f"{spec.name}: size of dimension {axis}"
            elif spec.numbers:
                yield spec.numbers[0], value, spec.name

    def _check_guards(self, values: Sequence[Any]) -> None:
        for guard, sources in self.guards:
            known = {source.text: _read(source, values[index]) for source, index in sources}
            shown = ", ".join(f"{printable(name, 80)} = {value}" for name, value in known.items())
            place = f"inputs: expected {printable(guard.text, 300)}, got {shown}"
            try:
                holds = evaluate(guard.expr, known)
            except (ExpressionError, LimitError) as error:
                raise InputError(f"{place}, for which it cannot be computed: {error}") from error
            if not holds:
                raise InputError(place)


def convention_of(program: schema.ExportedProgram, arguments: Sequence[schema.Argument]) -> Convention:
    """Return how a program is called.

    Args:
        program: the program.
        arguments: its graph inputs that the caller passes.

    Raises:
        Pt2Error: tree specs, expressions or guards that cannot be read.
    """
    module = program.graph_module
    fields = {name: list(one.field_names) for name, one in module.treespec_namedtuple_fields.items()}
    call = next((entry.signature for entry in module.module_call_graph if entry.fqn == "" and entry.signature), None)
    in_spec = out_spec = None
    names: Sequence[str] = ()
    paths: list[Path] = [(f"arg_{i}",) for i in range(len(arguments))]
    if call is not None:
        in_spec, out_spec = parse(call.in_spec, "in_spec"), parse(call.out_spec, "out_spec")
        names = [name for name, *_ in named_arguments(in_spec, call.forward_arg_names)]
        paths = input_paths(in_spec, call.forward_arg_names, fields=fields)
    if len(paths) != len(arguments):
        raise GraphError(
            f"$.graph_module: expected {count_text(len(paths), 'input')}, as in_spec has, got {len(arguments)}"
        )
    inputs = tuple(
        _input(path_text(path), argument, module.graph) for path, argument in zip(paths, arguments, strict=True)
    )
    ranges = {name: (bounds.min_val, bounds.max_val) for name, bounds in program.range_constraints.items()}
    guards = []
    for number, text in enumerate(program.guards_code):
        where = f"$.guards_code[{number}]"
        guard = parse_guard(text, where=where)
        guards.append((guard, tuple((source, source.find(paths, where)) for source in guard.sources)))
    return Convention(in_spec, out_spec, tuple(names), fields, inputs, ranges, tuple(guards))


def _input(name: str, argument: schema.Argument, graph: schema.Graph) -> InputSpec:
    dtype, sizes = None, []
    if argument.as_tensor is not UNSET:
        meta = _entry(graph.tensor_values, argument.as_tensor.name, "tensor_values")
        dtype, sizes = DTYPE.get(meta.dtype), meta.sizes
    elif argument.as_sym_int is not UNSET and argument.as_sym_int.as_name is not UNSET:
        sizes = [_entry(graph.sym_int_values, argument.as_sym_int.as_name, "sym_int_values")]
    numbers, hints = zip(*map(_size, sizes), strict=True) if sizes else ((), ())
    return InputSpec(name, argument, dtype, numbers, hints)


def _entry(table: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise GraphError(
            f"$.graph_module.graph.inputs: expected an entry for {quote(name)} in {what}, got none", rule="G3"
        )
    return table[name]


def _size(size: schema.SymInt) -> tuple[int | Expr, int | None]:
    if size.as_int is not UNSET:
        return size.as_int, size.as_int
    written: schema.SymExpr = size.as_expr  # type: ignore[assignment]
    expr = parse_size(written.expr_str)
    hint = None if written.hint is None else written.hint.value
    return (expr.value if isinstance(expr, Integer) else expr), hint if isinstance(hint, int) else None


def _read(source: Source, value: Any) -> Any:
    """Return the number that a guard takes from an input."""
    if source.what == "value":
        return value
    shown, index = printable(source.text, 80), source.index
    if not isinstance(value, np.ndarray) or (index is not None and index >= value.ndim):
        raise InputError(f"inputs: expected a tensor that has {shown}, got {kind_of(value)}")
    if source.what == "item":
        if value.size != 1:
            raise InputError(f"inputs: expected one element at {shown}, got {count_text(value.size, 'element')}")
        return value.item()
    if index is None:  # of a storage offset
        return 0
    return value.shape[index] if source.what == "size" else value.strides[index] // value.itemsize


def _expand(type_name: str, value: object) -> Sequence[object] | None:
    """Open a container of a type that this process may not know: the fields of a dataclass that have values."""
    if (
        dataclasses.is_dataclass(value)
        and not isinstance(value, type)
        and type(value).__module__ != "pt2kit.treespec.values"
    ):
        found = [getattr(value, field.name) for field in dataclasses.fields(value)]
        return [one for one in found if one is not None]
    return None


def _converted(spec: InputSpec, value: Any) -> Any:
    """Return a value as kernels take it.

    Raises:
        InputError: another kind of value, or another element type.
    """
    argument = spec.argument
    if argument.as_tensor is not UNSET:
        if not hasattr(value, "__array__"):
            raise InputError(f"input {spec.name}: expected an array, got {kind_of(value)}")
        try:
            array = np.asarray(value)
        except Exception as error:  # of another library, such as a tensor of torch that requires a gradient
            raise InputError(f"input {spec.name}: expected an array, got {kind_of(value)}: {error}") from error
        if array.ndim != len(spec.sizes):
            raise InputError(
                f"input {spec.name}: expected {count_text(len(spec.sizes), 'dimension')}, got {array.ndim}"
            )
        if array.dtype != spec.dtype:
            raise InputError(f"input {spec.name}: expected {spec.dtype}, got {array.dtype}; convert it with .astype")
        return array
    if isinstance(value, np.generic):
        value = value.item()
    if argument.type in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        kinds: Any = {"as_sym_int": int, "as_sym_float": (int, float), "as_sym_bool": bool}[argument.type]
        if not isinstance(value, kinds):
            wanted = "an integer" if kinds is int else "a number"
            raise InputError(f"input {spec.name}: expected {wanted}, got {kind_of(value)}")
        return value
    expected = None if argument.as_none is not UNSET else argument.value
    are_alike = type(value) is type(expected) or all(isinstance(one, int | float) for one in (value, expected))
    if not are_alike or (value != expected and (value == value or expected == expected)):  # nan is what nan was
        raise InputError(
            f"input {spec.name}: expected {expected!r}, as it was exported, got {printable(repr(value), 80)}"
        )
    return value


def _symbols(number: int | Expr) -> tuple[str, ...]:
    return () if isinstance(number, int) else tuple(symbol.name for symbol in free_symbols(number))


def _value(number: int | Expr, known: Mapping[str, int]) -> Any:
    try:
        return number if isinstance(number, int) else evaluate(number, known)
    except Pt2Error as error:
        raise InputError(f"inputs: expected sizes for which every size has a value: {error}") from error


def _solve(number: int | Expr, symbol: str, known: Mapping[str, int], wanted: int) -> int | None:
    """Return the value of a symbol that makes an expression linear in it have a value; None if there is none."""
    try:
        at = [_value(number, {**known, symbol: n}) for n in (0, 1, 2)]
    except Pt2Error:
        return None
    step = at[1] - at[0]
    if step != at[2] - at[1] or not step or (wanted - at[0]) % step:
        return None
    return int((wanted - at[0]) // step)


def random_inputs(
    convention: Convention, seed: int = 0, *, vary: bool = False, sizes: Mapping[str, int] = MappingProxyType({})
) -> list[Any]:
    """Return random values for the inputs of a program, which it accepts.

    Args:
        convention: how the program is called.
        seed: equal seeds give equal inputs.
        sizes: values of symbols.
        vary: draw sizes that differ from those of the example inputs, if the program allows it.

    Returns:
        One value per input: floats from a normal distribution, integers 0 or 1, booleans; constants as exported.

    Raises:
        InputError: no sizes were found that the program accepts, or it has no such symbol.
    """
    random = np.random.default_rng(seed)
    symbols = sorted({one for spec in convention.inputs for number in spec.numbers for one in _symbols(number)})
    if unknown := sizes.keys() - symbols:
        raise InputError(f"symbols: expected one of {', '.join(symbols) or 'none'}, got {min(unknown)}")
    hints = _hints(convention.inputs)
    failure: Pt2Error | None = None
    for attempt in range(ATTEMPTS):
        given = sizes if attempt or vary else {**hints, **sizes}
        chosen = {one: given[one] if one in given else _draw(convention.ranges.get(one), random) for one in symbols}
        try:
            return convention.checked([_draw_value(spec, chosen, random) for spec in convention.inputs])
        except Pt2Error as error:
            failure = error
            if sizes.keys() >= set(symbols):
                break
    raise InputError(f"inputs: expected sizes that the program accepts, found none at random: {failure}") from failure


def _hints(inputs: Sequence[InputSpec]) -> dict[str, int]:
    """Return the values that symbols had at export, as far as the file has them."""
    pairs = [pair for spec in inputs for pair in zip(spec.numbers, spec.hints, strict=False)]
    return {number.name: hint for number, hint in pairs if isinstance(number, Symbol) and hint is not None}


def _draw(bounds: tuple[int | None, int | None] | None, random: Any) -> int:
    """Return a value of a symbol within its range."""
    least, most = bounds or (None, None)
    low = max(SMALLEST, least or 0)
    high = low + SPAN if most is None else min(most, low + SPAN)
    return int(random.integers(low, max(low, high) + 1))


def _draw_value(spec: InputSpec, chosen: Mapping[str, int], random: Any) -> Any:
    numbers = [int(_value(number, chosen)) for number in spec.numbers]
    if spec.argument.as_tensor is not UNSET:
        return _draw_array(spec, reserve(numbers, np.float64), random)
    if numbers:
        return numbers[0]
    if spec.argument.type in ("as_sym_float", "as_sym_bool"):
        return float(random.standard_normal()) if spec.argument.type == "as_sym_float" else bool(random.integers(2))
    return None if spec.argument.as_none is not UNSET else spec.argument.value


def _draw_array(spec: InputSpec, sizes: Sequence[int], random: Any) -> Array:
    assert spec.dtype is not None
    if kind(spec.dtype) < 2:
        return cast(random.integers(0, 2, sizes), spec.dtype)
    numbers = random.standard_normal(sizes)
    if kind(spec.dtype) == 3:
        numbers = numbers + 1j * random.standard_normal(sizes)
    return cast(np.asarray(numbers), spec.dtype)
