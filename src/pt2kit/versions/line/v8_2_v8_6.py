"""Schema 8.2 (torch 2.6) and 8.6 (a development state): kinds of arguments, single results, fields of named tuples.

What changed, upwards:

- an argument says whether it is positional: known here for the calls without a schema (higher-order operators, Python
  functions of symbols), None elsewhere, where the reader decides from the operator's schema as 2.6 does;
- a higher-order operator says whether it returns a single tensor (see `hops`), and a tuple of one is no longer a list;
- `scan` and `associative_scan` take no dimension, nor whether they go backwards: nodes before and after a scan permute
  and flip what it takes and returns;
- the graph module has the field names of named tuples: those that an older form of the program carried;
- commas inside names of module stacks are read, even in nested brackets; downwards, they are escaped.

Lost upwards: another dimension of an associative scan than the first. Lost downwards: kinds of arguments of operators
with schemas, the field names, unless the target is old enough to write them itself. Blocked downwards: positional
arguments with names outside operators with schemas, a tuple of one symbolic value, float8.
"""

from __future__ import annotations

from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.line.hops import (
    add_scan_options,
    drop_scan_options,
    is_higher_order,
    plain_scans,
    unwrap_outputs,
    wrap_outputs,
)
from pt2kit.versions.line.metadata import without_commas
from pt2kit.versions.line.texts import registered_names
from pt2kit.versions.rewrite import rewrite, without

POSITIONAL: Final = 1
KEYWORD: Final = 2
_IGNORED: Final = r"\([^)]*\)"
"""Texts of module stacks that 2.4 to 2.6 read without their commas."""
_SYMBOLIC: Final = ("_operator.", "math.", "torch.sym_", "torch._sym_")


def upgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Upgrade an 8.2 program to 8.6."""

    def node(value: Any, path: Path) -> Any:
        return _upgrade_node(drop_scan_options(value, path, log))

    scanned = rewrite(tree, "8.2", {"Graph": lambda graph, _: plain_scans(graph)})
    new = rewrite(scanned, "8.2", {"Node": node})
    module = new["graph_module"]
    fields = {name: {"field_names": log.namedtuple_fields[name]} for name in _named_tuples(module, log)}
    return {**new, "graph_module": {**module, "treespec_namedtuple_fields": fields}}


def downgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Downgrade an 8.6 program to 8.2; field names of named tuples go into the log."""

    def node(value: Any, path: Path) -> Any:
        value = without_commas(add_scan_options(value, path, log), _IGNORED)
        schemaless = is_higher_order(value["target"])
        inputs = []
        if not schemaless and not _is_symbolic(value) and any(named["kind"] is not None for named in value["inputs"]):
            log.lost("argument_kinds", "which arguments a call gives by position", (*path, "inputs"))
        for index, named in enumerate(value["inputs"]):
            if schemaless and named["kind"] == POSITIONAL and named["name"]:
                message = f"the positional argument {named['name']!r} of an operator without a schema"
                log.blocked(message, (*path, "inputs", index))
            inputs.append(without(named, "kind"))
        return wrap_outputs({**value, "inputs": inputs}, path, log)

    new = rewrite(tree, "8.6", {"Node": node})
    module = new["graph_module"]
    for name, described in module["treespec_namedtuple_fields"].items():
        log.namedtuple_fields[name] = described["field_names"]
    return {**new, "graph_module": without(module, "treespec_namedtuple_fields")}


def _upgrade_node(value: Any) -> Any:
    symbolic, higher_order = _is_symbolic(value), is_higher_order(value["target"])
    inputs = []
    for named in value["inputs"]:
        kind = None
        if symbolic or higher_order:
            kind = KEYWORD if higher_order and named["name"] else POSITIONAL
        inputs.append({**named, "kind": kind})
    return unwrap_outputs({**value, "inputs": inputs})


def _is_symbolic(node: dict[str, Any]) -> bool:
    """Return whether a node calls a Python function of symbols, which takes its arguments in order."""
    return bool(node["target"].startswith(_SYMBOLIC))


def _named_tuples(module: Tree, log: ConversionLog) -> list[str]:
    """Return the registered names in the tree specs whose fields are known, each once."""
    names: dict[str, None] = {}
    for index, entry in enumerate(module["module_call_graph"]):
        for key in ("in_spec", "out_spec") if entry["signature"] is not None else ():
            path = ("graph_module", "module_call_graph", index, "signature", key)
            names |= dict.fromkeys(registered_names(entry["signature"][key], path, log))
    return [name for name in names if name in log.namedtuple_fields]
