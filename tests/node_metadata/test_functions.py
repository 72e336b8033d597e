"""source_fn_stack, source_fn and torch_fn <-> names."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node_metadata.texts import names, texts

from pt2kit.errors import Pt2Error, SchemaError
from pt2kit.node_metadata.frames import (
    SourceFn,
    dump_source_fn_stack,
    dump_torch_fn,
    parse_source_fn_stack,
    parse_torch_fn,
)


@pytest.mark.parametrize("text", [text for key in ("source_fn", "source_fn_stack") for _, text in texts(key)])
def test_real_source_fn_stacks(text):
    """Every text of every release has named entries and comes back identical."""
    entries = parse_source_fn_stack(text)
    assert all(entry.name and entry.target for entry in entries)
    assert dump_source_fn_stack(entries) == text


@pytest.mark.parametrize("text", [text for _, text in texts("torch_fn")])
def test_real_torch_fns(text):
    """Every text has a name and what was called, and comes back identical."""
    assert len(parse_torch_fn(text)) == 2
    assert dump_torch_fn(parse_torch_fn(text)) == text


def test_vectors():
    """The written form, with and without separators inside names."""
    assert parse_source_fn_stack("") == ()
    stack = (SourceFn("cond", "torch.ops.higher_order.cond"), SourceFn("a;b", "x,y"))
    assert dump_source_fn_stack(stack) == "cond,torch.ops.higher_order.cond;a%3Bb,x%2Cy"
    assert parse_source_fn_stack(dump_source_fn_stack(stack)) == stack
    assert parse_torch_fn("") == ()
    assert dump_torch_fn(("linear;1", "function.a,b")) == "linear%3B1;function.a,b"
    assert parse_torch_fn("a';b;c") == ("a'", "b", "c")


@pytest.mark.parametrize("text", ["a", "a,b,c", "a,b;c", ";"])
def test_texts_that_are_no_source_fn_stack(text):
    """An entry without exactly one comma is refused with its place."""
    with pytest.raises(SchemaError, match=r"^here: expected entry \d to be name,target, got \d parts?"):
        parse_source_fn_stack(text, "here")


@given(st.lists(st.builds(SourceFn, names, names), max_size=4))
def test_any_source_functions_survive(entries):
    """Whatever the names contain, they are read back."""
    assert parse_source_fn_stack(dump_source_fn_stack(entries)) == tuple(entries)


@given(st.lists(names, min_size=1, max_size=3).filter(lambda parts: parts != [""]))
def test_any_torch_fn_survives(parts):
    """Whatever the names contain, they are read back."""
    assert parse_torch_fn(dump_torch_fn(parts)) == tuple(parts)


@given(st.one_of(names, st.text()))
def test_any_text_comes_back_or_is_refused(text):
    """A text is refused with an error of ours, or written back identical."""
    assert dump_torch_fn(parse_torch_fn(text)) == text
    with contextlib.suppress(Pt2Error):
        assert dump_source_fn_stack(parse_source_fn_stack(text)) == text
