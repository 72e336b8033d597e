"""Sample inputs as JSON: written and read back they are the same, and no JSON makes the reader fail otherwise."""

from __future__ import annotations

import json
import math
from collections import OrderedDict, defaultdict, deque
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pt2kit import codec
from pt2kit.errors import LimitError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.package.pickle_free_inputs import FAKE_TENSOR, decode_values, encode_values
from pt2kit.pickles import values as data
from pt2kit.tensors.dtypes import DTYPES

WHERE = "extra/pt2kit/sample_inputs/model.json"
STORAGES = tuple(
    data.PickledStorage(str(number), dtype, 64, "cpu", lambda: memoryview(bytes(64)))
    for number, dtype in enumerate(("float32", "uint8", "qint8"))
)


def moved(value: Any) -> Any:
    """A value after it was written and read back."""
    [found] = moved_all([value])
    return found


def moved_all(values: list[Any]) -> list[Any]:
    written = encode_values(values, WHERE)
    tree = codec.parse(codec.encode({"values": written.values, "roots": written.roots}), WHERE)
    return decode_values(tree["values"], tree["roots"], written.storages, WHERE)


def alike(a: Any, b: Any) -> bool:
    """Return whether values are equal, of equal types all the way down, nan equal to nan."""
    if type(a) is not type(b):
        return isinstance(a, data.Opaque) and isinstance(b, data.Opaque) and repr(a) == repr(b)
    match a:
        case float():
            return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
        case complex():
            return alike(a.real, b.real) and alike(a.imag, b.imag)
        case dict():
            attributes = [list(getattr(one, "attributes", {}).items()) for one in (a, b)]
            same_factory = getattr(a, "default_factory", None) is getattr(b, "default_factory", None)
            return alike(*attributes) and same_factory and alike(list(a.items()), list(b.items()))
        case list() | tuple():
            return len(a) == len(b) and all(map(alike, a, b))
        case deque():
            return a.maxlen == b.maxlen and alike(list(a), list(b))
        case set() | frozenset():
            return sorted(map(repr, a)) == sorted(map(repr, b))
        case data.NamedTuple():
            return a.class_name == b.class_name and alike(a.values, b.values)
        case data.Opaque():
            return repr(a) == repr(b)
    return a == b if not hasattr(a, "attributes") else _tensors_alike(a, b)


def _tensors_alike(a: Any, b: Any) -> bool:
    return all(
        alike(dict(getattr(a, name)), dict(getattr(b, name)))
        if name == "attributes"
        else alike(getattr(a, name), getattr(b, name))
        for name in a.__slots__
    )


@st.composite
def tensors(draw: st.DrawFn) -> data.PickledTensor:
    """A dense tensor of any element type, strided, expanded or empty, inside a storage of 64 bytes."""
    row = draw(st.sampled_from(list(DTYPES.values())))
    room = 64 // row.itemsize
    offset = draw(st.integers(0, room - 1))
    sizes, strides, left = [], [], room - offset - 1
    for _ in range(draw(st.integers(0, 3))):
        stride = draw(st.integers(0, 3))
        size = draw(st.integers(0, 1 + (left // stride if stride else 4)))
        left -= max(size - 1, 0) * stride
        sizes.append(size)
        strides.append(stride)
    return data.PickledTensor(
        draw(st.sampled_from(STORAGES[:2])),
        row.name,
        tuple(sizes),
        tuple(strides),
        offset,
        requires_grad=draw(st.booleans()),
        kind=draw(st.sampled_from(["tensor", "parameter", "buffer"])),
        conj=draw(st.booleans()),
        neg=draw(st.booleans()),
        attributes=draw(st.dictionaries(st.sampled_from(["mark", "é"]), st.integers(), max_size=1)),
    )


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | TEXTS | st.binary(max_size=5)
LEAVES = st.one_of(
    SCALARS,
    tensors(),
    st.builds(data.DType, st.sampled_from([row.name for row in DTYPES.values()])),
    st.sampled_from([data.Layout("strided"), data.MemoryFormat("channels_last"), data.MemoryFormat("preserve_format")]),
    st.sampled_from([data.Device("cpu"), data.Device("cuda", 1), data.Size((2, 3))]),
    st.sampled_from([slice(None, 2, -1), range(1, 9, 2)]),
    st.builds(data.MetaTensor, st.just("float32"), st.just((2, 3)), st.just((3, 1)), st.booleans()),
)
KEYS = st.one_of(st.booleans(), st.integers(-9, 9), TEXTS, st.tuples(st.integers(-9, 9), TEXTS))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=3).map(data.PickledDict),
        st.dictionaries(KEYS, inner, max_size=2).map(lambda items: defaultdict(list, items)),
        st.lists(inner, max_size=3).map(lambda items: deque(items, 5)),
        st.frozensets(KEYS, max_size=3),
        st.sets(KEYS, max_size=3),
        st.builds(data.NamedTuple, st.just("shop.Item"), st.lists(inner, max_size=2).map(tuple)),
    ),
    max_leaves=12,
)


