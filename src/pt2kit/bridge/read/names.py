"""Names that torch pastes into generated source: checked to be what they claim before a graph holds them.

A value is a local variable there, a keyword of a higher-order operator stands before "=", a subgraph is an attribute.
The name of a parameter or buffer is a path: each part an identifier, or any text that can stand between double
quotes.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from typing import Final

from torch.fx import GraphModule

from pt2kit.errors import GraphError, Pt2Error

MAX_NAME: Final = 10_000
"""Characters of one name; torch makes names from module paths, which stay below a few hundred."""

_QUOTED: Final = re.compile(r'[^"\\\x00-\x1f\x7f\x85\u2028\u2029]+')
_RESERVED: Final = frozenset({"forward", "_guards_fn"})


def check_variable(name: str, where: str, error: type[Pt2Error] = GraphError) -> None:
    """Refuse a name that cannot be a variable in generated source.

    Raises:
        GraphError: (or `error`) it is no identifier, a Python keyword, `self`, or another spelling of an identifier.
    """
    fits = name.isidentifier() and not keyword.iskeyword(name) and name != "self" and len(name) <= MAX_NAME
    # Python takes identifiers that differ in spelling for one: only the spelling it keeps itself is a name.
    if not fits or not (name.isascii() or unicodedata.normalize("NFKC", name) == name):
        raise error(f"{where}: expected an identifier that is no keyword of Python, got {_shown(name)}")


def check_path(path: str, where: str) -> None:
    """Refuse the name of a parameter, buffer or constant that cannot be an attribute path in generated source.

    Raises:
        GraphError: a part is empty, holds quotes, backslashes or control characters, or would hide what modules have.
    """
    parts = path.split(".")
    for part in parts:
        if not _QUOTED.fullmatch(part) or len(part) > MAX_NAME:
            raise GraphError(f"{where}: expected names joined by dots, without quotes, got {_shown(path)}")
        if part.startswith("__") and part.endswith("__"):
            raise GraphError(f"{where}: expected names without leading and trailing '__', got {_shown(path)}")
    if parts[-1] in _RESERVED or (len(parts) == 1 and callable(vars(GraphModule).get(path))):
        raise GraphError(f"{where}: expected a name that the module does not have itself, got {_shown(path)}")


def check_module_name(name: str, where: str) -> None:
    """Refuse the dotted name of a module that cannot be an attribute path; "" is the root.

    Raises:
        GraphError: a part holds quotes, backslashes or control characters.
    """
    if name and not is_quotable(name):
        raise GraphError(f"{where}: expected a name without quotes, got {_shown(name)}")


def is_quotable(text: str) -> bool:
    """Whether a text can stand between double quotes in source as it is."""
    return len(text) <= MAX_NAME and _QUOTED.fullmatch(text) is not None


def is_pasted_safely(text: str) -> bool:
    """Whether a text can stand between single quotes inside double ones, as torch writes guards and their messages."""
    return is_quotable(text) and "'" not in text and text.isprintable()


class KeywordPath(str):
    """An attribute path with parts that are keywords of Python ("class.weight"); equal to the plain text.

    torch writes `self.class.weight` into generated source for the plain text, because "class" passes for an identifier.
    The parts of this one do not, so it writes `getattr(self, "class").weight`.
    """

    __slots__ = ()

    def split(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        """The parts; those that are keywords say that they are no identifiers."""
        return [_Part(part) if keyword.iskeyword(part) else part for part in str.split(self, sep, maxsplit)]

    def rsplit(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        """As `split`, from the right."""
        return [_Part(part) if keyword.iskeyword(part) else part for part in str.rsplit(self, sep, maxsplit)]


class _Part(str):
    __slots__ = ()

    def isidentifier(self) -> bool:
        """False: it cannot follow a dot in source."""
        return False


def attribute_path(path: str) -> str:
    """A checked path in the form that torch writes into source correctly."""
    return KeywordPath(path) if any(keyword.iskeyword(part) for part in path.split(".")) else path


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 80 else f"{name[:77]}...")
