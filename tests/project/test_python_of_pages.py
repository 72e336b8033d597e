"""Python in the documents runs where it can; what needs a network or a bucket at least names what is there.

The tutorial, the README, `docs/diff.md` and `docs/extensions.md` have tests of their own, too.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import json
import re
import shlex
import shutil
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest
from tests.project.console import sample_files
from tests.samples import sample
from tests.signing.keys import OPENSSL, openssl

import pt2kit
from pt2kit.cli.frame import subcommand

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MLP = sample("2.13.0", "mlp")


def blocks(page: Path) -> list[str]:
    """The blocks of Python of a page; what a session shows stands for what was typed."""
    found = re.findall(r"^( *)```python\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    texts = [textwrap.dedent(text) for _, text in found]
    sessions = doctest.DocTestParser()
    return ["".join(one.source for one in sessions.get_examples(text)) if ">>> " in text else text for text in texts]


WITH_PYTHON = [page for page in PAGES if blocks(page)]
SESSIONS = [
    page
    for page in [*sorted((ROOT / "docs" / "how-to").glob("*.md")), ROOT / "docs" / "operators.md"]
    if "\n>>> " in page.read_text(encoding="utf-8")
]


def block(name: str, word: str) -> str:
    """The one block of a page that has a word."""
    [text] = [text for text in blocks(ROOT / "docs" / name) if word in text]
    return text


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_names_are_there(page: Path) -> None:
    """Every block is Python; what it imports of pt2kit, asks of it and passes to it exists."""
    for text in blocks(page):
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.ImportFrom(module=str(module), names=names) if _is_ours(module):
                    for name in names:
                        assert _offers(module, name.name), f"{page.name}: {module}.{name.name}"
                case ast.Import(names=names):
                    for name in filter(lambda one: _is_ours(one.name), names):
                        importlib.import_module(name.name)
                case ast.Call(func=function, keywords=keywords) if target := _target(function):
                    _check_keywords(target, [one.arg for one in keywords if one.arg], page.name)


def _is_ours(module: str) -> bool:
    """Return whether a module of pt2kit can be imported here."""
    return module.partition(".")[0] == "pt2kit" and (
        importlib.util.find_spec(module) is not None and not module.startswith(("pt2kit.integrations", "pt2kit.bridge"))
    )


def _offers(module: str, name: str) -> bool:
    """Return whether a module has an attribute or submodule of that name."""
    return hasattr(importlib.import_module(module), name) or importlib.util.find_spec(f"{module}.{name}") is not None


def _target(function: ast.expr) -> Any:
    """Return the object `pt2kit.x.y` of a call; None for others."""
    if not re.fullmatch(r"pt2kit(\.\w+)+", path := ast.unparse(function)):
        return None
    found: Any = pt2kit
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


def _check_keywords(target: Any, keywords: list[str], page: str) -> None:
    parameters = inspect.signature(target).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    assert set(keywords) <= set(parameters), f"{page}: {target.__name__}({', '.join(keywords)})"


def test_signing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's Python signs and verifies; of a file whose weight was changed it prints the weight."""
    pytest.importorskip("model_signing", reason="model-signing signs: pip install 'pt2kit[sign]'")
    if OPENSSL is None:
        pytest.skip("the openssl command makes the keys")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "how-to" / "sign.md").read_text(encoding="utf-8")
    for line in re.findall(r"^openssl (.*)$", page, re.MULTILINE):
        openssl(tmp_path, *shlex.split(line, comments=True))
    (tmp_path / "model.pt2").write_bytes(MLP.read_bytes())
    text = block("how-to/sign.md", "pt2kit.sign(")
    exec(compile(text, "sign.md", "exec"), {"pt2kit": pt2kit})  # noqa: S102 - the project's own page
    assert capsys.readouterr().out == ""
    sign, verify = text.split("found = ")
    exec(compile(sign, "sign.md", "exec"), names := {"pt2kit": pt2kit})  # noqa: S102 - as above
    with pt2kit.edit("model.pt2") as editor:
        name = next(iter(editor.weights))
        editor.set_weight(name, pt2kit.open(MLP).weights()[name].numpy() + 1)
    editor.write("model.pt2")
    exec(compile(f"found = {verify}", "sign.md", "exec"), names)  # noqa: S102 - as above
    assert f"weight {name!r}" in capsys.readouterr().out


