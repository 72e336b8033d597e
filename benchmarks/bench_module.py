"""From file to first result: `pt2kit.load_module` and one call; against torch.export.load, module() and one call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import measure, programs
from benchmarks.curves import curve_benches
from benchmarks.harness import AtMost, Bench, Limit, Measured, Settings, TimesBetter
from benchmarks.programs import CHAIN, LARGE, TRANSFORMER, WHAT

# Runs in a fresh process: loads the file, calls the program once; prints what that took of memory, and how long.
FIRST_RESULT = """
import resource, sys, time
import torch
from benchmarks import inputs
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
kind, file, call = sys.argv[1], sys.argv[2], inputs.read(sys.argv[2])
if kind == "memory":
    from pt2kit.bridge.run import load_module as _
before, started = peak(), time.perf_counter()
if kind != "torch alone":
    import pt2kit
    with torch.no_grad():
        pt2kit.load_module(file)(*call[0], **call[1])
print(peak() - before if kind == "memory" else time.perf_counter() - started)
"""


def first_result(name: str, settings: Settings) -> Measured:
    """The time from a file to the first result."""
    import torch

    import pt2kit
    from benchmarks import inputs

    name = settings.program(name)
    file, nodes = programs.path(name), programs.facts(name)["nodes"]
    args, kwargs = inputs.read(file)
    with torch.no_grad():
        best = measure.alternate(
            lambda: pt2kit.load_module(file)(*args, **kwargs),
            lambda: torch.export.load(file).module()(*args, **kwargs),
            rounds=settings.rounds(8),
            reference_rounds=settings.reference_rounds(nodes),
        )
    return Measured(*best, note=f"{nodes} nodes")


def load_large(settings: Settings) -> Measured:
    """The time to load a large file to run it, without the call, which reads every weight."""
    import torch

    import pt2kit

    file = programs.path(settings.program(LARGE))
    best = measure.alternate(
        lambda: pt2kit.load_module(file),
        lambda: torch.export.load(file).module(),
        rounds=settings.rounds(8),
        reference_rounds=1 if settings.quick else 2,
    )
    return Measured(*best, note=f"{file.stat().st_size / 1e9:.2f} GB, mapped by ours and read by torch")


def further_calls(name: str, settings: Settings) -> Measured:
    """One call of a module that was called before."""
    import torch

    import pt2kit
    from benchmarks import inputs

    file = programs.path(name)
    args, kwargs = inputs.read(file)
    ours, theirs = pt2kit.load_module(file), pt2kit.load(file).module()
    with torch.no_grad():
        best = measure.alternate(
            lambda: ours(*args, **kwargs), lambda: theirs(*args, **kwargs), rounds=settings.rounds(40)
        )
    return Measured(*best)


def memory(settings: Settings) -> Measured:
    """Measure the memory of the first result of a program with large weights, beyond the weights."""
    name = settings.program(LARGE)
    spent = measure.command([sys.executable, "-c", FIRST_RESULT, "memory", str(programs.path(name))])
    weights = programs.facts(name)["size"] * 2**20
    return Measured(max(float(spent.stdout) - weights, 0.0), unit="B", note="peak above the imports and the weights")


def cold(settings: Settings) -> Measured:
    """Seconds of a fresh process from the end of torch's import to the first result of the transformer."""
    command = [sys.executable, "-c", FIRST_RESULT, "cold", str(programs.path(TRANSFORMER))]
    best = min(float(measure.command(command).stdout) for _ in range(settings.rounds(5)))
    return Measured(best, unit="s", note="our own imports, decoding, building and the call")


def _prepared(file: Path) -> Callable[[], object]:
    import pt2kit

    return partial(pt2kit.load_module, file)


PROGRAMS = (("transformer", TRANSFORMER, 48), ("bert", "bert_12", 20), ("vit", "vit_12", 20), ("chain", CHAIN, 45))
BENCHES = (
    *(
        Bench(
            f"module_{short}",
            f"first result of {WHAT[name]} : torch.export.load, module() and a call",
            TimesBetter(bar),
            partial(first_result, name),
        )
        for short, name, bar in PROGRAMS
    ),
    Bench(
        "module_large",
        "first result with 2 GB of weights : the same with torch",
        TimesBetter(100),
        partial(first_result, LARGE),
    ),
    Bench(
        "module_large_load",
        "load_module of 2 GB of weights : torch.export.load and module()",
        TimesBetter(150),
        load_large,
    ),
    *(
        Bench(
            f"module_call_{short}",
            f"a further call of {WHAT[name]} : of the module of torch",
            AtMost(1.0),
            partial(further_calls, name),
        )
        for short, name, _ in PROGRAMS[:3]
    ),
    Bench("module_memory", "first result with 2 GB of weights: memory beyond these", Limit(50e6, "B"), memory),
    Bench("module_cold", "from torch's import to the first result of the transformer", Limit(0.1, "s"), cold),
    *curve_benches("module", "load_module", _prepared),
)
