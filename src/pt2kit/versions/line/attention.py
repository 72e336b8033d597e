"""Flash attention on the CPU, which got an operator of its own between torch 2.2 and 2.3.

    2.1, 2.2     aten._scaled_dot_product_flash_attention          nine results, of which files list the seven tensors
    2.3 on       aten._scaled_dot_product_flash_attention_for_cpu  two: the output and logsumexp

The operator of 2.2 still exists, but not for CPU tensors. Where a program uses none of the other results, as programs
do that were exported from `scaled_dot_product_attention`, they are dropped. Upwards nothing that is used is lost; a
downgrade writes the other results again, by the names and types that 2.2 gave them.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.schema import ScalarType
from pt2kit.versions.conversion_log import ConversionLog

Graph = dict[str, Any]

FLASH: Final = "torch.ops.aten._scaled_dot_product_flash_attention.default"
FLASH_CPU: Final = "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default"
_KEPT: Final = 2
_OTHERS: Final = (
    (2, ScalarType.INT),
    (3, ScalarType.INT),
    (6, ScalarType.LONG),
    (7, ScalarType.LONG),
    (8, None),  # the debug mask has the type of the query
)
"""Place among the nine results, and element type, of the tensors that the new operator does not have; all scalars."""


def to_cpu_operator(graph: Graph, path: Path, log: ConversionLog) -> Graph:
    """Return a graph of 2.2 with the operator that 2.3 uses for CPU tensors."""
    if not any(node["target"] == FLASH for node in graph["nodes"]):
        return graph
    used = _used_names(graph)
    values = dict(graph["tensor_values"])
    nodes = []
    for index, node in enumerate(graph["nodes"]):
        dropped = [output["as_tensor"]["name"] for output in node["outputs"][_KEPT:] if "as_tensor" in output]
        on_cpu = node["target"] == FLASH and _device(node, graph) == "cpu"
        if on_cpu and len(node["outputs"][_KEPT:]) == len(dropped) and used.isdisjoint(dropped):
            for name in dropped:
                values.pop(name, None)
            inputs = [named for named in node["inputs"] if named["name"] != "return_debug_mask"]
            node = {**node, "target": FLASH_CPU, "inputs": inputs, "outputs": node["outputs"][:_KEPT]}
            log.changed(f"{FLASH} is {FLASH_CPU} on the CPU", (*path, "nodes", index, "target"))
        nodes.append(node)
    return {**graph, "nodes": nodes, "tensor_values": values}


def from_cpu_operator(graph: Graph, path: Path, log: ConversionLog) -> Graph:
    """Return a graph of 2.3 with the operator of 2.2, which has no parameter for an attention mask."""
    if not any(node["target"] == FLASH_CPU for node in graph["nodes"]):
        return graph
    values = dict(graph["tensor_values"])
    nodes = []
    for index, node in enumerate(graph["nodes"]):
        if node["target"] == FLASH_CPU:
            for place, named in enumerate(node["inputs"]):
                if named["name"] == "attn_mask" and "as_none" not in named["arg"]:
                    log.blocked(
                        f"the argument attn_mask of {FLASH_CPU}", (*path, "nodes", index, "inputs", place), "5.1"
                    )
            names = _other_names(node, values)
            values = _with_others(values, node, names)
            outputs = [*node["outputs"], *({"as_tensor": {"name": name}} for name in names)]
            inputs = [named for named in node["inputs"] if named["name"] != "attn_mask"]
            node = {**node, "target": FLASH, "inputs": inputs, "outputs": outputs}
        nodes.append(node)
    return {**graph, "nodes": nodes, "tensor_values": values}


def _other_names(node: dict[str, Any], values: dict[str, Any]) -> list[str]:
    """Return torch's names of unused results, derived from the node's; that of logsumexp shows the pattern."""
    known = [output["as_tensor"]["name"] for output in node["outputs"] if "as_tensor" in output]
    match = re.fullmatch(r"(.+)_unused_1", known[1]) if len(known) > 1 else None
    base = match[1].replace("_for_cpu", "") if match else f"{known[0] if known else 'flash'}_flash"
    while any(f"{base}_unused_{place}" in values for place, _ in _OTHERS):
        base += "_"
    return [f"{base}_unused_{place}" for place, _ in _OTHERS]


def _with_others(values: dict[str, Any], node: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the value table with entries for the other results, after that of logsumexp."""
    known = [output["as_tensor"]["name"] for output in node["outputs"] if "as_tensor" in output]
    first = values[known[0]] if known and known[0] in values else None
    if first is None:
        return values
    scalar = {**first, "sizes": [], "strides": [], "storage_offset": first["storage_offset"], "requires_grad": False}
    metas = {
        name: {**scalar, "dtype": first["dtype"] if dtype is None else int(dtype)}
        for name, (_, dtype) in zip(names, _OTHERS, strict=True)
    }
    table: dict[str, Any] = {}
    for name, meta in values.items():
        table[name] = meta
        if name == known[-1]:
            table |= metas
    return table


def _device(node: dict[str, Any], graph: Graph) -> str:
    """Return the type of the query's device; "" if the graph does not have it."""
    for named in node["inputs"]:
        if named["name"] == "query" and "as_tensor" in named["arg"]:
            meta = graph["tensor_values"].get(named["arg"]["as_tensor"]["name"])
            return str(meta["device"]["type"]) if meta else ""
    return ""


def _used_names(graph: Graph) -> set[str]:
    """Return the names of all tensors that a node or the graph's outputs use."""
    arguments = [named["arg"] for node in graph["nodes"] for named in node["inputs"]]
    names: set[str] = set()
    for argument in [*arguments, *graph["outputs"]]:
        match argument:
            case {"as_tensor": {"name": name}}:
                names.add(name)
            case {"as_tensors": tensors}:
                names |= {tensor["name"] for tensor in tensors}
            case {"as_optional_tensors": tensors}:
                present = [tensor["as_tensor"] for tensor in tensors if "as_tensor" in tensor]
                names |= {tensor["name"] if isinstance(tensor, dict) else tensor for tensor in present}
    return names