@given(TREES)
@example(data.PickledDict([("b", 1), ("a", 2)]))
@example({1: "int", "1": "text", (1, "x"): "tuple"})
@example([float("nan"), float("inf"), -0.0, complex(0, float("-inf")), 2**300, -(2**300), b"", ""])
def test_round_trip(value: Any) -> None:
    """Any value comes back as it was, in the same types and in the same order."""
    assert alike(moved(value), value)


@given(TREES)
def test_same_value_same_json(value: Any) -> None:
    """A value that was read back is written as before: the JSON has all of it."""
    first = encode_values([value], WHERE)
    again = encode_values(decode_values(first.values, first.roots, first.storages, WHERE), WHERE)
    assert (again.values, again.roots, again.storages) == (first.values, first.roots, first.storages)


def test_sets_have_one_order() -> None:
    """The members of a set are written in an order that does not depend on how they hash."""
    words = [f"word{number}" for number in range(20)]
    one = encode_values([set(words), frozenset(reversed(words))], WHERE)
    assert one.values[0]["set"] == one.values[1]["frozenset"] == sorted(words)
    nested = {frozenset(("b", "a")): "c", ("x", 1): "b", data.NamedTuple("m.N", (1,)): "a"}
    backwards = dict(reversed(nested.items()))
    assert encode_values([set(nested)], WHERE) == encode_values([set(backwards)], WHERE)


DENSE = data.PickledTensor(STORAGES[0], "float32", (2, 2), (2, 1), 0)
INT64 = data.PickledTensor(STORAGES[1], "int64", (1, 2), (2, 1), 0)
OTHER_TENSORS = [
    data.SparseTensor("sparse_coo", (INT64,), data.PickledTensor(STORAGES[0], "float32", (2,), (1,), 0), (4,), True),
    data.SparseTensor("sparse_coo", (INT64,), data.PickledTensor(STORAGES[0], "float32", (2,), (1,), 0), (4,), None),
]


@pytest.mark.parametrize("tensor", OTHER_TENSORS, ids=lambda tensor: type(tensor).__name__)
def test_other_tensors(tensor: Any) -> None:
    """Sparse tensors come back by their parts."""
    assert alike(moved(tensor), tensor)


def test_marks_and_fake_tensors() -> None:
    """Marks of dynamic dimensions and fake tensors come back as the descriptions that they are."""
    mark = data.Opaque(data.Global("torch._dynamo.decorators", "_DimRange"), (), state={"dim": 0, "min": 2}, built=True)
    tensor = data.PickledTensor(STORAGES[0], "float32", (2,), (1,), 0, attributes={"_dynamo_dynamic_range": {mark}})
    assert alike(moved(tensor), tensor)
    meta = (
        b'{"dtype":7,"sizes":[{"as_int":2}],"requires_grad":false,"device":{"type":"cpu","index":null},'
        b'"strides":[{"as_int":1}],"storage_offset":{"as_int":0},"layout":7}'
    )
    fake = data.Opaque(data.Global(*FAKE_TENSOR.rpartition(".")[::2]), (meta, False))
    assert alike(moved(fake), fake)


