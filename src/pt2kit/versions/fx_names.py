"""Names of FX nodes that the readers of 2.3 and 2.4 create for a program's values.

The signature of a program names inputs and results by its values. Up to 2.4, `torch.fx` may call the node of a value
otherwise, and then the signature does not fit: an input called `input` is a builtin of Python and becomes `input_1`
(up to 2.3), a size that an operator returns is called by its operator, `sym_size_int` (up to 2.4; the names of tensors
are kept). So such values are renamed in the program.

Source: `_Namespace.create_name` and `Graph.create_node` in torch/fx/graph.py, `deserialize_node` in
torch/_export/serde/serialize.py, 2.3 and 2.4.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pt2kit.schema.names import OPS
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.line.hops import is_higher_order

_SUFFIX: Final = re.compile(r"(.*)_(\d+)$")
_RESERVED: Final = frozenset(
    {*keyword.kwlist, *dir(builtins), "inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"}
)
_TABLES: Final = ("tensor_values", "sym_int_values", "sym_bool_values", "custom_obj_values")


def name_as_fx(tree: Tree, log: ConversionLog, *, keeps_inputs: bool) -> Tree:
    """Rename the values at the ends of the root graph whose nodes would be called otherwise.

    Args:
        tree: a program of 5.3; not changed.
        log: gets a note for each value that is renamed.
        keeps_inputs: whether the reader keeps the names of inputs, as 2.4 does.

    Returns:
        `tree` itself where every node is called like its value.
    """
    module = tree["graph_module"]
    graph = module["graph"]
    called = dict(_node_names(graph, keeps_inputs=keeps_inputs))
    names = _needed(called, [value_name(argument) for argument in (*graph["inputs"], *graph["outputs"])])
    if not names:
        return tree
    for old, new in names.items():
        log.changed(f"the value {old!r} is called {new!r}, as torch.fx calls its node", ("graph_module", "graph"))
    nodes = [renamed_node(node, names) for node in graph["nodes"]]
    tables = {key: {names.get(name, name): meta for name, meta in graph[key].items()} for key in _TABLES}
    ends = {key: renamed(graph[key], names) for key in ("inputs", "outputs")}
    # A constant input has a name, but is no value.
    specs = {
        key: [spec if "constant_input" in spec else renamed(spec, names) for spec in module["signature"][key]]
        for key in ("input_specs", "output_specs")
    }
    calls = [{**entry, "signature": renamed(entry["signature"], names)} for entry in module["module_call_graph"]]
    new_module = {**module, "graph": {**graph, **tables, **ends, "nodes": nodes}, "module_call_graph": calls}
    return {**tree, "graph_module": {**new_module, "signature": {**module["signature"], **specs}}}


def value_names(graph: Mapping[str, Any]) -> set[str]:
    """Return the names of all values of a graph."""
    return {name for table in _TABLES for name in graph[table]}


def _needed(called: Mapping[str, str], ends: list[str | None]) -> dict[str, str]:
    """Return the renamings that the ends of a graph need, and those that avoid clashes with them."""
    names: dict[str, str] = {}
    waiting = [name for name in ends if name is not None]
    while waiting:
        old = waiting.pop()
        new = called.get(old, old)
        if new != old and old not in names:
            names[old] = new
            waiting.append(new)
    return names


class _Namespace:
    """The names that a graph of `torch.fx` has given so far."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counts: defaultdict[str, int] = defaultdict(int)

    def create(self, candidate: str) -> str:
        """Return the name of a new node whose preferred name is given."""
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        match = _SUFFIX.match(candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, 0)
        if match:
            candidate = f"{base}_{number}"
        number = number or self._counts[base]
        while candidate in self._used or candidate in _RESERVED:
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._counts[base] = number
        return candidate


def _node_names(graph: dict[str, Any], *, keeps_inputs: bool) -> Iterator[tuple[str, str]]:
    """Yield each value that is the result of one node, with the name of that node."""
    space = _Namespace()
    for index, argument in enumerate(graph["inputs"]):
        name = value_name(argument)
        made = space.create(name or f"arg{index}")
        if name is not None:
            yield name, name if keeps_inputs else made
    for node in graph["nodes"]:
        for named in node["inputs"]:
            if "as_graph" in named["arg"]:
                space.create(named["arg"]["as_graph"]["name"])
        yield from _results(node, space)


def _results(node: dict[str, Any], space: _Namespace) -> Iterator[tuple[str, str]]:
    outputs = node["outputs"]
    has_schema = node["target"].startswith(OPS) and not is_higher_order(node["target"])
    single = value_name(outputs[0]) if len(outputs) == 1 else None
    if single is not None and ("as_tensor" in outputs[0] or not has_schema):
        yield single, space.create(single)
        return
    made = space.create(_called(node["target"]))
    if single is not None:
        yield single, made
        return
    for output in outputs:
        name = value_name(output)
        if name is not None:
            yield name, space.create(name)
        elif len(outputs) > 1:
            space.create("getitem")  # a list among other results is a node without a name of its own
        for tensor in output.get("as_tensors", ()):
            yield tensor["name"], space.create(tensor["name"])


def _called(target: str) -> str:
    """Return the name that a node without one gets from its target: "sym_size_int"."""
    parts = target.split(".")
    called = parts[-1] if is_higher_order(target) else ".".join(parts[3:]) if target.startswith(OPS) else parts[-1]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", called).lower()


def value_name(argument: dict[str, Any]) -> str | None:
    """Return the value that an argument names; None for a constant, or for several."""
    match argument:
        case {"as_tensor": {"name": str(name)}} | {"as_custom_obj": {"name": str(name)}}:
            return name
        case (
            {"as_sym_int": {"as_name": str(name)}}
            | {"as_sym_float": {"as_name": str(name)}}
            | {"as_sym_bool": {"as_name": str(name)}}
        ):
            return name
    return None


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return arguments, or what holds them, with other names for values; subgraphs have values of their own.

    Args:
        value: arguments of the draft, or of schema 1 to 5.3; specs and call signatures of 5.3. Up to 5.1, an entry of
            optional tensors is a bare name.
        names: old name -> new name; others stay.
    """
    if isinstance(value, list):
        return [renamed(entry, names) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        key: names.get(item, item)
        if key in ("name", "as_name", "as_tensor", "user_input_name") and isinstance(item, str)
        else item
        if key in ("as_graph", "as_gm")
        else renamed(item, names)
        for key, item in value.items()
    }


def renamed_node(node: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a node of schema 1 to 5.3 with other names for values; the names of its arguments are unchanged."""
    inputs = [{**named, "arg": renamed(named["arg"], names)} for named in node["inputs"]]
    return {**node, "inputs": inputs, "outputs": renamed(node["outputs"], names)}
