"""Read and write the zip file of a `.pt2`, strictly: bytes to named records and back. Independent of JSON and tensors.

    listing.py        paths, patterns and URLs -> files, each opened as a `Source` of bytes
    source.py         a path, bytes or a file object as a `Source`; the limits of reading
    remote.py         a URL as a `Source`, and writing to one
    adjacent.py       files next to an archive, by a relative URL
    reader.py         `open_archive`: a source -> `Archive` (`.records`, `.read(name)`, `.data_offset(name)`); inflating
    directory.py      the central directory, checked entry by entry, also against the local headers
    end_record.py     the end records, which locate the directory; structures of a zip file
    chosen_names.py   names of records, and safe paths for unpacking
    checksums.py      CRC-32 of large records
    foreign.py        types of files that are no `.pt2`
    writer.py         `ArchiveWriter`: records -> an archive
    target.py         a path, URL or file object as a `Target`, which replaces a file atomically

Both ways keep the rules A1 to A18 and A27 of `pt2kit.rules`, whose ids the errors carry.

The bytes of an archive
=======================

A zip file (APPNOTE.TXT 6.3.10), records one after another from offset 0, then the directory, then the end records::

    [header | padding | data | descriptor?]*   [directory entry]*   [ZIP64 end | ZIP64 locator]?   end

    header       30 bytes + name. Equals the record's directory entry; readers that disagree about which of
                 the two counts still read one and the same archive.
    padding      an extra field 'FB' that makes stored data begin at a multiple of 64 bytes. torch and this writer pad;
                 an archive that was packed again with zip or zipfile is not aligned. Do not rely on it.
    data         the content itself (stored), or raw deflate data. torch stores everything, and reads both.
    descriptor   12 to 24 bytes with CRC-32 and sizes, where flag 3 is set. torch writes one after each record that is
                 not empty; this writer writes none.
    CRC-32       over the content. torch writes it and never checks it; here every record is checked when first read.
"""
