"""Higher-order operators between releases: target names, grouping of outputs, and arguments that were re-typed.

    2.1          torch.ops.map_impl, torch.ops.cond, torch.ops.higher_order.cond
    2.2 to 2.4   torch.ops.higher_order.…; for some that are classes of their own torch._higher_order_ops.<module>.…
    from 2.5     torch.ops.higher_order.…

The releases that have one are in the table of operators (`schema.operators`).

A higher-order operator has no schema, so the reader must learn from the node whether a single output is what the call
returns, or the first entry of a tuple:

    1, 2           a tuple is one list: [{"as_tensors": [a, b]}]
    5.1 to 8.2     a tuple of one is a list, a longer one is spread: [{"as_tensors": [a]}], [{"as_tensor": a}, …]
    from 8.6       always spread; `is_hop_single_tensor_return` tells a single tensor from a tuple of one

Source: `serialize_hoo_outputs` and `deserialize_outputs` in torch/_export/serde/serialize.py (2.13), and the files of
2.1 to 2.8.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.schema.names import ATEN_OPS, HIGHER_ORDER_OPS, free_name
from pt2kit.schema.operators import known_releases
from pt2kit.versions.conversion_log import ConversionLog

_MODULES: Final = "torch._higher_order_ops."
_FIRST: Final[Mapping[str, str]] = {"torch.ops.map_impl": "map_impl", "torch.ops.cond": "cond"}
_IN_MODULES: Final[Mapping[str, str]] = {
    "auto_functionalized": "auto_functionalize.auto_functionalized",
    "with_effects": "effects.with_effects",
    "wrap_with_set_grad_enabled": "wrap.wrap_with_set_grad_enabled",
}

FUNCTIONS_SINCE: Final[Mapping[str, str]] = {"torch._functorch.predispatch.": "2.13"}
"""Beginnings of targets that are Python functions, and the first release that writes and reads them."""


def is_higher_order(target: str) -> bool:
    """Return whether a target names a higher-order operator, in the spelling of any release."""
    return target.startswith((HIGHER_ORDER_OPS, _MODULES)) or target in _FIRST


def having(target: str) -> list[str]:
    """Return the releases that write and read a Python function; none for one without a history here."""
    first = next((release for start, release in FUNCTIONS_SINCE.items() if target.startswith(start)), None)
    return [] if first is None else list(known_releases()[known_releases().index(first) :])


def from_2_1(target: str) -> str:
    """Return the 2.2 name of a target of 2.1."""
    return HIGHER_ORDER_OPS + _FIRST[target] if target in _FIRST else target


def to_2_1(target: str) -> str:
    """Return the 2.1 name of a target of 2.2: only `map_impl` had another name in the files it wrote."""
    return "torch.ops.map_impl" if target == f"{HIGHER_ORDER_OPS}map_impl" else target


def from_2_4(target: str) -> str:
    """Return the 2.5 name of a target of 2.3 or 2.4."""
    return HIGHER_ORDER_OPS + target.rpartition(".")[2] if target.startswith(_MODULES) else target


def to_2_4(target: str) -> str:
    """Return the 2.4 name of a target of 2.5."""
    name = target.removeprefix(HIGHER_ORDER_OPS)
    return _MODULES + _IN_MODULES[name] if target.startswith(HIGHER_ORDER_OPS) and name in _IN_MODULES else target


Node = dict[str, Any]

_SYMBOLIC: Final = frozenset({"as_sym_int", "as_sym_float", "as_sym_bool"})


def spread_outputs(node: Node) -> Node:
    """Return a call of 2.2 with a tuple of several results, as 2.3 writes it."""
    match node["outputs"]:
        case [{"as_tensors": [_, _, *_] as tensors}] if is_higher_order(node["target"]):
            return {**node, "outputs": [{"as_tensor": tensor} for tensor in tensors]}
    return node


def gather_outputs(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return a call of 2.3 as 2.2 writes it; a tuple of anything but tensors has no form in 2.2."""
    outputs = node["outputs"]
    if not is_higher_order(node["target"]) or len(outputs) < 2:
        return node
    if all("as_tensor" in output for output in outputs):
        return {**node, "outputs": [{"as_tensors": [output["as_tensor"] for output in outputs]}]}
    log.blocked("a tuple of other things than tensors from a higher-order operator", (*path, "outputs"))
    return {**node, "outputs": []}


