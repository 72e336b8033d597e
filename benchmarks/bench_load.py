"""Loading: a file -> a live program; against torch.export.load of the same file in the same run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import curves, measure, programs
from benchmarks.bench_open import TRANSFORMER, large
from benchmarks.harness import AtMost, Bench, Measured, Settings, TimesBetter

# Runs in a fresh process: loads the file with the named loader; touches one weight; prints what that took of memory.
LOAD_IN_A_PROCESS = """
import resource, sys
import torch
import pt2kit
from pt2kit.bridge import load as _
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
load = pt2kit.load if sys.argv[2] == "pt2kit" else torch.export.load
program = load(sys.argv[1])
if sys.argv[3] == "touch":
    sum(float(t.view(-1)[::1024].sum()) for t in program.state_dict.values())
print(peak() - before)
"""


def _loaders(
    file: Path, then: Callable[[Any], object], mmap: bool
) -> tuple[Callable[[], object], Callable[[], object]]:
    import torch

    import pt2kit

    return lambda: then(pt2kit.load(file, mmap=mmap)), lambda: then(torch.export.load(file))


def load_program(
    name: str, settings: Settings, then: Callable[[Any], object] = lambda program: program, *, mmap: bool = False
) -> Measured:
    """The time to load a file and do something with the program."""
    file = programs.path(name)
    ours, theirs = _loaders(file, then, mmap)
    nodes = programs.facts(name)["nodes"]
    best = measure.alternate(ours, theirs, rounds=settings.rounds(8), reference_rounds=settings.reference_rounds(nodes))
    return Measured(*best, note=f"{nodes} nodes")


def run_once(program: Any) -> object:
    """The program as a module, called once on its sample inputs."""
    args, kwargs = program.example_inputs
    return program.module()(*args, **kwargs)


def load_memory(settings: Settings) -> Measured:
    """Measure the memory of loading a large file and reading every page of its weights, against the weights."""
    file = programs.path(large(settings))
    spent = measure.command([sys.executable, "-c", LOAD_IN_A_PROCESS, str(file), "pt2kit", "touch"])
    weights = programs.facts(large(settings))["size"] * 2**20
    return Measured(float(spent.stdout), float(weights), unit="B", note="peak above the imports : bytes of the weights")


def load_curve(count: int, settings: Settings) -> Measured:
    """CPU time per node as programs grow: ours against the smallest program's."""
    import pt2kit

    return curves.curve(count, settings, lambda file: partial(pt2kit.load, file))


BENCHES = (
    Bench(
        "load",
        "load of a 2,700-node dynamic transformer : torch.export.load",
        TimesBetter(38),
        lambda settings: load_program(TRANSFORMER, settings),
    ),
    *(
        Bench(
            f"load_run{suffix}",
            f"load, module() and the first run of {what} : the same with torch",
            TimesBetter(15),
            partial(load_program, name, then=run_once),
        )
        for suffix, what, name in (
            ("", "a 2,700-node dynamic transformer", TRANSFORMER),
            ("_bert", "BERT with 12 layers", "bert_12"),
            ("_vit", "a vision transformer with 12 layers", "vit_12"),
        )
    ),
    Bench(
        "load_chain",
        "load of a 10,000-node chain : torch.export.load",
        TimesBetter(25),
        lambda settings: load_program("chain_1000" if settings.quick else "chain_10000", settings),
    ),
    Bench(
        "load_bert",
        "load of BERT with 12 layers : torch.export.load",
        TimesBetter(17),
        lambda settings: load_program("bert_12", settings),
    ),
    Bench(
        "load_vit",
        "load of a vision transformer with 12 layers : torch.export.load",
        TimesBetter(17),
        lambda settings: load_program("vit_12", settings),
    ),
    Bench(
        "load_large",
        "load of 2 GB of weights, read and checksummed : torch.export.load",
        TimesBetter(6),
        lambda settings: load_program(large(settings), settings),
    ),
    Bench(
        "load_large_mmap",
        "load of 2 GB of weights, mapped : torch.export.load",
        TimesBetter(150),
        lambda settings: load_program(large(settings), settings, mmap=True),
    ),
    Bench("load_large_memory", "load of 2 GB of weights, all pages read: peak memory", AtMost(1.2), load_memory),
    *(
        Bench(
            f"load_curve_{count}",
            f"load of a {count:,}-node chain, per node : of a {curves.SIZES[0]:,}-node chain, per node",
            AtMost(1.5),
            partial(load_curve, count),
        )
        for count in curves.SIZES[1:]
    ),
)
