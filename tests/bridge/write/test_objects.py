"""Objects that are pickled."""

from __future__ import annotations

import io
import pickle

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

from pt2kit.bridge.write.payloads import pickle_opaque, pickle_script, pickle_tensor
from pt2kit.errors import UnsupportedError


class Counter:
    """An object that says where it starts."""

    def __init__(self, start):
        self.start = start


class Stubborn(TwoTensor):
    """A tensor that cannot be pickled."""

    def __reduce_ex__(self, protocol):
        raise TypeError("not today")


def test_tensors():
    """A tensor subclass comes back from torch.load."""
    tensor = TwoTensor(torch.ones(2), torch.zeros(2))
    again = torch.load(io.BytesIO(pickle_tensor(tensor, 2)), weights_only=False)
    assert torch.equal(again.a, tensor.a)
    assert torch.equal(again.b, tensor.b)


def test_stubborn_tensor():
    """One that cannot be pickled is refused by its type."""
    tensor = Stubborn(torch.ones(2), torch.zeros(2))
    with pytest.raises(UnsupportedError, match="expected a tensor that can be pickled, got Stubborn: not today"):
        pickle_tensor(tensor, 2)


def test_opaque():
    """An opaque object is a pickle of the protocol that was asked for."""
    assert pickle.loads(pickle_opaque(Counter(5), 4)).start == 5
    assert pickle_opaque(Counter(5), 4)[1] == 4


@pytest.mark.parametrize("value", [lambda: None, type("Local", (), {})(), (x for x in "")])
def test_stubborn_objects(value):
    """Objects that pickle cannot hold are refused by type."""
    with pytest.raises(UnsupportedError, match="expected an object that can be pickled, got"):
        pickle_opaque(value, 2)


def test_faked_opaque():
    """The object itself is pickled, not the fake object that export replaces it with."""
    from torch._library.fake_class_registry import FakeScriptObject

    fake = FakeScriptObject(None, "x.Counter", Counter(7))
    assert pickle.loads(pickle_opaque(fake, 2)).start == 7


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_script():
    """A script object is pickled the way torchbind does it; one without a way is refused."""
    weight = torch.quantize_per_tensor(torch.eye(4), 0.1, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, torch.ones(4))
    again = torch._C._pickle_load_obj(pickle_script(packed))
    assert torch.equal(again.bias(), packed.bias())
    with pytest.raises(
        UnsupportedError, match=r"expected a script class that can be pickled \(def_pickle\), got __torch__"
    ):
        pickle_script(_unpicklable())


def _unpicklable():
    """A script object whose class says nothing about pickling."""
    return torch.classes._nnapi.Compilation()
