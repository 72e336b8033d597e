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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pt2kit.errors import UnsupportedError
from pt2kit.jsontext import Path
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import find_operator
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.fx_names import renamed, renamed_node
from pt2kit.versions.line.hops import is_higher_order

Graph = dict[str, Any]
Argument = dict[str, Any]

SINCE: Final = "1"
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
_ENUMS: Final = {"as_scalar_type": SCALAR_TYPES, "as_layout": LAYOUTS, "as_memory_format": MEMORY_FORMATS}
_SAME: Final = frozenset(
    {"as_tensor", "as_tensors", "as_bool", "as_bools", "as_int", "as_ints", "as_float", "as_floats"}
)

UpgradeBranch = Callable[[dict[str, Any], Path], Graph]
DowngradeBranch = Callable[[str, Graph, Path], dict[str, Any]]


def positional_names(target: str) -> tuple[str, ...] | None:
    """Return the names of an operator's positional arguments in order ("torch.ops.aten.add.Tensor": self, other).

    Returns:
        None for an operator that torch does not have.
    """
    if (operator := find_operator(target.removeprefix(OPS), _RELEASE)) is None:
        return None
    return tuple(parameter.name for parameter in operator.parameters.values() if not parameter.is_keyword_only)


def returns_list(target: str) -> bool:
    """Return whether an operator's one result is a list of tensors ("torch.ops.aten.split.Tensor")."""
    operator = find_operator(target.removeprefix(OPS), _RELEASE)
    return operator is not None and [str(result) for result in operator.results] == ["Tensor[]"]


def upgrade_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `TensorMeta` of the draft as one of schema 1; the offset must be a number, as every exporter writes
    it."""
    return {
        "dtype": SCALAR_TYPES[meta["dtype"]],
        "sizes": [upgrade_size(size) for size in meta["sizes"]],
        "requires_grad": meta["requires_grad"],
        "device": upgrade_device(meta["device"]),
        "strides": [upgrade_size(size) for size in meta["strides"]],
        "storage_offset": meta["storage_offset"].get("as_int", 0),
        "layout": LAYOUTS[meta["layout"]],
    }


def downgrade_meta(meta: Mapping[str, Any], path: Path, log: ConversionLog) -> dict[str, Any]:
    """Return a `TensorMeta` of schema 1 as one of the draft."""
    return {
        "dtype": member(SCALAR_TYPES, meta["dtype"], "ScalarType", (*path, "dtype"), log),
        "sizes": [downgrade_size(size) for size in meta["sizes"]],
        "requires_grad": meta["requires_grad"],
        "device": downgrade_device(meta["device"]),
        "strides": [downgrade_size(size) for size in meta["strides"]],
        "storage_offset": {"as_int": meta["storage_offset"]},
        "layout": member(LAYOUTS, meta["layout"], "Layout", (*path, "layout"), log),
    }


def upgrade_size(size: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `SymInt` of the draft as one of schema 1."""
    return {"as_expr": {"expr_str": size["as_sym"], "hint": None}} if "as_sym" in size else dict(size)


