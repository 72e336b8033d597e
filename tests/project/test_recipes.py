"""The recipes of `docs/recipes.md` run, in order, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.samples import DATA

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"


def test_recipes_run(tmp_path: Path) -> None:
    """Each block of code of the page runs after the ones before it; the page says what must hold by assertions."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 12
    names: dict[str, Any] = {"FILES": DATA / "corpus" / "2.13.0", "OUT": tmp_path}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{PAGE.name}: block {number}", "exec"), names)  # noqa: S102 - the project's own page


def test_there_are_twelve_recipes() -> None:
    """Twelve numbered headings, and one to run what came of them."""
    headings = re.findall(r"^## (\d+)\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [str(number) for number in range(1, 13)]
