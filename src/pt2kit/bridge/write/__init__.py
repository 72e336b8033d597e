"""Live programs -> schema objects and payloads: the writing half of the bridge.

    program.py        ExportedProgram -> schema.ExportedProgram
    graph.py          fx graph -> Graph            nodes.py         one fx node -> Node
    arguments.py      one argument -> Argument     sequences.py     a list of them
    outputs.py        results of a node -> the values it defines
    higher_order.py   higher-order operators       operators.py     what an operator's schema says
    values.py         sizes, strides, symbols -> TensorMeta, SymInt, …
    metadata.py       node.meta -> texts           scope.py         what is known while a graph is written
    signature.py      the graph signature          module_calls.py  the module call graph
    treespecs.py      pytree specs -> text         constraints.py   ranges of symbols
    payloads.py       weights and constants -> records and their configs
    storages.py       one storage -> its bytes     objects.py       script and opaque objects -> pickles
    sample_inputs.py  example inputs -> a torch.save record
    arms.py           Argument by the name of its arm                places.py        errors <- where they happened

What the results must look like follows torch 2.13 (torch/_export/serde/serialize.py, torch/export/pt2_archive); where
they differ on purpose, docs/differences.md says why.
"""
