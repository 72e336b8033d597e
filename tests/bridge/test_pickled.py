"""Payloads of torch.save, read by `pt2kit.pickles.reader` and compared with torch's own values."""

from __future__ import annotations

import collections
import dataclasses
import io
import warnings
import zipfile
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import torch
from tests.packages import bytes_of

from pt2kit.errors import Pt2Error, UnsupportedError
from pt2kit.pickles import values as pv
from pt2kit.pickles.allowed_globals import CALLS
from pt2kit.pickles.reader import globals_in, is_plain, read_payload
from pt2kit.pickles.values import ITEM_SIZES, LAYOUTS, MEMORY_FORMATS, QSCHEMES

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*(TypedStorage|[Ss]parse|[Nn]ested|[Qq]uantiz|__array_wrap__).*"),
]

DTYPES = sorted({value for name in dir(torch) if isinstance(value := getattr(torch, name), torch.dtype)}, key=str)
STORABLE = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
    torch.float4_e2m1fn_x2,
    torch.bits8,
    torch.bits16,
]


class Pair(collections.namedtuple("Pair", ["left", "right"])):
    __slots__ = ()


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    y: int


def save(value: Any, protocol: int = 2, **options: Any) -> bytes:
    return bytes_of(torch.save, value, pickle_protocol=protocol, **options)


def read(value: Any, protocol: int = 2) -> Any:
    return read_payload(save(value, protocol), "data.pt")


def storage_bytes(tensor: torch.Tensor) -> bytes:
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes() if storage.nbytes() else b""


def check_dense(ours: pv.PickledTensor, theirs: torch.Tensor) -> None:
    assert isinstance(ours, pv.PickledTensor)
    assert f"torch.{ours.dtype_name}" == str(theirs.dtype)
    assert ours.sizes == tuple(theirs.shape)
    assert ours.strides == tuple(theirs.stride())
    assert ours.storage_offset == theirs.storage_offset()
    assert ours.requires_grad == theirs.requires_grad
    assert ours.conj == theirs.is_conj()
    assert ours.neg == theirs.is_neg()
    assert (ours.kind == "parameter") == isinstance(theirs, torch.nn.Parameter)
    assert ours.device == str(theirs.device)
    assert ours.storage.read().readonly
    stored = storage_bytes(theirs)
    assert bytes(ours.storage.read()) == stored[: ours.storage.nbytes]
    assert len(stored) - ours.storage.nbytes < theirs.dtype.itemsize


def check(ours: Any, theirs: Any) -> None:
    """Compare a value as we read it with the same as torch has it, part by part."""
    if isinstance(theirs, torch.Tensor):
        return check_tensor(ours, theirs)
    if isinstance(theirs, torch.Size):
        assert ours == pv.Size(tuple(theirs))
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            check(ours[key], theirs[key])
    elif isinstance(theirs, tuple) and type(theirs) is not tuple:
        assert ours.class_name.rsplit(".", 1)[1] == type(theirs).__name__
        check(ours.values, tuple(theirs))
    elif isinstance(theirs, list | tuple | collections.deque):
        assert type(ours) is type(theirs)
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            check(mine, other)
    else:
        assert ours == theirs
        assert type(ours) is type(theirs)
    return None


def check_tensor(ours: Any, theirs: torch.Tensor) -> None:
    if theirs.layout is torch.sparse_coo:
        assert (ours.layout, ours.sizes, ours.is_coalesced) == (
            "sparse_coo",
            tuple(theirs.shape),
            theirs.is_coalesced(),
        )
        check_dense(ours.indices[0], theirs._indices())
        check_dense(ours.values, theirs._values())
    elif theirs.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        rows = theirs.layout in (torch.sparse_csr, torch.sparse_bsr)
        parts = (theirs.crow_indices(), theirs.col_indices()) if rows else (theirs.ccol_indices(), theirs.row_indices())
        assert f"torch.{ours.layout}" == str(theirs.layout)
        assert ours.sizes == tuple(theirs.shape)
        check_dense(ours.indices[0], parts[0])
        check_dense(ours.indices[1], parts[1])
        check_dense(ours.values, theirs.values())
    else:
        check_dense(ours, theirs)


