"""The rules a graph signature must keep, by id: what errors and problems carry as `rule` and the documentation lists.

An id keeps its meaning for ever; a rule that is dropped leaves a hole in the numbering.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "S1": "there are as many input_specs as graph inputs",
        "S2": "there are as many output_specs as graph outputs",
        "S3": "an input spec says of the graph input at its position what the graph says: name or constant, and kind",
        "S4": "an output spec says of the graph output at its position what the graph says",
        "S5": "inputs are tokens, then parameters, buffers, constants and custom objects, then user inputs",
        "S6": "outputs are tokens, then mutations, then user outputs and the loss, then gradients",
        "S7": "what is mutated or has a gradient is a parameter, a buffer or a user input of the same signature",
        "S8": "inputs with one target are of one kind, and the graph says the same of each",
        "S9": "there is at most one loss",
        "S10": "a target is names with dots between them, without quotes, backslashes and control characters",
        "S11": "a spec has the kind of argument and the target that its kind needs, a buffer its persistent flag",
        "S12": "an input or output of the user is one value or one constant",
        "S13": "there are as many output tokens as input tokens",
        "S14": "the placeholder of a constant input has an identifier as its name, and one of its own",
    }
)
"""Rule id -> what must hold."""

_SHOWN: Final = 60


def show(name: object) -> str:
    """Quote a name or a constant from the file for a message, cut to a length that a line can hold."""
    text = repr(name[: _SHOWN + 1] if isinstance(name, str) else name)
    return text if len(text) <= _SHOWN + 2 else f"{text[:_SHOWN]}…"
