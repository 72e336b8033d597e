"""Commands of a run and their options; running a command on one file, which returns rows of the dataset.

Commands and options are validated before any file is read. A worker process runs the command on files; a bad file may
end that process.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pt2kit.checks.findings import problem_of
from pt2kit.digests.result import PARTS
from pt2kit.errors import ConversionError, Problem, Pt2Error, UnsupportedError
from pt2kit.fleet.listing import local_state
from pt2kit.fleet.targets import state_key
from pt2kit.graph.traversal import walk
from pt2kit.messages import cut
from pt2kit.package.open import Package, open_package
from pt2kit.text.payloads import elements_of, group_of
from pt2kit.version import __version__
from pt2kit.zip.listing import is_url, open_source
from pt2kit.zip.remote import public_url
from pt2kit.zip.source import Source

if TYPE_CHECKING:
    from pt2kit.text.summary import ModelSummary


DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "show": {"model": None, "oldest": False},
    "check": {"payloads": False, "strict": False},
    "digest": {"model": None, "only": ()},
    "convert": {"target": None, "allow": (), "opset": {}, "namedtuples": {}},
    "sanitize": {"drop": (), "strip": (), "scrub_paths": False},
}
"""Work -> its options, by the names of the single command, and their defaults."""
WORKS: Final = tuple(DEFAULTS)
WRITING: Final = ("convert", "sanitize")
"""Works that write a file for each that they read."""

MAX_MESSAGE: Final = 4000


def installed() -> str:
    """Return the version of pt2kit in this process."""
    return __version__


def checked_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the name and options of a command.

    Returns:
        all options of the single command, by the names of its function, as JSON has them.

    Raises:
        UnsupportedError: no such work or option, or a value that the single command would refuse.
        VersionError: no such target of a conversion (M4).
        TypeError: a value of another type than the single function takes.
    """
    if name not in DEFAULTS:
        raise UnsupportedError(f"work: expected one of {', '.join(WORKS)}, got {name[:80]!r}")
    defaults = DEFAULTS[name]
    if unknown := sorted(options.keys() - defaults.keys()):
        raise UnsupportedError(f"{name}: expected one of {', '.join(defaults)}, got {unknown[0][:80]!r}")
    chosen = {key: _plain(options.get(key, default), key, default) for key, default in defaults.items()}
    _check_options(name, chosen)
    return chosen


def _plain(value: Any, key: str, default: Any) -> Any:
    """Return an option as JSON stores it."""
    if isinstance(default, tuple):
        if isinstance(value, str):
            raise TypeError(f"{key}: expected a collection of names, got one text; write {key}=[{value[:80]!r}]")
        return sorted(value)
    return dict(value) if isinstance(default, Mapping) else value


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    if name == "digest":
        for part in options["only"]:
            if part not in PARTS:
                raise UnsupportedError(f"only: expected one of {', '.join(PARTS)}, got {part[:80]!r}")
    elif name == "sanitize":
        from pt2kit.sanitizing.options import make_options

        make_options(options["drop"], options["strip"], options["scrub_paths"])
    elif name == "convert":
        from pt2kit.release.conversion import named_losses
        from pt2kit.release.destinations import find_destination

        if not isinstance(options["target"], str):
            raise UnsupportedError("convert: expected target, such as 'torch==2.13', got none")
        find_destination(options["target"])
        named_losses("allow", options["allow"])


class Job(msgspec.Struct, frozen=True):
    """The options of a run, the same for all files.

    Args:
        work: the name of the command, one of `WORKS`.
        options: as `checked_options` returns them.
        out: the folder for written files; a path or URL.
        storage_options: passed to fsspec.
    """

    work: str
    options: dict[str, Any]
    out: str
    storage_options: dict[str, Any]


class Item(msgspec.Struct, frozen=True):
    """One file.

    Args:
        url: what opens it, as the bytes of a path or URL.
        output: where a written file goes below `out`; "" where it has no place there.
        size, state: as they were listed, where they were.
        error: what is known to be wrong already: a folder that could not be listed.
        known: the states in which the file has a row already.
    """

    url: bytes
    output: str = ""
    size: int | None = None
    state: str = ""
    error: str = ""
    known: tuple[bytes, ...] = ()


class Rows(msgspec.Struct):
    """The rows of one file in each table. The row in `files` is empty if the file has one already."""

    files: dict[str, Any]
    problems: list[dict[str, Any]] = []
    operators: list[dict[str, Any]] = []


def shown_name(url: str) -> str:
    """Return the name of a file in a dataset: no password, and only a checksum of a query, which may contain a key."""
    if not is_url(url):
        return plain(url)
    if not any(mark in url for mark in "?@#"):
        return plain(url)
    shown = public_url(url)
    query = url.partition("?")[2]
    return plain(f"{shown}?{sha256(query.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}" if query else shown)


