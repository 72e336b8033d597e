"""The table of coverage: files of a subpackage are one row, subpackages that were not tested are left out."""

from __future__ import annotations

from tools.coverage_table import subpackage_of, table


def _row(run: int, all_: int) -> dict[str, dict[str, int]]:
    return {"summary": {"covered_lines": run, "num_statements": all_}}


def test_subpackages() -> None:
    """A subpackage is the folder below the package, or one file; paths of every system."""
    assert subpackage_of("src/pt2kit/zip/reader.py") == "zip"
    assert subpackage_of("src\\pt2kit\\bridge\\read\\graph.py") == "bridge"
    assert subpackage_of("/x/site-packages/pt2kit/rules.py") == "rules"


def test_statements_are_added_up() -> None:
    """Per subpackage and in all; an empty file makes no row, an untested subpackage neither counts nor shows."""
    files = {
        "src/pt2kit/zip/a.py": _row(1, 2),
        "src/pt2kit/zip/b.py": _row(2, 2),
        "src/pt2kit/rules.py": _row(1000, 2000),
        "src/pt2kit/empty.py": _row(0, 0),
        "src/pt2kit/bridge/a.py": _row(0, 9),
    }
    assert list(table(files, ("bridge",)))[2:] == [
        "| `rules` | 2,000 | 50.0 % |",
        "| `zip` | 4 | 75.0 % |",
        "| all | 2,004 | 50.0 % |",
    ]
