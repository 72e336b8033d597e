"""Results of nodes, and the names they get."""

from __future__ import annotations

import operator

import pytest
import torch
from torch.fx import Graph
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pt2kit import codec
from pt2kit.bridge.write.nodes import define_results, define_untyped
from pt2kit.bridge.write.program import write_graph
from pt2kit.bridge.write.scope import Scope, Shared
from pt2kit.errors import GraphError, UnsupportedError

T = torch.ones(2)
SYMBOL = ShapeEnv().create_unbacked_symint()


def scope():
    return Scope(torch.nn.Module(), Shared(write_graph))


def call(*taken):
    """A node "f" and nodes that take its results: an index, or a pair of indices for an entry of a list."""
    graph = Graph()
    node = graph.create_node("call_function", print, name="f")
    lists = {}
    for index in taken:
        if isinstance(index, tuple):
            outer, inner = index
            if outer not in lists:
                lists[outer] = graph.create_node("call_function", operator.getitem, (node, outer), name=f"list_{outer}")
            graph.create_node("call_function", operator.getitem, (lists[outer], inner), name=f"e_{outer}_{inner}")
        else:
            graph.create_node("call_function", operator.getitem, (node, index), name=f"r_{index}".replace("-", "m"))
    return node


def tree(arguments):
    return [codec.to_tree(argument) for argument in arguments]


def named(*names):
    return [{"as_tensor": {"name": name}} for name in names]


def listed(*names):
    return {"as_tensors": [{"name": name} for name in names]}


CASES = [
    ((), T, ("Tensor",), named("f")),
    ((), None, ("Tensor",), [{"as_none": True}]),
    ((), 3, ("int",), [{"as_sym_int": {"as_name": "f"}}]),
    ((), True, ("number",), [{"as_sym_bool": {"as_name": "f"}}]),
    ((), 0.5, ("float",), [{"as_sym_float": {"as_name": "f"}}]),
    ((1,), [T, T], ("Tensor[]",), [listed("f_unused_0", "r_1")]),
    ((), [], ("Tensor[]",), [listed()]),
    ((0, 2), (T, T, T), ("Tensor",) * 3, named("r_0", "f_unused_1", "r_2")),
    ((-1,), (T, T), ("Tensor",) * 2, named("f_unused_0", "r_m1")),
    ((), (T, None), ("Tensor",) * 2, [*named("f_unused_0"), {"as_none": True}]),
    ((0, (1, 0)), (T, [T, T]), ("Tensor", "Tensor[]"), [*named("r_0"), listed("e_1_0", "f_unused_1_1")]),
    (
        (),
        (T, SYMBOL, 2.5),
        ("Tensor", "int", "float"),
        [*named("f_unused_0"), {"as_sym_int": {"as_name": "f_unused_1"}}, {"as_sym_float": {"as_name": "f_unused_2"}}],
    ),
    ((), (T, SYMBOL > 3), ("Tensor", "bool"), [*named("f_unused_0"), {"as_sym_bool": {"as_name": "f_unused_1"}}]),
    ((1,), [SYMBOL, 4], ("int[]",), [{"as_sym_ints": [{"as_name": "f_unused_0"}, {"as_name": "r_1"}]}]),
    ((), (T, [0.5]), ("Tensor", "float[]"), [*named("f_unused_0"), {"as_sym_floats": [{"as_name": "f_unused_1_0"}]}]),
    ((), (T, [True]), ("Tensor", "bool[]"), [*named("f_unused_0"), {"as_sym_bools": [{"as_name": "f_unused_1_0"}]}]),
    (
        (),
        [None, T],
        ("Tensor[]",),
        [{"as_optional_tensors": [{"as_none": True}, {"as_tensor": {"name": "f_unused_1"}}]}],
    ),
]


