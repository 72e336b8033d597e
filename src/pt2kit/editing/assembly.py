"""Records, as names and what gives their bytes -> a `Package` without a file; nothing is copied until it is read.

What an editor makes is a package like any other: it can be checked, digested, compared, converted and written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pt2kit import codec, schema
from pt2kit.errors import ConversionError, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.layout import Layout
from pt2kit.package.open import Package
from pt2kit.package.plan import PlannedPickle, PlannedRecord, header
from pt2kit.release.destinations import find_destination
from pt2kit.release.models import convert_model, find_model
from pt2kit.release.other_records import free_numbers, plan_other_records
from pt2kit.release.programs import operators
from pt2kit.versions.conversion_log import HARMLESS, obstacles
from pt2kit.zip.directory import Record
from pt2kit.zip.limits import DEFAULT_LIMITS
from pt2kit.zip.reader import Archive, Sum
from pt2kit.zip.source import open_bytes
from pt2kit.zip.writer import DEFAULT_ROOT

_PAYLOADS: Final = frozenset(("weight", "tensor constant", "custom object", "opaque object"))


@dataclass(frozen=True, slots=True)
class Part:
    """One record.

    Args:
        size: in bytes.
        read: gives them.
        origin: the archive and the name of the record that it is a copy of, where it is one.
        raised: the archive of an older release that it was made from, and the name of the record, where it was.
    """

    size: int
    read: Callable[[], Any]
    origin: tuple[Archive, str] | None = None
    raised: tuple[Any, str] | None = None

    def is_same(self, other: Part) -> bool:
        """Whether two records are copies of one."""
        if self.raised is not None and self.raised == other.raised:
            return True
        return self is other or (self.origin is not None and self.origin == other.origin)


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
    records: dict[str, Part]
    models: tuple[str, ...]
    origins: list[Package] = field(default_factory=list)

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Set a record to bytes that are there."""
        self.records[name] = Part(len(data), lambda: data)

    def config(self, model: str, kind: str) -> dict[str, schema.PayloadMeta]:
        """What a model's weights or constants are; {} where nothing says so."""
        name = names.weights_config(model) if kind == "weights" else names.constants_config(model)
        part = self.records.get(name)
        if part is None:
            return {}
        return dict(codec.decode(part.read(), schema.PayloadConfig, name).value.config)

    def set_config(self, model: str, kind: str, config: Mapping[str, schema.PayloadMeta]) -> None:
        """State a model's weights or constants."""
        name = names.weights_config(model) if kind == "weights" else names.constants_config(model)
        self.put(name, codec.encode(schema.PayloadConfig(dict(config))))

    def next_record(self, kind: str) -> str:
        """A record name for a weight or tensor constant that nothing has yet."""
        make = names.weight if kind == "weights" else names.tensor_constant
        number = sum(name.startswith(folder_of(kind)) for name in self.records)
        while make(number) in self.records:
            number += 1
        return make(number)

    def drop_samples(self, model: str) -> None:
        """Leave out the inputs that a model was exported with, which torch wants to find as an empty record."""
        from pt2kit.package.pickle_free_inputs.names import index_record

        self.records.pop(index_record(model), None)
        self.put(names.sample_inputs(model), b"")

    def drop_unused(self) -> None:
        """Leave out payload records that no config names."""
        used = {
            folder_of(kind) + meta.path_name
            for model in self.models
            for kind in ("weights", "constants")
            for meta in self.config(model, kind).values()
        }
        for name in list(self.records):
            if names.kind(name) in _PAYLOADS and name not in used:
                del self.records[name]

    def package(self) -> Package:
        """The package that these records are."""
        for record in header():
            if record.name not in self.records:
                self.records[record.name] = Part(record.size, record.read)
        layout = Layout("archive", "torch 2.9 and later", f"{self.root}/", self.models)
        return Package(PlannedArchive(self), layout)


