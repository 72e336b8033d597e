"""The interface of a layout: which records a program has, and how the program and its payloads are read from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pt2kit.errors import ArchiveError, JsonError, PayloadError, SchemaError
from pt2kit.package import record_names as names
from pt2kit.package.programs import ReadOlder, read_program
from pt2kit.package.stored import ReadContext
from pt2kit.zip.chosen_names import show_name

if TYPE_CHECKING:
    from pt2kit.package.stored import Kind, StoredPayloads, StoredProgram
    from pt2kit.zip.reader import Archive, Storage

PLAIN_MODEL: Final = "model"
"""The name of the one program of a plain zip, and of a file that is one program."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Full names of the records that belong to one program; None where there is none.

    Args:
        program: the JSON record.
        weights, constants: the record that lists or holds them.
        sample_inputs: the torch.save file of (args, kwargs); it may be empty.
        configs: those of `weights` and `constants` that list raw records.
        pickles: those that are torch.save files.
    """

    program: str
    weights: str | None = None
    constants: str | None = None
    sample_inputs: str | None = None
    configs: tuple[str, ...] = ()
    pickles: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Return the records that exist."""
        found = (self.program, self.weights, self.constants, self.sample_inputs)
        return tuple(record for record in found if record is not None)


@dataclass(frozen=True, slots=True)
class Layout:
    """Arrangement of the records of one archive. This class has what an archive below one root folder has.

    Args:
        archive: the records.
        root: what precedes every record's name, "mlp/"; "" in a plain zip.
        models: names of the programs in directory order; a plain zip has one, "model".
        releases: the releases of torch that write this, as text.
        methods: name of a program -> the model it is a method of, which its record is named after, and the method's
            name; for the containers of schema 8.6 alone.
        context: what reading programs of older versions may need.
    """

    archive: Archive = field(repr=False, compare=False)
    root: str
    models: tuple[str, ...]
    releases: str
    methods: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    context: ReadContext = field(default_factory=ReadContext, repr=False, compare=False)

    kind: ClassVar[str]
    """The layout's name in reports: "archive", "archive-2.8", "plain-zip", "model", "json"."""
    is_archive: ClassVar[bool] = True
    """True if any number of programs and other records are below one root folder."""
    is_text: ClassVar[bool] = False
    """True if the file is one JSON text."""
    is_older: ClassVar[bool] = False
    """True if programs are of an older schema, so that reading them as current ones need not be tried."""
    has_configs: ClassVar[bool] = False
    """True if weights and constants are raw records that configs list."""

    def changed(self, **fields: Any) -> Layout:
        """Return the same layout with some fields replaced."""
        return replace(self, **fields)

    def record(self, relative: str) -> str:
        """Return the full name of a record given by its name below the root folder."""
        return self.root + relative

    def relative(self, record: str) -> str:
        """Return the name of a record below the root folder: "mlp/models/model.json" -> "models/model.json"."""
        return record.removeprefix(self.root)

    def program_record(self, model: str) -> str:
        """Return the full name of the record that holds a program, whatever else is missing."""
        holder, _ = self.methods.get(model, (model, None))
        return self.record(names.model_json(holder))

    def sample_inputs_record(self, model: str) -> str | None:
        """Return the full name of the record that holds a program's sample inputs, if any; it may be empty."""
        return self.first(names.sample_inputs(model))

    def extra_files(self) -> Mapping[str, str]:
        """Return the full name of the record of each file that the user put next to the programs, by its name."""
        relative = {record: self.relative(record) for record in self.archive.records}
        return {name: record for record, short in relative.items() if (name := names.extra_name(short))}

    def parts(self, model: str) -> Parts:
        """Return which records belong to a program, from names alone; payloads that it names itself are left out.

        Raises:
            ArchiveError: a record that describes weights or constants is missing (A25).
            UnsupportedError: they are described twice, in two ways (A25).
        """
        return Parts(self.program_record(model), sample_inputs=self.sample_inputs_record(model))

    def read_program(self, model: str) -> StoredProgram:
        """Read a program, upgraded to the current schema version.

        Raises: as `programs.read_program`.
        """
        record = self.program_record(model)
        older = self._older_reader(model)
        return read_program(self.archive, record, self.relative(record), older, is_older=self.is_older)

    def _older_reader(self, model: str) -> ReadOlder:
        """Return the reader of a program of an older schema, which is imported when it is called."""
        _, method = self.methods.get(model, (model, None))

        def read(data: memoryview, where: str, refusal: SchemaError | JsonError | None) -> StoredProgram:
            from pt2kit.package.legacy_programs import read_older

            return read_older(data, where, self.context, method, refusal)

        return read

    def read_payloads(self, model: str, kind: Kind, stored: Callable[[], StoredProgram]) -> StoredPayloads:
        """Describe the weights or constants of a program; no tensor is read.

        Args:
            model: the program's name.
            kind: which of the two.
            stored: returns the program, whose graph states types and sizes.

        Raises:
            ArchiveError: a record is missing or damaged.
            JsonError, SchemaError: a config that is none.
            PayloadError, UnsupportedError, LimitError: metadata that contradicts its record or the graph.
        """
        raise NotImplementedError

    def payload_at(self, path: str, name: str) -> Storage:
        """Return the bytes that a container names by a path; `name` is that of the tensor.

        Raises:
            PayloadError, UnsupportedError: they cannot be read.
        """
        if self.record(path) not in self.archive.records:
            raise PayloadError(f"{name!a}: expected a record {path[:200]!a}, got none of that name", rule="P2")
        return self.archive.storage(self.record(path))

    def producer(self, releases: tuple[str, ...]) -> str:
        """Return which torch wrote a program that does not state it.

        Args:
            releases: those that write the program's schema version.
        """
        return f"torch {releases[0]}" if len(releases) == 1 else self.releases

    def first(self, *candidates: str) -> str | None:
        """Return the full name of the first of some records that exists."""
        return next((name for name in map(self.record, candidates) if name in self.archive.records), None)

    def described_by(self, model: str, weights: str, constants: str) -> tuple[str, str]:
        """Return the full names of the records that describe a program's weights and constants.

        Args:
            model: the program's name.
            weights, constants: their names below the root folder.

        Raises:
            ArchiveError: one of them does not exist (A25).
        """
        for name in (weights, constants):
            if not self.first(name):
                raise ArchiveError(f"{self.where(model)}: expected a record {show_name(name)}, got none", rule="A25")
        return self.record(weights), self.record(constants)

    def where(self, model: str) -> str:
        """Return the name of a program's record for messages."""
        return f"{self.archive.source.name}: {show_name(names.model_json(model))}"