@pytest.mark.parametrize(("taken", "value", "returns", "expected"), CASES)
def test_results(taken, value, returns, expected):
    """Results bear the names of the nodes that take them, and are entered as what they are."""
    here = scope()
    assert tree(define_results(call(*taken), value, len(returns), here)) == expected
    if returns and len(returns) == len(expected) and not isinstance(value, list):
        node = call(*taken)
        assert tree(define_untyped(node, value, scope())) == expected


def test_values_are_entered():
    """Every result is in the table of its kind."""
    here = scope()
    define_results(call(0), (T, SYMBOL, SYMBOL > 2, 0.5), 4, here)
    assert list(here.values["tensor_values"]) == ["r_0"]
    assert list(here.values["sym_int_values"]) == ["f_unused_1"]
    assert list(here.values["sym_bool_values"]) == ["f_unused_2"]
    assert list(here.values["sym_float_values"]) == ["f_unused_3"]


def test_dict_of_results():
    """Results by key, as a triton kernel has them, are one list in the order of the keys."""
    assert tree(define_untyped(call("b"), {"a": T, "b": T}, scope())) == [listed("f_unused_a", "r_b")]


def test_repeated():
    """Nodes that take the same result go by the name of the first one."""
    node = call(0, 1)
    again = node.graph.create_node("call_function", operator.getitem, (node, 0), name="again")
    last = node.graph.create_node("call_function", operator.getitem, (node, -1), name="last")
    here = scope()
    assert tree(define_results(node, (T, T), 2, here)) == named("r_0", "r_1")
    assert here.renamed == {"again": "r_0", "last": "r_1"}
    assert here.uses[again] is here.uses[next(iter(node.users))]
    assert codec.to_tree(here.uses[last]) == {"as_tensor": {"name": "r_1"}}


def test_repeated_lists():
    """Two nodes that take the same list share its entries."""
    node = call((1, 0))
    graph = node.graph
    other = graph.create_node("call_function", operator.getitem, (node, 1), name="other")
    entry = graph.create_node("call_function", operator.getitem, (other, 1), name="entry")
    same = graph.create_node("call_function", operator.getitem, (other, 0), name="same")
    here = scope()
    assert tree(define_untyped(node, (T, [T, T]), here)) == [*named("f_unused_0"), listed("e_1_0", "entry")]
    assert codec.to_tree(here.uses[entry]) == {"as_tensor": {"name": "entry"}}
    assert codec.to_tree(here.uses[same]) == {"as_tensor": {"name": "e_1_0"}}


def test_taken_whole():
    """A node with several results cannot be used as one."""
    node = call()
    node.graph.create_node("call_function", torch.cat, (node,), name="cat")
    with pytest.raises(GraphError, match="expected its results to be taken one by one, got node cat using them whole"):
        define_results(node, [T, T], 1, scope())


@pytest.mark.parametrize("index", [2, -3, "a", 0.5])
def test_bad_index(index):
    """A result that is not there cannot be taken."""
    node = call()
    node.graph.create_node("call_function", operator.getitem, (node, index), name="taken")
    with pytest.raises(GraphError, match="expected an index below 2 in node taken, got"):
        define_results(node, (T, T), 2, scope())


def test_name_taken():
    """Two values of one name are refused."""
    here = scope()
    here.define("f", T)
    with pytest.raises(GraphError, match="expected one value of the name 'f', got two"):
        define_results(call(), T, 1, here)


@pytest.mark.parametrize(
    ("value", "returns", "message"),
    [
        ("text", ("str",), "expected a tensor, a number or None as result 'f', got str"),
        ([T, 3], ("Tensor[]",), "expected a list of one kind as result, got one of as_sym_int, as_tensor"),
        ((T, {"a": T}), ("Tensor", "Dict"), "as result 'f_unused_1', got dict"),
    ],
)
def test_refused(value, returns, message):
    """Results that the format has no kind for are named."""
    with pytest.raises(UnsupportedError, match=message):
        define_results(call(), value, len(returns), scope())


def test_not_several():
    """An operator with several results must have several."""
    with pytest.raises(GraphError, match="expected 2 results, got Tensor"):
        define_results(call(), T, 2, scope())
