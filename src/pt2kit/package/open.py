"""`Package`: an open `.pt2`, whose parts are read on first access."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pt2kit import codec, schema
from pt2kit.errors import ArchiveError
from pt2kit.front_door import registered
from pt2kit.messages import listed, quote, suggestion
from pt2kit.package import external_list, record_names
from pt2kit.package.layouts.base import PLAIN_MODEL, Layout
from pt2kit.package.layouts.detection import detect, find_json
from pt2kit.package.stored import Kind, Lazy, Payload, ReadContext, StoredPayloads, StoredProgram
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.listing import FileLike, folder_of, open_source
from pt2kit.zip.reader import open_archive
from pt2kit.zip.source import DEFAULT_LIMITS, Limits, Source

if TYPE_CHECKING:
    from pt2kit.graph.reading import Graph
    from pt2kit.package.external_list import Reference
    from pt2kit.package.samples import Call

_SHOWN = 20
"""Names of programs that a message lists."""

_BEFORE_IT_WAS_STORED = "<=2.4"
"""Result of `torch_version` for a program that does not have it."""


class Package:
    """An open `.pt2`. Use it as a context manager, or close it; everything read remains valid afterwards.

    Args:
        layout: how the records are arranged; its archive is closed with the package.
        context: data that programs of older versions may need.
    """

    def __init__(self, layout: Layout, context: ReadContext | None = None) -> None:
        layout = layout if context is None else layout.changed(context=context)
        self.archive = layout.archive
        self.layout = layout
        models = layout.models
        # None of these refers to the package, so an unused one is freed immediately, with all that it has read.
        self._stored = stored = Lazy(models, layout.read_program, "program")
        self._programs: Lazy[schema.ExportedProgram] = Lazy(models, lambda model: stored[model].program, "program")

        def payloads(kind: Kind) -> Lazy[StoredPayloads]:
            def read(model: str) -> StoredPayloads:
                return layout.read_payloads(model, kind, lambda: stored[model])

            return Lazy(models, read, "program")

        self._weights = payloads("weights")
        self._constants = payloads("constants")
        self._sample_inputs: Lazy[Call | None] = Lazy(
            models, lambda model: _read_sample_inputs(layout, model, lambda: stored[model].program), "program"
        )

    @property
    def name(self) -> str:
        """Return the name of the file for messages."""
        return self.archive.source.name

    @property
    def records(self) -> Mapping[str, Any]:
        """Return the records by full name, in directory order, as `archive.Record`."""
        return self.archive.records

    @property
    def programs(self) -> Mapping[str, schema.ExportedProgram]:
        """Return the programs by model name, upgraded to the current schema version; each is decoded on first access.

        A program is frozen: change it with `msgspec.structs.replace`. Values of a large one that have equal metadata
        may share it; the lists in that refuse to be changed in place.

        Raises (on access):
            KeyError: no such model.
            JsonError, SchemaError, VersionError, LimitError: the record cannot be read.
        """
        return self._programs

    @property
    def stored(self) -> Mapping[str, StoredProgram]:
        """Return the programs by model name, with the stored version and the keys that are unknown to this build."""
        return self._stored

    @property
    def stored_schema_version(self) -> str:
        """Return the schema version that the (first) program was stored in: "8.20", "1"; "draft", "5.3-traces".

        Raises:
            ArchiveError: the package holds compiled code alone.
            Pt2Error: the program cannot be read.
        """
        if not self.layout.models:
            raise ArchiveError(self.without_program())
        return self._stored[self.layout.models[0]].version

    @property
    def producer(self) -> str:
        """Return the torch that wrote the file, as far as the file states it: "torch 2.13.0+cpu", "torch 2.4".

        "torch 2.9 and later" if only the layout shows it; "no release: schema 5.3-traces" for a development state.

        Raises:
            Pt2Error: the (first) program cannot be read.
        """
        if not self.layout.models:
            return self.layout.releases
        stored = self._stored[self.layout.models[0]]
        if release := stored.program.torch_version.removeprefix(_BEFORE_IT_WAS_STORED):
            return f"torch {release}"
        releases = next((row.releases for row in schema.LOG if row.number == stored.version), None)
        return self.layout.producer(releases) if releases else f"no release: schema {stored.version}"

    def choose(self, model: str | None = None) -> str:
        """Return the name of the program that a caller means, as everywhere: without a name the only one, or "model".

        Raises:
            ArchiveError: there is none of that name, or there are several and none is called "model".
        """
        models = self.layout.models
        wanted = model if model is not None else models[0] if len(models) == 1 else PLAIN_MODEL
        if wanted in models:
            return wanted
        if not models:
            raise ArchiveError(self.without_program())
        there = listed([quote(name) for name in models], _SHOWN)
        got = f"{quote(model)}{suggestion(model, models)}" if model is not None else "none; pass model=, --model"
        raise ArchiveError(f"{self.name}: expected a program, one of {there}, got {got}")

    def weights(self, model: str | None = None) -> Mapping[str, Payload]:
        """Return the parameters and persistent buffers of a model, by name, in the file's order. Reads no tensor bytes.

        Raises:
            ArchiveError: no such program.
            ArchiveError, JsonError, SchemaError: the config that lists them cannot be read.
            PayloadError: metadata that contradicts its record or the graph.
        """
        return self._weights[self.choose(model)].payloads

    def constants(self, model: str | None = None) -> Mapping[str, Payload]:
        """Return the lifted constants, non-persistent buffers and custom objects of a model. Reads no tensor bytes.

        Raises: as `weights`.
        """
        return self._constants[self.choose(model)].payloads

    def sample_inputs(self, model: str | None = None) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return the `(args, kwargs)` that a model was exported with, tensors as views; None if none were stored.

        Raises:
            ArchiveError: no such program.
            UnsupportedError: they hold more than data; the message names their types.
            Pt2Error: the record cannot be read.
        """
        return self._sample_inputs[self.choose(model)]

    def graph(self, model: str | None = None) -> Graph:
        """Return the graph of a program to read: nodes with arguments by name, values, subgraphs, weights.

        Args:
            model: the name of the program; by default the only one, or "model".

        Raises:
            ArchiveError: no such program.
            GraphError: the graph contradicts itself (G1 to G12).
            Pt2Error: the program cannot be read.

        Cost: linear in the size of the graph; reads no weights.
        """
        graph: Graph = registered("graph of a program")(self, self.choose(model))
        return graph

    @property
    def external(self) -> Mapping[str, Reference]:
        """Return the locations of external payloads, by their record below the root folder."""
        references = getattr(self.archive, "references", {})
        return {self.relative(name): row for name, row in references.items()}

    @cached_property
    def extra_files(self) -> Mapping[str, memoryview]:
        """Return the user's extra files by name; their bytes are read on access."""
        indexes = {self.layout.record(record_names.samples_index(model)) for model in self.layout.models}
        by_name = self.layout.extra_files()
        extra = {name: record for name, record in by_name.items() if record not in indexes}
        archive = self.archive
        return Lazy(tuple(extra), lambda name: archive.read(extra[name]), "extra file")

    def unknown(self, model: str | None = None) -> tuple[str, ...]:
        """Return the places of all keys that this build's schema lacks, in a model's program and its configs.

        They are kept when the package is written.

        Raises:
            ArchiveError: no such program.
            Pt2Error: one of the records cannot be read.
        """
        model = self.choose(model)
        weights, constants = self._weights[model], self._constants[model]
        by_record: list[tuple[str, tuple[codec.Unknown, ...]]] = [
            (self.relative(self.layout.program_record(model)), self._stored[model].unknown),
            (weights.config, weights.unknown),
            (constants.config, constants.unknown),
        ]
        return tuple(f"{record}: {key}" for record, keys in by_record for key in keys)

    @property
    def compiled(self) -> tuple[str, ...]:
        """Return the names of the compiled models in the archive, next to its programs or alone.

        They are never inspected.
        """
        model_names = {
            name for record in self.records if (name := record_names.aotinductor_model(self.relative(record)))
        }
        return tuple(sorted(model_names))

    def without_program(self, purpose: str = "") -> str:
        """Return the message for a missing program.

        Args:
            purpose: what it is wanted for: "to convert".
        """
        wanted = f"{self.name}: expected a program{f' {purpose}' if purpose else ''}, got an archive without one"
        if not self.compiled:
            return wanted
        shown = ", ".join(show_name(name) for name in self.compiled[:5])
        return f"{wanted}: it has compiled code alone (of {shown}), which is listed and never looked into"

    def relative(self, record: str) -> str:
        """Return the name of a record below the root folder: "mlp/models/model.json" -> "models/model.json"."""
        return self.layout.relative(record)

    def close(self) -> None:
        """Close the file. Tensors and programs that were read remain valid."""
        self.archive.close()

    def __enter__(self) -> Package:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Package {self.name!r}: {', '.join(map(repr, self.layout.models)) or 'no programs'}>"

    def _repr_html_(self) -> str:
        """Return the page of `pt2 view`, for notebooks."""
        return str(registered("notebook view of a package")(self)._repr_html_())


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
        file: a path, bytes, a binary file object, any URL that fsspec supports, or a source, closed with the package.
        limits: what reading may cost.
        storage_options: passed to fsspec for a URL.
        namedtuples: class name -> name under which it is registered, for programs up to schema 5.1 (torch 2.3), which
            have the class name only; a name that is missing is kept.
        weights_root: the folder, a path or URL, of the weight files that the archive names; None for the archive's own
            folder. Relative URLs are relative to the archive's folder, or if it has none, to this one.

    Returns:
        The package. Of an archive only the directory was read; of a bare JSON file, and of an archive whose models have
        no payloads of their own, also the JSON, once, to name the programs in it.

    Raises:
        OSError: the path cannot be opened.
        ArchiveError, VersionError, LimitError: not a `.pt2` that this build reads.
        JsonError, SchemaError: a JSON file that is no program.
        PayloadError: an invalid list of external payloads (B1).
    """
    source = open_source(file, storage_options=storage_options, max_stream_bytes=limits.max_stream_bytes)
    try:
        layout = find_json(source, limits) or detect(open_archive(source, limits=limits))
        if layout.has_configs and layout.record(external_list.RECORD) in layout.archive.records:
            from pt2kit.package.external import with_external
            from pt2kit.zip.adjacent import adjacent_files

            adjacent = adjacent_files(file, weights_root, storage_options)
            layout = layout.changed(archive=with_external(layout.archive, layout.root, adjacent))
        return Package(layout, ReadContext(folder_of(file), namedtuples or {}))
    except BaseException:
        source.close()
        raise


def opened(file: Package | FileLike | Source) -> AbstractContextManager[Package]:
    """Return a context of an open package, which stays open, or of a file, which is opened and closed.

    Raises: as `open_package`.
    """
    return nullcontext(file) if isinstance(file, Package) else open_package(file)


def _read_sample_inputs(layout: Layout, model: str, read_model: Callable[[], schema.ExportedProgram]) -> Call | None:
    from pt2kit.package.pickle_free_inputs import read_pickle_free_inputs
    from pt2kit.package.samples import read_sample_inputs, view_pickle_free_inputs

    record = layout.sample_inputs_record(model)
    if record is not None and (data := layout.archive.read(record)):
        return read_sample_inputs(data, layout.relative(record), read_model)
    inputs = read_pickle_free_inputs(layout, model)
    return None if inputs is None else view_pickle_free_inputs(inputs, read_model)


open = open_package  # its name in the package's public API
