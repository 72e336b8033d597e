"""Sanitized files in torch: its own loader reads them, they compute the same, and sample inputs come back."""

from __future__ import annotations

import collections
import copy
import io
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import samples
from tests.bridge import recorded
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.read.same import differences
from tests.narrow import present
from tests.packages import bytes_of, rewritten
from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

import pt2kit
from pt2kit.errors import UnsupportedError
from pt2kit.package import record_names as names

DTYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128, torch.bool, torch.bfloat16, torch.uint16, torch.uint32),
    *(torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    torch.float8_e8m0fnu,
)
# Files of its own that torch 2.13 cannot load, or loads differently from pt2kit.
UNLOADABLE = ("const_output", "odd_names_keyword")
UNCALLABLE = ("training_loss_joint",)
"""A joint graph returns gradients in addition to the outputs in its tree spec."""


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """torch's loader logs what it falls back from, with a message that its arguments do not fit."""
    logging.getLogger("torch").disabled = logging.getLogger("torch._export.serde.serialize").disabled = True
    yield
    logging.getLogger("torch").disabled = logging.getLogger("torch._export.serde.serialize").disabled = False


def sanitized(source: Any, **options: Any) -> bytes:
    """A file without pickles."""
    return bytes_of(pt2kit.sanitize, source, **options)


def torch_load(source: Any, **options: Any) -> Any:
    """The program as torch itself loads it; None where torch cannot."""
    try:
        return torch.export.load(source if isinstance(source, Path) else io.BytesIO(source), **options)
    except Exception:  # noqa: BLE001 - torch raises many kinds, and two loads are compared
        return None


def outputs(program: Any, inputs: Any) -> list[Any]:
    """The leaves that a program gives for some inputs."""
    args, kwargs = copy.deepcopy(inputs)  # some programs write into them
    torch.manual_seed(0)
    return pytree.tree_leaves(program.module()(*args, **kwargs))


def same(got: list[Any], wanted: list[Any]) -> bool:
    """Return whether leaves are equal, bit by bit."""
    return len(got) == len(wanted) and all(
        torch.equal(_bits(a), _bits(b)) if isinstance(b, torch.Tensor) else a == b or (a != a and b != b)
        for a, b in zip(got, wanted, strict=True)
    )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().flatten().view(torch.uint8) if tensor.numel() else torch.empty(0)


@pytest.mark.parametrize("path", recorded.readable(samples.corpus("2.13.0", "2.9.1")), ids=samples.release_id)
def test_torch_loads_the_same_program(path: Path) -> None:
    """torch's loader gives the program that it gives for the original, but for sample inputs; pt2kit's gives those."""
    original = torch_load(path)
    data = sanitized(path)
    found = torch_load(data)
    assert (found is None) == (original is None)
    if original is None:
        assert path.stem.startswith(UNLOADABLE) or path.parent.name != "2.13.0"
        return
    inputs = original.example_inputs
    assert found.example_inputs is None
    original._example_inputs = None
    assert differences(found, original) == []
    assert differences(pt2kit.load(data), pt2kit.load(path)) == []
    if inputs is not None and path.parent.name == "2.13.0" and path.stem not in UNCALLABLE:
        wanted = outputs(original, inputs)
        assert same(outputs(torch_load(data), inputs), wanted)
        assert same(outputs(pt2kit.load(data), pt2kit.load(data).example_inputs), wanted)


@pytest.mark.parametrize("name", ["mlp", "cond", "dynamic_batch", "namedtuple_io", "preserve_module_sig", "custom_op"])
@pytest.mark.parametrize("options", [{"strip": ["metadata"]}, {"strip": ["traces"], "scrub_paths": True}], ids=str)
def test_torch_loads_what_was_stripped(name: str, options: Any) -> None:
    """Without metadata, or with paths that name no machine, torch loads the program, and it computes the same."""
    path = samples.sample("2.13.0", name)
    original = torch.export.load(path)
    found = torch.export.load(io.BytesIO(sanitized(path, **options)))
    assert same(outputs(found, original.example_inputs), outputs(original, original.example_inputs))


def test_torch_reads_extra_files_as_text() -> None:
    """Raw records under extra/ would keep torch from loading a file: it decodes every extra file."""
    path = samples.sample("2.13.0", "extra_files")
    raw = rewritten(path, {"extra/raw": b"\xff\xfe"})
    with pytest.raises(Exception, match=r"deserializing|utf-8|decode"):
        torch.export.load(io.BytesIO(raw))
    found: dict[str, Any] = {"x": ""}
    torch.export.load(io.BytesIO(sanitized(path)), extra_files=found)
    assert "pt2kit/sample_inputs/model.json" in found


def test_torch_needs_the_empty_record() -> None:
    """A file without the record of sample inputs is one that torch does not load; an empty one it takes for none."""
    path = samples.sample("2.13.0", "mlp")
    record = names.sample_inputs("model")
    assert torch_load(rewritten(path, {record: None})) is None
    assert torch_load(rewritten(path, {record: b""})).example_inputs is None


