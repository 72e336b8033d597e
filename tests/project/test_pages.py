"""The documents as a whole: outputs of commands, the notebook, the reference and the site are what they would be."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.project.console import DOCS, PAGES, ROOT, as_it_is_now, sample_files

import pt2kit
from pt2kit.cli.main import COMMANDS

REFERENCE = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
SUBPACKAGES = (DOCS / "reference" / "subpackages.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_the_pages_show(page: Path) -> None:
    """Run again, every command of a page prints what stands below it; `python -m tests.project.console` writes it."""
    assert as_it_is_now(page) == page.read_text(encoding="utf-8")


def test_every_command_has_its_page() -> None:
    """The pages, their table and the command line have the same; `python -m tests.project.console` adds them."""
    pages = {path.stem for path in (DOCS / "commands").glob("*.md")} - {"index"}
    index = (DOCS / "commands" / "index.md").read_text(encoding="utf-8")
    assert pages == set(COMMANDS)
    assert re.findall(r"^\| \[`pt2 (\w+)`\]\(\1\.md\) \| (.*) \|$", index, re.MULTILINE) == list(COMMANDS.items())
    assert all(path.is_file() for path in sample_files().values())


def test_the_tutorial_s_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of Python in the tutorial runs as it stands there, next to its file."""
    [block] = re.findall(r"```python\n(.*?)```", (DOCS / "tutorial.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "model.pt2").write_bytes(sample_files()["model.pt2"].read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "tutorial.md", "exec"), {})  # noqa: S102 - the project's own page


def test_every_public_name_has_its_entry() -> None:
    """The reference has each name of `pt2kit` once, and each name of a subpackage that offers some."""
    entries = re.findall(r"\.\. auto(?:function|class):: pt2kit\.(\w+)$", REFERENCE, re.MULTILINE)
    assert sorted(entries) == sorted(set(pt2kit.__all__) - {"__version__"})
    subpackages = set(re.findall(r"\.\. automodule:: pt2kit\.(\w+)$", SUBPACKAGES, re.MULTILINE))
    offering = {path.parent.name for path in (ROOT / "src" / "pt2kit").glob("*/__init__.py") if _offers_names(path)}
    assert subpackages == offering | {"errors"}


def _offers_names(path: Path) -> bool:
    """Return whether a subpackage's `__init__` has public names (`bridge` needs torch to be imported)."""
    text = path.read_text(encoding="utf-8")
    if "front_door(" not in text and "\n__all__ = " not in text:
        return False
    return bool(importlib.import_module(f"pt2kit.{path.parent.name}").__all__)


def test_what_the_subpackage_pages_leave_out_is_on_the_first_page() -> None:
    """Names that a subpackage's entry excludes are public names of `pt2kit`, where they are described."""
    left_out = {name for line in re.findall(r":exclude-members: (.*)", SUBPACKAGES) for name in line.split(", ")}
    assert left_out <= set(pt2kit.__all__)


def test_every_page_is_in_the_site() -> None:
    """Each page of the documents stands in a table of contents."""
    listed: set[str] = set()
    for folder, name in (("", "index.md"), ("commands/", "index.md"), ("rules/", "index.md")):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / folder / name).read_text(), re.DOTALL):
            for entry in filter(re.compile(r"[\w./*-]+$").match, tree.splitlines()):
                listed |= {path.relative_to(DOCS).as_posix() for path in DOCS.glob(f"{folder}{entry}.*")}
    pages = {path.relative_to(DOCS).as_posix() for suffix in ("md", "ipynb") for path in DOCS.rglob(f"*.{suffix}")}
    assert pages - listed - {"index.md"} == {page for page in pages if page.startswith("_")}


def _needs(*modules: str) -> None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install -e '.[docs]' brings it")


def test_the_notebook_shows_what_its_cells_give() -> None:
    """Run in a fresh kernel, the notebook's cells show what is stored; `python -m tests.project.notebook` stores it."""
    _needs("nbclient", "ipykernel")
    code = [sys.executable, "-m", "tests.project.notebook", "--check"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    done = subprocess.run(code, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(900)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """`make docs` gives a site: every link, name and directive leads somewhere, and nothing is fetched for it."""
    _needs("sphinx", "myst_nb", "furo", "torch")
    build = ["-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "trees")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "no_proxy": "*", "https_proxy": "http://localhost:9"}
    done = subprocess.run(
        [sys.executable, *build, str(DOCS), str(tmp_path / "site")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=850,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "reference" / "index.html").read_text(encoding="utf-8")
    assert 'href="https://docs.pytorch.org/docs/stable/export/api_reference.html#torch.export.ExportedProgram"' in page
    assert 'href="https://numpy.org/doc/stable/reference/generated/numpy.ndarray.html#numpy.ndarray"' in page
