"""Limits of older releases' readers: what their schema has but they do not read is noted, or written differently.

    graph inputs     2.1, 2.2: tensors alone; up to 2.6: no symbolic sizes; 2.7 on: these, no other symbolic values
    graph outputs    up to 2.3: tensors and symbolic values (2.2: these from subgraphs alone);
                     2.4 and 2.5: also None and ints; 2.6: also floats; 2.7 on: also bools
    arguments        2.1, 2.2: no lists of texts
    expressions      2.1 to 2.4: functions of sympy alone, none of torch's own, such as ToFloat
    signature        2.1: no gradients
    module calls     2.1: none with a signature, which are dropped
    ranges           2.1 to 2.3: a symbol in a size is at least 2 (2.3: but for unbacked symbols alone)
    sizes            2.1, 2.2: a symbol is the size of a tensor before a size is computed from it

A release may have written what it does not read; such a file is written only by permission ("unreadable"). Programs of
the current version are written without: nothing newer reads more.

Source: `GraphModuleDeserializer` and `_dict_to_dataclass` in torch/_export/serde/serialize.py of 2.1 to 2.15.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.rewrite import Visitor, rewrite, values_of

_LATER: Final = ("8.7", "8.8", "8.14", "8.15", "8.17")
_TENSORS: Final = frozenset({"as_tensor"})
_CONSTANTS: Final = frozenset({"as_tensor", "as_custom_obj", "as_int", "as_float", "as_bool", "as_none", "as_string"})
_INPUTS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("1", "2"), _TENSORS),
    **dict.fromkeys(("5.1", "5.3", "7.3", "8.2"), _CONSTANTS),
    **dict.fromkeys(_LATER, _CONSTANTS | {"as_sym_int"}),
}
_SYMBOLIC: Final = frozenset({"as_tensor", "as_sym_int", "as_sym_bool"})
_OUTPUTS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("1", "2", "5.1"), _SYMBOLIC),
    **dict.fromkeys(("5.3", "7.3"), _SYMBOLIC | {"as_int", "as_none"}),
    "8.2": _SYMBOLIC | {"as_int", "as_none", "as_float", "as_sym_float"},
    **dict.fromkeys(_LATER, _SYMBOLIC | {"as_int", "as_none", "as_float", "as_sym_float", "as_bool"}),
}
"""Version -> the arms of `Argument` that its readers take at the ends of a graph; the current one has no limits."""

_ROOT: Final = ("graph_module", "graph")
_SMALLEST: Final = 2
_NAMES: Final = re.compile(r"[A-Za-z_]\w*")
_UNBACKED: Final = re.compile(r"u\d+")
_OWN: Final = re.compile(r"\b(?!(?:Abs|Eq|ITE|Max|Min|Mod|Ne|Piecewise|Xor)\()([A-Z]\w*)\(")
"""A call of a function in an expression that is none of sympy's."""


def make_readable(tree: Tree, version: str, log: ConversionLog) -> Tree:
    """Note what the release of a version does not read, and drop what does not affect results.

    Args:
        tree: a program of that version; not changed.
        version: the name of its table.
        log: gets a loss called "unreadable" for each kind that is not dropped.
    """
    visitors: dict[str, Visitor] = {}
    if version in _INPUTS:
        visitors["Graph"] = lambda value, path: _note_graph(value, path, version, log)
    if version in ("1", "2", "5.1", "5.3"):
        visitors["SymExpr"] = lambda value, path: _note_functions(value, path, log)
    if version in ("1", "2"):
        visitors["Argument"] = lambda value, path: _note_texts(value, path, log)
        tree = _introduced(tree, log)
    if visitors:
        rewrite(tree, version, visitors)
    if version != "1":
        return tree
    if tree["graph_module"]["signature"]["backward_signature"] is not None:
        path = ("graph_module", "signature", "backward_signature")
        log.lost("unreadable", "a signature with gradients, which torch 2.1 does not read", path, "2")
    return _without_calls(tree, log)


