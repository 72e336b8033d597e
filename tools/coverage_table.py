"""Table of the statements of each subpackage that tests run, from the output of `coverage json`.

    python tools/coverage_table.py [--without SUBPACKAGE ...] [--write]

`make coverage` runs the tests and calls this; `--write` puts the table into docs/testing.md.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "coverage" / "report.json"
PAGE = ROOT / "docs" / "testing.md"


def subpackage_of(file: str) -> str:
    """The subpackage of a source file: the folder below `pt2kit`, or the name of a file that is a subpackage."""
    parts = PurePosixPath(file.replace("\\", "/")).parts
    return PurePosixPath(parts[parts.index("pt2kit") + 1]).stem


def table(files: Mapping[str, Any], without: tuple[str, ...] = ()) -> Iterator[str]:
    """The lines of the table.

    Args:
        files: "files" of coverage's report: path -> its "summary".
        without: subpackages that were not tested.
    """
    subpackages: dict[str, list[int]] = {}
    for file, row in files.items():
        if (subpackage := subpackage_of(file)) not in without:
            run, all_ = subpackages.setdefault(subpackage, [0, 0])
            subpackages[subpackage] = [run + row["summary"]["covered_lines"], all_ + row["summary"]["num_statements"]]
    yield "| subpackage | statements | run by tests |"
    yield "|---|---|---|"
    for subpackage, (run, all_) in sorted(subpackages.items()):
        if all_:
            yield f"| `{subpackage}` | {all_:,} | {_percent(run, all_)} |"
    run, all_ = (sum(column) for column in zip(*subpackages.values(), strict=True))
    yield f"| all | {all_:,} | {_percent(run, all_)} |"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--without", nargs="*", default=[], metavar="SUBPACKAGE", help="subpackages that were not tested"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/testing.md")
    asked = parser.parse_args()
    lines = list(table(json.loads(REPORT.read_text(encoding="utf-8"))["files"], tuple(asked.without)))
    print(*lines, sep="\n")
    if asked.write:
        page = PAGE.read_text(encoding="utf-8")
        [old] = re.findall(r"<!-- generated: coverage -->\n.*?<!-- end -->", page, re.DOTALL)
        new = "\n".join(("<!-- generated: coverage -->", *lines, "<!-- end -->"))
        PAGE.write_text(page.replace(old, new), encoding="utf-8")


if __name__ == "__main__":
    main()
