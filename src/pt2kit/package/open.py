"""`Package`: an open `.pt2`, whose parts are read when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from types import TracebackType
from typing import Any

from pt2kit import codec, schema
from pt2kit.errors import ArchiveError, Pt2Error
from pt2kit.package import record_names
from pt2kit.package.external import ExternalArchive, with_external
from pt2kit.package.external_list import Reference
from pt2kit.package.json_file import JsonFileArchive, is_bare
from pt2kit.package.layout import Layout, verify_header
from pt2kit.package.lazy import Lazy
from pt2kit.package.parts import (
    PLAIN_MODEL,
    extra_files,
    has_payload_records,
    program_record,
    sample_inputs_record,
)
from pt2kit.package.payloads import read_payloads
from pt2kit.package.pickle_free_inputs.names import index_record
from pt2kit.package.programs import read_program
from pt2kit.package.stored import Kind, Payload, ReadContext, StoredPayloads, StoredProgram
from pt2kit.zip.beside import beside
from pt2kit.zip.limits import DEFAULT_LIMITS, Limits
from pt2kit.zip.opening import FileLike, open_source
from pt2kit.zip.reader import Archive, open_archive
from pt2kit.zip.record_name import show_name
from pt2kit.zip.source import Source


class Package:
    """An open `.pt2`. Use it as a context manager, or close it; what was read stays valid afterwards.

    Args:
        archive: closed with the package.
        layout: how its records are arranged.
        context: what programs of older versions may need.
    """

    def __init__(self, archive: Archive, layout: Layout, context: ReadContext | None = None) -> None:
        self.archive = archive
        self.layout = layout
        models = layout.models
        # None of these holds the package, so one that is let go of is freed at once, with all that it has read.
        stored = Lazy(models, lambda model: read_program(archive, layout, model, context), "program")
        self._stored: Lazy[StoredProgram] = stored
        self._programs: Lazy[schema.ExportedProgram] = Lazy(models, lambda model: stored[model].program, "program")

        def payloads(kind: Kind) -> Lazy[StoredPayloads]:
            def read(model: str) -> StoredPayloads:
                return read_payloads(archive, layout, model, kind, lambda: stored[model], context)

            return Lazy(models, read, "program")

        self._weights = payloads("weights")
        self._constants = payloads("constants")
        self._sample_inputs: Lazy[Any] = Lazy(
            models, lambda model: _read_sample_inputs(archive, layout, model, lambda: stored[model].program), "program"
        )

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

        A program is frozen: change it with `msgspec.structs.replace`. Values of a large one that have equal metadata
        may share it; the lists in that refuse to be changed in place.

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
        """The schema version that the (first) program was stored in: "8.20", "1"; "draft", "5.3-traces".

        Raises:
            ArchiveError: the package holds compiled code alone.
            Pt2Error: the program cannot be read.
        """
        if not self.layout.models:
            raise ArchiveError(self.without_program())
        return self._stored[self.layout.models[0]].version

    @property
    def producer(self) -> str:
        """The torch that wrote the file, as far as the file tells: "torch 2.13.0+cpu", "torch 2.4".

        "torch 2.9 and later" where only the layout tells; "no release: schema 5.3-traces" for a development state.

        Raises:
            Pt2Error: the (first) program cannot be read.
        """
        if not self.layout.models:
            return self.layout.releases
        stored = self._stored[self.layout.models[0]]
        if release := stored.program.torch_version.removeprefix(_BEFORE_IT_WAS_STORED):
            return f"torch {release}"
        releases = next((row.releases for row in schema.LOG if row.number == stored.version), None)
        if self.layout.kind == "json" and releases:
            return f"torch {' or '.join(releases)}"
        if not releases:
            return f"no release: schema {stored.version}"
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
        inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = self._sample_inputs[model]
        return inputs

    @property
    def extra_files(self) -> Mapping[str, memoryview]:
        """Name -> bytes of the files that the user put beside the programs; read when asked for."""
        return self._extra_files

    @property
    def external(self) -> Mapping[str, Reference]:
        """Payload record, below the root folder -> where it lies, of those that are in files beside the archive."""
        if not isinstance(self.archive, ExternalArchive):
            return {}
        return {self.relative(name): row for name, row in self.archive.references.items()}

    @cached_property
    def _extra_files(self) -> Lazy[memoryview]:
        indexes = {self.layout.record(index_record(model)) for model in self.layout.models}
        by_name = extra_files(self.archive, self.layout)
        extra = {name: record for name, record in by_name.items() if record not in indexes}
        archive = self.archive
        return Lazy(tuple(extra), lambda name: archive.read(extra[name]), "extra file")

    def unknown(self, model: str = "model") -> tuple[str, ...]:
        """The places of all keys that this build's schema does not have: in a model's program and in its configs.

        They are kept when the package is written.

        Raises:
            KeyError: no such model.
            Pt2Error: one of the records cannot be read.
        """
        weights, constants = self._weights[model], self._constants[model]
        by_record: list[tuple[str, tuple[codec.Unknown, ...]]] = [
            (self.relative(program_record(self.archive, self.layout, model)), self._stored[model].unknown),
            (weights.config, weights.unknown),
            (constants.config, constants.unknown),
        ]
        return tuple(f"{record}: {key}" for record, keys in by_record for key in keys)

    @property
    def compiled(self) -> tuple[str, ...]:
        """Names of the compiled models in the archive, beside its programs or alone; never looked into."""
        model_names = {
            name for record in self.records if (name := record_names.aotinductor_model(self.relative(record)))
        }
        return tuple(sorted(model_names))

    def without_program(self, purpose: str = "") -> str:
        """The message where a program is wanted and none is there.

        Args:
            purpose: what it is wanted for: "to convert".
        """
        wanted = f"{self.name}: expected a program{f' {purpose}' if purpose else ''}, got an archive without one"
        if not self.compiled:
            return wanted
        shown = ", ".join(show_name(name) for name in self.compiled[:5])
        return f"{wanted}: it has compiled code alone (of {shown}), which is listed and never looked into"

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

    def _repr_html_(self) -> str:
        """What a notebook shows: the page of `pt2 view`."""
        # By name, when a notebook asks: the room that draws is above this one, and nothing else here knows of it.
        shown: str = import_module("pt2kit.viewing.notebook").view(self)._repr_html_()
        return shown


def open_package(
    file: FileLike | Source,
    *,
    limits: Limits = DEFAULT_LIMITS,
    storage_options: Mapping[str, Any] | None = None,
    namedtuples: Mapping[str, str] | None = None,
    weights_root: str | os.PathLike[str] | None = None,
) -> Package:
    """Open a `.pt2` file of any release, or the bare JSON of a program, without torch. Reads no weights yet.

    Args:
        file: a path, bytes, a binary file object, any URL that fsspec knows, or a source, closed with the package.
        limits: what reading may cost.
        storage_options: passed to fsspec for a URL.
        namedtuples: class name -> name under which it is registered, for programs up to schema 5.1 (torch 2.3), which
            know the class name only; a name that is missing stays.
        weights_root: the folder, a path or URL, that files of weights may lie in which the archive names; its own
            folder where it is None. What is relative is so to the archive's folder, or where it has none, to this one.

    Returns:
        The package. Of an archive only the directory was read; of a bare JSON file, and of an archive whose models have
        no payloads of their own, also the JSON, once, to name the programs in it.

    Raises:
        OSError: the path cannot be opened.
        ArchiveError, VersionError, LimitError: not a `.pt2` that this build reads.
        JsonError, SchemaError: a JSON file that is no program.
        PayloadError: a list of payloads beside the archive that is none (B1).
    """
    source = open_source(file, storage_options=storage_options, max_stream_bytes=limits.max_stream_bytes)
    try:
        if is_bare(source):
            archive: Archive = JsonFileArchive(source, limits)
            layout = _bare_layout(archive)
        else:
            archive = open_archive(source, limits=limits)
            layout = verify_header(archive)
            if layout.kind == "archive":
                archive = with_external(archive, layout.root, beside(file, weights_root, storage_options))
            layout = _with_methods(archive, layout)
        return Package(archive, layout, ReadContext(_folder(file), namedtuples or {}))
    except BaseException:
        source.close()
        raise


def _read_sample_inputs(
    archive: Archive, layout: Layout, model: str, read_model: Callable[[], schema.ExportedProgram]
) -> Any:
    from pt2kit.package.pickle_free_inputs.index import read_pickle_free_inputs
    from pt2kit.package.samples import read_sample_inputs, view_pickle_free_inputs

    record = sample_inputs_record(archive, layout, model)
    if record is not None and (data := archive.read(record)):
        return read_sample_inputs(data, record.removeprefix(layout.root), read_model)
    inputs = read_pickle_free_inputs(archive, layout, model)
    return None if inputs is None else view_pickle_free_inputs(inputs, read_model)


def _bare_layout(archive: Archive) -> Layout:
    """The layout of a JSON file: one program, or the methods of a container."""
    from pt2kit.package.legacy_programs import list_programs

    [record] = archive.records
    method_by_program = list_programs(archive.read(record), record, PLAIN_MODEL)
    methods = {name: (PLAIN_MODEL, method) for name, method in method_by_program.items() if method is not None}
    return Layout("json", "a JSON file without an archive", "", tuple(method_by_program), methods)


def _with_methods(archive: Archive, layout: Layout) -> Layout:
    """The layout with the methods of models that are containers: they have no payloads named after them."""
    homes = [model for model in layout.models if not has_payload_records(archive, layout, model)]
    if layout.kind == "plain-zip" or not homes:
        return layout
    from pt2kit.package.legacy_programs import list_programs

    programs: list[str] = []
    methods: dict[str, tuple[str, str]] = {}
    for model in layout.models:
        record = program_record(archive, layout, model)
        method_by_program: Mapping[str, str | None] = {model: None}
        if model in homes:
            with suppress(Pt2Error):  # reading the program says what is wrong with it
                method_by_program = list_programs(archive.read(record), record, model)
        programs += method_by_program
        methods |= {name: (model, method) for name, method in method_by_program.items() if method is not None}
    if len(set(programs)) != len(programs):
        raise ArchiveError(f"{archive.source.name}: expected programs of different names, got {programs}", rule="A24")
    releases = _CONTAINERS if len(methods) == len(programs) and methods else layout.releases
    return replace(layout, releases=releases, models=tuple(programs), methods=methods)


def _folder(file: Any) -> str | None:
    """The folder that a file of this machine lies in."""
    path = file if isinstance(file, str | os.PathLike) else getattr(file, "name", None)
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return None
    return os.path.dirname(os.path.abspath(os.fsdecode(path)))


_CONTAINERS = "no release: containers of schema 8.6"
_BEFORE_IT_WAS_STORED = "<=2.4"
"""What `torch_version` says of a program that does not have it."""

open = open_package  # what the package as a whole calls it
