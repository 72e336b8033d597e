"""The layouts of `.pt2` files: one class for each arrangement of records, all with the interface of `base.Layout`.

    base.py                  `Layout`, the interface of all
    detection.py             detects the layout of an archive
    record_archive.py        torch 2.9 and later; an archive whose programs have several layouts
    torch_save_archive.py    torch 2.8; the plain zips of torch 2.1 to 2.7
    container.py             the containers of schema 8.6, which no release wrote; payloads inside a program
    bare_json.py             a program without an archive

Records of torch 2.9 and later (`RecordArchive`), below one root folder that is named after the file ("archive/" for a
buffer); the order is torch's and carries no meaning::

    data/weights/weight_<i>                        storage number i as raw little-endian bytes. Names that share a
                                                   storage share the record. Only the config describes it. Empty
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
    .data/serialization_id                         a hash of names and CRCs; distinguishes files for torch. Not a
                                                   checksum: nothing compares it with the content. May be missing.

torch 2.8 (`TorchSaveArchive`): the same, but `data/weights/<model>.pt` and `data/constants/<model>.pt`, torch.save
files, instead of storages and configs. One archive may hold programs of both kinds (`MixedArchive`).

torch 2.1 to 2.7 (`PlainZip`), without root folder::

    serialized_exported_program.json               the program
    serialized_state_dict.pt                       weights, a torch.save file; ".json" in 2.1 and 2.2, in spite of which
                                                   it is the same kind of file
    serialized_constants.pt                        constants, likewise; ".json" in 2.2, missing in 2.1
    serialized_example_inputs.pt                   from 2.4 on
    version                                        the schema version, "1" to "8.7"
    extra_files/<file>                             the user's own files

A file that is no zip and begins with a brace is the JSON of one program (`BareJson`): an archive of one record.
"""
