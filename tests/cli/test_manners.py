"""How the command behaves at a terminal, in a pipe, and where it is cut short."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from tests import samples
from tests.cli.run import ENVIRONMENT, in_terminal, pt2

from pt2kit.cli.common import progress

MLP = samples.sample("2.13.0", "mlp")
WIDE = samples.sample("2.13.0", "kwargs_and_nested_inputs")
MANY = samples.sample("2.13.0", "many_params")
BAD = samples.DATA / "hostile" / "000_pickle_sample_inputs.pt2"
NO_DIGEST = "sha256:" + "0" * 64

VERDICTS: list[tuple[list[str | Path], int]] = [
    (["check", BAD], 1),
    (["check", BAD, "--json"], 1),
    (["check", MLP, BAD], 1),
    (["diff", MLP, WIDE], 1),
    (["digest", MLP, "--verify", NO_DIGEST], 1),
    (["schema", "--check", "5.1", "5.3"], 1),
    (["convert", samples.sample("2.13.0", "float8"), "--target", "torch==2.1", "--dry-run"], 1),
    (["sanitize", BAD, "--dry-run"], 1),
    (["show", MLP], 0),
    (["check", BAD, "--full"], 1),
    (["check", BAD, "--sarif"], 1),
    (["diff", MLP, WIDE, "--full"], 1),
    (["diff", MLP, WIDE, "--json"], 1),
    (["show", MANY, "--graph"], 0),
    (["show", MANY, "--json"], 0),
    (["--version"], 0),
    (["show", "--help"], 0),
    (["extra", MLP.with_name("extra_files.pt2"), "note.txt"], 0),
    (["edit", MLP, "-", "--pass", "dce"], 0),
]


@pytest.mark.parametrize(("args", "code"), VERDICTS, ids=lambda value: str(value[0]) if isinstance(value, list) else "")
def test_a_reader_that_goes_away_keeps_the_verdict(args: list[str | Path], code: int) -> None:
    """`pt2 check … | head -1` ends with what was found, and without a word."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pt2kit", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), error) == (code, b"")


@pytest.mark.skipif(os.name != "posix", reason="closed streams are a matter of the shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_streams_that_are_closed(closed: str) -> None:
    """A command without a stream does its work: no traceback, the same exit code."""
    for args, code in ((["check", BAD], 1), (["show", "missing.pt2"], 2), (["show", "--nope"], 2), (["--help"], 0)):
        line = f'exec "$0" -m pt2kit "$@" {closed}'
        done = subprocess.run(
            ["/bin/sh", "-c", line, sys.executable, *map(str, args)], capture_output=True, env=ENVIRONMENT, timeout=60
        )
        assert done.returncode == code
        assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="Windows has no signals between processes")
def test_ctrl_c() -> None:
    """An interrupted command prints one line and ends with 130."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from pt2kit.cli.main import main; print('ready', flush=True); main()", "show", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.decode().strip().splitlines()[-1] == "error: interrupted"
    assert b"Traceback" not in error


WRITERS = """
import os, sys, time
from pt2kit.cli import main
from pt2kit.cli.several import answers
from pt2kit.zip.target import replacing

def write(name):
    with replacing(name):
        os.write(1, b"ready\\n")
        time.sleep(60)

if __name__ == "__main__":
    main.cli.main = lambda **options: list(answers(sys.argv[1:], write, jobs=2))
    main.main()
"""
"""A command that writes several files, and does not come to an end."""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no signals between processes")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("files", [["a"], ["a", "b"]])
def test_signals_leave_no_temporary_file(name: str, files: list[str], tmp_path: Path) -> None:
    """A signal to all processes of a command ends them; what they were writing is gone."""
    (tmp_path / "script.py").write_text(WRITERS)
    process = subprocess.Popen(
        [sys.executable, "script.py", *files],
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        cwd=tmp_path,
        start_new_session=True,
    )
    assert process.stdout is not None
    for _ in files:
        assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, number := signal.Signals[name])
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@pytest.mark.skipif(os.name != "posix", reason="closed streams are a matter of the shell")
@pytest.mark.parametrize("command", ["show", "check", "view", "digest"])
def test_a_standard_input_that_is_closed_is_no_file(command: str) -> None:
    """Reading it gives a one-line error."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m pt2kit "$@" - <&-', sys.executable, command],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: -: expected a file on standard input, got a closed one\n"


