"""Payloads that only code could rebuild."""

from __future__ import annotations

import io
import pickle
import zipfile
from typing import Any

import pytest
from tests.samples import DATA
from tests.tensors.helpers import meta, storage

from pt2kit.errors import PayloadError, Pt2Error, UnsupportedError
from pt2kit.tensors import OpaquePayload
from pt2kit.tensors.opaque import OpaqueKind


class Calls:
    """A hostile pickle: a call of its choice when it is loaded."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> Any:
        return self.call


def opaque(data: bytes, kind: OpaqueKind = "opaque") -> OpaquePayload:
    return OpaquePayload("k", storage(data, "m/data/constants/opaque_obj_0"), kind)


def test_listing_reads_nothing() -> None:
    """Name, kind and size are known from the directory."""
    found = opaque(b"garbage")
    assert repr(found) == "OpaquePayload('k', opaque, 'm/data/constants/opaque_obj_0', 7 bytes)"
    assert found.describe() == "a Python object, 7 bytes"
    assert bytes(found.buffer()) == b"garbage"
    assert OpaquePayload("k", storage(b""), "pickle", meta()).tensor_meta == meta()


@pytest.mark.parametrize("kind", ["pickle", "torchbind", "opaque"])
def test_globals_are_named(kind: OpaqueKind, tmp_path: Any) -> None:
    """Imports of unpickling are listed, and named in the refusal; nothing of them is called."""
    target = tmp_path / "made"
    found = opaque(pickle.dumps(Calls(open, str(target), "w"), protocol=2), kind)
    name = f"{open.__module__}.open"  # "io", and "_io" from Python 3.13 on
    assert found.globals() == (name,)
    with pytest.raises(UnsupportedError) as caught:
        found.view()
    assert str(caught.value).startswith("m/data/constants/opaque_obj_0: 'k': expected plain tensor data, got ")
    assert name in str(caught.value)
    assert str(caught.value).endswith("would run code [P15]")
    assert not target.exists()


def test_many_globals_are_cut_short() -> None:
    """A list of globals from a file does not fill the screen."""
    stream = b"\x80\x02" + b"".join(b"cevil\nf%d\n0" % i for i in range(50)) + b"N."
    with pytest.raises(UnsupportedError, match=r"evil\.f0, .* and 30 more; rebuilding"):
        opaque(stream).view()


@pytest.mark.parametrize("kind", ["torchbind", "opaque"])
def test_objects_are_never_tensors(kind: OpaqueKind) -> None:
    """Even without any global, an object is not turned into a value."""
    with pytest.raises(UnsupportedError, match=r"rebuilding it would run code \[P15\]"):
        opaque(pickle.dumps([1, 2], protocol=2), kind).view()


@pytest.mark.parametrize("kind", ["pickle", "torchbind", "opaque"])
@pytest.mark.parametrize("data", [b"", b"garbage", b"PK\x03\x04garbage", b"\x80\x02", b"\x80\x02K\x01."])
def test_broken_payloads(data: bytes, kind: OpaqueKind) -> None:
    """A payload that is nothing at all ends in an error of ours that names it."""
    with pytest.raises(Pt2Error) as caught:
        opaque(data, kind).view()
    assert "m/data/constants/opaque_obj_0" in str(caught.value)
    assert isinstance(caught.value, UnsupportedError) or kind == "pickle"


def test_no_globals_in_garbage() -> None:
    """Listing what is no pickle is an error, not an empty list."""
    with pytest.raises(PayloadError, match=r"\'k\': expected a zip of torch\.save "):
        opaque(b"garbage").globals()


def test_pickled_tensors_that_contradict_themselves() -> None:
    """The rule is that of pickled payloads, whatever is wrong with their parts."""
    with zipfile.ZipFile(DATA / "torchao" / "int4.pt2") as package:
        weight = package.read(next(name for name in package.namelist() if name.endswith("weight_0")))
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(weight)) as given, zipfile.ZipFile(made, "w") as taken:
        for entry in given.infolist():
            taken.writestr(entry, given.read(entry).replace(b"zero_point", b"block_size"))
    broken = opaque(made.getvalue(), "pickle")
    with pytest.raises(PayloadError, match=r"expected the tensor zero_point, got none \[P22\]"):
        broken.view()