def downgrade_size(size: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `SymInt` of schema 1 as one of the draft; hints are kept elsewhere."""
    return {"as_sym": size["as_expr"]["expr_str"]} if "as_expr" in size else dict(size)


def upgrade_device(device: Mapping[str, Any]) -> dict[str, Any]:
    """Return a device whose index may be missing; the draft's must be a number: 0 for the CPU, else -1 for none."""
    none = device["index"] < 0 or (device["type"] == "cpu" and device["index"] == 0)
    return {"type": device["type"], "index": None if none else device["index"]}


def downgrade_device(device: Mapping[str, Any]) -> dict[str, Any]:
    """Return a device of schema 1 as one of the draft."""
    missing = 0 if device["type"] == "cpu" else -1
    return {"type": device["type"], "index": missing if device["index"] is None else device["index"]}


def member(members: Mapping[str, int], number: int, what: str, path: Path, log: ConversionLog) -> str:
    """Return the name of an enum's member by its number in schema 1."""
    for name, known in members.items():
        if known == number:
            return name
    log.blocked(f"the {what} {number}", path, SINCE)
    return next(iter(members))


@dataclass(frozen=True, slots=True)
class Upgrader:
    """Turns graphs of the draft into graphs of schema 1.

    Args:
        log: for places and positional names.
        branch: turns a graph module that is an argument into a graph with constants.
    """

    log: ConversionLog
    branch: UpgradeBranch

    def graph(self, graph: Graph, path: Path, names: Mapping[str, str]) -> Graph:
        """Return a graph without the inputs that its module lifts; `names` renames values.

        Raises:
            UnsupportedError: positional arguments of an operator whose schema is not known.
        """
        constants = self._constant_values(graph)
        parts = ("args", "kwargs", "outputs")
        nodes = [{**node, **{key: renamed(node[key], names) for key in parts}} for node in graph["nodes"]]
        values = {value["name"]: value["value"] for value in graph["symint_values"] if value["name"] not in constants}
        return {
            "inputs": [{"as_tensor": tensor} for tensor in renamed(graph["inputs"], names)],
            "outputs": [{"as_tensor": tensor} for tensor in renamed(graph["outputs"], names)],
            "nodes": [self._node(node, (*path, "nodes", index), constants) for index, node in enumerate(nodes)],
            "tensor_values": {
                names.get(value["name"], value["name"]): {"meta": upgrade_meta(value["meta"])}
                for value in graph["tensor_values"]
            },
            "sym_int_values": {name: upgrade_size(value) for name, value in values.items()},
            "sym_bool_values": {},
            "is_single_tensor_return": False,
            "constants": {},
        }

    def _constant_values(self, graph: Graph) -> dict[str, int]:
        """Return symbolic ints that are numbers and that no node computes: they represent the numbers."""
        computed = {
            out["as_symint"]["name"] for node in graph["nodes"] for out in node["outputs"] if "as_symint" in out
        }
        return {
            entry["name"]: entry["value"]["as_int"]
            for entry in graph["symint_values"]
            if "as_int" in entry["value"] and entry["name"] not in computed
        }

    def _node(self, node: dict[str, Any], path: Path, constants: Mapping[str, int]) -> dict[str, Any]:
        target = node["target"]
        if target.count(".") == 2 and not target.startswith(("torch.", "_operator.", "math.")):
            target = f"torch.ops.{target}"
        positional = self._positional_names(target, len(node["args"]), path)
        pairs = [*zip(positional, node["args"], strict=True), *node["kwargs"].items()]
        inputs = [
            {"name": name, "arg": self._argument(value, (*path, "args", index), constants)}
            for index, (name, value) in enumerate(pairs)
        ]
        metadata = {key: node["metadata"][key] for key in ("stack_trace", "nn_module_stack") if node["metadata"][key]}
        extra = {key: text for key, text in node["metadata"]["extra"].items() if key != OUTPUTS}
        grouped = node["metadata"]["extra"].get(OUTPUTS, "")
        outputs = self._outputs(target, [_upgrade_result(out) for out in node["outputs"]], grouped)
        return {"target": target, "inputs": inputs, "outputs": outputs, "metadata": {**metadata, **extra}}

    def _positional_names(self, target: str, count: int, path: Path) -> tuple[str, ...]:
        if is_higher_order(target):
            return ("",) * count
        names = ("a", "b", "c")[:count] if target.startswith(("_operator.", "math.")) else positional_names(target)
        if count and (names is None or len(names) < count):
            raise UnsupportedError(
                f"{self.log.place((*path, 'args'))}: expected keyword arguments for {target}, whose schema is not "
                f"known here, got {count} positional ones"
            )
        return (names or ())[:count]

    def _outputs(self, target: str, results: list[Argument], grouped: str) -> list[Argument]:
        tensors = all("as_tensor" in result for result in results)
        as_list = grouped == "as_tensors" or (not grouped and (is_higher_order(target) or returns_list(target)))
        if tensors and as_list:
            return [{"as_tensors": [result["as_tensor"] for result in results]}]
        return results

    def _argument(self, value: Argument, path: Path, constants: Mapping[str, int]) -> Argument:
        ((arm, content),) = value.items()
        match arm:
            case "as_none":
                return {"as_none": []}
            case "as_symint":
                name = content["name"]
                return {"as_int": constants[name]} if name in constants else {"as_sym_int": {"as_name": name}}
            case "as_symints":
                entries = [entry["name"] for entry in content]
                return {
                    "as_sym_ints": [
                        {"as_int": constants[name]} if name in constants else {"as_name": name} for name in entries
                    ]
                }
            case "as_str":
                return {"as_string": content}
            case "as_gm":
                return {"as_graph": {"name": content["name"], "graph": self.branch(content, (*path, "as_gm"))}}
            case "as_device":
                return {"as_device": upgrade_device(content)}
        return {arm: _ENUMS[arm][content]} if arm in _ENUMS else {arm: content}


@dataclass(slots=True)
class Downgrader:
    """Turns graphs of schema 1 into graphs of the draft.

    Args:
        log: gets what is blocked.
        branch: turns a graph that is an argument into a graph module.
    """

    log: ConversionLog
    branch: DowngradeBranch
    _numbers: dict[int, str] = field(default_factory=dict)

    def graph(self, graph: Graph, path: Path, names: Mapping[str, str]) -> Graph:
        """Return a graph without the inputs that its module holds; `names` renames values."""
        self._numbers = {}
        taken = set(graph["sym_int_values"])
        nodes = [
            self._node(renamed_node(node, names), (*path, "nodes", index), taken)
            for index, node in enumerate(graph["nodes"])
        ]
        for name in graph["sym_bool_values"]:
            self.log.blocked(f"the symbolic truth value {name!r}", (*path, "sym_bool_values", name), SINCE)
        # Two inputs that take the same weight are one value here.
        tensors = {names.get(name, name): value["meta"] for name, value in graph["tensor_values"].items()}
        numbers = [{"name": name, "value": {"as_int": number}} for number, name in self._numbers.items()]
        return {
            "inputs": self._tensors(renamed(graph["inputs"], names), (*path, "inputs")),
            "outputs": self._tensors(renamed(graph["outputs"], names), (*path, "outputs")),
            "nodes": nodes,
            "tensor_values": [
                {"name": name, "meta": downgrade_meta(meta, (*path, "tensor_values", name), self.log)}
                for name, meta in tensors.items()
            ],
            "symint_values": [
                *({"name": name, "value": downgrade_size(value)} for name, value in graph["sym_int_values"].items()),
                *numbers,
            ],
        }

    def _tensors(self, arguments: list[Argument], path: Path) -> list[dict[str, Any]]:
        tensors = []
        for index, argument in enumerate(arguments):
            if "as_tensor" in argument:
                tensors.append(argument["as_tensor"])
            else:
                self.log.blocked(f"a value of a graph that is {next(iter(argument))}", (*path, index), SINCE)
        return tensors

    def _node(self, node: dict[str, Any], path: Path, taken: set[str]) -> dict[str, Any]:
        args: list[Argument] = []
        kwargs: dict[str, Argument] = {}
        for index, named in enumerate(node["inputs"]):
            place = (*path, "inputs", index)
            value = self._argument(named["arg"], (*place, "arg"), taken)
            if not named["name"] and not kwargs:
                args.append(value)
            elif not named["name"] or named["name"] in kwargs:
                self.log.blocked("an argument without a name of its own after named ones", place, SINCE)
            else:
                kwargs[named["name"]] = value
        known = ("stack_trace", "nn_module_stack")
        extra = {key: text for key, text in node["metadata"].items() if key not in known}
        outputs, grouped = self._outputs(node, (*path, "outputs"))
        return {
            "target": node["target"],
            "args": args,
            "kwargs": kwargs,
            "outputs": outputs,
            "metadata": {
                **{key: node["metadata"].get(key, "") for key in known},
                "extra": {**extra, OUTPUTS: grouped} if grouped else extra,
            },
        }

    def _outputs(self, node: dict[str, Any], path: Path) -> tuple[list[Argument], str]:
        """Return the results of a node one by one, and the arm that grouped them if the target does not imply it."""
        match node["outputs"]:
            case [{"as_tensors": tensors}]:
                implied = is_higher_order(node["target"]) or returns_list(node["target"])
                return [{"as_tensor": tensor} for tensor in tensors], "" if implied else "as_tensors"
        outputs: list[Argument] = []
        for index, output in enumerate(node["outputs"]):
            match output:
                case {"as_tensor": _}:
                    outputs.append(output)
                case {"as_sym_int": {"as_name": name}}:
                    outputs.append({"as_symint": {"name": name}})
                case _:
                    self.log.blocked(f"a result that is {next(iter(output))}", (*path, index), SINCE)
        ambiguous = is_higher_order(node["target"]) or returns_list(node["target"])
        return outputs, "as_tensor" if ambiguous else ""

    def _argument(self, value: Argument, path: Path, taken: set[str]) -> Argument:
        ((arm, content),) = value.items()
        match arm:
            case "as_none":
                return {"as_none": True}
            case "as_sym_int":
                return (
                    {"as_int": content["as_int"]}
                    if "as_int" in content
                    else {"as_symint": {"name": content["as_name"]}}
                )
            case "as_sym_ints":
                return {"as_symints": [{"name": self._symint(entry, taken)} for entry in content]}
            case "as_string":
                return {"as_str": content}
            case "as_graph":
                return {"as_gm": self.branch(content["name"], content["graph"], (*path, "as_graph", "graph"))}
            case "as_device":
                return {"as_device": downgrade_device(content)}
            case "as_scalar_type" | "as_layout" | "as_memory_format":
                return {arm: member(_ENUMS[arm], content, arm, path, self.log)}
        if arm not in _SAME:
            self.log.blocked(f"the arm {arm} of Argument", path, SINCE)
            return {"as_none": True}
        return {arm: content}

    def _symint(self, entry: Mapping[str, Any], taken: set[str]) -> str:
        """Return the name of a symbolic int; a number gets an entry of its own in the table of values."""
        if "as_name" in entry:
            return str(entry["as_name"])
        number = entry["as_int"]
        if number not in self._numbers:
            name = f"constant_{number}".replace("-", "minus_")
            while name in taken:
                name += "_"
            taken.add(name)
            self._numbers[number] = name
        return self._numbers[number]


def _upgrade_result(output: Argument) -> Argument:
    return {"as_sym_int": {"as_name": output["as_symint"]["name"]}} if "as_symint" in output else output
