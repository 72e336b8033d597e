"""Schema 1 (torch 2.1) and 2 (torch 2.2): from flat tables and inline constants to specs and lifted inputs, and back.

What changed, upwards:

- the signature's tables (inputs_to_parameters, …, backward_signature) became a spec per input and output;
- `call_spec` became the signature of the root entry of the module call graph (fqn ""), and its in_spec always has a
  place for keywords;
- constants inside a graph became lifted inputs; their bytes are outside of the program (`ConversionLog.constants`);
- a custom object given as an inline blob became a name, its bytes likewise;
- `tensor_values` lost a level; a hint became a union; the expression of a `SymBool` became a `SymExpr`;
- `dialect` came ("ATEN" is what 2.1 exported); equality_constraints and example_inputs went;
- `map_impl` and `cond` moved to `torch.ops.higher_order`; metadata keys and module stacks changed (see `metadata`).

Lost upwards: example_inputs (no file of 2.1 has any), and equality_constraints between dimensions that do not share a
symbol anyway. Lost downwards: hints that are no ints, hints of truth values, all but the innermost of a
source_fn_stack, names of constants. Blocked downwards: user inputs and outputs that are constants, constants whose
bytes are not given.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.pickles import writer as torch_save
from pt2kit.pickles.values import PickledTensor
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.fx_names import value_name
from pt2kit.versions.line import hops, metadata, texts
from pt2kit.versions.line.constants import decode_bytes, lift, with_lifted
from pt2kit.versions.rewrite import arm, rewrite, without

_SIGNATURE: Final = ("graph_module", "signature")
_INPUTS: Final[Mapping[str, tuple[str, str]]] = {
    "parameter": ("inputs_to_parameters", "parameter_name"),
    "buffer": ("inputs_to_buffers", "buffer_name"),
}
_MUTATED: Final = "buffers_to_mutate"
_OUTPUTS: Final[Mapping[str, tuple[str, str]]] = {
    "buffer_mutation": (_MUTATED, "buffer_name"),
    "gradient_to_parameter": ("gradients_to_parameters", "parameter_name"),
    "gradient_to_user_input": ("gradients_to_user_inputs", "user_input_name"),
}
"""Kind of a spec -> the table of schema 1, from names of values to targets; and the field of the spec for a target."""


def upgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Upgrade a schema 1 program to schema 2; constants go into the log.

    Raises:
        PayloadError, UnsupportedError: a constant that cannot be lifted.
        SchemaError, JsonError, LimitError: a tree spec that is none.
    """
    tree, lifted = lift(tree, log)
    blobs: list[str] = []

    def custom_object(value: Any, path: Path) -> Any:
        name = f"_lifted_custom_obj{len(blobs)}"
        blobs.append(name)
        log.constants[name] = decode_bytes(value["blob"], log.place((*path, "blob")))
        log.changed("an inline custom object became a constant", path)
        return {"name": name}

    visitors = {
        "CustomObjArgument": custom_object,
        "Graph": _upgrade_graph,
        "Node": _upgrade_node,
        "SymExpr": lambda value, _: value if value["hint"] is None else {**value, "hint": {"as_int": value["hint"]}},
        "SymBool": arm("as_expr", lambda text: {"expr_str": text, "hint": None}),
    }
    new = rewrite(tree, "1", visitors)
    _check_equalities(tree, log)
    if new["example_inputs"] is not None:
        log.lost("example_inputs", "example inputs inside the program", ("example_inputs",))
    return {
        "graph_module": _upgrade_module(new["graph_module"], lifted, log),
        **without(new, "graph_module", "equality_constraints", "example_inputs"),
        "dialect": "ATEN",
    }


def downgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Downgrade a schema 2 program to schema 1; the log must have the bytes of its constants."""

    def node(value: Any, path: Path) -> Any:
        return {
            **value,
            "target": hops.to_2_1(value["target"]),
            "metadata": metadata.to_2_1(value["metadata"], (*path, "metadata"), log),
        }

    def hint(value: Any, path: Path) -> Any:
        number = (value["hint"] or {}).get("as_int")
        if value["hint"] is not None and number is None:
            log.lost("hints", "a hint that is no int", (*path, "hint"))
        return {**value, "hint": number}

    def truth(value: Any, path: Path) -> Any:
        if "as_expr" not in value:
            return value
        if value["as_expr"]["hint"] is not None:
            log.lost("hints", "the hint of a truth value", (*path, "as_expr", "hint"))
        return {"as_expr": value["as_expr"]["expr_str"]}

    def custom_object(value: Any, path: Path) -> Any:
        data = log.constants.get(value["name"])
        if not isinstance(data, bytes):
            log.blocked("a custom object whose bytes are not given", path)
            data = b""
        return {"blob": base64.b64encode(data).decode()}

    def graph(value: Any, _: Path) -> Any:
        values = {name: {"meta": meta} for name, meta in value["tensor_values"].items()}
        return {**value, "tensor_values": values, "constants": {}}

    equalities = _equalities(tree)
    visitors = {"CustomObjArgument": custom_object, "Graph": graph, "Node": node, "SymExpr": hint, "SymBool": truth}
    new = rewrite(tree, "2", visitors)
    if new["dialect"] != "ATEN":
        log.lost("dialect", f"the dialect {new['dialect']!r}", ("dialect",))
    return {
        **without(new, "dialect"),
        "graph_module": _downgrade_module(new["graph_module"], log),
        "equality_constraints": equalities,
        "example_inputs": None,
    }


def _upgrade_graph(value: Any, _: Path) -> Any:
    values = {name: entry["meta"] for name, entry in value["tensor_values"].items()}
    return {**without(value, "constants"), "tensor_values": values}


def _upgrade_node(value: Any, _: Path) -> Any:
    return {**value, "target": hops.from_2_1(value["target"]), "metadata": metadata.from_2_1(value["metadata"])}


def _upgrade_module(module: Tree, lifted: Mapping[str, dict[str, Any]], log: ConversionLog) -> Tree:
    graph, tables = module["graph"], module["signature"]
    specs = [_targeting(argument, _INPUTS, tables) or {"user_input": {"arg": argument}} for argument in graph["inputs"]]
    for name in lifted:
        log.changed("a constant inside the graph became a lifted input", ("graph_module", "graph", "inputs", name))
    calls = module["call_spec"]
    path = ("graph_module", "call_spec", "in_spec")
    root = {
        "inputs": [],
        "outputs": [],
        "in_spec": texts.with_keywords(calls["in_spec"], path, log),
        "out_spec": calls["out_spec"],
    }
    entries = [entry for entry in module["module_call_graph"] if entry["fqn"]]
    upgraded = {
        **without(module, "call_spec"),
        "graph": {**graph, "tensor_values": {**lifted, **graph["tensor_values"]}},
        "signature": {"input_specs": specs, "output_specs": _output_specs(graph["outputs"], tables)},
        "module_call_graph": [{"fqn": "", "signature": root}, *entries],
    }
    arguments = [{"as_tensor": {"name": name}} for name in lifted]
    constants = [{"tensor_constant": {"arg": {"name": n}, "tensor_constant_name": n}} for n in lifted]
    return with_lifted(upgraded, arguments, constants)


def _targeting(argument: dict[str, Any], kinds: Mapping[str, tuple[str, str]], tables: Tree) -> Tree | None:
    """Return the spec of a value that one of the tables has; None if none has it."""
    name = argument.get("as_tensor", {}).get("name")
    for kind, (table, field) in kinds.items():
        if name in tables.get(table, ()):
            return {kind: {"arg": {"name": name}, field: tables[table][name]}}
    return None


def _output_specs(outputs: list[dict[str, Any]], tables: Tree) -> list[dict[str, Any]]:
    """Return one spec per output: buffer mutations first, then user outputs, then gradients."""
    backward = tables["backward_signature"] or {}
    mutated = {_MUTATED: dict(tables[_MUTATED])}
    users = list(tables["user_outputs"])
    specs: list[dict[str, Any]] = []
    for argument in outputs:
        name = argument.get("as_tensor", {}).get("name")
        if mutation := _targeting(argument, _OUTPUTS, mutated):
            del mutated[_MUTATED][name]
            specs.append(mutation)
        elif name in users:
            users.remove(name)
            is_loss = name == backward.get("loss_output")
            specs.append({"loss_output": {"arg": {"name": name}}} if is_loss else {"user_output": {"arg": argument}})
        else:
            specs.append(_targeting(argument, _OUTPUTS, backward) or {"user_output": {"arg": argument}})
    return specs


def _downgrade_module(module: Tree, log: ConversionLog) -> Tree:
    graph = module["graph"]
    specs = module["signature"]["input_specs"]
    constants: dict[str, str] = {}
    for index, spec in enumerate(specs):
        if "tensor_constant" not in spec:
            continue
        name, target = spec["tensor_constant"]["arg"]["name"], spec["tensor_constant"]["tensor_constant_name"]
        data = log.constants.get(target, b"")
        if isinstance(data, PickledTensor):
            data = torch_save.dumps(data, target)
        if not data:
            log.blocked(f"the constant {target!r}, whose bytes are not given", (*_SIGNATURE, "input_specs", index))
        if name != target:
            place = (*_SIGNATURE, "input_specs", index, "tensor_constant")
            log.lost("constant_names", f"the name {target!r} of a constant", place)
        constants[name] = base64.b64encode(data).decode()
    inputs = [argument for argument in graph["inputs"] if argument.get("as_tensor", {}).get("name") not in constants]
    values = {name: value for name, value in graph["tensor_values"].items() if name not in constants}
    graph = {**graph, "inputs": inputs, "tensor_values": values, "constants": constants}
    root, entries = _root_call(module["module_call_graph"], log)
    return {
        **module,
        "graph": graph,
        "signature": _tables(module["signature"], log),
        "call_spec": root,
        "module_call_graph": entries,
    }


def _root_call(entries: list[Tree], log: ConversionLog) -> tuple[Tree, list[Tree]]:
    path = ("graph_module", "module_call_graph")
    for index, entry in enumerate(entries):
        if entry["fqn"] == "" and entry["signature"] is not None:
            place = (*path, index, "signature", "in_spec")
            spec = texts.without_keywords(entry["signature"]["in_spec"], place, log)
            rest = [*entries[:index], *entries[index + 1 :]]
            return {"in_spec": spec, "out_spec": entry["signature"]["out_spec"]}, rest
    log.blocked("a module call graph without a root entry, which says how the program is called", path)
    return {"in_spec": "", "out_spec": ""}, entries


def _tables(signature: Tree, log: ConversionLog) -> Tree:
    """Return the flat tables of schema 1."""
    kinds = {**_INPUTS, **_OUTPUTS}
    tables: Tree = {table: {} for table, _ in kinds.values()}
    users: dict[str, list[str]] = {"input": [], "output": []}
    loss = ""
    for what, names in users.items():
        for index, spec in enumerate(signature[f"{what}_specs"]):
            ((kind, content),) = spec.items()
            if kind == f"user_{what}":
                names += _value_name(content["arg"], what, (*_SIGNATURE, f"{what}_specs", index), log)
            elif kind == "loss_output":
                loss = content["arg"]["name"]
                names.append(loss)
            elif kind in kinds:
                table, field = kinds[kind]
                tables[table][content["arg"]["name"]] = content[field]
    gradients = {table: tables.pop(table) for table in ("gradients_to_parameters", "gradients_to_user_inputs")}
    backward = {**gradients, "loss_output": loss} if loss or any(gradients.values()) else None
    outer = {"user_inputs": users["input"], "user_outputs": users["output"], "backward_signature": backward}
    return {**tables, **outer}


def _value_name(argument: dict[str, Any], what: str, path: Path, log: ConversionLog) -> list[str]:
    if (name := value_name(argument)) is not None and "as_custom_obj" not in argument:
        return [name]
    log.blocked(f"a constant as a user {what}", path)
    return []


def _sizes(metas: Mapping[str, Tree]) -> dict[tuple[str, int], str | int]:
    """Return (tensor, dimension) -> its size, a number or the text of an expression."""
    return {
        (name, dimension): size["as_expr"]["expr_str"] if "as_expr" in size else size["as_int"]
        for name, meta in metas.items()
        for dimension, size in enumerate(meta["sizes"])
    }


def _equalities(tree: Tree) -> list[list[list[Any]]]:
    """Return 2.1's equalities of dimensions of user inputs that share a symbol: each with the first of them."""
    module = tree["graph_module"]
    arguments = [spec["user_input"]["arg"] for spec in module["signature"]["input_specs"] if "user_input" in spec]
    names = [argument["as_tensor"]["name"] for argument in arguments if "as_tensor" in argument]
    metas = module["graph"]["tensor_values"]
    by_symbol: dict[str, list[list[Any]]] = {}
    for place, size in _sizes({name: metas[name] for name in names if name in metas}).items():
        if isinstance(size, str) and size.isidentifier():
            by_symbol.setdefault(size, []).append(list(place))
    return [[other, first] for first, *others in by_symbol.values() for other in others]


def _check_equalities(tree: Tree, log: ConversionLog) -> None:
    """Note the constraints that the symbols of the inputs do not already express."""
    values = tree["graph_module"]["graph"]["tensor_values"]
    sizes = _sizes({name: value["meta"] for name, value in values.items()}) if tree["equality_constraints"] else {}
    for index, pair in enumerate(tree["equality_constraints"]):
        first, second = (sizes.get((name, dimension)) for name, dimension in pair)
        if first != second or first is None:
            message = "an equality of dimensions that do not share a symbol"
            log.lost("equality_constraints", message, ("equality_constraints", index))
