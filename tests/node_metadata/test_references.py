"""Stack traces <-> references into a table of files and lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node_metadata.test_frames import frames
from tests.node_metadata.texts import texts

from pt2kit.errors import LimitError, Pt2Error, SchemaError
from pt2kit.node_metadata.frames import (
    MAX_TRACE_CHARACTERS,
    StackTrace,
    compact,
    dump_stack_trace,
    expand,
    expand_all,
    is_reference,
)

TRACES = [text for _, text in texts("stack_trace")]
TABLE = [
    {"file_name": "model.py", "line_info_map": {"7": {"name": "forward", "line": "return self.fc(x)"}}},
    {"file_name": "linear.py", "line_info_map": {"134": {"name": "forward", "line": ""}}},
    {
        "file_name": "model.py",
        "line_info_map": {"7": {"name": "forward", "line": "return self.fc(x)\n           ^^^^^^^"}},
    },
]
VECTORS = [
    ("0:7", 'File "model.py", line 7, in forward\n    return self.fc(x)'),
    ("0:7;", '  File "model.py", line 7, in forward\n    return self.fc(x)\n'),
    ("1:134", 'File "linear.py", line 134, in forward'),
    (
        "0:7;1:134",
        'File "model.py", line 7, in forward\n    return self.fc(x)\n  File "linear.py", line 134, in forward',
    ),
    ("2:7;", '  File "model.py", line 7, in forward\n    return self.fc(x)\n           ^^^^^^^\n'),
    ("NoneType: None\n", "NoneType: None\n"),
    ("", ""),
    ("=0:7", "0:7"),
    ("==1:2;", "=1:2;"),
    ("=x", "=x"),
    ("0:07", "0:07"),
    ("0:7\n", "0:7\n"),
    ("0:7;;", "0:7;;"),
]


@pytest.mark.parametrize(("reference", "text"), VECTORS, ids=range(len(VECTORS)))
def test_vectors(reference, text):
    """The test vectors of docs/traces.md, both ways."""
    assert expand(reference, TABLE) == text


def test_documented_vectors():
    """The table and every vector of docs/traces.md hold."""
    document = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
    table, *vectors = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", document, re.DOTALL)]
    (cases,) = vectors
    assert len(cases) >= 8
    for case in cases:
        assert expand(case["stack_trace"], table) == case["text"]
    full_texts = [case["text"] for case in cases]
    assert compact(full_texts) == (table, [case["stack_trace"] for case in cases])


def test_real_traces_expand_to_themselves():
    """The traces of real files become references and come back byte for byte."""
    table, references = compact(TRACES)
    assert expand_all(references, table) == TRACES
    assert [text for text, ref in zip(TRACES, references, strict=True) if not is_reference(ref)] == ["NoneType: None\n"]
    assert sum(map(len, references)) < sum(map(len, TRACES)) / 10


def test_one_line_with_two_texts_gets_two_entries():
    """Carets differ between nodes of one line: the file is listed once per text, the reference tells them apart."""
    first = 'File "m.py", line 7, in f\n    a + b\n    ^'
    second = 'File "m.py", line 7, in f\n    a + b\n        ^'
    third = 'File "m.py", line 8, in f\n    c'
    table, references = compact([first, second, third, first])
    assert references == ["0:7", "1:7", "0:8", "0:7"]
    assert [entry["file_name"] for entry in table] == ["m.py", "m.py"]
    assert list(table[0]["line_info_map"]) == ["7", "8"]


def test_table_has_the_schema_fields_only():
    """The table is what schema 5.3's development state holds: file_name and line_info_map of name and line."""
    table, _ = compact(TRACES)
    for entry in table:
        assert set(entry) == {"file_name", "line_info_map"}
        for line, info in entry["line_info_map"].items():
            assert line.isdecimal()
            assert set(info) == {"name", "line"}
            assert all(isinstance(value, str) for value in info.values())


odd = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["0:1", "=0:1", "==0:1;", "0:1;2:3", "=", "NoneType: None\n", 'File "a", line 1, in f\n    ']),
    st.from_regex(r"=*[0-9]:[0-9](;[0-9]:[0-9])?;?", fullmatch=True),
)


@given(st.lists(st.one_of(odd, st.sampled_from(TRACES)), max_size=6))
def test_any_texts_expand_to_themselves(traces):
    """Whatever the texts are, expansion gives them back."""
    table, references = compact(traces)
    assert expand_all(references, json.loads(json.dumps(table))) == traces
    assert (table, references) == compact(traces)


@given(st.lists(frames, min_size=1, max_size=4))
def test_any_frames_expand_to_themselves(own):
    """Frames with any names and lines come back."""
    traces = [dump_stack_trace(StackTrace(tuple(own[:i]), i % 2 == 0)) for i in range(1, len(own) + 1)]
    table, references = compact(traces)
    assert expand_all(references, table) == traces


REFUSED = [
    ("3:7", TABLE, "node a: expected a file index below 3, got 3"),
    ("0:8", TABLE, r"node a: expected a line that co_fileinfo_ordered_list[0] has, got line 8 of 1"),
    ("0:1", [{}], "expected file_name and line_info_map in co_fileinfo_ordered_list[0], got NoneType and NoneType"),
    ("0:1", [{"file_name": "a", "line_info_map": {"1": 3}}], "expected name and line as texts"),
    ("0:1", [{"file_name": "a", "line_info_map": {"1": {"name": "f"}}}], "at line 1, got str and NoneType"),
    ("0:1", [], "expected a file index below 0, got 0"),
]


@pytest.mark.parametrize(("reference", "table", "message"), REFUSED, ids=range(len(REFUSED)))
def test_references_that_lead_nowhere(reference, table, message):
    """A reference to what the table does not have is refused with place and numbers."""
    with pytest.raises(SchemaError) as caught:
        expand(reference, table, "node a")
    assert message in str(caught.value)
    assert str(caught.value).startswith("node a: ")


def test_expansion_is_bounded():
    """A short reference to long lines cannot make a text of any size, nor can many of them together."""
    table = [{"file_name": "a", "line_info_map": {"1": {"name": "f", "line": "x" * 1_000_000}}}]
    with pytest.raises(LimitError, match=f"node: expected at most {MAX_TRACE_CHARACTERS} characters in a trace"):
        expand(";".join(["0:1"] * 5), table, "node")
    with pytest.raises(LimitError, match="nodes: expected traces of at most 268435456 characters in all"):
        expand_all(["0:1"] * 300, table, "nodes")


@given(st.text(), st.lists(st.dictionaries(st.sampled_from(["file_name", "line_info_map"]), st.text() | st.none())))
def test_any_table_raises_only_our_errors(reference, table):
    """Arbitrary references over arbitrary tables are expanded or refused."""
    for text in (reference, "0:1", "1:0;"):
        try:
            expand(text, table)
        except Pt2Error:
            assert is_reference(text)
