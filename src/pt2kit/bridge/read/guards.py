"""`guards_code` -> the same texts, proven to be conditions on the inputs and nothing else before torch runs them."""

from __future__ import annotations

from collections.abc import Sequence

from pt2kit.symbols import parse_guard


def check_guards(guards: Sequence[str], where: str = "$.guards_code") -> list[str]:
    """The guards of a program, each read by `pt2kit.symbols.parse_guard`'s grammar.

    Raises:
        ExpressionError: an entry is no such condition.
        LimitError: it is larger than an expression may be.
    """
    for index, text in enumerate(guards):
        parse_guard(text, where=f"{where}[{index}]")
    return list(guards)
