"""Figures and report tables of a dataset: counts by release, operator, rule, size, cause; groups of equal programs.

A file that was done again, or had changed, has several rows; the last one counts. Parts are gone through from the last
to the first, one at a time, and the files that were seen are recorded on disk, so memory does not grow with the files.

The tables of the report have labels, numbers and lengths of bars, for terminals and pages.

As an HTML page it is self-contained, without scripts.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from pt2kit.errors import UnsupportedError
from pt2kit.fleet import dataset
from pt2kit.fleet.dataset import FAILURES, GONE, OUTCOMES, SCHEMA, TABLES, Folder, make_folder
from pt2kit.fleet.targets import Seen
from pt2kit.messages import count_text, cut, printable
from pt2kit.rules import RULES
from pt2kit.schema.names import OPS
from pt2kit.text.format import bytes_text

SHOWN: Final = 20
_EXAMPLES: Final = 3
_SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000)
_VARIABLE: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\b0x[0-9a-f]+\b|\d[\d,.]*")
_CAUSE: Final = 120


@dataclass(frozen=True, slots=True)
class Group:
    """Files whose programs mean the same.

    Args:
        digest: of the program.
        files: how many.
        bytes: of all of them.
        examples: names of some.
    """

    digest: str
    files: int
    bytes: int
    examples: tuple[str, ...]


@dataclass(slots=True)
class Figures:
    """Figures of a dataset.

    Args:
        work: what was done.
        options: of the work.
        files, bytes, nodes, parameters: of all files that are not gone.
        seconds: that reading them took, all together.
        outcomes: outcome -> files.
        releases: torch release -> files.
        schemas: schema version -> files.
        operators: operator -> calls;  operator_files: operator -> files that call it.
        rules: (rule, severity) -> problems;  rule_files: the same -> files that have such.
        sizes: upper bound in bytes -> files below it and above the one before; 0 for those above all.
        dtypes: element type -> bytes of weights and constants.
        groups: equal programs, the largest groups first; those of two files at least.
        equal_files: files in any such group.
        causes: (outcome, rule, what went wrong, without numbers and names) -> files.
        examples: the same -> names of some.
        damaged: parts that could not be read, or are not whole; `resume` does their files again.
    """

    work: str
    options: Mapping[str, Any]
    files: int = 0
    bytes: int = 0
    nodes: int = 0
    parameters: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    releases: Counter[str] = field(default_factory=Counter)
    schemas: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    operator_files: Counter[str] = field(default_factory=Counter)
    rules: Counter[tuple[str, str]] = field(default_factory=Counter)
    rule_files: Counter[tuple[str, str]] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    dtypes: Counter[str] = field(default_factory=Counter)
    groups: tuple[Group, ...] = ()
    equal_files: int = 0
    causes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()


def figures_of(place: str, storage_options: Mapping[str, Any] | None = None) -> Figures:
    """Compute the figures of a dataset.

    Args:
        place: its folder, by path or URL.
        storage_options: passed to fsspec for a URL.

    Raises:
        UnsupportedError: no dataset, or one of a later version.
        OSError, ArchiveError: it cannot be read.
    """
    folder = make_folder(place, storage_options)
    manifest = dataset.read_manifest(folder)
    if manifest is None:
        raise UnsupportedError(f"{folder.shown}: expected a dataset, got a folder without {dataset.MANIFEST}")
    if manifest.get("schema") != SCHEMA:
        raise UnsupportedError(
            f"{folder.shown}: expected a dataset of schema {SCHEMA}, got {manifest.get('schema')}; read it with the "
            "release of pt2kit that wrote it"
        )
    figures = Figures(str(manifest.get("work")), manifest.get("options") or {})
    damaged = []
    with closing(Seen()) as seen, closing(_Groups()) as groups:
        for name in reversed(dataset.part_names(folder)):
            if all(dataset.is_whole(folder, table, name) for table in TABLES):
                _add_part(figures, folder, name, seen, groups)
            else:
                damaged.append(name)
        figures.groups, figures.equal_files = groups.largest()
    figures.damaged = tuple(sorted(damaged))
    return figures


def _add_part(figures: Figures, folder: Folder, name: str, seen: Seen, groups: _Groups) -> None:
    rows = {row["url"]: row for row in dataset.part_rows(folder, "files", name)}  # the last of a part
    fresh = {url: row for url, row in rows.items() if seen.add(url, b"")}
    for row in fresh.values():
        _add_file(figures, row, groups)
    problems: set[tuple[str, str, str]] = set()
    for row in _rows(folder, "problems", name, fresh):
        key = (row["rule"] or "", row["severity"] or "")
        figures.rules[key] += 1
        problems.add((row["url"], *key))
    figures.rule_files.update((rule, severity) for _, rule, severity in problems)
    calls: set[tuple[str, str]] = set()
    for row in _rows(folder, "operators", name, fresh):
        figures.operators[row["operator"]] += row["count"]
        calls.add((row["url"], row["operator"]))
    figures.operator_files.update(operator for _, operator in calls)


def _rows(folder: Folder, table: str, name: str, fresh: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table's part that belong to the last result of a file."""
    for row in dataset.part_rows(folder, table, name):
        if row["url"] in fresh and row["etag"] == fresh[row["url"]]["etag"]:
            yield row


