"""Report of `check`: the problems of a file in order, by severity, location and rule, and whether the file is sound."""

from __future__ import annotations

from pt2kit.errors import Problem, Severity


class Report(list[Problem]):
    """The problems that `check` found, in its order: a list of problems, with views of it.

    Each problem has `severity`, `where`, `rule`, `message`, `hint` and `kind`. What torch would run on loading the file
    is of the kind "safety", so errors are found by `severity`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        counts = f"{len(self.errors)} errors, {len(self.warnings)} warnings, {len(self)} problems in all"
        return f"<Report: {'sound' if self.ok else 'not sound'}, {counts}>"

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
        """Return the warnings: the file is sound, but they deserve a look."""
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
            and problem.where.startswith(where)
            and rule in (None, problem.rule, problem.rule.rstrip("0123456789"))
            and message in problem.message
        ]
