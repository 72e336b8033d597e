"""Program -> the same program in the format's normal form, whatever its nodes' order and its values' names were.

- `canonicalize`: the normal form of a program; `normal_form`, `Keep`: of one graph, with the order of its nodes.
- `encode_value`, `encode_graph_value`, `graph_digest`, `subgraph_digest`: bytes and hashes that are the same wherever
  they are made.
- `sort_inputs`: where the inputs of a graph go.
- `writes`, `writes_inside`: whether a node may change what others see.

    program.py   inputs, outputs, signature, everything that is a set
    form.py      one graph and its subgraphs
    order.py     the order of nodes;  labels.py, symmetry.py: what breaks its ties
    arguments.py  the arguments of a call as every release would write them
    facts.py     the graph as numbers;  values.py: arguments;  effects.py: nodes that write;  encoding.py: bytes
"""

from pt2kit.canonical.arguments import usual_graph
from pt2kit.canonical.effects import writes, writes_inside
from pt2kit.canonical.encoding import encode_value
from pt2kit.canonical.form import Keep, encode_graph_value, graph_digest, normal_form, subgraph_digest
from pt2kit.canonical.program import canonicalize, sort_inputs

__all__ = [
    "Keep",
    "canonicalize",
    "encode_graph_value",
    "encode_value",
    "graph_digest",
    "normal_form",
    "sort_inputs",
    "subgraph_digest",
    "usual_graph",
    "writes",
    "writes_inside",
]
