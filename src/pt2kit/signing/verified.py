"""`Verified`: the comparison of a file with its signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pt2kit.signing.statement import Difference


@dataclass(frozen=True, slots=True)
class Verified:
    """Comparison of a file with its authentic signature. True if the file is as signed.

    Args:
        signed: "meaning", the programs and other records, or "bytes", the file itself.
        differences: the parts that are not as signed, by name; empty if there are none.
        left_out: signed parts that are missing in the file, without changing its meaning: records that are no programs.
        not_covered: parts of the file that a statement over the meaning does not cover.
    """

    signed: Literal["meaning", "bytes"]
    differences: tuple[Difference, ...] = ()
    left_out: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Return whether the file is as signed."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok
