"""Real and made-up programs go into protobuf messages; what does not fit them is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.idl.helpers import BROKEN, broken, complete, golden, program, programs, table
from tests.idl.protos import message_class
from tests.samples import CURRENT_LAYOUT, RELEASES
from tests.strategies import structs

from pt2kit import codec, schema
from pt2kit.codec import parse
from pt2kit.errors import LimitError, Pt2Error, SchemaError
from pt2kit.idl.proto_message import to_message
from pt2kit.idl.proto_tree import to_tree


def _there_and_back(tree, version="8.20", name="ExportedProgram"):
    cls = message_class(version, name)
    data = to_message(tree, cls, table(version)).SerializeToString()
    return to_tree(cls.FromString(data), table(version))


@pytest.mark.parametrize("release", CURRENT_LAYOUT)
def test_every_program_comes_back(release):
    """Through bytes and back every program is the same, down to the order of its keys."""
    for name, version, text in programs(release):
        tree = parse(text, name)
        assert json.dumps(_there_and_back(tree, version)) == json.dumps(tree), name


def test_every_payload_config_comes_back():
    """The same for the other record with a type of the schema."""
    for name, version, text in programs(part="_config.json"):
        tree = parse(text, name)
        assert json.dumps(_there_and_back(tree, version, "PayloadConfig")) == json.dumps(tree), name


@pytest.mark.parametrize("release", [release for release in RELEASES if release not in CURRENT_LAYOUT])
def test_older_programs_come_back(release):
    """Older ones come back with the defaults of what they left out, and with bare words as strings."""
    for name, version, text in programs(release):
        tree = json.loads(text, parse_constant=str)
        expected = tree if version in ("1", "2") else complete(tree, table(version))
        assert _there_and_back(tree, version) == expected, name


@pytest.mark.parametrize("version", ["8.6", "8.20"])
def test_every_golden_file_comes_back(version):
    """Those that use everything a version has."""
    for name, root, text in golden(version):
        tree = parse(text, name)
        assert json.dumps(_there_and_back(tree, version, root)) == json.dumps(tree), name


@settings(max_examples=40, deadline=None)
@given(structs(schema.Graph, 7) | structs(schema.GraphSignature, 5))
def test_any_graph_comes_back(value):
    """Whatever the schema can hold comes back: integers of any size, any text, infinities, every arm."""
    tree = codec.to_tree(value)
    back = _there_and_back(tree, schema.CURRENT.number, type(value).__name__)
    assert json.dumps(back) == json.dumps(tree)


def test_integers_beyond_64_bits_are_in_digits():
    """The number's own field stays empty; in a list all numbers move to digits together."""
    cls = message_class("8.20", "Argument")
    message = to_message({"as_int": 2**63}, cls, table("8.20"))
    assert (message.WhichOneof("arm"), message.as_int_digits) == ("as_int_digits", "9223372036854775808")
    message = to_message({"as_ints": [1, -(2**63) - 1]}, cls, table("8.20"))
    assert list(message.as_ints.items) == []
    assert list(message.as_ints.items_digits) == ["1", "-9223372036854775809"]
    assert to_message({"as_int": 2**63 - 1}, cls, table("8.20")).as_int == 2**63 - 1


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_programs_are_refused(fault):
    """A tree that does not fit the table gives a SchemaError with the path, in either encoding of unions."""
    for release, version in (("2.13.0", "8.20"), ("2.2.2", "2")):
        tree = program("mlp", release)
        if fault == "a list holds null" and version == "2":
            continue
        with pytest.raises(SchemaError, match=r"^\$.*: expected .*, got "):
            to_message(broken(fault, tree), message_class(version, "ExportedProgram"), table(version))


@pytest.mark.parametrize(
    ("name", "tree", "message"),
    [
        ("Device", {"type": "cpu", "index": None, "new": 1}, r"\$: expected only keys of this schema.*, got 'new'"),
        ("Argument", {"as_string": "\ud800"}, r"\$\.as_string: expected a value of type str"),
        ("Argument", {"as_ints": [1, True]}, r"\$\.as_ints\[1\]: expected a value of type int, got True"),
        ("Argument", {"as_float": 2**60}, r"\$\.as_float: expected a value of type float, got 1152921504606846976"),
        (
            "Argument",
            {"as_int": 1 << 20_000},
            r"\$\.as_int: expected a value of type int, got an integer of 20001 bits",
        ),
        ("Argument", {"as_string_to_argument": {"a b": {}}}, r'\["a b"\]: expected exactly one key, got \'0 \(\)\''),
    ],
)
def test_what_does_not_fit_is_named(name, tree, message):
    """The place, what was expected and what is there."""
    with pytest.raises(SchemaError, match=message):
        to_message(tree, message_class("8.20", name), table("8.20"))


def test_nesting_has_a_limit():
    """As deep as protobuf itself parses, and no deeper; nothing exhausts the stack."""

    def nested(levels):
        tree: dict[str, Any] = {"as_int": 1}
        for _ in range(levels):
            tree = {"as_string_to_argument": {"k": tree}}
        return tree

    # Three messages a level (the union, its dict, its entry), and the last union.
    tree = nested(33)
    assert _there_and_back(tree, name="Argument") == tree
    for levels in (34, 5000):
        with pytest.raises(LimitError, match="expected at most 100 levels of protobuf messages, got more"):
            to_message(nested(levels), message_class("8.20", "Argument"), table("8.20"))


def test_bytes_and_tuples_of_the_first_version():
    """Schema 1 has both; base64 that would not come back is refused."""
    spec = program("mlp", "2.1.2")
    spec["example_inputs"] = [["AAEC"], {"k": "/w=="}]
    spec["equality_constraints"] = [[["a", 0], ["b", 2**70]]]
    assert _there_and_back(spec, "1") == spec
    for bad in ("AAE", "AB==", "A\n==", "é"):
        spec["example_inputs"] = [[bad], {}]
        with pytest.raises(SchemaError, match=r"\$\.example_inputs\[0\]\[0\]: expected base64"):
            to_message(spec, message_class("1", "ExportedProgram"), table("1"))


def test_the_design_draft_comes_back():
    """Its enums are names and one of its fields holds either of two types."""
    for data in ({"buffer": "AAEC"}, {"location": "w", "offset": "0", "length": "4", "checksum": ""}):
        tree = {"data_location": "Internal", "data": data}
        assert _there_and_back(tree, "draft", "Storage") == tree
    assert _there_and_back({"as_scalar_type": "i64"}, "draft", "Argument") == {"as_scalar_type": "i64"}


def test_infinite_ranges_and_truth_values_of_old_writers():
    """Two fields where files of 2.2 to 2.5 hold something else than their table says."""
    tree = {"min_val": "-Infinity", "max_val": 9223372036854775806}
    assert _there_and_back(tree, "7.3", "RangeConstraint") == tree
    assert _there_and_back({"as_int": True}, "5.3", "ConstantValue") == {"as_int": True}
    with pytest.raises(SchemaError, match=r"^\$\.as_int: expected a value of type int, got True$"):
        _there_and_back({"as_int": True}, "8.2", "ConstantValue")


_KEYS = ("as_int", "as_ints", "as_tensor", "name", "as_float_lists", "as_graph", "as_none", "graph", "x", "as_device")
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(["cpu", "NaN"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(_JSON)
def test_no_tree_brings_another_error(tree):
    """Any JSON either comes back or is refused with an error of ours."""
    cls = message_class("8.20", "Argument")
    try:
        message = to_message(tree, cls, table("8.20"))
    except Pt2Error:
        return
    assert to_tree(message, table("8.20")).keys() == tree.keys()