def test_what_is_shared_stays_shared() -> None:
    """A list that is in the value a million times is written once, and is one list again."""
    value: Any = [1]
    for _ in range(20):
        value = [value, value]
    written = encode_values([value], WHERE)
    assert len(written.values) == 21
    found = moved(value)
    while len(found) == 2:
        assert found[0] is found[1]
        found = found[0]


def test_deep_values() -> None:
    """A value as deep as the reader of pickles lets through is written and read; a deeper one is refused."""
    value: Any = 1
    for _ in range(200):
        value = [value]
    assert moved([value][0]) == value
    with pytest.raises(LimitError, match="nested at most 201 deep"):
        moved([[value]])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (data.Opaque(data.Global("os", "system"), ("true",)), "an object of os.system"),
        ([data.Global("builtins", "eval")], "the global builtins.eval"),
        (defaultdict(lambda: 1), "expected a defaultdict of"),
        (data.Opaque(data.Global(*FAKE_TENSOR.rpartition(".")[::2]), (b"[]", False)), "fake tensor"),
        (data.Opaque(data.Global("torch._dynamo.decorators", "_DimRange"), items=[1]), "an object of torch._dynamo"),
        (object(), "got 'a object'"),
        (data.NumpyScalar("<i2", b"ab"), "got 'a NumpyScalar'"),
    ],
)
def test_what_is_no_data(value: Any, text: str) -> None:
    """An object, a class or a function is refused by its name."""
    with pytest.raises(Pt2Error, match=text) as caught:
        encode_values([value], WHERE)
    assert str(caught.value).startswith(WHERE)


TENSOR = {
    "storage": 0,
    "dtype": "float32",
    "sizes": [2],
    "strides": [1],
    "storage_offset": 0,
    "conj": False,
    "neg": False,
    "requires_grad": False,
    "kind": "tensor",
    "attributes": [],
}
SPARSE = {
    **{key: TENSOR[key] for key in ("requires_grad", "kind", "attributes")},
    "layout": "sparse_coo",
    "indices": [None],
    "values": None,
    "sizes": [],
    "is_coalesced": None,
}
MARK: dict[str, Any] = {"class": "torch._dynamo.decorators._DimRange", "args": [], "state": None, "built": False}
BAD = [
    ({}, "values: expected a list, got a dict"),
    ([1], r"values\[0\]: expected an object with one key, got the integer 1"),
    ([{"list": [], "dict": []}], "expected an object with one key"),
    ([{"eval": []}], "expected a container or a tensor, got 'eval'"),
    ([{"list": 3}], r"values\[0\]\.list: expected a list"),
    ([{"list": [{"ref": 0}]}], "expected an entry before this one, below 0, got 0"),
    ([{"list": [{"ref": -1}]}], "expected an integer from 0"),
    ([{"list": [{"ref": True}]}], "expected an integer from 0"),
    ([{"list": [1.5]}], "expected an object with one key"),
    ([{"list": [{"float": 1}]}], "expected a number with a fraction"),
    ([{"list": [{"float": "nan"}]}], "expected a number with a fraction"),
    ([{"list": [{"complex": [1.0]}]}], "expected 2 arguments"),
    ([{"list": [{"bytes": "0g"}]}], "expected bytes as hexadecimal digits"),
    ([{"list": [{"os.system": "true"}]}], "expected a kind of value, got 'os.system'"),
    ([{"list": [{"dtype": "float33"}]}], "expected a name that torch has"),
    ([{"list": [{"device": "/dev/null"}]}], "expected a device"),
    ([{"list": [{"layout": "round"}]}], "expected the name of a layout"),
    ([{"list": [{"size": ["2"]}]}], "expected integers"),
    ([{"list": [{"slice": [1]}]}], "expected 3 arguments"),
    ([{"list": [{"range": [0, 1, 0]}]}], "expected a step that is not 0"),
    ([{"set": [1, 1]}], "expected each member once"),
    ([{"list": []}, {"set": [{"ref": 0}]}], "expected a plain hashable value"),
    ([{"dict": [[1]]}], "expected pairs of key and value"),
    ([{"dict": [[1, 2], [1, 3]]}], "expected each key once"),
    ([{"list": []}, {"dict": [[{"ref": 0}, 1]]}], "expected a plain hashable value"),
    ([{"defaultdict": {"factory": "os.getcwd", "items": []}}], "expected a factory of"),
    ([{"deque": {"items": [1, 2], "maxlen": 1}}], "expected at most maxlen"),
    ([{"named_tuple": {"class_name": "", "values": []}}], "expected a name of at most"),
    ([{"ordered_dict": {"items": []}}], "expected an object with the key attributes"),
    ([{"ordered_dict": {"items": [], "attributes": [[1, 2]]}}], "expected attribute names"),
    ([{"mark": {**MARK, "class": "os.system"}}], r"expected a class of torch\._dynamo"),
    ([{"fake_tensor": {"tensor_meta": {}, "is_param": False}}], "expected the key dtype"),
    ([{"tensor": {**TENSOR, "storage": 3}}], "expected one of 3 storages"),
    ([{"tensor": {**TENSOR, "dtype": "str"}}], "expected an element type"),
    ([{"tensor": {**TENSOR, "sizes": [17]}}], "expected at least 68 bytes"),
    ([{"tensor": {**TENSOR, "sizes": [2**62], "strides": [2**62]}}], "expected at least"),
    ([{"tensor": {**TENSOR, "storage_offset": -1}}], "expected an integer from 0"),
    ([{"tensor": {**TENSOR, "kind": "module"}}], "expected one of tensor, parameter, buffer"),
    ([{"tensor": {**TENSOR, "requires_grad": 1}}], "expected True or False"),
    ([{"tensor": {**TENSOR, "attributes": [[1, 2]]}}], "expected attribute names"),
    ([{"tensor": []}], "expected an object with the key"),
    ([{"sparse_tensor": {**SPARSE, "indices": []}}], "arguments"),
    ([{"sparse_tensor": {**SPARSE, "values": 1}}], "expected a dense tensor"),
    ([{"meta_tensor": {"dtype": "x", "sizes": [], "strides": []}}], "expected an element type"),
]


