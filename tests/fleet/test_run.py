"""A fleet on a real cluster of two worker processes: nothing is lost, nothing is done twice, whatever dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.fleet import fleets

pytest.importorskip("distributed", reason="pt2kit[fleet] is not installed")
pytest.importorskip("pyarrow", reason="pt2kit[fleet] is not installed")
pytestmark = pytest.mark.slow

ALL_HOSTILE = [case["path"] for case in samples.hostile()]


MANY = 240
SLOW = "0.06"
"""Files and seconds for each that keep two workers busy for longer than it takes until a first part is written."""


CLUSTER = """
if __name__ == "__main__":
    import sys
    from distributed import LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


def start_cluster(**more: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start two workers; returns the process that they end with, and the address of their scheduler."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        env=fleets.environment(**more),
    )
    return process, (process.stdout.readline() if process.stdout else b"").decode().strip()


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of workers that several commands use, as starting them takes longer than the work."""
    process, address = start_cluster()
    yield address
    process.communicate(b"")


@pytest.fixture(scope="module")
def slow_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list of so many files, which take time where `PT2KIT_SLOW` is set."""
    folder = tmp_path_factory.mktemp("slow")
    names = folder / "names.txt"
    names.write_text("".join(f"slow://{path}\n" for path in fleets.copies(folder / "models", MANY)))
    return names


TABLES = ("files", "problems", "operators")


@pytest.fixture(scope="module")
def undisturbed(slow_files: Path, scheduler: str) -> dict[str, list[dict[str, Any]]]:
    """The tables of a check of those files that nothing disturbed."""
    out = slow_files.parent / "out"
    done = fleets.fleet("check", slow_files, "--out", out, "--scheduler", scheduler)
    assert done.code == 0, done.err
    found = {table: fleets.rows(out, table) for table in TABLES}
    assert len(found["files"]) == MANY
    return found


def test_every_hostile_file_has_a_row(tmp_path: Path, scheduler: str) -> None:
    """The whole hostile set goes through two workers: a row for each file, none of which ended a process."""
    done = fleets.fleet(
        "check", str(samples.DATA / "hostile" / "*.pt2"), "--out", tmp_path / "out", "--scheduler", scheduler
    )
    assert (done.code, done.err) == (1, "")
    rows = fleets.by_name(tmp_path / "out")
    assert set(rows) == {path.name for path in ALL_HOSTILE} | {"benign.pt2"}
    assert {row["outcome"] for row in rows.values()} <= {"ok", "problems", "unreadable"}
    with_rule = {row["url"] for row in fleets.rows(tmp_path / "out", "problems") if row["rule"]}
    assert {row["url"] for row in rows.values() if row["outcome"] != "ok"} <= with_rule


def test_the_rows_are_what_the_single_commands_say(tmp_path: Path, scheduler: str) -> None:
    """For each work, a row says what the function for one file says."""
    import pt2kit
    from pt2kit.text.summary import summarize

    paths = fleets.copies(tmp_path / "models", 12)
    for work in ("show", "check", "digest"):
        out = tmp_path / work
        assert (
            fleets.fleet(work, str(tmp_path / "models" / "**" / "*.pt2"), "--out", out, "--scheduler", scheduler).err
            == ""
        )
        rows = fleets.by_name(out)
        assert len(rows) == 12
        for path in paths:
            row = rows[path.name]
            assert (row["url"], row["size"], row["etag"]) == (
                str(path),
                path.stat().st_size,
                str(path.stat().st_mtime_ns),
            )
            with pt2kit.open(path) as package:
                [model] = summarize(package).models
                assert (row["release"], row["schema_version"]) == (package.producer, package.stored_schema_version)
                assert (row["nodes"], row["parameters"]) == (model.nodes, model.parameters.total.elements)
                if work == "digest":
                    digest = pt2kit.digest(package)
                    assert (row["digest_program"], row["digest_weights"]) == (digest.program, digest.weights)
        if work == "check":
            problems = fleets.rows(out, "problems")
            for path in paths:
                here = sorted(problem["message"] for problem in problems if problem["url"] == str(path))
                assert here == sorted(problem.message for problem in pt2kit.check(path))
        calls = {(row["url"], row["operator"]): row["count"] for row in fleets.rows(out, "operators")}
        with pt2kit.open(paths[0]) as package:
            counted = summarize(package).models[0].operators
        assert {name: n for (url, name), n in calls.items() if url == str(paths[0])} == {
            name: n for group in counted.values() for name, n in group.items()
        }