def view_of_everything() -> list[torch.Tensor]:
    base = torch.arange(24, dtype=torch.float32)
    return [base, base[3:9], base.view(4, 6).t(), base.view(2, 3, 4)[:, 1], base[:1].expand(5, 1), base[0], base[:0]]


VALUES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "scalars": lambda: (True, False, 0, -1, 255, 65536, 2**31, -(2**40), 2**80, 1.5, float("inf"), "é", b"\x00\xff"),
    "containers": lambda: {"a": [1, (2, ())], "b": {}, 3: [[], {"c": None}]},
    "ordered dict": lambda: collections.OrderedDict([("z", 1), ("a", torch.ones(2))]),
    "deque": lambda: collections.deque([1, 2], 5),
    "default dict": lambda: collections.defaultdict(list, {"a": [1]}),
    "sets": lambda: [{1, "a"}, frozenset({2, (3, 4)})],
    "bytearray": lambda: bytearray(b"abc"),
    "slice and range": lambda: [slice(1, None, 2), range(2, 9, 3), ..., 1 + 2j],
    "tensor": lambda: torch.randn(3, 4),
    "scalar tensor": lambda: torch.tensor(3),
    "empty tensor": lambda: torch.empty(0, 3),
    "views of one storage": view_of_everything,
    "parameter": lambda: torch.nn.Parameter(torch.randn(2, 3)),
    "frozen parameter": lambda: torch.nn.Parameter(torch.arange(3), requires_grad=False),
    "requires grad": lambda: torch.ones(2, requires_grad=True),
    "conjugate": lambda: torch.tensor([1 + 2j, 3j]).conj(),
    "negative": lambda: torch.tensor([1 + 2j, 3j]).conj().imag,
    "bytes viewed as floats": lambda: torch.arange(7, dtype=torch.uint8)[:4].view(torch.float32),
    "empty storage of two types": lambda: [(e := torch.empty(0)), e.view(torch.int32)],
    "size": lambda: [torch.Size([2, 3]), torch.Size([])],
    "state dict": lambda: torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict(),
    "result tuple": lambda: torch.max(torch.ones(2, 2), 0),
    "sparse coo": lambda: torch.sparse_coo_tensor([[0, 1], [2, 0]], torch.ones(2, 5), (2, 3, 5)),
    "sparse coalesced": lambda: torch.eye(3).to_sparse(),
    "sparse csr": lambda: torch.eye(3).to_sparse_csr(),
    "sparse csc": lambda: torch.eye(4)[:3].to_sparse_csc(),
    "sparse bsr": lambda: torch.ones(4, 6).to_sparse_bsr((2, 3)),
    "sparse bsc": lambda: torch.ones(4, 6).to_sparse_bsc((2, 3)),
    "sparse batch": lambda: torch.ones(2, 3, 4).to_sparse_csr(),
    "sparse dense": lambda: torch.ones(3, 4, 5).to_sparse_csr(dense_dim=1),
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", VALUES)
def test_values_come_back(name: str, protocol: int) -> None:
    """Every kind of plain value that torch.save takes is read back the same, in every protocol."""
    value = VALUES[name]()
    check(read(value, protocol), value)


@pytest.mark.parametrize("dtype", STORABLE, ids=str)
def test_every_dtype(dtype: torch.dtype) -> None:
    """A tensor of every element type has the same bytes, sizes and strides."""
    base = torch.arange(48, dtype=torch.uint8)
    tensor = (base % 2).view(dtype) if dtype is torch.bool else base.view(dtype)
    check(read([tensor, tensor[2:3]]), [tensor, tensor[2:3]])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_as_values(dtype: torch.dtype) -> None:
    """torch knows no dtype that we do not, nor another size for it."""
    assert read(dtype) == pv.DType(str(dtype).removeprefix("torch."))
    assert ITEM_SIZES[str(dtype).removeprefix("torch.")] == dtype.itemsize


