"""Payloads as torch writes and reads them, against ours."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.bridge import recorded
from tests.samples import CURRENT_LAYOUT, corpus, release_id, sample
from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE
from torch.export.pt2_archive._package import PT2ArchiveReader, _load_constants, _load_state_dict

from pt2kit.codec import decode
from pt2kit.package import record_names as names
from pt2kit.package.layouts.detection import detect
from pt2kit.pickles.reader import read_payload
from pt2kit.schema import PayloadConfig, ScalarType
from pt2kit.tensors import (
    DTYPES,
    MetaView,
    NestedView,
    OpaquePayload,
    QuantizedView,
    SparseView,
    TensorView,
    from_pickled,
    to_npz,
    to_safetensors,
    views_from_config,
)
from pt2kit.zip.reader import Archive, open_archive

Views = dict[str, Any]
NEWEST = CURRENT_LAYOUT[-1]


def ours(file: str | Path | bytes) -> tuple[Archive, dict[str, tuple[Views, Views]]]:
    """Weights and constants of each program of an archive."""
    opened = open_archive(file)
    layout = detect(opened)
    found = {}
    for model in layout.models:
        pair = []
        for name, folder in ((names.weights_config, names.WEIGHTS), (names.constants_config, names.CONSTANTS)):
            where = layout.record(name(model))
            entries = decode(opened.read(where), PayloadConfig, where).value
            pair.append(views_from_config(entries, opened, folder=layout.record(folder), where=where))
        found[model] = (pair[0], pair[1])
    return opened, found


def bits(tensor: torch.Tensor) -> bytes:
    """The elements of a tensor in row-major order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ComplexHalf support is experimental.
        plain = tensor.detach().resolve_conj().resolve_neg().cpu()
        return plain.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def same(view: Any, tensor: torch.Tensor) -> None:
    """Check that a view is that tensor, bit for bit; sparse ones by their dense form."""
    if isinstance(view, SparseView):
        assert tensor.is_sparse
        view, tensor = view.dense(), tensor.to_dense()
    assert isinstance(view, TensorView)
    assert f"torch.{DTYPES[view.dtype].name}" == str(tensor.dtype)
    assert view.sizes == tuple(tensor.shape)
    assert view.strides == tensor.stride()
    assert view.storage_offset == tensor.storage_offset()
    assert view.requires_grad == tensor.requires_grad
    assert view.is_contiguous == tensor.is_contiguous()
    assert view.tobytes() == bits(tensor)
    assert view.numpy().tobytes() == bits(tensor)


