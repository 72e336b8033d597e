"""The runner: what it makes of readers that are right, wrong, incomplete or broken."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import run

ROOT = Path(__file__).parents[2]
GOOD = next(case for case in run.manifest()["good"] if case["file"] == "good/mlp_2.15.pt2")
BAD = {"file": "bad/x.pt2", "rules": ["P9", "P7"], "wrong": "something", "must": "refuse"}
REPORT = {**BAD, "must": "report"}


def expected() -> dict[str, Any]:
    """The description of the good file."""
    found: dict[str, Any] = json.loads((run.SUITE / GOOD["expected"]).read_text(encoding="utf-8"))
    return found


def test_a_right_description_passes() -> None:
    """The description itself passes, with problems next to it or not."""
    assert run.judge_good(GOOD, 0, {**expected(), "problems": ["X1"]}).verdict == "passed"


def test_members_may_be_left_out() -> None:
    """Whole members of a model may be missing, and are listed."""
    printed = expected()
    del printed["models"]["model"]["digests"], printed["layout"]
    outcome = run.judge_good(GOOD, 0, printed)
    assert (outcome.verdict, outcome.left_out) == ("passed", ["layout", "models/model/digests"])


@pytest.mark.parametrize(
    ("path", "value", "detail"),
    [
        (("graph", "nodes"), 4, "models/model/graph/nodes: expected 3, got 4"),
        (("graph", "nodes"), True, "models/model/graph/nodes: expected 3, got true"),
        (("modules",), ["", "x", "1", "2"], 'models/model/modules/1: expected "0", got "x"'),
        (("extra",), 1, "models/model/extra: expected null, got 1"),
    ],
)
def test_wrong_members_fail(path: tuple[str, ...], value: Any, detail: str) -> None:
    """A member that is not what the file holds is named, with both values."""
    printed = expected()
    holder = printed["models"]["model"]
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    assert run.judge_good(GOOD, 0, printed).details == [detail]


def test_parts_of_members_may_not_be_left_out() -> None:
    """A member that is printed is printed whole."""
    printed = expected()
    del printed["models"]["model"]["graph"]["nodes"]
    assert run.judge_good(GOOD, 0, printed).details == ["models/model/graph/nodes: expected 3, got nothing"]


def test_models_may_not_be_left_out() -> None:
    """A program that the reader did not see is a failure."""
    assert run.judge_good(GOOD, 0, {**expected(), "models": {}}).verdict == "failed"


@pytest.mark.parametrize(
    ("code", "printed", "verdict"),
    [
        (3, None, "skipped"),
        (1, {"error": "no"}, "failed"),
        (-11, None, "failed"),
        (0, None, "failed"),
        (0, [], "failed"),
    ],
)
def test_exit_codes_for_good_files(code: int, printed: Any, verdict: str) -> None:
    """Only 3 is an excuse."""
    assert run.judge_good(GOOD, code, printed).verdict == verdict


@pytest.mark.parametrize(
    ("case", "code", "printed", "strict", "verdict"),
    [
        (BAD, 1, {"rule": "P9"}, True, "passed"),
        (BAD, 1, {"rule": "J1", "rules": ["J1", "P7"]}, True, "passed"),
        (BAD, 1, {"rule": "J1"}, False, "failed"),
        (BAD, 1, None, False, "passed"),
        (BAD, 1, None, True, "failed"),
        (BAD, 0, {}, False, "failed"),
        (BAD, 3, None, True, "skipped"),
        (BAD, -9, None, False, "failed"),
        (REPORT, 0, {"problems": ["P9"]}, True, "passed"),
        (REPORT, 0, {"problems": []}, False, "failed"),
        (REPORT, 0, {}, False, "passed"),
        (REPORT, 0, {}, True, "failed"),
        (REPORT, 1, {"rule": "P7"}, True, "passed"),
        (REPORT, 1, {"rule": "A2"}, False, "failed"),
    ],
)
def test_bad_files(case: dict[str, Any], code: int, printed: Any, strict: bool, verdict: str) -> None:
    """A refusal names one of the rules, or none; a report has the rule among its problems."""
    assert run.judge_bad(case, code, printed, strict).verdict == verdict


def test_a_reader_as_a_command() -> None:
    """The runner starts a command for each file, and its exit code says whether anything failed."""
    reader = shlex.join([sys.executable, str(ROOT / "tests" / "conformance" / "independent_reader.py")])
    command = [sys.executable, "-m", "conformance.run", "--reader", reader, "--strict", "--only"]
    done = subprocess.run([*command, "*/*[Am][12l][_p]*"], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout
    broken = f"{shlex.quote(sys.executable)} -c 'raise SystemExit(5)'"
    command[4] = broken
    done = subprocess.run([*command, "*/mlp_2.15*"], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 1
    assert "good/mlp_2.15.pt2: expected exit code 0 and a description, got 5" in done.stdout
