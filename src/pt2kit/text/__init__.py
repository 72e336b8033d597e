"""Text and summaries of programs, packages and problems: readable text for people, plain data for scripts.

    format.py          numbers with units, names and columns that are safe and aligned on a terminal
    values.py          values, arguments, call signatures
    program.py         a whole program
    source.py          the text form of a program, without loss
    source_reader.py   the parser of that form
    source_tokens.py   the tokenizer of that form
    payloads.py        lists of weights and constants; totals of tensors
    sizes.py           sizes of records, modules, types and tensors; the cost of a program
    summary.py         a package at a glance, as data
    report.py          a package at a glance, as lines
    problems.py        problems, as lines, as data and as SARIF
    diff_report.py     a comparison of two files, as text or HTML
    change_details.py  one change as text; lines of a comparison, and limits on them

Nothing here prints. The text has no control characters, whatever the file contains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.text.source import print_program as print_program
    from pt2kit.text.source_reader import parse as parse
    from pt2kit.text.source_reader import read as read

__getattr__, __dir__, __all__ = front_door(__name__)
