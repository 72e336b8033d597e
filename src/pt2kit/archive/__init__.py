"""Bytes <-> named records: the zip file that a `.pt2` is. Knows no JSON and no tensors.

Reading: `open_archive(path, bytes, file object or URL)` -> `Archive` (`.records`, `.read(name)`, `.data_offset(name)`);
`verify_header(archive)` -> `Layout`. Writing: `ArchiveWriter(path or file object)`. Both keep the rules A1 to A27 of
`RULES`, whose ids the errors carry.

The bytes of an archive
=======================

A zip file (APPNOTE.TXT 6.3.10), records one after another from offset 0, then the directory, then the end records::

    [header | padding | data | descriptor?]*   [directory entry]*   [ZIP64 end | ZIP64 locator]?   end

    header       30 bytes + name. Says the same as the record's directory entry; readers that disagree about which of
                 the two counts still read one and the same archive.
    padding      an extra field 'FB' that makes stored data begin at a multiple of 64 bytes. torch and this writer pad;
                 an archive that was packed again with zip or zipfile is not aligned. Do not rely on it.
    data         the content itself (stored), or raw deflate data. torch stores everything, and reads both.
    descriptor   12 to 24 bytes with CRC-32 and sizes, where flag 3 is set. torch writes one after each record that is
                 not empty; this writer writes none.
    CRC-32       over the content. torch writes it and never checks it; here every record is checked when first read.

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

from __future__ import annotations

from pt2kit.archive.directory import Record
from pt2kit.archive.layout import Layout, LayoutKind, detect, payload_layout, verify_header
from pt2kit.archive.limits import DEFAULT_LIMITS, Limits
from pt2kit.archive.opening import FileLike, open_source
from pt2kit.archive.reader import Archive, open_archive
from pt2kit.archive.rules import RULES
from pt2kit.archive.source import Source
from pt2kit.archive.writer import ALIGNMENT, ArchiveWriter

__all__ = [
    "Archive",
    "open_archive",
    "Record",
    "Layout",
    "LayoutKind",
    "detect",
    "verify_header",
    "payload_layout",
    "Source",
    "FileLike",
    "open_source",
    "Limits",
    "DEFAULT_LIMITS",
    "ArchiveWriter",
    "ALIGNMENT",
    "RULES",
]