def _add_file(figures: Figures, row: Mapping[str, Any], groups: _Groups) -> None:
    figures.outcomes[row["outcome"]] += 1
    if row["outcome"] == GONE:
        return
    size = row["size"] or 0
    figures.files += 1
    figures.bytes += size
    figures.nodes += row["nodes"] or 0
    figures.parameters += row["parameters"] or 0
    figures.seconds += row["seconds"] or 0.0
    if row["size"] is not None:
        figures.sizes[next((bound for bound in _SIZES if size < bound), 0)] += 1
    if row["release"]:
        figures.releases[row["release"]] += 1
    if row["schema_version"]:
        figures.schemas[row["schema_version"]] += 1
    for one in row["bytes_by_dtype"] or ():
        figures.dtypes[one["dtype"]] += one["bytes"]
    if row["digest_program"]:
        groups.add(row["digest_program"], size, row["url"])
    if row["outcome"] in FAILURES or row["outcome"] == "refused":
        cause = (row["outcome"], row["rule"] or "", cut(_VARIABLE.sub("…", row["error"] or ""), _CAUSE))
        figures.causes[cause] += 1
        examples = figures.examples.setdefault(cause, [])
        if len(examples) < _EXAMPLES:
            examples.append(row["url"])


class _Groups:
    """Digests with the number of files that have each, on disk."""

    def __init__(self) -> None:
        self._rows = sqlite3.connect("", isolation_level=None)
        self._rows.execute("PRAGMA journal_mode=OFF")
        self._rows.execute("CREATE TABLE file (digest TEXT, size INTEGER, url TEXT)")

    def add(self, digest: str, size: int, url: str) -> None:
        self._rows.execute("INSERT INTO file VALUES (?, ?, ?)", (digest, size, url))

    def largest(self) -> tuple[tuple[Group, ...], int]:
        """Return the largest groups of two files or more, and the files in all such groups."""
        rows = self._rows.execute(
            "SELECT digest, COUNT(*), SUM(size), SUM(COUNT(*)) OVER () FROM file GROUP BY digest HAVING COUNT(*) > 1 "
            "ORDER BY COUNT(*) DESC, digest LIMIT ?",
            (SHOWN,),
        ).fetchall()
        groups = tuple(Group(digest, files, size, self._examples(digest)) for digest, files, size, _ in rows)
        return groups, rows[0][-1] if rows else 0

    def _examples(self, digest: str) -> tuple[str, ...]:
        rows = self._rows.execute("SELECT url FROM file WHERE digest = ? ORDER BY url LIMIT ?", (digest, _EXAMPLES))
        return tuple(url for (url,) in rows)

    def close(self) -> None:
        self._rows.close()


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: its label, the number of its bar, and further cells."""

    label: str
    number: int
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the report.

    Args:
        title: what it is about.
        columns: the headings: of the labels, of the numbers ("bytes" are shown as such), and of further cells.
        rows: in order.
        left_out: rows beyond those that are shown.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int = 0

    @property
    def most(self) -> int:
        """Return the number of the longest bar."""
        return max(row.number for row in self.rows) or 1

    def shown(self, number: int) -> str:
        """Return a number as it is printed."""
        return bytes_text(number) if self.columns[1] == "bytes" else f"{number:,}"


def headline(figures: Figures) -> str:
    """Return a summary in one line."""
    options = ", ".join(f"{key} {value}" for key, value in figures.options.items() if value)
    return (
        f"{figures.work}{f' ({options})' if options else ''}: {count_text(figures.files, 'file')}, "
        f"{bytes_text(figures.bytes)}, {count_text(figures.nodes, 'node')}, "
        f"{count_text(figures.parameters, 'parameter')}, {figures.seconds:,.1f} s of reading"
    )


def tables_of(figures: Figures) -> Iterator[Table]:
    """Return the tables of a report that have rows."""
    for table in _all(figures):
        if table.rows:
            yield table


def report_tree(figures: Figures) -> dict[str, Any]:
    """Return the report as data for JSON."""
    return {
        **{key: getattr(figures, key) for key in ("work", "options", "files", "bytes", "nodes", "parameters")},
        "seconds": round(figures.seconds, 3),
        "damaged": list(figures.damaged),
        "tables": [
            {
                "title": table.title,
                "columns": list(table.columns),
                "rows": [[row.label, row.number, *row.more] for row in table.rows],
                "left_out": table.left_out,
            }
            for table in tables_of(figures)
        ],
    }


def _all(figures: Figures) -> Iterator[Table]:
    calls, findings, examples = figures.operator_files, figures.rule_files, figures.examples
    yield _table("outcomes", "outcome files meaning", figures.outcomes, lambda name: (name, OUTCOMES.get(name, "")))
    yield _table("releases", "written_by files", figures.releases)
    yield _table("schema versions", "version files", figures.schemas)
    yield _table(
        *("findings by rule", "rule problems severity files asks_for", figures.rules),
        lambda key: (key[0] or "none", key[1], f"{findings[key]:,}", RULES[key[0]].text if key[0] in RULES else ""),
    )
    yield _table(
        *("operators", "operator calls files", figures.operators),
        lambda name: (name.removeprefix(OPS), f"{calls[name]:,}"),
    )
    yield Table("sizes", ("below", "files"), tuple(_sizes(figures)))
    yield _table("bytes of tensors", "type bytes", figures.dtypes)
    groups = tuple(
        Row(group.digest[:23], group.files, (bytes_text(group.bytes), ", ".join(group.examples)))
        for group in figures.groups[:SHOWN]
    )
    yield Table("equal programs, by digest", ("program", "files", "together", "such as"), groups)
    yield _table(
        *("failures by cause", "outcome files rule cause such_as", figures.causes),
        lambda cause: (*cause, ", ".join(examples[cause])),
    )


def _table(
    title: str, columns: str, counts: Counter[Any], cells: Callable[[Any], tuple[str, ...]] = lambda key: (str(key),)
) -> Table:
    """Return the table of some counts, the largest first.

    Args:
        title: what it is about.
        columns: its headings, with blanks between them and "_" for blanks inside.
        counts: what is counted -> the number.
        cells: what is counted -> its label and further cells.
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = tuple(Row(cells(key)[0], number, cells(key)[1:]) for key, number in ordered[:SHOWN])
    headings = tuple(heading.replace("_", " ") for heading in columns.split())
    return Table(title, headings, rows, max(0, len(ordered) - SHOWN))


