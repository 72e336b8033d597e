"""Text and summaries of programs, packages and problems: readable text for people, plain data for scripts.

    names.py format.py columns.py   names, numbers and tables that are safe and aligned on a terminal
    values.py arguments.py call.py      values, arguments, call signatures
    program.py nodes.py                 a whole program; one node with all that is known of it
    tensor_totals.py payloads.py modules.py
                                        tensors: how much of them there is, lists of them, in which modules they are
    summary.py report.py                a package at a glance, as data and as lines

Nothing here prints. The text has no control characters, whatever the file contains.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pt2kit.text.source import print_program
    from pt2kit.text.source_reader import parse, read

__all__ = ["parse", "print_program", "read"]


def __getattr__(name: str) -> Any:
    """Load what few callers need when it is first asked for (PEP 562)."""
    if name == "print_program":
        return import_module("pt2kit.text.source").print_program
    if name in ("parse", "read"):
        return getattr(import_module("pt2kit.text.source_reader"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
