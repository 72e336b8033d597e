"""Schema 5.1 (torch 2.3) and 5.3 (torch 2.4): effect tokens, named constant inputs, registered named tuples.

What changed, upwards:

- a user input that is a constant became a `constant_input` with a name; 2.3 wrote no name, so one is made up;
- an entry of `as_optional_tensors` became a `TensorArgument`, from a bare name;
- a named tuple in a tree spec is known by its registered name, from class name and fields (see `texts`); the fields
  go into the log, for schema 8.6;
- unbacked float symbols are called zuf0, …, from f0, …;
- an unbacked symbol has a range: 2.3 wrote none for those of an export that is not strict;
- `while_loop` takes a list of additional inputs (see `hops`).

Commas inside names of module stacks, which 2.3 does not read, are escaped downwards.

Lost upwards: nothing. Lost downwards: names of constant inputs, values of symbols below 2 (see `reader_limits`); values
are renamed as 2.3 calls them (see `fx_names`). Blocked downwards: effect tokens, named tuples whose
fields are not known, additional inputs of `while_loop`.

Compact stack traces are the other schema 5.3, converted from and to 5.3 (torch 2.4). That development state (field
table `5.3-traces.yaml`) kept the source lines of a graph's nodes in one table per graph and references to it in
`stack_trace`; `docs/traces.md` defines both. Constant inputs have no names there, as in 5.1. Nothing is lost upwards:
references are expanded. Lost downwards: names of constant inputs. Both have the number 5.3, so a program is recognized
by its keys: `co_fileinfo_ordered_list` in its graphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.node_metadata.frames import compact, expand_all
from pt2kit.schema.names import free_name
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.fx_names import name_as_fx, value_names
from pt2kit.versions.line import hops
from pt2kit.versions.line.metadata import without_commas
from pt2kit.versions.line.texts import NAMEDTUPLE, call_specs, describe_tuple, name_tuple, rename_symbols
from pt2kit.versions.reader_limits import narrow_ranges
from pt2kit.versions.rewrite import arm, rewrite, values_of, without

_UNBACKED: Final = re.compile(r"(?<![\w.'])u\d+(?!\w)")
_FILES: Final = "co_fileinfo_ordered_list"
CONSTANTS: Final = frozenset({"as_none", "as_int", "as_float", "as_string", "as_bool"})
"""Arms of an argument that are a constant input."""


def upgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Upgrade a 5.1 program to 5.3.

    Raises:
        SchemaError, JsonError, LimitError: a tree spec that is none.
    """
    visitors = {
        "OptionalTensorArgument": arm("as_tensor", lambda name: {"name": name}),
        "ModuleCallSignature": call_specs(name_tuple, log, having=NAMEDTUPLE),
        "Node": lambda value, path: hops.add_inputs(value, path, log),
    }
    new = name_constants(rename_symbols(tree, "5.1", "f", "zuf", visitors), log)
    return bound_symbols(new, log)


def downgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Downgrade a 5.3 program to 5.1.

    Raises:
        SchemaError, JsonError, LimitError: a tree spec that is none.
    """
    readable = narrow_ranges(name_as_fx(tree, log, keeps_inputs=False), "5.3", log)
    visitors = {
        "OptionalTensorArgument": arm("as_tensor", lambda tensor: tensor["name"]),
        "ModuleCallSignature": call_specs(describe_tuple, log, having=NAMEDTUPLE),
        "Node": lambda value, path: without_commas(hops.remove_inputs(value, path, log)),
    }
    return unname_constants(rename_symbols(readable, "5.3", "zuf", "f", visitors), log)


def bound_symbols(tree: Tree, log: ConversionLog) -> Tree:
    """Give unbacked symbols without a range the widest one; one that is a size is at least 0."""
    texts = [value["expr_str"] for value, _ in values_of(tree, "5.3", "SymExpr")]
    used = dict.fromkeys(name for text in texts for name in _UNBACKED.findall(text))
    if not used:
        return tree
    metas = [meta for meta, _ in values_of(tree, "5.3", "TensorMeta")]
    sizes = {size["as_expr"]["expr_str"] for meta in metas for size in meta["sizes"] if "as_expr" in size}
    known = tree["range_constraints"]
    found = {name: {"min_val": 0 if name in sizes else None, "max_val": None} for name in used if name not in known}
    for name in found:
        log.changed(f"the unbacked symbol {name!r} got a range", ("range_constraints", name))
    return {**tree, "range_constraints": {**known, **found}} if found else tree


def name_constants(tree: Tree, log: ConversionLog) -> Tree:
    """Replace user inputs that are constants by constant inputs with names."""

    def named(spec: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
        argument: dict[str, Any] = spec.get("user_input", {}).get("arg", {})
        if not CONSTANTS & argument.keys():
            return spec
        log.changed(f"a constant input got the name {name!r}", path)
        return {"constant_input": {"name": name, "value": argument}}

    return _with_specs(tree, named)


def unname_constants(tree: Tree, log: ConversionLog) -> Tree:
    """Replace constant inputs with names by user inputs; a name that is not the generated one is lost."""

    def unnamed(spec: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
        if "constant_input" not in spec:
            return spec
        constant = spec["constant_input"]
        if constant["name"] != name:
            place = (*path, "constant_input", "name")
            log.lost("input_names", f"the name {constant['name']!r} of a constant input", place)
        return {"user_input": {"arg": constant["value"]}}

    return _with_specs(tree, unnamed)


def input_names(module: Tree) -> list[str]:
    """Return a name for each graph input that has none, "arg0" for the first; "" for those that have one.

    torch makes up the same names; where one is taken, a number is added.

    Source: `deserialize_graph` in torch/_export/serde/serialize.py (2.13).
    """
    graph = module["graph"]
    taken = value_names(graph)
    names = []
    for index, argument in enumerate(graph["inputs"]):
        if not CONSTANTS & argument.keys():
            names.append("")
            continue
        name = f"arg{index}"
        name = free_name(name, taken.__contains__) if name in taken else name
        taken.add(name)
        names.append(name)
    missing = len(module["signature"]["input_specs"]) - len(names)
    return names + [f"arg{len(names) + i}" for i in range(missing)]


def _with_specs(tree: Tree, change: Callable[[dict[str, Any], str, Path], dict[str, Any]]) -> Tree:
    """Return a program with other input specs; `change` gets a spec, the name that it has without one, and its path."""
    module = tree["graph_module"]
    path = ("graph_module", "signature", "input_specs")
    named = enumerate(zip(module["signature"]["input_specs"], input_names(module), strict=False))
    specs = [change(spec, name, (*path, index)) for index, (spec, name) in named]
    signature = {**module["signature"], "input_specs": specs}
    return {**tree, "graph_module": {**module, "signature": signature}}


def expand_traces(tree: Tree, log: ConversionLog) -> Tree:
    """Upgrade a program with compact stack traces to the released 5.3.

    Raises:
        SchemaError: a reference to a file or line that the table does not have.
        LimitError: traces that expand to too much text.
    """

    def graph(value: Any, path: Path) -> Any:
        where = log.place((*path, "nodes"))
        texts = expand_all(_traces(value), value[_FILES], where)
        if value[_FILES]:
            log.changed("stack traces were expanded", (*path, _FILES))
        return without(_with_traces(value, texts), _FILES)

    return name_constants(rewrite(tree, "5.3-traces", {"Graph": graph}), log)


def compact_traces(tree: Tree, log: ConversionLog) -> Tree:
    """Downgrade a 5.3 program to one with its stack traces in tables."""

    def graph(value: Any, path: Path) -> Any:
        files, texts = compact(_traces(value))
        if files:
            log.changed("stack traces were moved into a table", (*path, _FILES))
        return {**_with_traces(value, texts), _FILES: files}

    return rewrite(unname_constants(tree, log), "5.3", {"Graph": graph})


def _traces(graph: Tree) -> list[str]:
    return [node["metadata"]["stack_trace"] for node in graph["nodes"] if "stack_trace" in node["metadata"]]


def _with_traces(graph: Tree, texts: list[str]) -> Tree:
    remaining = iter(texts)
    nodes = []
    for node in graph["nodes"]:
        if "stack_trace" in node["metadata"]:
            node = {**node, "metadata": {**node["metadata"], "stack_trace": next(remaining)}}
        nodes.append(node)
    return {**graph, "nodes": nodes}