def _sizes(figures: Figures) -> Iterator[Row]:
    bounds = sorted(bound for bound in figures.sizes if bound)
    for bound in [*bounds, *([0] if 0 in figures.sizes else [])]:
        yield Row(bytes_text(bound) if bound else "larger", figures.sizes[bound])


_CELL: Final = 400
# The page contains names from untrusted files: it may run no script, and reach nothing.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #222; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin-top: .6rem; } th, td { padding: .15rem .8rem .15rem 0; text-align: left;
vertical-align: top; overflow-wrap: anywhere; } th { border-bottom: 1px solid #bbb; font-weight: 600;
white-space: nowrap; } td:first-child { min-width: 4rem; }
td.number { text-align: right; white-space: nowrap; } td.bar { width: 20rem; } p.note { color: #666; }
td.bar div { background: #3b6ea5; height: 1em; margin-top: .2em; min-width: 1px; }
"""


def page_of(figures: Figures) -> str:
    """Return the page as HTML."""
    damaged = (
        f'<p class="note">{len(figures.damaged):,} damaged parts are left out; --resume does their files again.</p>'
        if figures.damaged
        else ""
    )
    sections = "\n".join(map(_section, tables_of(figures)))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        f"<title>pt2 fleet {_text(figures.work)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>pt2 fleet {_text(headline(figures))}</h1>\n{damaged}\n{sections}\n</body>\n</html>\n"
    )


def _section(table: Table) -> str:
    heads = "".join(f"<th>{_text(head)}</th>" for head in (*table.columns[:2], "", *table.columns[2:]))
    rows = "\n".join(
        f'<tr><td>{_text(row.label)}</td><td class="number">{_text(table.shown(row.number))}</td>'
        f'<td class="bar"><div style="width: {100 * row.number / table.most:.1f}%"></div></td>'
        f"{''.join(f'<td>{_text(cell)}</td>' for cell in row.more)}</tr>"
        for row in table.rows
    )
    more = f'<p class="note">… and {table.left_out:,} more</p>' if table.left_out else ""
    return (
        f"<section><h2>{_text(table.title)}</h2>\n<table><thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n"
        f"</tbody></table>{more}</section>"
    )


def _text(text: str) -> str:
    return escape(printable(text, _CELL))