@pytest.mark.parametrize("columns", [50, 80, 200])
@pytest.mark.parametrize(
    "args",
    [
        ["show", WIDE],
        ["show", WIDE, "--graph"],
        ["show", samples.sample("2.13.0", "convnet"), "--sizes"],
        ["show", samples.sample("2.13.0", "convnet"), "--records"],
        ["weights", samples.sample("2.13.0", "convnet")],
        ["check", BAD],
        ["diff", MLP, WIDE, "--no-tensors"],
        ["schema"],
        ["convert", "--help"],
        ["check", "missing.pt2"],
        ["edit", MLP, "unwritten.pt2", "--pass", "nothing"],
    ],
    ids=lambda args: " ".join(str(arg) for arg in args if not isinstance(arg, Path)),
)
def test_lines_fit_the_terminal(args: list[str | Path], columns: int) -> None:
    """No line with a place to break it is longer than the terminal, and colours begin and end between words.

    Commands that read tensors show a bar on a machine that is slow, which is not looked at here.
    """
    env = {"COLUMNS": str(columns)}
    shown = in_terminal(*args, env=env).out.replace("\r", "")
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown.split("\n")]
    assert [line for line in lines if len(line) > columns and " " in line.strip()] == []
    assert re.findall(r"[^\W_]\x1b\[[0-9;]+m[^\W_\x1b]", re.sub(r"(\x1b\[[0-9;]*m)+", "\x1b[0m", shown)) == []
    whole = " ".join(pt2(*args).out.split())
    assert pt2(*args).err or " ".join(" ".join(lines).split()).replace("…", "")[:40] == whole.replace("…", "")[:40]


def test_columns_count_in_a_pipe_if_they_are_stated() -> None:
    """COLUMNS bounds what goes to a pipe, too; without it nothing is broken, and JSON and text to read back never."""
    assert max(map(len, pt2("show", WIDE).out.splitlines())) > 80
    assert max(map(len, pt2("show", WIDE, env={"COLUMNS": "80"}).out.splitlines())) <= 80
    for option in ("--json", "--text"):
        assert pt2("show", WIDE, option, env={"COLUMNS": "50"}).out == pt2("show", WIDE, option).out


def test_help_fits_narrow_terminals() -> None:
    """On 40 columns, the paragraphs of a help text are filled to the width, not broken twice."""
    lines = pt2("check", "--help", env={"COLUMNS": "40"}).out.splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[2:4] == ["  Check .pt2 files without running", "  anything of them: archive, JSON,"]


@pytest.mark.parametrize("columns", ["20", "40"])
def test_lines_before_a_heading_have_no_color_of_one(columns: str) -> None:
    """Names of files that are longer than a line are broken before the first heading of the report."""
    files = samples.sample("2.7.1", "multi_output"), samples.sample("2.11.0", "kwargs_and_nested_inputs")
    found = pt2("check", *files, env={"FORCE_COLOR": "1", "COLUMNS": columns})
    assert (found.code, found.err) == (0, "")
    assert "1 sound" in found.out


def test_errors_heed_no_color() -> None:
    """Standard error is colored under the same conditions."""
    assert "\x1b[" in in_terminal("show", "missing.pt2").out
    assert "\x1b[" not in in_terminal("show", "missing.pt2", env={"NO_COLOR": "1"}).out
    assert "\x1b[" in pt2("show", "missing.pt2", env={"FORCE_COLOR": "1"}).err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    """The script of each shell, and what it asks for: commands, options, and names of files."""
    script = pt2("completion", shell)
    assert (script.code, f"_PT2_COMPLETE={shell}_complete" in script.out) == (0, True)
    code = "import sys; sys.argv = ['pt2']; from pt2kit.cli.main import main; main()"
    for words, expected in (("pt2 sanit", "sanitize"), ("pt2 show --rec", "--records"), ("pt2 check mod", "file")):
        env = {"_PT2_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        if shell == "fish":
            env["COMP_CWORD"] = words.rpartition(" ")[2]
        found = subprocess.run(
            [sys.executable, "-c", code], env={**ENVIRONMENT, **env}, capture_output=True, text=True, timeout=60
        )
        assert expected in found.stdout


def test_ctrl_c_while_it_starts() -> None:
    """An interrupt during the first import ends as one does later: a line, and 130."""
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from pt2kit.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENVIRONMENT, timeout=60)
    assert (done.returncode, done.stderr.decode()) == (130, "error: interrupted\n")


def test_quick_work_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sees a bar only once work has taken a while."""
    bar_of = MagicMock()
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("pt2kit.cli.common.bar_of", bar_of)
    with progress("reading") as report:
        report(1, 2)
        assert not bar_of.called
        monkeypatch.setattr("pt2kit.cli.common.PATIENCE", 0)
        report(2, 2)
    assert bar_of.called
