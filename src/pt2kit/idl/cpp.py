"""C++17 header of a field table: a struct per type, reading from and writing to JSON on nlohmann/json.

    struct       a struct; keys of newer minors that it does not know are kept in `unknown` and written back
    union        a struct around a `std::variant`, with a getter and a maker for each arm
    list, dict   `std::vector`, and a vector of pairs in the order of the file
    null         `std::optional`
    integer      `Int`: `std::int64_t` both ways, and the decimal digits of what 64 bits do not hold

The part that is the same for every version is `cpp_prelude.h`.
"""

from __future__ import annotations

import json
from typing import Final

from pt2kit.data_files import data_file
from pt2kit.errors import UnsupportedError
from pt2kit.idl.text import (
    Forms,
    banner,
    check_names,
    comment,
    enum_numbers,
    enum_rows,
    noted,
    safe_name,
    spelled,
    version_suffix,
)
from pt2kit.schema.fieldtable import (
    AnyOf,
    Definition,
    DictOf,
    Field,
    ListOf,
    Nullable,
    Ref,
    Scalar,
    Table,
    TupleOf,
    Type,
    default_value,
    inner_types,
)
from pt2kit.schema.wire import as_written, spelling

_SCALARS = {"int": "Int", "float": "double", "str": "std::string", "bool": "bool", "bytes": "Base64"}
_FORMS: Final[Forms[str]] = {
    ListOf: "std::vector<{}>".format,
    DictOf: "Dict<{}>".format,
    Nullable: "std::optional<{}>".format,
    TupleOf: lambda *items: f"std::tuple<{', '.join(items)}>" if items else "EmptyTuple",
    AnyOf: lambda *arms: f"std::variant<{', '.join(arms)}>",
}
_INCLUDES = (
    *("algorithm", "array", "cmath", "cstdint", "limits", "optional", "set", "stdexcept", "string"),
    *("string_view", "tuple", "utility", "variant", "vector"),
)
_WORDS: Final = """
alignas alignof and asm auto bool break case catch char class const continue default delete do double else enum
explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not nullptr
operator or private protected public register return short signed sizeof static struct switch template this throw true
try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
"""
_KEYWORDS: Final = frozenset(_WORDS.split())
# Names that `cpp_prelude.h` declares.
_PRELUDE_NAMES = ("Base64", "Builder", "Dict", "EmptyTuple", "Error", "Int", "Json", "Object", "Place")
# Names that nothing in a union may have: those of its members, too.
_IN_UNIONS: Final = _KEYWORDS | {"Arm", "arm", "arms", "value"}
# Names that nothing in a struct may have.
_IN_STRUCTS: Final = _KEYWORDS | {"unknown"}


def emit(types: Table) -> str:
    """Write a table as one header.

    Raises:
        UnsupportedError: a type contains itself other than in a list or a dict.
    """
    table = as_written(types)
    check_names(_PRELUDE_NAMES, table, "C++")
    ordered = _by_containment(table)
    suffix = version_suffix(types.version)
    prelude = data_file("idl/cpp_prelude.h").read_text(encoding="utf-8")
    lines = [f"// {line}" for line in banner(types, "cpp")[:2]]
    lines += ["#pragma once", "", *(f"#include <{name}>" for name in _INCLUDES), "", "#include <nlohmann/json.hpp>", ""]
    lines += [f"namespace pt2::{suffix} {{", ""]
    lines += [f"inline constexpr const char* schema_version = {json.dumps(types.version)};"]
    lines += ["/// Whether unions hold every key, null except for one; otherwise they hold exactly one key."]
    null_unions = str(spelling(types.version).padded_unions).lower()
    lines += [f"inline constexpr bool null_unions = {null_unions};", "", prelude]
    structs = [each for each in ordered if each.kind != "enum"]
    lines += [f"struct {each.name};" for each in structs]
    for definition in ordered:
        lines += ["", *comment("///", definition.doc), *_declaration(definition, table)]
    # Declared before any is defined: they call each other.
    lines += ["", *(f"{head};" for each in structs for head in _signatures(each))]
    functions = {"enum": _enum_functions, "union": _union_functions, "struct": _struct_functions}
    for definition in ordered:
        lines += ["", *functions[definition.kind](definition)]
    # Two versions can be in one program; `pt2::Graph` is then ambiguous and `pt2::v8_20::Graph` is not.
    return "\n".join([*lines, "", "}", "", f"namespace pt2 {{ using namespace {suffix}; }}", ""])


def _by_containment(table: Table) -> list[Definition]:
    """Return the definitions, each after those it contains; a list or a dict does not contain its items."""
    types = table.definitions
    ordered: dict[str, Definition] = {}
    for first in table.definitions.values():
        trail: list[str] = [first.name]
        while trail:
            definition = types[trail[-1]]
            missing = [
                name for field in definition.fields.values() for name in _contained(field.type) if name not in ordered
            ]
            if not missing:
                ordered[trail.pop()] = definition
            elif missing[0] in trail:
                cycle = " in ".join([missing[0], *reversed(trail[trail.index(missing[0]) :])])
                raise UnsupportedError(f"C++: expected no type that contains itself outside of lists, got {cycle}")
            else:
                trail.append(missing[0])
    return list(ordered.values())


