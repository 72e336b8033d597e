"""Assembly of a `Package` in memory from record names and the sources of their bytes; nothing is copied until it is
read.

What an editor makes is a package like any other: it can be checked, digested, compared, converted and written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec import structs

from pt2kit import codec, schema
from pt2kit.errors import ConversionError, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.layouts.record_archive import RecordArchive
from pt2kit.package.open import Package
from pt2kit.package.plan import PlannedRecord, header, of_bytes
from pt2kit.pickles import writer as torch_save
from pt2kit.release.containers import free_numbers, plan_other_records
from pt2kit.release.destinations import find_destination
from pt2kit.release.models import convert_model, find_model
from pt2kit.release.programs import operators
from pt2kit.schema.names import free_name
from pt2kit.versions.conversion_log import HARMLESS, obstacles
from pt2kit.zip.directory import Record, unzipped
from pt2kit.zip.reader import Archive
from pt2kit.zip.source import DEFAULT_LIMITS, open_bytes
from pt2kit.zip.writer import DEFAULT_ROOT

_PAYLOADS: Final = frozenset(("weight", "tensor constant", "custom object", "opaque object"))
_REUSED: Final = _PAYLOADS | {"header"}

SameRecord: TypeAlias = "Callable[[Parts, str, PlannedRecord, str], str | None]"
"""(all records, a record and its content, "weights" or "constants") -> the name of one with the same content."""


@dataclass(slots=True)
class Parts:
    """All records of a package in today's layout, by their names below the root folder.

    Args:
        name: what messages call the package.
        root: the root folder, without a slash.
        records: name -> record, in order.
        models: the programs.
        origins: packages that the records come from, kept open.
    """

    name: str
    root: str
    records: dict[str, PlannedRecord]
    models: tuple[str, ...]
    origins: list[Package] = field(default_factory=list)

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Set a record to bytes that are there."""
        self.records[name] = of_bytes(name, data)

    def config(self, model: str, kind: str) -> dict[str, schema.PayloadMeta]:
        """Return the config of a model's weights or constants; {} if no record has one."""
        name = names.payload_config(model, kind)
        part = self.records.get(name)
        if part is None:
            return {}
        return dict(codec.decode(part.read(), schema.PayloadConfig, name).value.config)

    def set_config(self, model: str, kind: str, config: Mapping[str, schema.PayloadMeta]) -> None:
        """Set the config of a model's weights or constants."""
        self.put(names.payload_config(model, kind), codec.encode(schema.PayloadConfig(dict(config))))

    def next_record(self, kind: str) -> str:
        """Return an unused record name for a weight or tensor constant."""
        stem = (names.weight if kind == "weights" else names.tensor_constant)(0).rpartition("_")[0]
        count = sum(name.startswith(names.payload_folder(kind)) for name in self.records)
        return free_name(stem, self.records.__contains__, count)

    def add_payload(self, record: str, part: PlannedRecord, kind: str) -> str:
        """Add a payload of another package under a free name, and return that name.

        Args:
            record: its name there, which determines its kind.
            part: its bytes.
            kind: "weights" or "constants".
        """
        if names.kind(record) in ("weight", "tensor constant"):
            name = self.next_record(kind)
        else:
            name = free_name(record.rpartition("_")[0], self.records.__contains__, 0)
        self.records[name] = part
        return name

    def copy_payload(self, meta: schema.PayloadMeta, source: Parts, kind: str, same: SameRecord) -> schema.PayloadMeta:
        """Add a payload of another package, and return its line in the config.

        Args:
            meta: its line there.
            source: the other package.
            kind: "weights" or "constants".
            same: returns the record with the same content that is here already, if there is one.
        """
        record = names.payload_folder(kind) + meta.path_name
        part = source.records[record]
        place = same(self, record, part, kind) or self.add_payload(record, part, kind)
        return structs.replace(meta, path_name=place.rpartition("/")[2])

    def reduce(self, model: str) -> None:
        """Remove everything but payloads, to describe one program anew."""
        self.models = (model,)
        self.records = {name: part for name, part in self.records.items() if names.kind(name) in _REUSED}

    def put_program(self, model: str, program: schema.ExportedProgram) -> None:
        """Set a program, without sample inputs."""
        self.put(names.model_json(model), codec.encode(program))
        self.drop_samples(model)

    def drop_samples(self, model: str) -> None:
        """Empty the record of the sample inputs that a model was exported with; torch requires the record itself."""
        self.records.pop(names.samples_index(model), None)
        self.put(names.sample_inputs(model), b"")

    def drop_unused(self) -> None:
        """Remove payload records that no config names."""
        used = {
            names.payload_folder(kind) + meta.path_name
            for model in self.models
            for kind in ("weights", "constants")
            for meta in self.config(model, kind).values()
        }
        for name in list(self.records):
            if names.kind(name) in _PAYLOADS and name not in used:
                del self.records[name]

    def package(self) -> Package:
        """Return the package of these records."""
        for record in header():
            self.records.setdefault(record.name, record)
        return Package(RecordArchive(PlannedArchive(self), f"{self.root}/", self.models, "torch 2.9 and later"))


