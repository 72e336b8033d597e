"""Executable conformance: pt2kit's own command passes, and the scores tell right outputs from wrong ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import score

ROOT = Path(__file__).parents[2]
MANIFEST = json.loads((score.SUITE / "manifest.json").read_text())


def outcome(name: str, command: list[str], **changes: Any) -> score.Verdict:
    """The verdict on one program."""
    return score.run(command, name, MANIFEST | changes, 60)


@pytest.mark.parametrize("name", [row["name"] for row in MANIFEST["programs"]])
def test_sessions_pass(name: str, tmp_path: Path) -> None:
    """Outputs of a session are those of torch."""
    from pt2kit.runtime.session import Session, output_leaves, read_arrays, write_outputs

    inputs = read_arrays(str(score.SUITE / f"{name}.inputs.safetensors"))
    session = Session(score.SUITE / f"{name}.pt2")
    outputs = session.run_leaves([inputs[f"input_{n}"] for n in range(len(inputs))])
    write_outputs(output_leaves(outputs), str(tmp_path / "outputs.safetensors"))
    expected = score.SUITE / f"{name}.outputs.safetensors"
    assert not score.difference(expected, tmp_path / "outputs.safetensors", MANIFEST["tolerances"], MANIFEST["scale"])


def test_the_command_is_a_reader(tmp_path: Path) -> None:
    """`pt2 run` is run as a reader; the page has a row for each category."""
    command = [sys.executable, "-m", "pt2kit", "run", "{program}", "--input", "{inputs}", "--output", "{outputs}"]
    page = tmp_path / "page.md"
    script = [sys.executable, str(ROOT / "conformance" / "score.py"), "--only", "products.", "--page", str(page), "--"]
    done = subprocess.run([*script, *command], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout
    assert "| products | 2 | 0 | 0 |" in page.read_text()
    assert "2 of 2 programs passed" in done.stdout


def test_wrong_answers_fail() -> None:
    """Other numbers, other sizes, missing files, exit codes, and programs that a reader does not claim."""
    name = "reductions.softmax"
    expected = score.SUITE / f"{name}.outputs.safetensors"
    copied = "import sys, shutil; shutil.copy(sys.argv[2].replace('inputs', 'outputs'), sys.argv[3])"
    python = [sys.executable, "-c"]
    assert outcome(name, [*python, copied]).word == "passed"
    wrong = f"import sys; data = bytearray(open({str(expected)!r}, 'rb').read()); data[-1] ^= 64"
    assert "expected" in outcome(name, [*python, f"{wrong}; open(sys.argv[3], 'wb').write(data)"]).detail
    other = score.SUITE / "products.linear.outputs.safetensors"
    assert (
        "expected F32"
        in outcome(name, [*python, f"import sys, shutil; shutil.copy({str(other)!r}, sys.argv[3])"]).detail
    )
    assert outcome(name, [*python, "pass"]).detail.startswith("outputs that cannot be read")
    assert outcome(name, [*python, "raise SystemExit(3)"]).word == "skipped"
    assert outcome(name, [*python, "raise SystemExit(2)"]).detail == "exit code 2"
    truncated = "import sys; open(sys.argv[3], 'wb').write(b'1234')"
    assert outcome(name, [*python, truncated]).word == "failed"
    for header in (b"[1]", b'{"output_0": 1}', b'{"output_0": {"dtype": [], "data_offsets": [0, 4]}}'):
        data = len(header).to_bytes(8, "little") + header
        said = outcome(name, [*python, f"import sys; open(sys.argv[3], 'wb').write({data!r})"]).detail
        assert said.startswith("outputs that cannot be read"), header
    assert outcome(name, ["no such command"]).detail.startswith("a command that cannot be started")


def test_the_suite_is_small() -> None:
    """Programs, inputs and outputs together stay below two megabytes."""
    assert sum(path.stat().st_size for path in score.SUITE.iterdir()) < 2_000_000
    categories = {row["name"].partition(".")[0] for row in MANIFEST["programs"]}
    assert len(categories) >= 8
