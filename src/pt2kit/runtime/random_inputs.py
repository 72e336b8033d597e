"""Random inputs of a program, within its declared ranges: for `pt2 run --random` and comparisons of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from msgspec import UNSET

from pt2kit.errors import InputError, Pt2Error
from pt2kit.runtime.arrays import Array, cast, kind, reserve
from pt2kit.runtime.inputs import SMALLEST, Convention, InputSpec
from pt2kit.symbols.evaluation import evaluate
from pt2kit.symbols.expr import Expr, Symbol, free_symbols

ATTEMPTS: Final = 200
SPAN: Final = 6
"""How far above its least value a symbol without an example is drawn."""


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
        InputError: no sizes were found that the program accepts.
    """
    random = np.random.default_rng(seed)
    symbols = sorted({symbol.name for spec in convention.inputs for symbol in _symbols(spec)})
    hints = _hints(convention.inputs)
    failure: Pt2Error | None = None
    for attempt in range(ATTEMPTS):
        chosen = {
            name: _draw(name, convention, {**(hints if attempt == 0 and not vary else {}), **sizes}, random)
            for name in symbols
        }
        try:
            return convention.checked([_value(spec, chosen, random) for spec in convention.inputs])
        except Pt2Error as error:
            failure = error
            if sizes.keys() >= set(symbols):
                break
    raise InputError(f"inputs: expected sizes that the program accepts, found none at random: {failure}") from failure


def _symbols(spec: InputSpec) -> Sequence[Symbol]:
    numbers = [*spec.sizes, *([] if spec.number is None else [spec.number])]
    return [symbol for number in numbers if isinstance(number, Expr) for symbol in free_symbols(number)]


def _hints(inputs: Sequence[InputSpec]) -> dict[str, int]:
    """Return the values that symbols had at export, as far as the file has them."""
    found: dict[str, int] = {}
    for spec in inputs:
        numbers = spec.sizes if spec.number is None else (spec.number,)
        for number, hint in zip(numbers, spec.hints, strict=False):
            if isinstance(number, Symbol) and hint is not None:
                found[number.name] = hint
    return found


def _draw(name: str, convention: Convention, hints: Mapping[str, int], random: Any) -> int:
    if name in hints:
        return hints[name]
    least, most = convention.ranges.get(name, (None, None))
    low = max(SMALLEST, least or 0)
    high = low + SPAN if most is None else min(most, low + SPAN)
    return int(random.integers(low, max(low, high) + 1))


def _number(number: int | Expr, chosen: Mapping[str, int]) -> int:
    return int(number if isinstance(number, int) else evaluate(number, chosen))


def _value(spec: InputSpec, chosen: Mapping[str, int], random: Any) -> Any:
    if spec.argument.as_tensor is not UNSET:
        return _array(spec, reserve([_number(size, chosen) for size in spec.sizes], np.float64), random)
    if spec.number is not None:
        return _number(spec.number, chosen)
    if spec.argument.type in ("as_sym_float", "as_sym_bool"):
        return float(random.standard_normal()) if spec.argument.type == "as_sym_float" else bool(random.integers(2))
    return None if spec.argument.as_none is not UNSET else spec.argument.value


def _array(spec: InputSpec, sizes: Sequence[int], random: Any) -> Array:
    assert spec.dtype is not None
    if kind(spec.dtype) < 2:
        return cast(random.integers(0, 2, sizes), spec.dtype)
    numbers = random.standard_normal(sizes)
    if kind(spec.dtype) == 3:
        numbers = numbers + 1j * random.standard_normal(sizes)
    return cast(np.asarray(numbers), spec.dtype)
