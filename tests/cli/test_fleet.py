"""`pt2 fleet`: what cannot be is said before any work starts, and the bar says how far it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import pt2

from pt2kit.cli.fleet import BAR, bar, run_text

pytest.importorskip("distributed", reason="pt2kit[fleet] is not installed")

MLP = str(samples.sample("2.13.0", "mlp"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["check", "{here}/none/*.pt2"], "No such file or directory"),
        (["check", "{here}/*.onnx"], "expected files that match, got none"),
        (["check", "{here}/nothing.pt2"], "No such file or directory"),
        (["check", "nosuch://bucket/**"], "Protocol not known"),
        (["check", "{here}/**"], "out: expected a folder outside of the targets"),
        (["check", MLP, "--scheduler", "127.0.0.1:9"], "scheduler 127.0.0.1:9: expected a Dask scheduler that answers"),
        (["check", MLP, "--scheduler", "x", "--workers", "2"], "expected one of --scheduler and --workers, got both"),
        (["check", MLP, "--memory", "much"], "--memory: expected a size such as 500M or 4G, got 'much'"),
        (["check", MLP, "--timeout", "0"], "Invalid value for '--timeout': 0.0 is not in the range x>0"),
        (["check", MLP, "--again", "crashed"], "again: expected resume with it, got it alone"),
        (["check", MLP, "--resume", "--again", "all"], "again: expected one of ok, problems"),
        (["check", MLP, "--storage", "anon"], "--storage: expected NAME=VALUE, got 'anon'"),
        (["digest", MLP, "--only", "all"], "only: expected one of program, graph"),
        (["convert", MLP], "convert: expected target, such as 'torch==2.13', got none"),
        (["convert", MLP, "--target", "torch==9.9"], "torch==9.9"),
        (["convert", MLP, "--target", "torch==2.13", "--opset", "aten=x"], "--opset: expected NS=NUMBER"),
        (["sanitize", MLP, "--drop", "all"], "drop: expected one of"),
    ],
)
def test_bad_input(tmp_path: Path, args: list[str], message: str) -> None:
    """Each has its error and the exit code 2, and no dataset is begun that work was done for."""
    (tmp_path / "a.txt").write_text("x")
    out = tmp_path / "out"
    done = pt2("fleet", *(arg.format(here=tmp_path) for arg in args), "--out", out, fresh=False)
    assert done.code == 2
    assert message in done.err
    assert not list(out.glob("*/*.parquet"))


def test_another_datasets_folder(tmp_path: Path) -> None:
    """A folder with other files in it is refused and left as it is."""
    (tmp_path / "mine.txt").write_text("x")
    done = pt2("fleet", "check", MLP, "--out", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "expected an empty folder or a dataset, got other files ('mine.txt'); pass another --output" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_the_bar_tells() -> None:
    """Files, bytes, rate, time left and failures; time left when all are counted."""
    from pt2kit.fleet.running import Progress

    state = Progress(
        files=1200,
        bytes=5_000_000,
        outcomes=Counter(ok=1190, crashed=10),
        skipped=300,
        total_files=5100,
        counted=True,
        started=100.0,
    )
    assert run_text(state, 160.0) == "1,500 of 5,100 files, 5 MB, 20.0 files/s, 0:03:00 left, 10 failed"
    state.counted = False
    assert run_text(state, 160.0) == "1,500 of 5,100+ files, 5 MB, 20.0 files/s, 10 failed"


@pytest.mark.parametrize(("number", "shown"), [(0, ""), (1, "▏"), (1000, "█" * BAR), (500, "█" * (BAR // 2))])
def test_bars(number: int, shown: str) -> None:
    """A bar is as long as its number; what is more than nothing shows."""
    assert bar(number, 1000) == shown


def test_a_mistyped_command_of_fleet_gets_a_suggestion() -> None:
    """As commands of `pt2` do."""
    assert "got 'chekc'; did you mean check?" in pt2("fleet", "chekc", "models").err
