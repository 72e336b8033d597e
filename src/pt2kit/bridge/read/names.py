"""Validation of names that torch pastes into generated source, before a graph contains them.

A value is a local variable there, a keyword of a higher-order operator comes before "=", a subgraph is an attribute.
The name of a parameter or buffer is a path: each part an identifier, or any text that can be between double quotes.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from typing import Final

from pt2kit import schema
from pt2kit.errors import GraphError, Pt2Error
from pt2kit.graph.argument_values import ValueKind
from pt2kit.graph.traversal import tables
from pt2kit.messages import quote
from pt2kit.schema.names import GLOBALS, MAX_NAME, ROOT_ATTRIBUTES, is_reserved, is_variable
from pt2kit.signature.consistency import is_target, targets_below

_QUOTED: Final = re.compile(r'[^"\\\x00-\x1f\x7f\x85\u2028\u2029]+')


def check_variable(name: str, where: str, error: type[Pt2Error] = GraphError, rule: str = "") -> None:
    """Refuse a name that cannot be a variable in generated source.

    Raises:
        GraphError: (or `error`) it is no identifier, a Python keyword, `self`, or another spelling of an identifier.
    """
    if not is_variable(name):
        raise error(f"{where}: expected an identifier that is no keyword of Python, got {quote(name)}", rule=rule)


def check_value_names(graph: schema.Graph, where: str) -> dict[str, ValueKind]:
    """Return the kind of each value of a graph; each can be a variable in generated source, and has one description.

    Raises:
        GraphError: a name that is no variable, or that has two descriptions.
    """
    kind_by_name: dict[str, ValueKind] = {}
    for kind, table in tables(graph).items():
        for name in table:
            check_variable(name, f"{where}: name of a value")
            if name in kind_by_name:
                raise GraphError(f"{where}: expected one description of each value, got two of {name}")
            kind_by_name[name] = kind
    return kind_by_name


def check_path(path: str, where: str) -> None:
    """Refuse the name of a parameter, buffer or constant that cannot be an attribute path in generated source.

    Raises:
        GraphError: it is no target (S10), or would hide an attribute of modules.
    """
    if not is_target(path):
        message = f"{where}: expected names joined by dots, without quotes, as Python spells them, got {quote(path)}"
        raise GraphError(message, rule="S10")
    if is_reserved(path):
        raise GraphError(f"{where}: expected a name that modules do not have themselves, got {quote(path)}", rule="S10")


def check_apart(paths: Iterable[str], subgraphs: Iterable[str], where: str) -> None:
    """Refuse names if one is a tensor or a subgraph and is also a module in the path of another.

    Raises:
        GraphError: the first such name.
    """
    known = set(paths)
    subgraphs = list(subgraphs)
    below = targets_below([*known, *subgraphs], known)
    wrong = next((name for name in known if name in below), None) or next(
        (name for name in subgraphs if name in known or name in below or name in ROOT_ATTRIBUTES), None
    )
    if wrong is not None:
        raise GraphError(f"{where}: expected one attribute of each name, got {quote(wrong)} for two things")


def argument_target(name: str) -> str:
    """Return the argument name in a graph's function for the value `name`."""
    return f"{name}_argument" if name in GLOBALS else name


def is_quotable(text: str) -> bool:
    """Return whether a text can be put between double quotes in source unchanged."""
    return len(text) <= MAX_NAME and _QUOTED.fullmatch(text) is not None


def is_pasted_safely(text: str) -> bool:
    """Return whether a text is safe between single quotes inside double ones, as torch writes guards and messages."""
    return is_quotable(text) and "'" not in text and text.isprintable()


class KeywordPath(str):
    """An attribute path with parts that are keywords of Python ("class.weight"); equal to the plain text.

    torch writes `self.class.weight` into generated source for the plain text, because "class" passes for an identifier.
    The parts of this one do not, so it writes `getattr(self, "class").weight`.
    """

    __slots__ = ()

    def split(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        """Return the parts; those that are keywords report that they are no identifiers."""
        return [_Part(part) if keyword.iskeyword(part) else part for part in str.split(self, sep, maxsplit)]

    def rsplit(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        """Return the parts as `split`, from the right."""
        return [_Part(part) if keyword.iskeyword(part) else part for part in str.rsplit(self, sep, maxsplit)]


class _Part(str):
    __slots__ = ()

    def isidentifier(self) -> bool:
        """Return False: the part cannot follow a dot in source."""
        return False


def attribute_path(path: str) -> str:
    """Return a checked path in the form that torch writes into source correctly."""
    return KeywordPath(path) if any(keyword.iskeyword(part) for part in path.split(".")) else path
