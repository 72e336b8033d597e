"""Weights and constants as records."""

from __future__ import annotations

import io

import pytest
import torch
from tests.bridge.zoo import zoo
from tests.narrow import present
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

from pt2kit.bridge.torch_names import groups_weights
from pt2kit.bridge.write.payloads import Payloads
from pt2kit.bridge.write.values import Values
from pt2kit.errors import GraphError, PayloadError, UnsupportedError


def weights(payloads=None, **tensors):
    """Name -> record of weights, and the records."""
    payloads = payloads or Payloads(2)
    config = payloads.weights(tensors, Values()).config
    return {name: meta.path_name for name, meta in config.items()}, payloads.records


def content(record):
    parts = record.read()
    data = bytes(parts) if isinstance(parts, (bytes, memoryview)) else b"".join(map(bytes, parts))
    assert len(data) == record.size
    return data


def test_one_record_for_a_storage():
    """Names that share a storage share a record; other storages and dtypes have their own."""
    base = torch.arange(8.0)
    paths, records = weights(
        a=base, b=base[2:4], other=torch.ones(3), c=base.view(2, 4).t(), bits=base.view(torch.int32)
    )
    assert paths == {"a": "weight_0", "b": "weight_0", "c": "weight_0", "other": "weight_1", "bits": "weight_2"}
    assert [record.name for record in records] == [f"data/weights/weight_{i}" for i in range(3)]
    assert content(records[0]) == content(records[2]) == base.numpy().tobytes()


def test_metas():
    """Each name has its own sizes, strides and offset, and says whether it is a parameter."""
    weight = torch.nn.Parameter(torch.arange(6.0).view(2, 3).t())
    config = (
        Payloads(2)
        .weights({"w": weight, "row": weight.detach()[1], "b": torch.nn.Buffer(torch.ones(1))}, Values())
        .config
    )
    assert (config["w"].is_param, config["w"].use_pickle) == (True, False)
    assert present(config["w"].tensor_meta).requires_grad is True
    assert [size.as_int for size in present(config["w"].tensor_meta).strides] == [1, 3]
    assert present(config["row"].tensor_meta).storage_offset.as_int == 1
    assert not config["row"].is_param
    assert not config["b"].is_param


def test_empty_tensors():
    """Tensors without bytes share an empty record by dtype, as torch has it; up to 2.9 each has its own."""
    paths, records = weights(a=torch.zeros(0), b=torch.zeros(2, 0), c=torch.zeros(0, dtype=torch.int8))
    shared = {"a": "weight_0", "b": "weight_0", "c": "weight_1"}
    assert paths == (shared if groups_weights() else {"a": "weight_0", "b": "weight_1", "c": "weight_2"})
    assert {record.size for record in records} == {0}
    assert len(records) == len(set(paths.values()))


def test_fake_and_meta():
    """Fake and meta tensors have an empty record for each storage; the largest of those that share one comes first."""
    with FakeTensorMode():
        a, b = torch.empty(4), torch.empty(4)
        view = a[1:]
    paths, records = weights(view=view, a=a, b=b, m=torch.empty(2, device="meta"), n=torch.empty(2, device="meta"))
    first = [("a", "weight_0"), ("view", "weight_0")]
    assert list(paths.items())[:2] == (first if groups_weights() else first[::-1])
    assert len(set(paths.values())) == 4
    assert [content(record) for record in records] == [b""] * 4


def test_pickled():
    """Tensor subclasses and sparse tensors are torch.save files, first of all; up to 2.9 in their order."""
    two = TwoTensor(torch.ones(2), torch.zeros(2))
    paths, records = weights(
        plain=torch.ones(1), two=two, parameter=torch.nn.Parameter(two), sparse=torch.eye(2).to_sparse()
    )
    pickled, plain = ["two", "parameter", "sparse"], ["plain"]
    order = [*pickled, *plain] if groups_weights() else [*plain, *pickled]
    assert paths == {name: f"weight_{index}" for index, name in enumerate(order)}
    loaded = torch.load(io.BytesIO(content(records[order.index("two")])), weights_only=False)
    assert isinstance(loaded, TwoTensor)


