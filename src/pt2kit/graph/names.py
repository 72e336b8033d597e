"""A name -> whether it can be a variable in the source that torch generates from a graph."""

from __future__ import annotations

import keyword
import unicodedata
from typing import Final

MAX_NAME: Final = 10_000
"""Characters of one name; torch makes names from module paths, which stay below a few hundred."""

GLOBALS: Final = frozenset(("torch", "fx_pytree", "pytree", "device", "inf", "nan", "NoneType"))
"""Names of generated source that a variable of the same name would hide.

Source: `_custom_builtins` in torch/fx/graph.py, 2.13.
"""


def is_variable(name: str) -> bool:
    """Whether a value or argument can have a name: an identifier as Python spells it, no keyword, not `self`."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and name not in ("self", "__debug__")  # the parameter of the generated function; what nothing is assigned to
        and len(name) <= MAX_NAME
        and is_own_spelling(name)
    )


def is_own_spelling(name: str) -> bool:
    """Whether Python keeps an identifier as it is written; it takes identifiers that differ in spelling for one."""
    return name.isascii() or unicodedata.normalize("NFKC", name) == name
