"""The pickle machine: every opcode means what Python's unpickler means by it, and every broken stream is refused."""

from __future__ import annotations

import pickle
import pickletools
import struct
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pickles.pickle_forge import FLOATS, encode, payload, storage

from pt2kit.errors import LimitError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.pickles.budget import PickleLimits
from pt2kit.pickles.reader import read_payload

# Streams without globals, and with globals of Python's own: what Python makes of them is what we must make.
SAME_AS_PYTHON: dict[str, bytes] = {
    "PROTO STOP NONE": b"\x80\x02N.",
    "INT": b"I-17\n.",
    "INT as a bool": b"(I00\nI01\nt.",
    "LONG": b"L123456789012345678901L\n.",
    "BININT": b"J\xfe\xff\xff\xff.",
    "BININT1": b"K\xff.",
    "BININT2": b"M\xff\xff.",
    "LONG1": b"\x8a\x02\x00\xff.",
    "LONG1 of no bytes": b"\x8a\x00.",
    "LONG4": b"\x8b\x03\x00\x00\x00\x01\x02\x03.",
    "FLOAT": b"F-1.5e3\n.",
    "BINFLOAT": b"G" + struct.pack(">d", 0.1) + b".",
    "STRING": b"S'a\\'b\\\\ \\x41\\n\\101'\n.",
    "BINSTRING": b"T\x02\x00\x00\x00ab.",
    "SHORT_BINSTRING": b"U\x02ab.",
    "UNICODE": b"V\\u00e9\\u20ac x\n.",
    "SHORT_BINUNICODE": b"\x8c\x02\xc3\xa9.",
    "BINUNICODE": b"X\x02\x00\x00\x00\xc3\xa9.",
    "BINUNICODE8": b"\x8d\x02" + bytes(7) + b"\xc3\xa9.",
    "SHORT_BINBYTES": b"C\x01\xff.",
    "BINBYTES": b"B\x01\x00\x00\x00\xff.",
    "BINBYTES8": b"\x8e\x01" + bytes(7) + b"\xff.",
    "BYTEARRAY8": b"\x96\x01" + bytes(7) + b"\xff.",
    "NEWTRUE NEWFALSE TUPLE2": b"\x88\x89\x86.",
    "EMPTY_TUPLE": b").",
    "TUPLE1 TUPLE3": b"K\x01\x85K\x02K\x03\x87.",
    "TUPLE MARK": b"(K\x01K\x02t.",
    "LIST": b"(K\x01K\x02l.",
    "EMPTY_LIST APPEND": b"]K\x01a.",
    "APPENDS": b"](K\x01K\x02e.",
    "DICT": b"(K\x01K\x02d.",
    "EMPTY_DICT SETITEM": b"}K\x01K\x02s.",
    "SETITEMS": b"}(K\x01K\x02K\x03K\x04u.",
    "EMPTY_SET ADDITEMS": b"\x8f(K\x01K\x02\x90.",
    "FROZENSET": b"(K\x01K\x02\x91.",
    "POP": b"K\x01K\x020.",
    "POP of a mark": b"K\x01(0.",
    "POP_MARK": b"K\x01(K\x02K\x031.",
    "DUP": b"]2\x86.",
    "PUT GET": b"]p7\ng7\n\x86.",
    "BINPUT BINGET": b"]q\x05h\x05\x86.",
    "LONG_BINPUT LONG_BINGET": b"]r\x00\x01\x00\x00j\x00\x01\x00\x00\x86.",
    "MEMOIZE": b"\x80\x04]\x94h\x00\x86.",
    "memo entry stored twice": b"K\x01q\x00K\x02q\x00h\x00\x87.",
    "FRAME": b"\x80\x04\x95\x02" + bytes(7) + b"N.",
    "GLOBAL REDUCE": b"c__builtin__\nset\n](K\x01K\x02e\x85R.",
    "STACK_GLOBAL": b"\x8c\x08builtins\x8c\x03set\x93)R.",
    "NEWOBJ": b"ccollections\nOrderedDict\n)\x81.",
    "NEWOBJ_EX": b"\x80\x04ccollections\nOrderedDict\n)}\x92.",
    "INST": b"(K\x01K\x05K\x02i__builtin__\nrange\n.",
    "OBJ": b"(c__builtin__\nrange\nK\x01K\x05K\x02o.",
    "BUILD": b"ccollections\nOrderedDict\n)R}U\x01aK\x01sb.",
}

