"""Mutants of files -> how many of those that torch fails on, or computes something else with, `check` catches.

    python -m tools.mutation_trial [FOLDER] [--each 6] [--seed 1] [--kinds TEXT] [--json FILE]

torch is the judge: on the sample inputs of the file, a mutant fails, gives something else, or does the same. One that
gives something else, and all whose values have the types and sizes that it declares, is another sound program: nothing
tells it from one that was meant. What fails or contradicts itself matters, and `check` has to call it an error. Needs
torch.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import logging
import random
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tests import samples
from tests.bridge.read import corpus_types as corpus_types
from tests.packages import rewritten
from tools.children import in_children, in_time
from tools.mutants import RECORDS, Mutant, kinds_of, mutant
from torch.utils import _pytree as pytree

from pt2kit.checks import check
from pt2kit.package.layouts.detection import detect
from pt2kit.zip.reader import open_archive

MATTERING = ("load", "run", "contradicts", "crash")
"""Outcomes that `check` has to foresee."""
RELEASE = "2.13.0"
SECONDS = 120
"""How long torch may take for one mutant; what takes longer is not counted."""
BATCH = 100
"""Mutants that one child process tries."""


class _Declared(torch.fx.Interpreter):
    """Runs a program and raises where a value is not of the type or the sizes that the program declares."""

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        meta = n.meta.get("val")
        if isinstance(result, torch.Tensor) and isinstance(meta, torch.Tensor):
            same = result.dtype == meta.dtype and result.dim() == meta.dim()
            sizes = zip(result.shape, meta.shape, strict=False)
            if not same or any(isinstance(size, int) and got != size for got, size in sizes):
                raise TypeError(f"{n}: {result.dtype} {list(result.shape)}, declared {meta.dtype} {list(meta.shape)}")
        return result


@dataclass(frozen=True)
class Original:
    """A file, and what its program gives for its sample inputs."""

    path: Path
    records: Mapping[str, Any]
    inputs: Any
    result: Any
    is_declared: bool


def original(path: Path) -> Original | None:
    """Return a file's original; None if it can't be run, or results differ by run."""
    if not (records := trees(path)):
        return None
    try:
        program = torch.export.load(path)
        inputs = program.example_inputs
        first, again = (_call(torch.export.load(path), inputs) for _ in range(2))
    except Exception:  # noqa: BLE001  # Whatever torch raises is its verdict.
        return None
    return Original(path, records, inputs, first, _is_declared(program, inputs)) if _same(first, again) else None


def _is_declared(program: Any, inputs: Any) -> bool:
    """Return whether all values have their declared types and sizes."""
    try:
        _Declared(program.graph_module).run(*program._graph_module_flat_inputs(*copy.deepcopy(inputs)))
    except Exception:  # noqa: BLE001  # Whatever torch raises is its verdict.
        return False
    return True


def _call(program: Any, inputs: Any) -> Any:
    """The results of a program and what it makes of its inputs."""
    args, kwargs = copy.deepcopy(inputs)
    return pytree.tree_leaves((program.module()(*args, **kwargs), args, kwargs))


def _same(got: list[Any], wanted: list[Any]) -> bool:
    return len(got) == len(wanted) and all(map(_equal, got, wanted))


def _equal(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return type(one) is type(other) and (one == other or one != one)
    one, other = (t.detach() if t.layout == torch.strided else t.detach().to_dense() for t in (one, other))
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    wide = torch.complex128 if one.is_complex() else torch.float64
    return torch.allclose(one.to(wide), other.to(wide), rtol=1e-4, atol=1e-5, equal_nan=True)


def outcome(data: bytes, of: Original) -> str:
    """Return the outcome of a mutant: "load", "run" (it fails there), "contradicts", "other", "same", or "elsewhere".

    The last is what another machine might do: pinned memory needs an accelerator.
    """
    try:
        program = torch.export.load(io.BytesIO(data))
        program.module()
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001  # Whatever torch raises is its verdict.
        return "load"
    try:
        found = _call(torch.export.load(io.BytesIO(data)), of.inputs)
    except TimeoutError:
        raise
    except Exception as error:  # noqa: BLE001  # Whatever torch raises is its verdict.
        return "elsewhere" if "pinned memory" in str(error) else "run"
    if _same(found, of.result):
        return "same"
    return "other" if not of.is_declared or _is_declared(program, of.inputs) else "contradicts"


def caught(data: bytes) -> tuple[list[str], list[str]]:
    """The rules of the errors and of the warnings that `check` has for a file."""
    found: dict[str, set[str]] = defaultdict(set)
    for problem in check(data, payloads=True):
        found[problem.severity].add(problem.rule)
    return sorted(found["error"]), sorted(found["warning"])


def trees(path: Path) -> dict[str, Any]:
    """The trees of the records that mutants are made of."""
    found = {}
    with open_archive(path) as archive:
        root = detect(archive).root
        for prefix, (record, _) in RECORDS.items():
            if root + record in archive.records:
                found[prefix] = json.loads(bytes(archive.read(root + record)))
    return found


def draw(files: list[Original], each: int, seed: int, wanted: str) -> Iterator[tuple[Original, Mutant]]:
    """Mutants of every kind, from files that the seed chooses."""
    places: dict[str, list[Original]] = defaultdict(list)
    for one in files:
        for kind in kinds_of(one.records):
            places[kind].append(one)
    for kind in sorted(places):
        if wanted not in kind:
            continue
        dice = random.Random(f"{seed} {kind}")
        seen = set()
        for one in (dice.choice(places[kind]) for _ in range(each)):
            made = mutant(one.records, kind, dice)
            if made is not None and (key := (one.path, json.dumps(made.tree))) not in seen:
                seen.add(key)
                yield one, made


def try_all(mutants: list[tuple[Original, Mutant]]) -> Iterator[dict[str, Any]]:
    """Try mutants, in child processes, as torch may end the process.

    A mutant may leave something behind that another one fails on in the same process. So what gets through is judged
    once more, in a process of its own, and that counts; `in_company` says what came of it before.
    """
    rows = in_children(mutants, _try, _crashed, batch=BATCH, seconds=float("inf"))
    for one, row in zip(mutants, rows, strict=True):
        if row["outcome"] not in MATTERING or row["errors"]:
            yield row
            continue
        (alone,) = in_children([one], _try, _crashed, batch=1, seconds=float("inf"))
        yield {**alone, "in_company": row["outcome"]}


def _try(one: tuple[Original, Mutant]) -> dict[str, Any]:
    of, made = one
    data = rewritten(of.path, {made.record: json.dumps(made.tree).encode()})
    return _row(one, data, in_time(lambda: outcome(data, of), SECONDS, "late"))


def _crashed(one: tuple[Original, Mutant]) -> dict[str, Any]:
    of, made = one
    return _row(one, rewritten(of.path, {made.record: json.dumps(made.tree).encode()}), "crash")


def _row(one: tuple[Original, Mutant], data: bytes, result: str) -> dict[str, Any]:
    of, made = one
    errors, others = caught(data)
    file = f"{of.path.parent.name}/{of.path.stem}"
    return {"kind": made.kind, "file": file, "outcome": result, "errors": errors, "warnings": others}


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The shares, and the kinds of which something gets through."""
    mattering = [row for row in rows if row["outcome"] in MATTERING]
    kinds: dict[str, list[bool]] = defaultdict(list)
    for row in mattering:
        kinds[row["kind"]].append(bool(row["errors"]))
    for kind, found in sorted(kinds.items()):
        if not all(found):
            missed = [r for r in mattering if r["kind"] == kind and not r["errors"]]
            where = ", ".join(f"{r['file']} {r['outcome']} {' '.join(r['warnings'])}".strip() for r in missed)
            yield f"{kind}: {sum(found)} of {len(found)} caught; not {where}"
    for row in rows:
        if row.get("in_company", row["outcome"]) != row["outcome"]:
            yield f"{row['kind']}: {row['file']}: {row['outcome']}, but {row['in_company']} in a process with others"
    yield f"outcomes {dict(Counter(row['outcome'] for row in rows))}"
    yield f"mutants that matter: {sum(bool(row['errors']) for row in mattering)} of {len(mattering)} caught"
    yield f"kinds that matter: {sum(map(all, kinds.values()))} of {len(kinds)} caught whole"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=samples.DATA / "corpus" / RELEASE)
    parser.add_argument("--each", type=int, default=6, help="mutants of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="", help="only kinds with this text in them")
    parser.add_argument("--json", type=Path, help="where to write what was found of each mutant, a line for each")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    files = [found for path in sorted(options.folder.rglob("*.pt2")) if (found := original(path)) is not None]
    rows = []
    with options.json.open("w") if options.json else io.StringIO() as log:
        for row in try_all(list(draw(files, options.each, options.seed, options.kinds))):
            rows.append(row)
            print(json.dumps(row), file=log, flush=True)
    for line in table(rows):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