def with_faults(tmp_path: Path, *kinds: str) -> tuple[Path, list[Path]]:
    """A list of sample files with such faults among them, and the sample files."""
    fine = fleets.copies(tmp_path / "models", 6)
    names = tmp_path / "names.txt"
    faults = [f"fault://{kind}/{kind}.pt2" for kind in kinds]
    names.write_text("\n".join([str(fine[0]), *faults, *map(str, fine[1:]), "/nowhere/gone.pt2"]))
    return names, fine


def test_files_that_end_what_reads_them(tmp_path: Path) -> None:
    """A crash, too long and too much memory are rows; the files next to them are done, and none is done again."""
    names, fine = with_faults(tmp_path, "crash", "sleep", "memory", "fault")
    args = ("check", names, "--out", tmp_path / "out", "--workers", "2", "--timeout", "15", "--memory", "300M")
    done = fleets.fleet(*args)
    assert done.code == 1, done.err
    rows = fleets.by_name(tmp_path / "out")
    assert {name: row["outcome"] for name, row in rows.items() if name not in {path.name for path in fine}} == {
        "crash.pt2": "crashed",
        "sleep.pt2": "timeout",
        "memory.pt2": "memory",
        "fault.pt2": "unreadable",
        "gone.pt2": "unreadable",
    }
    assert all(rows[path.name]["outcome"] == "ok" for path in fine)
    assert "Segmentation fault (11)" in rows["crash.pt2"]["error"]
    assert "expected at most 15 seconds" in rows["sleep.pt2"]["error"]
    assert "expected at most 314,572,800 bytes" in rows["memory.pt2"]["error"]
    again = fleets.fleet(*args, "--resume")
    assert again.out.startswith("check: 0 files"), (again.out, again.err)
    assert again.code == 1  # of the dataset, which has failures, not of the run, which had none
    assert len(fleets.by_name(tmp_path / "out")) == 11


def test_a_file_that_ends_workers(tmp_path: Path) -> None:
    """A file that ends the Dask worker itself, again and again, is the one that is blamed, and no other."""
    names, fine = with_faults(tmp_path, "worker", "fault")
    log = tmp_path / "log"
    done = fleets.fleet("check", names, "--out", tmp_path / "out", "--workers", "2", PT2KIT_FAULTS=str(log))
    assert done.code == 1, done.err
    rows = fleets.by_name(tmp_path / "out")
    assert rows["worker.pt2"]["outcome"] == "crashed"
    assert "KilledWorker" in rows["worker.pt2"]["error"]
    assert (rows["fault.pt2"]["outcome"], rows["gone.pt2"]["outcome"]) == ("unreadable", "unreadable")
    assert all(rows[path.name]["outcome"] == "ok" for path in fine)
    assert log.read_text().split().count("worker") >= 2


def test_killed_workers_cost_nothing(tmp_path: Path, slow_files: Path, undisturbed: Any) -> None:
    """Workers killed in the middle: their files run elsewhere, and the dataset is that of an undisturbed run."""
    process = fleets.start("check", slow_files, "--out", tmp_path / "out", "--workers", "2", PT2KIT_SLOW=SLOW)
    fleets.wait_for_parts(tmp_path / "out", process)
    for _ in range(2):
        os.kill(fleets.workers_of(process)[0], signal.SIGKILL)
        time.sleep(1.5)
    done = fleets.finish(process)
    assert done.code == 0, done.err
    assert {table: fleets.rows(tmp_path / "out", table) for table in TABLES} == undisturbed


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_resume_ends_with_the_same_dataset(
    tmp_path: Path, how: signal.Signals, slow_files: Path, undisturbed: Any, scheduler: str
) -> None:
    """A command that is killed or interrupted leaves a readable dataset and no process; --resume does the rest."""
    import psutil

    process = fleets.start("check", slow_files, "--out", tmp_path / "out", "--workers", "2", PT2KIT_SLOW=SLOW)
    fleets.wait_for_parts(tmp_path / "out", process)
    started = psutil.Process(process.pid).children(recursive=True)
    if how is signal.SIGINT:
        os.killpg(process.pid, how)
        done = fleets.finish(process)
        assert done.code == 130
        assert done.err == f"interrupted; go on with: --out {tmp_path / 'out'} --resume\n"
    else:
        process.send_signal(how)
        process.communicate(timeout=60)
    left = fleets.rows(tmp_path / "out")
    assert 0 < len(left) < MANY
    _, alive = psutil.wait_procs(started, timeout=30)
    assert alive == []
    # A crash of the machine may leave a part without its files, and one that was cut off.
    [first, *_] = sorted((tmp_path / "out" / "files").iterdir())
    (tmp_path / "out" / "problems" / "part-0-orphan.parquet").write_bytes(b"PAR1")
    first.write_bytes(first.read_bytes()[:100])
    done = fleets.fleet("check", slow_files, "--out", tmp_path / "out", "--scheduler", scheduler, "--resume")
    assert done.code == 0, done.err
    assert {table: fleets.rows(tmp_path / "out", table) for table in TABLES} == undisturbed


def test_resume_does_what_changed_or_is_asked_for(tmp_path: Path, scheduler: str) -> None:
    """With --resume, a file that changed and one that is new are done; with --again, those of an outcome, too."""
    paths = fleets.copies(tmp_path / "models", 4)
    target = str(tmp_path / "models" / "**" / "*.pt2")
    args = ("check", target, "--out", tmp_path / "out", "--scheduler", scheduler)
    assert fleets.fleet(*args).code == 0
    refused = fleets.fleet(*args)
    assert (refused.code, "go on with --resume" in refused.err) == (2, True)
    shutil.copyfile(samples.sample("2.13.0", "dynamic_batch"), paths[1])
    fleets.copies(tmp_path / "more", 6)
    shutil.copyfile(tmp_path / "more" / "team2" / "m00005.pt2", tmp_path / "models" / "new.pt2")
    done = fleets.fleet(*args, "--resume")
    assert (done.code, done.out.startswith("check: 2 files")) == (0, True), done.err
    assert len(fleets.rows(tmp_path / "out")) == 6
    again = fleets.fleet(*args, "--resume", "--again", "ok")
    assert again.out.startswith("check: 5 files"), again.err
    from pt2kit.fleet.figures import figures_of

    assert figures_of(str(tmp_path / "out")).files == 5


def test_failures_of_earlier_runs_are_named(tmp_path: Path, scheduler: str) -> None:
    """With --resume, the exit code is that of the dataset, and the files that it is due to are in the output."""
    paths = fleets.copies(tmp_path / "models", 3)
    paths[1].write_bytes(b"no archive")
    args = ("check", str(tmp_path / "models"), "--out", tmp_path / "out", "--scheduler", scheduler)
    assert fleets.fleet(*args).code == 1
    done = fleets.fleet(*args, "--resume")
    assert (done.code, done.out.splitlines()[1]) == (
        1,
        "  unreadable  1 (of an earlier run; repeat with --again unreadable)",
    )
    assert json.loads(fleets.fleet(*args, "--resume", "--json").out)["earlier"] == {"unreadable": 1}
    shutil.copyfile(paths[0], paths[1])
    assert fleets.fleet(*args, "--resume").code == 0


def test_removed_files_are_marked_as_gone(tmp_path: Path, scheduler: str) -> None:
    """With --resume, a removed file gets one row as gone; a file that comes back is done again."""
    from pt2kit.fleet.figures import figures_of

    paths = fleets.copies(tmp_path / "models", 4)
    args = ("check", str(tmp_path / "models"), "--out", tmp_path / "out", "--scheduler", scheduler)
    assert fleets.fleet(*args).code == 0
    kept = paths[1].with_suffix(".kept")
    paths[1].rename(kept)
    for expected in ("  gone        1", "dataset in"):
        done = fleets.fleet(*args, "--resume")
        assert (done.code, done.out.splitlines()[1].startswith(expected)) == (0, True), done.out
    figures = figures_of(str(tmp_path / "out"))
    assert (figures.files, dict(figures.outcomes)) == (3, {"ok": 3, "gone": 1})
    kept.rename(paths[1])
    done = fleets.fleet(*args, "--resume")
    assert (done.code, done.out.startswith("check: 1 file,")) == (0, True), done.out
    figures = figures_of(str(tmp_path / "out"))
    assert (figures.files, dict(figures.outcomes)) == (4, {"ok": 4})


