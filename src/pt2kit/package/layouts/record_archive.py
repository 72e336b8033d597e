"""The layout of torch 2.9 and later: weights and constants are raw records, which configs list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pt2kit.package import record_names as names
from pt2kit.package.layouts.base import Layout, Parts

if TYPE_CHECKING:
    from pt2kit.package.stored import Kind, StoredPayloads, StoredProgram


class RecordArchive(Layout):
    """Archive whose configs list the raw record of each weight and constant."""

    __slots__ = ()
    kind: ClassVar[str] = "archive"
    has_configs: ClassVar[bool] = True

    def parts(self, model: str) -> Parts:
        """Return which records belong to a program.

        Raises: as `Layout.parts`.
        """
        configs = self.described_by(model, names.weights_config(model), names.constants_config(model))
        return Parts(self.program_record(model), *configs, self.sample_inputs_record(model), configs=configs)

    def read_payloads(self, model: str, kind: Kind, stored: Callable[[], StoredProgram]) -> StoredPayloads:
        """Describe the weights or constants of a program; the configs are read.

        Raises: as `Layout.read_payloads`.
        """
        from pt2kit.package.payloads import read_listed

        self.parts(model)
        return read_listed(self, model, kind, stored)


@dataclass(frozen=True, slots=True)
class MixedArchive(RecordArchive):
    """An archive of programs that were packed by different releases.

    Args:
        layouts: name of each program -> the layout that it has.
    """

    layouts: Mapping[str, Layout] = field(default_factory=dict)

    def changed(self, **fields: Any) -> Layout:
        """Return the same layouts with some fields replaced."""
        layouts = {model: layout.changed(**fields) for model, layout in self.layouts.items()}
        return replace(self, **fields, layouts=layouts)

    def parts(self, model: str) -> Parts:
        """Return which records belong to a program.

        Raises: as `Layout.parts`.
        """
        return self.layouts[model].parts(model)

    def read_payloads(self, model: str, kind: Kind, stored: Callable[[], StoredProgram]) -> StoredPayloads:
        """Describe the weights or constants of a program.

        Raises: as `Layout.read_payloads`.
        """
        return self.layouts[model].read_payloads(model, kind, stored)
