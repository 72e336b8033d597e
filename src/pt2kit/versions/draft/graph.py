"""Graphs of the design draft, converted from and to schema 1: nodes, arguments, values; its operators' schemas.

    draft                                            schema 1
    args without names, kwargs                       named arguments
    as_symint, as_symints: names only                SymIntArgument: a name or a number
    a branch is a whole graph module                 a branch is a graph with a name
    enum members by name                             by number
    values as lists of {name, …}                     as tables

What schema 1 has and the draft has not blocks a downgrade: lists of strings, of optional tensors, of truth values;
symbolic truth values; custom objects; inputs and outputs that are no tensors.

The draft lists positional arguments without names and results without grouping. Nothing in a program says which release
of torch it is for: its operators are those that torch 2.13 registers (`schema.operators`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from pt2kit.errors import UnsupportedError
from pt2kit.jsontext import Path
from pt2kit.schema.fieldtable import frozen_table
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import find_operator
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.fx_names import renamed, renamed_node
from pt2kit.versions.line.hops import is_higher_order
from pt2kit.versions.rewrite import Visitor, without

Graph = dict[str, Any]
Argument = dict[str, Any]

_RELEASE: Final = "2.13"
OUTPUTS: Final = "pt2kit.outputs"
"""Key of a node's extra metadata: the one arm of schema 1 that its results were grouped in."""


def _numbered(*names: str) -> Mapping[str, int]:
    """Return the members of an enum with their numbers in schema 1."""
    return MappingProxyType({name: number for number, name in enumerate(names, 1)})


