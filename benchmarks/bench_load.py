"""Loading: a file -> a live program; against torch.export.load of the same file in the same run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import measure, programs
from benchmarks.curves import curve_benches
from benchmarks.harness import AtMost, Bench, Measured, Settings, TimesBetter
from benchmarks.programs import CHAIN, LARGE, TRANSFORMER, WHAT

# Runs in a fresh process: loads the file; touches every page of its weights; prints what that took of memory.
LOAD_IN_A_PROCESS = """
import resource, sys
import torch
import pt2kit
from pt2kit.bridge import load as _
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
program = pt2kit.load(sys.argv[1])
sum(float(t.view(-1)[::1024].sum()) for t in program.state_dict.values())
print(peak() - before)
"""


def load_program(
    name: str, settings: Settings, then: Callable[[Any], object] = lambda program: program, *, mmap: bool = False
) -> Measured:
    """The time to load a file and do something with the program."""
    import torch

    import pt2kit

    name = settings.program(name)
    file, nodes = programs.path(name), programs.facts(name)["nodes"]
    best = measure.alternate(
        lambda: then(pt2kit.load(file, mmap=mmap)),
        lambda: then(torch.export.load(file)),
        rounds=settings.rounds(8),
        reference_rounds=settings.reference_rounds(nodes),
    )
    return Measured(*best, note=f"{nodes} nodes")


def run_once(program: Any) -> object:
    """The program as a module, called once on its sample inputs."""
    args, kwargs = program.example_inputs
    return program.module()(*args, **kwargs)


def load_memory(settings: Settings) -> Measured:
    """Measure the memory of loading a large file and reading every page of its weights, against the weights."""
    name = settings.program(LARGE)
    spent = measure.command([sys.executable, "-c", LOAD_IN_A_PROCESS, str(programs.path(name))])
    weights = programs.facts(name)["size"] * 2**20
    return Measured(float(spent.stdout), float(weights), unit="B", note="peak above the imports : bytes of the weights")


def _prepared_load(file: Path) -> Callable[[], object]:
    import pt2kit

    return partial(pt2kit.load, file)


BENCHES = (
    *(
        Bench(f"load{suffix}", f"load of {WHAT[name]} : torch.export.load", bar, partial(load_program, name))
        for suffix, name, bar in (
            ("", TRANSFORMER, TimesBetter(38)),
            ("_chain", CHAIN, TimesBetter(25)),
            ("_bert", "bert_12", TimesBetter(17)),
            ("_vit", "vit_12", TimesBetter(17)),
        )
    ),
    *(
        Bench(
            f"load_run{suffix}",
            f"load, module() and the first run of {WHAT[name]} : the same with torch",
            TimesBetter(15),
            partial(load_program, name, then=run_once),
        )
        for suffix, name in (("", TRANSFORMER), ("_bert", "bert_12"), ("_vit", "vit_12"))
    ),
    Bench(
        "load_large",
        "load of 2 GB of weights, read and checksummed : torch.export.load",
        TimesBetter(6),
        partial(load_program, LARGE),
    ),
    Bench(
        "load_large_mmap",
        "load of 2 GB of weights, mapped : torch.export.load",
        TimesBetter(150),
        partial(load_program, LARGE, mmap=True),
    ),
    Bench("load_large_memory", "load of 2 GB of weights, all pages read: peak memory", AtMost(1.2), load_memory),
    *curve_benches("load", "load", _prepared_load),
)
