"""Exceptions of pt2kit, and `Problem`, a finding as data.

    Pt2Error
    ├── ArchiveError        an invalid zip directory, record name or missing record
    │   └── IntegrityError  bytes do not match their checksum
    ├── JsonError           a record is not valid JSON of its kind
    ├── SchemaError         JSON that does not fit the schema
    ├── VersionError        a version this build cannot read or write
    ├── GraphError          an inconsistent program
    ├── OperatorError       an operator that is unknown, refused or called wrongly
    ├── ExpressionError     a symbolic expression that does not parse or evaluate
    ├── PayloadError        tensor bytes or their metadata
    ├── LimitError          a limit was exceeded
    ├── UnsupportedError    something this build refuses or cannot represent
    ├── ConversionError     a program cannot be expressed in the target version
    ├── SignatureError      a signature that is invalid, was changed, or is not by a trusted signer
    └── InputError          inputs that a loaded program does not accept; also a ValueError

Every message reads *where: expected X, got Y [rule]*, then what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pt2kit.front_door import registered

Result = TypeVar("Result")

Severity = Literal["error", "warning", "note"]
Kind = Literal[Severity, "safety"]


class Pt2Error(Exception):
    """Base class of all exceptions that pt2kit raises on purpose.

    Args:
        message: *where: expected X, got Y*, and what to do.
        rule: the id of the broken rule, which follows the message in the error's text; "" for none.
    """

    message: str
    rule: str = ""

    def __init__(self, message: str, *, rule: str = "") -> None:
        super().__init__(f"{message} [{rule}]" if rule else message)
        self.message = message
        self.rule = rule


class ArchiveError(Pt2Error):
    """An invalid zip directory, an invalid or missing record."""


class IntegrityError(ArchiveError):
    """Bytes that do not match their checksum."""


class JsonError(Pt2Error):
    """A record that is not valid JSON of its kind."""


class SchemaError(Pt2Error):
    """JSON that does not fit the schema."""


class VersionError(Pt2Error):
    """A version of the archive, the schema or an operator set that this build cannot read or write."""


class GraphError(Pt2Error):
    """An inconsistent program: names, signature, ranges, calling conventions."""


class OperatorError(Pt2Error):
    """An operator that is unknown, refused or called wrongly."""


class ExpressionError(Pt2Error):
    """A symbolic expression that does not parse or does not evaluate."""


class PayloadError(Pt2Error):
    """Tensor bytes or the metadata that describes them."""


class LimitError(Pt2Error):
    """A limit on size, depth or count was exceeded."""


class UnsupportedError(Pt2Error):
    """Something this build refuses or cannot represent."""


class ConversionError(Pt2Error):
    """A program that cannot be expressed in the target version."""


class ProofError(Pt2Error):
    """A changed program that does not compute what it did before, or whose results cannot be compared."""


class SignatureError(Pt2Error):
    """A signature that is invalid, was changed, or is not by a trusted signer."""


class InputError(Pt2Error, ValueError):
    """Inputs that a loaded program does not accept."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding, as data.

    Args:
        loc: the place: archive record, then JSON path or name inside it.
        rule: the id of the rule, the same in `docs/format.md`, the code and the tests ("J3").
        message: *expected X, got Y*, and what to do.
        kind: "error", "warning", "note" (a fact that is not a fault), or "safety" (something that torch would
            execute on load).
    """

    loc: str
    rule: str
    message: str
    kind: Kind = "error"

    @property
    def severity(self) -> Severity:
        """Return its severity: its kind, or for a safety finding that of its rule, "error" or "warning"."""
        if self.kind != "safety":
            return self.kind
        rule = _rules().get(self.rule)
        return rule.severity if rule else "error"

    @property
    def text(self) -> str:
        """Return what its rule demands; for safety findings, what it reports; "" for an unknown rule."""
        rule = _rules().get(self.rule)
        return rule.text if rule else ""

    @property
    def hint(self) -> str:
        """Return how to fix it; "" for an unknown rule."""
        rule = _rules().get(self.rule)
        return rule.hint if rule else ""

    def __str__(self) -> str:
        return f"{self.loc}: {self.message} [{self.rule}]"


def at(place: str, error: Pt2Error) -> Pt2Error:
    """Return the same error with a place in front; raise it `from` the one that was caught."""
    return type(error)(f"{place}: {error.message}", rule=error.rule)


def attempt(function: Callable[..., Result], *args: Any) -> Result | None:
    """Return the result of a function; None if it raises an error of pt2kit."""
    try:
        return function(*args)
    except Pt2Error:
        return None


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Put a place in front of the errors that the block raises."""
    try:
        yield
    except Pt2Error as error:
        raise at(place, error) from error


def _rules() -> Any:
    return registered("rules")
