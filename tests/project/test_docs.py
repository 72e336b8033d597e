"""The documentation is true: examples run, keys exist, links lead somewhere."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import pt2

import pt2kit
from pt2kit.tensors import statistics
from pt2kit.text.payloads import entries_of, payload_row
from pt2kit.text.summary import ModelSummary, ModuleSummary, Summary
from pt2kit.zip.source import Limits

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_readme_python(monkeypatch) -> None:
    """The example in the README runs and gives what it shows."""
    monkeypatch.chdir(ROOT)
    [block] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    example = doctest.DocTestParser().get_doctest(block, {}, "README.md", None, 0)
    assert len(example.examples) >= 3
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(example)
    assert runner.summarize(verbose=False).failed == 0
    example.globs.get("package", pt2kit.open(samples.sample("2.13.0", "mlp"))).close()


def test_readme_console() -> None:
    """Commands in the README print the output shown there."""
    blocks = re.findall(r"```console\n\$ (.*?)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for line, output in blocks:
        _, *args = shlex.split(line)
        assert pt2(*args, cwd=ROOT).out == output


def test_readme_targets_exist() -> None:
    """The `make` targets that the README names are there."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE):
        assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    """A relative link names a file that is there."""
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("name", ["README.md", "docs/security.md", "docs/architecture.md", "docs/cli.md"])
def test_named_files_exist(name: str) -> None:
    """A test or folder that a page names is there."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"`((?:src|tests|docs|tools|examples|benchmarks)/[\w./-]+)`", text):
        assert (ROOT / target).exists(), target


def _documented(heading: str) -> set[str]:
    """The keys in the first column of the table after some text of `docs/cli.md`."""
    table = CLI.split(heading, 1)[1].split("\n\n")[1]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def test_json_keys_are_documented() -> None:
    """The keys of a summary are those that the page lists."""
    assert _documented("`pt2 show --json`:") == {field.name for field in fields(Summary)}
    assert _documented("Each program") == {field.name for field in fields(ModelSummary)}
    modules = next(line for line in CLI.splitlines() if line.startswith("| `modules`"))
    assert re.findall(r"`(\w+)`", modules)[1:] == [field.name for field in fields(ModuleSummary)]


def test_keys_of_weights_are_documented() -> None:
    """The keys of a row of `pt2 weights --json` are those that the page lists."""
    with pt2kit.open(samples.sample("2.13.0", "mlp")) as package:
        entry = entries_of(package, "model", constants=False)[0]
        row = payload_row(entry, statistics(entry.payload.dense()))
    text = CLI.rsplit("`--json` is a list of", 1)[1]
    assert re.findall(r"`(\w+)`", text) == [*row, *row["statistics"]]


def test_security_page_names_rules_and_limits_that_exist() -> None:
    """The limits that the page states are those of the code."""
    from pt2kit.codec import MAX_DEPTH
    from pt2kit.graph import MAX_SUBGRAPH_DEPTH
    from pt2kit.tensors import MAX_EXPANDED_BYTES

    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert f"{MAX_DEPTH} levels" in text
    assert f"{MAX_SUBGRAPH_DEPTH} subgraphs deep" in text
    assert MAX_EXPANDED_BYTES == 1 << 30
    assert "copies of at most 1 GiB" in text
    assert fields(Limits)


@pytest.mark.whole
def test_demo_runs() -> None:
    """`make demo` shows three files, reads a weight, and ends well."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("$ pt2 show ") >= 3
    assert "conv.weight: f32[4, 3, 3, 3], first values [" in done.stdout
