"""Type texts of fields ("dict[str, SymInt]", "int | None"), parsed into types as data and printed.

Reads two spellings: the one of the frozen tables (`list[int]`, `int | None`, `A or B`) and the one of torch's own
`schema.yaml` (`List[int]`, `Optional[int]`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pt2kit.errors import SchemaError

MAX_TEXT = 200
"""Characters of a type's text; the longest of any version has 60. It bounds the nesting as well."""

SCALARS = ("int", "float", "str", "bool", "bytes")


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of `SCALARS`; bytes are base64 text in JSON, the infinities and nan of a float are strings."""

    name: str


@dataclass(frozen=True, slots=True)
class Ref:
    """Another type of the same table, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A JSON array whose items all have one type."""

    item: Type


@dataclass(frozen=True, slots=True)
class DictOf:
    """A JSON object with free keys whose values all have one type."""

    value: Type


@dataclass(frozen=True, slots=True)
class Nullable:
    """A value or null."""

    inner: Type


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A JSON array of fixed length."""

    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A value of one of several types that only its own shape distinguishes."""

    arms: tuple[Type, ...]


Type = Scalar | Ref | ListOf | DictOf | Nullable | TupleOf | AnyOf

_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|[\[\](),|])")


def parse_type(text: str, where: str) -> Type:
    """Turn a type's text into data.

    Args:
        text: as the field tables write it.
        where: the field, for messages.

    Raises:
        SchemaError: the text is no type.
    """
    try:
        return _parsed(text)
    except ValueError as error:
        raise SchemaError(f"{where}: {error}") from None


# The tables use some ninety texts, thousands of times.
@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> Type:
    if len(text) > MAX_TEXT:
        raise ValueError(f"expected a type of at most {MAX_TEXT} characters, got {len(text)}")
    tokens = [match[1] for match in _TOKEN.finditer(text)]
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise ValueError(f"expected a type like list[int] or str | None, got {text!r}")
    kind, rest = _alternatives(tokens)
    if rest:
        raise ValueError(f"expected the end of the type {text!r}, got {rest[0]!r}")
    return kind


def _alternatives(tokens: list[str]) -> tuple[Type, list[str]]:
    first, rest = _one(tokens)
    arms, nullable = [first], False
    while rest and rest[0] in ("|", "or"):
        if rest[0] == "|" and rest[1:2] == ["None"]:
            nullable, rest = True, rest[2:]
            continue
        arm, rest = _one(rest[1:])
        arms.append(arm)
    kind = arms[0] if len(arms) == 1 else AnyOf(tuple(arms))
    return (Nullable(kind) if nullable else kind), rest


def _one(tokens: list[str]) -> tuple[Type, list[str]]:
    name = tokens[0] if tokens else ""
    if not name.isidentifier() or name in ("or", "None"):
        raise ValueError(f"expected the name of a type, got {name or 'nothing'!r}")
    if tokens[1:2] != ["["]:
        return (Scalar(name) if name in SCALARS else Ref(name)), tokens[1:]
    arguments, rest = _arguments(tokens[2:])
    match name.lower(), arguments:
        case "list", [item]:
            return ListOf(item), rest
        case "dict", [Scalar("str"), value]:
            return DictOf(value), rest
        case "optional", [inner]:
            return Nullable(inner), rest
        case "tuple", items:
            return TupleOf(tuple(items)), rest
    raise ValueError(f"expected list[T], dict[str, T], tuple[…] or Optional[T], got {name}[…]")


def _arguments(tokens: list[str]) -> tuple[list[Type], list[str]]:
    if tokens[:3] == ["(", ")", "]"]:
        return [], tokens[3:]
    first, rest = _alternatives(tokens)
    arguments = [first]
    while rest[:1] == [","]:
        following, rest = _alternatives(rest[1:])
        arguments.append(following)
    if rest[:1] != ["]"]:
        raise ValueError(f"expected ] after {len(arguments)} arguments, got {(rest or ['nothing'])[0]!r}")
    return arguments, rest[1:]


def type_text(kind: Type) -> str:
    """Return the text of a type, in the spelling of the frozen tables."""
    match kind:
        case Scalar(name) | Ref(name):
            return name
        case ListOf(item):
            return f"list[{type_text(item)}]"
        case DictOf(value):
            return f"dict[str, {type_text(value)}]"
        case Nullable(inner):
            return f"{type_text(inner)} | None"
        case TupleOf(items):
            return f"tuple[{', '.join(type_text(item) for item in items) or '()'}]"
        case AnyOf(arms):
            return " or ".join(type_text(arm) for arm in arms)


def inner_types(kind: Type) -> tuple[Type, ...]:
    """Return the types directly inside a type; none for scalars and references."""
    match kind:
        case ListOf(inner) | DictOf(inner) | Nullable(inner):
            return (inner,)
        case TupleOf(inners) | AnyOf(inners):
            return inners
        case _:
            return ()


def references(kind: Type) -> Iterator[str]:
    """Yield the names of the types of the table that a type mentions."""
    if isinstance(kind, Ref):
        yield kind.name
    for inner in inner_types(kind):
        yield from references(inner)