def test_the_test_of_an_export_runs(tmp_path: Path) -> None:
    """The page's test for pytest passes with the program that was exported, and fails with another."""
    torch = pytest.importorskip("torch", reason="the page's test exports with torch")
    example = (torch.ones(2, 3),)
    names: dict[str, Any] = {"torch": torch, "model": torch.nn.Linear(3, 4), "example": example}
    text = block("integrations.md", "assert_same_program").replace('"expected.pt2"', "expected")
    exec(compile(text, "integrations.md", "exec"), names)  # noqa: S102 - the project's own page
    for model in (names["model"], torch.nn.Linear(3, 4)):
        names["expected"] = tmp_path / "expected.pt2"
        torch.export.save(torch.export.export(model, example), names["expected"])
        if model is names["model"]:
            names["test_export_is_stable"](tmp_path)
        else:
            with pytest.raises(AssertionError, match="weight"):
                names["test_export_is_stable"](tmp_path)


def test_load_module_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's two lines load a module and call it."""
    torch = pytest.importorskip("torch", reason="load_module takes torch")
    base: Any = torch.nn.Module

    class Masked(base):
        def forward(self, x: Any, mask: Any) -> Any:
            return x * mask

    monkeypatch.chdir(tmp_path)
    x, m = torch.rand(3), torch.rand(3)
    pt2kit.save(torch.export.export(Masked(), (x,), {"mask": m}), "model.pt2")
    names: dict[str, Any] = {"pt2kit": pt2kit, "x": x, "m": m}
    text = block("load-module.md", "called as the model was exported")
    exec(compile(text, "load-module.md", "exec"), names)  # noqa: S102 - the project's own page
    assert torch.equal(names["result"], x * m)


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.stem)
def test_sessions_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's Python sessions print what the page shows, in a folder with the sample files."""
    if re.search(r"import .*\btorch\b", "".join(blocks(page))):
        pytest.importorskip("torch", reason="the page uses torch")
    for name, path in sample_files().items():
        shutil.copy(path, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted
    assert result.failed == 0


def test_walk_and_edit_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks of the guide print what the page shows."""
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(ROOT / "docs" / "walk-and-edit.md"), module_relative=False, encoding="utf-8")
    assert result.attempted > 20
    assert result.failed == 0


def test_the_command_of_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's new command lists nodes as text and as JSON."""
    module = types.ModuleType("nodes")
    monkeypatch.setitem(sys.modules, "nodes", module)  # where the dataclass looks for its annotations
    exec(block("how-to/command.md", "class Options"), module.__dict__)  # noqa: S102  # A page of ours.
    command = subcommand("nodes", module.Options, module.run)
    assert command.main([str(MLP), "--sorted"], standalone_mode=False) == 0
    assert capsys.readouterr().out == "linear\nlinear_1\nrelu\n"
    command.main([str(MLP), "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out) == ["linear", "relu", "linear_1"]


def test_pages_with_python_are_found() -> None:
    """The pages that have Python in them are among those that are looked at."""
    names = {page.stem for page in WITH_PYTHON}
    assert {"README", "sign", "integrations", "load-module", "edit", "tutorial", "fleet"} <= names


def test_the_parser_of_blocks(tmp_path: Path) -> None:
    """Indented blocks and sessions are Python, too."""
    page = tmp_path / "page.md"
    page.write_text("- a\n\n  ```python\n  x = 1\n  ```\n\n```python\n>>> 1 + 1\n2\n\n```\n")
    assert blocks(page) == ["x = 1\n", "1 + 1\n"]
