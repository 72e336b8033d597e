"""Use in CI: the hook, the action and the page `docs/how-to/ci.md` are consistent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.cli.run import ENVIRONMENT

ROOT = Path(__file__).parents[2]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment with a command `pt2` that says what it was called with, one argument a line, and runs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "pt2"
    command.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >> "{tmp_path}/called"\n'
        f'case "$*" in check*) exit "${{PT2_CODE:-0}}";; esac\nexec "{sys.executable}" -m pt2kit "$@"\n'
    )
    command.chmod(0o755)
    python = os.pathsep.join(filter(None, sys.path))
    return {
        **ENVIRONMENT,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": python,
        "HOME": str(tmp_path),
    }


def test_the_hook_names_a_command() -> None:
    """The hook calls `pt2 check` with the `.pt2` files of a commit, several at a call."""
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["id"], hook["entry"], hook["language"]) == ("pt2-check", "pt2 check", "python")
    assert hook["files"] == r"\.pt2$"
    assert not hook["require_serial"]


def test_the_hooks_of_the_page() -> None:
    """The page's own hook calls what the project's hook calls, for the same files; the other one has its name."""
    page = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
    local, remote = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[:2])
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    [own] = local["repos"][0]["hooks"]
    assert {key: own[key] for key in ("id", "entry", "files")} == {key: hook[key] for key in ("id", "entry", "files")}
    assert remote[0]["hooks"] == [{"id": hook["id"]}]


def test_the_action_holds_no_input_in_a_script() -> None:
    """Inputs of the action come as variables: what they hold is never part of a script."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    documented = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in documented for name in action["inputs"])


@pytest.mark.parametrize(
    ("files", "args", "code", "expected"),
    [
        ("models/**/*.pt2", "", 0, ["models/a b/x.pt2", "models/top.pt2"]),
        ("  models/a b/*.pt2  \n\nother/", "--strict", 1, ["models/a b/x.pt2", "other/y.pt2"]),
        ("models/top.pt2", "--strict --payloads", 0, ["models/top.pt2"]),
        ("models/$(touch x).pt2\nmodels/top.pt2", "", 0, ["models/$(touch x).pt2", "models/top.pt2"]),
    ],
)
def test_the_action_checks_what_matches(
    tmp_path: Path, environment: dict[str, str], files: str, args: str, code: int, expected: list[str]
) -> None:
    """Patterns, folders and files with blanks reach one call of `pt2 check --sarif`; its exit code is the action's."""
    for name in ("models/a b/x.pt2", "models/top.pt2", "other/y.pt2"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    variables = {"PT2_FILES": files, "PT2_ARGS": args, "PT2_SARIF": "out.sarif", "PT2_CODE": str(code)}
    done = subprocess.run(
        ["bash", str(ROOT / "tools" / "action_check.sh")],
        cwd=tmp_path,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (code, "")
    called = (tmp_path / "called").read_text().splitlines()
    assert called == ["check", "--sarif", *args.split(), "--", *expected, "check", *args.split(), "--", *expected]
    assert (tmp_path / "out.sarif").exists()
    assert not (tmp_path / "x").exists()


def test_the_action_needs_files(tmp_path: Path, environment: dict[str, str]) -> None:
    """A pattern that matches nothing is an error, not a success."""
    done = subprocess.run(
        ["bash", str(ROOT / "tools" / "action_check.sh")],
        cwd=tmp_path,
        env={**environment, "PT2_FILES": "none/*.pt2", "PT2_SARIF": "out.sarif"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "expected files that match 'none/*.pt2', got none" in done.stderr
