"""Serialization of live programs to schema objects and payloads: the writing half of the bridge.

    program.py        ExportedProgram -> schema.ExportedProgram: graphs, signature, module calls, tree specs, ranges
    nodes.py          one fx node -> Node, with the values that it defines; calls of Triton kernels
    arguments.py      one argument, or a list -> Argument
    values.py         sizes, strides, symbols -> TensorMeta, SymInt, …
    scope.py          state while a graph is written; node.meta -> texts
    payloads.py       weights, constants and objects -> records and their configs

The results follow torch 2.13 (torch/_export/serde/serialize.py, torch/export/pt2_archive); docs/differences.md explains
intentional differences.
"""
