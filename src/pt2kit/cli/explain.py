"""`pt2 explain RULE...`: what a rule demands, why, a file that breaks it, and how to fix such a file.

Texts, severities, reasons and hints are those of `pt2kit.rules`. The long form and the example of each rule are
generated from `docs/format/` and `conformance/bad/` into `data/rules.json` (`tools/rule_pages.py`, which also writes
`docs/rules/`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import click

from pt2kit.cli.completion import complete_rules
from pt2kit.cli.frame import Result, ResultOptions, argument, print_result
from pt2kit.cli.output import width
from pt2kit.data_files import data_file
from pt2kit.messages import suggestion
from pt2kit.rules import FAMILIES, REASONS, RULES

REFUSALS: Final = ("does not refuse a file for this alone", "refuses a file with this error")
"""Ends of the sentence about `load`, by `load_refuses`."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of one rule: meaning, reason, example, fix.

    Args:
        rule: its id.
        text: what must hold; for X rules, what a finding says.
        family: what the rules with its letter are about.
        severity: "error", "warning" or "note".
        load_refuses: whether an error by it makes `pt2kit.load` refuse a file.
        details: the long form of the format specification; "" if there is none.
        why: the reason for the family's rules.
        hint: how to fix a file that breaks it.
        example: `file` of the conformance suite, what is `wrong` with it, and the `place` and `message` that
            `pt2 check` reports; empty if the suite has none.
    """

    rule: str
    text: str
    family: str
    severity: str
    load_refuses: bool
    details: str
    why: str
    hint: str
    example: Mapping[str, str]


def explain(rule: str) -> Explanation:
    """Return the explanation of a rule.

    Raises:
        KeyError: there is no such rule.
    """
    row, letter = RULES[rule], rule[0]
    more = generated().get(rule, {"details": "", "example": {}})
    return Explanation(
        rule, row.text, FAMILIES[letter], row.severity, row.refuses, why=REASONS[letter], hint=row.hint, **more
    )


def generated() -> dict[str, Any]:
    """Return the generated part: rule id -> `details` and `example`."""
    import json

    rows: dict[str, Any] = json.loads(data_file("cli/data/rules.json").read_text(encoding="utf-8"))
    return rows


@dataclass(frozen=True, slots=True)
class Options(ResultOptions):
    """Options of `pt2 explain`."""

    rules: tuple[str, ...] = argument("[RULE]...", type=None, shell_complete=complete_rules)


def run(options: Options) -> int:
    """Explain rules of `pt2 check`: what they mean, why, an example, and how to fix a file. Without RULE, list all.

    Examples:
      pt2 explain X5                        meaning, reason, example, how to fix
      pt2 explain G1 G2 --json
      pt2 explain                           list all rules

    Exit codes: 0 fine, 2 no such rule.
    """
    wanted = [rule.upper() for rule in options.rules] or list(RULES)
    for rule in wanted:
        if rule not in RULES:
            raise click.UsageError(f"expected the id of a rule, got {rule[:40]!r}{suggestion(rule, RULES, 0.5)}")
    explained = (line for number, rule in enumerate(wanted) for line in ([""] if number else []) + _lines(rule))
    lines = explained if options.rules else _list()
    return print_result(Result(lines, lambda: [asdict(explain(rule)) for rule in wanted]), options.as_json)


def _list() -> Iterator[str]:
    """List all rules, family by family."""
    for letter, about in FAMILIES.items():
        yield f"{letter}: {about}"
        yield from (f"  {rule:<4}{row.text}" for rule, row in RULES.items() if rule[0] == letter)


def _lines(rule: str) -> list[str]:
    """Return the explanation of a rule as lines."""
    one = explain(rule)
    refusal = f"pt2kit.load {REFUSALS[one.load_refuses]}"
    lines = [f"{rule}  {one.text}", f"  {one.severity}, family {rule[0]}: {one.family}; {refusal}"]
    for title, text in (("meaning", one.details), ("why", one.why), ("example", ""), ("how to fix", one.hint)):
        if title == "example" and one.example:
            text = "{file}: {wrong}\n{place}: {message}".format(**one.example)
        if text:
            lines += ["", title, *_wrapped(text)]
    return lines


def _wrapped(text: str) -> Iterator[str]:
    columns = min(100, width() or 100) - 2
    for paragraph in text.splitlines():
        yield from textwrap.wrap(paragraph, columns, initial_indent="  ", subsequent_indent="  ") or [""]
