"""Opening: a file -> its typed program, a summary, one weight; what that costs in time, memory and traffic."""

from __future__ import annotations

import functools
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.zip.range_server import serve

from benchmarks import measure, programs
from benchmarks.harness import AtMost, Bench, Limit, Measured, Settings, TimesBetter
from benchmarks.programs import LARGE, TRANSFORMER

GRAPH = "models/model.json"
WEIGHT = "weight_003"

# Runs in a fresh process. Lists every weight, then adds up one; prints how many there are, and the sum.
SUM_ONE_WEIGHT = """
import sys
import pt2kit
with pt2kit.open(sys.argv[1]) as package:
    weights = package.weights("model")
    listed = [(name, tuple(weights[name].shape), str(weights[name].dtype)) for name in weights]
    print(len(listed), repr(float(weights[sys.argv[2]].numpy().sum(dtype="float64"))))
"""


def record(file: Path, name: str) -> bytes:
    """The bytes of the record whose path under the archive's root folder is `name`."""
    with zipfile.ZipFile(file) as archive:
        return archive.read(f"{file.stem}/{name}")


def open_program(file: Path) -> Any:
    """Open a file and return its program."""
    import pt2kit

    with pt2kit.open(file) as package:
        return package.programs["model"]


def open_vs_json(settings: Settings) -> Measured:
    import msgspec

    file = programs.path(TRANSFORMER)
    data = record(file, GRAPH)
    ours, reference = measure.alternate(
        lambda: open_program(file), lambda: msgspec.json.decode(data), rounds=settings.rounds(150)
    )
    return Measured(
        ours, reference, note=f"{programs.facts(TRANSFORMER)['nodes']} nodes, {len(data) / 1e6:.2f} MB of JSON"
    )


OTHER_WRITERS: dict[str, Callable[[Any], bytes]] = {
    "lines": lambda tree: json.dumps(tree, indent=1).encode(),
    "blanks": lambda tree: b" " + json.dumps(tree).encode() + b"\n",
    "sorted keys": lambda tree: json.dumps(tree, sort_keys=True).encode(),
    "an unknown key": lambda tree: json.dumps({**tree, "unknown": 1}).encode(),
    "all of these": lambda tree: json.dumps({**tree, "unknown": 1}, sort_keys=True, indent=1).encode(),
}
"""How other tools than torch write JSON -> a program in that form."""


def other_writer(form: str, settings: Settings) -> Measured:
    from pt2kit.codec import decode
    from pt2kit.schema import ExportedProgram

    data = record(programs.path(TRANSFORMER), GRAPH)
    other = OTHER_WRITERS[form](json.loads(data))
    ours, reference = measure.alternate(
        lambda: decode(other, ExportedProgram, GRAPH),
        lambda: decode(data, ExportedProgram, GRAPH),
        rounds=settings.rounds(50),
    )
    return Measured(ours, reference, note=form)


def open_vs_torch(settings: Settings) -> Measured:
    import torch

    file = programs.path(TRANSFORMER)
    ours, reference = measure.alternate(
        lambda: open_program(file),
        lambda: torch.export.load(file),
        rounds=settings.rounds(10),
        reference_rounds=1 if settings.quick else 2,
    )
    return Measured(ours, reference)


def typed_vs_json(settings: Settings) -> Measured:
    import msgspec

    from pt2kit.schema import ExportedProgram

    data = record(programs.path(TRANSFORMER), GRAPH)
    decoder = msgspec.json.Decoder(ExportedProgram)
    ours, reference = measure.alternate(
        lambda: decoder.decode(data), lambda: msgspec.json.decode(data), rounds=settings.rounds(150)
    )
    return Measured(ours, reference, note="no check for duplicate or unknown keys")


def codec_vs_json(settings: Settings) -> Measured:
    import msgspec

    from pt2kit.codec import decode
    from pt2kit.schema import ExportedProgram

    data = record(programs.path(TRANSFORMER), GRAPH)
    ours, reference = measure.alternate(
        lambda: decode(data, ExportedProgram, GRAPH), lambda: msgspec.json.decode(data), rounds=settings.rounds(150)
    )
    return Measured(ours, reference, note="every check on the text, without the archive")