def test_put_off_values():
    """Values that were not computed yet are, and stand in a record of their own."""
    value = torch.tensor([1 + 2j, 3 - 1j])
    paths, records = weights(plain=value, conj=value.conj(), neg=value.conj().imag)
    assert len(set(paths.values())) == 3
    assert content(records[1]) == value.conj().resolve_conj().view(torch.uint8).numpy().tobytes()
    assert memoryview(content(records[2])).cast("f").tolist()[::2] == [-2.0, 1.0]


@pytest.mark.parametrize("index", [..., slice(1, 6, 2), 3, None, slice(0)])
@pytest.mark.parametrize("is_real", [False, True])
def test_strides_of_put_off_values(index, is_real):
    """Computed values have the strides that the graph states."""
    value = torch.arange(12).to(torch.complex64).view(6, 2).conj()[index]
    value = (value.imag if is_real else value).expand(2, *value.shape[1:]) if index is None else value
    config = Payloads(2).weights({"w": value}, Values()).config["w"]
    assert [size.as_int for size in present(config.tensor_meta).strides] == list(value.stride())


def test_requires_grad_of_put_off_values():
    """Computing values keeps whether the weight wants a gradient."""
    weight = torch.nn.Parameter(torch.tensor([1 + 2j]).conj())
    meta = Payloads(2).weights({"w": weight}, Values()).config["w"]
    assert meta.is_param
    assert present(meta.tensor_meta).requires_grad


def test_second_program():
    """Records of a second program are numbered on; storages that are there already are not written again."""
    payloads, shared = Payloads(2), torch.ones(3)
    first, _ = weights(payloads, a=shared, b=torch.zeros(2))
    second, records = weights(payloads, c=torch.zeros(5), d=shared)
    assert first == {"a": "weight_0", "b": "weight_1"}
    assert second == {"c": "weight_2", "d": "weight_0"}
    assert len(records) == 3


@pytest.mark.skipif(not zoo.OPAQUE, reason="this torch has no opaque objects")
def test_constants():
    """Constants are numbered by kind; objects of the graph itself follow those of the program."""
    from tests.bridge.zoo.programs_opaque import Counter, Weighting

    payloads = Payloads(2)
    constants = {"counter": Counter(2), "c": torch.ones(1), "d": torch.zeros(1)}
    config = payloads.constants(constants, {"_custom_obj_0": Weighting(3)}, Values()).config
    assert {name: meta.path_name for name, meta in config.items()} == {
        "c": "tensor_0",
        "d": "tensor_1",
        "counter": "opaque_obj_0",
        "_custom_obj_0": "opaque_obj_1",
    }
    assert config["counter"].tensor_meta is None
    assert config["counter"].use_pickle
    assert [record.name for record in payloads.records][:2] == ["data/constants/tensor_0", "data/constants/tensor_1"]


def test_name_taken():
    """A constant cannot have the name of an object of the graph."""
    with pytest.raises(GraphError, match="constants: expected names that no object of the graph has, got 'a'"):
        Payloads(2).constants({"a": torch.ones(1)}, {"a": object()}, Values())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_refused():
    """Values that cannot be stored are named."""
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    with pytest.raises(PayloadError, match=r"weight 'w': expected the bytes of shape \[4\], got a storage of 0 bytes"):
        weights(w=freed)
    with pytest.raises(UnsupportedError, match="weight 'extra': expected a tensor, got dict"):
        weights(extra={})
    with pytest.raises(UnsupportedError, match=r"weight 'q': expected a dtype of the schema, got torch\.qint8"):
        weights(q=torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8))
    with pytest.raises(
        UnsupportedError, match="constant 'c': expected a tensor, a script object or an opaque one, got int"
    ):
        Payloads(2).constants({"c": 3}, {}, Values())
