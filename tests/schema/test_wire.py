"""Unions hold one field; floats survive; objects are frozen, and so are their lists and dicts."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests import strategies
from tests.narrow import present

from pt2kit import codec, schema
from pt2kit.schema import Argument, ComplexValue, SymInt, TensorArgument
from pt2kit.schema.wire import FrozenDict, FrozenList

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


CHANGES: dict[str, Callable[[list[Any]], object]] = {
    "append": lambda one: one.append(4),
    "extend": lambda one: one.extend([4]),
    "insert": lambda one: one.insert(0, 4),
    "pop": lambda one: one.pop(),
    "remove": lambda one: one.remove(3),
    "clear": lambda one: one.clear(),
    "sort": lambda one: one.sort(key=str, reverse=True),
    "reverse": lambda one: one.reverse(),
    "__setitem__": lambda one: operator.setitem(one, slice(0, 2), []),
    "__delitem__": lambda one: operator.delitem(one, 0),
    "__iadd__": lambda one: operator.iadd(one, [4]),
    "__imul__": lambda one: operator.imul(one, 2),
}


DICT_CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "pop": lambda one: one.pop("a"),
    "popitem": lambda one: one.popitem(),
    "clear": lambda one: one.clear(),
    "update": lambda one: one.update(a=3),
    "setdefault": lambda one: one.setdefault("c", 3),
    "__setitem__": lambda one: operator.setitem(one, "a", 3),
    "__delitem__": lambda one: operator.delitem(one, "a"),
    "__ior__": lambda one: operator.ior(one, {"a": 3}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_frozen_list_refuses_to_change(change):
    """Whatever changes a list is refused, and changes nothing."""
    frozen, plain = FrozenList([3, 1, 2]), [3, 1, 2]
    CHANGES[change](plain)
    assert plain != [3, 1, 2]
    with pytest.raises(TypeError, match=r"expected a list that can change, got one of a frozen object .* pt2kit\.edit"):
        CHANGES[change](frozen)
    assert frozen == [3, 1, 2]


@pytest.mark.parametrize("change", DICT_CHANGES)
def test_a_frozen_dict_refuses_to_change(change):
    """Whatever changes a dict is refused, and changes nothing."""
    frozen, plain = FrozenDict(a=1, b=2), {"a": 1, "b": 2}
    DICT_CHANGES[change](plain)
    assert plain != {"a": 1, "b": 2}
    with pytest.raises(TypeError, match=r"expected a dict that can change, got one of a frozen object .* pt2kit\.edit"):
        DICT_CHANGES[change](frozen)
    assert frozen == {"a": 1, "b": 2}


def test_every_change_is_refused():
    """The methods that a value which cannot change does not have are those above, but for copying and the like."""
    others = {"copy", "fromkeys", "__getattribute__", "__reversed__", "__init__", "__sizeof__"}
    assert {name for name in vars(list) if name not in vars(tuple)} - others == set(CHANGES)
    methods = {name for name in vars(dict) if name not in vars(MappingProxyType)} | {"__ior__"}
    assert methods - others == set(DICT_CHANGES)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, list, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_a_frozen_list_is_plain(copied):
    """A copy can change."""
    assert type(copied(FrozenList([1, [2]]))) is list
    assert copied(FrozenList([1, [2]])) == [1, [2]]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, dict, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_a_frozen_dict_is_plain(copied):
    """A copy can change."""
    assert type(copied(FrozenDict(a=[2]))) is dict
    assert copied(FrozenDict(a=[2])) == {"a": [2]}


@given(strategies.structs(schema.ExportedProgram))
def test_nothing_in_a_program_changes(program):
    """Made, read, replaced or copied: no list or dict of a program can change, at any depth; what was given can."""
    nodes = list(program.graph_module.graph.nodes)
    graph = replace(program.graph_module.graph, nodes=nodes)
    nodes.clear()
    assert graph == program.graph_module.graph
    read = codec.decode(codec.encode(program), schema.ExportedProgram, "r").value
    for one in (
        program,
        graph,
        read,
        replace(read, guards_code=["a"]),
        copy.deepcopy(read),
        pickle.loads(pickle.dumps(read)),
    ):
        assert {type(held) for held in containers(one)} <= {FrozenList, FrozenDict}


def containers(value):
    """Every list and dict in a value, at any depth."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from containers(getattr(value, name))
    elif isinstance(value, list | dict):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)
