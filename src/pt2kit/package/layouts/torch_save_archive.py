"""Archives with the torch.save files of weights and constants: torch 2.8, and the plain zips of torch 2.1 to 2.7."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pt2kit.errors import ArchiveError, PayloadError, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.layouts.base import Layout, Parts
from pt2kit.package.layouts.container import payloads_inside
from pt2kit.package.payloads import view_all
from pt2kit.pickles.reader import globals_in, read_payload
from pt2kit.pickles.values import TensorLike
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import FAKE_TENSOR, fake_tensor, from_pickled
from pt2kit.zip.reader import Storage

if TYPE_CHECKING:
    from pt2kit.package.stored import Kind, Payload, StoredPayloads, StoredProgram
    from pt2kit.zip.reader import Archive


class TorchSaveArchive(Layout):
    """An archive with the torch.save files of weights and constants."""

    __slots__ = ()
    kind: ClassVar[str] = "archive-2.8"

    def parts(self, model: str) -> Parts:
        """Return which records belong to a program.

        Raises: as `Layout.parts`.
        """
        pickles = (names.weights_payload(model), names.constants_payload(model))
        if self.first(*(configs := (names.weights_config(model), names.constants_config(model)))):
            found = ", ".join(name for name in (*configs, *pickles) if self.first(name))
            raise UnsupportedError(
                f"{self.where(model)}: expected its weights and constants either in config records or in .pt files, "
                f"got both: {found}",
                rule="A25",
            )
        records = self.described_by(model, *pickles)
        return Parts(self.program_record(model), *records, self.sample_inputs_record(model), pickles=records)

    def read_payloads(self, model: str, kind: Kind, stored: Callable[[], StoredProgram]) -> StoredPayloads:
        """Describe the weights or constants of a program; the pickles are read, no tensors.

        Raises: as `Layout.read_payloads`.
        """
        place, program = self.parts(model), stored()
        record = place.weights if kind == "weights" else place.constants
        payloads = read_saved(self.archive, record, kind) | payloads_inside(place.program, kind, program)
        return view_all(self, model, payloads, place.program if record is None else record, program)


def read_saved(archive: Archive, record: str | None, kind: Kind) -> dict[str, Payload]:
    """Describe the entries of a torch.save file; none if there is no file, or an empty one.

    Weights are tensors. Constants may be script objects and others: each of those has the whole file as its payload.

    Raises:
        PayloadError: anything but a dict from names to tensors.
        Pt2Error: as `pickles.reader.read_payload`.
    """
    if record is None or not (data := archive.read(record)):
        return {}
    trusted = frozenset(globals_in(data, record)) if kind == "constants" else frozenset((FAKE_TENSOR,))
    value = read_payload(data, record, trust=trusted)
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise PayloadError(f"{record}: expected a dict from names to tensors, got {_describe(value)}")
    whole = Storage(record, data.nbytes, lambda: data, in_place=archive.source.is_local)
    payloads: dict[str, Payload] = {}
    for name, entry in value.items():
        if isinstance(entry, TensorLike) or kind == "weights" or fake_tensor(entry, record) is not None:
            payloads[name] = from_pickled(entry, name=name, where=record)
        else:
            payloads[name] = OpaquePayload(name, whole, "opaque")
    return payloads


def _describe(value: Any) -> str:
    return "one with other keys" if isinstance(value, Mapping) else f"a {type(value).__name__}"


class PlainZip(TorchSaveArchive):
    """A zip whose records have the names of their kinds."""

    __slots__ = ()
    kind: ClassVar[str] = "plain-zip"
    is_archive: ClassVar[bool] = False
    is_older: ClassVar[bool] = True

    def program_record(self, model: str) -> str:
        """Return the full name of the record that holds the program."""
        return names.PLAIN_PROGRAM

    def sample_inputs_record(self, model: str) -> str | None:
        """Return the full name of the record that holds the sample inputs, from torch 2.4 on."""
        return self.first(names.PLAIN_EXAMPLE_INPUTS)

    def extra_files(self) -> Mapping[str, str]:
        """Return the full name of the record of each of the user's files, by its name."""
        return {name: record for record in self.archive.records if (name := names.plain_extra_name(record))}

    def parts(self, model: str) -> Parts:
        """Return which records belong to the program.

        Raises: as `Layout.parts`.
        """
        weights = self.first(names.PLAIN_STATE_DICT, names.PLAIN_STATE_DICT_OLD)
        if weights is None:
            raise ArchiveError(
                f"{self.archive.source.name}: expected a record {names.PLAIN_STATE_DICT} in a plain zip, got none",
                rule="A25",
            )
        constants = self.first(names.PLAIN_CONSTANTS, names.PLAIN_CONSTANTS_OLD)
        pickles = (weights,) if constants is None else (weights, constants)
        return Parts(names.PLAIN_PROGRAM, weights, constants, self.sample_inputs_record(model), pickles=pickles)
