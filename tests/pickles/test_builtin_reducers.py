"""Calls that make plain values, of Python, torch and numpy: what each gives, and what each refuses."""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import pytest
from tests.pickles.pickle_forge import ORDERED, Build, Call, Raw, Ref, encode, payload, stream

from pt2kit.errors import LimitError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.pickles import values as pv
from pt2kit.pickles.allowed_globals import CALLS, CLASSES, CONSTANTS, INERT, is_plain
from pt2kit.pickles.budget import PickleLimits
from pt2kit.pickles.reader import read_payload


def read(value: Any, **limits: int) -> Any:
    return read_payload(payload(stream(value)), "x.pt", limits=PickleLimits(**limits))


def dtype(code: str, order: str = "<", **state: Any) -> Build:
    names, fields = state.get("names"), state.get("fields")
    return Build(Call("numpy.dtype", (code, False, True)), (3, order, None, names, fields, -1, -1, 0))


def array(data: Any, kind: Any, shape: Any = (2,), fortran: Any = False, core: str = "_core") -> Build:
    made = Call(f"numpy.{core}.multiarray._reconstruct", (Ref("numpy.ndarray"), (0,), b"b"))
    return Build(made, (1, shape, kind, fortran, data))


SHORTS = struct.pack("<2h", 1, -2)
ENCODED = Call("_codecs.encode", ("a\xff", "latin1"))
DEQUE = Raw(encode(Call("collections.deque", ((), 2))) + b"(K\x01K\x02K\x03e")
BUFFER = Raw(b"\x96\x04" + bytes(7) + SHORTS)

