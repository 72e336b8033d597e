"""The command line as a whole: help, exit codes, one line for every error, nothing heavy imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import ENVIRONMENT, in_terminal, pt2

from pt2kit.cli.main import COMMANDS
from pt2kit.cli.output import Help

MLP = samples.sample("2.13.0", "mlp")
HEAVY = ("torch", "numpy", "rich", "fsspec", "ml_dtypes", "safetensors", "aiohttp")


def test_help_lists_the_commands() -> None:
    """`pt2` alone and `pt2 --help` list every command; each command's own help has two examples and the exit codes."""
    for args in ((), ("--help",), ("-h",)):
        found = pt2(*args)
        assert all(name in found.out + found.err for name in COMMANDS)
    assert pt2("--help").code == 0
    for name in COMMANDS:
        found = pt2(name, "--help")
        assert found.code == 0
        assert found.out.count(f"pt2 {name} ") >= 2
        assert "Exit codes:" in found.out


@pytest.mark.parametrize(("extra", "lines"), [(0, 1), (1, 2)])
def test_help_uses_the_whole_width(extra: int, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples are broken where the terminal ends, and not before."""
    monkeypatch.setenv("COLUMNS", "80")
    text = Help(width=78)
    text.write(f"pt2 show {'x' * 65} a{'b' * (4 + extra)}\n")
    assert text.getvalue().count("\n") == lines


def test_version() -> None:
    """`pt2 --version` says the version of the package."""
    import pt2kit

    assert pt2("--version").out == f"pt2, version {pt2kit.__version__}\n"


@pytest.mark.parametrize(
    "args",
    [
        ["show"],
        ["shw", "x"],
        ["show", "--nope", "x"],
        ["show", "x", "--graph", "--records"],
        ["weights", "x", "--to", "a.txt"],
    ],
)
def test_wrong_usage(args: list[str]) -> None:
    """A command line that makes no sense ends with 2 and says how it is used."""
    found = pt2(*args)
    assert (found.code, found.out) == (2, "")
    assert "Usage: " in found.err


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("nope.pt2", "error: nope.pt2: No such file or directory\n"),
        ("http://127.0.0.1:9/x.pt2", "http://127.0.0.1:9/x.pt2: expected to read it, got"),
        ("nope://host/x.pt2", "nope://host/x.pt2: expected to read it, got"),
        ("a\x1b[31m\udcff.pt2", "a\\x1b[31m\\udcff.pt2"),
        (os.fspath(samples.DATA / "hostile" / "manifest.json"), "expected"),
        (os.fspath(samples.DATA / "hostile" / "135_zip_text_file.pt2"), "[A2]"),
        (os.fspath(samples.DATA / "hostile" / "200_ver_schema_9.pt2"), "got 9.0, newer than"),
    ],
)
def test_what_cannot_be_opened(file: str, text: str) -> None:
    """A file that cannot be read ends with 2 and one line that says why."""
    for command in ("show", "weights"):
        found = pt2(command, file)
        assert (found.code, found.out) == (2, "")
        assert found.err.startswith("error: ")
        assert text in found.err
        assert found.err.count("\n") == 1
        assert found.err.rstrip("\n").isprintable()


def test_hostile_files() -> None:
    """No hostile file gets a traceback out of any command, and no control character onto the terminal."""
    code = f"""
import contextlib, io, json, sys
from pt2kit.cli.main import main
MLP = {str(MLP)!r}
for file in json.load(sys.stdin):
    for args in (
        ["show", file], ["show", file, "--json"], ["show", file, "--graph"], ["show", file, "--records"],
        ["weights", file, "--constants"],
        ["diff", file, MLP], ["diff", MLP, file, "--json"], ["diff", file, file], ["diff", "--textconv", file],
    ):
        sys.argv = ["pt2", *args]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as exit:
                code = exit.code
        lines = (out.getvalue() + err.getvalue()).split("\\n")
        assert code in (0, 1, 2), (file, args, code)
        assert all(line.isprintable() for line in lines), (file, args)
        assert (code == 2) == bool(err.getvalue()), (file, args, err.getvalue())
        assert err.getvalue().count("\\n") == (1 if code == 2 else 0), (file, args)
        assert code == 0 or "--textconv" not in args, (file, args, code)
"""
    files = [str(case["path"]) for case in samples.hostile() if case["name"] != "zip_bomb_json_list"]
    found = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(files).encode(),
        capture_output=True,
        timeout=280,
        env=ENVIRONMENT,
    )
    assert found.returncode == 0, found.stderr.decode()


@pytest.mark.parametrize(
    "args",
    [
        ["show", MLP],
        ["show", MLP, "--json"],
        ["show", MLP, "--graph"],
        ["show", MLP, "--node", "relu"],
        ["show", MLP, "--module", "0"],
        ["show", MLP, "--records"],
        ["weights", MLP],
        ["weights", MLP, "--json"],
        ["--help"],
    ],
    ids=lambda args: " ".join(str(arg) for arg in args if arg is not MLP),
)
def test_nothing_heavy_is_imported(args: list[str | Path]) -> None:
    """Whatever is only looked at is looked at without torch, numpy, rich and their like."""
    code = f"""
import sys
sys.argv = ["pt2", *sys.argv[1:]]
from pt2kit.cli.main import main
try:
    main()
finally:
    found = [name for name in {HEAVY!r} if name in sys.modules]
    sys.exit(f"imported: {{', '.join(found)}}") if found else None
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, timeout=60, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_missing_package_is_one_line() -> None:
    """A command that needs PyTorch ends with 2 and names the extra that installs it, if PyTorch is missing."""
    code = """
import sys
sys.modules["torch"] = None
sys.argv = ["pt2", "diff", sys.argv[1], "--run", "--against", "torch"]
from pt2kit.cli.main import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code, str(MLP)], capture_output=True, timeout=60, env=ENVIRONMENT)
    expected = "error: pt2: expected the package torch, which is not installed: pip install 'pt2kit[torch]'\n"
    assert (done.returncode, done.stderr.decode()) == (2, expected)


def test_help_imports_no_command() -> None:
    """`pt2 --help` imports no command and no subpackage that reads files."""
    code = """
import sys
from pt2kit.cli.main import main
sys.argv = ["pt2", "--help"]
try:
    main()
finally:
    found = [name for name in sys.modules if name.startswith(("pt2kit.package", "pt2kit.text", "pt2kit.cli.show"))]
    sys.exit(f"imported: {', '.join(found)}") if found else None
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_full_disk() -> None:
    """Output that cannot be written ends with 2 and one line."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pt2kit", "show", str(MLP)], stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1


def test_no_standard_output() -> None:
    """A command without a standard output does its work and says nothing."""
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -m pt2kit show "$1" >&-', sys.executable, str(MLP)],
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_that_is_not_unicode() -> None:
    """Characters that an encoding lacks are escaped; JSON is always UTF-8."""
    path = samples.sample("2.13.0", "dynamic_batch")
    found = pt2("show", path, env={"PYTHONIOENCODING": "ascii"})
    assert found.code == 0
    assert "s77: 2 \\u2026 64" in found.out
    odd = samples.sample("2.13.0", "odd_names")
    assert "été" in pt2("show", odd, "--json", env={"PYTHONIOENCODING": "ascii"}).out


def test_colours() -> None:
    """A terminal gets colours, unless it or its user wants none; a pipe gets none."""
    assert "\x1b[" in in_terminal("show", MLP).out
    assert "\x1b[" not in in_terminal("show", MLP, env={"NO_COLOR": "1"}).out
    assert "\x1b[" not in in_terminal("show", MLP, env={"TERM": "dumb"}).out
    assert "\x1b[" not in pt2("show", MLP).out
    plain = in_terminal("show", MLP, env={"NO_COLOR": "1"}).out.replace("\r\n", "\n")
    assert plain == pt2("show", MLP).out
