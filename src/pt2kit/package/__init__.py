"""A `.pt2` file -> `Package`: its programs, payloads and records, each read when it is asked for; and back to a file.

The seam of the house: zip -> codec -> version -> objects of the current schema. Nothing above reads bytes.

    open.py              `open_package` -> `Package`
    layout.py            which of the layouts below an archive has; record_names.py, parts.py: what is where in it
    json_file.py         one program's JSON as an archive of one record
    stored.py            what reading gives: `StoredProgram`, `StoredPayloads`, and the container they were in
    programs.py          the record of a program -> `StoredProgram`, of the current schema version
    current_programs.py  a program of today's shape: what is checked before anyone reads it
    payloads.py          the records of weights and constants -> views by name
    legacy_*.py          both for programs up to torch 2.8 and those of no release; imported for those alone
    samples.py           the stored sample inputs -> plain containers with views in them
    pickle_free_inputs/  sample inputs without a pickle: an index and raw records <-> what a pickle would have held
    write.py             a package, with some programs replaced -> a new file
    lazy.py              names known at once, values computed when asked for

The records of a `.pt2`
=======================

torch 2.9 and later ("archive"), below one root folder that is named after the file ("archive/" for a buffer); the order
is torch's and carries no meaning::

    data/weights/weight_<i>                        storage number i as raw little-endian bytes. Names that share a
                                                   storage share the record. What is in it, only the config says. Empty
                                                   for an empty storage.
    data/weights/<model>_weights_config.json       weight name -> record, dtype, sizes, strides, offset
    data/constants/tensor_<i>                      likewise for constant tensors
    data/constants/custom_obj_<i>                  a script object, pickled by torchbind. Never read as one here.
    data/constants/opaque_obj_<i>                  a Python object, pickled. Never read as one here.
    data/constants/<model>_constants_config.json   constant name -> record
    models/<model>.json                            the program, as JSON of the export schema
    data/sample_inputs/<model>.pt                  the inputs it was exported with: a torch.save file (zip and pickle)
    data/aotinductor/<model>/...                   compiled code, where packaged. Listed, never loaded.
    extra/<file>                                   the user's own files; any content, although torch loads UTF-8 only
    archive_format                                 "pt2"
    archive_version                                "0"
    byteorder                                      "little"
    .data/version                                  "6", the version of torch's zip conventions (1 to 10 are read); not
                                                   that of the schema. May be missing.
    .data/serialization_id                         a hash of names and CRCs by which torch tells files apart. Not a
                                                   checksum: nothing compares it with the content. May be missing.

torch 2.8 ("archive-2.8"): the same, but `data/weights/<model>.pt` and `data/constants/<model>.pt`, torch.save files,
instead of storages and configs. One archive may hold programs of both kinds (`payload_layout`).

torch 2.1 to 2.7 ("plain-zip"), without root folder::

    serialized_exported_program.json               the program
    serialized_state_dict.pt                       weights, a torch.save file; ".json" in 2.1 and 2.2, in spite of which
                                                   it is the same kind of file
    serialized_constants.pt                        constants, likewise; ".json" in 2.2, missing in 2.1
    serialized_example_inputs.pt                   from 2.4 on
    version                                        the schema version, "1" to "8.7"
    extra_files/<file>                             the user's own files

A file that is no zip and begins with a brace is one program's JSON ("json"): an archive of one record (`bare`). `parts`
says which records belong to a program, whatever the layout.
"""