# Opcodes that stand for something else here, or that are refused.
OTHER: dict[str, bytes] = {
    "BINPERSID": encode(storage()) + b".",
    "PERSID": b"Pstorage\n.",
    "EXT1": b"\x82\x01.",
    "EXT2": b"\x83\x01\x00.",
    "EXT4": b"\x84\x01\x00\x00\x00.",
    "NEXT_BUFFER": b"\x97.",
    "READONLY_BUFFER": b"N\x98.",
}


def read(pickled: bytes, **limits: int) -> Any:
    return read_payload(payload(pickled), "x.pt", limits=PickleLimits(**limits))


def typed(value: Any) -> Any:
    """`value` in a form whose equality tells 1 from True and 1.0, a list from a tuple, and 0.0 from -0.0."""
    kind = "OrderedDict" if isinstance(value, OrderedDict) else type(value).__name__
    if isinstance(value, list | tuple):
        return kind, [*map(typed, value)]
    if isinstance(value, dict):
        return kind, [(typed(key), typed(item)) for key, item in value.items()]
    if isinstance(value, set | frozenset):
        return kind, sorted((typed(item) for item in value), key=repr)
    return kind, repr(value)


def same(ours: Any, theirs: Any) -> bool:
    return bool(typed(ours) == typed(theirs))


@pytest.mark.parametrize("name", SAME_AS_PYTHON)
def test_opcodes_mean_what_python_means(name: str) -> None:
    pickled = SAME_AS_PYTHON[name]
    assert same(read(pickled), pickle.loads(pickled))


def test_every_opcode_has_a_case() -> None:
    seen = {op.name for case in (*SAME_AS_PYTHON.values(), *OTHER.values()) for op, _, _ in pickletools.genops(case)}
    assert {op.name for op in pickletools.opcodes} == seen


def test_a_storage_is_what_a_persistent_id_stands_for() -> None:
    assert bytes(read(OTHER["BINPERSID"]).storage.read()) == FLOATS


