"""Installations of torch -> `src/pt2kit/schema/history/operators.txt`, the operators of every release.

    python -m tools.operator_schemas 2.4.json 2.5.json      put releases into the table, from what
                                                            `tools/registered_operators.py` printed in each
    python -m tools.operator_schemas --news 2.15            what a release has otherwise than the one before

Releases that are not given stay as the table has them. What a build leaves out that the releases before and after it
have alike (a CPU build has no operators for other devices) counts as theirs: only `COMPLETE` namespaces are the same in
every build. The same installations give the same bytes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pt2kit.schema.operators import COMPLETE, RELEASES, known_releases, operator_name, release_operators

TARGET = Path(__file__).parents[1] / "src" / "pt2kit" / "schema" / "history" / "operators.txt"


def lines_of_dump(path: Path) -> tuple[str, frozenset[str]]:
    """The release ("2.4") that a dump is of, and its lines of the table."""
    dump = json.loads(path.read_text(encoding="utf-8"))
    release = ".".join(dump["release"].split(".")[:2])
    higher_order = (f"higher_order::{name}" for name in dump["higher_order"])
    return release, frozenset([*dump["schemas"], *higher_order, *dump["functions"]])


def lines_of_table(release: str) -> frozenset[str]:
    """The lines of a release that the table has."""
    known = release_operators(release)
    higher_order = (f"higher_order::{name}" for name in known.higher_order)
    return frozenset([*known.schemas.values(), *higher_order, *known.functions])


def text(lines: Mapping[str, frozenset[str]]) -> str:
    """The table: lines by the releases that have them, the most common first."""
    releases = [release for release in RELEASES if release in lines]
    groups: dict[str, list[str]] = {}
    for line in sorted(set().union(*lines.values())):
        having = [release in lines and line in lines[release] for release in releases]
        if "(" in line and line.partition("::")[0] not in COMPLETE:
            having = filled(having)
        groups.setdefault(spans(releases, having), []).append(line)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return "\n".join([" ".join(releases), *("\n".join([f"@ {name}", *held]) for name, held in ordered)]) + "\n"


def filled(having: list[bool]) -> list[bool]:
    """Return which releases have something, with those that lack it although the releases before and after have it."""
    return [has or (any(having[:at][-1:]) and any(having[at + 1 : at + 2])) for at, has in enumerate(having)]


def spans(releases: list[str], having: Iterable[bool]) -> str:
    """Releases as a line names them: "2.1-2.4 2.6"."""
    runs: list[list[str]] = []
    before = False
    for release, has in zip(releases, having, strict=True):
        if has and before:
            runs[-1] = [runs[-1][0], release]
        elif has:
            runs.append([release])
        before = has
    return " ".join("-".join(run) for run in runs)


def previous(release: str) -> str:
    """Return the release before one, also before one that the table does not have yet."""
    known = known_releases()
    return known[known.index(release) - 1 if release in known else -1]


def differences(old: frozenset[str], new: frozenset[str]) -> list[str]:
    """Return the lines that went and came, in the order of their operators."""
    lines = [*(f"- {line}" for line in old - new), *(f"+ {line}" for line in new - old)]
    return sorted(lines, key=lambda line: (operator_name(line[2:]), line[0] == "+"))


def news(release: str) -> list[str]:
    """Return a release's changes since the one before, a line each."""
    return differences(lines_of_table(previous(release)), lines_of_table(release))


def put_in(dumps: Iterable[Path]) -> None:
    """Write the table with the releases of some dumps, and all others as they are."""
    known = {release: lines_of_table(release) for release in known_releases()}
    TARGET.write_text(text({**known, **dict(map(lines_of_dump, dumps))}), encoding="utf-8")


def main(
    doc: str | None, put_in: Callable[[list[Path]], None], option: str, report: Callable[[str], list[str]]
) -> None:
    """Put dumps of releases into a table, or print a report.

    Args:
        doc: the docstring of the tool.
        put_in: writes the table with the releases of some dumps.
        option: for the report, with a value.
        report: returns the lines of the report for that value.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="*", type=Path)
    parser.add_argument(option, dest="report")
    options = parser.parse_args()
    if options.report:
        print(*report(options.report), sep="\n")
    else:
        put_in(options.dumps)


if __name__ == "__main__":
    main(__doc__, put_in, "--news", news)
