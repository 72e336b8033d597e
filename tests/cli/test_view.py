"""`pt2 view`: a page on this machine, or a file that stands alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests import samples
from tests.cli.run import ENVIRONMENT, pt2

MLP = samples.sample("2.13.0", "mlp")


def test_html(tmp_path: Path) -> None:
    """`--html` writes one file, and says how large it is."""
    out = tmp_path / "mlp.html"
    found = pt2("view", MLP, "--html", out)
    assert (found.code, found.err) == (0, "")
    assert found.out == f"{out}  {len(out.read_text('utf-8')):,} bytes\n"
    assert 'data-request="program/0"' in out.read_text("utf-8")


def test_html_of_a_bad_file(tmp_path: Path) -> None:
    """A file that cannot be read gives a page that says so, the reason, and exit code 1."""
    bad = tmp_path / "bad.pt2"
    bad.write_bytes(b"nothing")
    found = pt2("view", bad, "--html", tmp_path / "bad.html")
    assert found.code == 1
    assert "bad.pt2" in found.err
    assert "expected" in found.err


def test_options_that_contradict() -> None:
    """What cannot be meant is refused."""
    found = pt2("view", MLP, "--tensors")
    assert found.code == 2
    assert "expected --tensors with --html" in found.err
    assert "expected standard input once" in pt2("view", "-", "-").err


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
