"""Files that a tool writes: write one, or compare it with what the tool would write."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

CHECK = "--check"
Report = tuple[str, Callable[[str], list[str]]]


def write_or_check(target: Path, text: str, tool: str, *, check: bool) -> int:
    """Write a file, or compare it.

    Args:
        target: the file.
        text: its content.
        tool: the name of the tool, for the message: "tools.history_tables".
        check: write nothing.

    Returns:
        The exit code: 1 if the file is compared and differs.
    """
    if not check:
        target.write_text(text, encoding="utf-8")
    elif target.read_text(encoding="utf-8") != text:
        print(f"{target.name}: not what {tool} writes; run: python -m {tool}")
        return 1
    return 0


def from_dumps(target: Path, doc: str, tool: str, with_dumps: Callable[[list[Path]], str], report: Report) -> int:
    """Run a tool that puts dumps of releases into a table.

    Args:
        target: the table.
        doc: the docstring of the tool.
        tool: its name.
        with_dumps: returns the table with the releases of some dumps.
        report: an option, and what returns the lines that it prints for its value, instead of writing.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="*", type=Path)
    parser.add_argument(CHECK, action="store_true")
    option, lines = report
    parser.add_argument(f"--{option}", dest="report")
    options = parser.parse_args()
    if options.report:
        print("\n".join(lines(options.report)))
        return 0
    return write_or_check(target, with_dumps(options.dumps), tool, check=options.check)
