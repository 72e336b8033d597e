"""A Thrift parser takes the definition of every version, and carries real programs through it."""

from __future__ import annotations

import functools
import json
import math
import warnings

import pytest
from tests.idl.helpers import package, program, programs, table

from pt2kit.codec import parse
from pt2kit.errors import UnsupportedError
from pt2kit.idl import thrift
from pt2kit.idl.sources import versions
from pt2kit.idl.text import enum_numbers
from pt2kit.schema.fieldtable import DictOf, ListOf, Nullable, Ref, Scalar, make_table
from pt2kit.schema.wire import as_written


@functools.cache
def module(version: str):
    """The classes that thriftpy2 makes of a version's definition."""
    from io import StringIO

    parser = package("thriftpy2.parser")
    return parser.load_fp(
        StringIO(thrift.emit(table(version))), f"v{version.replace('.', '_').replace('-', '_')}_thrift"
    )


@pytest.mark.parametrize("version", versions())
def test_the_parser_reads_what_the_table_says(version):
    """Every type is there, every field under its wire id, every enum value under its number."""
    loaded = module(version)
    for definition in as_written(table(version)).definitions.values():
        cls = getattr(loaded, definition.name)
        if definition.kind == "enum":
            numbers = {name.rstrip("_"): number for name, number in cls._NAMES_TO_VALUES.items()}
            assert numbers == enum_numbers(definition)
        else:
            ids = {spec[1].rstrip("_"): id for id, spec in cls.thrift_spec.items()}
            assert ids == {field.name: field.id for field in definition.fields.values()}


def _to_thrift(tree, kind, types, loaded):
    match kind:
        case Scalar("float"):
            return float(tree.replace("Infinity", "inf")) if isinstance(tree, str) else tree
        case ListOf(item):
            return [_to_thrift(one, item, types, loaded) for one in tree]
        case DictOf(value):
            return {key: _to_thrift(one, value, types, loaded) for key, one in tree.items()}
        case Nullable(inner):
            return None if tree is None else _to_thrift(tree, inner, types, loaded)
        case Ref(name) if (definition := types[name]).kind != "enum":
            kinds = {field.name: field.type for field in definition.fields.values()}
            fields = {key: _to_thrift(one, kinds[key], types, loaded) for key, one in tree.items()}
            return getattr(loaded, name)(**fields)
    return tree


def _from_thrift(value, kind, types):
    match kind:
        case Scalar("float") if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case ListOf(item):
            return [_from_thrift(one, item, types) for one in value]
        case DictOf(inner):
            return {key: _from_thrift(one, inner, types) for key, one in value.items()}
        case Nullable(inner):
            return None if value is None else _from_thrift(value, inner, types)
        case Ref(name):
            fields = types[name].fields.values()
            if types[name].kind == "struct":
                return {field.name: _from_thrift(getattr(value, field.name), field.type, types) for field in fields}
            if types[name].kind == "union":
                (field,) = (field for field in fields if getattr(value, field.name) is not None)
                return {field.name: _from_thrift(getattr(value, field.name), field.type, types)}
    return value


@pytest.mark.parametrize("release", ["2.9.1", "2.12.0"])
def test_programs_come_back(release):
    """Through Thrift's binary protocol and back a program is the same, down to the order of its keys."""
    package("thriftpy2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from thriftpy2.utils import deserialize, serialize
    for name, version, text in programs(release):
        tree, types, loaded = parse(text, name), table(version).definitions, module(version)
        data = serialize(_to_thrift(tree, Ref("ExportedProgram"), types, loaded))
        value = deserialize(loaded.ExportedProgram(), data)
        assert json.dumps(_from_thrift(value, Ref("ExportedProgram"), types)) == json.dumps(tree), name


def test_null_is_optional_and_nothing_else_is():
    """As in torch's definition: `optional` stands for null, a default does not show."""
    text = thrift.emit(table("8.20"))
    assert "  20: optional i64 index;" in text
    assert "  80: string torch_version;" in text


@pytest.mark.parametrize("kind", ["union", "struct"])
def test_null_elsewhere_is_refused(kind):
    """Thrift has no null in a list and none in a union."""
    type_text = "int | None" if kind == "union" else "list[int | None]"
    types = make_table(
        "9.1", {"A": {"kind": kind, "fields": {"x": {"type": type_text, "id": 10}}}}, "t", docs={}, since={}
    )
    with pytest.raises(UnsupportedError, match="null"):
        thrift.emit(types)


def test_reserved_names_get_an_underscore():
    """The draft's enum values are Thrift's own types."""
    assert "  i64_ = 4," in thrift.emit(table("draft"))


def test_what_thrift_lacks_gets_a_type():
    """Tuples become structs, alternatives unions."""
    text = thrift.emit(table("1"))
    assert "struct StringIntTuple {\n  1: string item0;\n  2: i64 item1;\n}" in text
    assert "union BufferOrExternalBuffer {\n  1: Buffer as_buffer;" in thrift.emit(table("draft"))
    assert program("mlp", "2.1.2")["equality_constraints"] == []
