"""Constants inside the graphs of schema 1 become lifted inputs, wherever they are."""

from __future__ import annotations

import base64

import pytest
from tests.narrow import instance
from tests.versions.programs import copied, golden, node
from tools.golden_maker import tensor

from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.pickles import writer as torch_save
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import PickledTensor
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.constants import lift

TENSOR = base64.b64encode(torch_save.dumps(tensor(), "x")).decode()
X = {"as_tensor": {"name": "x"}}


def graph(nodes, outputs=("x",), constants=(), inputs=("x",)):
    """A graph of schema 1 with some constants, all the same tensor."""
    meta = golden("1")["graph_module"]["graph"]["tensor_values"]["x"]
    return {
        "inputs": [{"as_tensor": {"name": name}} for name in inputs],
        "outputs": [{"as_tensor": {"name": name}} for name in outputs],
        "nodes": nodes,
        "tensor_values": {"x": meta},
        "sym_int_values": {},
        "sym_bool_values": {},
        "is_single_tensor_return": False,
        "constants": dict.fromkeys(constants, TENSOR),
    }


def program(root):
    """A program of schema 1 with another root graph."""
    tree = golden("1")
    tree["graph_module"]["graph"] = root
    return tree


def call(target, *arguments):
    return node(target, [("", argument) for argument in arguments], [])


def body(inner):
    return {"as_graph": {"name": "body", "graph": inner}}


def test_constants_of_the_root_graph():
    """Their bytes go next to the program, their description is what the payload says."""
    log = ConversionLog("x")
    tree = program(graph([], constants=("c", "d")))
    before = copied(tree)
    new, lifted = lift(tree, log)
    assert tree == before
    assert list(lifted) == ["c", "d"]
    assert lifted["c"] == {
        "dtype": 7,
        "sizes": [{"as_int": 3}],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": 1}],
        "storage_offset": 0,
        "layout": 7,
    }
    assert new["graph_module"]["graph"]["constants"] == {}
    assert isinstance(read_payload(instance(bytes, log.constants["d"]), "d"), PickledTensor)


COND, MAP = "torch.ops.higher_order.cond", "torch.ops.map_impl"


def test_constants_of_a_branch_become_operands():
    """Both branches of a cond get them, under one name; what uses them in the branch is renamed."""
    use = call(
        "torch.ops.aten.add.Tensor", {"as_tensor": {"name": "c"}}, {"as_tensors": [{"name": "c"}, {"name": "x"}]}
    )
    optional = call("f", {"as_optional_tensors": [{"as_tensor": "c"}, {"as_none": []}]})
    first = graph([use, optional], outputs=("c",), constants=("c",))
    second = graph([], constants=("c",))
    root = graph([call(COND, X, body(first), body(second), {"as_tensors": [{"name": "x"}]})], constants=("c",))
    log = ConversionLog("x")
    new, lifted = lift(program(root), log)
    assert list(lifted) == ["c", "c_1", "c_2"]
    assert list(log.constants) == ["c", "c_1", "c_2"]
    arguments = [named["arg"] for named in new["graph_module"]["graph"]["nodes"][0]["inputs"]]
    assert arguments[3] == {"as_tensors": [{"name": "x"}, {"name": "c_1"}, {"name": "c_2"}]}
    for argument in arguments[1:3]:
        inner = argument["as_graph"]["graph"]
        assert [entry["as_tensor"]["name"] for entry in inner["inputs"]] == ["x", "c_1", "c_2"]
        assert {"c_1", "c_2"} <= inner["tensor_values"].keys()
    inner = arguments[1]["as_graph"]["graph"]
    assert inner["outputs"] == [{"as_tensor": {"name": "c_1"}}]
    assert [named["arg"] for named in inner["nodes"][0]["inputs"]] == [
        {"as_tensor": {"name": "c_1"}},
        {"as_tensors": [{"name": "c_1"}, {"name": "x"}]},
    ]
    assert inner["nodes"][1]["inputs"][0]["arg"] == {"as_optional_tensors": [{"as_tensor": "c_1"}, {"as_none": []}]}


def test_constants_of_nested_subgraphs():
    """A constant goes out through every call on its way."""
    inner = graph([], constants=("c",))
    middle = graph([call(MAP, body(inner), {"as_int": 1}, X)])
    root = graph([call(COND, X, body(middle), body(graph([])), {"as_bools": []})])
    new, lifted = lift(program(root), ConversionLog("x"))
    assert list(lifted) == ["c"]
    condition = new["graph_module"]["graph"]["nodes"][0]
    assert condition["inputs"][3]["arg"] == {"as_tensors": [{"name": "c"}]}
    mapped = condition["inputs"][1]["arg"]["as_graph"]["graph"]["nodes"][0]
    assert mapped["inputs"][3]["arg"] == {"as_tensor": {"name": "c"}}


def test_constants_of_other_subgraphs_are_refused():
    """The operands of an unknown operator are not known."""
    root = graph([call("torch.ops.higher_order.while_loop", body(graph([], constants=("c",))))])
    place = r"^x: \$\.graph_module\.graph\.nodes\[0\]\.inputs: expected constants in subgraphs of cond or map_impl only"
    with pytest.raises(UnsupportedError, match=place):
        lift(program(root), ConversionLog("x"))
    outer = graph([call(COND, X, body(root), body(graph([])), {"as_bools": []})])
    place = r"nodes\[0\]\.inputs\[1\]\.arg\.as_graph\.graph\.nodes\[0\]\.inputs: expected constants in subgraphs"
    with pytest.raises(UnsupportedError, match=place):
        lift(program(outer), ConversionLog("x"))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("no base64!", PayloadError, r"constants\.c: expected base64, got 'no base64!'"),
        ("AAAA", PayloadError, r"constants\.c: "),
        (base64.b64encode(torch_save.dumps({}, "x")).decode(), PayloadError, "expected one tensor, got dict"),
    ],
)
def test_what_is_no_tensor_is_refused(text, error, message):
    """With the place of the constant."""
    root = graph([], constants=("c",))
    root["constants"]["c"] = text
    with pytest.raises(error, match=message):
        lift(program(root), ConversionLog("x"))
