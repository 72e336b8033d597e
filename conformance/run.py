"""Runs a reader over the conformance suite: `python -m conformance.run --reader "command"`; README.md has the protocol.

Standard library only, so that it runs wherever the reader does.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

SUITE = Path(__file__).parent
NOT_IMPLEMENTED = 3
"""The exit code of a reader that does not claim a file."""


@dataclass
class Outcome:
    """What a reader made of one case.

    Args:
        file: the case.
        verdict: "passed", "failed" or "skipped".
        details: what was wrong, one line each.
        left_out: members of the description that the reader did not print.
    """

    file: str
    verdict: str
    details: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def manifest() -> dict[str, Any]:
    """The cases of the suite."""
    found: dict[str, Any] = json.loads((SUITE / "manifest.json").read_text(encoding="utf-8"))
    return found


def run(command: Sequence[str], path: Path, timeout: float) -> tuple[int, Any]:
    """The exit code of a reader, and the JSON that it printed; None where it printed none."""
    try:
        done = subprocess.run([*command, str(path)], capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return -1, None
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, None


def judge_good(case: dict[str, Any], code: int, printed: Any) -> Outcome:
    """Compare what was printed for a good file with what it holds."""
    if code == NOT_IMPLEMENTED:
        return Outcome(case["file"], "skipped")
    if code != 0 or not isinstance(printed, dict):
        said = printed.get("error", "") if isinstance(printed, dict) else "no JSON"
        return Outcome(case["file"], "failed", [f"expected exit code 0 and a description, got {code}: {said}"])
    expected = json.loads((SUITE / case["expected"]).read_text(encoding="utf-8"))
    outcome = Outcome(case["file"], "passed")
    for path, wanted, got in differences(expected, {key: value for key, value in printed.items() if key != "problems"}):
        if got is LEFT_OUT and _may_be_left_out(path):
            outcome.left_out.append(path)
        else:
            shown = "nothing" if got is LEFT_OUT else json.dumps(got)[:200]
            outcome.details.append(f"{path}: expected {json.dumps(wanted)[:200]}, got {shown}")
    outcome.verdict = "failed" if outcome.details else "passed"
    return outcome


LEFT_OUT = object()


def _may_be_left_out(path: str) -> bool:
    """Members of the description of a model may be left out; what is inside them may not."""
    parts = path.split("/")
    return len(parts) == 1 or (parts[0] == "models" and len(parts) == 3)


def differences(expected: Any, got: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place where two descriptions differ: (path, expected, got)."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in [*expected, *(key for key in got if key not in expected)]:
            inner = f"{path}/{key}" if path else key
            if key not in got:
                yield inner, expected[key], LEFT_OUT
            elif key not in expected:
                yield inner, None, got[key]
            else:
                yield from differences(expected[key], got[key], inner)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (first, second) in enumerate(zip(expected, got, strict=True)):
            yield from differences(first, second, f"{path}/{index}")
    elif type(expected) is not type(got) or expected != got:
        yield path, expected, got


def judge_bad(case: dict[str, Any], code: int, printed: Any, strict: bool) -> Outcome:
    """Say whether a file that breaks a rule was treated as the manifest asks for."""
    if code == NOT_IMPLEMENTED:
        return Outcome(case["file"], "skipped")
    rules = ", ".join(case["rules"])
    said = printed if isinstance(printed, dict) else {}
    named = {said["rule"]} if said.get("rule") else set()
    named |= set(said.get("rules", ()))
    if case["must"] == "report":
        if code == 1 and named & set(case["rules"]):
            return Outcome(case["file"], "passed")
        found = set(printed.get("problems", ())) if code == 0 and isinstance(printed, dict) else None
        if found is not None and (found & set(case["rules"]) or not ("problems" in printed or strict)):
            return Outcome(case["file"], "passed")
        return Outcome(
            case["file"], "failed", [f"expected exit code 0 and the problem {rules}, got {code}, {sorted(found or ())}"]
        )
    if code != 1:
        return Outcome(case["file"], "failed", [f"expected a refusal ({rules}: {case['wrong']}), got exit code {code}"])
    if case["rules"] and not named & set(case["rules"]) and (strict or named):
        error = str(said.get("error", ""))[:200]
        return Outcome(case["file"], "failed", [f"expected rule {rules}, got {sorted(named) or 'none'}: {error}"])
    return Outcome(case["file"], "passed")


def outcomes(command: Sequence[str], *, only: str, strict: bool, timeout: float, jobs: int) -> list[Outcome]:
    """Run a reader over the files that a pattern names, several at a time."""
    cases = manifest()
    good, bad = ([case for case in cases[key] if fnmatch(case["file"], only)] for key in ("good", "bad"))
    with ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(lambda case: run(command, SUITE / case["file"], timeout), [*good, *bad]))
    judged = [judge_good(case, *found) for case, found in zip(good, done, strict=False)]
    return judged + [judge_bad(case, *found, strict) for case, found in zip(bad, done[len(good) :], strict=True)]


def summary(found: Sequence[Outcome]) -> list[str]:
    """What to print at the end."""
    lines = [f"{row.file}: {detail}" for row in found for detail in row.details]
    for folder in ("good", "bad"):
        counts = Counter(row.verdict for row in found if row.file.startswith(folder))
        lines.append(f"{folder}: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS))
    left_out = Counter(path.rpartition("/")[2] for row in found for path in row.left_out)
    if left_out:
        lines.append("left out: " + ", ".join(f"{name} ({count} files)" for name, count in left_out.most_common()))
    return lines


VERDICTS = ("passed", "failed", "skipped")


def main(args: Sequence[str] | None = None) -> int:
    """Run the reader that the command line names; 1 if it failed at anything."""
    parser = argparse.ArgumentParser(prog="python -m conformance.run", description=__doc__)
    parser.add_argument("--reader", required=True, help="the command; the file's path is added as its last argument")
    parser.add_argument("--strict", action="store_true", help="a refusal must name its rule, a report its problem")
    parser.add_argument("--only", default="*", help="a pattern of files, such as 'bad/A*' (all)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one file (60)")
    parser.add_argument("--jobs", type=int, default=2, help="files at a time (2)")
    options = parser.parse_args(args)
    found = outcomes(
        shlex.split(options.reader),
        only=options.only,
        strict=options.strict,
        timeout=options.timeout,
        jobs=max(1, options.jobs),
    )
    print("\n".join(summary(found)))
    return 1 if any(row.verdict == "failed" for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