SCALAR_TYPES: Final = _numbered(
    "u8", "i8", "i16", "i32", "i64", "f16", "f32", "f64", "c32", "c64", "c128", "b8", "bf16"
)
LAYOUTS: Final = _numbered("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "strided")
MEMORY_FORMATS: Final = _numbered("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
_ENUMS: Final = {"ScalarType": SCALAR_TYPES, "Layout": LAYOUTS, "MemoryFormat": MEMORY_FORMATS}

_ARMS: Final = {"as_symint": "as_sym_int", "as_symints": "as_sym_ints", "as_str": "as_string", "as_gm": "as_graph"}
"""Arms of arguments that schema 1 calls otherwise: draft -> schema 1."""
_OLDER_ARMS: Final = {newer: older for older, newer in _ARMS.items()}
_METADATA: Final = ("stack_trace", "nn_module_stack")


def positional_names(target: str) -> tuple[str, ...] | None:
    """Return the names of an operator's positional arguments in order ("torch.ops.aten.add.Tensor": self, other).

    Returns:
        None for an operator that torch does not have.
    """
    if (operator := find_operator(target.removeprefix(OPS), _RELEASE)) is None:
        return None
    return tuple(parameter.name for parameter in operator.parameters.values() if not parameter.is_keyword_only)


def returns_list(target: str) -> bool:
    """Return whether the results of a call are one list of tensors: of "torch.ops.aten.split.Tensor", and of
    higher-order operators."""
    operator = find_operator(target.removeprefix(OPS), _RELEASE)
    has_list = operator is not None and [str(result) for result in operator.results] == ["Tensor[]"]
    return has_list or is_higher_order(target)


def upgrade_visitors(log: ConversionLog, hints: Mapping[str, Any]) -> dict[str, Visitor]:
    """Return visitors that turn the parts of a draft's graph, without its branches, into those of schema 1.

    Args:
        log: for messages.
        hints: expression -> its hint.

    Raises (while visiting):
        UnsupportedError: positional arguments of an operator whose schema is not known.
    """
    return {
        **{name: partial(_number, members) for name, members in _ENUMS.items()},
        "Argument": _upgrade_argument,
        "Device": _upgrade_device,
        "Node": partial(_upgrade_node, log),
        "ReturnArgument": _upgrade_argument,
        "SymInt": lambda size, _: _upgrade_size(size, hints),
        "SymIntArgument": lambda value, _: {"as_name": value["name"]},
        # A number, as every exporter writes it.
        "TensorMeta": lambda meta, _: {**meta, "storage_offset": meta["storage_offset"].get("as_int", 0)},
    }


def upgrade_graph(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return a graph, whose parts are those of schema 1, without the inputs that its module lifts.

    Args:
        graph: the draft's lists of values, and nodes of schema 1.
        names: old name -> new name of values.
    """
    symbols = {value["name"]: value["value"] for value in graph["symint_values"]}
    computed = {
        out["as_sym_int"]["as_name"] for node in graph["nodes"] for out in node["outputs"] if "as_sym_int" in out
    }
    # Symbolic ints that are numbers and that no node computes represent the numbers.
    numbers = {name: value for name, value in symbols.items() if "as_int" in value and name not in computed}
    nodes = [
        {**node, "inputs": [{**named, "arg": _with_numbers(named["arg"], numbers)} for named in node["inputs"]]}
        for node in graph["nodes"]
    ]
    return {
        "inputs": [{"as_tensor": tensor} for tensor in renamed(graph["inputs"], names)],
        "outputs": [{"as_tensor": tensor} for tensor in renamed(graph["outputs"], names)],
        "nodes": [renamed_node(node, names) for node in nodes],
        "tensor_values": {
            names.get(value["name"], value["name"]): {"meta": value["meta"]} for value in graph["tensor_values"]
        },
        "sym_int_values": {name: value for name, value in symbols.items() if name not in numbers},
        "sym_bool_values": {},
        "is_single_tensor_return": False,
        "constants": {},
    }


def _upgrade_size(size: dict[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    if "as_sym" not in size:
        return size
    hint = hints.get(size["as_sym"])
    return {"as_expr": {"expr_str": size["as_sym"], "hint": hint if isinstance(hint, int) else None}}


def _number(members: Mapping[str, int], name: str, _: Path) -> int:
    return members[name]


def _upgrade_argument(value: Argument, _: Path) -> Argument:
    ((arm, content),) = value.items()
    return {_ARMS.get(arm, arm): [] if arm == "as_none" else content}


def _upgrade_device(device: dict[str, Any], _: Path) -> dict[str, Any]:
    """Return a device whose index may be missing; the draft's must be a number: 0 for the CPU, else -1 for none."""
    none = device["index"] < 0 or (device["type"] == "cpu" and device["index"] == 0)
    return {**device, "index": None if none else device["index"]}


def _upgrade_node(log: ConversionLog, node: dict[str, Any], path: Path) -> dict[str, Any]:
    target = node["target"]
    if target.count(".") == 2 and not target.startswith(("torch.", "_operator.", "math.")):
        target = f"{OPS}{target}"
    positional = _positional_names(target, len(node["args"]), log.place((*path, "args")))
    pairs = [*zip(positional, node["args"], strict=True), *node["kwargs"].items()]
    extra = dict(node["metadata"]["extra"])
    grouped = extra.pop(OUTPUTS, "")
    outputs = node["outputs"]
    as_list = grouped == "as_tensors" or (not grouped and returns_list(target))
    if as_list and all("as_tensor" in result for result in outputs):
        outputs = [{"as_tensors": [result["as_tensor"] for result in outputs]}]
    return {
        "target": target,
        "inputs": [{"name": name, "arg": value} for name, value in pairs],
        "outputs": outputs,
        "metadata": {**{key: node["metadata"][key] for key in _METADATA if node["metadata"][key]}, **extra},
    }


def _positional_names(target: str, count: int, place: str) -> tuple[str, ...]:
    if is_higher_order(target):
        return ("",) * count
    names = ("a", "b", "c") if target.startswith(("_operator.", "math.")) else positional_names(target)
    if count and (names is None or len(names) < count):
        raise UnsupportedError(
            f"{place}: expected keyword arguments for {target}, whose schema is not known here, got {count} "
            "positional ones"
        )
    return (names or ())[:count]


def _with_numbers(argument: Argument, numbers: Mapping[str, dict[str, int]]) -> Argument:
    """Return an argument with numbers in place of the symbolic ints that represent them."""
    match argument:
        case {"as_sym_int": {"as_name": name}} if name in numbers:
            return numbers[name]
        case {"as_sym_ints": entries}:
            return {"as_sym_ints": [numbers.get(entry["as_name"], entry) for entry in entries]}
    return argument


def downgrade_visitors(log: ConversionLog) -> dict[str, Visitor]:
    """Return visitors that turn the parts of a graph of schema 1, without its branches, into those of the draft.

    Args:
        log: gets what is blocked.
    """
    return {
        **{name: partial(_member, name, log) for name in _ENUMS},
        "Device": _downgrade_device,
        "NamedArgument": partial(_downgrade_argument, log),
        # Hints are kept elsewhere.
        "SymInt": lambda size, _: {"as_sym": size["as_expr"]["expr_str"]} if "as_expr" in size else size,
        "TensorMeta": lambda meta, _: {**meta, "storage_offset": {"as_int": meta["storage_offset"]}},
    }


def downgrade_graph(graph: Graph, path: Path, log: ConversionLog) -> Graph:
    """Return a graph of schema 1, whose arguments and metas are those of the draft, as a graph of the draft."""
    for name in graph["sym_bool_values"]:
        log.blocked(f"the symbolic truth value {name!r}", (*path, "sym_bool_values", name))
    symbols = dict(graph["sym_int_values"])
    nodes = [_downgrade_node(node, (*path, "nodes", place), symbols, log) for place, node in enumerate(graph["nodes"])]
    return {
        **{key: _tensors(graph[key], (*path, key), log) for key in ("inputs", "outputs")},
        "nodes": nodes,
        "tensor_values": [{"name": name, **value} for name, value in graph["tensor_values"].items()],
        "symint_values": [{"name": name, "value": value} for name, value in symbols.items()],
    }


def _member(what: str, log: ConversionLog, number: int, path: Path) -> str:
    """Return the name of an enum's member by its number in schema 1."""
    for name, known in _ENUMS[what].items():
        if known == number:
            return name
    log.blocked(f"the {what} {number}", path)
    return next(iter(_ENUMS[what]))


def _downgrade_device(device: dict[str, Any], _: Path) -> dict[str, Any]:
    missing = 0 if device["type"] == "cpu" else -1
    return {**device, "index": missing if device["index"] is None else device["index"]}


def _downgrade_argument(log: ConversionLog, named: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a named argument with an argument of the draft; lists of symbolic ints wait for the names of numbers."""
    ((arm, content),) = named["arg"].items()
    older = _OLDER_ARMS.get(arm, arm)
    match arm:
        case "as_none":
            content = True
        case "as_sym_int" if "as_int" in content:
            older, content = "as_int", content["as_int"]
        case "as_sym_int":
            content = {"name": content["as_name"]}
    if older not in frozen_table("draft").definitions["Argument"].fields:
        log.blocked(f"the arm {arm} of Argument", (*path, "arg"))
        older, content = "as_none", True
    return {**named, "arg": {older: content}}


def _tensors(arguments: list[Argument], path: Path, log: ConversionLog) -> list[dict[str, Any]]:
    for index, argument in enumerate(arguments):
        if "as_tensor" not in argument:
            log.blocked(f"a value of a graph that is {next(iter(argument))}", (*path, index))
    return [argument["as_tensor"] for argument in arguments if "as_tensor" in argument]


def _downgrade_node(
    node: dict[str, Any], path: Path, symbols: dict[str, dict[str, Any]], log: ConversionLog
) -> dict[str, Any]:
    args: list[Argument] = []
    kwargs: dict[str, Argument] = {}
    for index, named in enumerate(node["inputs"]):
        name, value = named["name"], named["arg"]
        if "as_symints" in value:
            value = {"as_symints": [{"name": _symint(entry, symbols)} for entry in value["as_symints"]]}
        if not name and not kwargs:
            args.append(value)
        elif not name or name in kwargs:
            log.blocked("an argument without a name of its own after named ones", (*path, "inputs", index))
        else:
            kwargs[name] = value
    extra = without(node["metadata"], *_METADATA)
    outputs, grouped = _downgrade_outputs(node, (*path, "outputs"), log)
    extra |= {OUTPUTS: grouped} if grouped else {}
    return {
        "target": node["target"],
        "args": args,
        "kwargs": kwargs,
        "outputs": outputs,
        "metadata": {**{key: node["metadata"].get(key, "") for key in _METADATA}, "extra": extra},
    }


def _downgrade_outputs(node: dict[str, Any], path: Path, log: ConversionLog) -> tuple[list[Argument], str]:
    """Return the results of a node one by one, and the arm that grouped them if the target does not imply it."""
    implied = returns_list(node["target"])
    match node["outputs"]:
        case [{"as_tensors": tensors}]:
            return [{"as_tensor": tensor} for tensor in tensors], "" if implied else "as_tensors"
    outputs: list[Argument] = []
    for index, output in enumerate(node["outputs"]):
        match output:
            case {"as_tensor": _}:
                outputs.append(output)
            case {"as_sym_int": {"as_name": name}}:
                outputs.append({"as_symint": {"name": name}})
            case _:
                log.blocked(f"a result that is {next(iter(output))}", (*path, index))
    return outputs, "as_tensor" if implied else ""


def _symint(entry: Mapping[str, Any], symbols: dict[str, dict[str, Any]]) -> str:
    """Return the name of a symbolic int; a number gets an entry of its own among the symbols."""
    if "as_name" in entry:
        return str(entry["as_name"])
    name = f"constant_{entry['as_int']}".replace("-", "minus_")
    while symbols.get(name, entry) != entry:
        name += "_"
    symbols[name] = dict(entry)
    return name
