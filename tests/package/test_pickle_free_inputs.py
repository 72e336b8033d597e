"""Sample inputs without a pickle: written and read back they are the same; no index makes the reader fail otherwise."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests import samples
from tests.packages import rewritten

import pt2kit
from pt2kit.errors import Pt2Error, UnsupportedError
from pt2kit.package.pickle_free_inputs import input_tensors, read_pickle_free_inputs, write_index
from pt2kit.pickles import values as data
from pt2kit.schema import PayloadConfig, PayloadMeta
from pt2kit.tensors import TensorView
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.pickled import FAKE_TENSOR, from_pickled
from pt2kit.zip.reader import Storage

WHERE = "extra/pt2kit/sample_inputs/model.json"
MLP = samples.sample("2.13.0", "mlp")
STORAGES = tuple(Storage(str(number), 64, lambda: memoryview(bytes(64))) for number in range(2))


def read(index: bytes, count: int = 1) -> tuple[Any, ...]:
    """The leaves of an index next to so many records of 64 bytes."""
    records = {f"data/sample_inputs/tensor_{number}": bytes(64) for number in range(count)}
    with pt2kit.open(rewritten(MLP, {WHERE: index, **records})) as package:
        found = read_pickle_free_inputs(package.layout, "model")
        assert found is not None
        return found.leaves


def described(leaves: list[Any]) -> tuple[PayloadConfig, int]:
    """The config of the tensors among leaves, and how many records they take."""
    tensors = {name: view for name, view in input_tensors(leaves, WHERE).items() if isinstance(view, TensorView)}
    keys = list(dict.fromkeys((view.storage, view.dtype) for view in tensors.values()))
    rows = {
        name: PayloadMeta(f"tensor_{keys.index((view.storage, view.dtype))}", view.is_param, False, view.meta())
        for name, view in tensors.items()
    }
    return PayloadConfig(rows), len(keys)


def moved(leaves: list[Any]) -> tuple[Any, ...]:
    """Leaves after they were written and read back."""
    config, count = described(leaves)
    return read(write_index(leaves, config, WHERE), count)


def alike(a: Any, b: Any) -> bool:
    """Return whether leaves are equal and of one type, nan equal to nan."""
    match a:
        case float():
            return type(b) is float and ((a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b))
        case complex():
            return alike(a.real, b.real) and alike(a.imag, b.imag)
        case TensorView():
            return isinstance(b, TensorView) and (a.meta(), a.is_param) == (b.meta(), b.is_param)
    return type(a) is type(b) and bool(a == b)


@st.composite
def tensors(draw: st.DrawFn) -> TensorView:
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
    tensor = data.PickledTensor(
        draw(st.sampled_from(STORAGES)),
        row.name,
        tuple(sizes),
        tuple(strides),
        offset,
        requires_grad="float" in row.name and draw(st.booleans()),
        kind=draw(st.sampled_from(["tensor", "parameter"])),
    )
    view = from_pickled(tensor, name="x", where=WHERE)
    assert isinstance(view, TensorView)
    return view


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LEAVES = st.one_of(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | TEXTS,
    tensors(),
    st.builds(data.DType, st.sampled_from([row.name for row in DTYPES.values()])),
    st.sampled_from([data.Layout("strided"), data.MemoryFormat("channels_last"), data.MemoryFormat("preserve_format")]),
    st.sampled_from([data.Device("cpu"), data.Device("cuda", 1)]),
)


@given(st.lists(LEAVES, max_size=6))
@example([float("nan"), float("inf"), -0.0, complex(0, float("-inf")), 2**300, -(2**300), ""])
def test_round_trip(leaves: list[Any]) -> None:
    """Leaves come back as they were, in the same types and in the same order."""
    found = moved(leaves)
    assert len(found) == len(leaves)
    assert all(map(alike, found, leaves)), (found, leaves)


@given(st.lists(tensors(), min_size=2, max_size=4))
def test_what_is_shared_stays_shared(views: list[TensorView]) -> None:
    """Tensors of one type over one storage share it again, and a tensor that is passed twice is one tensor."""
    found = moved([*views, views[0]])
    assert found[-1] is found[0]
    for left, a in zip(found, views, strict=False):
        for right, b in zip(found, views, strict=False):
            assert (left.storage is right.storage) == (a.storage is b.storage and a.dtype == b.dtype)


def test_fake_tensors() -> None:
    """A fake tensor is its description."""
    text = json.dumps(
        {
            "dtype": 7,
            "sizes": [{"as_int": 2}],
            "requires_grad": False,
            "device": {"type": "cpu", "index": None},
            "strides": [{"as_int": 1}],
            "storage_offset": {"as_int": 0},
            "layout": 7,
        }
    ).encode()
    fake = data.Opaque(data.Global(*FAKE_TENSOR.rsplit(".", 1)), (text, True))
    [found] = moved([fake])
    assert found.cls == fake.cls
    assert (json.loads(found.args[0]), found.args[1]) == (json.loads(text), True)


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (b"x", "a bytes"),
        ({1}, "a set"),
        (data.Global("os", "system"), "the global os.system"),
        (data.Opaque(data.Global("shop", "Item")), "an object of shop.Item"),
    ],
)
def test_what_is_no_data(leaf: Any, text: str) -> None:
    """A leaf that an index has no form for is refused by its type."""
    with pytest.raises(UnsupportedError, match=f"{WHERE}: expected plain data, got '{text}'"):
        input_tensors([leaf], WHERE)


META = {
    "dtype": 7,
    "sizes": [{"as_int": 4}],
    "requires_grad": False,
    "device": {"type": "cpu", "index": None},
    "strides": [{"as_int": 1}],
    "storage_offset": {"as_int": 0},
    "layout": 7,
}
ROW = {"path_name": "tensor_0", "is_param": False, "use_pickle": False, "tensor_meta": META}


def index(leaves: Any, **config: Any) -> bytes:
    return json.dumps({"format": "pt2kit sample inputs 2", "leaves": leaves, "config": config}).encode()


BAD: list[tuple[bytes, str]] = [
    (b"[", "not JSON"),
    (b"[]", "format: expected 'pt2kit sample inputs 2', got a list"),
    (b'{"format":"pt2kit sample inputs 1"}', "got the string 'pt2kit sample inputs 1'; sanitize the original again"),
    (b'{"format":"pt2kit sample inputs 2"}', "expected the key leaves, got none"),
    (b'{"format":"pt2kit sample inputs 2","leaves":[],"config":{},"x":1}', "leaves and config, got .*x"),
    (b'{"format":"pt2kit sample inputs 2","leaves":[],"leaves":[],"config":{}}', "expected each key once"),
    (index(1), "leaves: expected array"),
    (index([], x=1), "expected object"),
    (index([[]]), r"leaves\[0\]: expected an object with one key"),
    (index([1.5]), "expected an object with one key"),
    (index([{"float": 1.5, "dtype": "int8"}]), "expected an object with one key"),
    (index([{"list": []}]), "expected a kind of value, got 'list'"),
    (index([{"tensor": "x"}]), "expected a tensor of config"),
    (index([{"tensor": 0}]), "expected a tensor of config"),
    (index([{"float": "1.5"}]), "expected a number with a fraction"),
    (index([{"float": 1}]), "expected a number with a fraction"),
    (index([{"complex": [1.5]}]), "expected a list of two"),
    (index([{"dtype": "float33"}]), "expected a name that torch has"),
    (index([{"layout": "x"}]), "expected a name that torch has"),
    (index([{"memory_format": ["x"]}]), "expected a name that torch has"),
    (index([{"device": "cpu:x"}]), "expected a device such as"),
    (index([{"fake_tensor": [META, 1]}]), "expected True or False"),
    (index([{"fake_tensor": [{**META, "x": 1}, True]}]), "expected keys of the schema"),
    (index([{"fake_tensor": [{}, True]}]), "fake tensor: .*expected the key"),
    (index([], x={**ROW, "path_name": "tensor_7"}), "expected a record .*tensor_7, got none"),
    (index([], x={**ROW, "path_name": "../weights/weight_0"}), "expected a raw record such as 'tensor_0'"),
    (index([], x={**ROW, "path_name": "model.pt"}), "expected a raw record such as 'tensor_0', got 'model.pt'"),
    (index([], x={**ROW, "path_name": "tensor_00"}), "expected a raw record such as 'tensor_0'"),
    (index([], x={**ROW, "use_pickle": True}), "expected a raw record such as 'tensor_0', got a pickle"),
    (index([], x={**ROW, "tensor_meta": None}), "expected a description of raw bytes, got null"),
    (index([], x={**ROW, "tensor_meta": {**META, "sizes": [{"as_int": 17}]}}), "64"),
]


@pytest.mark.parametrize(("content", "text"), BAD, ids=range(len(BAD)))
def test_bad_indexes(content: bytes, text: str) -> None:
    """An index that says something else is refused with the record and the place."""
    with pytest.raises(Pt2Error, match=text) as caught:
        read(content)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.sampled_from(["cpu", "00", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tensor", "float", "complex", "dtype", "device", "sizes"]), inner, max_size=2
        )
    ),
    max_leaves=15,
)


@given(st.data(), st.lists(LEAVES, min_size=1, max_size=4))
def test_damaged_indexes(draw: st.DataObject, leaves: list[Any]) -> None:
    """An index in which one part was replaced by another gives leaves or an error of ours."""
    config, count = described(leaves)
    tree = json.loads(write_index(leaves, config, WHERE))
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
        found = read(json.dumps(tree).encode(), count)
    except Pt2Error as error:
        assert str(error).isprintable()
    else:
        assert not any(isinstance(leaf, dict | list) for leaf in found)


def test_a_tensor_on_the_meta_device() -> None:
    """A tensor without numbers has an empty record."""
    row = {**ROW, "tensor_meta": {**META, "device": {"type": "meta", "index": None}}}
    with pt2kit.open(
        rewritten(MLP, {WHERE: index([{"tensor": "x"}], x=row), "data/sample_inputs/tensor_0": b""})
    ) as package:
        found = read_pickle_free_inputs(package.layout, "model")
    assert found is not None
    assert isinstance(found.leaves[0], MetaView)
