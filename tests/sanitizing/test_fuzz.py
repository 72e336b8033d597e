"""Files with changed bytes: each is refused with an error of ours, or gives a clean file."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import samples
from tests.packages import rewritten
from tests.sanitizing.files import pickles_in, sanitized

import pt2kit
from pt2kit.errors import Pt2Error

SOURCES = {
    "mlp": samples.sample("2.13.0", "mlp").read_bytes(),
    "inputs": samples.sample("2.13.0", "kwargs_and_nested_inputs").read_bytes(),
    "clean": sanitized(samples.sample("2.13.0", "kwargs_and_nested_inputs"))[0],
    "old": samples.sample("2.8.0", "mlp").read_bytes(),
}


def records(data: bytes) -> dict[str, bytes]:
    """Content of the records, by their names below the root folder."""
    with pt2kit.open(data) as package:
        return {package.relative(name): bytes(package.archive.read(name)) for name in package.records}


RECORDS = {name: records(data) for name, data in SOURCES.items()}
EDITS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([b"", b"\x00", b'"', b"1", b"{}", b".", b"R"])), max_size=4)


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=60)
@given(st.data(), EDITS)
def test_changed_records(source: str, draw: st.DataObject, edits: list[tuple[float, bytes]]) -> None:
    """Bytes of one record are replaced, cut or doubled."""
    name = draw.draw(st.sampled_from(sorted(RECORDS[source])))
    content = RECORDS[source][name]
    for place, piece in edits:
        at = int(place * len(content))
        content = content[:at] + piece + content[at + 1 :]
    data = rewritten(io.BytesIO(SOURCES[source]), {name: content})
    try:
        clean, _ = sanitized(data)
    except Pt2Error as error:
        assert all(line.isprintable() for line in str(error).split("\n"))
        return
    assert pickles_in(clean) == []
    assert sanitized(clean)[0] == clean
