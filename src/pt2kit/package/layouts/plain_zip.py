"""The layout of torch 2.1 to 2.7: a zip without root folder, of one program and its torch.save files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pt2kit.errors import ArchiveError
from pt2kit.package import record_names as names
from pt2kit.package.layouts.base import Parts
from pt2kit.package.layouts.torch_save_archive import TorchSaveArchive
from pt2kit.package.programs import read_program

if TYPE_CHECKING:
    from pt2kit.package.stored import ReadContext, StoredProgram


class PlainZip(TorchSaveArchive):
    """A zip whose records have the names of their kinds."""

    __slots__ = ()
    kind: ClassVar[str] = "plain-zip"
    is_archive: ClassVar[bool] = False

    def program_record(self, model: str) -> str:
        """Return the full name of the record that holds the program."""
        del model
        return names.PLAIN_PROGRAM

    def sample_inputs_record(self, model: str) -> str | None:
        """Return the full name of the record that holds the sample inputs, from torch 2.4 on."""
        del model
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

    def read_program(self, model: str, context: ReadContext) -> StoredProgram:
        """Read the program, which is of an older schema.

        Raises: as `Layout.read_program`.
        """
        reader = self.older_reader(model, context)
        return read_program(self.archive, names.PLAIN_PROGRAM, names.PLAIN_PROGRAM, reader, is_older=True)
