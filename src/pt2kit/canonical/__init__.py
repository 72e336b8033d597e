"""Normal form (canonicalization) of programs: the same for every order of nodes and every naming of values.

- `canonicalize`: the normal form of a program; `normal_form`, `Keep`: of one graph, with the order of its nodes.
- `encode_value`, `encode_graph_value`, `graph_digest`, `subgraph_digest`: bytes and hashes that are the same wherever
  they are made.
- `sort_inputs`: where the inputs of a graph go.
- `writes`, `writes_inside`: whether a node may change what others see.

    program.py             a program: inputs, outputs, signature, and everything that is a set
    form.py                one graph and its subgraphs; the order of its nodes, and which of them may write
    canonical_labeling.py  the order of nodes that can be exchanged
    facts.py               the graph as numbers: values, defining nodes, labels
    expressions.py         symbolic expressions and names of symbols
    encoding.py            schema values and plain trees as bytes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.canonical.encoding import encode_value as encode_value
    from pt2kit.canonical.facts import usual_graph as usual_graph
    from pt2kit.canonical.form import Keep as Keep
    from pt2kit.canonical.form import encode_graph_value as encode_graph_value
    from pt2kit.canonical.form import graph_digest as graph_digest
    from pt2kit.canonical.form import normal_form as normal_form
    from pt2kit.canonical.form import subgraph_digest as subgraph_digest
    from pt2kit.canonical.form import writes as writes
    from pt2kit.canonical.form import writes_inside as writes_inside
    from pt2kit.canonical.program import canonicalize as canonicalize
    from pt2kit.canonical.program import sort_inputs as sort_inputs

__getattr__, __dir__, __all__ = front_door(__name__)
