"""Run the command `pt2` in tests: in a copy of the test's process, or in a fresh one.

A copy (`os.fork`) costs a tenth of a fresh process, because nothing has to be imported again, and is as separate:
its output, exit code, folder and environment are its own. Tests of signals, terminals and imports take a fresh one.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ENVIRONMENT = {
    key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING")
}


MODULE = os.environ.get("PT2KIT_TEST_MODULE", "pt2kit")
"""The module that is the command; `tests/project/test_without_posix.py` sets another."""


@dataclass(frozen=True)
class Result:
    """How a command ended: its exit code, and what it wrote.

    Args:
        code: the exit code; minus the number of a signal that ended it.
        out: its standard output.
        err: its standard error.
    """

    code: int
    out: str
    err: str


def pt2(
    *args: str | Path,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    cwd: str | Path | None = None,
    fresh: bool | None = None,
    limits: Mapping[int, int] | None = None,
) -> Result:
    """Run `pt2` with arguments; its output goes to files.

    Args:
        args: the command line.
        stdin: what it reads; nothing by default.
        env: variables on top of this process's.
        cwd: its folder.
        fresh: use a fresh process; by default, if the command may start others, or Python itself reads a variable.
        limits: of `resource.setrlimit`, by their numbers; memory is what the command takes on top of its process.
    """
    words = list(map(str, args))
    serves = words[:1] == ["view"] and "--html" not in words
    starts_others = serves or words[:1] == ["fleet"] or any(word.startswith(("--jobs", "-j")) for word in words)
    read_by_python = any(name.startswith("PYTHON") for name in env or ())
    variables = {**ENVIRONMENT, **(env or {})}
    if fresh is None:
        fresh = starts_others or read_by_python
    if fresh or MODULE != "pt2kit" or not hasattr(os, "fork"):
        done = subprocess.run(
            [sys.executable, "-m", MODULE, *words],
            input=stdin,
            capture_output=True,
            timeout=120,
            env=variables,
            cwd=cwd,
            preexec_fn=functools.partial(_limit, limits) if limits else None,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin or b"")
        given.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks of processes with threads
            child = os.fork()
        if child == 0:
            _limit({kind: most + _in_use(kind) for kind, most in (limits or {}).items()})
            _become(words, variables, cwd, (given.fileno(), out.fileno(), err.fileno()))
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read())
    return Result(code, texts[0].decode(), texts[1].decode(errors="replace"))


def _limit(limits: Mapping[int, int]) -> None:
    """Limit what this process may use."""
    import resource

    for kind, most in limits.items():
        resource.setrlimit(kind, (most, most))


def _in_use(kind: int) -> int:
    """Return how much of a limit this process, a copy of the test's, has used before the command starts."""
    import resource

    if kind != resource.RLIMIT_DATA or not sys.platform.startswith("linux"):
        return 0
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]  # data and stack
    return int(pages) * resource.getpagesize()


def _become(
    words: list[str], variables: dict[str, str], cwd: str | Path | None, streams: tuple[int, int, int]
) -> NoReturn:
    """Run the command in this process, a copy of the test's, and end it."""
    code: Any = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
            for number, mode, errors in ((0, "r", "strict"), (1, "w", "strict"), (2, "w", "backslashreplace"))
        )
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(120)
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        os.environ.clear()
        os.environ.update(variables)
        if cwd is not None:
            os.chdir(cwd)
        sys.argv = ["pt2", *words]
        from pt2kit.__main__ import main

        main()
        code = 0
    except SystemExit as error:
        code = error.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - what ends a process ends this one
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def in_terminal(*args: str | Path, env: dict[str, str] | None = None) -> Result:
    """Run `pt2` with arguments in a pseudo-terminal; `out` is what the terminal got."""
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, *map(str, args)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**ENVIRONMENT, "TERM": "xterm-256color", "COLUMNS": "120", "PT2_PAGER": "cat", **(env or {})},
    )
    os.close(follower)
    parts = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(leader)
    return Result(process.wait(timeout=60), b"".join(parts).decode(), "")
