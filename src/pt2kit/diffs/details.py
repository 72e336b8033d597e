"""Properties in which two matched nodes, inputs or values differ, ignoring names of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import asdict

from pt2kit import codec, schema
from pt2kit.canonical.values import rename
from pt2kit.diffs.changes import Detail
from pt2kit.diffs.expressions import Symbols
from pt2kit.diffs.matching import Matching
from pt2kit.graph.argument_values import arguments, graph_arguments
from pt2kit.graph.values import tables
from pt2kit.node_metadata.addresses import without_addresses

_GONE: Final = "\0gone"
"""Marker of an old value that corresponds to no new one; no file has such a name."""


class Names:
    """Old names -> new names, of values and symbols.

    Args:
        matching: the nodes that correspond.
        symbols: the symbols that do.
    """

    def __init__(self, matching: Matching, symbols: Symbols) -> None:
        self.symbols = symbols
        old, new = matching.old.facts, matching.new.facts
        self.values = dict.fromkeys(old.names, _GONE)
        self.values |= {old.names[one]: new.names[other] for one, other in matching.values.items()}

    def same_argument(self, old: schema.Argument, new: schema.Argument) -> bool:
        """Return whether two arguments are the same: values by correspondence, subgraphs ignored."""
        blank = schema.GraphArgument("", schema.Graph([], [], [], {}, {}, {}))
        blanks = iter([blank] * len(graph_arguments(old)))
        other = iter([blank] * len(graph_arguments(new)))
        return codec.encode(rename(old, self.values, blanks)) == codec.encode(rename(new, {}, other))


def known_pairs(matching: Matching) -> Iterator[tuple[Any, Any]]:
    """Iterate what is known of the values of two graphs that correspond."""
    before, after = matching.old.facts, matching.new.facts
    tables_old, tables_new = tables(before.graph), tables(after.graph)
    for one, other in matching.values.items():
        yield tables_old[before.kinds[one]][before.names[one]], tables_new[after.kinds[other]][after.names[other]]


def node_details(matching: Matching, old: int, new: int, names: Names, *, metadata: bool) -> Iterator[Detail]:
    """Iterate the properties in which two nodes that correspond differ; their subgraphs are left aside."""
    before, after = matching.old.nodes[old], matching.new.nodes[new]
    if before.target != after.target:
        yield Detail("target", before.target, after.target)
    yield from _arguments(matching, old, new, names)
    if before.is_hop_single_tensor_return != after.is_hop_single_tensor_return:
        yield Detail("single tensor return", before.is_hop_single_tensor_return, after.is_hop_single_tensor_return)
    if [output.type for output in before.outputs] != [output.type for output in after.outputs] or len(
        matching.old.facts.results[old]
    ) != len(matching.new.facts.results[new]):
        yield Detail("results", before.outputs, after.outputs)
    yield from _results(matching, old, new, names)
    if metadata:
        one, other = without_addresses(before.metadata), without_addresses(after.metadata)
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                yield Detail(f"metadata {key}", before.metadata.get(key), after.metadata.get(key))


def _arguments(matching: Matching, old: int, new: int, names: Names) -> Iterator[Detail]:
    before, after = matching.old.nodes[old].inputs, matching.new.nodes[new].inputs
    if matching.old.keys[old] == matching.new.keys[new] and _same_values(matching, old, new):
        return
    labels_old, labels_new = argument_labels(before), argument_labels(after)
    for label in dict.fromkeys((*labels_new, *labels_old)):
        first, second = labels_old.get(label), labels_new.get(label)
        if first is None or second is None or not names.same_argument(first.arg, second.arg):
            yield Detail(f"argument {label}", first and first.arg, second and second.arg)
    order_old, order_new = list(labels_old), list(labels_new)
    if order_old != order_new and sorted(order_old) == sorted(order_new):
        yield Detail("order of arguments", order_old, order_new)


def _same_values(matching: Matching, old: int, new: int) -> bool:
    """Return whether all arguments use values that correspond; values from outside of the graphs are ignored."""
    before, after = matching.old.facts.inputs[old], matching.new.facts.inputs[new]
    outside = any(named.arg.as_custom_obj is not UNSET for named in matching.old.nodes[old].inputs)
    return not outside and all(
        tuple(map(matching.new_value, slots)) == others for (_, slots), (_, others) in zip(before, after, strict=True)
    )


def argument_labels(inputs: list[schema.NamedArgument]) -> dict[str, schema.NamedArgument]:
    """Return labels of arguments: their name, or their position if they have none or share it."""
    by_label: dict[str, schema.NamedArgument] = {}
    for position, named in enumerate(inputs):
        by_label[named.name if named.name and named.name not in by_label else str(position)] = named
    return by_label


def _results(matching: Matching, old: int, new: int, names: Names) -> Iterator[Detail]:
    before, after = matching.old.facts, matching.new.facts
    pairs = list(zip(before.results[old], after.results[new], strict=False))
    for place, (one, other) in enumerate(pairs):
        label = "result" if len(pairs) == 1 else f"result {place}"
        meta_old = tables(before.graph)[before.kinds[one]][before.names[one]]
        meta_new = tables(after.graph)[after.kinds[other]][after.names[other]]
        yield from meta_details(label, meta_old, meta_new, names)


def value_details(
    old_graph: schema.Graph, new_graph: schema.Graph, old: schema.Argument, new: schema.Argument, names: Names
) -> Iterator[Detail]:
    """Iterate the differences of two inputs or outputs of graphs: the argument, and what is known of its values."""
    if not names.same_argument(old, new):
        yield Detail("argument", old, new)
    for one, other in zip(arguments(old), arguments(new), strict=False):
        yield from meta_details("value", _meta(old_graph, one), _meta(new_graph, other), names)


def _meta(graph: schema.Graph, name: str) -> Any:
    return next((table[name] for table in tables(graph).values() if name in table), None)


def meta_details(label: str, old: Any, new: Any, names: Names) -> Iterator[Detail]:
    """Iterate what is known differently of two values: field by field for tensors, else as a whole.

    The values that symbols had in the example that was exported come last, and only if nothing else differs.
    """
    if old == new and not names.symbols.renamed:
        return
    details: list[Detail] = []
    if isinstance(old, schema.TensorMeta) and isinstance(new, schema.TensorMeta):
        fields = zip(asdict(old).items(), asdict(new).values(), strict=True)
        details = [
            Detail(f"{label} {field}", one, other) for (field, one), other in fields if _differ(one, other, names)
        ]
    elif isinstance(old, schema.CustomObjArgument) and isinstance(new, schema.CustomObjArgument):
        if old.class_fqn != new.class_fqn:
            details = [Detail(f"{label} class", old.class_fqn, new.class_fqn)]
    elif _differ(old, new, names):
        details = [Detail(label, old, new)]
    is_object = isinstance(old, schema.CustomObjArgument)
    if not details and not is_object and _differ(old, new, names, hints=True):
        details = [Detail(f"{label} hints", old, new)]
    yield from details


def _differ(old: Any, new: Any, names: Names, *, hints: bool = False) -> bool:
    """Return whether two descriptions differ under the new names of symbols."""
    if old == new and not names.symbols.renamed:
        return False
    one = _with_expressions(codec.to_tree(old), names.symbols.old_form, hints)
    return bool(one != _with_expressions(codec.to_tree(new), str, hints))


def _with_expressions(tree: Any, change: Callable[[str], str], hints: bool) -> Any:
    if isinstance(tree, list):
        return [_with_expressions(item, change, hints) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "expr_str" in tree:
        return {"expr_str": change(tree["expr_str"]), "hint": tree.get("hint") if hints else None}
    return {key: _with_expressions(item, change, hints) for key, item in tree.items()}
