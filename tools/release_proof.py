"""The installed torch -> figures: how much of the sample files and of the zoo works with it, both ways.

    python -m tools.release_proof [--corpus FOLDER] [--quick] [--jobs N] [--json FILE]

For each sample file of torch 2.9 and later with recorded outputs: `pt2kit.load` gives them. For each program of the
zoo that torch exports: `pt2kit.save` writes it; the trees are those that `torch.export.save` writes, but for what
docs/differences.md lists; `torch.export.load` and `pt2kit.load` read it, with the outputs that the program had. Where
this torch does not write a program itself, or does not read its own file of it, there is nothing to compare with:
those are counted apart; nor is it held against pt2kit if what it loaded fails with the same words as torch's own.

`--quick` leaves out the programs that take seconds to export. Exits with 1 if a bar is missed: 98.9 % of the sample
files, and every program of the zoo.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import logging
import multiprocessing
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[1] / "tests" / "data" / "corpus"
LEAST = 0.989
OLDEST = (2, 9)
"""The first release whose sample files are counted; older ones do not depend on the installed torch so much."""
COLUMNS = ("files", "reproduced", "zoo", "saved", "same tree", "read by torch", "read by pt2kit", "torch does not")
NEEDED = ("saved", "same tree", "read by torch", "read by pt2kit")


def look_at_file(path: str) -> tuple[str, dict[str, int], str]:
    """Load one sample file and compare its outputs.

    Returns:
        Its name, column -> 1 or 0, and why not.
    """
    from tests.bridge import recorded
    from tests.bridge.read import corpus_types  # noqa: F401 (registers operators and classes)

    import pt2kit

    _silence()
    file = Path(path)
    try:
        why = recorded.difference(pt2kit.load(file), file, fresh=lambda: pt2kit.load(file))
    except Exception as error:  # noqa: BLE001 - whatever it is belongs into the report
        why = _text(error)
    return f"{file.parent.name}/{file.stem}", {"files": 1, "reproduced": int(not why)}, why


def look_at_program(name: str) -> tuple[str, dict[str, int], str]:
    """Save one program of the zoo, compare its trees, read it, and compare its outputs.

    Returns:
        Its name, column -> 1 or 0, and why not.
    """
    import torch
    from tests.bridge.test_fixed_point import TRUST
    from tests.bridge.write.trees import our_file, torch_file
    from tests.bridge.zoo import zoo

    import pt2kit

    _silence()
    program = next(program for program in zoo.programs() if program.name == name)
    try:
        live = zoo.exported(program)
    except Exception:  # noqa: BLE001 - this release has no such program
        return name, {"torch does not": 1}, ""
    calls = list(program.calls())
    want = _outputs(lambda: copy.deepcopy(live), calls)  # a call may change buffers
    theirs, _ = _try(lambda: torch_file(live))
    ours, error = _try(lambda: our_file(live))
    if theirs is None and ours is None:
        return name, {"torch does not": 1}, ""
    row = {"zoo": 1, **dict.fromkeys(NEEDED, 0)}
    if ours is None:
        return name, row, f"save: {error}"
    row["saved"] = 1
    why = "" if theirs is None else _tree_difference(name, theirs, ours)
    row["same tree"] = int(not why)
    by_torch = _difference(lambda: torch.export.load(io.BytesIO(ours)), calls, want, program.random)
    own_fault: str | None = None  # what this torch says of its own file
    if by_torch:
        own_fault = (
            "" if theirs is None else _difference(lambda: torch.export.load(io.BytesIO(theirs)), calls, want, False)
        )
        if theirs is None or own_fault:
            row["torch does not"] = 1  # it does not write the program, or does not read what it wrote
            by_torch = ""
    row["read by torch"] = int(not by_torch)
    by_us = _difference(lambda: pt2kit.load(ours, trust=TRUST.get(name, ())), calls, want, program.random)
    if by_us and by_us == own_fault:
        by_us = ""
    row["read by pt2kit"] = int(not by_us)
    return name, row, "; ".join(filter(None, (why, by_torch and f"torch: {by_torch}", by_us and f"pt2kit: {by_us}")))


def _tree_difference(name: str, theirs: bytes, ours: bytes) -> str:
    from tests.bridge.write.test_same_tree import EXPECTED
    from tests.bridge.write.trees import RECORDS, addressless, find_differences, tree

    listed = EXPECTED.get(name, {}).values()
    for record in RECORDS:
        one, other = (addressless(tree(file, record)) for file in (theirs, ours))  # save numbers addresses (T10)
        for found in find_differences(one, other, f"{record}: $"):
            if not any(re.match(pattern, found.place) for pattern in listed):
                return str(found)
    return ""


def _outputs(load: Callable[[], Any], calls: list[Any]) -> Any:
    """The outputs of all calls, each a list of leaves; or the error."""
    import torch
    from torch.utils import _pytree as pytree

    found = []
    try:
        module = load().module()
        for args, kwargs in copy.deepcopy(calls):
            with torch.no_grad():
                found.append(pytree.tree_leaves(module(*args, **kwargs)))
    except Exception as error:  # noqa: BLE001 - torch has no error family
        return error
    return found


def _difference(load: Callable[[], Any], calls: list[Any], want: Any, random: bool) -> str:
    """Return how a loaded program's results differ; one that cannot be called here must only load."""
    from tests.bridge.read.test_zoo_passes import difference

    if not calls or isinstance(want, Exception):
        return _try(load)[1]
    got = _outputs(load, calls)
    if isinstance(got, Exception):
        return _text(got)
    return next(filter(None, (difference(a, b, random) for a, b in zip(got, want, strict=True))), "")