def test_torch_constants() -> None:
    """Layouts, quantization schemes and memory formats of torch are all known by name."""
    for kind, known in ((torch.layout, LAYOUTS), (torch.qscheme, QSCHEMES)):
        assert {str(v).removeprefix("torch.") for v in vars(torch).values() if isinstance(v, kind)} <= {*known}
    assert read(torch.sparse_csr) == pv.Layout("sparse_csr")
    assert read(torch.per_channel_affine) == pv.QScheme("per_channel_affine")
    formats = {str(v).removeprefix("torch.") for v in vars(torch).values() if isinstance(v, torch.memory_format)}
    assert formats == {*MEMORY_FORMATS}


def test_result_tuples_are_known() -> None:
    """Every result tuple class of this torch is on the allow-list."""
    classes = {n for n, v in vars(torch.return_types).items() if isinstance(v, type) and issubclass(v, tuple)}
    assert {f"torch.return_types.{name}" for name in classes - {"SequenceKey", "_attr"}} <= CALLS.keys()


def test_devices() -> None:
    assert read([torch.device("cpu"), torch.device("cuda", 1)]) == [pv.Device("cpu"), pv.Device("cuda", 1)]


def test_shared_storage_stays_shared() -> None:
    """Tensors over one storage, tied ones and views, share one PickledStorage; others do not."""
    base = torch.arange(6.0)
    tied = torch.nn.Parameter(base)
    ours = read({"a": base, "b": base[2:], "c": tied, "d": tied, "e": base.clone()})
    assert ours["a"].storage is ours["b"].storage is ours["c"].storage
    assert ours["c"] is ours["d"]
    assert ours["e"].storage is not ours["a"].storage


def test_storage_is_a_view_of_the_payload() -> None:
    """Storages are not copied: they point into the bytes that were handed in."""
    payload = save(torch.arange(100.0))
    ours = read_payload(payload, "x.pt").storage.read()
    start = np.frombuffer(ours, np.uint8).ctypes.data - np.frombuffer(payload, np.uint8).ctypes.data
    assert 0 < start < len(payload)


def test_numbers_through_numpy() -> None:
    """Sizes, strides and offset mean what torch means by them."""
    theirs = torch.arange(60, dtype=torch.int32).view(3, 4, 5)[1:, ::2].transpose(0, 2)
    ours = read(theirs)
    flat = np.frombuffer(ours.storage.read(), np.int32)[ours.storage_offset :]
    seen = np.lib.stride_tricks.as_strided(flat, ours.sizes, [4 * step for step in ours.strides], writeable=False)
    assert (seen == theirs.numpy()).all()


def test_state_dict_metadata_is_kept() -> None:
    """`_metadata` of a state dict comes back as an attribute that is data."""
    ours = read(torch.nn.BatchNorm1d(2).state_dict())
    assert ours.attributes["_metadata"] == {"": {"version": 2}}


def test_buffers_and_attributes() -> None:
    """A Buffer and a tensor are distinct, and Python attributes of a tensor are kept as data."""
    assert read(torch.nn.Buffer(torch.ones(2))).kind == "buffer"
    marked = torch.ones(4, 3)
    torch._dynamo.mark_dynamic(marked, 0, min=2, max=8)
    ours = read(marked)
    assert ours.attributes["_dynamo_dynamic_indices"] == {0}
    (span,) = ours.attributes["_dynamo_dynamic_range"]
    assert span.cls.path == "torch._dynamo.decorators._DimRange"
    by_name = isinstance(span.state, dict)  # up to 2.10 or so, a dataclass without slots
    assert (list(span.state.values()) if by_name else span.state) == [0, 2, 8]


