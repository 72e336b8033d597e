"""Read-only graphs of a program: walking, lookup, def-use and text, without torch.

- `walk`, `graphs`, `subgraphs`: every node, every graph, subgraphs included, each with its place.
- `index`, `indexes`: name -> definition and uses, or a `GraphError` with the first contradiction.
- `problems`: all contradictions, as data; it shares its rules with `index`.
- `references`, `arguments`, `defined`: the values that one argument names.
- `node_outputs`, `input_by_name`, `operator_namespace`, `operator_counts`, …: short answers for printers.

Problems and errors carry the rules G1 to G17 of `pt2kit.rules` (G18 is in `checks`).

`index` raises the errors among them. Warnings and safety findings are for `problems` alone: they do not keep a program
from being read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.graph.argument_values import MAX_ARGUMENT_DEPTH as MAX_ARGUMENT_DEPTH
    from pt2kit.graph.argument_values import Reference as Reference
    from pt2kit.graph.argument_values import ValueKind as ValueKind
    from pt2kit.graph.argument_values import arguments as arguments
    from pt2kit.graph.argument_values import defined as defined
    from pt2kit.graph.argument_values import graph_arguments as graph_arguments
    from pt2kit.graph.argument_values import leaves as leaves
    from pt2kit.graph.argument_values import references as references
    from pt2kit.graph.def_use import Definition as Definition
    from pt2kit.graph.def_use import GraphIndex as GraphIndex
    from pt2kit.graph.def_use import Use as Use
    from pt2kit.graph.def_use import index as index
    from pt2kit.graph.def_use import indexes as indexes
    from pt2kit.graph.def_use import problems as problems
    from pt2kit.graph.traversal import BUILTIN_NAMESPACES as BUILTIN_NAMESPACES
    from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH as MAX_SUBGRAPH_DEPTH
    from pt2kit.graph.traversal import Meta as Meta
    from pt2kit.graph.traversal import Scope as Scope
    from pt2kit.graph.traversal import Source as Source
    from pt2kit.graph.traversal import Step as Step
    from pt2kit.graph.traversal import graphs as graphs
    from pt2kit.graph.traversal import input_by_name as input_by_name
    from pt2kit.graph.traversal import is_custom as is_custom
    from pt2kit.graph.traversal import node_label as node_label
    from pt2kit.graph.traversal import node_outputs as node_outputs
    from pt2kit.graph.traversal import operator_counts as operator_counts
    from pt2kit.graph.traversal import operator_name as operator_name
    from pt2kit.graph.traversal import operator_namespace as operator_namespace
    from pt2kit.graph.traversal import root as root
    from pt2kit.graph.traversal import subgraphs as subgraphs
    from pt2kit.graph.traversal import tables as tables
    from pt2kit.graph.traversal import walk as walk

__getattr__, __dir__, __all__ = front_door(__name__)
