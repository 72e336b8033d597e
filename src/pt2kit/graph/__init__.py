"""A program's graphs as something to walk, look up and print: read-only, without torch.

- `walk`, `graphs`, `subgraphs`: every node, every graph, subgraphs included, each with its place.
- `index`, `indexes`: name -> definition and uses, or a `GraphError` with the first contradiction.
- `problems`: all contradictions, as data; it shares its rules with `index`.
- `references`, `arguments`, `defined`: the values that one argument names.
- `node_outputs`, `input_by_name`, `operator_namespace`, `operator_counts`, …: short answers for printers.

Rules (`RULES` says what must hold):
    G1 used before it is defined · G2 defined twice · G3 no entry in the value tables · G4 two entries · G5 an entry
    without a value (warning) · G6 sizes and strides · G7 kind of a value · G8 name of a value · G9 graph inputs
    G10 subgraphs elsewhere · G11 nesting (`LimitError`) · G12, G13 single tensor returns · G14 names of nodes (warning)
    G15 names that torch pastes into source (safety) · G16 subgraphs of one name · G17 what a tensor can be

`index` raises the errors among them. Warnings and safety findings are for `problems` alone: they do not keep a program
from being read.
"""

from pt2kit.graph.arguments import (
    MAX_ARGUMENT_DEPTH,
    Reference,
    ValueKind,
    arguments,
    defined,
    graph_arguments,
    leaves,
    references,
)
from pt2kit.graph.index import GraphIndex, index, indexes
from pt2kit.graph.problems import problems
from pt2kit.graph.rules import RULES
from pt2kit.graph.scan import Definition, Use
from pt2kit.graph.values import Meta, tables
from pt2kit.graph.view import (
    BUILTIN_NAMESPACES,
    input_by_name,
    is_custom,
    namespace_counts,
    node_outputs,
    operator_counts,
    operator_name,
    operator_namespace,
)
from pt2kit.graph.walk import MAX_SUBGRAPH_DEPTH, Scope, Source, Step, graphs, node_label, root, subgraphs, walk

__all__ = [
    "BUILTIN_NAMESPACES",
    "Definition",
    "GraphIndex",
    "MAX_ARGUMENT_DEPTH",
    "MAX_SUBGRAPH_DEPTH",
    "Meta",
    "RULES",
    "Reference",
    "Scope",
    "Source",
    "Step",
    "Use",
    "ValueKind",
    "arguments",
    "defined",
    "graph_arguments",
    "graphs",
    "index",
    "indexes",
    "input_by_name",
    "is_custom",
    "leaves",
    "namespace_counts",
    "node_label",
    "node_outputs",
    "operator_counts",
    "operator_name",
    "operator_namespace",
    "problems",
    "references",
    "root",
    "subgraphs",
    "tables",
    "walk",
]