def test_named_tuples() -> None:
    """A named tuple of a class that nobody imported is described by its class and values."""
    ours = read(Pair(torch.ones(2), right=Pair(1, 2)))
    assert ours.class_name == f"{Pair.__module__}.Pair"
    assert ours.values[1] == pv.NamedTuple(ours.class_name, (1, 2))
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 2, 2), [2, 1])
    assert read(packed).class_name == "torch.nn.utils.rnn.PackedSequence"


def test_data_classes_are_read_only_if_trusted() -> None:
    """An instance of a user's class is refused by name; a trusted one is described, its fields being its state."""
    name = f"{Point.__module__}.Point"
    with pytest.raises(UnsupportedError, match=name):
        read([Point(torch.ones(2), 3)])
    (ours,) = read_payload(save([Point(torch.ones(2), 3)]), "x.pt", trust={name})
    assert (ours.cls.path, ours.state["y"]) == (name, 3)
    check_dense(ours.state["x"], torch.ones(2))


def test_quantized_per_tensor() -> None:
    theirs = torch.quantize_per_tensor(torch.randn(2, 3), 0.5, 2, torch.quint8)
    ours = read(theirs)
    assert (ours.qscheme, ours.scale, ours.zero_point) == ("per_tensor_affine", 0.5, 2)
    assert bytes(ours.values.storage.read()) == theirs.int_repr().numpy().tobytes()


def test_quantized_per_channel() -> None:
    scales = torch.tensor([0.5, 0.25])
    theirs = torch.quantize_per_channel(torch.randn(2, 3), scales, torch.tensor([1, 2]), 0, torch.qint8)
    ours = read(torch.nn.Parameter(theirs, requires_grad=False))
    assert (ours.qscheme, ours.axis, ours.kind) == ("per_channel_affine", 0, "parameter")
    check_dense(ours.scale, theirs.q_per_channel_scales())
    check_dense(ours.zero_point, theirs.q_per_channel_zero_points())
    assert bytes(ours.values.storage.read()) == theirs.int_repr().numpy().tobytes()


def test_quantized_below_a_byte() -> None:
    """Of two elements per byte, torch's own storage is large enough for its sizes."""
    scales, zeros = torch.tensor([0.5, 0.25, 1.0]), torch.zeros(3)
    theirs = torch.quantize_per_channel(torch.rand(3, 5), scales, zeros, 0, torch.quint4x2)
    ours = read(theirs)
    assert (ours.values.dtype_name, ours.values.sizes, ours.values.storage.nbytes) == ("quint4x2", (3, 5), 9)


def test_nested() -> None:
    theirs = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    ours = read(theirs)
    check_dense(ours.buffer, theirs.values())
    check_dense(ours.sizes, theirs._nested_tensor_size())
    check_dense(ours.strides, theirs._nested_tensor_strides())
    check_dense(ours.storage_offsets, theirs._nested_tensor_storage_offsets())


def test_meta() -> None:
    ours = read(torch.ones(2, 3, device="meta").t())
    assert ours == pv.MetaTensor("float32", (3, 2), (1, 3))


