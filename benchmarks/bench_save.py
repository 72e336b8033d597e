"""Saving: a live program -> a file; against torch.export.save of the same program in the same run."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import measure, programs
from benchmarks.bench_open import GRAPH, record
from benchmarks.curves import curve_benches
from benchmarks.harness import AtMost, Bench, Limit, Measured, Settings, TimesBetter
from benchmarks.programs import CHAIN, LARGE, TRANSFORMER, WHAT

# Runs in a fresh process: loads a file mapped, saves it again, prints what saving added to the peak memory beyond the
# weights, which are all read from the mapping on the way.
SAVE_IN_A_PROCESS = """
import resource, sys
import pt2kit
from pt2kit.bridge import load, save
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
program = pt2kit.load(sys.argv[1])
before = peak()
pt2kit.save(program, sys.argv[2])
weights = sum(t.untyped_storage().nbytes() for t in program.state_dict.values())
print(max(0, peak() - before - weights))
"""


def save_program(name: str, settings: Settings) -> Measured:
    """The time to save a program."""
    import torch

    import pt2kit

    name = settings.program(name)
    program = torch.export.load(programs.path(name))
    with tempfile.TemporaryDirectory() as folder:
        best = measure.alternate(
            lambda: pt2kit.save(program, Path(folder, "ours.pt2")),
            lambda: torch.export.save(program, Path(folder, "theirs.pt2")),
            rounds=settings.rounds(8),
            reference_rounds=1 if settings.quick else 2,
        )
    return Measured(*best, note=f"{programs.facts(name).get('nodes', '?')} nodes")


def _prepared(file: Path) -> Callable[[], object]:
    import pt2kit

    program = pt2kit.load(file)
    return lambda: pt2kit.save(program, io.BytesIO())


def save_large(settings: Settings) -> Measured:
    """The time to save a large program against copying its file, both to a file that does not exist.

    What was written before is removed, and the disk has caught up: neither side then waits for it, nor for memory that
    the other has just used up. (Where `save` replaces a file it does wait for the disk, and a copy does not.)
    """
    import pt2kit

    file = programs.path(settings.program(LARGE))
    program = pt2kit.load(file)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        written = Path(folder, "written.pt2")

        def prepare() -> None:
            written.unlink(missing_ok=True)
            os.sync()

        best = measure.alternate(
            lambda: pt2kit.save(program, written),
            lambda: shutil.copyfile(file, written),
            rounds=settings.rounds(6),
            prepare=prepare,
        )
    return Measured(*best, note=f"{file.stat().st_size / 1e9:.2f} GB")


def save_memory(settings: Settings) -> Measured:
    """The memory that saving a large program takes above its weights."""
    file = programs.path(settings.program(LARGE))
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        argv = [sys.executable, "-c", SAVE_IN_A_PROCESS, str(file), str(Path(folder, "out.pt2"))]
        spent = measure.command(argv)
    return Measured(float(spent.stdout), unit="B", note="peak while saving, less what was there and the weights")


def record_size(settings: Settings) -> Measured:
    """The bytes that the graph's record takes in the file, against torch's."""
    import torch

    import pt2kit

    file = programs.path(TRANSFORMER)
    program = torch.export.load(file)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{TRANSFORMER}.pt2")
        pt2kit.save(program, path)
        with zipfile.ZipFile(path) as archive:
            (entry,) = (info for info in archive.infolist() if info.filename.endswith(GRAPH))
    return Measured(entry.compress_size, len(record(file, GRAPH)), unit="B", note="deflated JSON")


BENCHES = (
    *(
        Bench(f"save{suffix}", f"save of {WHAT[name]} : torch.export.save", bar, partial(save_program, name))
        for suffix, name, bar in (
            ("", TRANSFORMER, TimesBetter(22)),
            ("_chain", CHAIN, TimesBetter(8)),
            ("_bert", "bert_12", TimesBetter(10)),
            ("_vit", "vit_12", TimesBetter(10)),
        )
    ),
    Bench("save_large", "save of 2 GB of weights : copying the file", AtMost(1.2), save_large),
    Bench("save_large_memory", "save of 2 GB of weights: memory above the weights", Limit(300e6, "B"), save_memory),
    Bench("save_record", "bytes of the graph's record : torch's", TimesBetter(20), record_size),
    *curve_benches("save", "save", _prepared),
)
