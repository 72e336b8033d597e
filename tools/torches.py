"""Releases of torch -> proof that the bridge works with each: an environment, its tests, its figures, and away with it.

    python tools/torches.py [RELEASE ...] [--quick] [--if-possible] [--corpus FOLDER] [--environment FOLDER] [--table]

For each release (all that are supported by default) an environment is made in a temporary folder (a wheel with its
libraries is about 5 GB), the bridge's tests and `tools/release_proof.py` run in it, and it is removed; one release may
have an `--environment` that stays, and is made or completed first. The figures go into `docs/releases.json`, and from
there into the table in `docs/compatibility.md`; `--table` writes only the table.
`--quick` is what CI runs: it leaves out what takes long and says nothing about the release, and changes no file.
`--if-possible` says loudly which release could not be installed, and goes on without it.

Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RELEASES = ("2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
FIGURES = ROOT / "docs" / "releases.json"
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- releases: tools/torches.py -->", "<!-- end of releases -->"
LEFT_OUT = {
    "the proof does the same with the whole zoo": ("write/test_same_tree.py", "read/test_zoo_passes.py"),
    "files of 2.13 are saved again: an older schema has no place for some of what they hold": ("test_fixed_point.py",),
    "expressions of today are compared with sympy functions that torch 2.9 does not have all of": ("test_symbols.py",),
    "chains for benchmarks, which are grown and measured with the pinned release": ("test_grown.py",),
    "random programs and changes, minutes long: what they find does not depend on the release": (
        "read/test_fuzz.py",
        "write/test_random_programs.py",
    ),
    "passes of torch over programs of 2.13, minutes long; the proof runs every program": ("read/test_passes.py",),
    "operators, rules and measurements of them are those of the pinned release": (
        "operators",
        "test_operator_aliasing.py",
        "test_operator_tags.py",
        "test_runtime_operators.py",
        "test_runtime_programs.py",
        "test_closed_circle.py",
    ),
}
"""Why tests of the bridge are left out on other releases -> their files."""
# Costs, which are measured with the pinned release; a program into whose inputs torch 2.9 puts fake tensors on export.
DESELECTED = (
    "read/test_hostile.py::test_costly",
    "read/test_on_demand.py::test_module_is_torchs",  # torch 2.9 does not read files of 2.13
    "run/test_modes.py::test_failures_close_regions[vmap]",  # schema 8.14 has no form for regions of vmap
    "run/test_placeholders.py::test_under_torch",  # the compiler of torch 2.9 ends with an error of its own
    "test_imports.py::test_no_heavy_modules",  # what is imported is a figure of the pinned release
    "test_round_trip_digests.py::test_fresh_exports[shared_weights]",  # torch 2.9 does not save views of other types
    "test_runtime_costs.py::test_recurrent_layer_counts_its_products",  # torch 2.9 does not export the layer
    "test_two_exports.py::test_two_exports_are_equal[mlp__strict]",  # strict exports of torch 2.9 differ in more
    "test_two_exports.py::test_two_exports_are_equal[cond__strict]",
    "run/test_same_module.py::test_zoo[example_tensor_setattr__strict]",
)
COLUMNS = (
    ("torch", lambda row: row["torch"].partition("+")[0]),
    ("schema", lambda row: row["schema"]),
    ("sample files", lambda row: str(row["figures"]["files"])),
    ("reproduced", lambda row: _share(row["figures"]["reproduced"], row["figures"]["files"])),
    ("programs of the zoo", lambda row: str(row["figures"]["zoo"])),
    ("saved", lambda row: str(row["figures"]["saved"])),
    ("same tree", lambda row: str(row["figures"]["same tree"])),
    ("read by torch", lambda row: str(row["figures"]["read by torch"])),
    ("read by pt2kit", lambda row: str(row["figures"]["read by pt2kit"])),
    ("that torch does not", lambda row: str(row["figures"]["torch does not"])),
)


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})"


def table(figures: dict[str, Any]) -> str:
    """The table of `docs/compatibility.md`, from the figures of each release."""
    lines = [f"| {' | '.join(name for name, _ in COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    lines += [
        f"| {' | '.join(cell(figures[release]) for _, cell in COLUMNS)} |" for release in RELEASES if release in figures
    ]
    return "\n".join(lines)


def page_with_table(page: str, figures: dict[str, Any]) -> str:
    """The page with the table between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(figures)}\n\n{END}{after}"


def install(release: str, folder: Path) -> bool:
    """Make or complete an environment: torch, the tests' other needs, this checkout; False where pip fails."""
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = (folder / "bin" / "python", "-m", "pip", "install")
    quiet = ("--quiet", "--disable-pip-version-check", "--no-cache-dir")
    return subprocess.run([*pip, *quiet, f"torch=={release}", "-e", f"{ROOT}[dev]"]).returncode == 0


def prove(python: Path, result: Path, options: argparse.Namespace) -> bool:
    """Run the bridge's tests and the proof side by side in an environment."""
    jobs = max(1, (os.cpu_count() or 2) // 2)
    ignored = [f"--ignore=tests/bridge/{name}" for names in LEFT_OUT.values() for name in names]
    ignored += [f"--deselect=tests/bridge/{name}" for name in DESELECTED]
    tests = ["-m", "pytest", "tests/bridge", "-q", "-n", str(jobs), "-p", "no:cacheprovider", *ignored]
    tests += ["-m", "not slow", "--cases", "4"] if options.quick else []
    proof = ["-m", "tools.release_proof", "--jobs", str(jobs), "--json", str(result)]
    proof += ["--quick"] if options.quick else []
    proof += ["--corpus", str(options.corpus)] if options.corpus else []
    # Compiled code would go next to the sources of other releases; one thread per process, of which there are several.
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    running = [subprocess.Popen([python, *command], cwd=ROOT, env=env) for command in (proof, tests)]
    codes = [process.wait() for process in running]  # all of them, whatever the first says
    return not any(codes)


def try_release(release: str, options: argparse.Namespace) -> bool:
    """Everything for one release; whether it is as it should be."""
    print(f"=== torch {release}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"torch-{release}-") as folder:
        environment = (options.environment or Path(folder) / "env").absolute()
        if not install(release, environment):
            line = f"!!! torch {release} could not be installed: NOTHING WAS TRIED WITH IT !!!"
            print("\n".join(("!" * len(line), line, "!" * len(line))), flush=True)
            return bool(options.if_possible)
        result = Path(folder) / "figures.json"
        fine = prove(environment / "bin" / "python", result, options)
        if not options.quick and result.exists():
            record(release, json.loads(result.read_text()))
    print(
        f"=== torch {release}: {'as it should be' if fine else 'FAILED'} ({time.monotonic() - began:.0f} s)", flush=True
    )
    return fine


def record(release: str, said: dict[str, Any]) -> None:
    """Put the figures of a release into the file of all, and the table into the page."""
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    figures[release] = said
    ordered = {name: figures[name] for name in RELEASES if name in figures}
    FIGURES.write_text(json.dumps(ordered, indent=1) + "\n")
    write_table()


def write_table() -> None:
    """Write the table into the page."""
    PAGE.write_text(page_with_table(PAGE.read_text(), json.loads(FIGURES.read_text())))


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the releases one after the other; 1 if one of them is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--if-possible", action="store_true")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--environment", type=Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args(arguments)
    if options.environment and len(options.releases) != 1:
        parser.error(f"--environment: expected one release, got {len(options.releases)}")
    if options.table:
        write_table()
        return 0
    fine = [try_release(release, options) for release in options.releases or RELEASES]
    return int(not all(fine))


if __name__ == "__main__":
    sys.exit(main())
