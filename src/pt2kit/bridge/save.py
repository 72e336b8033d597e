"""Live programs -> a `.pt2` file, or the same in memory: `save` and `serialize`, the counterparts of torch's own."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from torch.export import ExportedProgram

from pt2kit import codec, schema
from pt2kit.bridge.torch_export_names import SCHEMA_VERSION
from pt2kit.bridge.torch_names import disable_current_modes
from pt2kit.bridge.write.payloads import Payloads
from pt2kit.bridge.write.program import write_program
from pt2kit.bridge.write.sample_inputs import write_sample_inputs
from pt2kit.errors import ArchiveError, Pt2Error, at
from pt2kit.package import record_names as names
from pt2kit.package.plan import PlannedRecord, header, of_bytes, write_records
from pt2kit.release.conversion import convert
from pt2kit.release.destinations import find_destination
from pt2kit.versions.program import downgrade_program
from pt2kit.zip.writer import ArchiveWriter

DEFAULT_PICKLE_PROTOCOL = 2


@dataclass(frozen=True, slots=True)
class Artifact:
    """A program in memory, ready to be written or read back.

    Args:
        exported_program: everything but the tensors.
        weights: what each name of the state dict is; `records` hold the bytes.
        constants: likewise, for constants.
        records: tensors and objects; they view the live program's storages and copy nothing before they are read.
        sample_inputs: a torch.save file; empty where the program has none.
        version: the schema version in which the program is written: the one of the torch that is installed.
    """

    exported_program: schema.ExportedProgram
    weights: schema.PayloadConfig
    constants: schema.PayloadConfig
    records: tuple[PlannedRecord, ...]
    sample_inputs: memoryview
    version: str = schema.CURRENT.number

    def write(self, f: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write it as a `.pt2` file with one program, "model"."""
        with ArchiveWriter(f) as writer:
            write_records(writer, (*_model_records("model", self), *header(sys.byteorder)))

    def to_bytes(self) -> bytes:
        """The `.pt2` file as bytes."""
        buffer = io.BytesIO()
        self.write(buffer)
        return buffer.getvalue()


def serialize(
    ep: ExportedProgram,
    opset_version: Mapping[str, int] | None = None,
    pickle_protocol: int = DEFAULT_PICKLE_PROTOCOL,
) -> Artifact:
    """Turn a live program into data, in memory.

    Args:
        ep: the program; it is not changed.
        opset_version: operator namespace -> version, in addition to that of aten.
        pickle_protocol: for the parts of the format that are pickles.

    Returns:
        An artifact that shares the program's tensors.

    Raises:
        TypeError: `ep` is no ExportedProgram.
        Pt2Error: what the format cannot hold, with its node, operator and argument.
    """
    _check_program(ep, "ep")
    return _serialize(ep, opset_version, Payloads(pickle_protocol), pickle_protocol, own_version())


def save(
    ep: ExportedProgram | Mapping[str, ExportedProgram],
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: Mapping[str, str | bytes] | None = None,
    opset_version: Mapping[str, int] | None = None,
    pickle_protocol: int = DEFAULT_PICKLE_PROTOCOL,
    target: str | None = None,
    fsync: bool = False,
) -> None:
    """Save a program, or several in one archive, as a `.pt2` file that torch.export.load and pt2kit.load read.

    The file is as the installed release of torch writes it, with the version of the schema that it has.

    Args:
        ep: the program, which gets the name "model", or name -> program.
        f: a path, replaced whole or not at all, or a binary file object, which is rewound afterwards if it can be.
        extra_files: name -> content of files that go along; text is stored as UTF-8.
        opset_version: operator namespace -> version, in addition to that of aten.
        pickle_protocol: for the parts that are pickles: sample inputs, tensor subclasses, opaque objects.
        target: another release of torch, whose file it is to be ("2.9", "torch==2.9"): what is saved goes through a
            temporary file (beside `f` where that is a path) and `pt2kit.convert`.
        fsync: wait for the disk also where no file is replaced; replacing one always does.

    Raises:
        TypeError: an argument of another type.
        VersionError: no such target.
        ConversionError: what the version of the schema, or the target, cannot express, with all places.
        Pt2Error: what the format cannot hold, with its node, operator and argument; the target was not touched.
        OSError: the target cannot be written.

    Cost: linear in the number of nodes; the tensors' bytes are written from where they are.

    Source: `save` in torch/export/__init__.py and `package_pt2` in torch/export/pt2_archive/_package.py, 2.13.
    """
    own = _own()
    if target is None and find_destination(own.number).kind != "archive":
        target = own.releases[0]  # up to torch 2.8 the records are others
    if target is not None:
        _save_for(target, ep, f, extra_files, opset_version, pickle_protocol, fsync)
    else:
        _save(ep, f, extra_files, opset_version, pickle_protocol, own.number, fsync)
    if isinstance(f, (io.IOBase, IO)) and f.seekable():
        f.seek(0)


