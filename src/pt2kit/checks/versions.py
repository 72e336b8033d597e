"""What a program says of its origin: torch's version, dialects, operator sets, unknown keys (V2 to V4, O1, O2).

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
_VERSION: Final = re.compile(r"(\d{1,4}\.\d{1,4})\.\d{1,4}(?P<build>[a-z.]+\d*)?(?:\+[\w.]+)?", re.ASCII)


def version_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate what is odd about a program's versions."""
    program = context.program
    yield from _torch_version(program.torch_version, context.stored_version, f"{context.record}: $.torch_version")
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
            yield Problem(place, "O1", f"expected a number from 1 to {EXPECTED[namespace]}, got {number}", "warning")


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


def _torch_version(text: str, stored_version: str, place: str) -> Iterator[Problem]:
    if text == _BEFORE_IT_WAS_STORED:
        return
    match = _VERSION.fullmatch(text)
    if match is None:
        yield Problem(place, "V2", f"expected a version such as '2.13.0', got {quote(text)}", "warning")
        return
    writes = next((row.number for row in schema.LOG if match[1] in row.releases), None)
    # Builds between releases write a schema between theirs; releases that this build does not know may write any.
    if writes is not None and not match["build"] and writes != stored_version:
        message = f"expected schema {writes}, which torch {match[1]} writes, got {stored_version}"
        yield Problem(place, "V2", message, "warning")
