"""Operator calls between releases of torch: adapt the calls of a program to a release, or report what it lacks.

The table of operators (`schema.operators`) lists the operators of each release. A call that the release takes stays as
it is. Otherwise the nearest release that does take it defines the call's meaning, and:

- an argument that the release does not know is dropped if it says no more than its default;
- an argument that only changed its name, place and type being the same, gets the name of the release;
- an argument that the release asks for and the other release had a default for is written out;
- all else blocks: operators that came later or are gone, arguments that say something, other numbers of results.

What no release in the table takes, such as operators of libraries, is left alone.

Flash attention on the CPU got an operator of its own between torch 2.2 and 2.3:

    2.1, 2.2     aten._scaled_dot_product_flash_attention          nine results, of which files list the seven tensors
    2.3 on       aten._scaled_dot_product_flash_attention_for_cpu  two: the output and logsumexp

The operator of 2.2 still exists, but not for CPU tensors. Where a program uses none of the other results, as programs
do that were exported from `scaled_dot_product_attention`, they are dropped. Upwards nothing that is used is lost; a
downgrade writes the other results again, by the names and types that 2.2 gave them.

A program that returns the result of an operator as it is (`return torch.topk(x, 2)`) has `torch.return_types.topk` as a
container, in 2.1, 2.2 and from 2.15 on. The releases between read a tuple; 2.15 does for functions that are gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.messages import count_text
from pt2kit.schema import LOG, ScalarType, parse_version
from pt2kit.schema.names import HIGHER_ORDER_OPS, OPS
from pt2kit.schema.operators import (
    COMPLETE,
    Operator,
    Parameter,
    find_operator,
    known_releases,
    release_operators,
)
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.line import hops
from pt2kit.versions.rewrite import Visitor, rewrite

_UNLISTED: Final = "8.7"
"""Before this version, a higher-order operator that no table has blocks: all that there were then are known."""

_CALLED_OTHERWISE: Final[Mapping[str, str]] = {
    "associative_scan": "2.5",
    "auto_functionalized": "2.3",
    "flex_attention": "2.5",
    "flex_attention_backward": "2.5",
    "math.trunc": "2.8",
    "triton_kernel_wrapper_functional": "2.6",
    "triton_kernel_wrapper_mutation": "2.6",
    "while_loop": "2.4",
    "with_effects": "2.4",
}
"""Operators without a schema -> the first release that calls them as the next ones do, and reads its calls; the one
before has them too.