GIVEN: dict[str, tuple[Any, Any]] = {
    "OrderedDict": (Call(ORDERED), OrderedDict()),
    "OrderedDict of Python 2": (Call(ORDERED, ([["b", 1], ["a", 2]],)), OrderedDict(b=1, a=2)),
    "Counter": (Call("collections.Counter", ({"a": 2},)), Counter(a=2)),
    "empty Counter": (Call("collections.Counter"), Counter()),
    "defaultdict": (Call("collections.defaultdict", (Ref("__builtin__.list"),)), defaultdict(list)),
    "defaultdict without factory": (Call("collections.defaultdict"), defaultdict(None)),
    "deque": (DEQUE, deque([2, 3], 2)),
    "deque of items": (Call("collections.deque", ([1, 2],)), deque([1, 2])),
    "set": (Call("__builtin__.set", ([1, 2],)), {1, 2}),
    "frozenset": (Call("builtins.frozenset", ([1, 2],)), frozenset({1, 2})),
    "empty bytes": (Call("__builtin__.bytes"), b""),
    "bytes": (ENCODED, b"a\xff"),
    "bytearray": (Call("builtins.bytearray", (b"a\xff",)), bytearray(b"a\xff")),
    "bytearray of protocol 2": (Call("__builtin__.bytearray", ("a\xff", "latin-1")), bytearray(b"a\xff")),
    "empty bytearray": (Call("__builtin__.bytearray"), bytearray()),
    "complex": (Call("__builtin__.complex", (1.0, 2.0)), 1 + 2j),
    "slice": (Call("builtins.slice", (1, None, 2)), slice(1, None, 2)),
    "range": (Call("__builtin__.xrange", (1, 9, 2)), range(1, 9, 2)),
    "Ellipsis": (Ref("__builtin__.Ellipsis"), ...),
    "class": (Ref("__builtin__.int"), pv.Global("builtins", "int")),
    "Size": (Call("torch.Size", ((2, 3),)), pv.Size((2, 3))),
    "device": (Call("torch.device", ("cpu",)), pv.Device("cpu")),
    "device with index": (Call("torch.device", ("cuda", 1)), pv.Device("cuda", 1)),
    "device with index in the text": (Call("torch.device", ("cuda:1",)), pv.Device("cuda", 1)),
    "dtype": (Ref("torch.bfloat16"), pv.DType("bfloat16")),
    "layout": (Call("torch.serialization._get_layout", ("torch.strided",)), pv.Layout("strided")),
    "memory format": (Raw(b"\x8c\x0ctorch._utils\x8c\x13torch.channels_last\x93"), pv.MemoryFormat("channels_last")),
    "scheme": (Ref("torch.per_tensor_affine"), pv.QScheme("per_tensor_affine")),
    "result tuple": (Call("torch.return_types.max", ((1, 2), {})), pv.NamedTuple("torch.return_types.max", (1, 2))),
    "numpy dtype": (dtype("f4"), pv.NumpyDType("<f4")),
    "numpy dtype of one byte": (dtype("u1", "|"), pv.NumpyDType("|u1")),
    "numpy dtype of a big machine": (dtype("f8", ">"), pv.NumpyDType(">f8")),
    "numpy scalar": (
        Call("numpy.core.multiarray.scalar", (dtype("i2"), SHORTS[:2])),
        pv.NumpyScalar("<i2", SHORTS[:2]),
    ),
    "numpy array": (array(SHORTS, dtype("i2")), pv.NumpyArray("<i2", (2,), False, SHORTS)),
    "numpy array in Fortran order": (
        array(bytes(4), dtype("b1", "|"), (2, 2), True, "core"),
        pv.NumpyArray("|b1", (2, 2), True, bytes(4)),
    ),
    "numpy array of text": (array(bytes(8), dtype("U1")), pv.NumpyArray("<U1", (2,), False, bytes(8))),
    "numpy array of protocol 5": (
        Call("numpy._core.numeric._frombuffer", (BUFFER, dtype("i2"), (2,), "C")),
        pv.NumpyArray("<i2", (2,), False, SHORTS),
    ),
    "numpy array without state": (
        Call("numpy._core.multiarray._reconstruct", (Ref("numpy.ndarray"), (0,), b"b")),
        pv.NumpyArray("|i1", (0,), False, b""),
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_calls_give_plain_values(name: str) -> None:
    value, wanted = GIVEN[name]
    ours = read(value)
    assert ours == wanted
    assert isinstance(ours, type(wanted))


def test_details_of_containers() -> None:
    assert read(DEQUE).maxlen == 2
    assert read(GIVEN["defaultdict"][0]).default_factory is list
    assert read(Call("collections.defaultdict", (Ref(ORDERED),)))["x"] == {}


def test_attributes_of_an_ordered_dict_cannot_hide_its_methods() -> None:
    """Attributes from a file are kept as data, and never become attributes of the object."""
    ours = read(Build(Call(ORDERED), {"items": 1, "__class__": 2, "_metadata": {"": 3}}))
    assert ours.attributes == {"items": 1, "__class__": 2, "_metadata": {"": 3}}
    assert list(ours.items()) == []
    assert type(ours) is pv.PickledDict
    assert read(Build(Call(ORDERED), (None, {"a": 1}))).attributes == {"a": 1}
    assert read(Build(Call(ORDERED), ({"a": 1, "b": 1}, {"b": 2}))).attributes == {"a": 1, "b": 2}
    assert read(Build(Call(ORDERED), None)).attributes == {}


REFUSED: dict[str, tuple[Any, type[Pt2Error], str]] = {
    "OrderedDict of a number": (Call(ORDERED, (1,)), PayloadError, "a list or tuple of items, got the integer 1"),
    "OrderedDict of texts": (Call(ORDERED, (["ab"],)), PayloadError, "pairs of key and value, got the string 'ab'"),
    "OrderedDict with a list as key": (Call(ORDERED, ([[[], 1]],)), PayloadError, "a plain hashable value"),
    "OrderedDict of two": (Call(ORDERED, ([], [])), PayloadError, "expected 0 or 1 arguments, got 2"),
    "OrderedDict with a state that is no dict": (
        Build(Call(ORDERED), [1]),
        PayloadError,
        "a dict of attributes, got a list",
    ),
    "OrderedDict with three states": (
        Build(Call(ORDERED), ({}, {}, {})),
        PayloadError,
        "a dict of attributes, got a tuple",
    ),
    "OrderedDict with a numbered attribute": (
        Build(Call(ORDERED), {1: 2}),
        PayloadError,
        "attribute names, got the integer 1",
    ),
    "Counter of a list": (Call("collections.Counter", ([],)), PayloadError, "a dict of counts, got a list of 0"),
    "factory that is a call": (
        Call("collections.defaultdict", (Ref("collections.deque"),)),
        PayloadError,
        "a factory of builtins.bool",
    ),
    "factory that is a text": (Call("collections.defaultdict", ("list",)), PayloadError, "got the string 'list'"),
    "factory from elsewhere": (
        Call("collections.defaultdict", (Ref("os.getcwd"),)),
        UnsupportedError,
        "refers to os.getcwd;",
    ),
    "deque of negative length": (Call("collections.deque", ((), -1)), PayloadError, "maxlen: expected an integer"),
    "set of a set": (Call("builtins.set", ([Call("builtins.set", ([],))],)), PayloadError, "value, got a set"),
    "frozenset of a list": (Call("builtins.frozenset", ([[]],)), PayloadError, "value, got a list"),
    "bytes of a number": (Call("builtins.bytes", (10**9,)), PayloadError, "expected 0 arguments, got 1"),
    "bytearray of a number": (Call("builtins.bytearray", (10**9,)), PayloadError, "a byte string, got the integer"),
    "another codec": (Call("_codecs.encode", ("a", "rot13")), PayloadError, "a text and 'latin1', got"),
    "text beyond latin1": (Call("_codecs.encode", ("a€", "latin1")), PayloadError, r"up to U\+00FF, got U\+20AC"),
    "complex of a text": (Call("builtins.complex", ("1", 0.0)), PayloadError, "two floats, got the string '1'"),
    "slice of a text": (Call("builtins.slice", ("a", 1, 1)), PayloadError, "integers or None, got the string"),
    "range of floats": (Call("builtins.range", (1.0, 2, 1)), PayloadError, "integers, got the number 1.0"),
    "range without step": (Call("builtins.range", (1, 2, 0)), PayloadError, "a step that is not 0"),
    "Size of a text": (Call("torch.Size", ("ab",)), PayloadError, "a tuple of integers, got the string"),
    "Size of texts": (Call("torch.Size", (("a",),)), PayloadError, "integers, got the string 'a'"),
    "device of a number": (Call("torch.device", (0,)), PayloadError, "a device such as"),
    "device of code": (Call("torch.device", ("cpu:x()",)), PayloadError, r"got the string 'cpu:x\(\)'"),
    "device with two indices": (Call("torch.device", ("cuda:0", 1)), PayloadError, "a device such as"),
    "layout that is none": (Call("torch.serialization._get_layout", ("os.system",)), PayloadError, "name of a layout"),
    "result tuple of a list": (Call("torch.return_types.max", ([1],)), PayloadError, "a tuple of values"),
    "result tuple with more": (Call("torch.return_types.max", ((1,), {"a": 1})), PayloadError, "no hidden fields"),
    "registering a result tuple": (
        Call("torch.return_types.pytree_register_structseq", (1,)),
        UnsupportedError,
        "pytree_register_structseq",
    ),
    "dtype of objects": (dtype("O8"), UnsupportedError, "numpy.dtype: expected plain numbers, strings or bytes"),
    "dtype of dates": (dtype("M8"), UnsupportedError, "got type 'M8'"),
    "dtype of a number": (Call("numpy.dtype", (1,)), PayloadError, "a type code such as 'f4', got the integer 1"),
    "dtype with fields": (
        dtype("V4", "|", names=("a",), fields={"a": 1}),
        UnsupportedError,
        "a plain element type, got a structured",
    ),
    "dtype with another order": (dtype("f4", "!"), PayloadError, "a version, a byte order and no fields"),
    "array of too few bytes": (array(b"abc", dtype("i2")), PayloadError, r"4 bytes for \[2\] of <i2, got 3 bytes"),
    "array of objects": (array([1, 2], dtype("i2")), PayloadError, "the elements as bytes, got a list of 2"),
    "array of negative size": (array(b"", dtype("i2"), (-1,)), PayloadError, "shape: expected an integer from 0"),
    "array that would wrap": (array(b"", dtype("i2"), (2**62, 4)), PayloadError, "got 0 bytes"),
    "array without dtype": (array(SHORTS, "i2"), PayloadError, "numpy.ndarray: expected a dtype, got the string"),
    "array state of four": (
        Build(array(SHORTS, dtype("i2")).target, (1, 2, 3, 4)),
        PayloadError,
        "state: expected 5 parts, got a tuple of 4",
    ),
    "array of a subclass": (
        Call("numpy.core.multiarray._reconstruct", (Ref("torch.Tensor"), (0,), b"b")),
        UnsupportedError,
        "expected numpy.ndarray, got the global torch.Tensor",
    ),
    "buffer in another order": (
        Call("numpy._core.numeric._frombuffer", (BUFFER, dtype("i2"), (2,), "K")),
        PayloadError,
        "'C' or 'F'",
    ),
    "scalar of too many bytes": (
        Call("numpy.core.multiarray.scalar", (dtype("i2"), SHORTS)),
        PayloadError,
        "2 bytes of <i2, got 4 bytes",
    ),
    "scalar without dtype": (Call("numpy.core.multiarray.scalar", ("i2", b"")), PayloadError, "a dtype and bytes"),
    "constant called": (Call("torch.float32", ()), PayloadError, "a class or function to call, got a DType"),
    "class called": (Call("builtins.int", ("5",)), UnsupportedError, "is understood, got REDUCE of builtins.int"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name: str) -> None:
    value, error, text = REFUSED[name]
    with pytest.raises(error, match=text) as caught:
        read(value)
    assert str(caught.value).startswith("x.pt: ")


def test_copies_are_paid_for() -> None:
    """A short stream cannot copy one long string many times."""
    text = encode("a" * 1000) + b"q\x00"
    copy = b"0c_codecs\nencode\nh\x00U\x06latin1\x86R"
    assert read(Raw(text + copy * 9), built_bytes=9000) == b"a" * 1000
    with pytest.raises(LimitError, match="calls that copy at most 8999 bytes, got 9000 so far"):
        read(Raw(text + copy * 9), built_bytes=8999)
    containers = (ORDERED, "collections.deque", "collections.Counter", "collections.defaultdict")
    for path in (*containers, "builtins.set", "builtins.frozenset"):
        with pytest.raises(LimitError, match="calls that copy at most"):
            read(Raw((encode(Call(path)) + b"0") * 3 + b"N"), built_bytes=2000)


def test_tables_do_not_overlap() -> None:
    """A global is called, or it is a value; only classes are both."""
    assert not CONSTANTS.keys() & (CALLS.keys() | CLASSES | INERT)
    assert not INERT & (CALLS.keys() | CLASSES)
    assert all(map(is_plain, (*CALLS, *CONSTANTS, *CLASSES, *INERT)))


@pytest.mark.parametrize(
    "path",
    [
        "os.system",
        "builtins.eval",
        "builtins.getattr",
        "builtins.__import__",
        "builtins.object",
        "builtins.type",
        "torch.load",
        "torch.storage._load_from_bytes",
        "numpy.load",
        "codecs.encode",
        "",
        ".",
    ],
)
def test_what_runs_code_is_not_plain(path: str) -> None:
    assert not is_plain(path)
