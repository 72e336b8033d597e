"""Views -> what torch.save files are written from, and back through the reader."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from tests import samples

import pt2kit
from pt2kit.errors import UnsupportedError
from pt2kit.pickles import writer as torch_save
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import MetaTensor, PickledTensor, SparseTensor
from pt2kit.release.models import plain_tensor
from pt2kit.schema import Device, ScalarType
from pt2kit.tensors import MetaView, QuantizedView, SparseView, TensorView, from_pickled
from pt2kit.tensors.bounds import device_text
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import to_pickled
from pt2kit.zip.reader import Storage


def test_shared_storages_stay_shared() -> None:
    """Tied weights and views lie in one storage again, described once."""
    with pt2kit.open(samples.sample("2.13.0", "shared_weights")) as package:
        state = {name: to_pickled(plain_tensor(view)) for name, view in package.weights().items()}
        views = [view for view in package.weights().values() if isinstance(view, TensorView)]
        assert torch_save.size_of(state) == sum({view.record: view.storage.nbytes for view in views}.values())
        buffer = io.BytesIO()
        torch_save.dump(state, buffer, "x")
        values = read_payload(buffer.getvalue(), "x")
        made = {name: from_pickled(value, name=name, where="x") for name, value in values.items()}
        for name, view in package.weights().items():
            again = made[name]
            assert isinstance(view, TensorView)
            assert isinstance(again, TensorView)
            assert (again.sizes, again.strides, again.storage_offset) == (view.sizes, view.strides, view.storage_offset)
            assert (again.is_param, again.requires_grad) == (view.is_param, view.requires_grad)
            assert again.tobytes() == view.tobytes()
        assert made["base"].storage is made["tail"].storage  # type: ignore[union-attr]


def test_views_of_another_type_get_their_own_storage() -> None:
    """torch would read both as elements of the first one's type."""
    storage = Storage("r", 10, lambda: memoryview(bytes(10)))
    floats = TensorView("f", ScalarType.FLOAT, (2,), (1,), 0, storage)
    numbers = TensorView("b", ScalarType.BYTE, (10,), (1,), 0, storage)
    values = read_payload(torch_save.dumps([to_pickled(floats), to_pickled(numbers)], "x"), "x")
    assert [one.storage.nbytes for one in values] == [8, 10]


def test_marks_and_devices_stay() -> None:
    """Tensors conjugated or negated late are so again, at the same place."""
    storage = Storage("r", 16, lambda: memoryview(bytes(16)))
    view = TensorView(
        "c", ScalarType.COMPLEXFLOAT, (2,), (1,), 0, storage, device=Device("cuda", 1), conj=True, neg=True
    )
    found = to_pickled(view)
    assert isinstance(found, PickledTensor)
    assert (found.conj, found.neg, found.device) == (True, True, "cuda:1")
    assert device_text(Device("cpu")) == "cpu"


def test_sparse_tensors() -> None:
    """They go over by their parts."""
    with pt2kit.open(samples.sample("2.7.1", "sparse_buffer")) as package:
        view = package.weights()["sp"]
        assert isinstance(view, SparseView)
        found = to_pickled(view)
        assert isinstance(found, SparseTensor)
        assert (found.layout, found.sizes, found.is_coalesced) == ("sparse_coo", view.sizes, view.is_coalesced)


def test_sparse_parameters() -> None:
    """They are parameters again."""
    with pt2kit.open(samples.sample("2.7.1", "sparse_buffer")) as package:
        view = package.weights()["sp"]
        assert isinstance(view, SparseView)
        described = to_pickled(replace(view, is_param=True, requires_grad=True))
        value = read_payload(torch_save.dumps({"p": described}, "x"), "x")["p"]
        again = from_pickled(value, name="p", where="x")
        assert (again.is_param, again.requires_grad) == (True, True)
        assert again.numpy().tolist() == view.numpy().tolist()


def test_tensors_without_data() -> None:
    """They go over by type, shape and strides."""
    view = MetaView("m", ScalarType.FLOAT, (2,), (1,), is_param=True, requires_grad=True)
    described = to_pickled(plain_tensor(view))
    assert described == MetaTensor("float32", (2,), (1,), requires_grad=True, kind="parameter")
    value = read_payload(torch_save.dumps({"m": described}, "x"), "x")["m"]
    assert from_pickled(value, name="m", where="x") == view


def test_what_cannot_be_written_is_named() -> None:
    """Quantized tensors have a scale, script objects need code."""
    storage = Storage("r", 4, lambda: memoryview(b"code"))
    numbers = TensorView("q", ScalarType.BYTE, (4,), (1,), 0, storage)
    with pytest.raises(UnsupportedError, match="'q': expected a dense or a sparse tensor, got a quantized one"):
        plain_tensor(QuantizedView("q", "quint8", numbers, (4,), "per_tensor_affine", 1.0, 0))
    with pytest.raises(UnsupportedError, match="a script object"):
        plain_tensor(OpaquePayload("o", Storage("r", 4, lambda: memoryview(b"code")), "torchbind"))
