"""Operator schemas of every release of torch, from a table that ships with the package, and their parser; no torch.

`history/operators.txt` is one table of all releases: its first line names them, a line "@ 2.1-2.4 2.6" lists the
releases of the lines below it, up to the next. A line is the text of an operator's schema as torch prints it, the name
of a higher-order operator ("higher_order::cond"), or that of a Python function that programs call ("_operator.add").
`tools/operator_schemas.py` writes it from installations of the releases.

    operators_of("2.6")["aten.add.Tensor"]     the text of one schema
    find_operator("aten.add.Tensor", "2.6")    the same, parsed

A schema has parameters and results:

    aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)

A type is a name ("Tensor", "SymInt", "Dict(str, Tensor)"), then "?" for None, "[]" for a list and "[2]" for a list that
a single value may replace, from the inside out. Brackets after it declare aliases: "(a)" is a view, "(a!)" is written
to, "(a -> *)" goes into something else.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pt2kit.data_files import data_file
from pt2kit.errors import VersionError
from pt2kit.schema.versions import LOG

_SCHEMA: Final = re.compile(r"(?P<name>(?:\w+::)?[\w.]+)\((?P<parameters>.*)\) -> (?P<results>.*)")
_ITEM: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]|[^,"()\[])+')
_BASE: Final = re.compile(r"(?:Dict|Future|RRef|Await)\([^()]*\)|\([^()]*\)|[\w.]+")
_ALIAS: Final = re.compile(r"\(([^()]*)\)")
_DECLARATION: Final = re.compile(r"(?P<type>.+?) (?P<name>\w+)(?:=(?P<default>.*))?")
_WRAPPER: Final = re.compile(r"(Optional|List)\[(.*)\]")
_OPEN: Final = "..."

RELEASES: Final = tuple(release for version in LOG for release in version.releases)
"""The releases of torch, oldest first. The table has them all once `tools/operator_schemas.py` has seen the newest."""

COMPLETE: Final = frozenset(("aten", "prim", "prims"))
"""The namespaces that every build of a release registers whole; others depend on the build and on what is imported."""

_DIGITS: Final = 9
"""Digits of one part of a release; a longer one is no number that a release has."""
_HIGHER_ORDER: Final = "higher_order::"


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a parameter or a result.

    Args:
        base: of the single value: "Tensor", "SymInt", "ScalarType", "Dict(str, t)".
        suffix: its modifiers, from the inside out: "" a value, "?" or None, "[]" a list, "?[]" a list with Nones.
        length: of a list that a single value may replace ("int[2]"), else 0.
        alias: the memory it shares: "a" with other values of that name, "a!" which is written to; "" with nothing.
    """

    base: str
    suffix: str
    length: int
    alias: str

    @property
    def is_written(self) -> bool:
        """Return whether the operator writes into it."""
        return "!" in self.alias

    @property
    def is_list(self) -> bool:
        """Return whether it is a list of anything."""
        return "[]" in self.suffix

    @property
    def is_optional(self) -> bool:
        """Return whether None may replace the whole."""
        return self.suffix.endswith("?")

    def __str__(self) -> str:
        return self.base + (self.suffix.replace("[]", f"[{self.length}]", 1) if self.length else self.suffix)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operator.

    Args:
        name: as a call names it.
        type: of its value.
        default: its default as torch prints it ("1", "None", "[0, 1]", '"none"'); None if it is required.
        is_keyword_only: it comes after the "*".
    """

    name: str
    type: ValueType
    default: str | None
    is_keyword_only: bool

    @property
    def is_required(self) -> bool:
        """Return whether every call must pass it."""
        return self.default is None


@dataclass(frozen=True, slots=True)
class Operator:
    """Schema of an operator.

    Args:
        name: "aten.add.Tensor"; the overload without a name is "default".
        parameters: name -> parameter, in order.
        results: the type of each result.
        is_open: it accepts, or returns, any number of further values.
    """

    name: str
    parameters: Mapping[str, Parameter]
    results: tuple[ValueType, ...]
    is_open: bool

    @property
    def is_view(self) -> bool:
        """Return whether some result shares memory with an argument that is not written."""
        return any(result.alias and not result.is_written for result in self.results)


def operator_name(text: str) -> str:
    """Return the name that a schema's text begins with, as targets have it: "aten.add.Tensor", "aten.relu.default"."""
    name = text.partition("(")[0].replace("::", ".")
    return name if name.count(".") > 1 else f"{name}.default"


# A pure function; programs call the same few operators over and over.
@functools.lru_cache(maxsize=4096)
def parse_operator(text: str) -> Operator:
    """Read the text of one schema.

    Raises:
        ValueError: it is not the text of a schema.
    """
    if not (match := _SCHEMA.fullmatch(text)):
        raise ValueError(f"schema of an operator: expected name(parameters) -> results, got {text[:80]!r}")
    parameters: dict[str, Parameter] = {}
    is_open = is_keyword_only = False
    for item in _items(match["parameters"]):
        if item == _OPEN:
            is_open = True
        elif item == "*":
            is_keyword_only = True
        else:
            parameter = _parameter(item, is_keyword_only)
            parameters[parameter.name] = parameter
    results = _items(_unwrapped(match["results"]))
    return Operator(
        operator_name(text),
        MappingProxyType(parameters),
        tuple(_result(item) for item in results if item != _OPEN),
        is_open or _OPEN in results,
    )


def _items(text: str) -> list[str]:
    """Split a list at its commas; those inside quotes and brackets do not count."""
    return [item.strip() for item in _ITEM.findall(text)]


def _unwrapped(results: str) -> str:
    """Return results without the brackets around several of them.

    A tuple that is one result has brackets of its own.
    """
    return results[1:-1] if results.startswith("(") and results.endswith(")") else results


