"""Fuzzing harnesses: name -> a function of bytes that may raise pt2kit's own errors only, and valid inputs.

Archives have checksums, which changed bytes seldom keep. So whatever reads an archive gets the changed bytes as one of
its records: the archive around it is made anew for each input.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.samples import CURRENT_LAYOUT, DATA, RELEASES, corpus

from pt2kit import codec, node_metadata, schema, symbols, treespec
from pt2kit.checks.run import check
from pt2kit.diffs.compute import diff
from pt2kit.digests.compute import digest
from pt2kit.package.open import open_package
from pt2kit.pickles.reader import globals_in, read_payload
from pt2kit.release.conversion import convert
from pt2kit.sanitizing.writing import sanitize
from pt2kit.tensors.view import TensorView
from pt2kit.zip.reader import open_archive
from pt2kit.zip.writer import ArchiveWriter

MAX_SEED = 24_000
"""Bytes of the largest sound input: small ones are changed and read faster."""
TARGETS = ("8.20", "8.17", "8.7", "8.2", "7.3", "5.3", "2", "1", "draft")
SEEDS = DATA / "fuzz"
"""Inputs that were found by fuzzing, an archive for each harness; tests read all of them."""


@dataclass(frozen=True)
class Harness:
    """One thing that is fuzzed.

    Args:
        run: reads bytes; raises `Pt2Error`, or nothing.
        seeds: gives sound inputs.
        form: how inputs are changed: as "json", as "lines" of text, or else as bytes.
    """

    run: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    form: str = "bytes"


def stored_inputs(name: str) -> list[bytes]:
    """Return inputs that fuzzing found for a harness: they failed once, or reach more than valid ones."""
    path = SEEDS / f"{name}.zip"
    if not path.exists():
        return []
    with zipfile.ZipFile(path) as archive:
        return [archive.read(member) for member in archive.namelist()]


def files(*releases: str) -> list[bytes]:
    """Small archives of some releases."""
    return [path.read_bytes() for path in corpus(*releases) if path.stat().st_size < MAX_SEED]


@cache
def records(ending: str, *releases: str) -> list[bytes]:
    """Small records of real files, by how their name ends; each content once."""
    found: dict[bytes, None] = {}
    for path in corpus(*releases):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.endswith(ending) and 0 < info.file_size < MAX_SEED:
                    found[archive.read(info)] = None
    return list(found)


def programs() -> list[bytes]:
    """Programs of the current version."""
    return [text for text in records(".json", *CURRENT_LAYOUT) if b'"graph_module"' in text]


def configs() -> list[bytes]:
    """Lists of weights and constants."""
    return [text for text in records("_config.json", *CURRENT_LAYOUT) if len(text) > 20]


def texts(key: str) -> list[bytes]:
    """All strings that real programs have under a key, or in a list of it."""
    found: dict[str, None] = {}

    def walk(value: Any, of: str) -> None:
        if isinstance(value, dict):
            for name, child in value.items():
                walk(child, name)
        elif isinstance(value, list):
            for child in value:
                walk(child, of)
        elif isinstance(value, str) and of == key and value:
            found[value] = None

    for text in programs():
        walk(json.loads(text), "")
    return [text.encode() for text in found]


@cache
def frame() -> dict[str, bytes]:
    """The records of one sound archive, in which others take the place of its program."""
    with open_archive(corpus("2.13.0")[0].parent / "mlp.pt2") as archive:
        return {name.partition("/")[2]: bytes(archive.read(name)) for name in archive.records}


def packed(name: str, content: bytes) -> bytes:
    """A sound archive with one record of another content."""
    out = io.BytesIO()
    with ArchiveWriter(out, root="m") as writer:
        for record, data in {**frame(), name: content}.items():
            writer.write(record, data)
    return out.getvalue()


def with_program(data: bytes) -> bytes:
    """A sound archive with another program."""
    return packed("models/model.json", data)


def read_everything(data: bytes) -> None:
    """Open a file and read all that can be read without torch."""
    with open_package(data) as opened:
        for model in opened.layout.models:
            _ = opened.programs[model]
            for payload in (*opened.weights(model).values(), *opened.constants(model).values()):
                payload.describe()
                if isinstance(payload, TensorView):
                    payload.buffer()
            opened.sample_inputs(model)
        for name in opened.extra_files:
            _ = opened.extra_files[name]


def read_records(data: bytes) -> None:
    """Open an archive and read all records."""
    with open_archive(data) as archive:
        for name in archive.records:
            archive.read(name)


def read_pickle(data: bytes) -> None:
    """A pickle stream, as the only one of a payload: its globals, and what it describes."""
    out = io.BytesIO()
    with ArchiveWriter(out, root="p") as writer:
        for name, content in {"data.pkl": data, "byteorder": b"little", "data/0": bytes(64), "version": b"3\n"}.items():
            writer.write(name, content)
    globals_in(out.getvalue(), "fuzz")
    read_payload(out.getvalue(), "fuzz")


def pickles() -> list[bytes]:
    """Pickle streams of real payloads."""
    streams: dict[bytes, None] = {}
    for payload in records(".pt", *RELEASES):
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            streams |= {archive.read(name): None for name in archive.namelist() if name.endswith("data.pkl")}
    return list(streams)


def convert_to_any(data: bytes) -> None:
    """Convert to a version that depends on the bytes."""
    convert(with_program(data), io.BytesIO(), target=TARGETS[zlib.crc32(data) % len(TARGETS)])


def load(data: bytes) -> None:
    """Load as a live program."""
    import pt2kit

    pt2kit.load(io.BytesIO(with_program(data)))


class Broken(Exception):
    """Something that must hold of every input does not."""


def round_trip(parse: Callable[[str], Any], dump: Callable[[Any], str]) -> Callable[[bytes], None]:
    """Parse a text, write it, parse that: the same. And paths that are hidden once, stay so."""

    def run(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        if node_metadata.hide_paths(hidden := node_metadata.hide_paths(text)) != hidden:
            raise Broken("hide_paths twice")
        parsed = parse(text)
        if parse(dump(parsed)) != parsed:
            raise Broken("parsed, written, parsed")

    return run


def read_stack_trace(data: bytes) -> None:
    """Frames and back are the identical text; so are references into a table, of the text and of each half of it."""
    round_trip(node_metadata.parse_stack_trace, node_metadata.dump_stack_trace)(data)
    text = data.decode("utf-8", "replace")
    if node_metadata.dump_stack_trace(node_metadata.parse_stack_trace(text)) != text:
        raise Broken("frames")
    half = len(text) // 2
    traces = [text, text[:half], text[half:], text.strip()]
    table, references = node_metadata.compact(traces)
    if node_metadata.expand_all(references, table) != traces:
        raise Broken("references")


def on_text(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    """A reader of text as a reader of bytes."""
    return lambda data: parse(data.decode("utf-8", "replace"))


HARNESSES = {
    "archive": Harness(read_records, lambda: files(*CURRENT_LAYOUT)),
    "package": Harness(read_everything, lambda: files(*RELEASES)),
    "program": Harness(lambda data: codec.decode(data, schema.ExportedProgram, "fuzz"), programs, "json"),
    "older": Harness(read_everything, lambda: records(".json", *RELEASES), "json"),
    "config": Harness(
        lambda data: read_everything(packed("data/weights/model_weights_config.json", data)), configs, "json"
    ),
    "pickle": Harness(read_pickle, pickles),
    "expression": Harness(on_text(symbols.parse), lambda: texts("expr_str")),
    "guard": Harness(on_text(symbols.parse_guard), lambda: texts("guards_code")),
    "treespec": Harness(on_text(lambda text: treespec.parse(text, "fuzz")), lambda: texts("in_spec"), "json"),
    "module_stack": Harness(
        round_trip(node_metadata.parse_module_stack, node_metadata.dump_module_stack), lambda: texts("nn_module_stack")
    ),
    "stack_trace": Harness(read_stack_trace, lambda: texts("stack_trace"), "lines"),
    "from_node": Harness(
        round_trip(node_metadata.parse_from_node, node_metadata.dump_from_node), lambda: texts("from_node"), "json"
    ),
    "check": Harness(lambda data: check(with_program(data), payloads=True), programs, "json"),
    "convert": Harness(convert_to_any, programs, "json"),
    "digest": Harness(lambda data: digest(with_program(data)), programs, "json"),
    "diff": Harness(lambda data: diff(packed("x", b""), with_program(data)), programs, "json"),
    # The sample inputs of the archive are those of another program.
    "sanitize": Harness(
        lambda data: sanitize(with_program(data), io.BytesIO(), drop=["sample-inputs"]), programs, "json"
    ),
    "load": Harness(load, programs, "json"),
}
