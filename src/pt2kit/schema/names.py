"""Names in graphs: prefixes of operators, and variable names that are valid in the source that torch generates from a
graph, with its names as variables.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

OPS: Final = "torch.ops."
"""Start of the target of an operator of torch's dispatcher: "torch.ops.aten.add.Tensor"."""
ATEN_OPS: Final = "torch.ops.aten."
HIGHER_ORDER_OPS: Final = "torch.ops.higher_order."

MAX_NAME: Final = 10_000
"""Characters of one name; torch makes names from module paths, which stay below a few hundred."""

GLOBALS: Final[Mapping[str, str]] = {
    "torch": "import torch",
    "fx_pytree": "import torch.fx._pytree as fx_pytree",
    "pytree": "import torch.utils._pytree as pytree",
    "device": "from torch import device",
    "inf": "from math import inf",
    "nan": "from math import nan",
    "NoneType": "NoneType = type(None)",
}
"""Name of generated source that a variable of the same name would hide -> the statement that binds it.

Source: `_custom_builtins` in torch/fx/graph.py, 2.13.
"""


def is_variable(name: str) -> bool:
    """Return whether a value or argument can have a name: an identifier as Python spells it, no keyword, not `self`."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and name not in ("self", "__debug__")  # the parameter of the generated function; what nothing is assigned to
        and len(name) <= MAX_NAME
        and is_own_spelling(name)
    )


def is_own_spelling(name: str) -> bool:
    """Return whether Python keeps the spelling of an identifier; it treats some different spellings as one
    identifier."""
    return name.isascii() or unicodedata.normalize("NFKC", name) == name


def free_name(stem: str, is_taken: Callable[[str], bool], first: int = 1, *, separator: str = "_") -> str:
    """Return the first of "stem_1", "stem_2", … that is not taken.

    Args:
        stem: the beginning of the name.
        is_taken: returns whether a name is taken.
        first: the first number to try.
        separator: what is put between stem and number.
    """
    number = first
    while is_taken(name := f"{stem}{separator}{number}"):
        number += 1
    return name
