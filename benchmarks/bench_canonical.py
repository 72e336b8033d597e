"""Normal forms and digests: a program -> the same program in normal form, a file -> its digests; against torch."""

from __future__ import annotations

import json
import os
from typing import Any

from benchmarks import measure, pictures, programs
from benchmarks.bench_open import open_program
from benchmarks.harness import AtMost, Bench, Limit, Measured, Settings, TimesBetter
from benchmarks.programs import TRANSFORMER
from pt2kit import canonicalize, codec, schema

LAYERS = 2_000
QUICK_LAYERS = 200
"""Layers of the large program, of 24 nodes each."""


def torch_program(program: schema.ExportedProgram) -> Any:
    """Return a program as an object of torch's schema classes."""
    from torch._export.serde import schema as theirs
    from torch._export.serde.serialize import _dict_to_dataclass

    return _dict_to_dataclass(theirs.ExportedProgram, json.loads(codec.encode(program)))


def canonical_vs_torch(settings: Settings) -> Measured:
    from torch._export.serde.serialize import canonicalize as by_torch

    mine = pictures.layers(QUICK_LAYERS if settings.quick else LAYERS)
    theirs = torch_program(mine)
    ours, reference = measure.alternate(
        lambda: canonicalize(mine), lambda: by_torch(theirs), rounds=settings.rounds(3), reference_rounds=1
    )
    small = pictures.layers(QUICK_LAYERS)
    one, other = (
        [node.target for node in program.graph_module.graph.nodes]
        for program in (canonicalize(small), by_torch(torch_program(small)))
    )
    count, order = len(mine.graph_module.graph.nodes), "the same order" if one == other else "ANOTHER ORDER"
    return Measured(ours, reference, note=f"{count:,} nodes, {order} as torch's")


def canonical_growth(settings: Settings) -> Measured:
    """Time per layer of a program of ten times as many layers."""
    few = (QUICK_LAYERS if settings.quick else LAYERS) // 10
    small, large = pictures.layers(few), pictures.layers(10 * few)
    ours, reference = measure.alternate(
        lambda: canonicalize(large), lambda: canonicalize(small), rounds=settings.rounds(3)
    )
    return Measured(ours / (10 * few), reference / few, note=f"per layer, {10 * few:,} layers against {few:,}")


def digest_program(settings: Settings) -> Measured:
    from pt2kit.digests import digest_program as digest

    program = open_program(programs.path(TRANSFORMER))
    ours = measure.best(lambda: digest(program), rounds=settings.rounds(10))
    return Measured(ours, note=f"{programs.facts(TRANSFORMER)['nodes']} nodes, without weights")


def digest_weights(settings: Settings) -> Measured:
    """Digests of all weights, against the plain SHA-256 of the file's bytes."""
    import hashlib
    import mmap

    from pt2kit import digest

    file = programs.path("weights_256mb")

    def plain() -> None:
        with open(file, "rb") as held, mmap.mmap(held.fileno(), 0, access=mmap.ACCESS_READ) as data:
            hashlib.sha256(data).digest()

    ours, reference = measure.alternate(lambda: digest(file), plain, rounds=settings.rounds(3))
    return Measured(ours, reference, note=f"{os.path.getsize(file) / 1e6:.0f} MB of weights")


BENCHES = (
    Bench("canonical_vs_torch", "canonicalize, against torch's", TimesBetter(3), canonical_vs_torch),
    Bench("canonical_growth", "canonicalize, ten times the nodes", AtMost(2), canonical_growth),
    Bench("digest_program", "digest of a program of 2,680 nodes", Limit(1, "s"), digest_program),
    Bench("digest_weights", "digest, against sha256 of the file", AtMost(1.5), digest_weights),
)
