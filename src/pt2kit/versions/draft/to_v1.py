"""Design draft (never released) and schema 1 (torch 2.1): a graph module with its weights, converted to a program and
back.

What changed, upwards:

- the root is an `ExportedProgram`: signature, call spec, opset and ranges are written for what the draft leaves open;
- parameters and buffers inside the graph module became inputs; their bytes are stored outside of the program
  (`ConversionLog.weights`), converted from big-endian when they are read;
- those of a branch became constants of its graph;
- arguments have names, enums numbers, values are tables (see `draft.graph`).

The draft has no place for what a program of schema 1 says beyond a graph. A downgrade puts it, as one JSON text, into
the metadata of the graph module under `pt2kit.program`, and an upgrade reads it from there: names of lifted inputs, the
signature's tables, the call spec, hints. A program without that text is called with its inputs in order, and returns
one value, or a tuple. Metadata of the graph module and its name go on to schema 7.3.

Nothing is lost upwards. Lost downwards: that tensors share a storage, where they are stored inside. Blocked downwards:
weights whose bytes are not given, and what `draft.graph` lists.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from pt2kit.codec import parse
from pt2kit.errors import SchemaError
from pt2kit.jsontext import Path
from pt2kit.pickles import writer as torch_save
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import PickledTensor, TensorKind
from pt2kit.treespec.spec import LEAF, TreeSpec, context_text, dump
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.draft.graph import (
    downgrade_graph,
    downgrade_visitors,
    upgrade_graph,
    upgrade_visitors,
)
from pt2kit.versions.draft.storage import decode_tensor, encode_tensor, unfit
from pt2kit.versions.fx_names import renamed, renamed_node
from pt2kit.versions.line.constants import decode_bytes
from pt2kit.versions.rewrite import rewrite, values_of, without

PROGRAM: Final = "pt2kit.program"
"""Key of the metadata: what a program says beyond its graph."""
NAME: Final = "draft.name"
"""Key of the metadata of later schemas: the name of the draft's root module."""

_OPSET: Final = {"aten": 10}
_KEPT: Final = ("opset_version", "range_constraints", "equality_constraints")
_GRADIENTS: Final = ("gradients_to_parameters", "gradients_to_user_inputs")
_KINDS: Final[Mapping[str, tuple[str, TensorKind]]] = {
    "parameters": ("inputs_to_parameters", "parameter"),
    "buffers": ("inputs_to_buffers", "buffer"),
}
"""The weights of a graph module -> the table of a signature that lists them, and their kind."""


def upgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Upgrade a graph module of the draft to a schema 1 program; its weights go into the log.

    Raises:
        PayloadError, UnsupportedError: weights or positional arguments that cannot be read.
        SchemaError, JsonError: `pt2kit.program` is not what pt2kit writes.
    """
    said = _said(tree["metadata"], (), log)
    visitors = upgrade_visitors(log, said.get("hints", {}))

    def tensor(value: Any, path: Path) -> PickledTensor:
        return decode_tensor(value, _KINDS[str(path[-2])][1], log.place(path), log.read_external)

    def branch(module: Any, path: Path) -> Tree:
        """Return a branch as a graph with a name; its tensors are constants inside."""
        said = _said(module["metadata"], path, log)
        names = _value_names(module, said.get("names", {}))
        graph = upgrade_graph(module["graph"], names)
        _hold(graph, {**module["parameters"], **module["buffers"]}, names)
        return {
            "name": module["name"],
            "graph": {**graph, "is_single_tensor_return": said.get("is_single_tensor_return") is True},
        }

    decoded = rewrite(tree, "draft", {"Tensor": tensor})
    names = _value_names(tree, said.get("names", {}))
    with_parts = rewrite(decoded["graph"], "draft", {**visitors, "GraphModule": branch}, root="Graph", path=("graph",))
    graph = upgrade_graph(with_parts, names)
    stated = said.get("constants", ())
    _hold(graph, {name: value for name, value in decoded["buffers"].items() if name in stated}, names)
    users = [argument["as_tensor"]["name"] for argument in graph["inputs"]]
    tables: dict[str, dict[str, str]] = {}
    for kind, (table, _) in _KINDS.items():
        weights = {name: value for name, value in decoded[kind].items() if kind == "parameters" or name not in stated}
        log.weights |= weights
        tables[table] = {names.get(target, target): target for target in weights}
        for name, target in tables[table].items():
            if name not in graph["tensor_values"]:
                meta = rewrite(tree[kind][target]["meta"], "draft", visitors, root="TensorMeta")
                graph["tensor_values"][name] = {"meta": meta}
    lifted = [{"as_tensor": {"name": name}} for table in tables.values() for name in table]
    mutations = said.get("buffers_to_mutate", {})
    backward = said.get("backward_signature")
    gradients = {name for table in _GRADIENTS for name in (backward or {}).get(table, {})}
    outputs = [argument["as_tensor"]["name"] for argument in graph["outputs"]]
    results = [name for name in outputs[len(mutations) :] if name not in gradients]
    log.graph_metadata = without(tree["metadata"], PROGRAM)
    log.graph_metadata |= {NAME: tree["name"]} if tree["name"] else {}
    return {
        "graph_module": {
            "graph": {**graph, "inputs": [*lifted, *graph["inputs"]]},
            "signature": {
                **tables,
                "user_inputs": users,
                "user_outputs": results,
                "buffers_to_mutate": mutations,
                "backward_signature": backward,
            },
            "call_spec": said.get("call_spec", _call_spec(len(users), len(results))),
            "module_call_graph": said.get("module_call_graph", []),
        },
        "opset_version": said.get("opset_version", _OPSET),
        "range_constraints": said.get("range_constraints", {}),
        "equality_constraints": said.get("equality_constraints", []),
        "example_inputs": None,
    }


def downgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Downgrade a schema 1 program to a graph module of the draft; the log must have its weights.

    Raises:
        PayloadError, UnsupportedError: a constant that cannot be read.
    """
    root: Path = ("graph_module", "graph")
    graph, signature = tree["graph_module"]["graph"], tree["graph_module"]["signature"]
    names = {**signature["inputs_to_parameters"], **signature["inputs_to_buffers"]}
    own = {
        "inputs": [a for a in graph["inputs"] if a.get("as_tensor", {}).get("name") not in names],
        "outputs": renamed(graph["outputs"], names),
        "nodes": [renamed_node(node, names) for node in graph["nodes"]],
        # Two inputs that take the same weight are one value here.
        "tensor_values": {names.get(name, name): value for name, value in graph["tensor_values"].items()},
    }

    def module(value: Any, path: Path) -> Tree:
        """Return a graph as a graph module without weights, but with its constants."""
        said = {"is_single_tensor_return": True} if value["is_single_tensor_return"] else {}
        return {
            "name": "",
            "graph": downgrade_graph(value, path, log),
            "metadata": {PROGRAM: json.dumps(said)} if said else {},
            "parameters": {},
            "buffers": _constants(value, path, log),
        }

    visitors = {
        **downgrade_visitors(log),
        "Graph": module,
        "GraphArgument": lambda value, _: {**value["graph"], "name": value["name"]},
    }
    draft = rewrite({**graph, **own}, "1", visitors, root="Graph", path=root)
    metas = {value["name"]: value["meta"] for value in draft["graph"]["tensor_values"]}
    weights = {kind: _weights(signature[table], metas, log) for kind, (table, _) in _KINDS.items()}
    metadata = without(log.graph_metadata, NAME)
    draft = {
        **draft,
        "name": log.graph_metadata.get(NAME, ""),
        "metadata": metadata,
        "parameters": weights["parameters"],
        "buffers": weights["buffers"] | draft["buffers"],
    }
    said = _beyond_graph(tree, draft, names)
    return {**draft, "metadata": {**metadata, PROGRAM: json.dumps(said)} if said else metadata}


