"""Percent escapes of separators inside names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node_metadata.texts import names

from pt2kit.node_metadata.modules import decode_name, encode_name

SEPARATORS = [";", ",;", ",;()[]"]

CASES = [
    ("plain", "plain"),
    ("50%", "50%"),
    ("a,b", "a%2Cb"),
    ("d.a;b", "d.a%3Bb"),
    ("L['x']", "L%5B'x'%5D"),
    ("f(x)", "f%28x%29"),
    ("%2C", "%252C"),
    ("%252C", "%25252C"),
    ("%25", "%25"),
    ("%2c", "%2c"),
    ("%%2C,", "%%252C%2C"),
]


@pytest.mark.parametrize(("name", "text"), CASES)
def test_vectors(name, text):
    """The written form of a name; names without separators do not change."""
    assert encode_name(name, ",;()[]") == text
    assert decode_name(text, ",;()[]") == name


@pytest.mark.parametrize("separators", SEPARATORS)
@given(name=names)
def test_every_name_comes_back(separators, name):
    """Writing and reading are inverse for every name, and what is written has no separator in it."""
    text = encode_name(name, separators)
    assert not set(text) & set(separators)
    assert decode_name(text, separators) == name


@pytest.mark.parametrize("separators", SEPARATORS)
@given(text=names)
def test_every_text_comes_back(separators, text):
    """Reading and writing are inverse for every text without separators."""
    for separator in separators:
        text = text.replace(separator, "")
    assert encode_name(decode_name(text, separators), separators) == text


@given(names, st.sampled_from([";", ",;"]))
def test_escaping_some_separators(name, only):
    """With only some separators escaped the name still comes back, and those do not occur."""
    text = encode_name(name, ",;()[]", only=only)
    assert not set(text) & set(only)
    assert decode_name(text, ",;()[]") == name
