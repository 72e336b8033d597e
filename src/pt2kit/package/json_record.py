"""Records of JSON, read within a budget: how many values a small file may unfold to.

Deflated text of `{},{},{}` needs a thousandth of its size in the file and fifty times its size in memory. So values are
counted in the text before any of them is built, against the bytes that the record takes in the file. Programs that
torch writes have up to 3.3 values per deflated byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from pt2kit import schema
from pt2kit.errors import LimitError
from pt2kit.zip.reader import Archive

FREE_VALUES: Final = 1_000_000
"""Values that any record may have: some 60 MB as plain objects."""

VALUES_PER_BYTE: Final = 6
"""Values allowed beyond the minimum, for each byte that the record takes in the file."""

FREE_NODES: Final = 30_000
"""Nodes that any program may have: some 3 seconds of hashing."""

BYTES_PER_NODE: Final = 12
"""Bytes of the file for each further node; what torch writes takes 18 and more."""

FREE_EXPRESSIONS: Final = 2_000_000
"""Characters of different expressions that any program may have: some 3 seconds of parsing and comparing; and one more
for each byte of the file. Programs that torch writes have some thousands."""

_FEWEST_VALUES_OF_A_NODE: Final = 8
_MARKS: Final = b'[{,"'
_NOT_MARKS: Final = bytes(set(range(256)) - set(_MARKS))


def read_json(archive: Archive, record: str, where: str) -> memoryview:
    """Read a record of JSON text that has not far more values than the file has bytes for it.

    Raises:
        LimitError: it has (A18).
        Pt2Error: as `Archive.read`.
    """
    data = archive.read(record)
    allowed = FREE_VALUES + VALUES_PER_BYTE * archive.records[record].compressed_size
    # A value takes at least two bytes of text, except brackets inside brackets, of which there are few.
    if 2 * allowed < data.nbytes and (count := _count(bytes(data), allowed)) > allowed:
        raise LimitError(
            f"{where}: expected at most {allowed:,} values in a record of this size in the file, got {count:,}",
            rule="A18",
        )
    return data


def check_nodes(program: schema.ExportedProgram, packed: int, nbytes: int, where: str) -> None:
    """Refuse a program of far more nodes, or of far longer expressions, than the file has bytes for it.

    Args:
        program: the program.
        packed: bytes that its record takes in the file.
        nbytes: bytes of its text.
        where: the record's name, for messages.

    Raises:
        LimitError: it has more (A18).
    """
    allowed = FREE_NODES + packed // BYTES_PER_NODE
    if nbytes < allowed * _FEWEST_VALUES_OF_A_NODE:
        return
    count, graphs = 0, [program.graph_module.graph]
    expressions: set[str] = set()
    while graphs:
        graph = graphs.pop()
        count += len(graph.nodes)
        expressions.update(_expressions(graph))
        graphs += [
            named.arg.value.graph
            for node in graph.nodes
            for named in node.inputs
            if isinstance(named.arg.value, schema.GraphArgument)
        ]
    if count > allowed:
        raise LimitError(
            f"{where}: expected at most {allowed:,} nodes in a record of this size in the file, got {count:,}",
            rule="A18",
        )
    if (length := sum(map(len, expressions))) > FREE_EXPRESSIONS + packed:
        raise LimitError(
            f"{where}: expected expressions of at most {FREE_EXPRESSIONS + packed:,} characters together in a record "
            f"of this size in the file, got {length:,}",
            rule="A18",
        )


def _expressions(graph: schema.Graph) -> Iterator[str]:
    """Yield the text of each symbolic size and number of a graph."""
    sizes = (size for meta in graph.tensor_values.values() for size in (*meta.sizes, *meta.strides))
    offsets = (meta.storage_offset for meta in graph.tensor_values.values())
    symbolic = chain(sizes, offsets, *(table.values() for table in (graph.sym_int_values, graph.sym_float_values)))
    for number in chain(symbolic, graph.sym_bool_values.values()):
        if isinstance(number.value, schema.SymExpr):
            yield number.value.expr_str


def _count(raw: bytes, enough: int) -> int:
    """Count values: commas and opening brackets outside strings; inside as well if these are few enough."""
    rough = raw.count(b",") + raw.count(b"{") + raw.count(b"[")
    if rough <= enough:
        return rough
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = raw.translate(None, _NOT_MARKS).replace(b'""', b"")
    return len(re.sub(rb'"[^"]*"', b"", marks))
