"""`Package`: an open `.pt2`, whose parts are read when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from pt2kit import codec, schema
from pt2kit.archive import names
from pt2kit.archive.layout import Layout, verify_header
from pt2kit.archive.limits import DEFAULT_LIMITS, Limits
from pt2kit.archive.opening import FileLike
from pt2kit.archive.reader import Archive, open_archive
from pt2kit.errors import ArchiveError, VersionError
from pt2kit.package.lazy import Lazy
from pt2kit.package.payloads import Payload, StoredPayloads, read_payloads
from pt2kit.package.programs import StoredProgram, read_program


class Package:
    """An open `.pt2`. Use it as a context manager, or close it; what was read stays valid afterwards.

    Args:
        archive: closed with the package.
        layout: how its records are arranged.
    """

    def __init__(self, archive: Archive, layout: Layout) -> None:
        self.archive = archive
        self.layout = layout
        models = layout.models
        self._stored: Lazy[StoredProgram] = Lazy(models, self._read_program)
        self._programs: Lazy[schema.ExportedProgram] = Lazy(models, lambda model: self._stored[model].program)
        self._weights: Lazy[StoredPayloads] = Lazy(models, self._read_weights)
        self._constants: Lazy[StoredPayloads] = Lazy(models, self._read_constants)
        self._sample_inputs: Lazy[Any] = Lazy(models, self._read_sample_inputs)
        found = {names.extra_name(self.relative(record)): record for record in self.records}
        extra = {name: record for name, record in found.items() if name}
        self._extra_files: Lazy[memoryview] = Lazy(tuple(extra), lambda name: self.archive.read(extra[name]))

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
        return self._programs

    @property
    def stored(self) -> Mapping[str, StoredProgram]:
        """Model name -> the program with the version it was stored in and the keys this build does not know."""
        return self._stored

    @property
    def stored_schema_version(self) -> str:
        """The schema version that the (first) program was stored in: "8.20".

        Raises:
            ArchiveError: the package holds compiled code alone.
            Pt2Error: the program cannot be read.
        """
        if not self.layout.models:
            raise ArchiveError(f"{self.name}: expected a program, got an archive without one")
        return self._stored[self.layout.models[0]].version

    @property
    def producer(self) -> str:
        """The torch that wrote the file, as far as the file tells: "torch 2.13.0+cpu", "torch 2.9 and later".

        Raises:
            Pt2Error: the (first) program cannot be read.
        """
        if not self.layout.models:
            return self.layout.releases
        stored = self._stored[self.layout.models[0]]
        if release := stored.program.torch_version.removeprefix(_BEFORE_IT_WAS_STORED):
            return f"torch {release}"
        releases = next((row.releases for row in schema.LOG if row.number == stored.version), ())
        return f"torch {releases[0]}" if len(releases) == 1 else self.layout.releases

    def weights(self, model: str = "model") -> Mapping[str, Payload]:
        """Parameters and persistent buffers of a model, by name, in the file's order. Reads no tensor bytes.

        Raises:
            KeyError: no such model.
            ArchiveError, JsonError, SchemaError: the config that lists them cannot be read.
            PayloadError: metadata that contradicts its record or the graph.
        """
        return self._weights[model].payloads

    def constants(self, model: str = "model") -> Mapping[str, Payload]:
        """Lifted constants, non-persistent buffers and custom objects of a model. Reads no tensor bytes.

        Raises: as `weights`.
        """
        return self._constants[model].payloads

    def sample_inputs(self, model: str = "model") -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The `(args, kwargs)` that a model was exported with, tensors as views; None where none were stored.

        Raises:
            KeyError: no such model.
            UnsupportedError: they hold more than data; the message names what.
            Pt2Error: the record cannot be read.
        """
        found: tuple[tuple[Any, ...], dict[str, Any]] | None = self._sample_inputs[model]
        return found

    @property
    def extra_files(self) -> Mapping[str, memoryview]:
        """Name -> bytes of the files that the user put beside the programs; read when asked for."""
        return self._extra_files

    def unknown(self, model: str = "model") -> tuple[str, ...]:
        """The places of all keys that this build's schema does not have: in a model's program and in its configs.

        They are kept when the package is written.

        Raises:
            KeyError: no such model.
            Pt2Error: one of the records cannot be read.
        """
        weights, constants = self._weights[model], self._constants[model]
        found: list[tuple[str, tuple[codec.Unknown, ...]]] = [
            (names.model_json(model), self._stored[model].unknown),
            (weights.config, weights.unknown),
            (constants.config, constants.unknown),
        ]
        return tuple(f"{record}: {key}" for record, keys in found for key in keys)

    def relative(self, record: str) -> str:
        """The name of a record below the root folder: "mlp/models/model.json" -> "models/model.json"."""
        return record.removeprefix(self.layout.root)

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
        return f"<Package {self.name!r}: {', '.join(map(repr, self.layout.models)) or 'no programs'}>"

    def _read_program(self, model: str) -> StoredProgram:
        return read_program(self.archive, self.layout, model)

    def _read_weights(self, model: str) -> StoredPayloads:
        return read_payloads(self.archive, self.layout, model, "weights", lambda: self.programs[model])

    def _read_constants(self, model: str) -> StoredPayloads:
        return read_payloads(self.archive, self.layout, model, "constants", lambda: self.programs[model])

    def _read_sample_inputs(self, model: str) -> Any:
        from pt2kit.package.samples import read_sample_inputs

        record = names.sample_inputs(model)
        full = self.layout.record(record)
        if full not in self.records or not (data := self.archive.read(full)):
            return None
        return read_sample_inputs(data, record, lambda: self.programs[model])


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
                f"got {_LAYOUT_TEXT[layout.kind]} ({layout.releases}), which this build does not read"
            )
        return Package(archive, layout)
    except BaseException:
        archive.close()
        raise


_BEFORE_IT_WAS_STORED = "<=2.4"
"""What `torch_version` says of a program that does not have it."""
_LAYOUT_TEXT = {"plain-zip": "the plain zip", "archive-2.8": "the archive with payloads as torch.save files"}
