"""Payloads that are more than raw bytes: pickled tensors, objects of trusted classes, objects in sample inputs."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.read.edited import edited, sample
from tests.packages import bytes_of
from torch._subclasses.fake_tensor import FakeTensor

from pt2kit.bridge.load import load
from pt2kit.errors import IntegrityError, PayloadError, UnsupportedError

MLP = sample("mlp")


class Thing:
    """An object of the user's."""

    def __init__(self, size: int) -> None:
        self.size = size


class Marker:
    """A payload that leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


THING = f"{Thing.__module__}.Thing"


def saved(value: Any) -> bytes:
    """Return what torch.save writes."""
    return bytes_of(torch.save, value)


def with_constant(content: bytes, path: str, **fields: Any) -> bytes:
    """The file with one more constant, "extra"."""
    row = {"path_name": path, "is_param": False, "use_pickle": True, "tensor_meta": None, **fields}
    return edited(
        MLP,
        constants=lambda tree: tree["config"].update(extra=row),
        records={f"data/constants/{path}": content},
    )


PLAIN = {
    "strided": lambda: torch.arange(6.0).reshape(2, 3).t(),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.5, 1, torch.quint8),
    "per channel": lambda: torch.quantize_per_channel(
        torch.ones(2, 2), torch.tensor([0.5, 0.25]), torch.tensor([0, 1]), 0, torch.qint8
    ),
    "meta": lambda: torch.empty(2, 3, device="meta"),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "conjugate": lambda: torch.tensor([1 + 2j]).conj(),
}


@pytest.mark.filterwarnings("ignore:.*quantize.*:UserWarning")
@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_plain_pickles(make: Any) -> None:
    """Pickled tensors that are plain data need no trust."""
    value = make()
    made = load(with_constant(saved(value), "tensor_9")).constants["extra"]
    assert type(made) is type(value)
    assert (made.shape, made.dtype, made.layout, made.device) == (value.shape, value.dtype, value.layout, value.device)
    assert made.requires_grad == value.requires_grad
    if not value.is_meta:
        dense = [t.dequantize() if t.is_quantized else t.to_dense() for t in (made.detach(), value.detach())]
        assert torch.equal(*dense)


def test_fake_tensor() -> None:
    """A pickled fake tensor becomes one of the program's own."""
    from torch._export.serde.serialize import serialize_torch_artifact
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        data = serialize_torch_artifact({"k": torch.ones(2, 3)})
    tensor = data.replace(b"k", b"k")
    with pytest.raises(PayloadError, match="expected a tensor, got a dict"):
        load(with_constant(tensor, "tensor_9"))
    with FakeTensorMode():
        data = serialize_torch_artifact(torch.ones(2, 3))
    program = load(with_constant(data, "tensor_9"))
    made = program.constants["extra"]
    assert type(made) is FakeTensor
    assert made.shape == (2, 3)
    assert made.fake_mode is next(iter(program.graph.nodes)).meta["val"].fake_mode


OPAQUE = pickle.dumps(Thing(3))


def test_trust() -> None:
    """An object is rebuilt if its class is named, and refused with what is inside if not."""
    data = with_constant(OPAQUE, "opaque_obj_0")
    with pytest.raises(UnsupportedError, match=rf"that refers to {THING}; .* pass trust=\('{THING}',\)"):
        load(data)
    with pytest.raises(UnsupportedError, match="that refers to"):
        load(data, trust=("other.Thing",))
    assert load(data, trust=(THING,)).constants["extra"].size == 3


def test_trust_is_exact(tmp_path: Path) -> None:
    """Trust in one name does not extend to any other."""
    marker = tmp_path / "marker"
    for content, path in (
        (pickle.dumps([Thing(1), Marker(marker)]), "opaque_obj_0"),
        (saved(Marker(marker)), "tensor_9"),
    ):
        with pytest.raises(UnsupportedError, match=r"refers to .*open"):
            load(with_constant(content, path), trust=(THING,))
    assert not marker.exists()


def test_pickled_tensor_of_a_class() -> None:
    """A pickled tensor with attributes of a trusted class."""
    tensor = torch.ones(2)
    tensor.note = Thing(4)
    data = with_constant(saved(tensor), "tensor_9")
    with pytest.raises(UnsupportedError, match=THING):
        load(data)
    made = load(data, trust=(THING,)).constants["extra"]
    assert made.note.size == 4
    assert torch.equal(made, tensor)


def test_broken_object() -> None:
    """An object that its own class cannot rebuild is an error of ours."""
    data = with_constant(OPAQUE.replace(b"Thing", b"Gone!"), "opaque_obj_0")
    with pytest.raises(PayloadError, match=r"expected an object that can be rebuilt, got: .*Gone!"):
        load(data, trust=(THING.replace("Thing", "Gone!"),))


@pytest.mark.parametrize("content", [b"", b"nonsense", pickle.dumps(3)])
def test_script_objects(content: bytes) -> None:
    """A record that is not a script object is refused."""
    with pytest.raises(UnsupportedError, match="custom_obj_0"):
        load(with_constant(content, "custom_obj_0"), trust=(THING,))


def test_script_objects_without_a_class() -> None:
    """An archive whose pickles refer to no class is none that may be rebuilt: no name of it can be trusted."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(3, 2))
    with pytest.raises(UnsupportedError, match="no class that can be told; rebuilding it would run code"):
        load(with_constant(buffer.getvalue(), "custom_obj_0"), trust=(THING,))


INPUTS = "data/sample_inputs/model.pt"


def test_sample_inputs() -> None:
    """Sample inputs come in the program's structure; tensors that shared a storage share it."""
    x = torch.ones(3, 8)
    args, kwargs = load(edited(MLP, records={INPUTS: saved(((x,), {}))})).example_inputs
    assert torch.equal(args[0], x)
    assert kwargs == {}


@pytest.mark.parametrize(
    "make",
    [
        lambda marker: saved(((Marker(marker),), {})),
        lambda marker: pickle.dumps(Marker(marker)),
        lambda marker: saved(((Thing(1),), {})),
        lambda marker: saved([1, 2]),
        lambda marker: saved(((torch.ones(3, 8),), {})).replace(b"FloatStorage", b"IntegStorage"),
        lambda marker: b"nonsense",
        lambda marker: b"",
    ],
    ids=["runs", "bare pickle", "object", "other structure", "damaged", "nonsense", "empty"],
)
def test_no_sample_inputs(make: Any, tmp_path: Path) -> None:
    """A program runs without sample inputs that are anything but data; nothing in them does."""
    program = load(edited(MLP, records={INPUTS: make(tmp_path / "marker")}))
    assert program.example_inputs is None
    assert not (tmp_path / "marker").exists()
    assert torch.equal(program.module()(torch.ones(3, 8)), load(MLP).module()(torch.ones(3, 8)))


def test_trusted_sample_inputs() -> None:
    """Objects among the sample inputs are rebuilt if their classes are named."""
    data = edited(MLP, records={INPUTS: saved(((Thing(5),), {}))})
    args, _ = load(data, trust=(THING,)).example_inputs
    assert args[0].size == 5


def test_damaged_sample_inputs() -> None:
    """Bytes that do not have their checksum are refused, also where they are not needed."""
    data = bytearray(MLP.read_bytes())
    at = data.index(b"sample_inputs/model.pt")
    data[data.index(b"PK", at) + 40] ^= 1
    with pytest.raises(IntegrityError, match=r"sample_inputs/model\.pt: expected CRC-32 .*\[A16\]"):
        load(bytes(data))
