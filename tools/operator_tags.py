"""Write `src/pt2kit/operators/data/tags.txt`, the tags of every operator overload by release.

    python -m tools.operator_tags dumps/*.json              put releases into the table, from what
                                                            `tools/registered_operators.py` printed in each
    python -m tools.operator_tags --differences TAG         overloads that have a tag in some of their releases only

Releases without a dump are unchanged in the table. The same installations result in the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tools.operator_schemas import filled, main, spans

from pt2kit.operators.schemas import overloads_with, tagged_releases, tags_of
from pt2kit.schema.operators import COMPLETE, RELEASES, operators_of

TARGET = Path(__file__).parents[1] / "src" / "pt2kit" / "operators" / "data" / "tags.txt"

Entries = frozenset[tuple[str, str]]
"""Pairs of a tag and an overload that has it."""


def entries_of_dump(path: Path) -> tuple[str, Entries]:
    """Return the release ("2.4") of a dump and its entries."""
    dump = json.loads(path.read_text(encoding="utf-8"))
    release = ".".join(dump["release"].split(".")[:2])
    return release, frozenset((tag, name) for tag, names in dump["tags"].items() for name in names)


def entries_of_table(release: str) -> Entries:
    """Return the entries of a release as the table has them."""
    return frozenset((tag, name) for name in operators_of(release) for tag in tags_of(name, release))


def text(entries: Mapping[str, Entries]) -> str:
    """Return the table: each tag with the overloads that have it, grouped by releases."""
    releases = [release for release in RELEASES if release in entries]
    groups: dict[tuple[str, str], list[str]] = {}
    for entry in sorted(set().union(*entries.values())):
        tag, name = entry
        having = [entry in entries[release] for release in releases]
        # Builds differ: a namespace that the builds before and after have is not missing between them.
        if name.partition(".")[0] not in COMPLETE:
            having = filled(having)
        groups.setdefault((tag, spans(releases, having)), []).append(name)
    lines = [" ".join(releases)]
    for (tag, named), names in sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1]), group[0][1])):
        lines += [f"@ {tag} {named}", *_by_operator(names)]
    return "\n".join(lines) + "\n"


def _by_operator(names: Iterable[str]) -> Iterator[str]:
    """Yield a line for each operator: its name and its overloads."""
    overloads: dict[str, list[str]] = {}
    for name in names:
        base, _, overload = name.rpartition(".")
        overloads.setdefault(base, []).append(overload)
    return (" ".join((base, *found)) for base, found in overloads.items())


def put_in(dumps: Iterable[Path]) -> None:
    """Write the table with the releases of some dumps, and all others unchanged."""
    known = {release: entries_of_table(release) for release in tagged_releases()}
    TARGET.write_text(text({**known, **dict(map(entries_of_dump, dumps))}), encoding="utf-8")


def differences(tag: str) -> list[str]:
    """Return a line for each overload that has a tag in some, but not all of the releases that have the overload."""
    lines = []
    for name in sorted(overloads_with(tag)):
        having = [release for release in tagged_releases() if name in operators_of(release)]
        tagged = [tag in tags_of(name, release) for release in having]
        if not all(tagged):
            lines.append(f"{name}: {spans(having, tagged)} of {having[0]}-{having[-1]}")
    return lines


if __name__ == "__main__":
    main(__doc__, put_in, "--differences", differences)
