"""Conversion of errors to problems, and deduplicated lists of problems with a limit for each rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pt2kit import errors
from pt2kit.errors import Problem, Pt2Error

MAX_PER_RULE: Final = 1000
"""Problems of one rule that are listed; of the rest only the number is reported."""

_RULE_OF_CLASS: Final[Mapping[type[Pt2Error], str]] = MappingProxyType(
    {
        errors.IntegrityError: "A16",
        errors.ArchiveError: "A19",
        errors.JsonError: "J1",
        errors.SchemaError: "J5",
        errors.VersionError: "V1",
        errors.GraphError: "E3",
        errors.OperatorError: "T1",
        errors.ExpressionError: "E1",
        errors.PayloadError: "P9",
        errors.LimitError: "A18",
        errors.UnsupportedError: "P15",
        errors.ConversionError: "M3",
    }
)
"""Class of an error that carries no rule -> the rule that such an error is about when a file is read."""

_MESSAGE: Final = ": expected "


def problem_of(error: Pt2Error, where: str, file: str = "") -> Problem:
    """Return an error as data.

    Args:
        error: what was raised.
        where: the location if the message has none.
        file: the name of the file, which messages begin with; left out of the place.
    """
    text = str(error).removesuffix(f" [{error.rule}]")
    if file:
        text = text.removeprefix(f"{file}: ")
    loc, separator, rest = text.partition(_MESSAGE)
    if separator and not text.startswith(_MESSAGE[2:]):
        return Problem(loc, _rule(error), f"{_MESSAGE[2:]}{rest}")
    return Problem(where, _rule(error), text.removeprefix(f"{where}: "))


def distinct(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield each problem once, and of one rule at most `MAX_PER_RULE`; the number of omitted ones comes last."""
    seen: set[Problem] = set()
    counts: Counter[str] = Counter()
    last: dict[str, Problem] = {}
    for problem in problems:
        counts[problem.rule] += 1
        if counts[problem.rule] > MAX_PER_RULE:
            last[problem.rule] = problem
        elif problem not in seen:
            seen.add(problem)
            yield problem
    for rule, problem in last.items():
        more = counts[rule] - MAX_PER_RULE
        yield Problem(problem.loc, rule, f"and {more:,} more like these, the last one here", problem.kind)


def _rule(error: Pt2Error) -> str:
    if error.rule:
        return error.rule
    return next((rule for cls, rule in _RULE_OF_CLASS.items() if isinstance(error, cls)), "A19")
