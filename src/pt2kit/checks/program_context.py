"""One program and what its checks need to know of it: where it stands, and which release of torch it is of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from pt2kit import schema
from pt2kit.graph.traversal import Step, walk

_RELEASE: Final = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.|$|\+|a|rc)", re.ASCII)


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
        """The place of the root graph."""
        return f"{self.record}: $.graph_module.graph"

    def steps(self) -> list[Step]:
        """Every node of every graph, with its place.

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
    match = _RELEASE.match(program.torch_version)
    if match:
        return ProgramContext(program, record, stored_version, f"{match[1]}.{match[2]}")
    releases = next((row.releases for row in schema.LOG if row.number == stored_version), ())
    return ProgramContext(program, record, stored_version, releases[0] if len(releases) == 1 else "")
