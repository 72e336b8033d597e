"""Blocks of `sh` and Python in the documents, run as a reader would: line by line, next to the sample files.

The reader has one environment, whose Python runs this module, and no network: a bucket is a folder here, and lines that
install something or run other programs than `pt2` and `openssl` are left out.

    PYTHONPATH=. PYTHON -m tests.project.shell [PAGE...]      tries every block of pages with another Python

To try the documents as someone who has just installed pt2kit, pass the Python of a fresh environment. It needs no
pytest. Pages are the README, the tutorial and the how-to pages; the exit code is 1 if a block fails.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.project.console import DOCS, ENVIRONMENT, PAGES, ROOT, as_it_is_now, sample_files

_SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_RUN_HERE = re.compile(r"(?:\w+=\S+ )*(?:pt2|openssl) ")


def shell_lines(page: Path) -> list[str]:
    """The lines of the `sh` blocks of a page that can be run without a network."""
    lines = [line for block in _SHELL.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    return [line.replace("s3://bucket/", "") for line in lines if _RUN_HERE.match(line)]


def make_folder(folder: Path) -> dict[str, str]:
    """Put the sample files, a folder `models` of two and the command `pt2` in a folder; return the environment."""
    (folder / "models").mkdir()
    (folder / "bin").mkdir()
    for name, path in sample_files().items():
        shutil.copy(path, folder / name)
    for name in ("model.pt2", "mlp.pt2"):
        shutil.copy(folder / name, folder / "models" / name)
    command = folder / "bin" / "pt2"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pt2kit "$@"\n')
    command.chmod(0o755)
    return {**os.environ, **ENVIRONMENT, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def run_lines(lines: Sequence[str], folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run lines in a shell, one after the other; yield those that fail, with what they print."""
    for line in lines:
        done = subprocess.run(
            ["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
        )
        if done.returncode:
            yield f"{line}\n{done.stdout}{done.stderr}"


def _failures(page: Path) -> Iterator[str]:
    """Try the blocks of a page; yield what fails."""
    if as_it_is_now(page) != page.read_text(encoding="utf-8"):
        yield "a command prints something else"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        environment = make_folder(folder)
        yield from run_lines(shell_lines(page), folder, environment)
        sessions = [block for block in _PYTHON.findall(page.read_text(encoding="utf-8")) if ">>> " in block]
        os.chdir(ROOT if page.parent == ROOT else folder)
        found = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, page.name, None, 0)
        runner = doctest.DocTestRunner(verbose=False)
        printed: list[str] = []
        runner.run(found, out=printed.append)
        yield from printed
        os.chdir(ROOT)


def main(names: Sequence[str]) -> int:
    """Try pages, and print for each what fails."""
    pages = [Path(name).resolve() for name in names] or [page for page in PAGES if page.parent != DOCS / "commands"]
    code = 0
    for page in pages:
        failures = list(_failures(page))
        print(page.relative_to(ROOT), *(failures or ["ok"]), sep="\n  ")
        code |= bool(failures)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
