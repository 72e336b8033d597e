"""Dataset of a run: a manifest and Parquet parts in a folder, local or remote, each written once and completely.

    fleet.json                  the work, its options, the version of the tables
    files/NAME.parquet          what is known of each file; written last: a part counts when it is there
    problems/NAME.parquet       their problems
    operators/NAME.parquet      their operators

A process that is killed leaves at most a part without its `files`, which `repair` removes. What has a row is skipped
when the work goes on.

The folder (`Folder`) is local or in a file system of fsspec: it reads, lists, and writes files completely or not at
all.

`docs/fleet.md` lists the columns of the three Arrow tables.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

import msgspec

from pt2kit.digests.result import PARTS
from pt2kit.errors import Pt2Error, UnsupportedError
from pt2kit.fleet.listing import is_gone
from pt2kit.fleet.reading import installed
from pt2kit.fleet.targets import Seen, state_key
from pt2kit.zip.listing import is_url, local_path
from pt2kit.zip.remote import file_system, guarded, public_url
from pt2kit.zip.target import replacing

SCHEMA: Final = 1
"""Raised when a column goes, or means something else; a new column at the end does not raise it."""


def _columns(*texts: str) -> Mapping[str, str]:
    """Return column -> type of texts of columns, each `name` of strings or `name:type`."""
    columns = (column.partition(":") for text in texts for column in text.split())
    return MappingProxyType({name: kind or "string" for name, _, kind in columns})


COLUMNS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "files": _columns(
            "url size:int64 etag outcome rule place error release schema_version",
            "programs:int64 nodes:int64 parameters:int64 bytes_by_dtype:dtypes errors:int64 warnings:int64 notes:int64",
            *(f"digest_{part}" for part in PARTS),
            "oldest_version output seconds:double ended:time",
        ),
        "problems": _columns("url etag rule severity kind place message"),
        "operators": _columns("url etag program operator count:int64"),
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


MANIFEST: Final = "fleet.json"
FORMAT: Final = "pt2kit fleet"
SUFFIX: Final = ".parquet"
_COMMITS: Final = "files"
RESERVED: Final = (*TABLES, MANIFEST)
"""Names in the folder that written files may not begin with."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, by path or URL.

    Args:
        place: a path or URL, without a slash at its end.
        storage_options: passed to fsspec for a URL.
    """

    place: str
    storage_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_remote(self) -> bool:
        """Return whether fsspec is needed."""
        return is_url(self.place)

    @property
    def shown(self) -> str:
        """Return its name in messages."""
        return public_url(self.place) if self.is_remote else self.place

    def path(self, name: str) -> str:
        """Return the path or URL of a file in it."""
        return f"{self.place}/{name}"

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if it does not exist.

        Raises:
            OSError, ArchiveError: it cannot be read.
        """
        try:
            data: bytes = self._call(lambda fs, path: fs.cat_file(f"{path}/{name}"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file completely or not at all.

        Raises:
            OSError, ArchiveError: it cannot be written.
        """
        path = self.path(name)
        if not self.is_remote:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with replacing(path, storage_options=self.storage_options) as file:
            file.write(data)

    def names(self, below: str = "") -> list[str]:
        """Return the names in it, or in a folder below it; none if that does not exist.

        Raises:
            OSError, ArchiveError: it cannot be listed.
        """

        def listed(fs: Any, path: str) -> list[str]:
            fs.invalidate_cache()
            full = f"{path}/{below}".rstrip("/")
            return [name for entry in fs.ls(full, detail=False) if (name := entry.rstrip("/")) != full]

        try:
            return sorted(entry.rpartition("/")[2] for entry in self._call(listed))
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError):
            self._call(lambda fs, path: fs.rm_file(f"{path}/{name}"))

    def _call(self, call: Callable[[Any, str], Any]) -> Any:
        """Call a function with the file system of the folder, and its path there."""
        if self.is_remote:
            fs, path = guarded(self.shown, lambda: file_system(self.place, self.storage_options))
            return guarded(self.shown, lambda: call(fs, path.rstrip("/")))
        from fsspec.implementations.local import LocalFileSystem

        return call(LocalFileSystem(), self.place)


def make_folder(place: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Folder:
    """Return the folder of a path or URL; it is neither created nor read yet."""
    text = local_path(os.fspath(place))
    if not is_url(text):
        return Folder(os.path.abspath(text), storage_options or {})
    return Folder(shorter if is_url(shorter := text.rstrip("/")) else text, storage_options or {})


def begin(folder: Folder, work: str, options: Mapping[str, Any], *, resume: bool) -> bool:
    """Create a dataset, or continue one.

    Args:
        folder: empty, not there yet, or with `resume` the dataset of the same work.
        work: the name of the work.
        options: its options, all of them.
        resume: go on with what is there.

    Returns:
        whether there was one.

    Raises:
        UnsupportedError: it holds something else, another work's dataset, or one that is there already.
        OSError, ArchiveError: it cannot be read or written.
    """
    there = read_manifest(folder)
    made = {"format": FORMAT, "schema": SCHEMA, "work": work, "options": options}
    if there is None:
        if not folder.is_remote and os.path.exists(folder.place) and not os.path.isdir(folder.place):
            raise UnsupportedError(f"{folder.shown}: expected a folder for the results, got a file")
        if names := folder.names():
            raise UnsupportedError(
                f"{folder.shown}: expected an empty folder or a dataset, got other files ({names[0][:80]!r}); "
                "pass another --output"
            )
        written = msgspec.json.encode({**made, "pt2kit": installed()})
        folder.write(MANIFEST, msgspec.json.format(written, indent=2) + b"\n")
        return False
    for key, value in msgspec.json.decode(msgspec.json.encode(made)).items():
        if there.get(key) != value:
            raise UnsupportedError(
                f"{folder.shown}: expected a dataset of {_shown(key, value)}, "
                f"got one of {_shown(key, there.get(key))}; pass another --output"
            )
    if not resume:
        raise UnsupportedError(
            f"{folder.shown}: expected an empty folder, got a dataset of this work; go on with --resume, or give "
            "another --out"
        )
    return True


def _shown(key: str, value: Any) -> str:
    return f"{key} {msgspec.json.encode(value).decode()[:200]}"


def read_manifest(folder: Folder) -> dict[str, Any] | None:
    """Return the manifest of a dataset; None if there is none.

    Raises:
        UnsupportedError: a `fleet.json` that is of something else.
        OSError, ArchiveError: it cannot be read.
    """
    data = folder.read(MANIFEST)
    if data is None:
        return None
    try:
        manifest: Any = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise UnsupportedError(f"{folder.path(MANIFEST)}: expected JSON, got: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UnsupportedError(f"{folder.path(MANIFEST)}: expected what pt2 fleet writes, got another JSON file")
    return manifest


def write_part(folder: Folder, name: str, tables: Mapping[str, Sequence[Any]]) -> None:
    """Write a part of each table; the part is valid once that of `files`, the last, is written.

    Args:
        folder: of the dataset.
        name: of the part.
        tables: table -> the Arrow tables of its rows; tables without rows may be missing.

    Raises:
        OSError, ArchiveError: it cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for table in sorted(TABLES, key=lambda table: table == _COMMITS):
        buffer = io.BytesIO()
        rows = pa.concat_tables([make_table(table, ()), *tables.get(table, ())]).combine_chunks()
        pq.write_table(rows, buffer, compression="zstd")
        folder.write(f"{table}/{name}{SUFFIX}", buffer.getvalue())


def _named_parts(folder: Folder) -> dict[str, set[str]]:
    """Return table -> the names of its parts, valid or not."""
    return {table: {name.removesuffix(SUFFIX) for name in folder.names(table) if _is_part(name)} for table in TABLES}


def part_names(folder: Folder) -> list[str]:
    """Return the names of the valid parts."""
    return sorted(set.intersection(*_named_parts(folder).values()))


def repair(folder: Folder) -> list[str]:
    """Remove invalid parts: those that are missing in a table, or incomplete.

    Returns:
        names of the parts that were removed.

    Raises:
        OSError, ArchiveError: the folder cannot be read or written.
    """
    named = _named_parts(folder)
    removed = []
    for name in sorted(set.union(*named.values())):
        if all(name in named[table] and is_whole(folder, table, name) for table in TABLES):
            continue
        removed.append(name)
        for table in sorted(TABLES, key=lambda table: table != _COMMITS):
            folder.remove(f"{table}/{name}{SUFFIX}")
    return removed


def is_whole(folder: Folder, table: str, name: str) -> bool:
    """Return whether a part of a table can be read: it is complete and has the table's columns."""
    try:
        columns = set(open_part(folder, table, name).schema_arrow.names)
    except (OSError, Pt2Error, ValueError):
        return False
    return set(arrow_schema(table).names) <= columns


def open_part(folder: Folder, table: str, name: str) -> Any:
    """Open a part as `pyarrow.parquet.ParquetFile`.

    Raises:
        OSError, ArchiveError, ValueError: it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = f"{table}/{name}{SUFFIX}"
    if folder.is_remote:
        return pq.ParquetFile(pa.BufferReader(folder.read(path) or b""))
    return pq.ParquetFile(folder.path(path))


def part_rows(folder: Folder, table: str, name: str, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of one part, some thousand at a time, with all columns or some.

    Raises:
        OSError, ArchiveError, ValueError: it cannot be read.
    """
    for batch in open_part(folder, table, name).iter_batches(8192, columns=columns):
        yield from batch.to_pylist()


def load_seen(folder: Folder, seen: Seen, *, again: tuple[str, ...] = ()) -> int:
    """Record which files have a row.

    Args:
        folder: the dataset.
        seen: takes names and states.
        again: outcomes that do not count: those files are done once more.

    Returns:
        how many files have a row that counts.
    """
    count = 0
    columns = ["url", "size", "etag", "outcome"]
    for row in chain.from_iterable(part_rows(folder, "files", name, columns) for name in part_names(folder)):
        if row["outcome"] == GONE:
            seen.forget(row["url"])
        elif row["outcome"] not in again:
            count += seen.add(row["url"], state_key(row["size"], row["etag"]))
    return count


def gone_files(folder: Folder, seen: Seen, storage_options: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the files of the dataset that were removed since.

    Args:
        folder: the dataset.
        seen: which files were listed, once all were.
        storage_options: passed to fsspec for URLs.

    Raises:
        OSError, ArchiveError, ValueError: the dataset cannot be read.
    """
    with closing(Seen()) as done:
        for name in reversed(part_names(folder)):
            rows = part_rows(folder, "files", name, ["url", "outcome"])
            for url, outcome in {row["url"]: row["outcome"] for row in rows}.items():
                if done.add(url, b"") and outcome != GONE and not seen.is_listed(url) and is_gone(url, storage_options):
                    yield url


def output_name(relative: str) -> str:
    """Return the path of a written file below the folder, outside the tables; "" if it would lead out."""
    names = relative.replace(os.sep, "/").split("/")
    if not relative or any(name in ("", ".", "..") for name in names) or "\0" in relative:
        return ""
    if names[0].rstrip("_") in RESERVED:
        names[0] += "_"
    return "/".join(names)


def _is_part(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith((".", "_"))
