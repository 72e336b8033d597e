"""`pt2 diff`: what it prints, how it ends, and that git can use it."""

from __future__ import annotations

import doctest
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.run import ENVIRONMENT, in_terminal, pt2
from tests.diffs.cases import hostile_text, pairs
from tests.samples import sample

MLP, CONVNET = sample("2.13.0", "mlp"), sample("2.13.0", "convnet")


def written(folder: Path, name: str) -> tuple[Path, Path]:
    """The two files of a case, on disk."""
    paths = folder / "old.pt2", folder / "new.pt2"
    for path, data in zip(paths, pairs()[name], strict=True):
        path.write_bytes(data)
    return paths


def test_exit_codes() -> None:
    """0 nothing differs, 1 something does, 2 a file cannot be read."""
    same = pt2("diff", MLP, MLP)
    assert (same.code, same.out, same.err) == (0, f"{MLP} -> {MLP}: no differences\n", "")
    other = pt2("diff", MLP, CONVNET)
    assert (other.code, other.err) == (1, "")
    assert other.out.startswith(f"{MLP} -> {CONVNET}: ")
    gone = pt2("diff", MLP, "nope.pt2")
    assert (gone.code, gone.out) == (2, "")
    assert gone.err.startswith("error: ")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([MLP], "expected two files, got 1"),
        ([MLP, MLP, MLP], "expected two files, got 3"),
        (["-", "-"], "expected standard input once, got it twice"),
        (["--textconv", MLP, MLP], "expected one file with --textconv and --against, got 2"),
        (["--textconv", MLP, "--json"], "expected --textconv without --json and --html, got both"),
    ],
)
def test_wrong_usage(args: list[str | Path], text: str) -> None:
    """A command line that makes no sense ends with 2 and says why."""
    found = pt2("diff", *args)
    assert (found.code, found.out) == (2, "")
    assert text in found.err


def test_what_to_look_at_can_be_chosen(tmp_path: Path) -> None:
    """Numbers of tensors, metadata, names."""
    old, new = written(tmp_path, "weights")
    assert pt2("diff", old, new).code == 1
    left = pt2("diff", old, new, "--no-tensors")
    assert (left.code, left.out) == (0, f"{old} -> {new}: no differences (numbers of tensors not compared)\n")
    older = sample("2.9.1", "dynamic_batch"), sample("2.13.0", "dynamic_batch")
    assert "node metadata" in pt2("diff", *older).out or pt2("diff", *older).code == 0
    assert "metadata" not in pt2("diff", *older, "--no-metadata").out


def test_json_is_for_scripts() -> None:
    """The same as `Diff.to_tree`, with files as they were named."""
    found = pt2("diff", MLP, CONVNET, "--json")
    tree = json.loads(found.out)
    assert (found.code, tree["old"], tree["new"], tree["same"]) == (1, str(MLP), str(CONVNET), False)
    assert sum(row["count"] for row in tree["summary"]) == len(tree["changes"])
    assert json.loads(pt2("diff", MLP, MLP, "--json").out)["changes"] == []


def test_a_page_is_written(tmp_path: Path) -> None:
    """Besides one line on standard output; where it cannot be written, the command ends with 2."""
    page = tmp_path / "diff.html"
    found = pt2("diff", MLP, CONVNET, "--html", page)
    assert (found.code, found.out.count("\n")) == (1, 1)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert pt2("diff", MLP, CONVNET, "--html", tmp_path / "no" / "diff.html").code == 2


def test_standard_input_can_be_one_of_the_files() -> None:
    """`cat new.pt2 | pt2 diff old.pt2 -`."""
    assert pt2("diff", MLP, "-", stdin=MLP.read_bytes()).code == 0
    assert pt2("diff", "-", MLP, stdin=CONVNET.read_bytes()).code == 1


def test_colours_and_width() -> None:
    """A terminal gets colours; lines are broken where it ends, and nodes that only stand around are cut there."""
    before, after = sample("2.9.1", "preserve_module_sig"), sample("2.13.0", "preserve_module_sig")
    found = in_terminal("diff", before, after, "--no-tensors", env={"COLUMNS": "60"})
    assert "\x1b[33m  ~ %layer_norm" in found.out
    assert "\x1b[36m  @ mid.n" in found.out
    plain = in_terminal("diff", before, after, "--no-tensors", env={"COLUMNS": "60", "NO_COLOR": "1"}).out
    whole = pt2("diff", before, after, "--no-tensors").out
    assert all(len(line) <= 60 or " " not in line.strip() for line in plain.splitlines())
    assert max(map(len, whole.splitlines())) > 60
    uncut = "\n".join(line for line in plain.splitlines() if not line.endswith("…"))
    assert set(uncut.split()) <= set(whole.split())
    around = [line for line in found.out.splitlines() if "aten.mul.Tensor" in line]
    assert around
    assert all(line.endswith("…") for line in around)
    whole = in_terminal("diff", before, after, "--no-tensors", "--full", env={"COLUMNS": "60"}).out
    assert not any(line.endswith("…") for line in whole.splitlines() if "aten.mul.Tensor" in line)


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """Whatever names hold: no control character but our own colours."""
    old, new = written(tmp_path, "hostile")
    found = pt2("diff", old, new, "--full")
    assert found.code == 1
    assert all(line.isprintable() for line in found.out.splitlines())
    assert hostile_text()[:4] not in in_terminal("diff", old, new, "--full").out
    assert all(line.isprintable() for line in pt2("diff", "--textconv", new).out.splitlines())


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_shows_readable_differences(tmp_path: Path) -> None:
    """With the two lines that the documentation gives, `git diff` and `git log -p` compare programs, not bytes."""
    command = f"{sys.executable} -m pt2kit diff --textconv"
    environment = {**ENVIRONMENT, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}
    environment |= {
        f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=tmp_path, capture_output=True, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    git("init", "--quiet")
    git("config", "diff.pt2.textconv", command)
    (tmp_path / ".gitattributes").write_text("*.pt2 diff=pt2\n")
    old, new = sample("2.9.1", "preserve_module_sig"), sample("2.13.0", "preserve_module_sig")
    shutil.copy(old, tmp_path / "model.pt2")
    git("add", ".")
    git("commit", "--quiet", "--message", "one")
    shutil.copy(new, tmp_path / "model.pt2")
    shown = git("diff")
    assert "Binary files" not in shown
    changed = [line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert any(line.startswith("-    %layer_norm") and "eps" not in line for line in changed)
    assert any(line.startswith("+    %layer_norm") and "eps=1e-05" in line for line in changed)
    assert "aten.mul.Tensor" not in "".join(changed)
    (tmp_path / "model.pt2").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert "+cannot be read: " in git("diff")
    git("commit", "--quiet", "--all", "--message", "two")
    assert "-    %layer_norm" in git("log", "--patch", "-1")


def test_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page gives the lines that git needs in the test above, and its example in Python is right."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "diff.md").read_text(encoding="utf-8")
    assert "git config diff.pt2.textconv 'pt2 diff --textconv'" in page
    assert "*.pt2 diff=pt2" in page
    monkeypatch.chdir(root)
    runner = doctest.DocTestRunner(verbose=False)
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        runner.run(doctest.DocTestParser().get_doctest(block, {}, "docs/diff.md", None, 0))
    assert runner.summarize(verbose=False).failed == 0
