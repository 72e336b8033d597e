"""Installations of torch -> `src/pt2kit/schema/history/operators.txt`, the operators of every release.

    python -m tools.operator_schemas 2.4.json 2.5.json      put releases into the table, from what
                                                            `tools/registered_operators.py` printed in each
    python -m tools.operator_schemas --check 2.13.json      exit 1 if the table says otherwise
    python -m tools.operator_schemas --news 2.15            what a release has otherwise than the one before

Releases that are not given stay as the table has them. What a build leaves out that the releases before and after it
have alike (a CPU build has no operators for other devices) counts as theirs: only `COMPLETE` namespaces are the same in
every build. The same installations give the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.generated import from_dumps

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
        groups.setdefault(spans(releases, _filled(line, having)), []).append(line)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return "\n".join([" ".join(releases), *("\n".join([f"@ {name}", *held]) for name, held in ordered)]) + "\n"


def _filled(line: str, having: list[bool]) -> list[bool]:
    """Which releases have a line, with what the builds between two others left out."""
    if "(" not in line or line.partition("::")[0] in COMPLETE:
        return having
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


def news(release: str) -> list[str]:
    """Return a release's changes since the one before, a line each."""
    before = known_releases()[known_releases().index(release) - 1]
    old, new = release_operators(before), release_operators(release)
    found = [f"- {name}" for name in old.schemas if name not in new.schemas]
    for name, schema in new.schemas.items():
        if name not in old.schemas:
            found.append(f"+ {schema}")
        elif old.schemas[name] != schema:
            found += [f"- {old.schemas[name]}", f"+ {schema}"]
    for what, gone, came in (
        ("higher_order::", old.higher_order - new.higher_order, new.higher_order - old.higher_order),
        ("", old.functions - new.functions, new.functions - old.functions),
    ):
        found += [*(f"- {what}{name}" for name in sorted(gone)), *(f"+ {what}{name}" for name in sorted(came))]
    return sorted(found, key=lambda line: (operator_name(line[2:]), line[0] == "+"))


def with_dumps(dumps: Iterable[Path]) -> str:
    """The table with the releases of some dumps, and all others as they are."""
    known = {release: lines_of_table(release) for release in known_releases()} if TARGET.exists() else {}
    return text({**known, **dict(map(lines_of_dump, dumps))})


def put_in(dumps: Iterable[Path]) -> None:
    """Write the table with the releases of some dumps."""
    TARGET.write_text(with_dumps(dumps), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(from_dumps(TARGET, __doc__ or "", "tools.operator_schemas", with_dumps, ("news", news)))