def same_all(views: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Check all tensors, and that the same ones share storages."""
    assert set(views) == set(tensors)  # torch writes a config storage by storage.
    for name, tensor in tensors.items():
        same(views[name], tensor)
        assert views[name].is_param == isinstance(tensor, torch.nn.Parameter)
        for other in tensors:
            if not tensor.is_sparse and not tensors[other].is_sparse and tensor.numel() and tensors[other].numel():
                is_shared = tensor.untyped_storage().data_ptr() == tensors[other].untyped_storage().data_ptr()
                assert views[name].shares_storage(views[other]) == is_shared, (name, other)


@pytest.mark.parametrize("path", recorded.readable(corpus(*CURRENT_LAYOUT)), ids=release_id)
def test_payloads_of_real_files(path: Path) -> None:
    """Weights and constants equal what torch's reader of the archive gives, with their aliasing."""
    opened, programs = ours(path)
    with opened, PT2ArchiveReader(str(path)) as reader:
        for model, (weights, constants) in programs.items():
            same_all(weights, _load_state_dict(reader, model))
            same_all(constants, _load_constants(reader, model))


@pytest.mark.parametrize("name", ["mlp", "shared_weights", "constants", "dtypes", "float8"])
def test_loaded_programs(name: str) -> None:
    """Weights and constants equal those of the program that `torch.export.load` gives."""
    path = sample(NEWEST, name)
    program = torch.export.load(str(path))
    opened, programs = ours(path)
    with opened:
        weights, constants = programs["model"]
        for views, tensors in ((weights, program.state_dict), (constants, program.constants)):
            for key, tensor in tensors.items():
                if key in views:
                    same(views[key], tensor)
        assert set(weights) == set(program.state_dict)


def saved(buffers: Mapping[str, torch.Tensor]) -> bytes:
    """Return what `torch.export.save` writes for a program with these buffers."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Model(), (torch.ones(2),))
        # How export treats buffers is not what is tested: they go into the file as they are.
        program._state_dict = dict(buffers)
        torch.export.save(program, file)
    return file.getvalue()


def some(dtype: ScalarType, *sizes: int) -> torch.Tensor:
    """A tensor with arbitrary bits (bools: 0 and 1)."""
    row = DTYPES[dtype]
    count = int(np.prod(sizes, dtype=int))
    raw = np.random.default_rng(int(dtype)).bytes(count * row.itemsize)
    if row.kind == "bool":
        raw = bytes(byte & 1 for byte in raw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ComplexHalf support is experimental.
        return torch.frombuffer(bytearray(raw), dtype=getattr(torch, row.name)).reshape(sizes)


SAVED = [dtype for dtype in DTYPES if getattr(torch, DTYPES[dtype].name) in _TORCH_TO_SERIALIZE_DTYPE]
"""The types that the schema of the installed torch has a number for."""


@pytest.mark.parametrize("dtype", SAVED, ids=lambda dtype: DTYPES[dtype].name)
def test_every_type_that_torch_saves(dtype: ScalarType) -> None:
    """Each element type of torch arrives bit for bit."""
    buffers = {"b": some(dtype, 3, 5), "scalar": some(dtype)}
    opened, programs = ours(saved(buffers))
    with opened:
        same_all(programs["model"][0], buffers)


def test_every_geometry_that_torch_saves() -> None:
    """Views, strides, offsets, repeats, windows and emptiness arrive as they are, tied where torch ties them."""
    base = torch.arange(24, dtype=torch.float32)
    buffers = {
        "whole": base,
        "matrix": base.view(4, 6),
        "transposed": base.view(4, 6).t(),
        "slice": base[5:11],
        "strided": base.view(4, 6)[::2, 1::3],
        "expanded": torch.ones(3, 1).expand(3, 4),
        "windows": torch.arange(6.0).unfold(0, 3, 1),
        "empty": torch.empty(0, 3),
        "end": base[24:],
        "other empty": torch.empty(2, 0),
        "scalar": base[7],
        "channels": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = saved(buffers)
    opened, programs = ours(data)
    with opened:
        same_all(programs["model"][0], buffers)


def test_types_over_one_storage() -> None:
    """torch writes a storage once per element type: no record holds two, which is why two are refused (P11)."""
    base = torch.arange(8, dtype=torch.float32)
    buffers = {
        "floats": base,
        "ints": base.view(torch.int32),
        "complex": torch.view_as_complex(base.view(4, 2)),
        "bytes": base.view(torch.uint8),
    }
    try:
        data = saved(buffers)
    except RuntimeError as error:
        assert "view the same data as different types" in str(error)
        pytest.skip("up to 2.11 torch refuses to write such a program")
    opened, programs = ours(data)
    with opened:
        weights = programs["model"][0]
        for name, tensor in buffers.items():
            same(weights[name], tensor)
        assert len({view.record for view in weights.values()}) == 4


class Tagged(torch.Tensor):
    """A tensor class of our own: torch pickles it."""


def test_tensor_subclasses_are_pickled() -> None:
    """A tensor of a class that is code is listed with its description, and refused by the name of its class."""
    opened, programs = ours(saved({"t": torch.ones(2, 3).as_subclass(Tagged), "plain": torch.ones(2)}))
    with opened:
        found = programs["model"][0]["t"]
        assert isinstance(found, OpaquePayload)
        assert found.kind == "pickle"
        assert any(name.endswith("Tagged") for name in found.globals())
        with pytest.raises(Exception, match=r"Tagged.*would run code \[P15\]"):
            found.view()


def pickled(value: Any) -> Any:
    """Return our reading of a torch.save payload."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(value, file)
    return read_payload(file.getvalue(), "p")


def turn(value: Any) -> Any:
    return from_pickled(pickled(value), name="t", where="p")


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: DTYPES[dtype].name)
def test_every_type_that_torch_pickles(dtype: ScalarType) -> None:
    """torch.save payloads give the same tensors, with strides and offsets."""
    tensor = some(dtype, 4, 6).t()[1:, ::2]
    same(turn(tensor), tensor)


def test_pickled_state_dict() -> None:
    """A state dict keeps order, parameters, gradients and ties; conjugates and negatives are resolved."""
    weight = torch.nn.Parameter(torch.randn(3, 4))
    complex_one = torch.randn(3, dtype=torch.complex64)
    state = {
        "weight": weight,
        "tied": weight,
        "part": weight.data[1],
        "conj": complex_one.conj(),
        "neg": complex_one.clone().conj().imag,
        "both": complex_one.conj()._neg_view(),
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
    }
    views = views_of(pickled(state), "p")
    same_all(views, state)


def views_of(state: Any, where: str) -> Views:
    """The views of a pickled state dict; what shares a storage there shares one here."""
    return {name: from_pickled(value, name=name, where=where) for name, value in state.items()}


PAYLOADS = ("data/weights/model.pt", "data/constants/model.pt", "serialized_state_dict.pt", "serialized_constants.pt")
OLD = corpus("2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0")