@pytest.mark.parametrize(("values", "text"), BAD, ids=range(len(BAD)))
def test_bad_tables(values: Any, text: str) -> None:
    """A table that says something else is refused with the record and the place."""
    with pytest.raises((PayloadError, UnsupportedError, Pt2Error), match=text) as caught:
        decode_values(values, [0], STORAGES, WHERE)
    assert str(caught.value).startswith(WHERE)
    assert len(str(caught.value)) < 1000


def test_a_small_table_that_is_large_as_a_tree() -> None:
    """Lists of lists that a walk would expand to a billion values are refused."""
    values: list[Any] = [{"list": [1]}]
    values += [{"list": [{"ref": number}] * 10} for number in range(9)]
    with pytest.raises(LimitError, match="at most 10000000 items"):
        decode_values(values, [{"ref": 9}], (), WHERE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.sampled_from(["cpu", "00", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["ref", "list", "dict", "tensor", "items", "values", "sizes", "float", "set", "deque", "size"]
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=15,
)


@given(st.lists(JSON, max_size=4), JSON)
def test_any_json(values: list[Any], root: Any) -> None:
    """Whatever JSON stands there, the reader gives values or an error of ours."""
    try:
        decode_values(values, [root], STORAGES, WHERE)
    except Pt2Error as error:
        assert str(error).isprintable()


@given(st.data(), TREES)
def test_damaged_tables(draw: st.DataObject, value: Any) -> None:
    """A table in which one part was replaced by another gives values or an error of ours."""
    written = encode_values([value], WHERE)
    tree = json.loads(json.dumps({"values": written.values, "root": written.roots[0]}))
    places: list[tuple[Any, Any]] = []
    stack: list[Any] = [tree]
    while stack:
        node = stack.pop()
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            stack += [node[key]] if isinstance(node[key], dict | list) else []
    holder, key = draw.draw(st.sampled_from(places))
    holder[key] = draw.draw(JSON)
    try:
        decode_values(tree["values"], [tree["root"]], written.storages, WHERE)
    except Pt2Error as error:
        assert str(error).isprintable()


def test_ordered_dicts_of_python() -> None:
    """An OrderedDict that was not read from a pickle is written as one."""
    assert list(moved(OrderedDict(b=1, a=2)).items()) == [("b", 1), ("a", 2)]
