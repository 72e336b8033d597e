"""Values that cannot be walked are refused: cycles, nests, and payloads small in the file and large as a tree."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from tests.pickles.pickle_forge import ORDERED, Call, Ref, encode, payload

from pt2kit.errors import LimitError, PayloadError, UnsupportedError
from pt2kit.pickles.budget import PickleLimits
from pt2kit.pickles.reader import read_payload


def read(pickled: bytes, trust: set[str] | frozenset[str] = frozenset(), **limits: int) -> Any:
    return read_payload(payload(pickled), "x.pt", limits=PickleLimits(**limits), trust=trust)


CYCLES: dict[str, bytes] = {
    "list": b"]q\x00h\x00a.",
    "dict": b"}q\x00U\x01ah\x00s.",
    "list in a tuple": b"]q\x00h\x00\x85a.",
    "two lists": b"]q\x00]q\x01h\x00aah\x01h\x00a\x86.",
    "OrderedDict": encode(Call(ORDERED)) + b"q\x00U\x01ah\x00s.",
    "attributes of an OrderedDict": encode(Call(ORDERED)) + b"q\x00}U\x01ah\x00sb.",
    "deque": encode(Call("collections.deque")) + b"q\x00h\x00a.",
    "state of an object": encode(Ref("m.C")) + b")\x81q\x00h\x00b.",
    "items of an object": encode(Ref("m.C")) + b")\x81q\x00h\x00a.",
    "value of a named tuple": b"]q\x00cm\nNT\nh\x00\x85\x81a.",
}


@pytest.mark.parametrize("name", CYCLES)
def test_cycles_are_refused(name: str) -> None:
    with pytest.raises(PayloadError, match=r"x\.pt: value: expected containers that do not contain themselves"):
        read(CYCLES[name], trust={"m.C"})


def test_an_object_in_its_own_arguments() -> None:
    """A set cannot hold itself, as its elements are checked before they go in."""
    with pytest.raises(PayloadError, match="a plain hashable value, got a set"):
        read(b"\x8fq\x00(h\x00\x90.")


def tuples(depth: int) -> bytes:
    return b"K\x01" + b"\x85" * depth + b"."


def lists(depth: int) -> bytes:
    return b"(" * depth + b"l" * depth + b"."


def lists_from_outside_in(depth: int) -> bytes:
    """Each list is empty when it is appended to the one around it, so that only the whole value is deep."""
    return b"]q\x00q\x01" + b"0h\x01]q\x02a0h\x02q\x01" * (depth - 1) + b"0h\x00."


def dicts(depth: int) -> bytes:
    return b"}U\x01a" * depth + b"N" + b"s" * depth + b"."


def named_tuples(depth: int) -> bytes:
    return b"cm\nNT\n" * depth + b"N" + b"\x85\x81" * depth + b"."


def objects(depth: int) -> bytes:
    return b"cm\nC\n)\x81" * depth + b"N" + b"b" * depth + b"."


NESTS = [tuples, lists, lists_from_outside_in, dicts, named_tuples, objects]


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.__name__)
def test_depth_counts_containers(nest: Callable[[int], bytes]) -> None:
    """As deep as the limit is fine; one deeper is not, nor is as deep as a stream can be."""
    # An empty list is a leaf, and takes part in no nest.
    leaf = nest in (lists, lists_from_outside_in)
    assert read(nest(20 + leaf), {"m.C"}, depth=20) is not None
    with pytest.raises(LimitError, match="nested at most 20 deep, got 21 or more"):
        read(nest(21 + leaf), {"m.C"}, depth=20)
    with pytest.raises(LimitError, match="nested at most 200 deep"):
        read(nest(50_000), {"m.C"})


def test_depth_through_shared_parts() -> None:
    """The longest way counts, also where it leads through a part that was walked before on a shorter one."""
    inner = b"K\x01" + b"\x85" * 10 + b"q\x000"
    short_first = inner + b"h\x00h\x00" + b"\x85" * 9 + b"\x86."
    assert read(short_first, depth=20)
    with pytest.raises(LimitError, match="at most 19 deep"):
        read(short_first, depth=19)


def test_items_are_counted_as_a_tree() -> None:
    """A list of lists of lists … is as large as walking it takes, however small it is in the file."""
    laughs = b"K\x01" + b"q\x000(" + b"h\x00" * 10 + b"l"
    laughs += (b"q\x000(" + b"h\x00" * 10 + b"l") * 7 + b"."
    with pytest.raises(LimitError, match=r"at most 10000000 items, got 1[0-9]{7} or more as a tree"):
        read(laughs)
    assert read(b"]q\x00N\x85q\x01(h\x01h\x01h\x01l\x87.", total_items=11)
    with pytest.raises(LimitError, match="at most 10 items, got 11 or more"):
        read(b"]q\x00N\x85q\x01(h\x01h\x01h\x01l\x87.", total_items=10)


def test_shared_parts_are_walked_once() -> None:
    """A value with 2**100 ways through it is refused at once, not walked."""
    with pytest.raises(LimitError, match="as a tree"):
        read(b"K\x01" + b"2\x86" * 100 + b".")


def test_keys_cannot_be_expensive() -> None:
    """A key's hash is computed again and again, and over every way through it."""
    assert read(b"}K\x01" + b"2\x86" * 5 + b"Ns.")
    with pytest.raises(LimitError, match="keys of at most 100 parts, got more"):
        read(b"}K\x01" + b"2\x86" * 60 + b"Ns.")
    with pytest.raises(LimitError, match="keys of at most 100 parts, got more"):
        read(b"\x8f((" + b"K\x01" * 100 + b"t\x90.")


DEEP_KEYS = {"tuple": b"K\x01" + b"\x85" * 99, "named tuple": b"cm\nNT\n" * 99 + b"K\x01" + b"\x85\x81" * 99}


@pytest.mark.parametrize("name", DEEP_KEYS)
def test_deep_keys_that_are_equal(name: str) -> None:
    """Comparing two keys recurses; the deepest that are let in can still be compared."""
    key = DEEP_KEYS[name]
    assert len(read(b"}" + key + b"Ns" + key + b"Ns.")) == 1


@pytest.mark.parametrize("key", [2**61, -(2**61), 0.5, (1,), 1j, frozenset({1})], ids=repr)
def test_keys_that_can_collide_are_few(key: Any) -> None:
    """Keys whose hashes a file can choose are limited in number; texts and small integers are not."""
    keys = [key, "a", b"b", 1, True, None, 2**59]
    pickled = pickle.dumps([{one: 0} for one in keys], 4)
    assert read(pickled, unusual_keys=1)
    with pytest.raises(LimitError, match="at most 0 keys besides strings and small integers"):
        read(pickled, unusual_keys=0)


def test_globals_may_not_stand_for_themselves() -> None:
    """A class that makes named tuples elsewhere in the value is still refused where it stands as itself."""
    made = b"cm\nNT\nq\x00K\x01\x85\x81"
    assert read(made + b".").values == (1,)
    with pytest.raises(UnsupportedError, match=r"refers to m\.NT;"):
        read(made + b"h\x00\x86.")
    assert read(made + b"h\x00\x86.", {"m.NT"})[1].path == "m.NT"