Source: the parameters of `__call__` in torch/_higher_order_ops, 2.1 to 2.8.
"""

_RETURN_TYPE: Final = re.compile(r'"type": ?"(torch\.return_types\.\w+)"')
_GONE: Final = re.compile(r'"type": ?"(torch\.return_types\.(?:_\w+|qr|qr_out|symeig|symeig_out))"')
"""Containers of results in a tree spec; those that releases from 2.15 on do not have."""

ASSERTED: Final = {"aten._assert_tensor_metadata.default": frozenset(("device", "layout"))}
"""Operators that only compare what the program knows already -> arguments without which they compare less."""


def fit_calls(tree: Tree, version: str, release: str, log: ConversionLog) -> Tree:
    """Adapt the calls of a program to a release, and the containers that it is called with.

    Args:
        tree: a program; not changed.
        version: the name of its table.
        release: of torch ("2.4").
        log: gets what changed, and what the release does not have.

    Returns:
        `tree` itself if nothing changed; else a new one that shares the rest.

    Cost: one walk over the nodes; a millisecond per 1,000 where every call fits.
    """
    visitors: dict[str, Visitor] = {"Node": lambda value, path: _fitted(value, path, release, log)}
    if (number := parse_version(release)) >= (2, 3):
        refused = _RETURN_TYPE if number < (2, 15) else _GONE
        visitors["ModuleCallSignature"] = lambda value, path: _with_tuples(value, path, refused, log)
    return rewrite(tree, version, visitors)


def _with_tuples(call: dict[str, Any], path: Path, refused: re.Pattern[str], log: ConversionLog) -> dict[str, Any]:
    """Return how a module is called, with plain tuples as containers of the results of operators."""
    changed = {}
    for side in ("in_spec", "out_spec"):
        for name in refused.findall(call[side]):
            log.changed(f"the container {name} became a tuple, which the release reads", (*path, side))
            changed[side] = refused.sub('"type": "builtins.tuple"', call[side])
    return {**call, **changed} if changed else call


def _fitted(node: dict[str, Any], path: Path, release: str, log: ConversionLog) -> dict[str, Any]:
    target = hops.from_2_4(hops.from_2_1(node["target"]))
    if not target.startswith(OPS) or target.startswith(HIGHER_ORDER_OPS):
        if (since := _missing(target, release)) is not None:
            log.blocked(f"the operator {target}", (*path, "target"), since)
        return node
    name = target.removeprefix(OPS)
    ours = find_operator(name, release)
    if ours is not None and _takes(ours, node):
        return node
    if (other := _nearest(name, node, release)) is None:
        return node
    theirs = find_operator(name, other)
    if theirs is None or ours is None:
        _note_missing(name, path, release, log)
        return node
    if len(ours.results) != len(theirs.results):
        what = (
            f"{count_text(len(theirs.results), 'result')} of {name}, which has {len(ours.results)} in torch {release}"
        )
        log.blocked(what, (*path, "outputs"), _version(other))
        return node
    return {**node, "inputs": _fitted_inputs(node, ours, theirs, (*path, "inputs"), log, _version(other))}


def _missing(target: str, release: str) -> str | None:
    """Return the version that introduced a target without schema, if the release lacks it; None if it has it."""
    name = target.removeprefix(HIGHER_ORDER_OPS)
    is_function = name == target
    kind = "functions" if is_function else "higher_order"
    having = [one for one in known_releases() if name in getattr(release_operators(one), kind)] or hops.having(name)
    having = having[having.index(_CALLED_OTHERWISE[name]) :] if name in _CALLED_OTHERWISE else having
    first = _version(having[0]) if having else "" if is_function else _UNLISTED
    is_older = bool(first) and parse_version(_version(release)) < parse_version(first)
    return first if release not in having and (having or is_older) else None


def _fitted_inputs(
    node: dict[str, Any], ours: Operator, theirs: Operator, path: Path, log: ConversionLog, since: str
) -> list[dict[str, Any]]:
    """Return the arguments of a call that `theirs` takes, as `ours` takes them."""
    renamed = _renamed(ours, theirs)
    inputs = []
    for index, named in enumerate(node["inputs"]):
        name = named["name"]
        if name in ours.parameters:
            inputs.append(named)
        elif name in renamed:
            log.changed(f"the argument {name} of {ours.name} is called {renamed[name]}", (*path, index))
            inputs.append({**named, "name": renamed[name]})
        elif _is_default(named["arg"], theirs.parameters[name]):
            log.changed(f"the argument {name} of {ours.name}, which had its default, is left out", (*path, index))
        elif name in ASSERTED.get(ours.name, ()):
            log.lost("assertions", f"the argument {name} of {ours.name}", (*path, index), since)
        else:
            log.blocked(f"the argument {name} of {ours.name}", (*path, index), since)
    there = {named["name"] for named in inputs}
    for parameter in ours.parameters.values():
        if parameter.is_required and parameter.name not in there:
            inputs += _stated(parameter, theirs, path, log)
    return inputs


def _stated(parameter: Parameter, theirs: Operator, path: Path, log: ConversionLog) -> list[dict[str, Any]]:
    """Return an argument that must be passed, with the default that another release has for it."""
    same = theirs.parameters.get(parameter.name)
    arm = None if same is None or same.default is None else _argument(same)
    if arm is None:
        log.blocked(f"a call without the argument {parameter.name} of {theirs.name}", path, "")
        return []
    log.changed(f"the argument {parameter.name} of {theirs.name} is written out", path)
    return [{"name": parameter.name, "arg": arm}]


def _takes(operator: Operator, node: dict[str, Any]) -> bool:
    """Return whether an operator takes a call; a call with arguments without names is accepted."""
    names = {named["name"] for named in node["inputs"]}
    if operator.is_open or "" in names:
        return True
    required = {parameter.name for parameter in operator.parameters.values() if parameter.is_required}
    # Up to 2.2, only the tensors among the results are listed.
    tensors = sum(result.base == "Tensor" for result in operator.results)
    fits = not node["outputs"] or len(node["outputs"]) in (len(operator.results), tensors)
    return fits and required <= names <= operator.parameters.keys()


def _nearest(name: str, node: dict[str, Any], release: str) -> str | None:
    """Return the release nearest to one that takes a call, newer ones first if both are as near."""
    releases = known_releases()
    at = releases.index(release)
    for other in sorted(releases, key=lambda other: (abs(releases.index(other) - at), -releases.index(other))):
        operator = find_operator(name, other)
        if operator is not None and _takes(operator, node):
            return other
    return None


def _note_missing(name: str, path: Path, release: str, log: ConversionLog) -> None:
    releases = known_releases()
    having = [other for other in releases if find_operator(name, other) is not None]
    is_older = releases.index(release) < releases.index(having[0])
    if is_older:
        log.blocked(f"the operator {OPS}{name}", (*path, "target"), _version(having[0]))
    elif name.partition(".")[0] in COMPLETE:  # of other namespaces, only some builds have what there is
        what = f"the operator {OPS}{name}, which torch has up to {having[-1]}"
        log.blocked(what, (*path, "target"), "")


def _renamed(ours: Operator, theirs: Operator) -> dict[str, str]:
    """Return parameters that only the other release has -> those that replace them, of the same type."""
    pairs = zip(theirs.parameters.values(), ours.parameters.values(), strict=False)
    return {
        other.name: own.name
        for other, own in pairs
        if other.name not in ours.parameters
        and own.name not in theirs.parameters
        and (other.type.base, other.type.suffix, other.is_keyword_only)
        == (own.type.base, own.type.suffix, own.is_keyword_only)
        and len(ours.parameters) == len(theirs.parameters)
    }


def _is_default(argument: dict[str, Any], parameter: Parameter) -> bool:
    """Return whether an argument is equal to its default."""
    if parameter.default is None:
        return False
    if parameter.default == "None":
        return "as_none" in argument
    return _argument(parameter) == argument


def _argument(parameter: Parameter) -> dict[str, Any] | None:
    """Return a default as an argument of a call; None for one that has no simple form."""
    text = parameter.default or ""
    if text == "None":
        return {"as_none": True}
    try:
        value = json.loads({"True": "true", "False": "false"}.get(text, f"{text}0" if text.endswith(".") else text))
    except ValueError:
        return None
    arms = {bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}
    arm = arms.get(type(value))
    return None if arm is None else {arm: value}


def _version(release: str) -> str:
    """Return the schema version that a release writes."""
    return next(version.number for version in LOG if release in version.releases)


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
                    log.blocked(f"the argument attn_mask of {FLASH_CPU}", (*path, "nodes", index, "inputs", place))
            names, values = _with_others(node, values)
            outputs = [*node["outputs"], *({"as_tensor": {"name": name}} for name in names)]
            inputs = [named for named in node["inputs"] if named["name"] != "attn_mask"]
            node = {**node, "target": FLASH, "inputs": inputs, "outputs": outputs}
        nodes.append(node)
    return {**graph, "nodes": nodes, "tensor_values": values}


def _with_others(node: dict[str, Any], values: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the other results, and the value table with entries for them after that of logsumexp.

    The names are torch's for unused results, derived from the node's; that of logsumexp shows the pattern.
    """
    known = [output["as_tensor"]["name"] for output in node["outputs"] if "as_tensor" in output]
    match = re.fullmatch(r"(.+)_unused_1", known[1]) if len(known) > 1 else None
    base = match[1].replace("_for_cpu", "") if match else f"{known[0] if known else 'flash'}_flash"
    while any(f"{base}_unused_{place}" in values for place, _ in _OTHERS):
        base += "_"
    names = [f"{base}_unused_{place}" for place, _ in _OTHERS]
    if not known or known[0] not in values:
        return names, values
    first = values[known[0]]
    scalar = {**first, "sizes": [], "strides": [], "requires_grad": False}
    metas = {
        name: {**scalar, "dtype": first["dtype"] if dtype is None else int(dtype)}
        for name, (_, dtype) in zip(names, _OTHERS, strict=True)
    }
    table: dict[str, Any] = {}
    for name, meta in values.items():
        table[name] = meta
        if name == known[-1]:
            table |= metas
    return names, table


def _device(node: dict[str, Any], graph: Graph) -> str:
    """Return the type of the query's device; "" if the graph does not have it."""
    query: dict[str, Any] = next((named["arg"] for named in node["inputs"] if named["name"] == "query"), {})
    meta = graph["tensor_values"].get(query.get("as_tensor", {}).get("name"))
    return str(meta["device"]["type"]) if meta else ""


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
            case {"as_optional_tensors": tensors}:  # bare names
                names |= {tensor["as_tensor"] for tensor in tensors if "as_tensor" in tensor}
    return names
