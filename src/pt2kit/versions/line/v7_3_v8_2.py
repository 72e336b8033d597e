"""Schema 7.3 (torch 2.5) and 8.2 (torch 2.6): wire ids, symbolic floats, structural expressions.

What changed, upwards:

- None as an argument is `true`, from an empty list;
- `expr_str` is srepr, from str(): it states the assumptions of each symbol (see `texts`);
- graphs got `sym_float_values`, module call signatures `forward_arg_names`;
- `rrelu_with_noise` is declared to write to its noise, so that a program with it is of the dialect TRAINING;
- each call of a module has an entry: "m", "m@1". Non-strict export of 2.5 listed the values of all calls in one.

Downwards, a torch.Size in a tree spec, which 2.5 does not register, becomes the tuple that torch rebuilds it as.

Nothing is lost upwards. Lost downwards: assumptions that are not the usual ones, `forward_arg_names`. Blocked
downwards: symbolic floats, uint16.
"""

from __future__ import annotations

from typing import Any, Final

from pt2kit.errors import attempt
from pt2kit.jsontext import Path
from pt2kit.treespec.spec import leaf_count, parse
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.line.texts import to_plain, to_structural
from pt2kit.versions.rewrite import arm, rewrite, values_of, without

_SPECS: Final = {"inputs": "in_spec", "outputs": "out_spec"}
_WRITES: Final = "torch.ops.aten.rrelu_with_noise.default"
_WITH_NONE: Final = ("Argument", "OptionalTensorArgument", "ConstantValue")


def upgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Upgrade a 7.3 program to 8.2.

    Raises:
        ExpressionError: a text that is no expression.
        LimitError: one that is too large.
    """
    visitors = {
        **dict.fromkeys(_WITH_NONE, arm("as_none", lambda _: True)),
        "Graph": lambda value, _: {**value, "sym_float_values": {}},
        "ModuleCallSignature": lambda value, _: {**value, "forward_arg_names": None},
        "SymExpr": to_structural(log),
    }
    new = rewrite(tree, "7.3", visitors)
    writing = [(*path, "target") for node, path in values_of(tree, "7.3", "Node") if node["target"] == _WRITES]
    if writing and new["verifiers"] == ["ATEN"]:
        log.changed(f"the dialect ATEN became TRAINING: {_WRITES} writes to its arguments", writing[0])
        new = {**new, "verifiers": ["TRAINING"]}
    entries = _separate_calls(new["graph_module"]["module_call_graph"], log)
    module = {**new["graph_module"], "module_call_graph": entries}
    return {**new, "graph_module": module}


def downgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Downgrade an 8.2 program to 7.3.

    Raises:
        ExpressionError: a text that is no expression.
        LimitError: one that is too large.
    """

    def graph(value: Any, path: Path) -> Any:
        for name in value["sym_float_values"]:
            log.blocked(f"the symbolic float {name!r}", (*path, "sym_float_values", name))
        return without(value, "sym_float_values")

    def signature(value: Any, path: Path) -> Any:
        if value["forward_arg_names"]:
            message = f"the argument names {', '.join(value['forward_arg_names'])}"
            log.lost("forward_arg_names", message, (*path, "forward_arg_names"))
        specs = {key: value[key].replace('"torch.Size"', '"builtins.tuple"') for key in _SPECS.values()}
        return without({**value, **specs}, "forward_arg_names")

    visitors = {
        **dict.fromkeys(_WITH_NONE, arm("as_none", lambda _: [])),
        "Graph": graph,
        "ModuleCallSignature": signature,
        "SymExpr": to_plain(log),
    }
    return rewrite(tree, "8.2", visitors)


def _separate_calls(entries: list[Tree], log: ConversionLog) -> list[Tree]:
    """Return entries that list the values of one call each; those of further calls come last."""
    first, further = [], []
    for number, entry in enumerate(entries):
        one, *others = _calls(entry)
        first.append(one)
        further += others
        if others:
            message = f"{len(others) + 1} calls of {entry['fqn']!r} got an entry each"
            log.changed(message, ("graph_module", "module_call_graph", number))
    return first + further


def _calls(entry: Tree) -> list[Tree]:
    """Return an entry for each call whose values one entry lists."""
    signature = entry["signature"]
    if not entry["fqn"] or not signature or not signature["outputs"]:
        return [entry]
    sizes = attempt(lambda: {side: leaf_count(parse(signature[spec], "")) for side, spec in _SPECS.items()})
    if sizes is None:  # `check` reports it
        return [entry]
    count = len(signature["outputs"]) // max(sizes["outputs"], 1)
    if count < 2 or any(len(signature[side]) != size * count for side, size in sizes.items()):
        return [entry]
    parts = [{side: signature[side][call * size :][:size] for side, size in sizes.items()} for call in range(count)]
    names = [entry["fqn"], *(f"{entry['fqn']}@{call}" for call in range(1, count))]
    return [{**entry, "fqn": name, "signature": {**signature, **part}} for name, part in zip(names, parts, strict=True)]