def show(name: str, kind: str, settings: Settings) -> Measured:
    """The process time ("time") or the peak memory of `pt2 show` of a file."""
    file = programs.path(name)
    spent = measure.command([sys.executable, "-m", "pt2kit", "show", str(file)], rounds=settings.rounds(8))
    if not spent.stdout.strip():
        raise RuntimeError(f"pt2 show {file.name}: expected a summary, got no output")
    bare = measure.command([sys.executable, "-c", "pass"], rounds=settings.rounds(4))
    note = f"{file.stat().st_size / 1e6:.2f} MB; bare Python takes {bare.cpu_s:.3f} s, {bare.peak_bytes / 1e6:.0f} MB"
    return Measured(spent.cpu_s, note=note) if kind == "time" else Measured(spent.peak_bytes, unit="B", note=note)


def large_memory(settings: Settings) -> Measured:
    import numpy as np

    name = settings.program(LARGE)
    file = programs.path(name)
    spent = measure.command([sys.executable, "-c", SUM_ONE_WEIGHT, str(file), WEIGHT])
    count, total = spent.stdout.split()
    expected = [
        programs.facts(name)["size"] // 64,
        float(np.frombuffer(record(file, "data/weights/weight_3"), np.float32).sum(dtype=np.float64)),
    ]
    if [int(count), float(total)] != expected:
        raise RuntimeError(
            f"{file.name}: expected {expected[0]} weights and the sum {expected[1]}, got {count}, {total}"
        )
    return Measured(
        spent.peak_bytes,
        unit="B",
        note=f"{file.stat().st_size:,} bytes, {count} weights listed, one read; {spent.cpu_s:.2f} s of CPU time",
    )


def http_share(name: str, *, weight: str | None = None) -> Measured:
    """The share of the file, in per cent, that opening it (and reading a weight) transfers."""
    import pt2kit

    file = programs.path(name)
    with serve(file.parent) as server:
        with pt2kit.open(server.url(file.name)) as package:
            if weight:
                package.weights("model")[weight].numpy().sum()
        sent, requests = server.sent, len(server.requests)
    size = file.stat().st_size
    note = f"{sent:,} of {size:,} bytes in {requests} requests"
    return Measured(100 * sent / size, unit="%", note=note)


BENCHES = (
    Bench(
        "open_vs_json",
        "open + typed program of a 2,700-node transformer : msgspec.json.decode, untyped, of its JSON",
        AtMost(2),  # docs/decisions/20261122-frozen-lists.md
        open_vs_json,
    ),
    Bench("open_typed", "msgspec typed decode alone : untyped", None, typed_vs_json),
    Bench("open_codec", "pt2kit.codec.decode alone : untyped msgspec", None, codec_vs_json),
    *(
        Bench(
            f"open_other_writer_{form.replace(' ', '_')}",
            f"pt2kit.codec.decode of a program with {form} : as torch writes it",
            AtMost(4),
            functools.partial(other_writer, form),
        )
        for form in OTHER_WRITERS
    ),
    Bench(
        "open_vs_torch",
        "open + typed program of a 2,700-node transformer : torch.export.load of the file",
        TimesBetter(150),
        open_vs_torch,
    ),
    *(
        Bench(f"{prefix}_{kind}", f"pt2 show, {what}: {subject}", bar, functools.partial(show, name, kind))
        for prefix, what, name in (
            ("show", "2 MB file of weights", "mlp_small"),
            ("show_graph", "2 MB file, half of it graph", "transformer_2mb"),
        )
        for kind, subject, bar in (
            ("time", "process time", Limit(0.25, "s")),
            ("memory", "peak memory", Limit(60e6, "B")),
        )
    ),
    Bench(
        "open_large_memory",
        "2 GB archive: open, list, sum one 64 MB weight: peak memory",
        Limit(200e6, "B"),
        large_memory,
    ),
    Bench(
        "open_http",
        "opening a 2 GB archive over HTTP: share transferred",
        Limit(1.0, "%"),
        lambda settings: http_share(settings.program(LARGE)),
    ),
    Bench(
        "open_http_small",
        "opening a 12 MB file over HTTP: share transferred",
        Limit(1.0, "%"),
        lambda settings: http_share(TRANSFORMER),
    ),
    Bench(
        "open_http_weight",
        "the 2 GB archive over HTTP, reading one 64 MB weight: share transferred",
        None,
        lambda settings: http_share(settings.program(LARGE), weight=WEIGHT),
    ),
)