def _introduced(tree: Tree, log: ConversionLog) -> Tree:
    """Return a program whose tensors are in an order in which 2.2 knows the range of each symbol of their sizes."""
    graph, symbols = tree["graph_module"]["graph"], tree["range_constraints"].keys()
    names, sizes, missing = list(graph["tensor_values"]), list[set[str]](), list[set[str]]()
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    for number, value in enumerate(graph["tensor_values"].values()):
        meta = value.get("meta", value)
        texts = {size["as_expr"]["expr_str"] for size in (*meta["sizes"], *meta["strides"]) if size.get("as_expr")}
        sizes.append(texts)
        missing.append((symbols & set(_NAMES.findall(" ".join(texts)))) - texts)
        for symbol in missing[-1]:
            waiting[symbol].append(number)
    ready, order = [number for number, needed in enumerate(missing) if not needed], list[int]()
    while ready:  # a heap: of those that can be next, the first one
        order.append(heappop(ready))
        for symbol in sizes[order[-1]]:
            for number in waiting.pop(symbol, ()):
                missing[number].discard(symbol)
                if not missing[number]:
                    heappush(ready, number)
    if len(order) < len(names):
        path = (*_ROOT, "tensor_values", next(name for name, needed in zip(names, missing, strict=True) if needed))
        log.lost("unreadable", "a size computed from a symbol that is no size itself", path, "5.1")
        return tree
    if order == sorted(order):
        return tree
    values = {names[number]: graph["tensor_values"][names[number]] for number in order}
    return {**tree, "graph_module": {**tree["graph_module"], "graph": {**graph, "tensor_values": values}}}


def _without_calls(tree: Tree, log: ConversionLog) -> Tree:
    """Return a program of 2.1, whose schema has the call signatures of modules, but whose reader ignores them."""
    module = tree["graph_module"]
    entries = module["module_call_graph"]
    for index, entry in enumerate(entries):
        if entry["signature"] is not None:
            path = ("graph_module", "module_call_graph", index, "signature")
            log.lost("module_calls", f"how the module {entry['fqn']!r} is called", path, "2")
    return {**tree, "graph_module": {**module, "module_call_graph": [{**one, "signature": None} for one in entries]}}


def _note_graph(graph: dict[str, Any], path: Path, version: str, log: ConversionLog) -> dict[str, Any]:
    outputs = _TENSORS if version == "2" and path == _ROOT else _OUTPUTS[version]
    for key, arms, what in (("inputs", _INPUTS[version], "input"), ("outputs", outputs, "output")):
        for index, argument in enumerate(graph[key]):
            for arm in argument.keys() - arms:
                message = f"a graph with {arm} as an {what}, which the release does not read"
                log.lost("unreadable", message, (*path, key, index), _since(arm, version, key))
    return graph


def _since(arm: str, version: str, key: str) -> str:
    """Return the first version after another whose readers accept an arm; "" if none does."""
    table = _INPUTS if key == "inputs" else _OUTPUTS
    later = list(table)[list(table).index(version) + 1 :]
    return next((name for name in later if arm in table[name]), "")


def _note_texts(argument: dict[str, Any], path: Path, log: ConversionLog) -> dict[str, Any]:
    if argument.get("as_strings"):
        log.lost("unreadable", "a list of texts as an argument, which the release does not read", path, "5.1")
    return argument


def _note_functions(value: dict[str, Any], path: Path, log: ConversionLog) -> dict[str, Any]:
    for name in _OWN.findall(value["expr_str"]):
        log.lost("unreadable", f"an expression with {name}, which the release does not read", path, "7.3")
    return value


def narrow_ranges(tree: Tree, version: str, log: ConversionLog, since: str | None = None) -> Tree:
    """Set the least value of every symbol in a tensor's sizes to 2, which releases up to 2.3 need to read it.

    They run such a program at sizes of 0 and 1 all the same: they check least values above 2 only. 2.3 also reads, and
    writes, sizes that are an unbacked symbol alone (`u0`) of at least 0.

    Args:
        tree: a program of the version, which is converted to the next older one; not changed.
        version: 5.3 or 5.1.
        log: gets a note for each symbol that is narrowed.
        since: the version since which there is no such limit; by default the next one.
    """
    sizes = [size for meta, _ in values_of(tree, version, "TensorMeta") for size in meta["sizes"] if "as_expr" in size]
    texts = {size["as_expr"]["expr_str"] for size in sizes}
    kept = {text for text in texts if version == "5.3" and _UNBACKED.fullmatch(text)}
    symbols = {name for text in texts - kept for name in _NAMES.findall(text)}
    ranges = dict(tree["range_constraints"])
    for name, limits in ranges.items():
        least = -math.inf if limits["min_val"] is None else limits["min_val"]
        most = math.inf if limits["max_val"] is None else limits["max_val"]
        if name in symbols and least < _SMALLEST <= most:
            log.lost("small_sizes", f"that {name} may be less than 2", ("range_constraints", name), since)
            ranges[name] = {**limits, "min_val": _SMALLEST}
    return tree if ranges == tree["range_constraints"] else {**tree, "range_constraints": ranges}
