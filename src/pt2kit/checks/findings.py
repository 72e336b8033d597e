"""Problems that `check` finds: conversion of errors, deduplication with a limit for each rule, and the report.

The report has the problems of a file in order, by severity, location and rule, and whether the file is sound.
`ProgramContext` is the context of a program's checks: the program, its location in the package, and its release of
torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from pt2kit import errors, schema
from pt2kit.errors import Problem, Pt2Error, Severity
from pt2kit.graph.traversal import Step, walk
from pt2kit.messages import count_text
from pt2kit.schema.names import target_of
from pt2kit.schema.versions import release_written

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
    text = error.message.removeprefix(f"{file}: ")
    loc, separator, rest = text.partition(_MESSAGE)
    if separator and not text.startswith(_MESSAGE[2:]):
        return Problem(loc, _rule(error), f"{_MESSAGE[2:]}{rest}")
    return Problem(where, _rule(error), text.removeprefix(f"{where}: "))


def guarded(problems: Iterable[Problem], where: str) -> Iterator[Problem]:
    """Yield the problems of a rule; an error in the rule is reported as a problem."""
    try:
        yield from problems
    except Pt2Error as error:
        yield problem_of(error, where)


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


class Report(list[Problem]):
    """The problems that `check` found, in its order: a list of problems, with views of it.

    Each problem has `severity`, `where`, `rule`, `message`, `hint` and `kind`. What torch would run on loading the file
    is of the kind "safety", so errors are found by `severity`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        found = {"error": self.errors, "warning": self.warnings, "problem": self}
        counts = ", ".join(count_text(len(problems), noun) for noun, problems in found.items())
        return f"<Report: {'sound' if self.ok else 'not sound'}, {counts} in all>"

    def __str__(self) -> str:
        """Return a line for each problem."""
        return "\n".join(map(str, self))

    @property
    def ok(self) -> bool:
        """Return whether nothing is an error; there may be warnings and notes."""
        return not self.errors

    @property
    def errors(self) -> list[Problem]:
        """Return the errors of the file, unsafe code included."""
        return self.problems(severity="error")

    @property
    def warnings(self) -> list[Problem]:
        """Return the warnings of a file, which do not make it invalid."""
        return self.problems(severity="warning")

    def problems(
        self, *, severity: Severity | None = None, where: str = "", rule: str | None = None, message: str = ""
    ) -> list[Problem]:
        """Return the problems that meet all conditions, in order.

        Args:
            severity: "error", "warning" or "note".
            where: what the place begins with: a record ("models/model.json"), or more of it.
            rule: the id of a rule ("P2"), or the letter of a family ("P").
            message: a part of the message.
        """
        return [
            problem
            for problem in self
            if severity in (None, problem.severity)
            and problem.loc.startswith(where)
            and rule in (None, problem.rule, problem.rule.rstrip("0123456789"))
            and message in problem.message
        ]


@dataclass(frozen=True, slots=True)
class ProgramContext:
    """A program to be checked.

    Args:
        program: raised to the current schema version.
        record: the record it was read from.
        stored_version: the schema version that it was stored in ("8.14", "draft").
        release: the release of torch that exported it ("2.13"), as far as the file tells, else "".
    """

    program: schema.ExportedProgram
    record: str
    stored_version: str
    release: str
    _steps: list[Step] = field(default_factory=list)

    @property
    def graph_place(self) -> str:
        """Return the location of the root graph."""
        return f"{self.record}: $.graph_module.graph"

    def targets(self) -> Iterator[tuple[str, schema.InputSpec, str]]:
        """Yield the inputs that the file fills: the place of each spec, the spec, and the name of its payload."""
        for number, spec in enumerate(self.program.graph_module.signature.input_specs):
            if (target := target_of(spec)) is not None:
                yield f"{self.record}: $.graph_module.signature.input_specs[{number}]", spec, target

    def steps(self) -> list[Step]:
        """Return every node of every graph, with its location.

        Raises:
            LimitError: subgraphs or dicts of arguments nest too deep (G11).
        """
        if not self._steps:
            self._steps.extend(walk(self.program, self.graph_place))
        return self._steps


def context_of(program: schema.ExportedProgram, record: str, stored_version: str) -> ProgramContext:
    """Describe a program.

    Args:
        program: raised to the current schema version.
        record: the record it was read from, for messages.
        stored_version: the schema version that it was stored in, which tells the release where nothing else does.
    """
    return ProgramContext(program, record, stored_version, release_written(program.torch_version, stored_version))
