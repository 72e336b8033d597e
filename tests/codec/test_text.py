"""Strict JSON: what is refused, where, and with which words."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.codec import MAX_DEPTH, parse
from pt2kit.errors import JsonError, LimitError, Pt2Error
from pt2kit.jsontext import depth, path_text

REFUSED = {
    "empty": (b"", "expected a JSON document, got 0 bytes of nothing [J1]"),
    "blank": (b" \n", "expected a JSON document, got 2 bytes of nothing [J1]"),
    "bom": (b"\xef\xbb\xbf{}", "byte 0: expected JSON, got a byte-order mark [J1]"),
    "utf8": (b'{"a": "\xff"}', "byte 7: expected UTF-8, got 0xff (invalid start byte) [J1]"),
    "cut": (b'{"a": [1, ', "byte 10: not JSON: Expecting value [J1]"),
    "two": (b"{} {}", "byte 3: not JSON: Extra data [J1]"),
    "position counts bytes": ('{"é": x}'.encode(), "byte 7: not JSON: Expecting value [J1]"),
    "nan": (b'{"a": NaN}', 'expected a JSON number, got the bare word NaN; write "NaN" [J1]'),
    "infinity": (b"[-Infinity]", 'expected a JSON number, got the bare word -Infinity; write "-Infinity" [J1]'),
    "float range": (b"[1e400]", "expected a number within 64-bit floats, got 1e400 [J1]"),
    "twice": (b'{"a": {"b": [{"k": 1, "k": 2}]}}', "$.a.b[0]: expected each key once, got 'k' twice [J2]"),
    "twice, escaped": (b'{"k": 1, "\\u006b": 2}', "$: expected each key once, got 'k' twice [J2]"),
    "surrogate": (b'{"a b": "\\ud800"}', '$["a b"]: expected Unicode text, got a lone surrogate [J1]'),
    "surrogate key": (b'{"\\uDC00": 1}', "$: expected Unicode text, got a lone surrogate [J1]"),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_text_is_refused_with_its_place(data, message):
    """One `JsonError` that names the record, the place, what was expected and what was found."""
    with pytest.raises(JsonError) as caught:
        parse(data, "models/m.json")
    assert str(caught.value) == f"models/m.json: {message}"


def test_integers_have_a_limit_of_digits():
    """Beyond 64 bits is fine, thousands of digits are not."""
    assert parse(str(2**200).encode(), "r") == 2**200
    with pytest.raises(JsonError, match="expected an integer of at most 4300 digits"):
        parse(b"9" * 5000, "r")


def test_depth_is_limited():
    """Just at the limit is read; one level more is refused with both numbers, however deep."""
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "r")
    for levels in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(
            LimitError, match=rf"r: expected at most {MAX_DEPTH} levels of nesting, got {levels} \[J3\]"
        ):
            parse(b"[" * levels + b"]" * levels, "r")


def test_brackets_in_strings_are_not_nesting():
    """Only structure counts, also after escaped quotes and backslashes."""
    assert depth(rb'["[[[[", "\"[[", "\\", [0], {"{": "]"}]') == 2


def test_bare_words_are_read_where_allowed():
    """Old releases wrote infinities and nan without quotes."""
    low, high, nan = parse(b"[-Infinity, Infinity, NaN]", "r", bare_literals=True)
    assert (low, high) == (-math.inf, math.inf)
    assert math.isnan(nan)


def test_a_pair_of_surrogates_is_one_character():
    """Escaped characters beyond the basic plane are text."""
    assert parse(b'["\\ud83d\\ude00", "\\\\ud800"]', "r") == ["\U0001f600", "\\ud800"]


TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
)


@given(TREES, st.booleans())
def test_what_json_writes_is_read(tree, ascii_only):
    """Any tree comes back as it was."""
    assert parse(json.dumps(tree, ensure_ascii=ascii_only).encode(), "r") == tree


@st.composite
def damaged(draw):
    """JSON text with a few bytes put in place of one."""
    raw = json.dumps(draw(TREES)).encode()
    cut = draw(st.integers(0, len(raw) - 1))
    return raw[:cut] + draw(st.binary(max_size=3)) + raw[cut + 1 :]


@given(st.binary(max_size=200) | damaged())
def test_only_our_errors_come_out(data):
    """Whatever the bytes, a tree or one of our errors."""
    try:
        parse(data, "r")
    except Pt2Error as error:
        assert str(error).startswith("r: ")


def test_paths_are_written_readably():
    """Plain names with dots, others quoted, positions in brackets."""
    assert path_text(("a", 3, "b c", "d")) == '$.a[3]["b c"].d'
