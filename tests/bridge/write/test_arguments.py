"""Arguments without nodes: every kind, against what torch makes of it, and what has no kind."""

from __future__ import annotations

import enum
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._export.serde import schema as torch_schema
from torch._export.serde import serialize as torch_serde
from torch.fx import Graph
from torch.fx.immutable_collections import immutable_dict, immutable_list

from pt2kit import codec
from pt2kit.bridge.torch_names import is_opaque_value
from pt2kit.bridge.write.arguments import write_argument
from pt2kit.bridge.write.program import write_graph
from pt2kit.bridge.write.scope import Scope, Shared
from pt2kit.errors import GraphError, UnsupportedError


def scope():
    return Scope(torch.nn.Module(), Shared(write_graph))


def ours(value, element=None):
    return codec.to_tree(write_argument(value, scope(), element))


def theirs(value, arg_type=None):
    made = torch_serde.GraphModuleSerializer(None, None).serialize_input(value, arg_type)
    return json.loads(torch_serde._to_json_bytes(made))


LATE_ARMS = {"as_int_lists", "as_float_lists", "as_string_to_argument"} - torch_schema.Argument.__annotations__.keys()
SINGLE = st.one_of(
    st.booleans(),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.none(),
    st.sampled_from([torch.float32, torch.uint64, torch.bool, torch.float8_e5m2]).filter(
        torch_serde._TORCH_TO_SERIALIZE_DTYPE.__contains__
    ),
    st.sampled_from([torch.device("cpu"), torch.device("cuda", 3), torch.device("meta")]),
    st.sampled_from([torch.strided, torch.sparse_coo, torch._mkldnn]),
    st.sampled_from([torch.contiguous_format, torch.channels_last_3d, torch.preserve_format]),
    st.sampled_from([torch.ops.aten.add.Tensor, torch.ops.higher_order.cond]),
)
LISTS = st.one_of(
    *(st.lists(kind, min_size=1) for kind in (st.booleans(), st.integers(), st.floats(), st.text(), st.none()))
)
NESTED = st.one_of(
    st.lists(st.tuples(st.integers(), st.integers()), min_size=1),
    st.lists(st.lists(st.floats(), min_size=1), min_size=1),
)
VALUES = st.recursive(st.one_of(SINGLE, LISTS, NESTED), lambda inner: st.dictionaries(st.text(), inner, max_size=3))


@given(VALUES)
@settings(max_examples=300, deadline=None)
def test_same_as_torch(value):
    """Whatever torch writes, pt2kit writes alike."""
    try:
        expected = theirs(value)
    except torch_serde.SerializeError:
        assert any(arm in json.dumps(ours(value)) for arm in LATE_ARMS)  # this torch has no place for it
        return
    assert json.dumps(ours(value)) == json.dumps(expected)


@pytest.mark.parametrize(
    ("value", "element", "arm"),
    [
        ([], None, "as_tensors"),
        ([], "int", "as_ints"),
        ([], "bool", "as_bools"),
        ([], "float", "as_floats"),
        ([], "str", "as_strings"),
        ([], "Tensor", "as_tensors"),
        ([], "number", "as_ints"),
        ([], "int[]", "as_int_lists"),
        ([], "float[]", "as_float_lists"),
        ([], "Tensor[]", "as_nested_tensors"),
        ([[], []], "int[]", "as_int_lists"),
        ([[], []], "float[]", "as_float_lists"),
        ([[], []], None, "as_nested_tensors"),
        ([1, 2.5], "float", "as_floats"),
        ([1, 2.5], "number", "as_floats"),
        ([[1, 2.5]], "float[]", "as_float_lists"),
        ([[1], [2, 3]], "int[]", "as_int_lists"),
        (immutable_list([immutable_list([1])]), None, "as_int_lists"),
        (immutable_list([True]), None, "as_bools"),
        (immutable_dict({"a": 1}), None, "as_string_to_argument"),
        (torch.Size([1, 2]), None, "as_ints"),
    ],
)
def test_schema_decides(value, element, arm):
    """If the values are ambiguous, the operator's schema decides; fx's own containers count as plain ones."""
    assert list(ours(value, element)) == [arm]


def test_converted_to_floats():
    """Integers among floats become floats."""
    assert ours([1, 2.5], "float") == {"as_floats": [1.0, 2.5]}


class Level(int):
    pass


def test_subclasses():
    """Subclasses of plain types count as these."""
    assert ours(Level(3)) == {"as_int": 3}
    assert ours(type("Half", (float,), {})(0.5)) == {"as_float": 0.5}


class Choice(enum.Enum):
    ONE = 1


@pytest.mark.skipif(not is_opaque_value(Choice.ONE), reason="to this torch an enum member is no opaque object")
def test_opaque_values():
    """An opaque value (any enum member is one) is named, and kept to be written among the constants."""
    here = scope()
    assert codec.to_tree(write_argument([1], here)) == {"as_ints": [1]}
    assert codec.to_tree(write_argument(Choice.ONE, here)) == {
        "as_custom_obj": {"name": "_custom_obj_0", "class_fqn": "enum.Enum"}
    }
    assert here.shared.objects == {"_custom_obj_0": Choice.ONE}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "expected a value that the format has a kind for, got object"),
        (slice(1), "got slice"),
        (torch.ones(2), "got Tensor"),
        ({1: 2}, "expected text as keys of a dict, got int"),
        ([1, "a"], "expected a list of one kind that the format has, got one of int, str"),
        ([1, None], "got one of NoneType, int"),
        ([[1, "a"]], "expected a list of one kind"),
        ([[1], 2], "expected a list of one kind"),
        ([1, 2.5], "got one of float, int"),
        (torch.quint8, r"expected a dtype of the schema, got torch\.quint8"),
        (torch.jagged, r"expected a layout of the schema, got torch\.jagged"),
        ([{}], "expected a list of one kind"),
    ],
)
def test_refused(value, message):
    """Values that the format has no kind for are named."""
    with pytest.raises(UnsupportedError, match=message):
        ours(value)


def test_empty_list_of_unknown_kind():
    """An empty list that the schema gives no known kind is refused."""
    with pytest.raises(UnsupportedError, match="got an empty one of DeviceObjType"):
        ours([], "DeviceObjType")


def test_bare_symbol():
    """A symbolic number without the node that computes it is no argument."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    with pytest.raises(GraphError, match="expected the node that computes a symbolic number, got the bare number u0"):
        ours(ShapeEnv().create_unbacked_symint())


def test_attributes():
    """An attribute must be there, and be a graph."""
    here = scope()
    here.module.weight = torch.nn.Parameter(torch.ones(2))
    graph = Graph()
    with pytest.raises(UnsupportedError, match="expected a graph as attribute 'weight', got Parameter"):
        write_argument(graph.get_attr("weight"), here)
    with pytest.raises(GraphError, match=r"expected an attribute 'a\.b' of the graph's module, got none"):
        write_argument(graph.get_attr("a.b"), here)
    with pytest.raises(GraphError, match="expected one result of node relu, got the node"):
        write_argument(graph.call_function(torch.relu, ()), here)


def test_lowered_modules():
    """A module that ExecuTorch has lowered is named by its name and its backend."""
    here = scope()
    here.module.lowered = type("LoweredBackendModule", (torch.nn.Module,), {"module_name": "m", "backend_id": "B"})()
    assert codec.to_tree(write_argument(Graph().get_attr("lowered"), here)) == {"as_string": "m-B"}
