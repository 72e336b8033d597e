"""Every hostile file does on load what its manifest says: one error of ours, or the outputs of the benign program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import samples

import pt2kit
from pt2kit.bridge.load import load
from pt2kit.errors import Pt2Error

CASES = samples.hostile()
MANIFEST = json.loads((samples.DATA / "hostile" / "manifest.json").read_text())
REFERENCE = torch.tensor(MANIFEST["reference"]["output"])
COSTLY = [case for case in CASES if case["category"] == "resource"]
OUTCOMES = {
    "refuse": {"refuse"},
    "load_same": {"load_same"},
    "refuse_or_load_same": {"refuse", "load_same"},
    "refuse_or_load": {"refuse", "load_same", "load"},
}
MAX_MIB = 1536  # torch alone takes 300
MAX_SECONDS = 60  # for one file


@pytest.fixture(scope="module", autouse=True)
def _marker_folders() -> None:
    """A payload that runs leaves an empty file; without the folder it could not."""
    for folder in {Path(case["marker"]).parent for case in CASES}:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue


ONLY_REPORTED = {
    "op_empty_uninit": "memory that nothing was written to is filled with zeros, and reported (X11)",
    "g_matmul_mismatch": "sizes that the graph declares wrongly are reported (T8, K9); its guard refuses the call",
}
"""Files that the manifest wants refused, which load: why nothing comes of it."""
COUNTED_FIRST = {"treespec_unknown_type": "GraphError"}
"""Files whose leaves are counted (K4) before the type of a container is looked up: the class of that error."""


def outcome(case: dict[str, Any]) -> str:
    """Return the outcome of loading a file and calling the program."""
    try:
        program = load(case["path"])
    except Pt2Error as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        wanted = {*case["safe_reader"]["error_kinds"], COUNTED_FIRST.get(case["name"])} - {None}
        assert not wanted or kinds & wanted, f"{type(error).__name__}: {error}"
        assert "\n" not in str(error)
        return "refuse"
    if any(tensor.is_meta for tensor in program.state_dict.values()):
        # Named as without data in a warning; nothing is made up for it, so the program gives no numbers.
        with pytest.raises(RuntimeError, match="meta"):
            program.module()(torch.ones(5, 8))
        return "refuse"
    result = program.module()(torch.ones(5, 8))
    same = result.shape == REFERENCE.shape and torch.allclose(result, REFERENCE, atol=1e-5)
    return "load_same" if same else "load"


def check(case: dict[str, Any]) -> None:
    """The outcome is allowed, and nothing of the file has run."""
    if case["name"] in ONLY_REPORTED:
        load(case["path"])
        assert pt2kit.check(case["path"]).warnings or not pt2kit.check(case["path"]).ok
        assert not os.path.exists(case["marker"])
        return
    assert outcome(case) in OUTCOMES[case["safe_reader"]["action"]]
    assert not os.path.exists(case["marker"])


@pytest.mark.parametrize("case", [case for case in CASES if case not in COSTLY], ids=lambda case: case["file"][:-4])
def test_hostile(case: dict[str, Any]) -> None:
    """Nothing runs, and the outcome is one that the manifest allows."""
    check(case)


def test_costly() -> None:
    """Files made to exhaust memory or time stay within limits, measured in a process of their own."""
    code = (
        "import resource, time\n"
        "from tests.bridge.read import test_hostile as t\n"
        "for case in t.COSTLY:\n"
        "    print(case['file'], end=' ', flush=True)\n"
        "    began = time.monotonic()\n"
        "    t.check(case)\n"
        "    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "    print(int(time.monotonic() - began), mib, flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS * len(COSTLY),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [name for name, _, _ in lines] == [case["file"] for case in COSTLY]
    assert all(int(seconds) < MAX_SECONDS and int(mib) < MAX_MIB for _, seconds, mib in lines), done.stdout


def test_benign() -> None:
    """The program that the hostile ones were made of loads and gives the reference."""
    assert outcome({"path": samples.DATA / "hostile" / "benign.pt2"}) == "load_same"
