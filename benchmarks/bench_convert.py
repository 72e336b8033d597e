"""Converting: the transformer of today's schema -> older ones, and files of those -> today's; what that takes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import measure, programs
from benchmarks.bench_open import GRAPH, open_program, record
from benchmarks.harness import Bench, Measured, Settings, TimesBetter
from benchmarks.programs import TRANSFORMER

LOSSES = frozenset({"persistent"})
"""The field of the transformer that torch 2.1 and 2.2 lack: it keeps two buffers out of the state dict."""


def older_vs_torch(target: str, settings: Settings) -> Measured:
    """Measure reading the program of an older file, compared with torch for a current file."""
    import torch

    import pt2kit

    file = programs.path(TRANSFORMER)
    with TemporaryDirectory() as folder:
        older = Path(folder, file.name)
        pt2kit.convert(file, older, target=target, allow=LOSSES)
        ours, reference = measure.alternate(
            lambda: open_program(older),
            lambda: torch.export.load(file),
            rounds=settings.rounds(10),
            reference_rounds=1 if settings.quick else 2,
        )
    return Measured(ours, reference, note=f"{programs.facts(TRANSFORMER)['nodes']} nodes, written for {target}")


def lower_vs_torch(target: str, settings: Settings) -> Measured:
    """A tree of today's schema as the JSON of an older one, compared with the time that torch needs to load it."""
    import torch

    from pt2kit.codec import parse
    from pt2kit.versions.conversion_log import HARMLESS
    from pt2kit.versions.program import downgrade_program

    file = programs.path(TRANSFORMER)
    tree = parse(record(file, GRAPH), GRAPH)
    ours, reference = measure.alternate(
        lambda: downgrade_program(tree, target, GRAPH, allow=HARMLESS | LOSSES).encode(GRAPH),
        lambda: torch.export.load(file),
        rounds=settings.rounds(10),
        reference_rounds=1 if settings.quick else 2,
    )
    return Measured(ours, reference, note=f"{programs.facts(TRANSFORMER)['nodes']} nodes")


BENCHES = (
    Bench(
        "raise_first",
        "open + typed program of a 2,700-node transformer in schema 1 : torch.export.load of today's file",
        TimesBetter(11),
        lambda settings: older_vs_torch("torch==2.1", settings),
    ),
    Bench(
        "raise_2_6",
        "the same in schema 8.2, of torch 2.6 : torch.export.load of today's file",
        TimesBetter(11),
        lambda settings: older_vs_torch("torch==2.6", settings),
    ),
    Bench(
        "lower_first",
        "its tree as the JSON of schema 1 : torch.export.load",
        TimesBetter(8),
        lambda settings: lower_vs_torch("1", settings),
    ),
    Bench(
        "lower_2_6",
        "its tree as the JSON of schema 8.2 : torch.export.load",
        TimesBetter(15),
        lambda settings: lower_vs_torch("8.2", settings),
    ),
)