class PlannedArchive(Archive):
    """Records that are in no file yet, as an archive; there are no checksums to compare them with."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(open_bytes(b"", name=parts.name), (), DEFAULT_LIMITS)
        self._parts = {f"{parts.root}/{name}": part for name, part in parts.records.items()}
        # What the records come from must not be collected, which would close it.
        self._origins = tuple(parts.origins)
        self._records = MappingProxyType(
            {name: Record(name, part.size, part.size, 0, 0, 0, 0, 0) for name, part in self._parts.items()}
        )
        self._data_offsets = dict.fromkeys(self._parts, 0)

    def part(self, name: str) -> Part:
        """The record of a full name, as it was planned."""
        return self._parts[name]

    def read(self, name: str, *, verify: bool = True) -> memoryview:
        """Give the content of a record.

        Raises:
            ArchiveError: no such record (A17).
            Pt2Error: what it comes from cannot be read.
        """
        del verify
        self._record(name)
        view = memoryview(self._parts[name].read())
        return view.cast("B").toreadonly() if view.nbytes else memoryview(b"")

    def read_into(self, name: str, start: int, buffer: memoryview) -> None:
        """Fill a buffer with the bytes of a record from `start` on."""
        buffer[:] = self.read(name)[start : start + buffer.nbytes]

    def sum_of(self, name: str) -> Sum:
        """Nothing to compare with: the bytes were never in a file."""
        return Sum(lambda piece, total: total, lambda total: None)

    def is_in_place(self, name: str) -> bool:
        """Whether reading a record copies nothing."""
        origin = self._parts[name].origin
        return origin is None or origin[0].is_in_place(origin[1])


def parts_of(package: Package) -> Parts:
    """All records of a package, in today's layout: as they are, or converted where it is of an older release.

    Raises:
        UnsupportedError: there is no program in it.
        ConversionError: something in it has no place in today's layout.
        Pt2Error: it cannot be read.
    """
    if not package.layout.models:
        raise UnsupportedError(package.without_program())
    root = package.layout.root.rstrip("/") or DEFAULT_ROOT
    if is_current(package):
        records = {
            package.relative(record): _copied(package, record, row.size)
            for record, row in package.records.items()
            if package.relative(record) != names.SERIALIZATION_ID
        }
        return Parts(package.name, root, records, package.layout.models, [package])
    return Parts(package.name, root, dict(_converted(package)), package.layout.models, [package])


def folder_of(kind: str) -> str:
    """Where the records of weights, or of constants, lie."""
    return names.WEIGHTS if kind == "weights" else names.CONSTANTS


def is_current(package: Package) -> bool:
    """Whether a package has today's layout, with payloads as raw records."""
    from pt2kit.package.parts import parts

    layout = package.layout
    return layout.kind == "archive" and all(
        model not in layout.methods
        and parts(package.archive, layout, model).stored_as == "records"
        and not package.stored[model].is_raised
        for model in layout.models
    )


def _converted(package: Package) -> Iterable[tuple[str, Part]]:
    """The records that a conversion to today's version would write, unwritten."""
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
            yield record.name, Part(record.size, _cut(record), raised=(package.archive, record.name))
        else:
            data = _saved(record)
            yield record.name, Part(len(data), lambda data=data: data)  # type: ignore[misc]


def _saved(record: PlannedPickle) -> bytes:
    """The bytes of a torch.save record: sparse and other compound tensors, which are few and small."""
    import io

    from pt2kit.pickles import writer as torch_save

    file = io.BytesIO()
    torch_save.dump(record.value, file, record.name)
    return file.getvalue()


def _cut(record: PlannedRecord) -> Callable[[], Any]:
    return lambda: memoryview(record.read())[: record.size]


def _copied(package: Package, record: str, size: int) -> Part:
    archive = package.archive
    if isinstance(archive, PlannedArchive):
        return archive.part(record)
    return Part(size, lambda: archive.read(record), (archive, record))
