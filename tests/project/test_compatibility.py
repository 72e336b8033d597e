"""The page about compatibility says what the code does: every loss has its line, the example prints what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.run import pt2
from tests.project import console
from tests.samples import CORPUS
from tools import conversions

from pt2kit.release.conversion import HARMLESS
from pt2kit.schema import LOG
from pt2kit.versions.conversion_log import BY_PERMISSION
from pt2kit.versions.line.minor import LOSSES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
RAISED = re.compile(r'(?:lost\(|Note\("lost", )"(\w+)"')


def names(title: str) -> set[str]:
    """The names in the first column of the table that follows a text."""
    table = PAGE[PAGE.index(title) :].split("\n\n")[1]
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_every_loss_has_its_line() -> None:
    """The harmless ones in one table, those that need permission in the other, and no others."""
    sources = [
        path.read_text() for room in ("versions", "release") for path in (ROOT / "src/pt2kit" / room).rglob("*.py")
    ]
    known = {name for source in sources for name in RAISED.findall(source)} | set(LOSSES.values())
    known |= {"compiled_code", "other_records"}  # one of the two, chosen where the note is made
    assert names("Harmless: ") == set(HARMLESS)
    assert names("By permission ") == known - HARMLESS == BY_PERMISSION


def test_the_example() -> None:
    """The command prints what the page shows."""
    [(line, output)] = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)
    _, *args = shlex.split(line)
    assert pt2(*args, cwd=ROOT, env=console.ENVIRONMENT).out == output


def test_the_table_has_every_version() -> None:
    """A column for the first release of each version."""
    header = next(line for line in PAGE.splitlines() if line.startswith("| from | files | up |"))
    assert re.findall(r"to (2\.\d+)", header) == [version.releases[0] for version in LOG if version.releases]


def test_the_tool_counts() -> None:
    """The table's tool opens, upgrades and converts back the sample files of a release."""
    from collections import Counter

    why: Counter[str] = Counter()
    found = conversions.count(CORPUS / "2.4.1", why)
    assert found["files"] == found["up"] == found["same"] == found["2.12"] > 10
    assert any(line.startswith("print_effect -> 2.1: ") or "-> 2.1: " in line for line in why)
