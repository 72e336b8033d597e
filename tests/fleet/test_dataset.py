"""A dataset is read by others, refuses what is not its own, and loses nothing but what never counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pt2kit.errors import UnsupportedError
from pt2kit.fleet.dataset import (
    COLUMNS,
    OUTCOMES,
    SCHEMA,
    TABLES,
    Folder,
    begin,
    load_seen,
    make_folder,
    make_table,
    output_name,
    part_names,
    repair,
    write_part,
)
from pt2kit.fleet.reading import checked_options
from pt2kit.fleet.targets import Seen, state_key

needs_arrow = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pt2kit[fleet] is not installed")
FILE = {
    "url": "/m/a.pt2",
    "size": 12,
    "etag": "7",
    "outcome": "ok",
    "bytes_by_dtype": [{"dtype": "float32", "tensors": 1, "elements": 2, "bytes": 8}],
    "seconds": 0.5,
    "ended": 1_700_000_000_000_000,
}


LOST = {"url": "/m/b.pt2", "outcome": "crashed", "size": None, "etag": ""}


def part(*files: dict[str, Any]) -> dict[str, Any]:
    """The tables of a part with some files, each with a problem and an operator."""
    rows = {
        "files": files,
        "problems": [{"url": one["url"], "etag": one["etag"], "rule": "A1", "severity": "error"} for one in files],
        "operators": [{"url": one["url"], "etag": one["etag"], "operator": "aten.add", "count": 2} for one in files],
    }
    return {table: [make_table(table, rows[table])] for table in TABLES}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A dataset without parts."""
    made = make_folder(tmp_path / "out")
    assert begin(made, "check", checked_options("check", {}), resume=False) is False
    return made


def test_urls_of_folders() -> None:
    """Slashes at the end make no difference; a URL without a bucket is no local folder."""
    assert [make_folder(url).shown for url in ("s3://bucket/out//", "s3://")] == ["s3://bucket/out", "s3://"]


@needs_arrow
def test_others_read_it(folder: Folder) -> None:
    """pandas, polars and DuckDB read the tables, with the columns and types that are documented."""
    readers = ("pandas", "polars", "duckdb")
    reason = "pt2kit[fleet-test] is not installed"
    pandas, polars, duckdb = (pytest.importorskip(name, reason=reason) for name in readers)
    write_part(folder, "part-1", part(FILE, {**FILE, "url": "/m/b.pt2"}))
    write_part(folder, "part-2", part({**FILE, "url": "/m/c.pt2", "bytes_by_dtype": None}))
    for table in TABLES:
        frame = pandas.read_parquet(folder.path(table))
        assert (list(frame.columns), len(frame)) == (list(COLUMNS[table]), 3)
        glob = folder.path(f"{table}/*.parquet")
        assert polars.read_parquet(glob).shape == (3, len(COLUMNS[table]))
        assert duckdb.sql(f"SELECT count(*) FROM '{glob}'").fetchall() == [(3,)]
    files = folder.path("files/*.parquet")
    assert polars.read_parquet(files)["bytes_by_dtype"][0].to_list() == FILE["bytes_by_dtype"]
    assert duckdb.sql(f"SELECT sum(d.bytes) FROM '{files}', unnest(bytes_by_dtype) AS t(d)").fetchall() == [(16,)]
    assert str(pandas.read_parquet(folder.path("files"))["ended"].dtype) == "datetime64[us, UTC]"


@needs_arrow
def test_what_does_not_count_is_removed(folder: Folder) -> None:
    """A part without its files, and one that was cut off, are removed; the others and foreign files stay."""
    for name in ("part-1", "part-2", "part-3"):
        write_part(folder, name, part({**FILE, "url": f"/m/{name}"}))
    Path(folder.path("files/part-2.parquet")).unlink()
    cut = Path(folder.path("operators/part-3.parquet"))
    cut.write_bytes(cut.read_bytes()[:-20])
    Path(folder.path("files/notes.txt")).write_text("mine")
    assert part_names(folder) == ["part-1", "part-3"]
    assert repair(folder) == ["part-2", "part-3"]
    assert part_names(folder) == ["part-1"]
    left = sorted(path.relative_to(folder.place).as_posix() for path in Path(folder.place).rglob("*.*"))
    assert left == [
        "files/notes.txt",
        "files/part-1.parquet",
        "fleet.json",
        "operators/part-1.parquet",
        "problems/part-1.parquet",
    ]


@needs_arrow
def test_what_has_a_row_is_known(folder: Folder) -> None:
    """Name, size and state are known again; outcomes that are to be done again are not."""
    write_part(folder, "part-1", part(FILE, {**FILE, **LOST}))
    seen = Seen()
    assert load_seen(folder, seen) == 2
    assert seen.states("/m/a.pt2") == (state_key(12, "7"),)
    assert not seen.add("/m/b.pt2", state_key(None, ""))
    assert seen.add("/m/a.pt2", state_key(12, "8"))
    assert load_seen(folder, Seen(), again=("crashed",)) == 1


@pytest.mark.parametrize(
    ("work", "options", "resume", "message"),
    [
        ("show", {}, True, 'expected a dataset of work "show", got one of work "check"'),
        ("check", {"strict": True}, True, 'expected a dataset of options {"payloads":false,"strict":true}, got one of'),
        ("check", {}, False, "expected an empty folder, got a dataset of this work; go on with --resume"),
    ],
)
def test_datasets_of_others(folder: Folder, work: str, options: dict[str, Any], resume: bool, message: str) -> None:
    """Another work's dataset, one of other options, and one that is there already are refused."""
    with pytest.raises(UnsupportedError) as caught:
        begin(folder, work, checked_options(work, options), resume=resume)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.pt2", "x", "expected an empty folder or a dataset, got other files ('model.pt2')"),
        ("fleet.json", "{", "fleet.json: expected JSON, got"),
        ("fleet.json", '{"format": "other"}', "expected what pt2 fleet writes, got another JSON file"),
        ("fleet.json", json.dumps({"format": "pt2kit fleet", "schema": 99}), f"expected a dataset of schema {SCHEMA}"),
    ],
)
def test_folders_of_others(tmp_path: Path, name: str, content: str, message: str) -> None:
    """A folder that holds something else is refused, and left as it is."""
    (tmp_path / name).write_text(content)
    with pytest.raises(UnsupportedError) as caught:
        begin(make_folder(tmp_path), "check", checked_options("check", {}), resume=True)
    assert message in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """A plain file cannot hold results."""
    (tmp_path / "out").write_text("x")
    with pytest.raises(UnsupportedError, match="expected a folder for the results, got a file"):
        begin(make_folder(tmp_path / "out"), "check", checked_options("check", {}), resume=False)


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Folder]:
    """A folder here, and one of another file system."""
    import fsspec

    yield make_folder(str(tmp_path / "here") if request.param == "local" else "memory://there")
    fsspec.filesystem("memory").store.clear()


def test_folders_are_alike(place: Folder) -> None:
    """Files are written, read, listed and removed alike, wherever they are."""
    assert (place.read("a/b.txt"), place.names(), place.names("a")) == (None, [], [])
    place.write("a/b.txt", b"one")
    place.write("a/b.txt", b"two")
    place.write("c.txt", b"three")
    assert (place.read("a/b.txt"), place.names(), place.names("a")) == (b"two", ["a", "c.txt"], ["b.txt"])
    place.remove("a/b.txt")
    place.remove("a/b.txt")
    assert place.read("a/b.txt") is None


@pytest.mark.parametrize(
    ("relative", "expected"),
    [
        ("a/b.pt2", "a/b.pt2"),
        ("files/b.pt2", "files_/b.pt2"),
        ("files_/b.pt2", "files__/b.pt2"),
        ("fleet.json", "fleet.json_"),
        ("a/files/b.pt2", "a/files/b.pt2"),
        ("../b.pt2", ""),
        ("a/../../b.pt2", ""),
        ("a//b.pt2", ""),
        ("", ""),
    ],
)
def test_written_files_keep_to_their_place(relative: str, expected: str) -> None:
    """A written file lies below the folder, next to the tables and not in them; a path that leads out has no place."""
    assert output_name(relative) == expected


def test_documented_columns() -> None:
    """`docs/fleet.md` has every column of every table, in order, every outcome, and the version."""
    import re

    text = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text(encoding="utf-8")
    for table, columns in COLUMNS.items():
        section = text.split(f"### `{table}`", 1)[1].split("\n### ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(columns)
    section = text.split("### Outcomes", 1)[1].split("\n## ")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)) == dict(OUTCOMES)
    assert f"version of the tables: {SCHEMA})" in text
