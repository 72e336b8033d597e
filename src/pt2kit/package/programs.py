"""Read the record of a program: decoded in one typed pass, and upgraded to the current schema version.

A newer minor version only adds: its fields are kept as unknown keys. A newer major version is refused. Programs of the
current major from minor 14 on differ from current ones only by fields that may be left out; anything older goes through
`legacy_programs`, which is imported for it alone.

Records of JSON are read within a budget: how many values a small file may unfold to. Deflated text of `{},{},{}` needs
a thousandth of its size in the file and fifty times its size in memory. So values are counted in the text before any of
them is built, against the bytes that the record takes in the file. Programs that torch writes have up to 3.3 values per
deflated byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.collector import no_collection
from pt2kit.errors import GraphError, JsonError, LimitError, SchemaError, VersionError
from pt2kit.jsontext import path_text, structure
from pt2kit.package.stored import StoredProgram
from pt2kit.schema.types import share_arguments
from pt2kit.schema.versions import stated_pair
from pt2kit.tensors.bounds import check_device, is_device
from pt2kit.zip.reader import Archive

FREE_VALUES: Final = 1_000_000
"""Values that any record may have: some 60 MB as plain objects."""

VALUES_PER_BYTE: Final = 6
"""Values allowed beyond the minimum, for each byte that the record takes in the file."""

FREE_NODES: Final = 20_000
"""Nodes, or entries of tree specs, that any program may have: some 2 seconds of drawing or converting."""

BYTES_PER_NODE: Final = 20
"""Bytes of the file for each further one. Nodes of models take 56 and more, without metadata 23."""

VALUES_PER_NODE: Final = 2
"""Entries of value tables allowed for each node that is allowed; programs that torch writes have up to 1.5."""

FREE_PARTS: Final = 1_000_000
"""Entries of stacks and origins, and lines of stack traces, that any program may have in texts that differ: some 3
seconds of parsing; and one more for each byte of the file. Programs that torch writes have 0.1 for a byte."""

FREE_EXPRESSIONS: Final = 2_000_000
"""Characters of different expressions that any program may have: some 3 seconds of parsing and comparing; and one more
for each byte of the file. Programs that torch writes have some thousands."""

_FEWEST_VALUES_OF_A_NODE: Final = 8

ReadOlder: TypeAlias = "Callable[[memoryview, str, SchemaError | JsonError | None], StoredProgram]"
"""(JSON, the record's name, why it does not have the current form) -> a program of an older schema."""
_NOT_MARKS: Final = bytes(set(range(256)) - set(b'[{,"'))
_LARGE: Final = 8 << 20
"""Bytes of a program from which on memory counts more than the fifth of reading time that sharing arguments takes."""

_SHARED: Final[codec.Share] = {schema.Node: share_arguments}

DIRECT_SINCE: Final = 14
"""First minor of the current major whose programs are current ones, except fields that may be left out."""


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
    """Refuse a program of far more nodes, values, tree specs, metadata or expressions than fit the bytes of its record.

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
    count, values, graphs = 0, 0, [program.graph_module.graph]
    expressions: set[str] = set()
    metadata: set[str] = set()
    while graphs:
        graph = graphs.pop()
        count += len(graph.nodes)
        values += len(graph.tensor_values) + len(graph.sym_int_values)
        values += len(graph.sym_float_values) + len(graph.sym_bool_values)
        metadata.update(*(node.metadata.values() for node in graph.nodes))
        expressions.update(_expressions(graph))
        graphs += [
            named.arg.value.graph
            for node in graph.nodes
            for named in node.inputs
            if isinstance(named.arg.value, schema.GraphArgument)
        ]
    for noun, found, limit in (
        ("nodes", count, allowed),
        ("described values", values, VALUES_PER_NODE * allowed),
        ("entries of tree specs", _entries(program), allowed),
        ("entries of stacks and lines of traces", sum(map(_parts, metadata)), FREE_PARTS + packed),
    ):
        if found > limit:
            raise LimitError(
                f"{where}: expected at most {limit:,} {noun} in a record of this size in the file, got {found:,}",
                rule="A18",
            )
    if (length := sum(map(len, expressions))) > FREE_EXPRESSIONS + packed:
        raise LimitError(
            f"{where}: expected expressions of at most {FREE_EXPRESSIONS + packed:,} characters together in a record "
            f"of this size in the file, got {length:,}",
            rule="A18",
        )


def _parts(text: str) -> int:
    """Count the entries and lines of a text of metadata, by what separates them in any of its forms."""
    return text.count(";") + text.count("{") + text.count("\n")


def _entries(program: schema.ExportedProgram) -> int:
    """Count the entries of the distinct tree specs of a program, by what each entry has once."""
    calls = [entry.signature for entry in program.graph_module.module_call_graph if entry.signature is not None]
    texts = {text for call in calls for text in (call.in_spec, call.out_spec)}
    return sum(text.count("children_spec") for text in texts)


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
    return len(structure(raw, _NOT_MARKS))


def read_program(
    archive: Archive,
    record: str,
    where: str,
    read_older: ReadOlder,
    *,
    is_older: bool = False,
) -> StoredProgram:
    """Read one program of an archive.

    Args:
        archive: where it is.
        record: its full name.
        where: the record's name, for messages.
        read_older: reads a program of an older schema.
        is_older: whether it is certainly of an older schema.

    Raises:
        ArchiveError: the record is missing or damaged.
        JsonError, SchemaError, LimitError: it is not a program.
        VersionError: it has a version that this build does not read, or something that a newer version added.
        GraphError: a symbol whose range is empty.
        UnsupportedError: a value of the root graph on a device that torch does not have (P6).
    """
    data = read_json(archive, record, where)
    stored = _read_text(data, where, read_older, is_older)
    check_nodes(stored.program, archive.records[record].compressed_size, data.nbytes, where)
    return stored


def _read_text(data: memoryview, where: str, read_older: ReadOlder, is_older: bool) -> StoredProgram:
    refusal: SchemaError | JsonError | None = None
    if not is_older:
        try:
            decoded = codec.decode(data, schema.ExportedProgram, where, _SHARED if len(data) > _LARGE else None)
        except (SchemaError, JsonError) as error:
            refusal = error
        else:
            if is_current_shape(decoded.value.schema_version):
                return from_current(decoded, where)
    with no_collection():
        stored = read_older(data, where, refusal)
    check_stated(stored.program, where)
    return stored


def is_current_shape(version: Any) -> bool:
    """Return whether a `schema_version` is one that the typed pass is for, or that it has to refuse."""
    is_decoded = isinstance(version, schema.SchemaVersion)
    pair = (version.major, version.minor) if is_decoded else stated_pair(version)
    return pair is not None and pair[0] == schema.CURRENT.pair[0] and not 0 <= pair[1] < DIRECT_SINCE


def from_current(decoded: codec.Decoded[schema.ExportedProgram], where: str) -> StoredProgram:
    """Return a program of the current form, stamped with the current version.

    Args:
        decoded: as the typed pass returns it: every field that was added since has its default.
        where: the record's name, for messages.

    Raises:
        VersionError, GraphError, UnsupportedError: as `read_program`.
    """
    program = decoded.value
    version = program.schema_version
    if version.minor < 0:
        raise VersionError(
            f"{where}: $.schema_version: expected a minor from 0 on, got {version.major}.{version.minor}: "
            "this build does not read it"
        )
    check_stated(program, where)
    major, minor = schema.CURRENT.pair
    if version.minor < minor:
        program = replace(program, schema_version=schema.SchemaVersion(major, minor))
    return StoredProgram(program, f"{version.major}.{version.minor}", decoded.unknown)


def version_error(tree: dict[str, Any], where: str, error: SchemaError) -> VersionError | None:
    """Return the error for a record of a newer version that does not fit the schema; None if it is not newer."""
    pair = stated_pair(tree.get("schema_version"))
    if pair is None or pair <= schema.CURRENT.pair:
        return None
    return VersionError(
        f"{where}: expected schema {schema.CURRENT.number} or older, got {pair[0]}.{pair[1]} with something that came "
        f"later ({error}): upgrade pt2kit"
    )


def check_stated(program: schema.ExportedProgram, where: str) -> None:
    """Check what every reader uses of a program without looking at its nodes: ranges and devices.

    Raises:
        GraphError: a symbol whose range is empty.
        UnsupportedError: a device that torch does not have (P6).
    """
    for symbol, limits in program.range_constraints.items():
        low, high = limits.min_val, limits.max_val
        if low is not None and high is not None and low > high:
            place = path_text(("range_constraints", symbol))
            raise GraphError(f"{where}: {place}: expected a least value up to the greatest, got {low} and {high}")
    values = program.graph_module.graph.tensor_values
    # Thousands of values are some dozens of objects; the first name of each is kept.
    for name in dict(zip(map(id, reversed(values.values())), reversed(values), strict=True)).values():
        if not is_device(values[name].device):
            place = path_text(("graph_module", "graph", "tensor_values", name))
            check_device(f"{where}: {place}", values[name].device)