def _contained(kind: Type) -> list[str]:
    match kind:
        case Ref(name):
            return [name]
        case ListOf() | DictOf():
            return []
        case _:
            return [name for inner in inner_types(kind) for name in _contained(inner)]


def cpp_type(kind: Type) -> str:
    """Return the C++ spelling of a type."""
    return spelled(kind, _SCALARS, str, _FORMS)


def _declaration(definition: Definition, table: Table) -> list[str]:
    name = definition.name
    if definition.kind == "enum":
        return [f"enum class {name} : std::int64_t {{", *enum_rows(definition, _KEYWORDS), "};"]
    if definition.kind == "union":
        return [f"struct {name} {{", *_union_rows(definition), "};"]
    rows = [noted(f"  {_member(field, table)};", field.since) for field in definition.fields.values()]
    return [f"struct {name} {{", *rows, "  /// Keys that this version does not know.", "  Json unknown;", "};"]


def _member(field: Field, table: Table) -> str:
    kind = field.type
    start = f"{cpp_type(kind)} {safe_name(field.name, _IN_STRUCTS)}"
    if field.default is not None and isinstance(kind, Scalar):
        return f"{start} = {json.dumps(default_value(field))}"
    is_enum = isinstance(kind, Ref) and table.definitions[kind.name].kind == "enum"
    is_number = isinstance(kind, Scalar) and kind.name in ("float", "bool")
    # Lists need the complete type of their items to be initialized here; they start empty anyway.
    return f"{start}{{}}" if is_enum or is_number else start


def _union_rows(definition: Definition) -> list[str]:
    arms = [(safe_name(field.name, _IN_UNIONS), cpp_type(field.type), field) for field in definition.fields.values()]
    keys = ", ".join(json.dumps(field.name) for field in definition.fields.values())
    return [
        f"  enum class Arm : std::size_t {{ {', '.join(arm for arm, _, _ in arms)} }};",
        f"  static constexpr std::array<const char*, {len(arms)}> arms = {{{keys}}};",
        f"  std::variant<{', '.join(kind for _, kind, _ in arms)}> value;",
        "",
        "  Arm arm() const { return static_cast<Arm>(value.index()); }",
        "  /// Each gives what its arm holds, or nullptr where another is set.",
        *(noted(f"  {_getter(kind, arm, index)}", field.since) for index, (arm, kind, field) in enumerate(arms)),
        *(f"  static {definition.name} make_{field.name}({kind} held);" for _, kind, field in arms),
    ]


def _getter(kind: str, arm: str, index: int) -> str:
    return f"const {kind}* {arm}() const {{ return std::get_if<{index}>(&value); }}"


def _signatures(definition: Definition) -> tuple[str, str]:
    """Return the declarations of the functions that read and write a type."""
    name = definition.name
    return (
        f"inline void read(const Json& json, {name}& out, const Place& place)",
        f"inline void write(const {name}& in, Json& json)",
    )


def _struct_functions(definition: Definition) -> list[str]:
    read, write = _signatures(definition)
    names = [(field, safe_name(field.name, _IN_STRUCTS)) for field in definition.fields.values()]
    reads = [
        f'  object.{"required" if field.default is None else "optional"}("{field.name}", out.{name});'
        for field, name in names
    ]
    writes = [f'  write(in.{name}, json["{field.name}"]);' for field, name in names]
    return [
        *(f"{read} {{", "  Object object(json, place);", *reads, "  out.unknown = object.rest();", "}"),
        *(f"{write} {{", "  json = Json::object();", *writes, "  write_rest(in.unknown, json);", "}"),
    ]


def _union_functions(definition: Definition) -> list[str]:
    name = definition.name
    read, write = _signatures(definition)
    rows = [
        f"{read} {{ read_union(json, {name}::arms, out.value, place); }}",
        f"{write} {{ write_union({name}::arms, in.value, json); }}",
    ]
    for index, field in enumerate(definition.fields.values()):
        body = f"{name} made; made.value.emplace<{index}>(std::move(held)); return made;"
        rows.append(f"inline {name} {name}::make_{field.name}({cpp_type(field.type)} held) {{ {body} }}")
    return rows


def _enum_functions(definition: Definition) -> list[str]:
    name, expected = definition.name, f"a value of {definition.name}"
    numbers = enum_numbers(definition)
    cases = [
        (f"{name}::{safe_name(each.name, _KEYWORDS)}", numbers[each.name], json.dumps(each.value))
        for each in definition.members.values()
    ]
    if any(isinstance(each.value, str) for each in definition.members.values()):
        reads = [f"  if (json == {literal}) {{ out = {value}; return; }}" for value, _, literal in cases]
    else:
        reads = ["  Int number;", "  read(json, number, place);"]
        reads += ["  if (number.digits.empty()) switch (number.value) {"]
        reads += [f"    case {number}: out = {value}; return;" for value, number, _ in cases] + ["  }"]
    return [
        f"inline void read(const Json& json, {name}& out, const Place& place) {{",
        *reads,
        f'  refuse_value(place, "{expected}", json);',
        "}",
        f"inline void write({name} in, Json& json) {{",
        "  switch (in) {",
        *(f"    case {value}: json = {literal}; return;" for value, _, literal in cases),
        "  }",
        f'  throw Error("expected {expected}, got " + std::to_string(static_cast<std::int64_t>(in)));',
        "}",
    ]
