"""Exceptions for findings about graphs: the error class of each rule."""

from __future__ import annotations

from typing import Final, NoReturn

from pt2kit.errors import GraphError, LimitError, Problem

LIMIT_RULE: Final = "G11"


def raise_problem(problem: Problem) -> NoReturn:
    """Turn a finding into its exception.

    Raises:
        LimitError: the finding is about a limit (G11).
        GraphError: any other finding.
    """
    error = LimitError if problem.rule == LIMIT_RULE else GraphError
    raise error(f"{problem.loc}: {problem.message}", rule=problem.rule)
