"""The hostile files: what this level can decide, it decides as the manifest says, at the stage and by the rule stated.

`hostile_cases.json` names for each case the first stage at which it is refused, and the rule; "accepted" are the cases
that are fine as archives (or whose manifest entry leaves it open) and whose attack is for others to refuse.
"""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from tests import samples

from pt2kit import errors
from pt2kit.errors import Pt2Error
from pt2kit.package.layouts.detection import detect
from pt2kit.zip.reader import open_archive

CASES: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("hostile_cases.json").read_text())
MANIFEST = {case["name"]: case for case in samples.hostile()}
CATEGORIES = {"zip", "path-traversal", "bitflip", "records", "version"}
"""The categories that are about archives; every case of them has an entry."""
MAX_MEMORY = 256 << 20


def _read(path: Path) -> tuple[str, Pt2Error | None]:
    """Read all of an archive; how far it came, and the error."""
    stage = "open"
    try:
        with open_archive(path) as archive:
            stage = "header"
            layout = detect(archive)
            stage = "payload"
            layout.parts("model")
            stage = "read"
            for name in archive.records:
                archive.read(name)
    except Pt2Error as error:
        return stage, error
    return "accepted", None


@pytest.mark.parametrize("name", CASES)
def test_hostile(name: str) -> None:
    """A case is refused where and why stated, with an error of a kind that the manifest allows, in bounded memory."""
    case, expected = MANIFEST[name], CASES[name]
    tracemalloc.start()
    try:
        stage, error = _read(case["path"])
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
    finally:
        tracemalloc.stop()
    assert (stage, error.rule if error else "") == (expected["stage"], expected.get("rule", "")), error
    reader: dict[str, Any] = case["safe_reader"]
    if error is not None:
        assert reader["action"] != "load_same"
        allowed = tuple(getattr(errors, kind) for kind in reader["error_kinds"])
        assert isinstance(error, allowed)
    else:
        assert reader["action"] != "refuse" or expected["left to"]


def test_every_case_about_archives_is_here() -> None:
    """No case of the categories about archives is forgotten."""
    missing = {case["name"] for case in MANIFEST.values() if case["category"] in CATEGORIES} - set(CASES)
    assert missing == set()


def test_real_cousins_are_accepted() -> None:
    """The file that all hostile ones are made from, and its copy by their builder, are fine."""
    for path in (samples.DATA / "hostile" / "benign.pt2", MANIFEST["control_benign"]["path"]):
        assert _read(path) == ("accepted", None)