REFUSED: dict[str, tuple[bytes, type[Pt2Error], str]] = {
    "text persistent id": (OTHER["PERSID"], UnsupportedError, "expected a persistent id of a storage"),
    "extension code, 1 byte": (OTHER["EXT1"], UnsupportedError, r"copyreg._inverted_registry\[1\]"),
    "extension code, 2 bytes": (OTHER["EXT2"], UnsupportedError, r"copyreg._inverted_registry\[1\]"),
    "extension code, 4 bytes": (OTHER["EXT4"], UnsupportedError, r"copyreg._inverted_registry\[1\]"),
    "buffer": (OTHER["NEXT_BUFFER"], UnsupportedError, "buffers from outside"),
    "read-only buffer": (OTHER["READONLY_BUFFER"], UnsupportedError, "buffers from outside"),
    "no bytes": (b"", PayloadError, "byte 0: expected another opcode or STOP, got nothing"),
    "no STOP": (b"N", PayloadError, "byte 1: expected another opcode or STOP, got nothing"),
    "unknown opcode": (b"N\xff.", PayloadError, "byte 1: expected a pickle opcode, got byte 0xff"),
    "protocol 6": (b"\x80\x06N.", PayloadError, "expected protocol 0 to 5, got 6"),
    "bytes after STOP": (b"N.N.", PayloadError, "nothing after the STOP at byte 1, got 2 more bytes"),
    "value left on the stack": (b"NN.", PayloadError, "got 1 more value and 0 marks"),
    "mark left on the stack": (b"(N.", PayloadError, "got 0 more values and 1 mark"),
    "STOP on an empty stack": (b".", PayloadError, "a value on the stack, got an empty stack"),
    "POP of nothing": (b"0.", PayloadError, "a mark on the stack, got none"),
    "TUPLE without a mark": (b"t.", PayloadError, "a mark on the stack, got none"),
    "TUPLE2 of one": (b"N\x86.", PayloadError, "2 values on the stack, got 1"),
    "TUPLE2 across a mark": (b"N(N\x86.", PayloadError, "2 values on the stack, got 1"),
    "DUP of nothing": (b"2.", PayloadError, "a value on the stack"),
    "BINPUT of nothing": (b"q\x00N.", PayloadError, "a value on the stack"),
    "memo entry never stored": (b"h\x03.", PayloadError, "stored before, got entry 3"),
    "negative memo index": (b"Np-1\n.", PayloadError, "index of 0 or more, got -1"),
    "frame longer than the stream": (b"\x80\x04\x95\xff" + bytes(7) + b"N.", PayloadError, "frame of 255 bytes, got 2"),
    "string longer than the stream": (b"X\x09\x00\x00\x00ab.", PayloadError, "expected 9 more bytes, got 3"),
    "a gigabyte of bytes": (b"\x8e" + struct.pack("<Q", 10**9) + b".", LimitError, "at most 134217728, got 1000000000"),
    "2**63 bytes": (b"\x96" + struct.pack("<Q", 1 << 63) + b".", LimitError, "got 9223372036854775808"),
    "negative BINSTRING": (b"T\xff\xff\xff\xff.", LimitError, "got 4294967295"),
    "invalid UTF-8": (b"U\x01\xff.", PayloadError, "expected valid UTF-8, got invalid start byte at byte 0"),
    "lone surrogate": (b"X\x03\x00\x00\x00\xed\xa0\x80.", PayloadError, "expected valid UTF-8"),
    "lone surrogate in an escape": (b"V\\ud800\n.", PayloadError, "without broken escapes or lone surrogates"),
    "broken escape in quotes": (b"S'\\x4'\n.", PayloadError, "a string without broken escapes, got invalid"),
    "broken escape": (b"V\\u12\n.", PayloadError, "without broken escapes"),
    "string without quotes": (b"Sabc\n.", PayloadError, "a string in quotes, got 'abc'"),
    "line without end": (b"I12", PayloadError, "a line ending in a newline"),
    "very long line": (b"S'" + b"a" * 70_000 + b"'\n.", LimitError, "a text line of at most 65536"),
    "integer of letters": (b"Iabc\n.", PayloadError, "a decimal integer, got 'abc'"),
    "integer with underscores": (b"I1_0\n.", PayloadError, "a decimal integer"),
    "float of letters": (b"Fabc\n.", PayloadError, "a float, got 'abc'"),
    "long integer": (
        b"\x8b\x00\x04\x00\x00" + bytes(1024) + b".",
        LimitError,
        "integer length of at most 128, got 1024",
    ),
    "2 GB integer": (b"\x8b\xff\xff\xff\x7f.", LimitError, "integer length of at most 128"),
    "long decimal integer": (b"L" + b"9" * 5000 + b"L\n.", LimitError, "digits of at most 320, got 5000"),
    "odd number of items": (b"}(Nu.", PayloadError, "keys and values in pairs"[:8]),
    "odd number of items for SETITEMS": (b"}(NNNu.", PayloadError, "in pairs, got 3 values"),
    "odd number of items for DICT": (b"(NNNd.", PayloadError, "in pairs, got 3 values"),
    "APPEND to a tuple": (b")Na.", PayloadError, "APPENDS: expected a list, got a tuple of 0"),
    "SETITEM on a list": (b"]NNs.", PayloadError, "SETITEMS: expected a dict, got a list of 0"),
    "ADDITEMS to a dict": (b"}(N\x90.", PayloadError, "ADDITEMS: expected a set, got a dict"),
    "list as a key": (b"}]Ns.", PayloadError, "key: expected a plain hashable value, got a list"),
    "list in a tuple as a key": (b"}]\x85Ns.", PayloadError, "key: expected a plain hashable value, got a list"),
    "dict in a set": (b"\x8f(}\x90.", PayloadError, "key: expected a plain hashable value, got a dict"),
    "list in a frozenset": (b"(]\x91.", PayloadError, "key: expected a plain hashable value, got a list"),
    "REDUCE without a tuple": (b"c__builtin__\nset\n]R.", PayloadError, "a tuple of arguments, got a list"),
    "REDUCE of a text": (b"U\x03set)R.", PayloadError, "REDUCE: expected a class or function to call, got the string"),
    "OBJ of nothing": (b"(o.", PayloadError, "a class and its arguments after the mark, got nothing"),
    "NEWOBJ_EX with a list": (b"c__builtin__\nset\n)]\x92.", PayloadError, "a dict of keyword arguments, got a list"),
    "NEWOBJ_EX with keywords": (b"c__builtin__\nset\n)}U\x01aNs\x92.", PayloadError, "no keyword arguments, got 1"),
    "STACK_GLOBAL of numbers": (b"K\x01K\x02\x93.", PayloadError, "two strings that name a global, got the integer 1"),
    "STACK_GLOBAL of bytes": (b"C\x02osC\x06system\x93.", PayloadError, "two strings that name a global"),
    "GLOBAL with a long name": (b"c" + b"a" * 2000 + b"\nb\n.", LimitError, "name of at most 1024, got 2000"),
    "GLOBAL cut off": (b"cos\nsyst", PayloadError, "a line ending in a newline, got 4 bytes"),
    "BUILD on a list": (b"]}b.", PayloadError, "BUILD: expected an object that takes a state, got a list"),
    "BUILD with a list": (b"ccollections\nOrderedDict\n)R](Neb.", PayloadError, "a dict of attributes"),
    "BUILD with numbers": (b"ccollections\nOrderedDict\n)R}K\x01Nsb.", PayloadError, "attribute names"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_broken_streams_are_refused(name: str) -> None:
    """Each refusal names the record and says what was expected and found."""
    pickled, error, text = REFUSED[name]
    with pytest.raises(error, match=text) as caught:
        read(pickled)
    assert str(caught.value).startswith("x.pt: ")


def test_opcode_limit() -> None:
    assert read(b"N0" * 10 + b"N.", opcodes=22) is None
    with pytest.raises(LimitError, match="at most 21 opcodes, got more"):
        read(b"N0" * 10 + b"N.", opcodes=21)


def test_memo_limit() -> None:
    assert read(b"N" + b"\x94" * 4 + b".", memo_entries=4) is None
    assert read(b"N" + b"q\x00" * 9 + b".", memo_entries=1) is None
    with pytest.raises(LimitError, match="a memo of at most 3, got 4"):
        read(b"N" + b"\x94" * 4 + b".", memo_entries=3)


def test_stream_limit() -> None:
    with pytest.raises(LimitError, match=r"data\.pkl: expected at most 10 bytes, got 12"):
        read(b"U\x09123456789.", stream_bytes=10)


def test_a_stream_cut_anywhere_is_refused() -> None:
    whole = pickle.dumps({"a": [1, 2.5, ("x" * 300, b"y")], "b": {1, 2}}, 4)
    assert read(whole)
    for length in range(len(whole)):
        with pytest.raises(PayloadError, match=r"^x\.pt: pickle byte \d+: expected .*\(the stream is cut off\)$"):
            read(whole[:length])


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**1000), 2**1000)
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
    | st.binary().map(bytearray)
    | st.builds(slice, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9))
)
KEYS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text("abé\n\\'")
    | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
VALUES = st.recursive(
    SCALARS | KEYS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4).map(OrderedDict)
        | st.sets(KEYS, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_what_python_pickles_comes_back(value: Any, protocol: int) -> None:
    """Plain values written by Python's pickler in any protocol are read back equal, and of the same types."""
    assert same(read(pickle.dumps(value, protocol)), value)


def test_identity_is_kept() -> None:
    """An object that a pickle refers to twice is one afterwards, and other equal objects stay apart."""
    shared: list[int] = [1]
    for protocol in range(2, 6):
        ours = read(pickle.dumps([shared, {"a": shared}, [1]], protocol))
        assert ours[0] is ours[1]["a"]
        assert ours[0] is not ours[2]
