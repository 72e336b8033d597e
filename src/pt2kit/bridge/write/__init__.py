"""Serialization of live programs to schema objects and payloads: the writing half of the bridge.

    program.py        ExportedProgram -> schema.ExportedProgram: graphs, module calls, tree specs, ranges of symbols
    nodes.py          one fx node -> Node, with the values that it defines
    arguments.py      one argument, or a list -> Argument
    triton_kernels.py the arguments of a call of a Triton kernel
    values.py         sizes, strides, symbols -> TensorMeta, SymInt, …
    metadata.py       node.meta -> texts           scope.py         state while a graph is written
    signature.py      the graph signature
    payloads.py       weights, constants and objects -> records and their configs

The results follow torch 2.13 (torch/_export/serde/serialize.py, torch/export/pt2_archive); docs/differences.md explains
intentional differences.
"""