def plain(text: str, limit: int = MAX_MESSAGE) -> str:
    """Return a text that any encoding can express, with invalid characters escaped, cut at a length."""
    return cut(text, limit).encode("utf-8", "backslashreplace").decode()


def failure(item: Item, outcome: str, error: str, seconds: float = 0.0) -> Rows:
    """Return the row of a file whose only result is an error."""
    row = _row(shown_name(os.fsdecode(item.url)), item.size, item.state)
    _end(row, outcome, seconds)
    row |= {"error": plain(error), "rule": "", "place": ""}
    return Rows(row)


def read_file(job: Job, item: Item) -> Rows:
    """Run the command on one file; an error becomes its row.

    Raises:
        MemoryError: there was none left; try again in a fresh process.
    """
    started = time.perf_counter()
    url = os.fsdecode(item.url)
    name = shown_name(url)
    if item.error:
        return Rows({}) if state_key(item.size, item.state) in item.known else failure(item, "unreadable", item.error)
    rows = Rows(_row(name, item.size, item.state))
    row = rows.files
    try:
        source = _open(job, url, row)
        if state_key(row["size"], row["etag"]) in item.known:
            source.close()
            return Rows({})
        with open_package(source, namedtuples=job.options.get("namedtuples")) as package:
            outcome = _WORKS[job.work](job, item, package, rows)
    except MemoryError:
        raise
    except (Pt2Error, OSError) as error:
        if row["size"] is None and state_key(None, "") in item.known:
            return Rows({})
        outcome = "unreadable"
        _add_error(rows, error, public_url(url) if is_url(url) else url)
    except Exception as error:  # noqa: BLE001 - a fault of this package must not cost the other files their rows
        outcome = "crashed"
        row["error"] = plain(f"{type(error).__name__}: {error}")
    _end(row, outcome, time.perf_counter() - started)
    return rows


def _open(job: Job, url: str, row: dict[str, Any]) -> Source:
    """Open a file, and record its identity in its row."""
    if not is_url(url):
        stat = os.stat(url)
        row |= {"size": stat.st_size, "etag": local_state(stat)}
        return open_source(url)
    source = open_source(url, storage_options=job.storage_options or None)
    row |= {"size": source.size, "etag": plain(getattr(source, "state", "") or row["etag"])}
    return source


def _row(name: str, size: int | None, state: str) -> dict[str, Any]:
    return {"url": name, "size": size, "etag": plain(state)}


def _end(row: dict[str, Any], outcome: str, seconds: float) -> None:
    row |= {"outcome": outcome, "seconds": round(seconds, 6), "ended": int(time.time() * 1e6)}


def _show(job: Job, item: Item, package: Package, rows: Rows) -> str:
    from pt2kit.text.summary import summarize, summarize_model

    model, oldest = job.options["model"], job.options["oldest"]
    _add_facts(package, rows)
    models: tuple[ModelSummary, ...]
    if model is not None:
        models = (summarize_model(package, package.choose(model), oldest=oldest),)
    else:
        summary = summarize(package, oldest=oldest)
        models = summary.models
        _add_problems(rows, summary.safety)
    if oldest:
        rows.files["oldest_version"] = ", ".join(dict.fromkeys(one.oldest_version for one in models))
    for one in models:
        _add_problems(rows, [_problem_of_text(text) for text in one.problems])
    return "problems" if any(one.problems for one in models) else "ok"


def _check(job: Job, item: Item, package: Package, rows: Rows) -> str:
    from pt2kit.checks.run import check

    report = check(package, payloads=job.options["payloads"])
    _add_problems(rows, report)
    with suppress(Pt2Error):  # The report has it.
        _add_facts(package, rows)
    return "ok" if report.ok and not (job.options["strict"] and report.warnings) else "problems"


def _digest(job: Job, item: Item, package: Package, rows: Rows) -> str:
    from pt2kit.digests.compute import digest_parts

    model = package.choose(job.options["model"])
    _add_facts(package, rows)
    _add_digests(rows, digest_parts(package, job.options["only"] or PARTS, model))
    return "ok"


def _convert(job: Job, item: Item, package: Package, rows: Rows) -> str:
    from pt2kit.release.conversion import convert

    _add_facts(package, rows)
    options = job.options
    try:
        report = _write(
            job,
            item,
            rows,
            lambda target: convert(
                package, target, target=options["target"], allow=options["allow"], opset_version=options["opset"]
            ),
        )
    except ConversionError as error:
        first, *obstacles = str(error).splitlines()
        _add_problems(rows, [Problem("", error.rule, line.strip()) for line in obstacles])
        _refuse(rows, error.rule, first)
        return "refused"
    _add_problems(rows, report.problems)
    return "ok"


