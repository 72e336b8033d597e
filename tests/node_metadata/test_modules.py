"""nn_module_stack text <-> entries."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.node_metadata.texts import names, texts

from pt2kit.errors import Pt2Error, SchemaError
from pt2kit.node_metadata.frames import lenient
from pt2kit.node_metadata.modules import (
    ModuleEntry,
    dump_module_stack,
    module_of,
    module_stack_style,
    parse_module_stack,
)

ROOT = ModuleEntry("L__self__", "", "make.M")


@pytest.mark.parametrize(("release", "text"), texts("nn_module_stack"))
def test_real_texts(release, text):
    """Every text of every release divides into entries and comes back identical, in the style of its release."""
    entries = parse_module_stack(text)
    style = module_stack_style(text)
    assert style == ("paren" if release == "2.1.2" else "comma")
    assert dump_module_stack(entries, style) == text
    assert style == "paren" or dump_module_stack(entries) == text
    assert all(entry.key and entry.type for entry in entries)


VECTORS = [
    ("", ()),
    ("L__s___fc:(L['s'].fc,m.Linear)", (ModuleEntry("L__s___fc", "L['s'].fc", "m.Linear"),)),
    (
        "a:(L['s'].d['x,y'],m.A);b:(L['s'].e,m.B)",
        (ModuleEntry("a", "L['s'].d['x,y']", "m.A"), ModuleEntry("b", "L['s'].e", "m.B")),
    ),
    ("L__self__,,make.M", (ROOT,)),
    (
        "L__self__,,make.M;fn_0,getattr(L['fn'], '0'),m.Linear",
        (ROOT, ModuleEntry("fn_0", "getattr(L['fn'], '0')", "m.Linear")),
    ),
    ("a,L['s'].d['x,y'],m.A", (ModuleEntry("a", "L['s'].d['x,y']", "m.A"),)),
    # torch cannot read back names with separators, written raw.
    ("L__self__,,make.M;L__self__d.a,b,d.a,b,m.A", (ROOT, ModuleEntry("L__self__d.a,b", "d.a,b", "m.A"))),
    ("L__self__,,make.M;L__self__d.a;b,d.a;b,m.A", (ROOT, ModuleEntry("L__self__d.a;b", "d.a;b", "m.A"))),
    ("L__self__d.a(b,d.a(b,m.A", (ModuleEntry("L__self__d.a(b", "d.a(b", "m.A"),)),
    ("a,L['s'].d['x,y;z'],m.A;b,c,m.B", (ModuleEntry("a", "L['s'].d['x,y;z']", "m.A"), ModuleEntry("b", "c", "m.B"))),
    ("L__self__a;b,c,a;b,c,m.A", (ModuleEntry("L__self__a;b,c", "a;b,c", "m.A"),)),
    ("1234,a,b;c,m.A", (ModuleEntry("1234", "a,b;c", "m.A"),)),
    # Their form as pt2kit writes it.
    ("L__self__,,make.M;L__self__d.a%2Cb,d.a%2Cb,m.A", (ROOT, ModuleEntry("L__self__d.a,b", "d.a,b", "m.A"))),
    ("a,L['s'].d['x%3By'],m.A", (ModuleEntry("a", "L['s'].d['x;y']", "m.A"),)),
    ("a,d.%252C,m.A", (ModuleEntry("a", "d.%2C", "m.A"),)),
    # Percent signs that are no escapes of ours stay what they are.
    ("k:%28x%29,p,m.A%29", (ModuleEntry("k:(x)", "p", "m.A)"),)),
    ("a,d.50%,m.A", (ModuleEntry("a", "d.50%", "m.A"),)),
    ("a%28b,L['s'],m.A", (ModuleEntry("a%28b", "L['s']", "m.A"),)),
    # For releases that divide at commas in brackets.
    ("a%2Cb,getattr(L['s']%2C '0'),m.A", (ModuleEntry("a,b", "getattr(L['s'], '0')", "m.A"),)),
]


@pytest.mark.parametrize(("text", "entries"), VECTORS, ids=range(len(VECTORS)))
def test_vectors(text, entries):
    """Each style, names with separators in it, and the escapes."""
    assert parse_module_stack(text) == entries
    assert dump_module_stack(entries, module_stack_style(text)) == text


entry_lists = st.lists(st.builds(ModuleEntry, names, names, names), min_size=1, max_size=4)


@settings(max_examples=400)
@given(entry_lists)
def test_any_names_survive(entries):
    """Whatever names a program has, separators and escapes in them included, they are read back."""
    assert parse_module_stack(dump_module_stack(entries)) == tuple(entries)
    without_commas = dump_module_stack(entries, "no_commas")
    assert parse_module_stack(without_commas) == tuple(entries)
    assert without_commas.count(",") == 2 * len(entries)
    assert dump_module_stack(entries, "comma") == ";".join(f"{e.key},{e.path},{e.type}" for e in entries)


@settings(max_examples=400)
@given(names)
def test_any_text_comes_back_or_is_refused(text):
    """A text is refused with an error of ours, or written back identical."""
    entries = lenient(parse_module_stack, text)
    if entries is not None:
        assert dump_module_stack(entries, module_stack_style(text)) == text


@settings(max_examples=300)
@given(st.sampled_from(texts("nn_module_stack")), st.data())
def test_damaged_texts(case, data):
    """A real text with a piece replaced comes back identical or is refused."""
    text = case[1]
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    damaged = text[:start] + data.draw(names) + text[stop:]
    with contextlib.suppress(Pt2Error):
        assert dump_module_stack(parse_module_stack(damaged), module_stack_style(damaged)) == damaged


REFUSED = ["a", "a,b", "a;b", "a,b;c", ";", "L__self__,,make.M;a", "a:(b)", "x" * 70_000, "a,b;" * 600]


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_texts_that_are_no_stack(text):
    """Text without three parts per entry is refused with its place; a viewer gets None."""
    with pytest.raises(SchemaError, match=r"^nodes\[3\]: expected entries key"):
        parse_module_stack(text, "nodes[3]")
    assert lenient(parse_module_stack, text) is None


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("a,L['self'].a,m.A;b,L['self'].a.b,m.B", "a.b"),
        ("a,L['self'].a,m.A;none,_empty_nn_module_stack_from_metadata_hook,", "a"),
        ("none,_empty_nn_module_stack_from_metadata_hook,", ""),
        ("no stack", ""),
        ("", ""),
    ],
)
def test_module_of_a_node(text: str, module: str) -> None:
    """Entries of nodes that torch made itself name no module; neither does a text that cannot be read."""
    assert module_of({"nn_module_stack": text}) == module
    assert module_of({}) == ""