@pytest.mark.parametrize("path", OLD, ids=release_id)
def test_payloads_of_old_layouts(path: Path) -> None:
    """Weights and constants of releases that pickled them equal what torch loads from the same record."""
    with open_archive(path) as opened:
        for name in opened.records:
            if name.endswith((*PAYLOADS, "serialized_state_dict.json", "serialized_constants.json")):
                data = opened.read(name)
                views = views_of(read_payload(data, name), name)
                same_all(views, torch.load(io.BytesIO(bytes(data)), weights_only=True))


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "coo": lambda t: t.to_sparse(),
    "hybrid": lambda t: t.to_sparse(1),
    "uncoalesced": lambda t: torch.cat([t.to_sparse(), t.to_sparse()]).to_dense().to_sparse(),
    "csr": lambda t: t.to_sparse_csr(),
    "csc": lambda t: t.to_sparse_csc(),
    "bsr": lambda t: t.to_sparse_bsr((2, 3)),
    "bsc": lambda t: t.to_sparse_bsc((2, 3)),
    "batched csr": lambda t: torch.stack([t, 2 * t]).to_sparse_csr(),
    "batched bsc": lambda t: torch.stack([t, 2 * t]).to_sparse_bsc((2, 3)),
    "dense csr": lambda t: t.unsqueeze(-1).expand(4, 6, 2).to_sparse_csr(dense_dim=1),
    "dense bsr": lambda t: t.unsqueeze(-1).expand(4, 6, 2).to_sparse_bsr((2, 3), dense_dim=1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex128])
def test_sparse_tensors(layout: str, dtype: torch.dtype) -> None:
    """Every sparse layout, batched and with dense dimensions, has the dense form that torch gives it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense = (torch.arange(24).reshape(4, 6) % 5 == 1).to(dtype) * 3
        tensor = LAYOUTS[layout](dense)
        found = turn(tensor)
        assert isinstance(found, SparseView)
        assert found.sizes == tuple(tensor.shape)
        assert found.dense().tobytes() == bits(tensor.to_dense())


def test_uncoalesced_entries_add_up() -> None:
    """Entries at the same place are summed, as in torch; without sparse dimensions too."""
    tensor = torch.sparse_coo_tensor([[1, 1, 0]], [1.0, 2.0, 4.0], (3,), check_invariants=True)
    scalar = torch.sparse_coo_tensor(torch.zeros(0, 2, dtype=torch.int64), [1.0, 2.0], (), check_invariants=True)
    for value in (tensor, scalar):
        assert turn(value).numpy().tobytes() == bits(value.to_dense())


QUANTIZED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "quint8": lambda t: torch.quantize_per_tensor(t, 0.1, 10, torch.quint8),
    "qint8": lambda t: torch.quantize_per_tensor(t, 0.017, -3, torch.qint8),
    "qint32": lambda t: torch.quantize_per_tensor(t, 1e-5, 5, torch.qint32),
    "transposed": lambda t: torch.quantize_per_tensor(t, 0.1, 10, torch.quint8).t(),
    "per channel": lambda t: torch.quantize_per_channel(
        t, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3]), 0, torch.qint8
    ),
    "float parameters": lambda t: torch.quantize_per_channel(
        t, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.0, 1.5]), 0, torch.quint8
    ),
    "4 bits": lambda t: torch.quantize_per_channel(
        t, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.0, 1.5]), 0, torch.quint4x2
    ),
    "2 bits": lambda t: torch.quantize_per_channel(
        t, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.0, 1.5]), 0, torch.quint2x4
    ),
}


@pytest.mark.parametrize("kind", QUANTIZED)
def test_quantized_tensors(kind: str) -> None:
    """Integers and the floats that they stand for are torch's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = QUANTIZED[kind](torch.linspace(-2, 2, 15).reshape(3, 5))
        found = turn(tensor)
        assert isinstance(found, QuantizedView)
        if "bits" not in kind:
            assert found.values.tobytes() == bits(tensor.int_repr())
        np.testing.assert_array_equal(found.numpy(), tensor.dequantize().numpy())


def test_nested_tensors() -> None:
    """The tensors inside are those that torch unbinds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(1, 4), torch.randn(0, 2)])
        found = turn(tensor)
        assert isinstance(found, NestedView)
        for view, part in zip(found.tensors(), tensor.unbind(), strict=True):
            assert view.tobytes() == bits(part)
            assert view.sizes == tuple(part.shape)


def test_meta_tensors() -> None:
    """A tensor without data keeps its shape."""
    found = turn(torch.empty(2, 3, device="meta", dtype=torch.bfloat16).t())
    assert found == MetaView("t", ScalarType.BFLOAT16, (3, 2), (1, 3))


def test_exported_files_are_read_by_others(tmp_path: Path) -> None:
    """safetensors' own torch reader, and numpy, give the tensors of the program."""
    safetensors = pytest.importorskip("safetensors.torch")
    path = sample(NEWEST, "float8")
    opened, programs = ours(path)
    with opened, PT2ArchiveReader(str(path)) as reader:
        weights = programs["model"][0]
        tensors = _load_state_dict(reader, "model")
        assert isinstance(tensors, dict)
        to_safetensors(weights, tmp_path / "a.safetensors")
        to_npz(weights, tmp_path / "a.npz", widen=True)
        loaded = safetensors.load_file(tmp_path / "a.safetensors")
        arrays = np.load(tmp_path / "a.npz")
        assert set(loaded) == set(tensors)
        for name, tensor in tensors.items():
            assert bits(loaded[name]) == bits(tensor)
            assert loaded[name].dtype == tensor.dtype
            assert arrays[name].tolist() == tensor.detach().double().tolist()
