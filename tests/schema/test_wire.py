"""Unions hold one field; floats survive; objects are frozen."""

from __future__ import annotations

import copy
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.narrow import present

from pt2kit import schema
from pt2kit.schema import Argument, ComplexValue, SymInt, TensorArgument

UNIONS = [cls for cls in schema.TYPES if issubclass(cls, schema.Union)]


@pytest.mark.parametrize("cls", UNIONS, ids=lambda cls: cls.__name__)
def test_a_union_refuses_none_and_two(cls):
    """Exactly one field must be set, whichever union it is."""
    first, second = list(cls.__struct_fields__)[:2]
    with pytest.raises(ValueError, match="expected exactly one key, got none"):
        cls()
    with pytest.raises(ValueError, match=rf"expected exactly one key, got 2 \({first}, {second}\)"):
        cls(**{first: True, second: True})


def test_a_union_names_its_field():
    """`type`, `value`, `create` and repr speak of the one field."""
    arg = Argument.create(as_tensor=TensorArgument("x"))
    assert (arg.type, arg.value) == ("as_tensor", TensorArgument("x"))
    assert repr(arg) == "Argument(as_tensor=TensorArgument(name='x'))"
    with pytest.raises(TypeError, match="as_evil"):
        Argument.create(as_evil=1)


def test_a_union_reads_well_in_a_match():
    """A class pattern with one keyword selects the arm."""

    def describe(arg):
        match arg:
            case Argument(as_tensor=TensorArgument(name)):
                return name
            case Argument(as_int=int(number)):
                return number
            case Argument(as_sym_int=schema.SymIntArgument(as_name=str(name))):
                return f"${name}"
        return None

    assert describe(Argument(as_tensor=TensorArgument("x"))) == "x"
    assert describe(Argument(as_int=0)) == 0
    assert describe(Argument(as_sym_int=schema.SymIntArgument(as_name="s0"))) == "$s0"
    assert describe(Argument(as_none=True)) is None


def test_objects_are_frozen():
    """Change goes through `msgspec.structs.replace`, which gives a new object."""
    size = SymInt(as_int=3)
    with pytest.raises(AttributeError, match="immutable type: 'SymInt'"):
        size.as_int = 4  # type: ignore[misc]
    assert msgspec.structs.replace(size, as_int=4) == SymInt(as_int=4)


@given(st.floats())
def test_floats_stay_floats(number):
    """Every float field gives back the float it was given, after copying and pickling too."""
    for held in (
        Argument(as_float=number).as_float,
        present(Argument(as_floats=[number]).as_floats)[0],
        present(Argument(as_float_lists=[[number]]).as_float_lists)[0][0],
        ComplexValue(0.0, number).imag,
        schema.SymExprHint(as_float=number).as_float,
        schema.ConstantValue(as_float=number).as_float,
        schema.SymFloat(as_float=number).as_float,
        schema.SymFloatArgument(as_float=number).as_float,
    ):
        for value in (held, copy.deepcopy(held), pickle.loads(pickle.dumps(held))):
            assert isinstance(value, float)
            assert repr(float(value)) == repr(number)
