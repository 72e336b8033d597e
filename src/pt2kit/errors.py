"""The error family of pt2kit, and `Problem`, an error as data.

    Pt2Error
    ├── ArchiveError        the zip directory, a record's name, a missing record
    │   └── IntegrityError  bytes do not match their checksum
    ├── JsonError           a record is not the JSON it should be
    ├── SchemaError         JSON that does not fit the schema
    ├── VersionError        a version this build cannot read or write
    ├── GraphError          a program that contradicts itself
    ├── OperatorError       an operator that is unknown, refused or called wrongly
    ├── ExpressionError     a symbolic expression that does not parse or evaluate
    ├── PayloadError        tensor bytes or their metadata
    ├── LimitError          a stated limit was passed
    ├── UnsupportedError    something this build refuses or cannot represent, by name
    ├── ConversionError     a program cannot be expressed in the target version
    ├── SignatureError      a signature that is none, was changed, or is not by whom is trusted
    └── InputError          a loaded program was called with inputs that it does not take; a ValueError, too

Every message reads *where: expected X, got Y [rule]*, and says what to do where something can be done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
Kind = Literal[Severity, "safety"]


class Pt2Error(Exception):
    """The base of every error pt2kit raises on purpose."""

    rule: str = ""

    def __init__(self, message: str, *, rule: str = "") -> None:
        super().__init__(f"{message} [{rule}]" if rule else message)
        self.rule = rule


class ArchiveError(Pt2Error):
    """The zip directory, a record's name or bytes, or a record that is missing."""


class IntegrityError(ArchiveError):
    """Bytes that do not match their checksum."""


class JsonError(Pt2Error):
    """A record that is not the JSON it should be."""


class SchemaError(Pt2Error):
    """JSON that does not fit the schema."""


class VersionError(Pt2Error):
    """A version of the archive, the schema or an operator set that this build cannot read or write."""


class GraphError(Pt2Error):
    """A program that contradicts itself: names, signature, ranges, calling conventions."""


class OperatorError(Pt2Error):
    """An operator that is unknown, refused or called wrongly."""


class ExpressionError(Pt2Error):
    """A symbolic expression that does not parse or does not evaluate."""


class PayloadError(Pt2Error):
    """Tensor bytes or the metadata that describes them."""


class LimitError(Pt2Error):
    """A stated limit on size, depth or count was passed."""


class UnsupportedError(Pt2Error):
    """Something this build refuses or cannot represent, named."""


class ConversionError(Pt2Error):
    """A program that cannot be expressed in the target version."""


class SignatureError(Pt2Error):
    """A signature that is none, was changed, or is not by whom is trusted."""


class InputError(Pt2Error, ValueError):
    """Inputs that a loaded program does not take."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding, as data.

    Args:
        loc: where: archive record, then JSON path or name inside it.
        rule: the id of the rule, the same in `docs/format.md`, the code and the tests ("J3").
        message: *expected X, got Y*, and what to do.
        kind: "error", "warning", "note" for what is to be known and is not wrong, or "safety" for what torch would
            execute on load.
    """

    loc: str
    rule: str
    message: str
    kind: Kind = "error"

    @property
    def where(self) -> str:
        """The same as `loc`."""
        return self.loc

    @property
    def severity(self) -> Severity:
        """How much it weighs: its kind, and for a safety finding what its rule says, "error" or "warning"."""
        if self.kind != "safety":
            return self.kind
        rule = _rules().get(self.rule)
        return rule.severity if rule else "error"

    @property
    def text(self) -> str:
        """What its rule demands; for safety findings, what is said of the file; "" for an unknown rule."""
        rule = _rules().get(self.rule)
        return rule.text if rule else ""

    @property
    def hint(self) -> str:
        """What to do about it; "" for an unknown rule."""
        rule = _rules().get(self.rule)
        return rule.hint if rule else ""

    def __str__(self) -> str:
        return f"{self.loc}: {self.message} [{self.rule}]"


def at(place: str, error: Pt2Error) -> Pt2Error:
    """The same error with a place in front; raise it `from` the one that was caught."""
    placed = type(error)(f"{place}: {error}")
    placed.rule = error.rule
    return placed


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Put a place in front of the errors that the block raises."""
    try:
        yield
    except Pt2Error as error:
        raise at(place, error) from error


def _rules() -> Any:
    # By name, when somebody asks: the table stands above this file, whose types it uses.
    return import_module("pt2kit.rules").RULES
