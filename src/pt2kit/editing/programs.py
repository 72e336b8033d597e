"""Construction of a program from the parts of an edit, extraction or composition: graph, signature, calls, ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from pt2kit import schema, treespec
from pt2kit.editing.interface import Input, Output
from pt2kit.graph.argument_values import ValueKind
from pt2kit.treespec.spec import TreeSpec


@dataclass(slots=True)
class ProgramBuilder:
    """The parts of a program.

    Args:
        origin: the program that it comes from; whatever is equal in it is shared.
        inputs, outputs: in the order of the graph.
        graph: the graph itself; None to put it together of `nodes` and `tables`.
        nodes: in execution order.
        tables: what is known of the values, by their kind.
        calls: the module call graph, the program's own call first.
        ranges: symbol -> range.
        fields: other fields of the graph module and the program that differ from those of the origin.
    """

    origin: schema.ExportedProgram
    inputs: Sequence[Input]
    outputs: Sequence[Output]
    calls: list[schema.ModuleCallEntry]
    ranges: Mapping[str, schema.RangeConstraint]
    fields: Mapping[str, Any]
    graph: schema.Graph | None = None
    nodes: Sequence[schema.Node] = ()
    tables: Mapping[ValueKind, dict[str, Any]] | None = None

    def build(self) -> schema.ExportedProgram:
        """Return the program; the origin itself if all parts are equal to its own."""
        module = self.origin.graph_module
        signature = schema.GraphSignature([one.spec() for one in self.inputs], [one.spec() for one in self.outputs])
        new_module = _with_fields(
            module,
            {
                **{name: one for name, one in self.fields.items() if name in schema.GraphModule.__struct_fields__},
                "graph": self.graph if self.graph is not None else self._graph(),
                "signature": signature,
                "module_call_graph": self.calls,
            },
        )
        rest = {name: one for name, one in self.fields.items() if name in schema.ExportedProgram.__struct_fields__}
        program: schema.ExportedProgram = _with_fields(
            self.origin, {**rest, "graph_module": new_module, "range_constraints": dict(self.ranges)}
        )
        return program

    def _graph(self) -> schema.Graph:
        return replace(
            self.origin.graph_module.graph,
            inputs=[one.slot.written() for one in self.inputs],
            outputs=[one.slot.written() for one in self.outputs],
            nodes=list(self.nodes),
            **{f"{kind}_values": table for kind, table in (self.tables or {}).items()},
        )


def root_call(ins: TreeSpec, outs: TreeSpec, names: list[str] | None) -> schema.ModuleCallEntry:
    """Return the program's own call, from the trees of its inputs and outputs."""
    signature = schema.ModuleCallSignature([], [], treespec.dump(ins), treespec.dump(outs), names)
    return schema.ModuleCallEntry("", signature)


def _with_fields(old: Any, fields: Mapping[str, Any]) -> Any:
    """Return a struct with other fields; the old one if they are equal."""
    changed = {name: new for name, new in fields.items() if new is not getattr(old, name) and new != getattr(old, name)}
    return replace(old, **changed) if changed else old
