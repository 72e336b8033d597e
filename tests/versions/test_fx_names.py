"""Values at the ends of a graph are called as `torch.fx` of the reader calls their nodes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.versions.programs import golden, node

from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.fx_names import name_as_fx


def tensor(name: str):
    return {"as_tensor": {"name": name}}


def size(name: str):
    return {"as_sym_int": {"as_name": name}}


def program(inputs: list[str], nodes: list[Any], outputs: list[Any]):
    """A 5.3 program whose inputs are tensors."""
    tree = golden("5.3")
    meta = next(iter(tree["graph_module"]["graph"]["tensor_values"].values()))
    names = [*inputs, *(out["as_tensor"]["name"] for one in nodes for out in one["outputs"] if "as_tensor" in out)]
    sizes = {
        out["as_sym_int"]["as_name"]: {"as_int": 2} for one in nodes for out in one["outputs"] if "as_sym_int" in out
    }
    graph = {
        **tree["graph_module"]["graph"],
        "inputs": [tensor(name) for name in inputs],
        "nodes": nodes,
        "outputs": outputs,
        "tensor_values": dict.fromkeys(names, meta),
        "sym_int_values": sizes,
        "sym_bool_values": {},
        "custom_obj_values": {},
    }
    signature = {
        "input_specs": [{"user_input": {"arg": tensor(name)}} for name in inputs],
        "output_specs": [{"user_output": {"arg": output}} for output in outputs],
    }
    module = {**tree["graph_module"], "graph": graph, "signature": signature}
    calls = [{"fqn": "", "signature": {"inputs": [tensor(n) for n in inputs], "outputs": outputs}}]
    return {**tree, "graph_module": {**module, "module_call_graph": calls}}


def ends(tree) -> tuple[list[str], list[str]]:
    """The names at both ends, which the signature, the calls and the tables must know too."""
    module = tree["graph_module"]
    graph = module["graph"]
    inputs = [argument["as_tensor"]["name"] for argument in graph["inputs"]]
    outputs = [next(iter(out.values())) for out in graph["outputs"]]
    assert [spec["user_input"]["arg"] for spec in module["signature"]["input_specs"]] == graph["inputs"]
    assert [spec["user_output"]["arg"] for spec in module["signature"]["output_specs"]] == graph["outputs"]
    assert module["module_call_graph"][0]["signature"]["inputs"] == graph["inputs"]
    names = [out.get("name") or out["as_name"] for out in outputs]
    assert {*inputs, *names} <= {*graph["tensor_values"], *graph["sym_int_values"]}
    return inputs, names


RELU = "torch.ops.aten.relu.default"
SIZE = "torch.ops.aten.sym_size.int"


def relu(source: str, result: str):
    return node(RELU, [("self", tensor(source))], [tensor(result)])


def sized(source: str, result: str):
    return node(SIZE, [("self", tensor(source)), ("dim", {"as_int": 0})], [size(result)])


@pytest.mark.parametrize("name", ["input", "max", "class", "torch", "inf"])
def test_a_builtin_is_no_name_for_an_input_of_2_3(name):
    """fx appends a number; 2.4 puts the name right again."""
    tree = program([name, "x"], [relu(name, "y")], [tensor("y")])
    log = ConversionLog("x")
    new = name_as_fx(tree, log, keeps_inputs=False)
    assert ends(new) == ([f"{name}_1", "x"], ["y"])
    assert new["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"] == tensor(f"{name}_1")
    assert [note.kind for note in log.notes] == ["changed"]
    assert name_as_fx(tree, log, keeps_inputs=True) is tree


def test_room_is_made_for_a_new_name():
    """The value that had the name gets the name of fx."""
    tree = program(["input_1", "input"], [relu("input", "y"), relu("input_1", "z")], [tensor("y"), tensor("z")])
    new = name_as_fx(tree, ConversionLog("x"), keeps_inputs=False)
    assert ends(new) == (["input_1", "input_2"], ["y", "z"])
    assert new["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"] == tensor("input_2")


@pytest.mark.parametrize("keeps_inputs", [True, False])
def test_a_size_that_is_returned_is_called_by_its_operator(keeps_inputs):
    """In order, as fx counts; what is not returned keeps its name."""
    nodes = [sized("x", "sym_size_int_5"), sized("x", "rows"), relu("x", "y")]
    new = name_as_fx(program(["x"], nodes, [size("rows"), tensor("y")]), ConversionLog("x"), keeps_inputs=keeps_inputs)
    assert ends(new) == (["x"], ["sym_size_int_1", "y"])
    assert list(new["graph_module"]["graph"]["sym_int_values"]) == ["sym_size_int_5", "sym_size_int_1"]


def test_a_program_with_such_names_is_the_same_object():
    """Nothing is copied, and nothing inside a subgraph is touched."""
    body = {"as_graph": {"name": "body", "graph": {"inputs": [tensor("input")], "nodes": [], "outputs": []}}}
    call = node("torch.ops.higher_order.cond", [("", body), ("", tensor("x"))], [tensor("cond")])
    tree = program(["x"], [call], [tensor("cond")])
    assert name_as_fx(tree, ConversionLog("x"), keeps_inputs=False) is tree