def _try(work: Callable[[], Any]) -> tuple[Any, str]:
    try:
        return work(), ""
    except Exception as error:  # noqa: BLE001 - whatever it is belongs into the report
        return None, _text(error)


def _text(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _silence() -> None:
    import torch

    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)


def prove(corpus: Path, jobs: int, *, quick: bool) -> tuple[dict[str, int], dict[str, str]]:
    """Look at everything.

    Returns:
        column -> count, and file or program -> why it is not in all columns.
    """
    from tests.bridge import recorded
    from tests.bridge.zoo import zoo

    releases = [folder for folder in sorted(corpus.iterdir()) if _minor(folder.name) >= OLDEST]
    files = [str(path) for folder in releases for path in folder.glob("*.pt2") if recorded.has_outputs(path)]
    names = [program.name for program in zoo.programs(slow=not quick)]
    total, failures = dict.fromkeys(COLUMNS, 0), {}
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for name, row, why in [
            *pool.map(look_at_file, files, chunksize=8),
            *pool.map(look_at_program, names, chunksize=4),
        ]:
            for column, count in row.items():
                total[column] += count
            if why:
                failures[name] = why
    return total, failures


def _minor(release: str) -> tuple[int, ...]:
    """(2, 9) of "2.9.1"; () where it is no number."""
    parts = release.split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()


def missed(total: dict[str, int]) -> Iterable[str]:
    """The bars that are missed, in words."""
    if total["reproduced"] < LEAST * total["files"]:
        yield f"sample files: expected {LEAST:.1%} of {total['files']}, got {total['reproduced']}"
    for column in NEEDED:
        if total[column] < total["zoo"]:
            yield f"zoo, {column}: expected {total['zoo']}, got {total[column]}"


def main() -> int:
    """Print the figures, and each failure with its reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default=CORPUS, type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", default=2, type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    import torch

    from pt2kit.bridge.save import own_version

    total, failures = prove(options.corpus, options.jobs, quick=options.quick)
    said = {"torch": torch.__version__, "schema": own_version().number, "figures": total, "failures": failures}
    if options.json:
        options.json.write_text(json.dumps(said, indent=1) + "\n")
    print(
        f"torch {torch.__version__}, schema {own_version().number}: " + ", ".join(f"{k} {v}" for k, v in total.items())
    )
    for name, why in failures.items():
        print(f"  {name}: {why}")
    short = list(missed(total))
    for line in short:
        print(f"MISSED {line}")
    return int(bool(short))


if __name__ == "__main__":
    sys.exit(main())
