"""Context of a program's checks: the program, its location in the package, and its release of torch."""

from __future__ import annotations

from dataclasses import dataclass, field

from pt2kit import schema
from pt2kit.graph.traversal import Step, walk
from pt2kit.schema.versions import release_written


@dataclass(frozen=True, slots=True)
class ProgramContext:
    """A program to be checked.

    Args:
        program: raised to the current schema version.
        record: the record it was read from.
        stored_version: the schema version that it was stored in ("8.14", "draft").
        release: the release of torch that exported it ("2.13"), as far as the file tells, else "".
    """

    program: schema.ExportedProgram
    record: str
    stored_version: str
    release: str
    _steps: list[Step] = field(default_factory=list)

    @property
    def graph_place(self) -> str:
        """Return the location of the root graph."""
        return f"{self.record}: $.graph_module.graph"

    def steps(self) -> list[Step]:
        """Return every node of every graph, with its location.

        Raises:
            LimitError: subgraphs or dicts of arguments nest too deep (G11).
        """
        if not self._steps:
            self._steps.extend(walk(self.program, self.graph_place))
        return self._steps


def context_of(program: schema.ExportedProgram, record: str, stored_version: str) -> ProgramContext:
    """Describe a program.

    Args:
        program: raised to the current schema version.
        record: the record it was read from, for messages.
        stored_version: the schema version that it was stored in, which tells the release where nothing else does.
    """
    return ProgramContext(program, record, stored_version, release_written(program.torch_version, stored_version))