def test_sparse_parameter() -> None:
    ours = read(torch.nn.Parameter(torch.eye(2).to_sparse()))
    assert (ours.layout, ours.kind, ours.requires_grad) == ("sparse_coo", "parameter", True)


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "|u1", "<i8", "|b1", "<c16", "<f2", "<U3", "|S2"])
def test_numpy_arrays(dtype: str, protocol: int) -> None:
    theirs = np.arange(6).astype(dtype).reshape(2, 3)
    for array in (theirs, np.asfortranarray(theirs)):
        ours = read(array, protocol)
        order: Literal["F", "C"] = "F" if ours.fortran_order else "C"
        seen = np.frombuffer(ours.data, ours.dtype).reshape(ours.shape, order=order)
        assert seen.dtype.str == array.dtype.str
        assert (seen == array).all()
    scalar = theirs[1, 2]
    if not isinstance(scalar, str | bytes):
        ours = read(scalar, protocol)
        assert np.frombuffer(ours.data, ours.dtype)[0] == scalar
        assert read(theirs.dtype, protocol) == pv.NumpyDType(theirs.dtype.str)


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "legacy": (lambda: save([torch.ones(2)], _use_new_zipfile_serialization=False), "torch wrote before 1.6"),
    "module": (lambda: save(torch.nn.Linear(2, 2)), "torch.nn.modules.linear.Linear"),
    "lazy parameter": (lambda: save(torch.nn.UninitializedParameter()), "torch.nn.parameter.UninitializedParameter"),
    "function": (lambda: save(torch.relu), "getattr"),
    "object array": (lambda: save(np.array([None], dtype=object)), "numpy.dtype"),
    "dates": (lambda: save(np.array(["2020"], dtype="M8[Y]")), "numpy.dtype"),
    "structured": (lambda: save(np.zeros(2, dtype=[("a", "i4")])), "numpy.dtype"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_what_they_refuse(name: str) -> None:
    make, text = REFUSED[name]
    with pytest.raises(UnsupportedError) as caught:
        read_payload(make(), "x.pt")
    assert "x.pt" in str(caught.value)
    assert text in str(caught.value)


def test_torchscript_is_refused() -> None:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated, in one way or another since 2.10
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), buffer)
    for use in (read_payload, globals_in):
        with pytest.raises(UnsupportedError, match=r"x\.pt: .*TorchScript"):
            use(buffer.getvalue(), "x.pt")


def test_torchbind_objects_are_refused_by_class() -> None:
    """A TorchBind object, alone or inside a payload, is refused under the name of its class."""
    weight = torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 2, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    name = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
    alone = torch._C._pickle_save(packed)
    with pytest.raises(UnsupportedError, match=rf"{name} \(a TorchBind object\)"):
        read_payload(alone, "custom_obj_0")
    with pytest.raises(UnsupportedError, match=r"torch\.ScriptObject \(a TorchBind object\)"):
        read_payload(save([packed]), "x.pt")
    trusted = read_payload(alone, "custom_obj_0", trust={name})
    assert trusted.cls.path == name
    assert isinstance(trusted.state[0], pv.QuantizedTensor)


def test_globals_are_listed_and_judged() -> None:
    """`globals_in` names what torch would look up; only what is data is plain."""
    found = globals_in(save([torch.ones(2), torch.nn.Linear(1, 1)]), "x.pt")
    assert [name for name in found if not is_plain(name)] == ["torch.nn.modules.linear.Linear"]
    legacy = globals_in(save(torch.ones(2), _use_new_zipfile_serialization=False), "x.pt")
    assert "torch.FloatStorage" in legacy


def test_what_torch_takes_for_data_is_plain() -> None:
    """Globals that torch's weights_only loading allows are on the allow-list."""
    allowed = torch._weights_only_unpickler._get_allowed_globals()
    unread = {
        "torch._utils._rebuild_wrapper_subclass",  # needs a class of the user's
        "torch.storage.TypedStorage",  # never written: a typed storage is named by its class
    }
    legacy = {n for n in allowed if n.startswith(("torch.sparse.", "torch.cuda.")) or n.endswith("Tensor")}
    missing = {name for name in allowed if not is_plain(name)} - unread
    assert missing <= legacy - {"torch.Tensor"}


def test_a_payload_truncated_anywhere_is_refused() -> None:
    """Cut bytes never give a value, and only our errors."""
    payload = save({"a": torch.arange(4.0), "b": [1, "x"]})
    for length in range(0, len(payload), 7):
        with pytest.raises(Pt2Error, match=r"^x\.pt: expected "):
            read_payload(payload[:length], "x.pt")


def test_storages_are_records_of_the_zip() -> None:
    """The inner zip read by Python gives the same storage bytes."""
    payload = save([torch.arange(3.0), torch.arange(5)])
    with zipfile.ZipFile(io.BytesIO(payload)) as inner:
        for ours in read_payload(payload, "x.pt"):
            assert bytes(ours.storage.read()) == inner.read(f"archive/data/{ours.storage.record.rpartition(' ')[2]}")
