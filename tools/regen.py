"""Write the files that are generated from code and committed: `python -m tools.regen`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools import conformance, format_tables, history_tables, rule_pages, runtime_operators

from pt2kit import idl
from pt2kit.idl.compat import RULES, Level, Verdict, history

ROOT = Path(__file__).parents[1]
CHANGING = ROOT / "docs" / "changing-the-schema.md"


def definition(format: str) -> str:
    """The current schema in another language."""
    return idl.emit(idl.table(), format)


def rule_lines() -> list[str]:
    """Return the rules as a Markdown table."""
    words = {Level.NONE: "-", Level.MINOR: "minor", Level.MAJOR: "major"}
    rows = [f"| {rule} | {text} | {words[level]} |" for rule, (level, text) in RULES.items()]
    return ["| rule | change | demands |", "|---|---|---|", *rows]


def history_lines() -> list[str]:
    """Return every step of the history as a Markdown table: the changes, the demanded and the chosen level."""
    return ["| step | changes | demands | chosen | |", "|---|---|---|---|---|", *map(_history_line, history())]


def _history_line(step: Verdict) -> str:
    counts = Counter(change.rule for change in step.changes)
    rules = sorted(counts, key=lambda rule: int(rule[1:]))
    listed = ", ".join(f"{rule} ({counts[rule]})" if counts[rule] > 1 else rule for rule in rules)
    chosen = step.chosen
    words = [(level.name.lower() if level is not None else "-") for level in (step.demanded, chosen)]
    verdict_text = "agrees" if step.agrees else f"**differs**: {step.exception or 'unexplained'}"
    return f"| {step.old} → {step.new} | {listed} | {words[0]} | {words[1]} | {verdict_text} |"


def page_with_tables() -> str:
    """The page about changing the schema, with its two tables as they are now."""
    page = CHANGING.read_text(encoding="utf-8")
    for name, lines in (("rules", rule_lines()), ("history", history_lines())):
        pattern = rf"<!-- generated: {name} -->\n(.*?)<!-- end -->"
        [(start, end)] = [found.span(1) for found in re.finditer(pattern, page, re.DOTALL)]
        page = page[:start] + "".join(f"{line}\n" for line in lines) + page[end:]
    return page


# In this order: the definitions and the page are made from the tables.
TARGETS: tuple[tuple[Path, Callable[[], str]], ...] = (
    (history_tables.TARGET, history_tables.text),
    *((ROOT / "idl" / name, partial(definition, format)) for format, name in idl.FORMATS.items()),
    (CHANGING, page_with_tables),
    *format_tables.PAGES.items(),
    *rule_pages.targets(),
    (runtime_operators.TARGET, runtime_operators.text),
)


def stale() -> list[Path]:
    """The targets that are not what they would be."""
    return [path for path, text in TARGETS if not path.exists() or path.read_text(encoding="utf-8") != text()]


def main() -> None:
    """Write them all."""
    # A new version is read from these tables, also by what writes the other files.
    history_tables.TARGET.write_text(history_tables.text(), encoding="utf-8")
    conformance.write()  # The table of rules counts its files.
    for path, text in TARGETS:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
