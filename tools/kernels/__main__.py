"""Runs the operators, or puts what was found into the table. See the package's own text."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GUARD = Path(__file__).with_name("guard.c")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.kernels", description=__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="file of evidence, one JSON object a line; continued if it is there"
    )
    parser.add_argument("--minutes", type=float, default=25, help="when to stop, samples included")
    parser.add_argument("--only", default="", help="pattern: run the operators that it fits, again")
    parser.add_argument("--nice", type=int, default=10, help="how much others go first")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes run operators")
    parser.add_argument(
        "--validated", action="store_true", help="call operators as load_module does: what dies then is not known yet"
    )
    parser.add_argument("--table", action="store_true", help="put the evidence into the table instead of running")
    given = parser.parse_args()
    if given.table:
        from tools.kernels import table

        return table.update(given.out)
    if os.environ.get("LD_PRELOAD") is None:
        return _with_guard()
    return _run(given)


def _with_guard() -> int:
    """Run this again with guarded memory."""
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/guard.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, str(GUARD), "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": library, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(GUARD.parents[2]), environment.get("PYTHONPATH")))
        )
        command = [sys.executable, "-m", "tools.kernels", *sys.argv[1:], "--out", str(_out().resolve())]
        return subprocess.run(command, env=environment, cwd=folder, check=False).returncode


def _out() -> Path:
    return Path(sys.argv[sys.argv.index("--out") + 1])


def _run(given: argparse.Namespace) -> int:
    import torch
    import torch._higher_order_ops
    from tools.kernels import runner, samples

    runner.Mode.is_validated = given.validated
    os.nice(given.nice)
    began = time.monotonic()
    torch.set_num_threads(1)
    calls = samples.record()
    names = [name for name in runner.operator_names() if re.search(given.only, name)]
    done = set() if given.only else _done(given.out)
    left = [name for name in names if name not in done]
    print(f"{len(calls)} operators with recorded calls; {len(left)} of {len(names)} to run", flush=True)
    if not given.out.exists():
        given.out.write_text(json.dumps({"release": torch.__version__.partition("+")[0]}) + "\n")
    children = []
    for job in range(given.jobs):
        if not (child := os.fork()):
            with given.out.open("a") as out:
                runner.run(left[job :: given.jobs], calls, out, given.minutes * 60 - (time.monotonic() - began))
            runner.exit_hard(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    left = [name for name in left if name not in _done(given.out)]
    print(f"{len(left)} left")
    runner.exit_hard(1 if left else 0)


def _done(path: Path) -> set[str]:
    if not path.exists():
        return set()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["op"] for line in lines if "cases" in line}


if __name__ == "__main__":
    sys.exit(main())
