"""Serialization of live programs to schema objects and payloads: the writing half of the bridge.

    program.py        ExportedProgram -> schema.ExportedProgram: graphs, module calls, ranges of symbols
    nodes.py          one fx node -> Node          operators.py     an operator's schema
    arguments.py      one argument -> Argument     sequences.py     a list of them
    outputs.py        results of a node -> the values it defines
    higher_order.py   higher-order operators       triton_kernels.py  calls of Triton kernels
    values.py         sizes, strides, symbols -> TensorMeta, SymInt, …
    metadata.py       node.meta -> texts           scope.py         state while a graph is written
    signature.py      the graph signature          treespecs.py     pytree specs -> text
    payloads.py       weights and constants -> records and their configs; one storage -> its bytes
    objects.py        script and opaque objects, tensor subclasses -> pickles
    sample_inputs.py  example inputs -> a torch.save record

The results follow torch 2.13 (torch/_export/serde/serialize.py, torch/export/pt2_archive); docs/differences.md explains
intentional differences.
"""