def _parameter(item: str, is_keyword_only: bool) -> Parameter:
    if not (match := _DECLARATION.fullmatch(item)):
        raise ValueError(f"schema of an operator: expected a type and a name, got {item[:80]!r}")
    return Parameter(match["name"], parse_type(match["type"]), match["default"], is_keyword_only)


def _result(item: str) -> ValueType:
    match = _DECLARATION.fullmatch(item)
    return parse_type(match["type"] if match and not item.endswith(")") else item)


# Types repeat; there are some two hundred.
@functools.lru_cache(maxsize=1024)
def parse_type(text: str) -> ValueType:
    """Read a type as a schema has it ("int[2]?"), or as torch prints one by itself ("Optional[List[int]]").

    The second does not show whether a single value may replace a list; the length is then 1.

    Raises:
        ValueError: it is not the text of a type.
    """
    text = _as_in_schemas(text)
    if not (match := _BASE.match(text)):
        raise ValueError(f"schema of an operator: expected a type, got {text[:80]!r}")
    behind = text[match.end() :]
    alias = alias_match[1] if (alias_match := _ALIAS.search(behind)) else ""
    suffix = _ALIAS.sub("", behind)
    length = re.search(r"\[(\d+)\]", suffix)
    return ValueType(match[0], re.sub(r"\d+", "", suffix), int(length[1]) if length else 0, alias)


def _as_in_schemas(text: str) -> str:
    """Return the spelling of schemas: "int[1]?" for "Optional[List[int]]"."""
    suffix = ""
    while match := _WRAPPER.fullmatch(text):
        suffix = ("?" if match[1] == "Optional" else "[1]") + suffix
        text = match[2]
    return ("Scalar" if text == "number" else text) + suffix


@dataclass(frozen=True, slots=True)
class ReleaseOperators:
    """Operators that one release registers.

    Args:
        schemas: "aten.add.Tensor" -> the text of its schema.
        higher_order: the names of the operators that take subgraphs ("cond").
        functions: the Python functions that a program may call ("_operator.add", "torch.sym_max").
    """

    schemas: Mapping[str, str]
    higher_order: frozenset[str]
    functions: frozenset[str]


def known_releases() -> tuple[str, ...]:
    """Return the releases that the table has, oldest first."""
    return _table()[0]


def nearest(release: str) -> str:
    """Return the release of the table for programs of a release: itself, the next newer one, or the newest.

    Args:
        release: "2.6"; "" or any other text if it is not known.
    """
    known = known_releases()
    if release in known:
        return release
    order = _order(release)
    return next((one for one in known if order and _order(one) > order), known[-1])


def _order(release: str) -> tuple[int, ...]:
    return tuple(
        int(part) for part in release.split(".") if len(part) <= _DIGITS and part.isascii() and part.isdecimal()
    )


def operators_of(release: str) -> Mapping[str, str]:
    """Return the schemas of one release ("2.6") as texts, by overload name ("aten.add.Tensor").

    Raises:
        VersionError: a release that is missing in the table.

    Cost: some 10 ms for the first call with a release; nothing for the next.
    """
    return release_operators(release).schemas


def find_operator(name: str, release: str) -> Operator | None:
    """Return the parsed schema of one overload; None if the release has none of that name.

    Args:
        name: "aten.add.Tensor", without "torch.ops.".
        release: "2.6".

    Raises:
        VersionError: a release that is missing in the table.
    """
    text = operators_of(release).get(name)
    return None if text is None else parse_operator(text)


# Files of the package never change; a release is read on access.
@functools.cache
def release_operators(release: str) -> ReleaseOperators:
    """Return everything that one release registers.

    Raises:
        VersionError: a release that is missing in the table.
    """
    releases, groups = _table()
    if release not in releases:
        known = ", ".join(releases)
        raise VersionError(f"operators: expected a release of torch that the table has ({known}), got {release!r}")
    lines = [line for spans, group in groups if release in spans for line in group]
    schemas = {operator_name(line): line for line in lines if "(" in line}
    higher_order = (line.removeprefix(_HIGHER_ORDER) for line in lines if line.startswith(_HIGHER_ORDER))
    functions = (line for line in lines if "::" not in line)
    return ReleaseOperators(MappingProxyType(schemas), frozenset(higher_order), frozenset(functions))


@functools.cache
def _table() -> tuple[tuple[str, ...], tuple[tuple[frozenset[str], tuple[str, ...]], ...]]:
    """Return the releases of the file, and its lines by the releases that have them."""
    releases, groups = read_groups("schema/history/operators.txt")
    return releases, tuple((releases_in(spans, releases), lines) for spans, lines in groups)


def read_groups(place: str) -> tuple[tuple[str, ...], list[tuple[str, tuple[str, ...]]]]:
    """Read a table of this package: a line of releases, then groups of lines, each below a line that begins with "@ ".

    Returns:
        the releases, oldest first; and the first line of each group, with the others.
    """
    head, *parts = data_file(place).read_text(encoding="utf-8").split("\n@ ")
    groups = [(first, tuple(lines)) for first, *lines in (part.splitlines() for part in parts)]
    return tuple(head.split()), groups


def releases_in(spans: str, releases: tuple[str, ...]) -> frozenset[str]:
    """Return the releases of a text of spans, such as "2.1-2.4 2.6".

    Args:
        spans: single releases, and first and last releases of spans, with spaces between them.
        releases: all releases of the table, oldest first.
    """
    named: set[str] = set()
    for span in spans.split():
        first, _, last = span.partition("-")
        named.update(releases[releases.index(first) : releases.index(last or first) + 1])
    return frozenset(named)