def test_a_worker_that_ends_while_the_cluster_starts(tmp_path: Path) -> None:
    """The command ends with one line and 2, not with Dask's traceback."""
    fleets.copies(tmp_path / "models", 4)
    process = fleets.start("check", str(tmp_path / "models"), "--out", tmp_path / "out", "--workers", "2")
    for _ in range(600):
        if workers := fleets.workers_of(process):
            os.kill(workers[0], signal.SIGKILL)
            break
        time.sleep(0.02)
    done = fleets.finish(process)
    assert (done.code, done.out) == (2, "")
    [line] = done.err.splitlines()
    assert line.startswith("error: cluster: expected 2 worker processes to start, got: ")


def test_written_files(tmp_path: Path, scheduler: str) -> None:
    """Converted and sanitized files lie under OUT by their relative path, whole; what is refused is not there."""
    import pt2kit

    paths = fleets.copies(tmp_path / "models", 6)
    (tmp_path / "models" / "files").mkdir()
    shutil.copyfile(paths[0], tmp_path / "models" / "files" / "first.pt2")
    shutil.copyfile(samples.DATA / "hostile" / "059_op_unknown.pt2", tmp_path / "models" / "bad.pt2")
    target = str(tmp_path / "models" / "**" / "*.pt2")
    for work, more in (("convert", ("--target", "torch==2.13")), ("sanitize", ("--strip", "traces"))):
        out = tmp_path / work
        done = fleets.fleet(work, target, "--out", out, "--scheduler", scheduler, *more)
        rows = fleets.rows(out)
        assert len(rows) == 8, done.err
        for row in rows:
            relative = Path(row["url"]).relative_to(tmp_path / "models").as_posix()
            expected = out / (f"files_/{relative[6:]}" if relative.startswith("files/") else relative)
            if row["outcome"] == "ok":
                assert row["output"] == str(expected)
                with pt2kit.open(expected) as package:
                    assert package.programs
            else:
                assert (row["outcome"] in ("refused", "unreadable"), expected.exists()) == (True, False)
        assert [row["outcome"] for row in rows if row["url"].endswith("first.pt2")] == ["ok"]
        written = {path for path in out.rglob("*") if path.is_file() and path.suffix != ".parquet"}
        assert written == {Path(row["output"]) for row in rows if row["output"]} | {out / "fleet.json"}


def test_a_scheduler_that_is_there(tmp_path: Path, slow_files: Path, scheduler: str) -> None:
    """With --scheduler, an existing cluster does the work; if it goes away, the command reports it and can go on."""
    cluster, address = start_cluster(PT2KIT_SLOW=SLOW)
    try:
        process = fleets.start("show", slow_files, "--out", tmp_path / "out", "--scheduler", address)
        fleets.wait_for_parts(tmp_path / "out", process)
        cluster.kill()
        done = fleets.finish(process)
        assert done.code == 2
        assert "scheduler: expected it to be there to the end, got none; go on with --resume" in done.err
    finally:
        cluster.kill()
        cluster.communicate()
    done = fleets.fleet("show", slow_files, "--out", tmp_path / "out", "--resume", "--scheduler", scheduler)
    assert done.code == 0, done.err
    assert len(fleets.rows(tmp_path / "out")) == MANY
    gone = fleets.fleet("show", slow_files, "--out", tmp_path / "other", "--scheduler", address)
    assert gone.code == 2
    assert f"scheduler {address}: expected a Dask scheduler that answers" in gone.err


SCRIPT = """
import sys
import pt2kit.fleet
done = pt2kit.fleet.run("digest", iter(sys.argv[2:]), out=sys.argv[1], workers=1, only=["graph"])
print(done.files, dict(done.outcomes))
"""


def test_a_script_without_a_guard(tmp_path: Path) -> None:
    """A script may call `run` as it stands: workers do not run it again."""
    paths = fleets.copies(tmp_path / "models", 3)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "out"), *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=120,
        env=fleets.environment(),
    )
    assert (done.returncode, done.stdout) == (0, "3 {'ok': 3}\n"), done.stderr
    assert {row["digest_program"] for row in fleets.rows(tmp_path / "out")} == {None}
    assert all(row["digest_graph"].startswith("sha256:") for row in fleets.rows(tmp_path / "out"))
