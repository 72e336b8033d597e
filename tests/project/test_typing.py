"""Users' code passes a strict type checker: the example of the README, and what else people write."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import samples
from tests.project.typed_use import look

ROOT = Path(__file__).parents[2]


def test_typed_use_runs(tmp_path: Path) -> None:
    """What is checked is also true when it runs."""
    assert look(str(samples.sample("2.13.0", "dynamic_batch")), str(tmp_path / "x.pt2")) > 0


def test_strict_type_checker(tmp_path: Path) -> None:
    """`mypy --strict` has nothing to say about the README's example and `typed_use.py`."""
    pytest.importorskip("mypy", reason="mypy is what checks")
    [block] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    example = tmp_path / "readme_example.py"
    example.write_text("".join(one.source for one in doctest.DocTestParser().get_examples(block)))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path)),
            *("--config-file", os.devnull, str(example), str(Path(__file__).with_name("typed_use.py"))),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        cwd=tmp_path,
        timeout=280,
    )
    assert done.stdout == "Success: no issues found in 2 source files\n"
