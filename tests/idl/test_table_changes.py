"""Each rule has its case: a change, where it is, what it demands."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.idl.helpers import table

from pt2kit.errors import SchemaError
from pt2kit.idl.compat import RULES, Level, changes
from pt2kit.idl.sources import read_table, versions
from pt2kit.schema.fieldtable import frozen_tables, make_table

BASE: dict[str, Any] = {
    "E": {"kind": "enum", "fields": {"A": 0, "B": 1}},
    "S": {
        "kind": "struct",
        "fields": {
            "x": {"type": "int", "id": 10},
            "y": {"type": "str", "id": 20, "default": "z"},
        },
    },
    "U": {"kind": "union", "fields": {"as_int": {"type": "int", "id": 10}, "as_s": {"type": "S", "id": 20}}},
}


def _set(path, value):
    def change(types):
        *holders, last = path
        for step in holders:
            types = types[step]
        types[last] = value

    return change


def _delete(*path):
    def change(types):
        *holders, last = path
        for step in holders:
            types = types[step]
        del types[last]

    return change


CASES = {
    "C1": (_set(["T"], {"kind": "struct", "fields": {}}), "T: a struct is added"),
    "C2": (_delete("E"), "E: the enum is removed"),
    "C3": (_set(["U", "kind"], "struct"), "U: union -> struct"),
    "C4": (
        _set(["S", "fields", "z"], {"type": "int", "id": 30, "default": "3"}),
        "S.z: a field is added: int, by default 3",
    ),
    "C5": (_set(["S", "fields", "z"], {"type": "int", "id": 30}), "S.z: a required field is added: int"),
    "C6": (_delete("S", "fields", "y"), "S.y: the field is removed"),
    "C7": (_set(["U", "fields", "as_e"], {"type": "list[E]", "id": 30}), "U.as_e: an arm is added: list[E]"),
    "C8": (_delete("U", "fields", "as_s"), "U.as_s: the arm is removed"),
    "C9": (_set(["E", "fields", "C"], 2), "E.C: the value 2 is added"),
    "C10": (_delete("E", "fields", "B"), "E.B: the value 1 is removed"),
    "C11": (_set(["E", "fields", "B"], 7), "E.B: 1 -> 7"),
    "C12": (_set(["S", "fields", "x", "type"], "int | None"), "S.x: int -> int | None"),
    "C13": (_set(["S", "fields", "x", "id"], 30), "S.x: wire id 10 -> 30"),
    "C14": (
        _set(["S", "fields", "z"], {"type": "int", "id": 20, "default": "1"}),
        "S.z: the wire id 20 is or was that of y",
    ),
    "C15": (_delete("S", "fields", "y", "default"), "S.y: the default z is removed"),
    "C16": (_set(["S", "fields", "x", "default"], "1"), "S.x: the default 1 is added"),
    "C20": (_set(["E", "fields", "C"], 1), "E.C: the value 1 is that of B"),
    "C21": (_set(["S", "fields", "z"], {"type": "int", "default": "1"}), "S.z: no wire id"),
    "C22": (
        _set(["S", "fields", "z"], {"type": "int", "id": 30, "default": "None"}),
        "S.z: the default None is no int",
    ),
    "C17": (_set(["S", "fields", "y", "default"], "w"), "S.y: the default z -> w"),
}


def _made(types, version="9.1"):
    return make_table(version, types, "test", docs={}, since={})


@pytest.mark.parametrize("rule", CASES)
def test_each_rule_has_its_case(rule):
    """The change is found under its rule, with its place and what it was and is."""
    change, text = CASES[rule]
    types = copy.deepcopy(BASE)
    change(types)
    found = {str(one) for one in changes(_made(BASE), _made(types))}
    assert f"{text} [{rule}]" in found
    # These are about what is added, which is a change besides.
    assert len(found) == (2 if rule in ("C14", "C20", "C21", "C22") else 1)


def test_no_rule_is_without_a_case():
    """The two that are about old versions have theirs below."""
    assert set(CASES) | {"C18", "C19"} == set(RULES)
    assert [rule for rule, (level, _) in RULES.items() if level is Level.NONE] == ["C19"]


def test_the_encoding_of_unions_changed_once():
    """Between the versions of 2.2 and 2.3."""
    found = [str(one) for one in changes(table("2"), table("5.1")) if one.rule == "C18"]
    assert found == ["unions: every key, null except for one -> exactly one key [C18]"]


def test_first_wire_ids_demand_nothing():
    """They came with 8.2; going back, and against a table without ids, nothing is said of them."""
    found = [one for one in changes(table("7.3"), table("8.2")) if one.rule == "C19"]
    assert len(found) == 130
    assert {one.level for one in found} == {Level.NONE}
    assert not [one for one in changes(table("8.2"), table("7.3")) if one.rule in ("C13", "C19")]


def test_order_and_documentation_are_free():
    """Neither the order of types, nor that of fields, nor what is written about them is a change."""
    turned = {name: {**row, "fields": dict(reversed(row["fields"].items()))} for name, row in reversed(BASE.items())}
    documented = make_table("9.1", turned, "test", docs={"S": "Something."}, since={("S", "x"): "8.2"})
    assert changes(_made(BASE), documented) == ()


@pytest.mark.parametrize("version", versions())
def test_nothing_changes_from_a_version_to_itself(version):
    """A table against a copy of it."""
    again = make_table(version, frozen_tables()[version], "test", docs={}, since={})
    assert changes(table(version), again) == ()


def test_every_change_shows_from_both_sides():
    """Additions one way are removals the other way."""
    there = changes(table("8.8"), table("8.14"))
    back = changes(table("8.14"), table("8.8"))
    opposite = {"C1": "C2", "C2": "C1", "C4": "C6", "C7": "C8", "C9": "C10"}
    assert {(opposite[one.rule], one.where) for one in there} == {(one.rule, one.where) for one in back}


def test_null_of_yaml_is_the_default_none(tmp_path):
    """An optional field whose default is YAML's null is a minor change, as with torch's text "None"."""
    old = "SCHEMA_VERSION: [8, 20]\nS:\n  kind: struct\n  fields:\n    x: {type: int}\n"
    levels = {}
    for default in ("null", "None", "~", ""):
        for number, text in enumerate((old, f"{old}    y:\n      type: Optional[int]\n      default: {default}\n")):
            (tmp_path / f"{number}.yaml").write_text(text)
        found = changes(*(read_table(tmp_path / f"{number}.yaml") for number in (0, 1)))
        levels[default] = [(one.rule, one.level.name) for one in found if one.rule != "C21"]
    assert set(map(tuple, levels.values())) == {(("C4", "MINOR"),)}


def test_null_is_no_default_of_text():
    """Only an optional field may be null."""
    types = copy.deepcopy(BASE)
    types["S"]["fields"]["y"]["default"] = None
    with pytest.raises(SchemaError, match=r"test: S\.y: expected the text of a default, got null, which only Optional"):
        _made(types)


OWN = {
    "a new enum with two names for a number": (
        _set(["N"], {"kind": "enum", "fields": {"A": 0, "B": 0}}),
        "N.B: the value 0 is that of A [C20]",
    ),
    "a new struct with two fields of one id": (
        _set(["N"], {"kind": "struct", "fields": {"a": {"type": "int", "id": 10}, "b": {"type": "int", "id": 10}}}),
        "N.b: the wire id 10 is or was that of a [C14]",
    ),
    "two new arms of one id": (
        lambda types: types["U"]["fields"].update(a={"type": "int", "id": 30}, b={"type": "str", "id": 30}),
        "U.b: the wire id 30 is or was that of a [C14]",
    ),
    "a field that takes the id of its neighbour": (
        _set(["S", "fields", "x", "id"], 20),
        "S.x: the wire id 20 is or was that of y [C14]",
    ),
    "a new struct without ids": (
        _set(["N"], {"kind": "struct", "fields": {"a": {"type": "int"}}}),
        "N.a: no wire id [C21]",
    ),
    "digits that are not those of JSON": (
        _set(["S", "fields", "z"], {"type": "int", "id": 30, "default": "\u0663"}),
        "S.z: the default \u0663 is no int [C22]",
    ),
    "a float that is none": (
        _set(["S", "fields", "z"], {"type": "float", "id": 30, "default": "1e400"}),
        "S.z: the default 1e400 is no float [C22]",
    ),
}


@pytest.mark.parametrize("case", OWN)
def test_what_is_added_is_sound_by_itself(case):
    """A type, field or value that is new is looked at as a change of one is; each demands a major step."""
    change, text = OWN[case]
    types = copy.deepcopy(BASE)
    change(types)
    found = {str(one): one.level for one in changes(_made(BASE), _made(types))}
    assert found[text] is Level.MAJOR
