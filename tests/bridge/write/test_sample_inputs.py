"""The inputs a program was exported with."""

from __future__ import annotations

import copyreg
import io
import logging
import threading

import pytest
import torch
from tests.bridge.write.trees import our_file
from tests.threads import in_threads
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from pt2kit.bridge.save import write_sample_inputs
from pt2kit.bridge.write.values import Values
from pt2kit.errors import UnsupportedError


def test_plain():
    """Inputs come back from torch.load, by its safe way of reading."""
    inputs = ((torch.ones(2), 3, "a"), {"k": [None, 0.5]})
    data = write_sample_inputs(inputs, Values(), 2)
    (tensor, *rest), kwargs = torch.load(io.BytesIO(data), weights_only=True)
    assert torch.equal(tensor, torch.ones(2))
    assert (rest, kwargs) == ([3, "a"], {"k": [None, 0.5]})


def test_none():
    """A program without inputs has an empty record."""
    assert write_sample_inputs(None, Values(), 2).nbytes == 0


def test_deterministic():
    """The same inputs give the same bytes."""
    first, second = (write_sample_inputs(((torch.ones(2),), {}), Values(), 2) for _ in range(2))
    assert bytes(first) == bytes(second)


def fake_program():
    with FakeTensorMode():
        return torch.export.export(torch.nn.ReLU(), (torch.empty(2, 3),))


def test_fake():
    """Fake inputs are read back as fake ones by torch; its process-wide table of picklers is left alone."""
    live = fake_program()
    before = dict(copyreg.dispatch_table)
    data = our_file(live)
    assert copyreg.dispatch_table == before
    logging.disable(logging.CRITICAL)  # torch's warning about its unsafe way of reading cannot be formatted
    try:
        (again,), _ = torch.export.load(io.BytesIO(data)).example_inputs
    finally:
        logging.disable(logging.NOTSET)
    assert isinstance(again, FakeTensor)
    assert again.shape == (2, 3)


def test_threads():
    """Several threads may save programs with fake inputs at once."""
    live = fake_program()
    assert len(set(in_threads(lambda _: our_file(live), range(8)))) == 1


@pytest.mark.parametrize("value", [lambda: None, (x for x in ""), threading.Lock()])
def test_refused(value):
    """Values that cannot be pickled are refused."""
    with pytest.raises(UnsupportedError, match="sample inputs: expected values that can be pickled"):
        write_sample_inputs(((value,), {}), Values(), 2)


class Refusing(Values):
    """Knows no dtype."""

    def tensor_meta(self, tensor):
        raise UnsupportedError("expected a dtype of the schema, got another")


def test_fake_of_unknown_dtype():
    """A fake tensor that the schema cannot describe is refused with its reason."""
    with FakeTensorMode():
        fake = torch.empty(2)
    with pytest.raises(UnsupportedError, match=r"^sample inputs: expected a dtype of the schema"):
        write_sample_inputs(((fake,), {}), Refusing(), 2)
