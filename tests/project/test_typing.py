"""Users' code passes a strict type checker: the example of the README, and what else people write."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import samples
from tests.project.typed_use import look

ROOT = Path(__file__).parents[2]
TYPED_USE = Path(__file__).with_name("typed_use.py")


def test_typed_use_runs(tmp_path: Path) -> None:
    """The type-checked code also runs."""
    assert look(str(samples.sample("2.13.0", "dynamic_batch")), str(tmp_path / "x.pt2")) > 0


def readme_example(folder: Path) -> Path:
    """The example of the README as a file of its own."""
    [block] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    example = folder / "readme_example.py"
    example.write_text("".join(one.source for one in doctest.DocTestParser().get_examples(block)))
    return example


@pytest.mark.whole
def test_strict_type_checker(tmp_path: Path) -> None:
    """`mypy --strict` has nothing to say about the README's example and `typed_use.py`."""
    pytest.importorskip("mypy", reason="mypy is what checks")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path)),
            *("--config-file", os.devnull, str(readme_example(tmp_path)), str(TYPED_USE)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        cwd=tmp_path,
        timeout=280,
    )
    assert done.stdout == "Success: no issues found in 2 source files\n"


def test_pyright(tmp_path: Path) -> None:
    """Pyright in its strict mode has nothing to say about them either."""
    pytest.importorskip("pyright", reason="pyright is what checks: pip install pyright, which brings or takes Node")
    settings = {"extraPaths": [str(ROOT / "src")], "typeCheckingMode": "strict", "pythonVersion": "3.10"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    (tmp_path / "typed_use.py").write_bytes(TYPED_USE.read_bytes())
    readme_example(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=280,
    )
    assert done.stdout.endswith("0 errors, 0 warnings, 0 informations\n"), done.stdout + done.stderr
