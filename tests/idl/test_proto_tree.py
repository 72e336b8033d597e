"""Messages that stand for no program are refused; the rest is in `test_proto_message`, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.idl.helpers import package, table
from tests.idl.protos import message_class

from pt2kit.errors import LimitError, Pt2Error, SchemaError
from pt2kit.idl.proto_tree import to_tree


def _message(name):
    return message_class("8.20", name)()


def test_defaults_are_filled_in():
    """A message with nothing set is a struct of empty values and defaults."""
    message = _message("Graph")
    assert to_tree(message, table("8.20")) == {
        "inputs": [],
        "outputs": [],
        "nodes": [],
        "tensor_values": {},
        "sym_int_values": {},
        "sym_bool_values": {},
        "is_single_tensor_return": False,
        "custom_obj_values": {},
        "sym_float_values": {},
    }
    message = _message("Device")
    assert to_tree(message, table("8.20")) == {"type": "", "index": None}


def test_an_empty_union_is_refused():
    """With the place."""
    message = _message("UserInputSpec")
    message.arg.SetInParent()
    with pytest.raises(SchemaError, match=r"\$\.arg: expected one field of the union set, got None"):
        to_tree(message, table("8.20"))


@pytest.mark.parametrize("digits", ["x", "1 ", "--1", "-", "\uff11", "1" * 4301])
def test_bad_digits_are_refused(digits):
    """Digits are ASCII, with at most one minus, and few enough to convert."""
    message = _message("SymInt")
    message.as_int_digits = digits
    with pytest.raises(SchemaError, match=r"\$\.as_int: expected an integer in at most 4300 decimal digits, got "):
        to_tree(message, table("8.20"))


def test_an_unknown_enum_number_is_refused():
    """proto3 enums are open; the schema's are not."""
    message = _message("Argument")
    message.as_layout = 77
    with pytest.raises(SchemaError, match=r"\$\.as_layout: expected a number of Layout, got '77'"):
        to_tree(message, table("8.20"))


def test_a_key_twice_is_refused():
    """Entries can repeat a key; an object can't."""
    message = _message("ExportedProgram")
    for _ in range(2):
        message.opset_version.add(key="aten", value=10)
    message.graph_module.SetInParent()
    with pytest.raises(SchemaError, match=r"\$\.opset_version: expected each key once, got 'aten twice'"):
        to_tree(message, table("8.20"))


def test_deep_messages_are_refused():
    """A message can be built deeper than any parser would read it."""
    message = held = _message("Argument")
    for _ in range(150):
        held = held.as_string_to_argument.items.add(key="k").value
    held.as_int = 1
    with pytest.raises(LimitError, match="expected at most 100 levels"):
        to_tree(message, table("8.20"))


def test_a_message_of_another_schema_is_refused():
    """The class names the type; the table must have it."""
    with pytest.raises(SchemaError, match="expected a message of the table's types, got PayloadConfig"):
        to_tree(_message("PayloadConfig"), table("8.2"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_bring_another_error(data):
    """Whatever bytes protobuf takes for a program, reading it gives a tree or an error of ours."""
    decode_error = package("google.protobuf.message").DecodeError
    try:
        message = message_class("8.20", "GraphModule").FromString(data)
    except decode_error:
        return
    try:
        to_tree(message, table("8.20"))
    except Pt2Error as error:
        assert "expected" in str(error)
