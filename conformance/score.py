"""Score a reader that runs programs: `python conformance/score.py -- COMMAND`; README.md has the protocol.

    python conformance/score.py -- pt2 run {program} --input {inputs} --output {outputs}
    python conformance/score.py --page scores.md -- my-runtime {program} {inputs} {outputs}

The command runs one program of `conformance/runs`: it reads the tensors `input_0`, `input_1`, … from a safetensors
file, and writes `output_0`, … to another. Standard library only, so that it runs wherever the reader does.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUITE = Path(__file__).parent / "runs"
NOT_IMPLEMENTED = 3
"""The exit code of a reader that does not claim a program."""
FORMATS = {
    "F64": "d",
    "F32": "f",
    "F16": "e",
    "BF16": "H",
    "I64": "q",
    "I32": "i",
    "I16": "h",
    "I8": "b",
    "U8": "B",
    "BOOL": "?",
}


@dataclass(frozen=True)
class Verdict:
    """The result of one program.

    Args:
        name: of the program; its category is before the dot.
        word: "passed", "failed" or "skipped".
        detail: what differs.
    """

    name: str
    word: str
    detail: str = ""


def read_tensors(path: Path) -> dict[str, tuple[str, list[int], list[Any]]]:
    """Return the tensors of a safetensors file: name -> element type, sizes, numbers.

    Raises:
        ValueError: not a file of this form.
    """
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, row in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in row["data_offsets"])
        if row["dtype"] not in FORMATS:
            raise ValueError(f"{name}: expected one of {', '.join(FORMATS)}, got {row['dtype']}")
        numbers = [one for (one,) in struct.iter_unpack(f"<{FORMATS[row['dtype']]}", data[begin:end])]
        if row["dtype"] == "BF16":
            numbers = [struct.unpack("<f", struct.pack("<I", one << 16))[0] for one in numbers]
        found[name] = row["dtype"], row["shape"], numbers
    return found


def difference(expected: Path, got: Path, tolerances: dict[str, list[float]], scale: float) -> str:
    """Return the first difference between the outputs of two files; "" if there is none."""
    wanted, found = read_tensors(expected), read_tensors(got)
    for name, (dtype, shape, numbers) in wanted.items():
        if name not in found:
            return f"{name}: missing"
        if found[name][:2] != (dtype, shape):
            return f"{name}: expected {dtype} {shape}, got {found[name][0]} {found[name][1]}"
        relative, absolute = tolerances.get(dtype, (0, 0))
        for place, (a, b) in enumerate(zip(numbers, found[name][2], strict=True)):
            if a != b and not (a != a and b != b):
                bound = scale * (absolute + relative * abs(a)) if math.isfinite(a) else 0
                if not abs(a - b) <= bound:
                    return f"{name}[{place}]: expected {a!r}, got {b!r}"
    return f"{next(iter(found.keys() - wanted.keys()))}: not expected" if found.keys() - wanted.keys() else ""


def run(command: Sequence[str], name: str, manifest: dict[str, Any], timeout: float) -> Verdict:
    """Run a command on one program, and compare its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = Path(folder) / "outputs.safetensors"
        places = {
            "{program}": str(SUITE / f"{name}.pt2"),
            "{inputs}": str(SUITE / f"{name}.inputs.safetensors"),
            "{outputs}": str(outputs),
        }
        words = [places.get(word, word) for word in command]
        if words == list(command):
            words += places.values()
        try:
            done = subprocess.run(words, capture_output=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return Verdict(name, "failed", f"no answer in {timeout:g} seconds")
        except OSError as error:
            return Verdict(name, "failed", f"a command that cannot be started: {error}")
        if done.returncode == NOT_IMPLEMENTED:
            return Verdict(name, "skipped", "not claimed")
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            return Verdict(name, "failed", f"exit code {done.returncode}{f': {said[-1]}' if said else ''}")
        try:
            expected = SUITE / f"{name}.outputs.safetensors"
            why = difference(expected, outputs, manifest["tolerances"], manifest["scale"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
            why = f"outputs that cannot be read: {error}"
        return Verdict(name, "failed" if why else "passed", why)


def page(command: Sequence[str], verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Return the lines of a page of scores, in Markdown."""
    yield f"# Scores of `{' '.join(command)}`"
    yield ""
    passed = sum(one.word == "passed" for one in verdicts)
    yield f"{passed} of {len(verdicts)} programs passed."
    yield ""
    yield "| category | passed | failed | skipped |"
    yield "|---|---|---|---|"
    for category in dict.fromkeys(one.name.partition(".")[0] for one in verdicts):
        words = [one.word for one in verdicts if one.name.partition(".")[0] == category]
        yield f"| {category} | {' | '.join(str(words.count(word)) for word in ('passed', 'failed', 'skipped'))} |"
    if shown := [one for one in verdicts if one.word != "passed"]:
        yield ""
        yield from (f"- `{one.name}` {one.word}: {one.detail}" for one in shown)


def main() -> int:
    """Score a command; returns 1 if a program failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="write the scores to this Markdown file, too")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each program")
    parser.add_argument("--only", default="", help="run programs whose names contain this text")
    parser.add_argument("command", nargs="+", help="the reader; {program}, {inputs} and {outputs} stand for paths")
    options = parser.parse_args()
    manifest = json.loads((SUITE / "manifest.json").read_text(encoding="utf-8"))
    names = [row["name"] for row in manifest["programs"] if options.only in row["name"]]
    verdicts = [run(options.command, name, manifest, options.timeout) for name in names]
    lines = list(page(options.command, verdicts))
    print("\n".join(lines))
    if options.page is not None:
        options.page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(any(one.word == "failed" for one in verdicts))


if __name__ == "__main__":
    sys.exit(main())