def _save_for(
    target: str,
    ep: ExportedProgram | Mapping[str, ExportedProgram],
    f: str | os.PathLike[str] | IO[bytes],
    extra_files: Mapping[str, str | bytes] | None,
    opset_version: Mapping[str, int] | None,
    pickle_protocol: int,
    fsync: bool,
) -> None:
    """Save what the current version of the schema says, and convert that."""
    release = f"torch=={target.removeprefix('torch==')}"
    find_destination(release)  # before anything is written
    folder = os.path.dirname(os.path.abspath(f)) if isinstance(f, (str, os.PathLike)) else None
    with tempfile.TemporaryFile(dir=folder) as whole:
        _save(ep, whole, extra_files, opset_version, pickle_protocol, schema.CURRENT.number)
        whole.seek(0)
        convert(whole, f, target=release, opset_version=opset_version, fsync=fsync)


def _save(
    ep: ExportedProgram | Mapping[str, ExportedProgram],
    f: str | os.PathLike[str] | IO[bytes],
    extra_files: Mapping[str, str | bytes] | None,
    opset_version: Mapping[str, int] | None,
    pickle_protocol: int,
    version: str,
    fsync: bool = False,
) -> None:
    programs = ep if isinstance(ep, Mapping) else {"model": ep}
    for name, program in programs.items():
        _check_program(program, f"ep[{name!r}]" if isinstance(ep, Mapping) else "ep")
    extra = {name: _content(name, content) for name, content in (extra_files or {}).items()}
    _check_names(programs, extra)
    payloads = Payloads(pickle_protocol)
    records: list[PlannedRecord] = []
    for name, program in programs.items():
        try:
            artifact = _serialize(program, opset_version, payloads, pickle_protocol, version)
            records += _model_records(name, artifact)
        except Pt2Error as error:
            if len(programs) == 1:
                raise
            raise at(f"program {name!r}", error) from error
    records += (of_bytes(names.extra(name), content) for name, content in extra.items())
    with ArchiveWriter(f, fsync=fsync) as writer:
        write_records(writer, (*records, *header(sys.byteorder)))


def own_version() -> str:
    """The version of the schema that the installed torch writes, or the newest before it that is known here."""
    return _own().number


def _own() -> schema.Version:
    return max((row for row in schema.LOG if row.pair <= SCHEMA_VERSION and row.releases), key=lambda row: row.pair)


def _serialize(ep: Any, opsets: Mapping[str, int] | None, payloads: Payloads, protocol: int, version: str) -> Artifact:
    """Everything that can fail; `payloads` may hold other programs' records already."""
    known = len(payloads.records)
    with disable_current_modes():  # the caller may be in a fake tensor mode
        written = write_program(ep, opsets)
        weights = payloads.weights(ep.state_dict, written.values)
        constants = payloads.constants(ep.constants, written.objects, written.values)
        inputs = write_sample_inputs(ep.example_inputs, written.values, protocol)
    return Artifact(written.program, weights, constants, tuple(payloads.records[known:]), inputs, version)


def _model_records(name: str, artifact: Artifact) -> tuple[PlannedRecord, ...]:
    """The records of one program, in the order in which torch writes them."""
    return (
        *artifact.records,
        of_bytes(names.weights_config(name), codec.encode(artifact.weights), deflate=True),
        of_bytes(names.constants_config(name), codec.encode(artifact.constants), deflate=True),
        of_bytes(names.model_json(name), _program_text(artifact.exported_program, artifact.version), deflate=True),
        of_bytes(names.sample_inputs(name), artifact.sample_inputs),
    )


def _program_text(program: schema.ExportedProgram, version: str) -> bytes:
    """The JSON of a program, as a version of the schema has it.

    Raises:
        ConversionError: the version cannot express it; all places are listed (M3).
    """
    if version == schema.CURRENT.number:
        return codec.encode(program)
    lowered = downgrade_program(codec.to_tree(program), version, "the program")
    return lowered.encode("the program")


def _check_program(value: Any, name: str) -> None:
    if not isinstance(value, ExportedProgram):
        raise TypeError(f"{name}: expected an instance of ExportedProgram, got {type(value).__name__}")


def _check_names(models: Iterable[str], extra: Iterable[str]) -> None:
    """Try the names that the caller chose on an archive that goes nowhere.

    Raises:
        ArchiveError, LimitError: a name that no record can have, or that is taken.
    """
    with ArchiveWriter(io.BytesIO()) as writer:
        for model in models:
            if names.model_name(names.model_json(model)) != model:
                raise ArchiveError(f"ep: expected names of programs that a record can have, got {model!r}")
            for record in (names.weights_config, names.constants_config, names.model_json, names.sample_inputs):
                writer.write(record(model), b"")
        for name in extra:
            writer.write(names.extra(name), b"")


def _content(name: Any, content: Any) -> bytes:
    if not isinstance(name, str) or not isinstance(content, (str, bytes)):
        raise TypeError(
            f"extra_files: expected names and contents as text or bytes, got {type(name).__name__}: "
            f"{type(content).__name__}"
        )
    return content.encode() if isinstance(content, str) else content
