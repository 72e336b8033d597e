"""Checks of a program's origin: torch's version, dialects, operator sets, unknown keys (V2 to V4, O1, O2).

All of these are warnings: nothing is read by them, but they tell of a file that was edited or is newer than this build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pt2kit import schema
from pt2kit.checks.operators import WITHOUT_DIALECT
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem
from pt2kit.jsontext import path_text
from pt2kit.messages import cut, quote
from pt2kit.versions.opset.changes import EXPECTED

DIALECTS: Final = frozenset(("ATEN", "TRAINING", "EDGE", ""))
"""The dialects of torch's verifiers and of ExecuTorch's; "" stands for ATEN in old files."""

_BEFORE_IT_WAS_STORED: Final = "<=2.4"
_VERSION: Final = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}(?:[a-z.]+\d*)?(?:\+[\w.]+)?", re.ASCII)


def version_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate what is odd about a program's versions."""
    program = context.program
    yield from _torch_version(program.torch_version, f"{context.record}: $.torch_version")
    for number, dialect in enumerate(program.verifiers):
        if dialect not in DIALECTS or not (dialect or context.stored_version in WITHOUT_DIALECT):
            message = f"expected a dialect that torch has ({', '.join(sorted(DIALECTS - {''}))}), got {quote(dialect)}"
            yield Problem(f"{context.record}: $.verifiers[{number}]", "V3", message)
    if "aten" not in program.opset_version:
        message = "expected the number of the operator set aten, got none"
        yield Problem(f"{context.record}: $.opset_version", "O2", message)
    for namespace, number in program.opset_version.items():
        place = f"{context.record}: {path_text(('opset_version', cut(namespace)))}"
        if namespace not in EXPECTED:
            message = f"expected an operator set of {', '.join(EXPECTED)}, got one of {quote(namespace)}"
            yield Problem(place, "O2", f"{message}: its operators are taken as they are", "warning")
        elif not 0 < number <= EXPECTED[namespace]:
            yield Problem(place, "O1", f"expected a number from 1 to {EXPECTED[namespace]}, got {number}")


def unknown_key_problems(keys: tuple[str, ...], stored_version: str) -> Iterator[Problem]:
    """Iterate keys that this build's schema does not have; in a newer minor version they are to be expected.

    Args:
        keys: their places.
        stored_version: the schema version that the program was stored in.
    """
    numbers = stored_version.partition("-")[0].split(".")
    newer = all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) > schema.CURRENT.pair
    for key in keys:
        message = f"expected keys of schema {schema.CURRENT.number}, got one it does not have; it is kept as it is"
        yield Problem(key, "V4", message, "note" if newer else "warning")


def _torch_version(text: str, place: str) -> Iterator[Problem]:
    """Report what is no version of torch; a converted file keeps the release that exported it, with another schema."""
    if text != _BEFORE_IT_WAS_STORED and _VERSION.fullmatch(text) is None:
        yield Problem(place, "V2", f"expected a version such as '2.13.0', got {quote(text)}", "warning")
