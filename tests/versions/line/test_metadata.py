"""Node metadata of 2.1 is that of later releases, in another form."""

from __future__ import annotations

import pytest

from pt2kit.node_metadata.modules import parse_module_stack
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line import metadata

FIRST = [
    ({"source_fn": "f,torch.f"}, {"source_fn_stack": "f,torch.f"}),
    (
        {"nn_module_stack": "L__self__:(,m.M);k:(L['self'].a,m.A)"},
        {"nn_module_stack": "L__self__,,m.M;k,L['self'].a,m.A"},
    ),
    ({"stack_trace": "x", "torch_fn": "a;b"}, {"stack_trace": "x", "torch_fn": "a;b"}),
    ({}, {}),
]


@pytest.mark.parametrize(("old", "new"), FIRST)
def test_keys_and_styles_of_2_1(old, new):
    """Both ways, and nothing is lost where there is one function."""
    log = ConversionLog("x")
    assert metadata.from_2_1(old) == new
    assert metadata.to_2_1(new, (), log) == old
    assert log.notes == ()


def test_what_needs_no_change_is_the_same_object():
    """Metadata is shared where it can be."""
    same = {"stack_trace": "x"}
    assert metadata.from_2_1(same) is same
    assert metadata.to_2_1(same, (), ConversionLog("x")) is same
    for function in (metadata.repaired, metadata.without_commas):
        assert function(node := {"metadata": same}) is node


def test_2_1_keeps_the_innermost_function():
    """It has room for one."""
    log = ConversionLog("x")
    assert metadata.to_2_1({"source_fn_stack": "a,A;b,B"}, ("m",), log) == {"source_fn": "b,B"}
    assert [(note.kind, note.name) for note in log.notes] == [("lost", "source_fn_stack")]


@pytest.mark.parametrize("text", ["a,b", "nonsense", ";;;", "k:(x,y"])
def test_texts_that_cannot_be_read_stay(text):
    """Metadata never decides whether a program can be read."""
    stated = {"nn_module_stack": text}
    assert metadata.from_2_1(stated) == metadata.to_2_1(stated, (), ConversionLog("x")) == stated
    for function in (metadata.repaired, metadata.without_commas):
        assert function({"metadata": stated})["metadata"] == stated


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("k,a,m.A", "k,a,m.A"),
        ("k,L['m'].a[0],m.A", "k,L['m'].a[0],m.A"),
        ("a_b,a,b,m.A", "a_b,a%2Cb,m.A"),
    ],
)
def test_stacks_that_torch_cannot_read_are_escaped(text, mended):
    """A name with a comma outside brackets makes torch refuse the whole program."""
    assert metadata.repaired({"metadata": {"nn_module_stack": text}})["metadata"] == {"nn_module_stack": mended}


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("k,L['m'].a[0],m.A;l,b,m.B", "k,L['m'].a[0],m.A;l,b,m.B"),
        ("k,getattr(L['m'], '0'),m.A", "k,getattr(L['m']%2C '0'),m.A"),
        ("k,getattr(getattr(L['m'], '0'), '1'),m.A", "k,getattr(getattr(L['m']%2C '0')%2C '1'),m.A"),
        ("k,a%2Cb,m.A%5Bx%2C y%5D", "k,a%2Cb,m.A%5Bx%2C y%5D"),
    ],
)
def test_torch_2_2_to_2_6_get_stacks_without_commas_in_names(text, escaped):
    """2.2 and 2.3 divide at every comma, 2.4 to 2.6 at those in nested brackets; upgraded, the text is as before."""
    node = {"metadata": {"nn_module_stack": text}}
    lowered = metadata.without_commas(node)
    assert lowered["metadata"]["nn_module_stack"] == escaped
    assert metadata.repaired(lowered) == node
    assert parse_module_stack(escaped) == parse_module_stack(text)
    assert metadata.to_2_1(lowered["metadata"], (), ConversionLog("x")) == metadata.to_2_1(
        node["metadata"], (), ConversionLog("x")
    )