def unwrap_outputs(node: Node) -> Node:
    """Return a call of 2.6 in the form of 2.7: spread, and with the flag that tells the kind of a single output."""
    if not is_higher_order(node["target"]):
        return {**node, "is_hop_single_tensor_return": None}
    match node["outputs"]:
        case [{"as_tensors": [tensor]}]:
            outputs, single = [{"as_tensor": tensor}], False
        case [output] as outputs:
            single = any(arm == "as_tensor" or arm in _SYMBOLIC for arm in output)
        case outputs:
            single = False
    return {**node, "outputs": outputs, "is_hop_single_tensor_return": single}


def mark_outputs(node: Node) -> Node:
    """Return a call of the development state 8.6 with the flag of 2.7 for a single output."""
    if node.get("is_hop_single_tensor_return") is not None or not is_higher_order(node["target"]):
        return node
    return unwrap_outputs(node)


def wrap_outputs(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return a call of 2.7 in the form of 2.6."""
    node = dict(node)
    single = node.pop("is_hop_single_tensor_return", None)
    if not is_higher_order(node["target"]) or len(node["outputs"]) != 1:
        return node
    (output,) = node["outputs"]
    (arm,) = output
    if arm == "as_tensor" and not single:
        node["outputs"] = [{"as_tensors": [output["as_tensor"]]}]
    elif arm in _SYMBOLIC and not single:
        log.blocked("a tuple of one symbolic value from a higher-order operator", (*path, "outputs"))
    return node


def add_inputs(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return `while_loop(condition, body, carried)` of 2.3 with the list of additional inputs that 2.4 added."""
    if not _is_while_loop(node) or len(node["inputs"]) != 3:
        return node
    log.changed("while_loop takes a list of additional inputs since 2.4", path)
    return {**node, "inputs": [*node["inputs"], {**node["inputs"][-1], "arg": {"as_tensors": []}}]}


def remove_inputs(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return `while_loop` of 2.4 without additional inputs, which 2.3 does not have."""
    if not _is_while_loop(node) or len(node["inputs"]) != 4:
        return node
    *inputs, more = node["inputs"]
    if any(value != [] for value in more["arg"].values()):
        log.blocked("additional inputs of while_loop", (*path, "inputs", 3))
    return {**node, "inputs": inputs}


def _is_while_loop(node: Node) -> bool:
    return from_2_4(node["target"]) == f"{HIGHER_ORDER_OPS}while_loop"


def regroup_map(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return `map_impl(body, count, *values)` of 2.1 and 2.2 as `map_impl(body, mapped, others)`."""
    if node["target"] != f"{HIGHER_ORDER_OPS}map_impl":
        return node
    match node["inputs"]:
        case [body, {"arg": {"as_int": count}}, *values] if 0 <= count <= len(values):
            mapped = _as_list(values[:count], body, (*path, "inputs"), log, "5.1")
            others = _as_list(values[count:], body, (*path, "inputs"), log, "5.1")
            log.changed("map_impl takes lists of values since 2.3", path)
            return {**node, "inputs": [body, mapped, others]}
    return node


def ungroup_map(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return `map_impl(body, mapped, others)` in the form of 2.1 and 2.2."""
    if node["target"] != f"{HIGHER_ORDER_OPS}map_impl":
        return node
    match node["inputs"]:
        case [body, mapped, others]:
            first, rest = _entries(mapped), _entries(others)
            if first is not None and rest is not None:
                count = {**mapped, "arg": {"as_int": len(first)}}
                return {**node, "inputs": [body, count, *first, *rest]}
    log.blocked("map_impl with other arguments than a body and two lists of tensors", (*path, "inputs"))
    return node


def spread_operands(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return `invoke_subgraph(body, name, operands)` of 2.6 and 2.7 as `invoke_subgraph(body, name, *operands)`."""
    if node["target"] != f"{HIGHER_ORDER_OPS}invoke_subgraph":
        return node
    match node["inputs"]:
        case [body, name, operands] if (entries := _entries(operands)) is not None:
            log.changed("invoke_subgraph takes its operands one by one since 2.8", path)
            return {**node, "inputs": [body, name, *entries]}
    return node


def gather_operands(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return `invoke_subgraph(body, name, *operands)` in the form of 2.6 and 2.7."""
    if node["target"] != f"{HIGHER_ORDER_OPS}invoke_subgraph" or len(node["inputs"]) < 2:
        return node
    body, name, *operands = node["inputs"]
    if len(operands) == 1 and _entries(operands[0]) is not None:
        return node
    return {**node, "inputs": [body, name, _as_list(operands, body, (*path, "inputs"), log)]}


_SCANS: Final = {f"{HIGHER_ORDER_OPS}scan": (3, 4), f"{HIGHER_ORDER_OPS}associative_scan": (2,)}
"""Operator -> the places where 2.6 has the dimension, and for scan whether it goes backwards."""


def plain_scans(graph: Node) -> Node:
    """Return a graph of 2.6 whose scans go forwards along the first dimension: their operands are flipped and permuted
    before, their stacked results flipped after."""
    values = dict(graph["tensor_values"])
    taken = ChainMap(values, *(table for key, table in graph.items() if key.endswith("_values")))

    def new(stem: str, meta: dict[str, Any]) -> str:
        name = free_name(stem, taken.__contains__)
        values[name] = meta
        return name

    nodes = [one for node in graph["nodes"] for one in _plain_scan(node, values, new)]
    return graph if len(nodes) == len(graph["nodes"]) else {**graph, "nodes": nodes, "tensor_values": values}


def _plain_scan(node: Node, values: Mapping[str, Any], new: Callable[[str, dict[str, Any]], str]) -> list[Node]:
    """Return a scan along the first dimension with the nodes before and after it; the node itself if it is one, or not
    what 2.6 writes."""
    if node["target"] != f"{HIGHER_ORDER_OPS}scan" or len(node["inputs"]) < 5:
        return [node]
    body, init, xs, dimension, backwards, *others = node["inputs"]
    dim, is_backwards = dimension["arg"].get("as_int"), backwards["arg"].get("as_bool")
    operands = [held["name"] for held in xs["arg"].get("as_tensors", ())]
    outputs = [output.get("as_tensor", {}).get("name") for output in node["outputs"]]
    first = len(init["arg"].get("as_tensors", ()))
    metas = [values.get(name, {"sizes": []}) for name in operands]
    ranks = [min(len(meta["sizes"]), len(meta["strides"])) if meta["sizes"] else 0 for meta in metas]
    is_whole = dim is not None and 0 <= dim < min(ranks, default=0) and values.keys() >= {*outputs}
    if not (dim or is_backwards) or not is_whole:
        return [node]
    before, after = [], []
    for place, (name, meta) in enumerate(zip(operands, metas, strict=True)):
        if is_backwards:
            operands[place] = new("flip", meta)
            before.append(_moved("flip", name, [dim], operands[place], node))
        if dim:
            order = [dim, *(axis for axis in range(ranks[place]) if axis != dim)]
            moved = {key: [meta[key][axis] for axis in order] for key in ("sizes", "strides")}
            permuted = new("permute", {**meta, **moved})
            before.append(_moved("permute", operands[place], order, permuted, node))
            operands[place] = permuted
    for place in range(first, len(outputs) if is_backwards else 0):
        stacked = new("flip", values[outputs[place]])
        after.append(_moved("flip", stacked, [0], outputs[place], node))
        outputs[place] = stacked
    options = [{**dimension, "arg": {"as_int": 0}}, {**backwards, "arg": {"as_bool": False}}]
    names = {**xs, "arg": {"as_tensors": [{"name": name} for name in operands]}}
    results = [{"as_tensor": {"name": name}} for name in outputs]
    return [*before, {**node, "inputs": [body, init, names, *options, *others], "outputs": results}, *after]


def _moved(operator: str, operand: str, dims: list[int], result: str, origin: Node) -> Node:
    """Return a call of flip or permute, with the traces of the scan that it is for."""
    inputs = [{"name": "self", "arg": {"as_tensor": {"name": operand}}}, {"name": "dims", "arg": {"as_ints": dims}}]
    traces = {key: text for key, text in origin["metadata"].items() if key in ("stack_trace", "nn_module_stack")}
    outputs = [{"as_tensor": {"name": result}}]
    return {"target": f"{ATEN_OPS}{operator}.default", "inputs": inputs, "outputs": outputs, "metadata": traces}


def drop_scan_options(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return `scan(body, init, xs, dim, reverse, others)` of 2.6 as `scan(body, init, xs, others)`; the other one
    alike."""
    places = _SCANS.get(node["target"], ())
    inputs = node["inputs"]
    options = [inputs[place]["arg"] for place in places if place < len(inputs)]
    if not places or any(arm not in ("as_int", "as_bool") for option in options for arm in option):
        return node
    if any(any(option.values()) for option in options):
        message = f"{node['target']} along another dimension than the first, or backwards"
        log.lost("scan_options", message, (*path, "inputs"))
    log.changed(f"{node['target']} takes no dimension since 2.7", path)
    kept = [named for place, named in enumerate(inputs) if place not in places]
    if node["target"].endswith("associative_scan"):
        kept.append(_as_list([], inputs[0], path, log))
    return {**node, "inputs": kept}


def add_scan_options(node: Node, path: Path, log: ConversionLog) -> Node:
    """Return a scan in the form of 2.6: along the first dimension, forwards."""
    inputs = node["inputs"]
    if node["target"] not in _SCANS or not inputs:
        return node
    kind = {"kind": inputs[0]["kind"]} if "kind" in inputs[0] else {}
    dimension = {"name": "", "arg": {"as_int": 0}, **kind}
    if node["target"].endswith("associative_scan"):
        if len(inputs) > 2 and _entries(inputs[2]) != []:
            log.blocked("associative_scan with values in addition to those that it scans", (*path, "inputs"))
        return {**node, "inputs": [*inputs[:2], dimension]}
    return {**node, "inputs": [*inputs[:3], dimension, {"name": "", "arg": {"as_bool": False}, **kind}, *inputs[3:]]}


_LISTS: Final = {"as_tensor": "as_tensors", "as_sym_int": "as_sym_ints", "as_sym_bool": "as_sym_bools"}
_ENTRIES: Final = {arm: single for single, arm in _LISTS.items()}


def _as_list(
    values: list[dict[str, Any]], like: dict[str, Any], path: Path, log: ConversionLog, since: str | None = None
) -> dict[str, Any]:
    """Return named arguments as one list of them, positional if `like` is; [] is written as a list of tensors."""
    arms = {arm for value in values for arm in value["arg"]}
    kind = {"kind": like["kind"]} if "kind" in like else {}
    if len(arms) > 1 or not arms <= _LISTS.keys():
        log.blocked(f"values of several kinds ({', '.join(sorted(arms))}) as one list", path, since)
        return {"name": "", "arg": {"as_tensors": []}, **kind}
    arm = arms.pop() if arms else "as_tensor"
    return {"name": "", "arg": {_LISTS[arm]: [value["arg"][arm] for value in values]}, **kind}


def _entries(argument: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return a list argument as one named argument per entry; None for any other argument."""
    ((arm, content),) = argument["arg"].items()
    if arm in _ENTRIES:
        return [{**argument, "arg": {_ENTRIES[arm]: entry}} for entry in content]
    return [] if content == [] else None
