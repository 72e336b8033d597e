"""Programs of schema 1 and 2 -> 5.1, by docs/format/versions.md sections 2 and 3. Standard library only."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from independent_pickle import WIDTHS, Tensor, read_payload
from independent_rules import DTYPES, subgraphs
from independent_zip import need

HIGHER = "torch.ops.higher_order."
SPECS = {
    *("user_input", "parameter", "buffer", "tensor_constant", "user_output", "loss_output", "buffer_mutation"),
    *("gradient_to_parameter", "gradient_to_user_input"),
}


def one_key(tree: Any) -> Any:
    """A tree whose unions hold their active arm alone."""
    if isinstance(tree, list):
        return [one_key(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    is_union = len(tree) > 1 and all(key.startswith("as_") or key in SPECS for key in tree)
    return {key: one_key(value) for key, value in tree.items() if not (is_union and value is None)}


def graphs(root: Any) -> list[Any]:
    """A graph and all graphs inside it."""
    found = [root]
    for graph in found:
        found += [inner for node in graph["nodes"] for inner in subgraphs(node)]
    return found


def to_2(tree: Any) -> dict[str, Tensor]:
    """A program of schema 1 as schema 2, in place; the constants that were inside it."""
    module = tree["graph_module"]
    root, tables = module["graph"], module["signature"]
    constants = {name: read_payload(base64.b64decode(data)) for name, data in root["constants"].items()}
    for graph in graphs(root):
        need(graph is root or not graph["constants"], "", "constants of subgraphs")
        graph.pop("constants")
        graph["tensor_values"] = {name: entry["meta"] for name, entry in graph["tensor_values"].items()}
        for node in graph["nodes"]:
            if node["target"] in ("torch.ops.map_impl", "torch.ops.cond"):
                node["target"] = HIGHER + node["target"].rpartition(".")[2]
    raise_hints(root)
    inputs = [input_spec(argument, tables) for argument in root["inputs"]]
    first = next((i for i, spec in enumerate(inputs) if "user_input" in spec), len(inputs))
    inputs[first:first] = [{"tensor_constant": {"arg": {"name": n}, "tensor_constant_name": n}} for n in constants]
    root["inputs"][first:first] = [{"as_tensor": {"name": name}} for name in constants]
    root["tensor_values"] = {**{name: describe(held) for name, held in constants.items()}, **root["tensor_values"]}
    module["signature"] = {"input_specs": inputs, "output_specs": output_specs(root["outputs"], tables)}
    calls = module.pop("call_spec")
    signature = {"inputs": [], "outputs": [], "in_spec": with_keywords(calls["in_spec"]), "out_spec": calls["out_spec"]}
    entries = [entry for entry in module["module_call_graph"] if entry["fqn"]]
    module["module_call_graph"] = [{"fqn": "", "signature": signature}, *entries]
    tree.pop("equality_constraints"), tree.pop("example_inputs")
    tree["dialect"] = "ATEN"
    return constants


def describe(tensor: Tensor) -> dict[str, Any]:
    """The description of a constant."""
    number = next(number for number, (name, _) in DTYPES.items() if name == tensor.dtype and WIDTHS[name])
    sizes, strides = ([{"as_int": value} for value in values] for values in (tensor.sizes, tensor.strides))
    place = {"device": {"type": "cpu", "index": None}, "storage_offset": tensor.offset, "layout": 7}
    return {"dtype": number, "sizes": sizes, "strides": strides, "requires_grad": tensor.requires_grad, **place}


def raise_hints(tree: Any) -> None:
    """Hints become unions, the text of a truth value an expression, in place."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if "expr_str" in node and node.get("hint") is not None and not isinstance(node["hint"], dict):
                node["hint"] = {"as_int": node["hint"]}
            if isinstance(node.get("as_expr"), str):
                node["as_expr"] = {"expr_str": node["as_expr"], "hint": None}
        todo += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def input_spec(argument: Any, tables: Any) -> Any:
    """The spec of one input, from the flat tables."""
    name = argument.get("as_tensor", {}).get("name")
    for kind in ("parameter", "buffer"):
        table = tables[f"inputs_to_{kind}s"]
        if name in table:
            return {kind: {"arg": {"name": name}, f"{kind}_name": table[name]}}
    return {"user_input": {"arg": argument}}


