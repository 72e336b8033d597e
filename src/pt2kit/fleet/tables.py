"""The three Arrow tables of a dataset; `docs/fleet.md` lists their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

SCHEMA: Final = 1
"""Raised when a column goes, or means something else; a new column at the end does not raise it."""

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "files": MappingProxyType(
            {
                "url": "string",
                "size": "int64",
                "etag": "string",
                "outcome": "string",
                "rule": "string",
                "place": "string",
                "error": "string",
                "release": "string",
                "schema_version": "string",
                "programs": "int64",
                "nodes": "int64",
                "parameters": "int64",
                "bytes_by_dtype": "dtypes",
                "errors": "int64",
                "warnings": "int64",
                "notes": "int64",
                "digest_program": "string",
                "digest_graph": "string",
                "digest_signature": "string",
                "digest_constraints": "string",
                "digest_weights": "string",
                "digest_constants": "string",
                "digest_metadata": "string",
                "oldest_version": "string",
                "output": "string",
                "seconds": "double",
                "ended": "time",
            }
        ),
        "problems": MappingProxyType(
            {
                "url": "string",
                "etag": "string",
                "rule": "string",
                "severity": "string",
                "kind": "string",
                "place": "string",
                "message": "string",
            }
        ),
        "operators": MappingProxyType(
            {"url": "string", "etag": "string", "program": "string", "operator": "string", "count": "int64"}
        ),
    }
)
"""Table -> column -> its type; "dtypes" is a list of dtype, tensors, elements and bytes, "time" is UTC."""

TABLES: Final = tuple(COLUMNS)
OUTCOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ok": "done, and nothing is wrong",
        "problems": "read, and something in it is wrong: a row in `problems` for each",
        "refused": "read, and what was asked cannot be done: nothing was written",
        "unreadable": "not there, not a program, or the server does not give it",
        "timeout": "took longer than it may",
        "memory": "took more memory than it may",
        "crashed": "ended the process that read it, twice, or an error of this package",
        "gone": "had a row, and was removed since",
    }
)
GONE: Final = "gone"
FAILURES: Final = ("unreadable", "timeout", "memory", "crashed")


def arrow_schema(table: str) -> Any:
    """Return the schema of a table."""
    import pyarrow as pa

    sizes = [("dtype", pa.string()), ("tensors", pa.int64()), ("elements", pa.int64()), ("bytes", pa.int64())]
    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "dtypes": pa.list_(pa.struct(sizes)),
        "time": pa.timestamp("us", tz="UTC"),
    }
    metadata = {"pt2kit.fleet.schema": str(SCHEMA)}
    return pa.schema([(name, types[kind]) for name, kind in COLUMNS[table].items()], metadata=metadata)


def make_table(table: str, rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows as an Arrow table; columns that a row lacks are null."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), schema=arrow_schema(table))


def to_stream(table: Any) -> bytes:
    """Return a table as the bytes of an Arrow stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def of_stream(data: bytes) -> Any:
    """Return the table in an Arrow stream."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
