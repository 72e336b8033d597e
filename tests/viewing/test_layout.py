"""Layout of real models, all modules unfolded: one straight column, narrow, full, few crossings, nothing upward."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pt2kit.viewing.answers import Answers

VIEWER = Path(__file__).parents[2] / "viewer"
MODELS = Path(__file__).parent / "models"
CROSSINGS = {"resnet50": 80, "bert": 38, "llama28": 477, "swin_t": 281, "googlenet": 18}
"""Crossings of the layout before calls were boxes, of the same programs."""
BENDS = {"resnet50": 32, "bert": 150, "llama28": 1150, "swin_t": 150, "googlenet": 54}
"""Lines with a part that goes sideways, at most; 1,280 in `llama28` while only one chain of a module was straight."""


@pytest.fixture(scope="module")
def measures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the measures of `viewer/tools/measure.ts` for each model, by name."""
    rolldown = VIEWER / "node_modules" / ".bin" / "rolldown"
    if not rolldown.exists() or shutil.which("node") is None:
        pytest.skip("node or rolldown is not installed (`make viewer`)")
    folder = tmp_path_factory.mktemp("layout")
    for path in MODELS.glob("*.json.gz"):
        answers = Answers(gzip.decompress(path.read_bytes()))
        (folder / path.stem).write_bytes(answers.answer("program/0"))
        answers.close()
    bundle = folder / "measure.mjs"
    command = [str(rolldown), str(VIEWER / "tools" / "measure.ts"), "--file", str(bundle), "--platform", "node"]
    subprocess.run(command, check=True, capture_output=True, cwd=VIEWER)
    paths = [str(path) for path in sorted(folder.glob("*.json"))]
    found = subprocess.run(["node", str(bundle), *paths], check=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    return {row["name"]: row for row in rows}


@pytest.mark.parametrize("name", sorted(CROSSINGS))
def test_layout(name: str, measures: dict[str, Any]) -> None:
    """The backbone is one line, the picture at most 3,000 wide, nodes cover 3 %, and no line runs upward."""
    found = measures[name]
    assert found["chain"] > 60
    assert found["off"] == 0, "nodes of the backbone that are more than 10 points off its line"
    assert found["upward"] == 0
    assert found["width"] <= 3000
    assert found["cover"] >= 3
    assert found["crossings"] <= CROSSINGS[name]
    assert found["sideways"] <= BENDS[name]
