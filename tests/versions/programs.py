"""Programs for the tests of this room: golden ones, those of the sample files, and small ones made on the spot."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.samples import DATA, RELEASES, corpus

from pt2kit import codec, schema
from pt2kit.package.layouts.detection import detect
from pt2kit.pickles.reader import read_payload
from pt2kit.schema.fieldtable import NAMES
from pt2kit.versions import encoding, steps
from pt2kit.versions.check import check_tree
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.program import upgrade_program
from pt2kit.zip.reader import open_archive

Step = Callable[..., Any]
GOLDEN = DATA.parent / "golden" / "programs"
VERSIONS = NAMES
BY_RELEASE = {release: version.number for version in schema.LOG for release in version.releases}


def release_version(release: str) -> str:
    """The schema version that a release of the samples ("2.6.0") writes."""
    return BY_RELEASE[release.rpartition(".")[0]]


def as_read(data: bytes, release: str) -> bytes:
    """The text of a program of the samples as its own release reads it: 2.2 and 2.3 do not read commas in names."""
    return re.sub(rb"(getattr\([^,;]*),", rb"\1%2C", data) if release_version(release) in ("2", "5.1") else data


def golden_bytes(version: str) -> bytes:
    """The golden file of a version, without the newline at its end."""
    return (GOLDEN / f"{version}.json").read_bytes().rstrip(b"\n")


def golden(version: str) -> dict[str, Any]:
    """The canonical tree of a golden file."""
    raw = codec.parse(golden_bytes(version), version, bare_literals=True)
    return encoding.from_wire(raw, version, version)


def both(step: steps.Step) -> tuple[Step, Step]:
    """The two directions of a step, as functions of a tree and a log."""
    return (
        lambda tree, log: step.apply(tree, log, upwards=True),
        lambda tree, log: step.apply(tree, log, upwards=False),
    )


def round_trip(version: str, upgrade: Step, downgrade: Step, newer: str) -> tuple[Any, ConversionLog]:
    """Upgrade a golden tree, and downgrade to the same tree; neither step changes what it is passed.

    Returns:
        The tree of the newer version, and the log of both steps.
    """
    tree, log = golden(version), ConversionLog("x")
    new = upgrade(tree, log)
    assert tree == golden(version)
    check_tree(new, newer, "x")
    before = copied(new)
    assert downgrade(new, log) == tree
    assert new == before
    return new, log


def stored_programs(*releases: str) -> Iterator[tuple[Path, str, bytes]]:
    """(file, record, bytes) of every program of the sample files of some releases."""
    for path in corpus(*releases):
        with open_archive(path) as archive:
            layout = detect(archive)
            for model in layout.models:
                record = layout.parts(model).program
                yield path, record, bytes(archive.read(record))


def upgraded(data: bytes, record: str) -> Any:
    """The upgraded program of a JSON record."""
    return upgrade_program(codec.parse(data, record, bare_literals=True), record)


def payloads_beside(archive: Any, place: Any, program: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Descriptions of a program's weights and of its constants: from torch.save files, or from inside the program."""
    weights, constants = (
        dict(read_payload(data, record)) if record and (data := archive.read(record)) else {}
        for record in (place.weights, place.constants)
    )
    specs = program.tree["graph_module"]["signature"]["input_specs"]
    objects = {spec["custom_obj"]["custom_obj_name"] for spec in specs if "custom_obj" in spec}
    for name, data in program.constants.items():
        is_pickled = isinstance(data, bytes) and name not in objects
        constants[name] = read_payload(data, name) if is_pickled else data
    return weights, constants


def copied(tree: Any) -> Any:
    """A deep copy of a tree."""
    return json.loads(json.dumps(tree))


def node(target: str, inputs: list[Any], outputs: list[Any], **more: Any) -> dict[str, Any]:
    """A node without metadata; inputs are (name, argument) pairs."""
    named = [{"name": name, "arg": argument} for name, argument in inputs]
    return {"target": target, "inputs": named, "outputs": outputs, "metadata": {}, **more}


def replace_nodes(tree: dict[str, Any], nodes: list[Any]) -> dict[str, Any]:
    """A copy of a program with other nodes in its root graph."""
    new = copied(tree)
    new["graph_module"]["graph"]["nodes"] = nodes
    return new


__all__ = [
    "BY_RELEASE",
    "GOLDEN",
    "RELEASES",
    "VERSIONS",
    "copied",
    "golden",
    "golden_bytes",
    "node",
    "release_version",
    "payloads_beside",
    "replace_nodes",
    "stored_programs",
    "upgraded",
]