class Any1(torch.nn.Module):
    """Takes anything and uses the tensors in it."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        return [leaf.clone() for leaf in leaves if isinstance(leaf, torch.Tensor)]


def exported(args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> bytes:
    """A file of a program that was exported with some inputs."""
    return bytes_of(torch.export.save, torch.export.export(Any1(), args, kwargs))


def leaves_of(inputs: Any) -> list[Any]:
    return pytree.tree_leaves(inputs)


def check_inputs(data: bytes) -> Any:
    """The sample inputs of a sanitized file are those of the file, in the same containers."""
    wanted = pt2kit.load(data).example_inputs
    found = pt2kit.load(sanitized(data)).example_inputs
    assert pytree.tree_structure(found) == pytree.tree_structure(wanted)
    for a, b in zip(leaves_of(found), leaves_of(wanted), strict=True):
        assert type(a) is type(b)
        if isinstance(b, torch.Tensor):
            assert (a.dtype, a.shape, a.stride(), a.requires_grad) == (b.dtype, b.shape, b.stride(), b.requires_grad)
            assert same([a], [b])
        else:
            assert a == b or (a != a and b != b)
    return found


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype in _TORCH_TO_SERIALIZE_DTYPE], ids=str)
def test_every_element_type(dtype: torch.dtype) -> None:
    """Sample inputs of every element type come back, also strided, without elements, and views of one storage."""
    raw = torch.arange(96, dtype=torch.uint8) % (2 if dtype is torch.bool else 250)
    base = raw.view(dtype).reshape(2, -1)
    check_inputs(exported((base, base.t(), base[:, 1:], base[:0], base[0, 0])))


def test_containers_and_numbers() -> None:
    """Lists, tuples, dicts and what else an input may be made of come back as they were."""
    x = torch.randn(3)
    inputs: tuple[Any, ...]
    inputs = ([x, (x, {"a": x, "b": [1, 2.5, True, None, "text"]})], {}, (), float("nan"), float("inf"), 2**40, -1, "ü")
    found = check_inputs(exported(inputs, {"k": x, "flag": False}))
    assert found[1]["flag"] is False
    nested = collections.OrderedDict(b=x, a=[x])
    check_inputs(exported((nested,)))


Point = collections.namedtuple("Point", ["x", "y"])


@dataclass
class Box:
    """A container that is registered with torch."""

    left: Any
    right: Any
    none: Any = None


@pytest.fixture
def registered() -> Any:
    """The classes of this file, known to torch for one test."""
    torch.export.register_dataclass(Box, serialized_type_name="tests.bridge.test_sanitize.Box")
    pytree._register_namedtuple(Point, serialized_type_name="tests.bridge.test_sanitize.Point")
    yield
    pytree._deregister_pytree_node(Box)
    pytree.SUPPORTED_NODES.pop(Point, None)


def test_named_tuples_and_dataclasses(registered: None) -> None:
    """Containers of registered classes come back in the classes that this process has; no file names what to call."""
    x = torch.randn(2)
    data = exported((Point(x, 2 * x), Box(x, [x, Point(x, 3)])))
    clean = sanitized(data)
    found = pt2kit.load(clean).example_inputs
    assert type(found[0][0]) is Point
    assert type(found[0][1]) is Box
    assert torch.equal(found[0][1].right[1].x, x)
    with pt2kit.open(clean) as package:
        index = bytes(package.archive.read(package.layout.record("extra/pt2kit/sample_inputs/model.json")))
        args, _ = present(package.sample_inputs())
    assert b"test_sanitize" not in index
    assert args[1].children[0].sizes == (2,)
    assert sanitized(clean) == clean


def test_fake_inputs() -> None:
    """Fake tensors come back as fake tensors."""
    with FakeTensorMode():
        x = torch.empty(2, 3)
    program = torch.export.export(Any1(), (torch.zeros(2, 3),))
    program._example_inputs = ((x,), {})
    clean = sanitized(bytes_of(pt2kit.save, program))
    ((found,), _) = pt2kit.load(clean).example_inputs
    assert isinstance(found, torch._subclasses.FakeTensor)
    assert (found.shape, found.dtype) == (x.shape, x.dtype)
    with pt2kit.open(clean) as package, pytest.raises(UnsupportedError, match="got fake ones"):
        package.sample_inputs()


def test_saving_again(tmp_path: Path) -> None:
    """A program that was loaded from a sanitized file is saved like any other, and has its sample inputs."""
    path = samples.sample("2.13.0", "kwargs_and_nested_inputs")
    clean = tmp_path / "clean.pt2"
    pt2kit.sanitize(path, clean)
    extra: dict[str, Any] = {}
    program = pt2kit.load(clean, extra_files=extra)
    assert extra == {}
    pt2kit.save(program, tmp_path / "again.pt2", extra_files=extra)
    assert differences(pt2kit.load(tmp_path / "again.pt2"), pt2kit.load(path)) == []


def test_device_of_inputs() -> None:
    """`device=` moves sample inputs that were moved out of their pickle, too."""
    data = sanitized(samples.sample("2.13.0", "mlp"))
    program = pt2kit.load(data, device="meta")
    assert {leaf.device.type for leaf in leaves_of(program.example_inputs)} == {"meta"}


def test_an_index_that_lies(caplog: pytest.LogCaptureFixture) -> None:
    """An index that cannot be read costs the sample inputs, not the program."""
    data = sanitized(samples.sample("2.13.0", "mlp"))
    for content in (b"[", b"{}", b'{"format":"pt2kit sample inputs 2","leaves":[1,2,3],"config":{}}'):
        broken = rewritten(io.BytesIO(data), {"extra/pt2kit/sample_inputs/model.json": content})
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert pt2kit.load(broken).example_inputs is None
        assert "sample inputs are left out" in caplog.text


def test_sparse_weights_are_refused() -> None:
    """A sparse constant, which pt2kit saves as a pickle, cannot be a raw record: it is refused by name."""
    program = torch.export.export(Any1(), (torch.ones(3),))
    program._state_dict["s"] = torch.eye(3).to_sparse()
    file = bytes_of(pt2kit.save, program)
    with pytest.raises(UnsupportedError, match=r"model: weight 's': .*expected a dense tensor.*X2"):
        sanitized(file)
