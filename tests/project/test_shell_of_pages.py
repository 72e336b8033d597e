"""Lines of `sh` blocks in the documents run as they stand there, if they need no network."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest
from tests.project.console import DOCS
from tests.project.shell import make_folder, run_lines, shell_lines

PAGES = [page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "rules" and shell_lines(page)]


@pytest.mark.skipif(sys.platform == "win32", reason="the lines are of a POSIX shell")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.stem in ("fleet", "bucket") else [])  # starts workers
        for page in PAGES
    ],
    ids=lambda page: page.relative_to(DOCS).as_posix(),
)
def test_lines_of_shells_run(page: Path, tmp_path: Path) -> None:
    """Each line ends with 0, next to the sample files and what the lines before wrote."""
    lines = shell_lines(page)
    for word, package, need in (("pt2 fleet", "distributed", "fleet"), ("pt2 sign", "model_signing", "sign")):
        if any(word in line for line in lines) and importlib.util.find_spec(package) is None:
            pytest.skip(f"pip install 'pt2kit[{need}]' brings what the page uses")
    if any(line.startswith("openssl") for line in lines) and shutil.which("openssl") is None:
        pytest.skip("the openssl command makes the keys")
    assert list(run_lines(lines, tmp_path, make_folder(tmp_path))) == []


def test_pages_with_lines_are_found(tmp_path: Path) -> None:
    """The pages with such lines are among those that are tried, and a line that fails is found."""
    assert {"sign", "program-as-text", "environment", "fleet", "index"} <= {page.stem for page in PAGES}
    [failure] = run_lines(["pt2 check nothing.pt2"], tmp_path, make_folder(tmp_path))
    assert "nothing.pt2: No such file" in failure
