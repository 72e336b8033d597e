"""stack_trace text <-> frames."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node_metadata.texts import texts

from pt2kit.errors import SchemaError
from pt2kit.node_metadata.frames import Frame, StackTrace, dump_stack_trace, lenient, parse_stack_trace


@pytest.mark.parametrize("text", [text for _, text in texts("stack_trace")])
def test_real_traces(text):
    """Every trace of every release divides into frames and comes back identical; one text is none."""
    trace = lenient(parse_stack_trace, text)
    assert (trace is None) == (text == "NoneType: None\n")
    if trace is not None:
        assert dump_stack_trace(trace) == text
        assert trace.full == text.endswith("\n")


def test_python_tracebacks():
    """Traces of Python itself are full; without their white space they are the other form."""
    try:
        raise ValueError
    except ValueError as error:
        text = "".join(traceback.format_tb(error.__traceback__))
    full, stripped = parse_stack_trace(text), parse_stack_trace(text.strip())
    assert (full.full, stripped.full) == (True, False)
    assert full.frames == stripped.frames
    assert full.frames[0].source == "raise ValueError"


VECTORS = [
    ('File "a", line 1, in f', [Frame("a", 1, "f")], False),
    ('  File "a", line 1, in f\n', [Frame("a", 1, "f")], True),
    ('File "a", line 1, in f\n    x', [Frame("a", 1, "f", "x")], False),
    (
        'File "a", line 1, in f\n    x\n    ^\n  File "b", line 2, in <lambda>',
        [Frame("a", 1, "f", "x", ("    ^",)), Frame("b", 2, "<lambda>")],
        False,
    ),
    (
        'File "a", line 1, in f\n  [Previous line repeated 3 more times]',
        [Frame("a", 1, "f", None, ("  [Previous line repeated 3 more times]",))],
        False,
    ),
    ('File "a", line 1, in f\n    x\n', [Frame("a", 1, "f", "x", ("",))], False),
    ('  File "a", line 1, in f\n    x\n\n', [Frame("a", 1, "f", "x", ("",))], True),
    ('File "a", line 1, in f\n    ', [Frame("a", 1, "f", "")], False),
    ('File "a "b", line 2, in g", line 10, in f', [Frame('a "b", line 2, in g', 10, "f")], False),
]


@pytest.mark.parametrize(("text", "frames", "full"), VECTORS, ids=range(len(VECTORS)))
def test_vectors(text, frames, full):
    """Frames with and without source, with carets and other lines, in both forms."""
    assert parse_stack_trace(text) == StackTrace(tuple(frames), full)
    assert dump_stack_trace(StackTrace(tuple(frames), full)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NoneType: None\n",
        ' File "a", line 1, in f',
        '  File "a", line 1, in f',
        'File "a", line 01, in f',
        'File "a", line 1',
        'File "a", line \u0661, in f',
        'File "a", line 9999999999, in f',
        '"""\nopen("x")\n"""',
    ],
)
def test_texts_that_are_no_trace(text):
    """Text that does not begin with a frame is refused with its place."""
    with pytest.raises(SchemaError, match=r"^node add: expected a frame 'File \"...\", line N, in NAME' first, got"):
        parse_stack_trace(text, "node add")


lines = st.sampled_from(
    ["", "x", "    y = 1", "    ^^^", "  File", '  File "b", line 3, in g', 'File "c", line 4, in h', "\r", "[x]"]
)


@given(st.booleans(), st.lists(st.one_of(lines, st.text(max_size=5))), st.booleans())
def test_any_lines_come_back(indented, rest, ended):
    """Whatever follows the first frame line, nothing is lost."""
    text = "  " * indented + "\n".join(['File "a.py", line 1, in f', *rest]) + "\n" * ended
    trace = lenient(parse_stack_trace, text)
    if trace is not None:
        assert dump_stack_trace(trace) == text


frames = st.builds(
    Frame,
    st.text(st.characters(exclude_characters='\n"'), max_size=5),
    st.integers(0, 999_999_999),
    st.text(st.characters(exclude_characters="\n"), max_size=5),
    st.one_of(st.none(), st.text(st.characters(exclude_characters="\n"), max_size=5)),
    st.lists(st.sampled_from(["      ^^^", "    more"]), max_size=2).map(tuple),
).filter(lambda frame: frame.source is not None or not frame.rest)


@given(st.builds(StackTrace, st.lists(frames, min_size=1, max_size=3).map(tuple), st.booleans()))
def test_any_frames_survive(trace):
    """Frames are read back as they were written."""
    assert parse_stack_trace(dump_stack_trace(trace)) == trace


@given(st.text())
def test_any_text_raises_only_our_errors(text):
    """Arbitrary text is read or refused."""
    trace = lenient(parse_stack_trace, text)
    if trace is not None:
        assert dump_stack_trace(trace) == text
