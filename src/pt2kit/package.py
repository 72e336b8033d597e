"""A `.pt2` file -> `Package`: its programs, payloads and records, each read when it is asked for; and back to a file.

The seam of the house: archive -> codec -> version -> objects of the current schema. Nothing above reads bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, TypeVar

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.archive import names
from pt2kit.archive.layout import Layout, payload_layout, verify_header
from pt2kit.archive.limits import DEFAULT_LIMITS, Limits
from pt2kit.archive.opening import FileLike
from pt2kit.archive.reader import Archive, open_archive
from pt2kit.archive.writer import ArchiveWriter
from pt2kit.errors import ArchiveError, SchemaError, VersionError
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.payload import check_against, views_from_config
from pt2kit.tensors.view import TensorView

V = TypeVar("V")
Payload = TensorView | OpaquePayload


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program as it was read.

    Args:
        program: raised to the current schema version.
        version: the version it was stored in ("8.14").
        unknown: keys that this build's schema does not have, with their values.
    """

    program: schema.ExportedProgram
    version: str
    unknown: tuple[codec.Unknown, ...]


class Lazy(Mapping[str, V]):
    """Names known at once, values computed when first asked for, then kept. Safe to use from several threads."""

    def __init__(self, names: tuple[str, ...], compute: Callable[[str], V]) -> None:
        self._names = names
        self._compute = compute
        self._kept: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name in self._kept:
            return self._kept[name]
        if name not in self._names:
            raise KeyError(name)
        # Two threads may both compute; the first result is the one everybody gets.
        return self._kept.setdefault(name, self._compute(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Package:
    """An open `.pt2`. Use it as a context manager, or close it; what was read stays valid afterwards.

    Args:
        archive: closed with the package.
        layout: how its records are arranged.
    """

    def __init__(self, archive: Archive, layout: Layout) -> None:
        self.archive = archive
        self.layout = layout
        self._stored: Lazy[StoredProgram] = Lazy(layout.models, self._read_program)
        self._weights: Lazy[Mapping[str, Payload]] = Lazy(layout.models, self._read_weights)
        self._constants: Lazy[Mapping[str, Payload]] = Lazy(layout.models, self._read_constants)
        self._sample_inputs: Lazy[Any] = Lazy(layout.models, self._read_sample_inputs)

    @property
    def name(self) -> str:
        """The file, as messages call it."""
        return self.archive.source.name

    @property
    def records(self) -> Mapping[str, Any]:
        """Full record name -> `archive.Record`, in directory order."""
        return self.archive.records

    @property
    def programs(self) -> Mapping[str, schema.ExportedProgram]:
        """Model name -> program, raised to the current schema version; each is decoded when first asked for.

        Raises (on access):
            KeyError: no such model.
            JsonError, SchemaError, VersionError, LimitError: the record cannot be read.
        """
        return Lazy(self.layout.models, lambda model: self._stored[model].program)

    @property
    def stored(self) -> Mapping[str, StoredProgram]:
        """Model name -> the program with the version it was stored in and the keys this build does not know."""
        return self._stored

    @property
    def stored_schema_version(self) -> str:
        """The schema version that the (first) program was stored in: "8.20"."""
        return self._first().version

    @property
    def producer(self) -> str:
        """The torch that wrote the file, as far as the file tells: "torch 2.13.0+cpu"."""
        return f"torch {self._first().program.torch_version}" if self.layout.models else self.layout.releases

    def weights(self, model: str = "model") -> Mapping[str, Payload]:
        """Parameters and persistent buffers of a model, by name, in the file's order. Reads no tensor bytes.

        Raises:
            KeyError: no such model.
            PayloadError: metadata that contradicts its record or the graph.
        """
        return self._weights[model]

    def constants(self, model: str = "model") -> Mapping[str, Payload]:
        """Lifted constants, non-persistent buffers and custom objects of a model. Reads no tensor bytes.

        Raises: as `weights`.
        """
        return self._constants[model]

    def sample_inputs(self, model: str = "model") -> Any:
        """The `(args, kwargs)` that the model was exported with, as plain values; None where none were stored.

        Raises:
            KeyError: no such model.
            UnsupportedError: they hold more than data; the message names what.
        """
        return self._sample_inputs[model]

    @property
    def extra_files(self) -> Mapping[str, memoryview]:
        """Name -> bytes of the files that the user put beside the programs; read when asked for."""
        found = {names.extra_name(self._relative(record)): record for record in self.records}
        files = {name: record for name, record in found.items() if name}
        return Lazy(tuple(files), lambda name: self.archive.read(files[name]))

    def close(self) -> None:
        """Let go of the file. Tensors and programs that were read stay valid."""
        self.archive.close()

    def __enter__(self) -> Package:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Package {self.name!r}: {', '.join(self.layout.models) or 'no programs'}>"

    def _first(self) -> StoredProgram:
        if not self.layout.models:
            raise ArchiveError(f"{self.name}: expected a program, got an archive without one")
        return self._stored[self.layout.models[0]]

    def _relative(self, record: str) -> str:
        return record.removeprefix(self.layout.root)

    def _read(self, relative: str) -> memoryview:
        return self.archive.read(self.layout.record(relative))

    def _read_program(self, model: str) -> StoredProgram:
        where = names.model_json(model)
        data = self._read(where)
        try:
            decoded = codec.decode(data, schema.ExportedProgram, where)
        except SchemaError:
            _check_version_in(data, where)
            raise
        version = decoded.value.schema_version
        _check_version(version.major, version.minor, where)
        return StoredProgram(_raise_minor(decoded.value), f"{version.major}.{version.minor}", decoded.unknown)

    def _read_weights(self, model: str) -> Mapping[str, Payload]:
        return self._read_payloads(model, names.weights_config(model), names.WEIGHTS)

    def _read_constants(self, model: str) -> Mapping[str, Payload]:
        return self._read_payloads(model, names.constants_config(model), names.CONSTANTS)

    def _read_payloads(self, model: str, config: str, folder: str) -> Mapping[str, Payload]:
        payload_layout(self.records, self.layout, model, self.name)
        decoded = codec.decode(self._read(config), schema.PayloadConfig, config)
        found = views_from_config(decoded.value, self.archive, folder=self.layout.record(folder), where=config)
        for name, (meta, place) in _metas_by_target(self.programs[model]).items():
            if isinstance(view := found.get(name), TensorView):
                check_against(view, meta, f"{names.model_json(model)}: {place}")
        return found

    def _read_sample_inputs(self, model: str) -> Any:
        from pt2kit.archive.pickled import read_payload

        record = names.sample_inputs(model)
        if self.layout.record(record) not in self.records or not (data := self._read(record)):
            return None
        return read_payload(data, record)


def open_package(
    file: FileLike, *, limits: Limits = DEFAULT_LIMITS, storage_options: Mapping[str, Any] | None = None
) -> Package:
    """Open a `.pt2` file without torch, reading no program and no weights yet.

    Args:
        file: a path, bytes, a binary file object, or any URL that fsspec knows.
        limits: what reading may cost.
        storage_options: passed to fsspec for a URL.

    Raises:
        OSError: the path cannot be opened.
        ArchiveError, VersionError, LimitError: not a `.pt2` that this build reads; the message names its layout.
    """
    archive = open_archive(file, limits=limits, storage_options=storage_options)
    try:
        layout = verify_header(archive)
        if layout.kind != "archive":
            raise VersionError(
                f"{archive.source.name}: expected the archive layout of torch 2.9 and later, "
                f"got {_LAYOUT_TEXT[layout.kind]} ({layout.releases}), which this build does not read yet"
            )
        return Package(archive, layout)
    except BaseException:
        archive.close()
        raise


def write_package(
    package: Package,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    programs: Mapping[str, schema.ExportedProgram] | None = None,
) -> None:
    """Write a package as a new file: the same records, with some programs replaced.

    Args:
        package: where everything comes from. Records that this build does not know are copied as they are.
        target: a path, replaced whole or not at all, or a binary file object.
        programs: model name -> what to write instead. A program that is not the one that was read loses the keys this
            build does not know, so that is refused where there are any.

    Raises:
        KeyError: a program for a model that the package does not have.
        SchemaError: keys that this build does not know would be lost.
    """
    replaced = {
        names.model_json(model): _encode_program(package, model, new) for model, new in (programs or {}).items()
    }
    with ArchiveWriter(target, root=package.layout.root.rstrip("/")) as writer:
        for record in package.records:
            relative = package._relative(record)
            data = replaced.get(relative) or package.archive.read(record)
            writer.write(relative, data, deflate=relative.endswith(".json"))


_LAYOUT_TEXT = {"plain-zip": "the plain zip", "archive-2.8": "the archive with payloads as torch.save files"}


def _encode_program(package: Package, model: str, new: schema.ExportedProgram) -> bytes:
    stored = package.stored[model]
    if new is stored.program:
        return codec.encode(new, stored.unknown)
    if stored.unknown:
        raise SchemaError(
            f"{names.model_json(model)}: expected no keys of a newer schema, got {len(stored.unknown)} that rewriting "
            f"this program would lose ({', '.join(map(str, stored.unknown[:3]))})"
        )
    return codec.encode(new)


def _check_version(major: int, minor: int, where: str) -> None:
    newest, _ = schema.CURRENT.pair
    if major != newest or minor < 0:
        raise VersionError(
            f"{where}: $.schema_version: expected major {newest}, got {major}.{minor}: "
            + ("upgrade pt2kit" if major > newest else "this build does not read it yet")
        )


def _check_version_in(data: memoryview, where: str) -> None:
    """Say that the version is another one, if it is; a misfit elsewhere is then no surprise."""
    match codec.parse(data, where):
        case {"schema_version": {"major": int(major), "minor": int(minor)}}:
            _check_version(major, minor, where)


def _raise_minor(program: schema.ExportedProgram) -> schema.ExportedProgram:
    """Stamp a program of an older minor with the current one: its decoding has set every field that was added since."""
    major, minor = schema.CURRENT.pair
    if program.schema_version.minor >= minor:
        return program
    return replace(program, schema_version=schema.SchemaVersion(major, minor))


def _metas_by_target(program: schema.ExportedProgram) -> dict[str, tuple[schema.TensorMeta, str]]:
    """Payload name -> what the graph says of the tensor, and where."""
    values = program.graph_module.graph.tensor_values
    found: dict[str, tuple[schema.TensorMeta, str]] = {}
    for spec in program.graph_module.signature.input_specs:
        match spec.value:
            case (
                schema.InputToParameterSpec(arg, target)
                | schema.InputToBufferSpec(arg, target)
                | schema.InputToTensorConstantSpec(arg, target)
            ) if arg.name in values:
                place = codec.path_text(("graph_module", "graph", "tensor_values", arg.name))
                found[target] = values[arg.name], place
    return found
