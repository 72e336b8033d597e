"""Normal form after torch's own load and save: graphs without the details that a round trip through torch changes.

`torch.export.load` followed by `torch.export.save` drops `storage_offset`, evaluates expressions, turns operators that
it does not know into text, and writes the addresses of another process.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.canonical.expressions import Normalizer
from pt2kit.canonical.symbol_names import words
from pt2kit.node_metadata.addresses import without_addresses

_OPERATOR = "torch.ops."
_NO_OFFSET = schema.SymInt(as_int=0)


class Reloading:
    """Takes the graphs of one program to the form that a round trip through torch does not change.

    Args:
        expressions: brings expressions into normal form, and remembers the symbols that it has met.
    """

    def __init__(self) -> None:
        self.expressions = Normalizer()

    def graph(self, graph: schema.Graph) -> schema.Graph:
        """Return a graph in this form; its subgraphs are unchanged."""
        tensors = {
            name: replace(
                meta,
                sizes=[self._number(size) for size in meta.sizes],
                strides=[self._number(stride) for stride in meta.strides],
                storage_offset=_NO_OFFSET,
            )
            for name, meta in graph.tensor_values.items()
        }
        return replace(
            graph,
            nodes=[_node(node) for node in graph.nodes],
            tensor_values=tensors,
            sym_int_values={name: self._number(value) for name, value in graph.sym_int_values.items()},
            sym_bool_values={name: self._number(value) for name, value in graph.sym_bool_values.items()},
            sym_float_values={name: self._number(value) for name, value in graph.sym_float_values.items()},
        )

    def ranges(self, program: schema.ExportedProgram) -> dict[str, schema.RangeConstraint]:
        """Return the ranges of those symbols that are used; all graphs of the program have been passed before."""
        used = self.expressions.names.union(*map(words, program.guards_code))
        return {name: row for name, row in program.range_constraints.items() if words(name) & used}

    def _number(self, value: Any) -> Any:
        if value.as_expr is UNSET:
            return value
        text = self.expressions.normal(value.as_expr.expr_str)
        if isinstance(text, str):
            return value.__class__(as_expr=replace(value.as_expr, expr_str=text))
        return schema.SymInt(as_int=text) if isinstance(value, schema.SymInt) else value


def _node(node: schema.Node) -> schema.Node:
    inputs = [_argument(named) for named in node.inputs]
    metadata = without_addresses(node.metadata)
    same = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
    return node if same and metadata == node.metadata else replace(node, inputs=inputs, metadata=metadata)


def _argument(named: schema.NamedArgument) -> schema.NamedArgument:
    """Return an argument in which the text of an operator is that operator."""
    text = named.arg.as_string
    if text is UNSET or not text.startswith(_OPERATOR):
        return named
    return replace(named, arg=schema.Argument(as_operator=text))
