"""Detection of text: no pickle, no archive, nothing that is not UTF-8."""

from __future__ import annotations

import io
import pickle
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.sanitizing.options import not_text


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", "b")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a note",
        "config\nvalue\nmore\n",
        '{"json": [1, 2.5, "é"]}',
        "#!/bin/sh\nrm -rf x",
        "import os",
        "key: value\n- item",
        "1,2\n3,4",
        "x" * 100_000,
        "The Cat.\nIt sat.",
        "(a)\n(b)",
        "P7 is no pickle",
    ],
)
def test_texts(text: str) -> None:
    """Notes, settings and source are text, whatever they say: torch runs none of them."""
    assert not_text(memoryview(text.encode()), "extra/x") == ""


class Call:
    """The call of a hostile pickle."""

    def __reduce__(self):
        return (print, ("hello",))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [{"a": [1, 2]}, Call(), None, "text"], ids=["dict", "call", "None", "str"])
def test_pickles(value: object, protocol: int) -> None:
    """A pickle is one in every protocol, also the one that is ASCII, and also with bytes behind it."""
    data = pickle.dumps(value, protocol)
    assert not_text(memoryview(data), "extra/x") == "a pickle"
    assert not_text(memoryview(data + b"\nmore text"), "extra/x") == "a pickle"


def test_a_pickle_that_breaks_off() -> None:
    """A broken pickle is a pickle: its calls run before it breaks off."""
    assert not_text(memoryview(b"cos\nsystem\n(S'true'\ntRand then text"), "extra/x") == "a pickle"


def test_archives_and_binaries() -> None:
    """A zip is found wherever it begins; other bytes are no text."""
    assert not_text(memoryview(_zip()), "extra/x") == "a zip archive"
    assert not_text(memoryview(b"text\n" + _zip()), "extra/x") == "a zip archive"
    assert not_text(memoryview(b"\x7fELF\x02\xff"), "extra/x") == "no text: byte 5 is not UTF-8"


@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
def test_any_bytes(data: bytes) -> None:
    """Any bytes have an answer, and what is no UTF-8 is never text."""
    found = not_text(memoryview(data), "extra/x")
    try:
        data.decode()
    except UnicodeDecodeError:
        assert found
