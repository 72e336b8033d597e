"""The command `pt2` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING")
}


MODULE = os.environ.get("PT2KIT_TEST_MODULE", "pt2kit")
"""What is run as the command; `tests/project/test_without_posix.py` says another one."""


@dataclass(frozen=True)
class Result:
    """How a command ended: its exit code, and what it wrote."""

    code: int
    out: str
    err: str


def pt2(*args: str | Path, stdin: bytes | None = None, env: dict[str, str] | None = None, **more: Any) -> Result:
    """Run `pt2` with arguments; its output goes to pipes."""
    done = subprocess.run(
        [sys.executable, "-m", MODULE, *map(str, args)],
        input=stdin,
        capture_output=True,
        timeout=120,
        env={**ENVIRONMENT, **(env or {})},
        **more,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


def in_terminal(*args: str | Path, env: dict[str, str] | None = None) -> Result:
    """Run `pt2` with arguments in a pseudo-terminal; `out` is what the terminal got."""
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, *map(str, args)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**ENVIRONMENT, "TERM": "xterm-256color", "COLUMNS": "120", **(env or {})},
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
