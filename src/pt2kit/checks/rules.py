"""The rules of this room, by id: the ids that problems carry as `rule` and that the documentation lists.

An id keeps its meaning for ever; a rule that is dropped leaves a hole in the numbering.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "X1": "sample inputs are a pickle",
        "X2": "a tensor is stored as a pickle",
        "X3": "a custom object is stored as a pickle",
        "X4": "guards are source code",
        "X5": "an expression is evaluated as Python, and is more than an expression",
        "X6": "a name that is pasted into generated source is more than a name",
        "X7": "an operator is looked up outside the dispatcher and the usual functions",
        "X8": "compiled code is loaded into the process",
        "X9": "a tree spec names a class that is imported",
    }
)
"""Rule id -> what a safety finding of that rule says of the file."""
