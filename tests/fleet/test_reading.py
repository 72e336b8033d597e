"""One file and a work give rows, in this process and in one of its own; nothing in a row harms who reads it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.fleet import fleets

import pt2kit
from pt2kit.errors import LimitError, UnsupportedError, VersionError
from pt2kit.fleet.dataset import OUTCOMES
from pt2kit.fleet.isolation import Limits, Process, Processes
from pt2kit.fleet.listing import local_state
from pt2kit.fleet.reading import WORKS, Item, Job, checked_options, plain, read_file, shown_name
from pt2kit.fleet.targets import state_key

MLP = samples.sample("2.13.0", "mlp")


def job(work: str, out: str = "", **options: Any) -> Job:
    """A job of a work."""
    return Job(work, checked_options(work, options), out, {})


def item(path: Path | str, **more: Any) -> Item:
    """A file to read."""
    return Item(os.fsencode(path), **more)


@pytest.mark.parametrize("work", ["show", "check", "digest"])
def test_every_sample_has_its_row(work: str) -> None:
    """Files of every release are read, and have release, version, nodes and operators."""
    for release in samples.RELEASES:
        rows = read_file(job(work), item(samples.corpus(release)[0]))
        assert rows.files["outcome"] in ("ok", "problems")
        assert rows.files["release"].startswith("torch ")
        assert rows.files["nodes"] == sum(row["count"] for row in rows.operators)


def test_a_file_of_several_programs(tmp_path: Path) -> None:
    """All its programs are counted; it is digested where one is asked for, as by the single command."""
    path = tmp_path / "two.pt2"
    pt2kit.write(pt2kit.pack({"a": MLP, "b": samples.sample("2.13.0", "dynamic_batch")}), path)
    rows = read_file(job("show"), item(path))
    assert rows.files["programs"] == 2
    assert {row["program"] for row in rows.operators} == {"a", "b"}
    none, one = read_file(job("digest"), item(path)), read_file(job("digest", model="b"), item(path))
    assert none.files["outcome"] == "unreadable"
    assert none.files["error"].startswith("expected a program, one of 'a', 'b', got none")
    assert one.files["digest_program"] == pt2kit.digest(path, "b").program


def test_a_file_that_is_not_there() -> None:
    """A file that cannot be opened has a row with the reason, which is read back."""
    rows = read_file(job("check"), item("/nowhere/a.pt2"))
    assert (rows.files["outcome"], rows.files["size"]) == ("unreadable", None)
    assert rows.files["error"] == "FileNotFoundError: No such file or directory"
    assert read_file(job("check"), item("/nowhere/a.pt2", known=(state_key(None, ""),))).files == {}


def test_a_state_that_is_known() -> None:
    """A file whose state has a row is not read again; in another state it is."""
    known = state_key(MLP.stat().st_size, local_state(MLP.stat()))
    assert read_file(job("check"), item(MLP, known=(known,))).files == {}
    assert read_file(job("check"), item(MLP, known=(state_key(1, "2"),))).files


def test_what_cannot_be_done_is_refused_and_not_written(tmp_path: Path) -> None:
    """A conversion that would lose something is a row with what stands in the way."""
    path = samples.sample("2.13.0", "dynamic_batch")
    rows = read_file(job("convert", str(tmp_path), target="torch==2.1"), item(path, output="a/b.pt2"))
    if rows.files["outcome"] == "refused":
        assert rows.files["rule"] == "M3"
        assert rows.problems
        assert not (tmp_path / "a" / "b.pt2").exists()
    else:
        assert (tmp_path / "a" / "b.pt2").exists()
    outside = read_file(job("convert", str(tmp_path), target="torch==2.13"), item(path, output=""))
    assert "expected a path below the folder for results" in outside.files["error"]


def test_names_are_plain_and_hold_no_secrets() -> None:
    """A dataset's names can be encoded, and hold neither passwords nor what stands in a query."""
    assert shown_name("/m/a.pt2") == "/m/a.pt2"
    assert shown_name("s3://bucket/a.pt2") == "s3://bucket/a.pt2"
    shown = shown_name("https://user:pass@host/a.pt2?X-Amz-Signature=secret")
    assert shown.startswith("https://host/a.pt2?")
    assert not any(word in shown for word in ("user", "pass", "secret"))
    assert shown_name("https://host/a?id=1") != shown_name("https://host/a?id=2")
    assert plain("a\udcffb") == "a\\udcffb"
    assert len(plain("x" * 10_000)) < 5_000


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets child processes know the URLs of `faults`."""
    monkeypatch.setattr(sys, "path", [str(fleets.FAULTS), *sys.path])


def test_a_process_is_kept_from_file_to_file() -> None:
    """Rows from a process are those from this one; the process reads the next file as well."""
    pytest.importorskip("psutil", reason="pt2kit[fleet] is not installed")
    processes = Processes(job("check"), Limits(60, 4 << 30))
    try:
        for path in samples.corpus("2.13.0")[:3]:
            here, there = read_file(job("check"), item(path)), processes.read(item(path))
            assert (there.problems, there.operators) == (here.problems, here.operators)
            assert there.files["outcome"] in OUTCOMES
        assert processes._idle.qsize() == 1
    finally:
        processes.end()


@pytest.mark.usefixtures("faults")
@pytest.mark.parametrize(
    ("kind", "outcome", "message"),
    [
        ("crash", "crashed", "expected rows, got the end of the process by Segmentation fault (11)"),
        ("sleep", "timeout", "expected at most 3 seconds, got more"),
        ("memory", "memory", "expected at most 300,000,000 bytes of memory, got "),
    ],
)
def test_what_ends_a_process_is_a_row(kind: str, outcome: str, message: str) -> None:
    """A file that ends its process has a row that says how, and the next file is read."""
    pytest.importorskip("psutil", reason="pt2kit[fleet] is not installed")
    processes = Processes(job("check"), Limits(3, 300_000_000))
    try:
        rows = processes.read(item(f"fault://{kind}/x.pt2"))
        assert rows.files["outcome"] == outcome
        assert rows.files["error"].startswith(message)
        after = processes.read(item(MLP))
        assert after.files["outcome"] == "ok"
    finally:
        processes.end()


def test_the_end_of_the_worker_ends_the_process() -> None:
    """A process whose worker is gone does not stay behind."""
    pytest.importorskip("psutil", reason="pt2kit[fleet] is not installed")
    process = Process(job("check"))
    process._pipe.close()
    assert process._popen.wait(30) == 0
    process.end()


def test_a_process_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failing to start a process is an error of the run, and no file is blamed."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(LimitError, match="worker: expected a process that reads files, got none"):
        Processes(job("check"), Limits(3, 0)).read(item(MLP))


def test_a_pipe_is_given_up(tmp_path: Path) -> None:
    """A name that stands for a pipe nobody writes to is a file that takes too long."""
    pytest.importorskip("psutil", reason="pt2kit[fleet] is not installed")
    os.mkfifo(tmp_path / "pipe.pt2")
    processes = Processes(job("check"), Limits(2, 0))
    try:
        rows = processes.read(item(tmp_path / "pipe.pt2"))
    finally:
        processes.end()
    assert rows.files["outcome"] == "timeout"


@pytest.mark.parametrize(
    ("work", "options", "error", "message"),
    [
        ("bake", {}, UnsupportedError, f"work: expected one of {', '.join(WORKS)}, got 'bake'"),
        ("check", {"model": "a"}, UnsupportedError, "check: expected one of payloads, strict, got 'model'"),
        ("digest", {"only": ["all"]}, UnsupportedError, "only: expected one of program, graph"),
        ("digest", {"only": "graph"}, TypeError, "only: expected a collection of names, got one text"),
        ("convert", {}, UnsupportedError, "convert: expected target, such as 'torch==2.13', got none"),
        ("convert", {"target": "torch==9"}, VersionError, "torch==9"),
        ("convert", {"target": "torch==2.13", "allow": ["all"]}, UnsupportedError, "allow: expected names of losses"),
        ("sanitize", {"drop": ["everything"]}, UnsupportedError, "drop: expected one of"),
    ],
)
def test_works_that_cannot_be(work: str, options: dict[str, Any], error: type[Exception], message: str) -> None:
    """A work or option that the single command would refuse is refused before any file is touched."""
    with pytest.raises(error) as caught:
        checked_options(work, options)
    assert message in str(caught.value)
