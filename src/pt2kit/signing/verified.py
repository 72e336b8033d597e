"""`Verified`: how a file compares with what was signed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pt2kit.signing.statement import Difference


@dataclass(frozen=True, slots=True)
class Verified:
    """What an authentic signature says of a file. True where the file is as signed.

    Args:
        signed: "meaning", the programs and what is beside them, or "bytes", the file itself.
        differences: what is not as signed, by name; empty where all is.
        left_out: what was signed and is not in the file, without changing what it means: records beside the programs.
        not_covered: what the file has that a statement over the meaning does not speak of.
    """

    signed: Literal["meaning", "bytes"]
    differences: tuple[Difference, ...] = ()
    left_out: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the file is as signed."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok
