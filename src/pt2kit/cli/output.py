"""Lines and values -> standard output: text in colour on a terminal and plain in a pipe, or JSON."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pt2kit.cli.colours import colour, wants_colour


class OutputClosed(Exception):
    """The reader of standard output went away: `pt2 show … | head`. Not an OSError, which click answers itself.

    Args:
        code: what the command exits with all the same.
    """

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.code = code


@contextlib.contextmanager
def exit_code(code: int) -> Iterator[None]:
    """Print inside this what goes with an exit code: it counts also if nobody reads to the end."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except (BrokenPipeError, OutputClosed):
        raise OutputClosed(code) from None


def print_lines(lines: Iterable[str]) -> None:
    """Print lines. Whatever they hold, no control character comes out.

    Raises:
        OutputClosed: nobody reads them any more.
    """
    from pt2kit.messages import printable

    coloured = sys.stdout is not None and wants_colour(sys.stdout)
    for line in lines:
        safe = line if line.isprintable() else printable(line, len(line))
        _write(f"{colour(safe) if coloured else safe}\n")


def print_json(value: Any) -> None:
    """Print a value as indented JSON, in UTF-8 whatever the terminal's encoding is.

    Raises:
        OutputClosed: nobody reads it any more.
    """
    from pt2kit import codec

    data = codec.encode_indented(value) + b"\n"
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        _write(data.decode())
        return
    try:
        binary.write(data)
    except BrokenPipeError:
        raise OutputClosed from None


def _write(text: str) -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.write(text)
    except BrokenPipeError:
        raise OutputClosed from None
