"""Node metadata of 2.1 is that of later releases, in another form."""

from __future__ import annotations

import pytest

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
    assert metadata.repair(same) is same


def test_2_1_keeps_the_innermost_function():
    """It has room for one."""
    log = ConversionLog("x")
    assert metadata.to_2_1({"source_fn_stack": "a,A;b,B"}, ("m",), log) == {"source_fn": "b,B"}
    assert [(note.kind, note.name) for note in log.notes] == [("lost", "source_fn_stack")]


@pytest.mark.parametrize("text", ["a,b", "nonsense", ";;;", "k:(x,y"])
def test_texts_that_cannot_be_read_stay(text):
    """Metadata never decides whether a program can be read."""
    for function in (metadata.from_2_1, metadata.repair):
        assert function({"nn_module_stack": text})["nn_module_stack"] == text
    assert metadata.to_2_1({"nn_module_stack": text}, (), ConversionLog("x"))["nn_module_stack"] == text


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
    assert metadata.repair({"nn_module_stack": text}) == {"nn_module_stack": mended}
