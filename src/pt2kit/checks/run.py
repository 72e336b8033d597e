"""Run all checks of a file: every error in it, and all code that torch would run when loading it, as data.

    archive        the package opens; with `payloads`, every record has its checksum
    external       payloads in other files exist, as the archive declares
    each program   its record, versions, graph, signature, calls, expressions, operators, sizes, devices, payloads
    the whole      payloads that nobody uses, safety findings

What cannot be read becomes one problem, and the rest goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from pt2kit import codec, graph, schema, signature
from pt2kit.checks.call_results import (
    created_problems,
    device_problems,
    mutation_problems,
    result_problems,
)
from pt2kit.checks.calls import call_problems, target_name_problems, value_name_problems
from pt2kit.checks.expressions import expression_problems, input_size_problems, size_problem
from pt2kit.checks.findings import ProgramContext, Report, context_of, distinct, guarded, problem_of
from pt2kit.checks.growth import growth_problems
from pt2kit.checks.growth import number_problems as symbolic_number_problems
from pt2kit.checks.guards import guard_problems
from pt2kit.checks.higher_order import escape_problems, higher_order_problems
from pt2kit.checks.operators import operator_problems
from pt2kit.checks.payloads import (
    Stored,
    external_problems,
    number_problems,
    payload_problems,
    read_stored,
    unused_problems,
)
from pt2kit.checks.safety import package_findings, program_findings
from pt2kit.checks.storages import storage_problems
from pt2kit.checks.stored_inputs import sample_problems
from pt2kit.checks.unchecked import uninitialized_problems
from pt2kit.checks.versions import metadata_problems, unknown_key_problems, version_problems
from pt2kit.errors import Problem, Pt2Error
from pt2kit.package.open import Package, open_package
from pt2kit.zip.listing import FileLike
from pt2kit.zip.source import DEFAULT_LIMITS, Limits, Progress, no_progress

RULES_OF_PROGRAMS: Final[tuple[Callable[[ProgramContext], Iterable[Problem]], ...]] = (
    lambda context: graph.problems(context.program, context.graph_place),
    lambda context: signature.problems(context.program.graph_module, f"{context.record}: $.graph_module"),
    call_problems,
    value_name_problems,
    target_name_problems,
    escape_problems,
    expression_problems,
    input_size_problems,
    guard_problems,
    operator_problems,
    higher_order_problems,
    device_problems,
    created_problems,
    growth_problems,
    result_problems,
    mutation_problems,
    symbolic_number_problems,
    metadata_problems,
)
"""Checks of one program. Each traverses it by itself, so that one cannot hide what another finds."""

_FOUND_AGAIN: Final = frozenset(("E3", "P6"))
"""Rules for which a package refuses a program at the first breach; the checks of a program find all of them."""

_PASTED: Final = frozenset(("G8", "G15", "S10", "S14", "K5"))
"""Rules about names that X6 is about as well, where they are more than wrong."""


def check(
    file: FileLike | Package,
    *,
    payloads: bool = False,
    model: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
    weights_root: str | os.PathLike[str] | None = None,
) -> Report:
    """List what is wrong with a `.pt2` file, and what torch would run on loading it. Needs no torch, runs nothing.

    Args:
        file: a path, bytes, a binary file object, a URL, or an open package, which stays open.
        payloads: read all records as well: compare their checksums, look for NaN among the numbers.
        model: look at this program alone, by default at all; what the archive itself says is looked at anyway.
        limits: what reading may cost.
        storage_options: passed to fsspec for a URL.
        progress: with `payloads`, called with the bytes done and in all: each record's once, and those of numbers
            again.
        weights_root: where files of weights may lie that the archive names, as in `open_package`.

    Returns:
        The problems, each once: the archive's, then program by program, then safety findings. It is a list with `ok`,
        `errors` and `warnings`. `checks.RULES` explains their rules. Of one rule at most 1,000 are listed, and the
        number of the rest.

    Raises:
        OSError: the path cannot be opened. A file that can be opened raises nothing, however bad it is.
        ArchiveError: no such program; a closed package (A27).

    Cost: linear in the programs; 2,700 nodes take about 0.1 s. Weights are read with `payloads` only.
    """
    if isinstance(file, Package):
        file.archive.source.require_open()
        return Report(distinct(all_problems(file, payloads, model, progress)))
    try:
        package = open_package(file, limits=limits, storage_options=storage_options, weights_root=weights_root)
    except Pt2Error as error:
        return Report([problem_of(error, "archive", file_name(file))])
    with package:
        return Report(distinct(all_problems(package, payloads, model, progress)))


def file_name(file: FileLike | Package) -> str:
    """Return the name that messages use for a file, even if it did not open."""
    if isinstance(file, (str, os.PathLike)):
        return str(os.fspath(file))
    return "<bytes>" if isinstance(file, (bytes, bytearray, memoryview)) else str(getattr(file, "name", ""))


def all_problems(
    package: Package, payloads: bool, model: str | None, progress: Progress = no_progress
) -> Iterator[Problem]:
    """Yield the problems of an open package, as `check` finds them, with places below its root folder.

    Args:
        package: an open package.
        payloads, model, progress: as in `check`.
    """
    models = package.layout.models if model is None else (package.choose(model),)
    for problem in _in_order(package, models, payloads, _counter(package, progress)):
        yield replace(problem, loc=problem.loc.removeprefix(package.layout.root))


def _counter(package: Package, progress: Progress) -> Callable[[int], object]:
    """Return a progress callback for numbers of bytes: each record is counted once as read, and once for its values."""
    total, done = 2 * sum(record.size for record in package.records.values()), 0

    def advance(count: int) -> None:
        nonlocal done
        done = min(total, done + count)
        progress(done, total)

    return advance


def _in_order(
    package: Package, models: Sequence[str], payloads: bool, advance: Callable[[int], object]
) -> Iterator[Problem]:
    outside = list(external_problems(package))
    yield from outside
    if payloads:
        yield from _checksum_problems(package, {problem.rule for problem in outside}, advance)
    seen: dict[str, tuple[ProgramContext | None, Stored]] = {}
    safety: list[Problem] = []
    for model in models:
        context, unknown, problems = _read(package, model)
        yield from problems
        stored, unreadable = read_stored(package, model)
        said = {(problem.rule, problem.message) for problem in problems}  # Of the program's own record.
        yield from (problem for problem in unreadable if (problem.rule, problem.message) not in said)
        seen[model] = context, stored
        if context is not None:
            checks = (program_findings(context, stored.tables), uninitialized_problems(context))
            findings = [finding for check in checks for finding in guarded(check, context.record)]
            safety += findings
            pasted = {finding.loc for finding in findings if finding.rule == "X6"}
            found = _program_problems(context, stored, unknown)
            yield from (problem for problem in found if problem.rule not in _PASTED or problem.loc not in pasted)
            yield from guarded(sample_problems(package, model, context), context.record)
        if payloads:
            yield from number_problems(stored, package.name, advance)
    if len(seen) == len(package.layout.models):
        yield from unused_problems(package, seen)
    yield from safety
    yield from package_findings(package, models)


def _read(package: Package, model: str) -> tuple[ProgramContext | None, list[str], list[Problem]]:
    """Read one program, the places of its unknown keys, and the error that keeps it from being read."""
    record = package.layout.program_record(model)
    where = record.removeprefix(package.layout.root)
    try:
        stored = package.stored[model]
        context = context_of(stored.program, where, stored.version)
        problem = size_problem(context, package.records[record].size)
        unknown = [f"{where}: {key}" for key in stored.unknown]
        return (context, unknown, []) if problem is None else (None, [], [problem])
    except Pt2Error as error:
        problem = problem_of(error, where, package.name)
    if problem.rule in _FOUND_AGAIN:  # A program of the current version, whose contents are refused.
        with suppress(Pt2Error):
            program = codec.decode(package.archive.read(record), schema.ExportedProgram, where).value
            version = program.schema_version
            return context_of(program, where, f"{version.major}.{version.minor}"), [], []
    return None, [], [problem]


def _program_problems(context: ProgramContext, stored: Stored, unknown: list[str]) -> Iterator[Problem]:
    yield from version_problems(context)
    yield from unknown_key_problems([*unknown, *stored.unknown], context.stored_version)
    is_sound = True
    for rule in RULES_OF_PROGRAMS:
        if rule is result_problems and not is_sound:
            continue  # A broken graph or expression would make every call that uses it wrong.
        for problem in guarded(rule(context), context.record):
            is_sound &= problem.kind != "error" or (problem.rule != "P6" and problem.rule[0] not in "GE")
            yield problem
    yield from guarded(storage_problems(context, stored.tables), context.record)
    yield from payload_problems(context, stored)


def _checksum_problems(package: Package, reported: set[str], advance: Callable[[int], object]) -> Iterator[Problem]:
    """Yield errors that keep records from being read; those of external files were reported before."""
    for record, entry in package.records.items():
        try:
            package.archive.read(record)
        except Pt2Error as error:
            if error.rule in reported:
                continue
            yield problem_of(error, package.relative(record), package.name)
        advance(entry.size)
