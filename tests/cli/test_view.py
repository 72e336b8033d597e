"""`pt2 view`: a page on this machine, or a file that stands alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import ENVIRONMENT, pt2
from tests.diffs.cases import with_other_bytes

MLP = samples.sample("2.13.0", "mlp")


def test_html(tmp_path: Path) -> None:
    """`--html` writes one file, and says how large it is."""
    out = tmp_path / "mlp.html"
    found = pt2("view", MLP, "--html", out)
    assert (found.code, found.err) == (0, "")
    assert found.out == f"{out}  {out.stat().st_size:,} bytes\n"
    assert 'data-request="program/0"' in out.read_text("utf-8")


def test_html_of_a_bad_file(tmp_path: Path) -> None:
    """A file that cannot be read gives a page with the reason, and exit code 1."""
    bad = tmp_path / "bad.pt2"
    bad.write_bytes(b"nothing")
    found = pt2("view", bad, "--html", tmp_path / "bad.html")
    assert found.code == 1
    assert "bad.pt2" in found.err
    assert "expected" in found.err


def test_options_that_contradict() -> None:
    """Contradictory uses are refused."""
    found = pt2("view", MLP, "--tensors")
    assert found.code == 2
    assert "expected --tensors with --html" in found.err
    assert "expected --watch with local files" in pt2("view", "nothere.pt2", "--watch").err
    assert "expected standard input once" in pt2("view", "-", "-").err


@pytest.mark.parametrize("options", [[], ["--html", "page.html"], ["--export", "figure.svg"]])
def test_a_missing_file(tmp_path: Path, options: list[str]) -> None:
    """It ends with one line and exit code 2; no page is written about a file that does not exist."""
    written = [str(tmp_path / option) if "." in option else option for option in options]
    found = pt2("view", tmp_path / "nothere.pt2", "--no-browser", *written)
    assert found.code == 2
    assert found.err.count("\n") == 1
    assert "nothere.pt2" in found.err
    assert list(tmp_path.iterdir()) == []


def test_fail_on(tmp_path: Path) -> None:
    """A change of a named kind gives exit code 1; other changes do not."""
    other = samples.sample("2.13.0", "dynamic_batch")
    out = tmp_path / "diff.html"
    assert pt2("view", MLP, other, "--html", out).code == 0
    assert pt2("view", MLP, other, "--html", out, "--fail-on", "any").code == 1
    assert pt2("view", MLP, MLP, "--html", out, "--fail-on", "any").code == 0
    assert "expected --fail-on with two files" in pt2("view", MLP, "--fail-on", "added").err


def test_run(tmp_path: Path) -> None:
    """`--run` runs both files, and the page shows the errors of their nodes."""
    old, new, out = tmp_path / "old.pt2", tmp_path / "new.pt2", tmp_path / "page.html"
    for path, content in zip((old, new), with_other_bytes("mlp", "weights"), strict=True):
        path.write_bytes(content)
    assert pt2("view", old, new, "--html", out, "--run").code == 0
    assert 'data-request="data"' in out.read_text("utf-8")
    assert "expected --run with two files" in pt2("view", old, "--run").err


def test_data_must_be_numbers(tmp_path: Path) -> None:
    """`--data` accepts numbers by the name of a node, or columns of these, and names what it cannot use."""
    path, out = tmp_path / "data.json", tmp_path / "page.html"
    path.write_text('{"errors": {"linear": 1.5}}')
    assert pt2("view", MLP, "--html", out, "--data", path).code == 0
    assert 'data-request="data"' in out.read_text("utf-8")
    path.write_text('{"linear": "high"}')
    found = pt2("view", MLP, "--html", out, "--data", path)
    assert found.code == 2
    assert "'linear': expected a finite number" in found.err


def test_serves_until_interrupted() -> None:
    """It prints the address, answers there, and ends quietly with Ctrl-C."""
    command = [sys.executable, "-m", "pt2kit", "view", str(MLP), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        url = run.stdout.readline().strip()
        with urllib.request.urlopen(url, timeout=30) as reply:
            assert b"pt2 view" in reply.read()
        run.send_signal(signal.SIGINT)
        assert run.wait(30) == 0
        assert run.stderr.read() == ""