def _sanitize(job: Job, item: Item, package: Package, rows: Rows) -> str:
    from pt2kit.sanitizing.options import make_options
    from pt2kit.sanitizing.plan import make_plan
    from pt2kit.sanitizing.writing import execute

    _add_facts(package, rows)
    options = make_options(job.options["drop"], job.options["strip"], job.options["scrub_paths"])
    plan = make_plan(package, options)
    if plan.problems:
        _add_problems(rows, plan.problems)
        first = plan.problems[0]
        _refuse(rows, first.rule, first.message, first.loc)
        return "refused"
    done = _write(job, item, rows, lambda target: execute(package, plan, target))
    if len(done.digests) == 1:
        _add_digests(rows, next(iter(done.digests.values())))
    return "ok"


_WORKS: Final[Mapping[str, Callable[[Job, Item, Package, Rows], str]]] = {
    "show": _show,
    "check": _check,
    "digest": _digest,
    "convert": _convert,
    "sanitize": _sanitize,
}


def _write(job: Job, item: Item, rows: Rows, write: Callable[[Any], Any]) -> Any:
    """Write the new file completely or not at all, and record its place in the row."""
    if not item.output:
        raise UnsupportedError("output: expected a path below the folder for results, got one that leads out of it")
    target = f"{job.out.rstrip('/')}/{item.output}"
    if is_url(job.out):
        from pt2kit.zip.remote import create_url

        with create_url(target, storage_options=job.storage_options or None) as file:
            done = write(file)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        done = write(target)
    rows.files["output"] = plain(public_url(target) if is_url(target) else target)
    return done


def _refuse(rows: Rows, rule: str, message: str, place: str = "") -> None:
    rows.files |= {"rule": rule, "place": plain(place), "error": plain(message)}


def _add_facts(package: Package, rows: Rows) -> None:
    """Add the facts of `pt2 show`, and the operators.

    Raises:
        Pt2Error: a program cannot be read.
    """
    row = rows.files
    models = package.layout.models
    row |= {"programs": len(models), "release": plain(package.producer)}
    if not models:
        return
    row["schema_version"] = plain(package.stored_schema_version)
    row["nodes"] = 0
    for model in models:
        counts = Counter(step.node.target for step in walk(package.programs[model]))
        row["nodes"] += counts.total()
        rows.operators += [
            {"url": row["url"], "etag": row["etag"], "program": plain(model), "operator": plain(name), "count": count}
            for name, count in sorted(counts.items())
        ]
    with suppress(Pt2Error):  # Null where the weights contradict themselves, which is a problem of the file's own.
        weights = [one for model in models for one in package.weights(model).values()]
        constants = [one for model in models for one in package.constants(model).values()]
        group = group_of({str(number): one for number, one in enumerate([*weights, *constants])})
        row["parameters"] = sum(elements_of(one) for one in weights if one.is_param)
        row["bytes_by_dtype"] = [
            {"dtype": plain(dtype), "tensors": one.tensors, "elements": one.elements, "bytes": one.bytes}
            for dtype, one in group.dtypes.items()
        ]


def _add_digests(rows: Rows, digests: Mapping[str, Any]) -> None:
    rows.files |= {f"digest_{part}": text for part, text in digests.items() if isinstance(text, str)}


def _add_problems(rows: Rows, problems: Any) -> None:
    for problem in problems:
        rows.problems.append(
            {
                "url": rows.files["url"],
                "etag": rows.files["etag"],
                "rule": problem.rule,
                "severity": problem.severity,
                "kind": problem.kind,
                "place": plain(problem.loc),
                "message": plain(problem.message),
            }
        )
    counts = Counter(one["severity"] for one in rows.problems)
    rows.files |= {"errors": counts["error"], "warnings": counts["warning"], "notes": counts["note"]}


def _add_error(rows: Rows, error: Exception, file: str) -> None:
    """Add the error of an unreadable file to its row, and as a problem unless that is there already."""
    if not isinstance(error, Pt2Error):
        rows.files["error"] = plain(f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}")
        return
    problem = problem_of(error, "", file)
    _refuse(rows, problem.rule, problem.message, problem.loc)
    if not any((one["rule"], one["place"]) == (problem.rule, plain(problem.loc)) for one in rows.problems):
        _add_problems(rows, [problem])


def _problem_of_text(text: str) -> Problem:
    """Parse a problem from the text "where: expected X, got Y [rule]"."""
    message, _, rule = text.removesuffix("]").rpartition(" [")
    return problem_of(Pt2Error(message, rule=rule) if message else Pt2Error(text), "")