def _beyond_graph(tree: Tree, draft: Tree, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the parts of the program that an upgrade of the draft would not reproduce."""
    module = tree["graph_module"]
    signature = module["signature"]
    chosen = {target: name for name, target in names.items()}
    made_up = _value_names(draft, {})
    results = len(signature["user_outputs"])
    said = {
        **{key: tree[key] for key in _KEPT},
        "names": {} if all(name == made_up.get(t, t) for t, name in chosen.items()) else chosen,
        "constants": list(module["graph"]["constants"]),
        "buffers_to_mutate": signature["buffers_to_mutate"],
        "backward_signature": signature["backward_signature"],
        "call_spec": module["call_spec"],
        "module_call_graph": module["module_call_graph"],
        "hints": _hints(tree),
    }
    usual = {"opset_version": _OPSET, "call_spec": _call_spec(len(signature["user_inputs"]), results)}
    return {key: value for key, value in said.items() if value and value != usual.get(key)}


def _said(metadata: Mapping[str, str], path: Path, log: ConversionLog) -> dict[str, Any]:
    """Return the metadata that pt2kit wrote; nothing if it did not write the program."""
    if PROGRAM not in metadata:
        return {}
    place = log.place((*path, "metadata", PROGRAM))
    said = parse(metadata[PROGRAM].encode(), place)
    shapes = {"names": dict, "hints": dict, "constants": list, "buffers_to_mutate": dict}
    if not isinstance(said, dict) or not all(isinstance(said.get(key, kind()), kind) for key, kind in shapes.items()):
        raise SchemaError(f"{place}: expected objects and lists as pt2kit writes them, got others")
    if not all(isinstance(name, str) for name in said.get("names", {}).values()):
        raise SchemaError(f"{place}: names: expected texts, got others")
    checked: dict[str, Any] = said
    return checked


def _value_names(tree: Tree, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return draft name -> name in the program, for values whose name is no identifier or was chosen before."""
    used = [*tree["parameters"], *tree["buffers"], *(value["name"] for value in tree["graph"]["tensor_values"])]
    taken = {name for name in used if name.isidentifier() and name not in chosen} | set(chosen.values())
    names: dict[str, str] = {}
    for name in dict.fromkeys(used):
        if name in chosen:
            names[name] = chosen[name]
        elif not name.isidentifier():
            plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
            plain = plain if plain.isidentifier() else f"v_{plain}"
            while plain in taken:
                plain += "_"
            taken.add(plain)
            names[name] = plain
    return names


def _hold(graph: Tree, tensors: Mapping[str, PickledTensor], names: Mapping[str, str]) -> None:
    """Put tensors of a module into its graph, as constants."""
    for target, value in tensors.items():
        name = names.get(target, target)
        graph["constants"][name] = base64.b64encode(torch_save.dumps(value, target)).decode()
        graph["tensor_values"].pop(name, None)


def _weights(table: Mapping[str, str], metas: Mapping[str, Tree], log: ConversionLog) -> dict[str, Any]:
    """Return the draft's tensors for the inputs of one kind."""
    tensors: dict[str, Any] = {}
    for name, target in table.items():
        path = ("graph_module", "graph", "tensor_values", name)
        value = log.weights.get(target)
        if not isinstance(value, PickledTensor):
            log.blocked(f"the weight {target!r}, whose bytes are not given", path)
        elif problem := unfit(value):
            log.blocked(f"{problem} as the weight {target!r}", path)
        elif target not in metas:
            log.blocked(f"an input {name!r} that the graph does not describe", path)
        else:
            if (written := (value.storage, value.dtype_name)) in log.written:
                log.lost("tied", f"that {target!r} shares the storage of another tensor", path)
            log.written.add(written)
            tensors[target] = encode_tensor(value, metas[target], log.place(path))
    return tensors


def _constants(graph: Tree, path: Path, log: ConversionLog) -> dict[str, Any]:
    """Return the constants inside a graph as buffers of its module."""
    buffers: dict[str, Any] = {}
    for name, text in graph["constants"].items():
        if not text:
            continue  # its bytes were not given, which the step to schema 1 noted
        place = log.place((*path, "constants", name))
        value = read_payload(decode_bytes(text, place), place)
        if not isinstance(value, PickledTensor) or unfit(value):
            log.blocked("a constant that is no dense tensor of the draft", (*path, "constants", name))
            continue
        meta = {"device": {"type": "cpu", "index": 0}, "layout": "strided"}
        buffers[name] = encode_tensor(value, meta, place)
    return buffers


def _call_spec(inputs: int, outputs: int) -> dict[str, str]:
    """Return the spec of a call with plain arguments that returns one value, or a tuple."""
    arguments = TreeSpec("builtins.tuple", context_text(None), (LEAF,) * inputs)
    results = LEAF if outputs == 1 else TreeSpec("builtins.tuple", context_text(None), (LEAF,) * outputs)
    return {"in_spec": dump(arguments), "out_spec": dump(results)}


def _hints(tree: Tree) -> dict[str, int]:
    """Return expression -> hint, for those that have one."""
    expressions = (value for value, _ in values_of(tree, "1", "SymExpr"))
    return {value["expr_str"]: value["hint"] for value in expressions if value["hint"] is not None}
