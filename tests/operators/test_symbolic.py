"""Result rules of functions over numbers: Python's own results are the oracle, with numbers and with symbols."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import pytest

from pt2kit.operators.facts import Mismatch, Symbolic, Tensor, Unknown, new
from pt2kit.operators.rows import texts
from pt2kit.operators.table import infer
from pt2kit.schema import Device, ScalarType
from pt2kit.symbols.evaluation import evaluate
from pt2kit.symbols.functions import FUNCTIONS, TARGETS
from pt2kit.symbols.polynomials import Polynomial, symbol, to_expression


def _promoted(result: Any, *operands: Any) -> Any:
    return float(result) if any(isinstance(one, float) for one in operands) else result


BINARY = {
    **{f"_operator.{name}": getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "mod", "truediv")},
    **{f"_operator.{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "torch.sym_max": lambda a, b: _promoted(max(a, b), a, b),
    "torch.sym_min": lambda a, b: _promoted(min(a, b), a, b),
}
S0, S1 = symbol("s0", 2, 9, hint=6), symbol("s1", 2, 9, hint=4)
VALUES = {"s0": 6, "s1": 4}


def call(name: str, *arguments: Any) -> Any:
    return infer(name, {str(place): one for place, one in enumerate(arguments)}, is_strict=True)


def plain(number: Any) -> Any:
    return evaluate(to_expression(number), VALUES) if isinstance(number, Polynomial) else number


@pytest.mark.parametrize("name", BINARY)
def test_functions_compute_as_python_does(name: str) -> None:
    for one, other in itertools.product((S0, S1, S0 * 2 + 1, 7, -3, 2.5), (S0, S1, 5, 3, 0.5)):
        result = call(name, one, other)
        expected = BINARY[name](plain(one), plain(other))
        if isinstance(result, Symbolic):
            assert isinstance(expected, result.kind)
        else:
            assert plain(result) == expected, (one, other)
            assert type(plain(result)) is type(expected)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("math.trunc", (-2.5,), -2),
        ("math.ceil", (2.1,), 3),
        ("math.floor", (S0,), S0),
        ("torch.sym_int", (2.9,), 2),
        ("torch.sym_float", (2,), 2.0),
        ("torch.sym_float", (S0,), Symbolic(float)),
        ("torch.sym_sum", ((S0, 2, S1),), S0 + S1 + 2),
        ("torch.sym_not", (True,), False),
        ("torch.sym_ite", (True, S0, S1), S0),
        ("torch.sym_ite", (Symbolic(bool), S0, S0), S0),
        ("_operator.neg", (S0,), -S0),
        ("_operator.abs", (-4,), 4),
        ("_operator.pow", (S0, 2), S0 * S0),
        ("_operator.lt", (S0, 100), True),
        ("_operator.lt", (S0, 5), Symbolic(bool)),
        ("_operator.and_", (True, Symbolic(bool)), Symbolic(bool)),
    ],
)
def test_functions_of_symbols(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    assert call(name, *arguments) == expected


X = Tensor((2, S0), ScalarType.FLOAT, (S0, 1), offset=3)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("_operator.floordiv", (4, 0)),
        ("_operator.mod", (S0, 0)),
        ("_operator.truediv", (1, 0)),
        ("_operator.pow", (2, S0)),
        ("torch.sym_int", (math.inf,)),
    ],
)
def test_what_has_no_value_is_unknown(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(Unknown) as caught:
        call(name, *arguments)
    assert str(caught.value), "expected a reason"


@pytest.mark.parametrize("name", ["dtype", "device"])
@pytest.mark.parametrize("value", [7, [X], X])
def test_fields_of_other_types_are_unknown(name: str, value: object) -> None:
    """No result has a dtype or device that is none, as a damaged file may name."""
    with pytest.raises(Unknown, match=f"{name} is not known"):
        infer("aten.zeros.default", {"size": [2], name: value})


def test_sizes_of_tensors() -> None:
    assert infer("aten.sym_size.int", {"self": X, "dim": -1}) is S0
    assert infer("aten.sym_stride.int", {"self": X, "dim": 0}) == S0
    assert infer("aten.sym_numel.default", {"self": X}) == S0 * 2
    assert infer("aten.sym_storage_offset.default", {"self": X}) == 3
    assert infer("aten.item.default", {"self": Tensor((1,), ScalarType.FLOAT)}) == Symbolic(float)


@pytest.mark.parametrize(
    ("name", "arguments", "subject"),
    [
        ("aten.sym_size.int", {"self": X, "dim": 2}, "dimension"),
        ("aten.sym_size.int", {"self": Tensor((), ScalarType.INT), "dim": 0}, "dimension"),
        ("aten.item.default", {"self": X}, "sizes"),
        ("aten._assert_tensor_metadata.default", {"a": X, "dtype": ScalarType.INT}, "dtype"),
        ("aten._assert_tensor_metadata.default", {"a": X, "size": (2, 1)}, "sizes"),
    ],
)
def test_impossible_arguments(name: str, arguments: dict[str, Any], subject: str) -> None:
    with pytest.raises(Mismatch) as caught:
        infer(name, arguments, is_strict=True)
    assert caught.value.subject == subject


@pytest.mark.parametrize(
    ("dim", "sizes", "strides"), [(0, (3, 4), (1, 3)), (2, (2, 3), (12, 1)), (-2, (2, 4), (12, 3))]
)
def test_vmap_keeps_the_strides_of_the_other_dimensions(
    dim: int, sizes: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """The value inside of a region of vmap is a view without the dimension of the batch."""
    tensor = new((2, 3, 4), ScalarType.FLOAT, Device("cpu", None), (12, 1, 3))
    made = call("torch._functorch.predispatch._add_batch_dim", tensor, dim, 1)
    assert (made.sizes, made.strides) == (sizes, strides)


def test_rows_are_of_functions_that_nodes_call() -> None:
    """Each row of a function over numbers is of one of `TARGETS`, whose result kind is that of the function named."""
    prefixes = ("_operator.", "math.", "torch.sym_", "torch._sym_")
    named = [name for name in texts() if name.startswith(prefixes)]
    assert len(named) > 20
    assert set(named) <= set(TARGETS)
    for name in named:
        target = TARGETS[name]
        if target.is_of_list or FUNCTIONS[target.function].gives not in ("float", "bool"):
            continue
        result = call(name, *[4] * target.least)
        assert type(result) in (float, bool) or isinstance(result, Symbolic), name
