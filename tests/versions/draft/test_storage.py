"""Big-endian bytes, inside a draft program or next to it, are tensors like any other."""

from __future__ import annotations

import base64
import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.golden_maker import tensor

from pt2kit.errors import IntegrityError, PayloadError, UnsupportedError
from pt2kit.pickles.values import PickledTensor
from pt2kit.versions.draft.storage import (
    DTYPES,
    decode_tensor,
    encode_tensor,
    swap_bytes,
    unfit,
)
from pt2kit.zip.reader import Storage

BYTES = struct.pack(">3f", 1, 2, 3)
META = {
    "dtype": "f32",
    "sizes": [{"as_int": 3}],
    "requires_grad": False,
    "device": {"type": "cpu", "index": 0},
    "strides": [{"as_int": 1}],
    "storage_offset": {"as_int": 0},
    "layout": "strided",
}
INTERNAL = {"data_location": "Internal", "data": {"buffer": base64.b64encode(BYTES).decode()}}


def draft(meta=None, **storage):
    return {"storage": {**INTERNAL, **storage}, "meta": {**META, **(meta or {})}}


def external(**data):
    held = {"location": "w.bin", "offset": "4", "length": "12", "checksum": hashlib.sha256(BYTES).hexdigest(), **data}
    return draft(data_location="External", data=held)


def read(location, offset, length):
    return (b"\0" * 4 + BYTES)[offset : offset + length] if location == "w.bin" else b""


@pytest.mark.parametrize(
    "stored",
    [draft(), external(), external(checksum=""), external(checksum="sha256:" + hashlib.sha256(BYTES).hexdigest())],
)
def test_tensors_are_described_and_read(stored):
    """Numbers come out little-endian."""
    found = decode_tensor(stored, "parameter", "x", read)
    assert (found.dtype_name, found.sizes, found.strides, found.kind) == ("float32", (3,), (1,), "parameter")
    assert found.storage.nbytes == 12
    assert struct.unpack("<3f", found.storage.read()) == (1, 2, 3)


def test_nothing_is_read_before_it_is_asked_for():
    """Describing a tensor opens no file and decodes no text."""

    def refuse(*_):
        raise AssertionError("read")

    decode_tensor(external(), "buffer", "x", refuse)
    found = decode_tensor(draft(data={"buffer": "????" * 4}), "buffer", "x", None)
    with pytest.raises(PayloadError, match="expected base64"):
        found.storage.read()


def test_a_description_goes_back_to_the_same_draft():
    """Its bytes lie inside."""
    value = decode_tensor(draft(), "buffer", "x", None)
    assert encode_tensor(value, META, "x") == draft()


BAD = [
    (external(checksum="0" * 64), IntegrityError, r"^x: w\.bin: expected bytes with the SHA-256 000"),
    (external(length="13"), PayloadError, r"^x: w\.bin: expected 13 bytes at the offset, got 12"),
    (external(location="other"), PayloadError, "expected 12 bytes at the offset, got 0"),
]


@pytest.mark.parametrize(("stored", "error", "message"), BAD)
def test_bytes_that_are_not_the_ones(stored, error, message):
    """They are compared with what the program says of them when they are read."""
    found = decode_tensor(stored, "buffer", "x", read)
    with pytest.raises(error, match=message):
        found.storage.read()


REFUSED = [
    (external(checksum="md5:abc"), "checksum: expected sha256: and 64 hexadecimal digits, got 'md5:abc'"),
    (external(offset="-1"), "offset: expected a decimal number, got '-1'"),
    (external(length="0x10"), "length: expected a decimal number"),
    (external(length="1" * 30), "length: expected a decimal number"),
    (external(location=""), "location: expected a relative path inside the program's folder, got ''"),
    (external(location="/etc/passwd"), "location: expected a relative path"),
    (external(location="a/../../b"), "location: expected a relative path"),
    (external(location="a//b"), "location: expected a relative path"),
    (external(location="C:/b"), "location: expected a relative path"),
    (external(location="a\\b"), "location: expected a relative path"),
    (external(location="a\0b"), "location: expected a relative path"),
    (draft(data_location="External"), "expected an ExternalBuffer, as data_location says, got a Buffer"),
    (
        {**external(), "storage": {**external()["storage"], "data_location": "Internal"}},
        "expected a Buffer, as data_location says",
    ),
    (draft({"sizes": [{"as_sym": "s0"}]}), "expected concrete sizes, strides and offset, 0 or more, got 's0'"),
    (draft({"sizes": [{"as_int": -1}]}), "expected concrete sizes, strides and offset, 0 or more, got -1"),
    (draft({"sizes": [{"as_int": 4}]}), "expected at least 16 bytes for float32"),
    (draft({"storage_offset": {"as_int": 1}}), "expected at least 16 bytes for float32"),
    (draft({"strides": []}), "expected as many strides as sizes, got 0 and 1"),
]


@pytest.mark.parametrize(("stored", "message"), REFUSED)
def test_descriptions_that_are_refused(stored, message):
    """Before anything is read."""
    with pytest.raises(PayloadError, match=rf"^x: {message}".replace("(", r"\(")):
        decode_tensor(stored, "buffer", "x", read)


def test_empty_tensors_need_no_bytes():
    """Whatever their other sizes are."""
    found = decode_tensor(draft({"sizes": [{"as_int": 0}]}, data={"buffer": ""}), "buffer", "x", None)
    assert found.storage.nbytes == 0
    assert bytes(found.storage.read()) == b""


def test_external_bytes_need_the_folder():
    """A program not opened by its path is an error."""
    with pytest.raises(
        UnsupportedError, match=r"which has its storage in 'w\.bin', got none; open the program by its path"
    ):
        decode_tensor(external(), "buffer", "x", None).storage.read()


@pytest.mark.parametrize(("short", "name"), DTYPES.items())
def test_numbers_change_their_byte_order(short, name):
    """Complex ones part by part; swapping twice changes nothing."""
    data = bytes(range(32))
    swapped = swap_bytes(data, name)
    assert swap_bytes(swapped, name) == data
    width = {"u8": 1, "i8": 1, "b8": 1, "c32": 2, "c64": 4, "c128": 8}.get(short, int(short.lstrip("uifbc")) // 8)
    assert swapped[:width] == data[:width][::-1]


@given(values=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=8), rest=st.binary(max_size=3))
def test_byte_order_is_that_of_struct(values, rest):
    """A rest that is no number is unchanged."""
    big, little = (struct.pack(f"{order}{len(values)}i", *values) for order in "><")
    assert swap_bytes(big + rest, "int32") == little + rest


def test_what_the_draft_cannot_hold():
    """Newer dtypes, and tensors that are not what is stored."""
    storage = Storage("k", 12, lambda: memoryview(bytes(12)))
    for value, text in (
        (PickledTensor(storage, "float8_e5m2", (1,), (1,), 0), "float8_e5m2"),
        (PickledTensor(storage, "complex64", (1,), (1,), 0, conj=True), "a lazily conjugated or negated tensor"),
    ):
        assert unfit(value) == text
    assert unfit(tensor()) == ""