class PlannedArchive(Archive):
    """Records that are in no file yet, as an archive; there are no checksums to compare them with."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(open_bytes(b"", name=parts.name), (), DEFAULT_LIMITS)
        self._parts = {f"{parts.root}/{name}": part for name, part in parts.records.items()}
        # The source of the records must not be collected, which would close it.
        self._origins = tuple(parts.origins)
        self.records = MappingProxyType({name: unzipped(name, part.size) for name, part in self._parts.items()})
        self._data_offsets = dict.fromkeys(self._parts, 0)

    def part(self, name: str) -> PlannedRecord:
        """Return the planned record of a full name."""
        return self._parts[name]

    def read_into(self, name: str, start: int, buffer: memoryview) -> None:
        """Fill a buffer with the bytes of a record from `start` on."""
        buffer[:] = self.read(name)[start : start + buffer.nbytes]

    def is_in_place(self, name: str) -> bool:
        """Return whether reading a record copies nothing."""
        origin = self._parts[name].origin
        return origin is None or origin[0].is_in_place(origin[1])

    def _packed(self, record: Record) -> memoryview:
        """Return the content of a record.

        Raises:
            Pt2Error: what it comes from cannot be read.
        """
        view = memoryview(self._parts[record.name].read())
        return view.cast("B").toreadonly() if view.nbytes else memoryview(b"")


def parts_of(package: Package) -> Parts:
    """Return all records of a package in the current layout; records of an older release are converted.

    Raises:
        UnsupportedError: there is no program in it.
        ConversionError: something in it has no place in today's layout.
        Pt2Error: it cannot be read.
    """
    if not package.layout.models:
        raise UnsupportedError(package.without_program())
    root = package.layout.root.rstrip("/") or DEFAULT_ROOT
    records = dict((_copied if is_current(package) else _converted)(package))
    return Parts(package.name, root, records, package.layout.models, [package])


def is_current(package: Package) -> bool:
    """Return whether a package has the current layout, with payloads as raw records."""
    layout = package.layout
    return layout.has_configs and all(
        layout.parts(model).configs and not package.stored[model].is_raised for model in layout.models
    )


def _converted(package: Package) -> Iterable[tuple[str, PlannedRecord]]:
    """Yield the records that a conversion to the current version would write."""
    to = find_destination(schema.CURRENT.number)
    models = [find_model(package, name, to) for name in package.layout.models]
    numbering = free_numbers(package, models, to)
    outcomes = [convert_model(model, to, operators(None, ()), numbering) for model in models]
    rest, left_over = plan_other_records(package, models, to)
    notes = [*(note for outcome in outcomes for note in outcome.notes), *left_over]
    if lines := obstacles(notes, {*HARMLESS, "sample_inputs"}):
        listed = "".join(f"\n  {line}" for line in lines)
        raise ConversionError(f"{package.name}: expected a package that today's layout can hold, got:{listed}")
    for record in [record for outcome in outcomes for record in outcome.records] + rest:
        if names.kind(record.name) == "header":
            continue
        if isinstance(record, PlannedRecord):
            yield record.name, replace(record, read=_cut(record), raised=(package.archive, record.name))
        else:
            yield record.name, of_bytes(record.name, torch_save.dumps(record.value, record.name))


def _cut(record: PlannedRecord) -> Callable[[], Any]:
    return lambda: memoryview(record.read())[: record.size]


def _copied(package: Package) -> Iterable[tuple[str, PlannedRecord]]:
    """Yield the records of a package in the current layout as they are."""
    archive = package.archive
    for record, row in package.records.items():
        name = package.relative(record)
        if isinstance(archive, PlannedArchive):
            yield name, archive.part(record)
        elif name != names.SERIALIZATION_ID:
            yield name, PlannedRecord(name, row.size, partial(archive.read, record), origin=(archive, record))
