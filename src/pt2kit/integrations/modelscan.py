"""modelscan: report what PyTorch would run on loading a `.pt2` file, found by `pt2kit.check`.

Named in modelscan's settings as `pt2kit.integrations.modelscan.Pt2Scan`; docs/integrations.md has them.
"""

from __future__ import annotations

from typing import Any, Final

from modelscan.error import ModelScanScannerError
from modelscan.issues import Issue, IssueCode, IssueSeverity, OperatorIssueDetails
from modelscan.scanners.scan import ScanBase, ScanResults

from pt2kit.checks.run import check
from pt2kit.errors import Problem, Pt2Error
from pt2kit.messages import printable

EXTENSIONS: Final = (".pt2",)
MAX_DESCRIPTION: Final = 300


class Pt2Scan(ScanBase):  # type: ignore[misc]
    """Scans `.pt2` files: safety findings become issues, other errors of the file modelscan's errors."""

    @staticmethod
    def name() -> str:
        """Return the short name of the scanner."""
        return "pt2"

    @staticmethod
    def full_name() -> str:
        """Return the name of the scanner in settings and reports."""
        return "pt2kit.integrations.modelscan.Pt2Scan"

    def scan(self, model: Any) -> Any:
        """Scan one file; return None if it is no `.pt2` file.

        Args:
            model: modelscan's: a source and a stream. Records of an archive, which it goes through as well, are passed
                over: their archive is looked at as a whole.
        """
        source = model.get_source()
        settings = self._settings.get("scanners", {}).get(self.full_name(), {})
        if source.suffix not in settings.get("supported_extensions", EXTENSIONS) or not source.is_file():
            return None
        try:
            problems = list(check(model.get_stream()))
        except (Pt2Error, OSError) as error:
            return ScanResults([], [ModelScanScannerError(self.full_name(), printable(str(error)), model)], [])
        issues = [self._issue(problem, source) for problem in problems if problem.kind == "safety"]
        errors = [
            ModelScanScannerError(self.full_name(), printable(str(problem), MAX_DESCRIPTION), model)
            for problem in problems
            if problem.kind == "error"
        ]
        return self.label_results(ScanResults(issues, [] if issues else errors, []))

    def _issue(self, problem: Problem, source: Any) -> Any:
        severity = IssueSeverity.CRITICAL if problem.severity == "error" else IssueSeverity.MEDIUM
        details = OperatorIssueDetails(
            module=f"{problem.rule} {problem.loc}",
            operator=printable(problem.message, MAX_DESCRIPTION),
            severity=severity,
            source=source,
            scanner=self.full_name(),
        )
        return Issue(code=IssueCode.UNSAFE_OPERATOR, severity=severity, details=details)