def output_specs(outputs: Any, tables: Any) -> list[Any]:
    """The specs of the outputs, from the flat tables; each entry of a table stands for one output."""
    backward = tables["backward_signature"] or {}
    mutations, users, found = dict(tables["buffers_to_mutate"]), list(tables["user_outputs"]), []
    for argument in outputs:
        name = argument.get("as_tensor", {}).get("name")
        arg: Any = {"arg": {"name": name}}
        if name in mutations:
            found.append({"buffer_mutation": {**arg, "buffer_name": mutations.pop(name)}})
        elif name in users:
            users.remove(name)
            is_loss = name == backward.get("loss_output")
            found.append({"loss_output": arg} if is_loss else {"user_output": {"arg": argument}})
        elif name in backward.get("gradients_to_parameters", {}):
            target = backward["gradients_to_parameters"][name]
            found.append({"gradient_to_parameter": {**arg, "parameter_name": target}})
        elif name in backward.get("gradients_to_user_inputs", {}):
            target = backward["gradients_to_user_inputs"][name]
            found.append({"gradient_to_user_input": {**arg, "user_input_name": target}})
        else:
            found.append({"user_output": {"arg": argument}})
    return found


def with_keywords(text: str) -> str:
    """An in_spec of ((args), {kwargs}), also for a call without keywords."""
    protocol, root = json.loads(text)
    children = root["children_spec"]
    if [child["type"] for child in children] == ["builtins.tuple", "builtins.dict"]:
        keys = json.loads(children[1]["context"])
        if keys and all(isinstance(key, str) for key in keys):
            return text
    keywords = {"type": "builtins.dict", "context": "[]", "children_spec": []}
    both = {"type": "builtins.tuple", "context": "null", "children_spec": [root, keywords]}
    return json.dumps([protocol, both])


def to_5_1(tree: Any, version: int) -> tuple[Any, dict[str, Tensor]]:
    """A program of schema 1 or 2 as schema 5.1; the constants that were inside it."""
    tree = one_key(tree)
    constants = to_2(tree) if version == 1 else {}
    for spec in tree["graph_module"]["signature"]["input_specs"]:
        if "buffer" in spec:
            spec["buffer"]["persistent"] = True
    for graph in graphs(tree["graph_module"]["graph"]):
        for meta in graph["tensor_values"].values():
            meta["storage_offset"] = {"as_int": meta["storage_offset"]}
        raise_attention(graph)
        for node in graph["nodes"]:
            raise_node(node)
    rename_symbols(tree)
    return {**tree, "schema_version": {"major": 5, "minor": 1}}, constants


def rename_symbols(tree: Any) -> None:
    """Symbols i0, i1, … become u0, u1, …, in place, in expressions and keys of ranges."""

    def renamed(text: str) -> str:
        return re.sub(r"(?<![\w.'])i(\d+)(?!\w)", r"u\1", text)

    tree["range_constraints"] = {renamed(key): row for key, row in tree["range_constraints"].items()}
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict) and "expr_str" in node:
            node["expr_str"] = renamed(node["expr_str"])
        todo += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def raise_attention(graph: Any) -> None:
    """Flash attention on the CPU is an operator of its own with two results, in place."""
    flash = "torch.ops.aten._scaled_dot_product_flash_attention.default"
    arguments = [row["arg"] for node in graph["nodes"] for row in node["inputs"]] + graph["outputs"]
    used = set(re.findall(r'"([^"]+)"', json.dumps(arguments)))
    for node in graph["nodes"]:
        query = next((row["arg"]["as_tensor"]["name"] for row in node["inputs"] if row["name"] == "query"), None)
        others = [output["as_tensor"]["name"] for output in node["outputs"][2:] if "as_tensor" in output]
        if node["target"] != flash or used & set(others) or query not in graph["tensor_values"]:
            continue
        if graph["tensor_values"][query]["device"]["type"] == "cpu":
            node["target"] = flash.replace("_attention.", "_attention_for_cpu.")
            node["inputs"] = [row for row in node["inputs"] if row["name"] != "return_debug_mask"]
            node["outputs"] = node["outputs"][:2]
            for name in others:
                del graph["tensor_values"][name]


def raise_node(node: Any) -> None:
    """A node of schema 2, in place: spread results, lists of `map_impl`."""
    if not node["target"].startswith(HIGHER):
        return
    if len(node["outputs"]) == 1 and len(node["outputs"][0].get("as_tensors", ())) > 1:
        node["outputs"] = [{"as_tensor": tensor} for tensor in node["outputs"][0]["as_tensors"]]
    if node["target"] == f"{HIGHER}map_impl" and "as_int" in node["inputs"][1]["arg"]:
        body, count, *values = node["inputs"]
        tensors = [row["arg"]["as_tensor"] for row in values]
        number = count["arg"]["as_int"]
        lists = (tensors[:number], tensors[number:])
        node["inputs"] = [body, *({"name": "", "arg": {"as_tensors": held}} for held in lists)]
