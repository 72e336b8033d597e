"""Schema 2 (torch 2.2) and 5.1 (torch 2.3): versions as pairs, custom objects as inputs, persistent buffers.

What changed, upwards:

- `schema_version` became {major, minor}; the index of a device got a default; `storage_offset` became a `SymInt`;
- custom objects got a class name, a table of values and an input spec: those that a graph names without defining them
  are lifted. Their class is not in the file, so it is "";
- a buffer says whether it is persistent: True, as 2.2 kept every buffer in the state dict;
- the results of a higher-order operator are spread (see `hops`), `map_impl` takes lists of values;
- flash attention on the CPU is an operator of its own (see `operator_calls`);
- unbacked symbols are called u0, u1, … and not i0, i1, …;
- a kept call signature names values of the graph: decomposing a program in 2.2 left old names there, which 2.3 on
  refuses. Such a signature is dropped, as which values it means is nowhere in the file.

Nothing else is lost upwards. Lost downwards: that a buffer is not persistent (2.2 keeps it in the state dict), class
names of custom objects. Blocked downwards: a symbolic storage offset, tuples of anything but tensors from a
higher-order operator, operators as arguments, mutated user inputs.
"""

from __future__ import annotations

from typing import Any

from pt2kit.jsontext import Path
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.fx_names import value_name, value_names
from pt2kit.versions.line import hops
from pt2kit.versions.line.constants import with_lifted
from pt2kit.versions.line.texts import call_specs, list_dataclass, rename_symbols, text_dataclass
from pt2kit.versions.operator_calls import from_cpu_operator, to_cpu_operator
from pt2kit.versions.reader_limits import narrow_ranges
from pt2kit.versions.rewrite import values_of, without


def upgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Upgrade a schema 2 program to 5.1."""
    used = dict.fromkeys(value["name"] for value, _ in values_of(tree, "2", "CustomObjArgument"))

    def node(value: Any, path: Path) -> Any:
        return hops.regroup_map(hops.spread_outputs(value), path, log)

    visitors = {
        "CustomObjArgument": lambda value, _: {**value, "class_fqn": ""},
        "Graph": lambda value, path: {**to_cpu_operator(value, path, log), "custom_obj_values": {}},
        "InputToBufferSpec": lambda value, _: {**value, "persistent": True},
        "ModuleCallSignature": call_specs(text_dataclass, log),
        "Node": node,
        "TensorMeta": lambda value, _: {**value, "storage_offset": {"as_int": value["storage_offset"]}},
    }
    new = rename_symbols(tree, "2", "i", "u", visitors)
    module = _drop_signatures(_lift_objects(new["graph_module"], list(used), log), log)
    return {**new, "graph_module": module}


def _drop_signatures(module: Tree, log: ConversionLog) -> Tree:
    """Drop the signatures of kept calls that name values which the graph does not have."""
    known = value_names(module["graph"])

    def checked(entry: Any, place: int) -> Any:
        signature = entry["signature"]
        if entry["fqn"] == "" or signature is None:
            return entry
        used = map(value_name, (*signature["inputs"], *signature["outputs"]))
        missing = [name for name in used if name is not None and name not in known]
        if not missing:
            return entry
        path = ("graph_module", "module_call_graph", place, "signature")
        log.changed(f"the signature of a kept call is dropped: the graph has no value {missing[0]!r}", path)
        return {**entry, "signature": None}

    calls = [checked(entry, place) for place, entry in enumerate(module["module_call_graph"])]
    return {**module, "module_call_graph": calls}


def downgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Downgrade a 5.1 program to schema 2."""

    def node(value: Any, path: Path) -> Any:
        return hops.ungroup_map(hops.gather_outputs(value, path, log), path, log)

    def offset(value: Any, path: Path) -> Any:
        number = value["storage_offset"].get("as_int")
        if number is None:
            log.blocked("a symbolic storage_offset", (*path, "storage_offset"))
        return {**value, "storage_offset": number or 0}

    def buffer(value: Any, path: Path) -> Any:
        if not value["persistent"]:
            log.lost("persistent", f"that the buffer {value['buffer_name']!r} is not persistent", (*path, "persistent"))
        return without(value, "persistent")

    def custom_object(value: Any, path: Path) -> Any:
        if value["class_fqn"]:
            log.lost("class_fqn", "the class name of a custom object", (*path, "class_fqn"))
        return without(value, "class_fqn")

    visitors = {
        "CustomObjArgument": custom_object,
        "Graph": lambda value, path: from_cpu_operator(without(value, "custom_obj_values"), path, log),
        "InputToBufferSpec": buffer,
        "ModuleCallSignature": call_specs(list_dataclass, log),
        "Node": node,
        "TensorMeta": offset,
    }
    narrowed = narrow_ranges(tree, "5.1", log, "5.3")
    return rename_symbols(_unlift_objects(narrowed), "5.1", "u", "i", visitors)


def _lift_objects(module: Tree, names: list[str], log: ConversionLog) -> Tree:
    """Add inputs of the root graph for the custom objects that nodes name."""
    defined = {
        argument["as_custom_obj"]["name"] for argument in module["graph"]["inputs"] if "as_custom_obj" in argument
    }
    values = {name: {"name": name, "class_fqn": ""} for name in names}
    for name in values:
        log.changed("a custom object became a lifted input", ("graph_module", "graph", "inputs", name))
    objects = [value for name, value in values.items() if name not in defined]
    specs = [{"custom_obj": {"arg": value, "custom_obj_name": value["name"]}} for value in objects]
    lifted = with_lifted(module, [{"as_custom_obj": value} for value in objects], specs)
    return {**lifted, "graph": {**lifted["graph"], "custom_obj_values": values}}


def _unlift_objects(tree: Tree) -> Tree:
    """Remove inputs for custom objects whose input has the name they are kept under; nodes name the objects instead."""
    module = tree["graph_module"]
    specs = module["signature"]["input_specs"]
    gone = {
        spec["custom_obj"]["arg"]["name"]
        for spec in specs
        if "custom_obj" in spec and spec["custom_obj"]["arg"]["name"] == spec["custom_obj"]["custom_obj_name"]
    }
    if not gone:
        return tree
    graph = module["graph"]
    inputs = [argument for argument in graph["inputs"] if argument.get("as_custom_obj", {}).get("name") not in gone]
    kept = [spec for spec in specs if spec.get("custom_obj", {}).get("custom_obj_name") not in gone]
    signature = {**module["signature"], "input_specs": kept}
    return {**tree, "graph_module": {**module, "graph": {**graph, "inputs": inputs}, "signature": signature}}
