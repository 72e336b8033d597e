"""Rebuild functions of torch, by hand-written streams: what each gives, and what each refuses."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from tests.pickles.pickle_forge import FLOATS, ORDERED, Build, Call, Persistent, Ref, payload, storage, stream, tensor

from pt2kit.errors import LimitError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.pickles import values as pv
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.tensor_reducers import needed_bytes
from pt2kit.pickles.values import ITEM_SIZES, STORAGES

UTILS = "torch._utils._rebuild"
INT8 = "torch.QInt8Storage"
SIZES: dict[str, bytes] = {"0": FLOATS, "1": bytes(range(8)), "2": struct.pack("<8q", *range(8)), "empty": b""}


def read(value: Any, storages: dict[str, bytes] | None = None) -> Any:
    return read_payload(payload(stream(value), SIZES if storages is None else storages), "x.pt")


def longs(*sizes: int, offset: int = 0) -> Call:
    strides = tuple(sizes[dim + 1] if dim + 1 < len(sizes) else 1 for dim in range(len(sizes)))
    return tensor(of=storage("torch.LongStorage", "2", numel=8), size=sizes, stride=strides, offset=offset)


def untyped(numel: Any = 16, key: Any = "0") -> Persistent:
    return storage("torch.storage.UntypedStorage", key, numel=numel)


def v3(dtype: str, size: tuple[int, ...], **more: Any) -> Call:
    call = tensor(of=untyped(), size=size, **more)
    return Call(f"{UTILS}_tensor_v3", (*call.args[:6], Ref(dtype), *call.args[6:]))


def quantized(quantizer: Any, size: tuple[int, ...] = (2, 3), cls: str = INT8) -> Call:
    strides = (3, 1)[2 - len(size) :]
    return Call(f"{UTILS}_qtensor", (storage(cls, "1", numel=8), 0, size, strides, quantizer, False, Call(ORDERED)))


def coo(indices: Any, values: Any, size: Any, *more: Any, layout: str = "sparse_coo") -> Call:
    name = Call("torch.serialization._get_layout", (f"torch.{layout}",))
    return Call(f"{UTILS}_sparse_tensor", (name, (indices, values, size, *more)))


def compressed(layout: str, *parts: Any) -> Call:
    return coo(*parts, layout=layout)


def from_type(cls: str, state: Any, function: str = f"{UTILS}_tensor_v2", args: Any = None) -> Call:
    arguments = tensor().args if args is None else args
    return Call("torch._tensor._rebuild_from_type_v2", (Ref(function), Ref(cls), arguments, state))


AFFINE = Ref("torch.per_tensor_affine")
CHANNELS = Ref("torch.per_channel_affine")
META = (Ref("torch.float16"), (2, 3), (3, 1), True)
PARAMETER = f"{UTILS}_parameter"


def test_dense() -> None:
    ours = read(tensor(size=(2, 2), stride=(1, 2), requires_grad=True))
    assert (ours.dtype_name, ours.sizes, ours.strides, ours.storage_offset) == ("float32", (2, 2), (1, 2), 0)
    assert (ours.requires_grad, ours.kind, ours.conj, ours.neg) == (True, "tensor", False, False)
    assert (ours.storage.record, ours.storage.nbytes, ours.device) == ("x.pt: storage 0", 16, "cpu")
    assert bytes(ours.storage.read()) == FLOATS
    assert ours.storage.read().readonly


def test_first_version_and_torch_size() -> None:
    size = Call("torch.Size", ((4,),))
    ours = read(Call(f"{UTILS}_tensor", (storage(), 0, size, (1,))))
    assert ours.sizes == (4,)


def test_flags() -> None:
    ours = read(tensor(metadata={"conj": True, "neg": False}))
    assert (ours.conj, ours.neg) == (True, False)
    assert read(tensor(metadata=None, hooks=None)).conj is False


@pytest.mark.parametrize("dtype", ITEM_SIZES)
def test_third_version_takes_every_dtype(dtype: str) -> None:
    """An untyped storage with a dtype of its own; quantized ones need more than that."""
    call = v3(f"torch.{dtype}", (16 // ITEM_SIZES[dtype],))
    if dtype.startswith("q"):
        with pytest.raises(PayloadError, match=f"an element type that needs no scale, got {dtype}"):
            read(call)
    else:
        assert read(call).dtype_name == dtype


@pytest.mark.parametrize("cls", STORAGES)
def test_every_storage_class(cls: str) -> None:
    ours = read(storage(cls, numel=16 // ITEM_SIZES[STORAGES[cls]]))
    assert (ours.dtype_name, ours.storage.nbytes) == (STORAGES[cls], 16)


def test_parameters() -> None:
    """A parameter keeps its storage; its state is data; `_is_param` and `_is_buffer` are what torch goes by."""
    plain, stateful = read(
        [
            Call(PARAMETER, (tensor(), True, Call(ORDERED))),
            Call(f"{PARAMETER}_with_state", (tensor(), False, Call(ORDERED), ({"a": 1}, {"b": [2]}))),
        ]
    )
    assert (plain.kind, plain.requires_grad, stateful.requires_grad) == ("parameter", True, False)
    assert dict(stateful.attributes) == {"a": 1, "b": [2]}
    assert plain.storage is stateful.storage


@pytest.mark.parametrize(
    ("cls", "state", "kind"),
    [
        ("torch.Tensor", None, "tensor"),
        ("torch.Tensor", {"tag": (1, 2)}, "tensor"),
        ("torch.Tensor", {"_is_buffer": True, "persistent": True}, "buffer"),
        ("torch.Tensor", {"_is_param": True}, "parameter"),
        ("torch.nn.parameter.Parameter", (None, None), "parameter"),
        ("torch.nn.parameter.Buffer", {}, "buffer"),
    ],
)
def test_tensors_with_a_class(cls: str, state: Any, kind: str) -> None:
    ours = read(from_type(cls, state))
    assert ours.kind == kind
    assert dict(ours.attributes) == (state if isinstance(state, dict) else {})


def test_old_module_name() -> None:
    call = Call("torch.tensor._rebuild_from_type", (Ref(f"{UTILS}_tensor_v2"), Ref("torch.Tensor"), tensor().args, {}))
    assert read(call).sizes == (4,)


def test_sparse_coo() -> None:
    ours = read(coo(longs(1, 3), tensor(size=(3,)), (9,), True))
    assert (ours.layout, ours.sizes, ours.is_coalesced) == ("sparse_coo", (9,), True)
    assert ours.indices[0].sizes == (1, 3)
    assert read(coo(longs(1, 3), tensor(size=(3,)), Call("torch.Size", ((9,),)))).is_coalesced is None


@pytest.mark.parametrize(
    ("layout", "parts"),
    [
        ("sparse_csr", (longs(3), longs(4), tensor(), (2, 7))),
        ("sparse_csc", (longs(8), longs(4), tensor(), (2, 7))),
        ("sparse_bsr", (longs(2), longs(2), tensor(size=(2, 1, 2), stride=(2, 2, 1)), (1, 6))),
        ("sparse_bsc", (longs(4), longs(2), tensor(size=(2, 1, 2), stride=(2, 2, 1)), (1, 6))),
        ("sparse_csr", (longs(2, 3), longs(2, 2), tensor(size=(2, 2), stride=(2, 1)), (2, 2, 5))),
        ("sparse_csr", (longs(3), longs(2), tensor(size=(2, 2), stride=(2, 1)), (2, 5, 2))),
    ],
)
def test_sparse_compressed(layout: str, parts: Any) -> None:
    ours = read(compressed(layout, *parts))
    assert (ours.layout, ours.sizes, len(ours.indices)) == (layout, parts[3], 2)


def test_sparse_csr_of_torch_1_10() -> None:
    call = compressed("sparse_csr", longs(3), longs(4), tensor(), (2, 7))
    assert read(Call(f"{UTILS}_sparse_csr_tensor", call.args)).layout == "sparse_csr"


def test_quantized() -> None:
    ours = read(quantized((AFFINE, 0.5, 3)))
    assert (ours.qscheme, ours.scale, ours.zero_point, ours.axis) == ("per_tensor_affine", 0.5, 3, None)
    assert ours.values.dtype_name == "qint8"
    ours = read(quantized((CHANNELS, [0.5, 1], [0, 1], 0)))
    assert (ours.scale, ours.zero_point, ours.axis) == ((0.5, 1.0), (0.0, 1.0), 0)
    ours = read(quantized((Ref("torch.per_channel_affine_float_qparams"), longs(2), longs(2), 0)))
    assert ours.scale.sizes == (2,)


def test_quantized_below_a_byte() -> None:
    """Rows of elements narrower than a byte begin at a byte of their own."""
    ours = read(quantized((AFFINE, 1.0, 0), cls="torch.QUInt4x2Storage"))
    assert needed_bytes(ours.values.sizes, ours.values.strides, 0, "quint4x2") == 4
    assert needed_bytes((), (), 0, "quint2x4") == 1


def test_nested() -> None:
    ours = read(Call(f"{UTILS}_nested_tensor", (tensor(), longs(2, 2), longs(2, 2), longs(2))))
    assert ours.storage_offsets.sizes == (2,)
    ours = read(Call(f"{UTILS}_nested_tensor", (tensor(), longs(2, 2), longs(2, 2), [0, 2])))
    assert ours.storage_offsets == (0, 2)


def test_meta_and_devices() -> None:
    described = pv.MetaTensor("float16", (2, 3), (3, 1), requires_grad=True)
    assert read(Call(f"{UTILS}_meta_tensor_no_storage", META)) == described
    ours = read(Call(f"{UTILS}_device_tensor_from_cpu_tensor", (tensor(), Ref("torch.float16"), "xla:0", False)))
    assert (ours.data.dtype_name, ours.dtype_name, ours.device) == ("float32", "float16", "xla:0")
    device = Call("torch.device", ("mtia", 1))
    assert read(Call(f"{UTILS}_xla_tensor", (tensor(), Ref("torch.int8"), device, False))).device == "mtia:1"


def test_empty_tensors_need_no_bytes() -> None:
    """Without elements, strides and offset reach nowhere."""
    empty = storage(key="empty", numel=0)
    assert read(tensor(of=empty, size=(0, 5), stride=(5, 1), offset=7)).storage.nbytes == 0
    one = tensor(of=empty, size=(0,))
    other = tensor(of=storage("torch.LongStorage", "empty", numel=0), size=(0,))
    assert [part.dtype_name for part in read([one, other])] == ["float32", "int64"]


def test_bytes_left_over_from_a_view() -> None:
    """A storage of bytes viewed as floats may end in less than a float."""
    assert read(tensor(), {"0": FLOATS + b"abc"}).storage.nbytes == 16


REFUSED: dict[str, tuple[Any, type[Pt2Error], str]] = {
    "size beyond the storage": (
        tensor(size=(5,)),
        PayloadError,
        r"storage '0': expected at least 20 bytes for sizes \[5\], strides \[1\], storage_offset 0, .* got 16 bytes",
    ),
    "offset beyond the storage": (tensor(size=(1,), offset=4), PayloadError, "at least 20 bytes .* got 16 bytes"),
    "stride beyond the storage": (tensor(size=(2,), stride=(4,)), PayloadError, "at least 20 bytes .* got 16 bytes"),
    "size that would wrap": (tensor(size=(2**62,), stride=(4,)), PayloadError, "got 16 bytes"),
    "sizes that multiply past 63 bits": (
        tensor(size=(2**40, 2**40), stride=(0, 0)),
        PayloadError,
        r"fewer than 2\*\*63",
    ),
    "wider dtype": (v3("torch.float64", (3,)), PayloadError, "at least 24 bytes .* float64, got 16 bytes"),
    "negative size": (tensor(size=(-1,)), PayloadError, r"sizes: expected an integer from 0 to 2\*\*63 - 1, got .* -1"),
    "negative stride": (tensor(stride=(-1,)), PayloadError, "strides: expected an integer from 0"),
    "negative offset": (tensor(offset=-1), PayloadError, "storage_offset: expected an integer from 0"),
    "huge size": (tensor(size=(2**63,), stride=(0,)), PayloadError, "got the integer 9223372036854775808"),
    "huge integer": (tensor(size=(2**900,)), PayloadError, "got an integer of 901 bits"),
    "size that is a bool": (tensor(size=(True,)), PayloadError, "expected an integer from 0 .* got True"),
    "size that is a float": (tensor(size=(1.0,)), PayloadError, "expected an integer from 0 .* got the number 1.0"),
    "sizes in a list": (tensor(size=[4]), PayloadError, "sizes: expected a tuple of integers, got a list of 1"),
    "stride missing": (tensor(stride=()), PayloadError, "expected 1 stride, one per size, got 0"),
    "65 dimensions": (tensor(size=(1,) * 65, stride=(0,) * 65), LimitError, "at most 64 dimensions, got 65"),
    "no storage": (tensor(of=7), PayloadError, "_rebuild_tensor_v2: expected a storage, got the integer 7"),
    "too few arguments": (Call(f"{UTILS}_tensor_v2", (storage(),)), PayloadError, "expected 6 or 7 arguments, got 1"),
    "hooks": (tensor(hooks=Build(Call(ORDERED, ([(1, 2)],)), {})), UnsupportedError, "no backward hooks, got 1"),
    "hooks of another type": (tensor(hooks=[1]), PayloadError, "an empty table of backward hooks, got a list of 1"),
    "requires_grad that is no bool": (tensor(requires_grad=1), PayloadError, "requires_grad: expected True or False"),
    "unknown metadata": (tensor(metadata={"x": True}), UnsupportedError, "conj and neg, got the string 'x'"),
    "metadata of another type": (tensor(metadata={"conj": 1}), PayloadError, "conj: expected True or False"),
    "metadata that is a list": (tensor(metadata=[]), PayloadError, "metadata: expected a dict"),
    "quantized without a scale": (tensor(of=storage(INT8, "1", numel=8)), PayloadError, "needs no scale, got qint8"),
    "dtype that is none": (v3("torch.strided_", (1,)), UnsupportedError, "refers to torch.strided_"),
    "dtype of the wrong kind": (v3("torch.per_tensor_affine", (1,)), PayloadError, "expected a dtype, got a QScheme"),
    "parameter of a text": (Call(PARAMETER, ("a", True, None)), PayloadError, "expected a tensor, got the string 'a'"),
    "state of a list": (from_type("torch.Tensor", [1]), PayloadError, "a dict of attributes, got a list"),
    "state with numbers": (from_type("torch.Tensor", {1: 2}), PayloadError, "attribute names, got the integer 1"),
    "class that is no tensor": (
        from_type("torch.Size", None),
        UnsupportedError,
        "a plain tensor class, got the global",
    ),
    "function that is no rebuild": (
        from_type("torch.Tensor", None, "torch.Size"),
        PayloadError,
        "rebuilds a tensor, got the global torch.Size",
    ),
    "function within itself": (
        from_type("torch.Tensor", None, "torch._tensor._rebuild_from_type_v2"),
        PayloadError,
        "rebuilds a tensor",
    ),
    "arguments in a list": (from_type("torch.Tensor", None, args=[1]), PayloadError, "a tuple of arguments"),
    "unknown layout": (coo(longs(1, 3), tensor(), (9,), layout="strided"), PayloadError, "a layout of .* got strided"),
    "parts in a list": (
        Call(f"{UTILS}_sparse_tensor", (Call("torch.serialization._get_layout", ("torch.sparse_coo",)), [])),
        PayloadError,
        "a tuple of parts",
    ),
    "float indices": (
        coo(tensor(), tensor(), (9,)),
        PayloadError,
        "indices: expected a tensor of int64, got one of float32",
    ),
    "indices of one dimension": (coo(longs(4), tensor(), (9,)), PayloadError, r"indices \[at most 1, nonzeros\]"),
    "too many sparse dimensions": (coo(longs(2, 4), tensor(), (9,)), PayloadError, r"indices \[at most 1, nonzeros\]"),
    "values that do not fit": (
        coo(longs(1, 3), tensor(), (9,)),
        PayloadError,
        r"values of sizes \[3\], got sizes \[4\]",
    ),
    "values that are no tensor": (
        coo(longs(1, 3), None, (9,)),
        PayloadError,
        "values: expected a dense tensor, got None",
    ),
    "coalesced that is no bool": (coo(longs(1, 4), tensor(), (9,), 1), PayloadError, "is_coalesced: expected True"),
    "csr rows": (
        compressed("sparse_csr", longs(4), longs(4), tensor(), (2, 7)),
        PayloadError,
        r"sizes \[3\] \[4\] \[4\], got",
    ),
    "csr ranks": (compressed("sparse_csr", longs(3), longs(4), tensor(), (2,)), PayloadError, "that fit sizes"),
    "csr nonzeros": (
        compressed("sparse_csr", longs(3), longs(3), tensor(), (2, 7)),
        PayloadError,
        "sparse_csr parts of",
    ),
    "bsr blocks": (
        compressed("sparse_bsr", longs(2), longs(2), tensor(size=(2, 1, 2), stride=(2, 2, 1)), (1, 5)),
        PayloadError,
        r"blocks that divide \[1, 5\], got blocks \[1, 2\]",
    ),
    "bsr blocks of nothing": (
        compressed("sparse_bsr", longs(2), longs(1), tensor(size=(1, 0, 1), stride=(1, 1, 1)), (2, 2)),
        PayloadError,
        r"blocks that divide \[2, 2\], got blocks \[0, 1\]",
    ),
    "csr of one index": (compressed("sparse_csr", longs(3), tensor(), (2, 7)), PayloadError, "expected 4 arguments"),
    "csr without a start": (
        compressed("sparse_csr", longs(), longs(1), tensor(), (2, 7)),
        PayloadError,
        "that fit sizes",
    ),
    "quantizer without a scheme": (quantized((1.0, 2)), PayloadError, "a tuple that starts with a scheme"),
    "quantizer that is symmetric": (
        quantized((Ref("torch.per_tensor_symmetric"), 1.0)),
        UnsupportedError,
        "an affine quantization scheme",
    ),
    "scale that is a text": (quantized((AFFINE, "1", 0)), PayloadError, "scale: expected a number, got the string"),
    "zero point that is a float": (quantized((AFFINE, 1.0, 0.5)), PayloadError, "zero_point: expected an integer"),
    "axis beyond": (quantized((CHANNELS, [1.0], [0], 2)), PayloadError, "one of 2 dimensions, got 2"),
    "scales too short": (
        quantized((CHANNELS, [1.0], [0, 0], 0)),
        PayloadError,
        r"scales: expected sizes \[2\], got sizes \[1\]",
    ),
    "scales that are text": (quantized((CHANNELS, ["a", "b"], [0, 0], 0)), PayloadError, "scales: expected a number"),
    "quantized floats": (
        quantized((AFFINE, 1.0, 0), (2, 3), "torch.ByteStorage"),
        PayloadError,
        "expected one of qint32",
    ),
    "packed too short": (
        quantized((AFFINE, 1.0, 0), (9, 3), "torch.QUInt4x2Storage"),
        PayloadError,
        "at least 18 bytes",
    ),
    "packed with a stride": (
        Call(
            f"{UTILS}_qtensor",
            (storage("torch.QUInt4x2Storage", "1", numel=8), 0, (2, 2), (1, 2), (AFFINE, 1.0, 0), False, None),
        ),
        PayloadError,
        "quint4x2 contiguous at offset 0",
    ),
    "nested sizes": (
        Call(f"{UTILS}_nested_tensor", (tensor(), longs(2, 2), longs(2, 1), longs(2))),
        PayloadError,
        r"strides of sizes",
    ),
    "nested offsets": (
        Call(f"{UTILS}_nested_tensor", (tensor(), longs(2, 2), longs(2, 2), [-1])),
        PayloadError,
        "storage_offsets: expected",
    ),
    "meta without a dtype": (
        Call(f"{UTILS}_meta_tensor_no_storage", (1, (), (), False)),
        PayloadError,
        "expected a dtype",
    ),
    "meta strides": (
        Call(f"{UTILS}_meta_tensor_no_storage", (Ref("torch.int8"), (1,), (), False)),
        PayloadError,
        "1 stride, one per",
    ),
    "device tensor of nothing": (
        Call(f"{UTILS}_xla_tensor", (None, Ref("torch.int8"), "xla", False)),
        PayloadError,
        "an array or a tensor, got None",
    ),
    "device that is a number": (
        Call(f"{UTILS}_xla_tensor", (tensor(), Ref("torch.int8"), 1, False)),
        PayloadError,
        "device: expected a device",
    ),
    "BUILD on a tensor": (Build(tensor(), {}), PayloadError, "takes a state, got a PickledTensor"),
    "storage class called": (
        Call("torch.FloatStorage", (4,)),
        UnsupportedError,
        "is understood, got REDUCE of torch.Float",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_contradictory_tensors_are_refused(name: str) -> None:
    value, error, text = REFUSED[name]
    with pytest.raises(error, match=text) as caught:
        read(value)
    assert str(caught.value).startswith("x.pt: ")


STORAGE_REFUSED: dict[str, tuple[Any, type[Pt2Error], str]] = {
    "unknown key": (storage(key="9"), PayloadError, r"storage '9': expected a record archive/data/9, got none"),
    "key with dots": (
        storage(key="../data.pkl"),
        PayloadError,
        r"expected a record archive/data/\.\./data\.pkl, got none",
    ),
    "key with control characters": (storage(key="a\n\x1b[31m"), PayloadError, r"storage 'a\\n\\x1b\[31m': expected"),
    "more elements than bytes": (storage(numel=5), PayloadError, r"20 bytes \(5 of float32\), got 16 bytes"),
    "fewer elements than bytes": (storage(numel=3), PayloadError, r"12 bytes \(3 of float32\), got 16 bytes"),
    "elements that wrap": (storage(numel=2**62 + 4), PayloadError, "got 16 bytes"),
    "negative elements": (storage(numel=-1), PayloadError, "elements: expected an integer from 0"),
    "key that is a number": (storage(key=0), PayloadError, "a key and a device as text, got the integer 0"),
    "device that is none": (storage(device=None), PayloadError, "a key and a device as text"),
    "class that is no storage": (
        storage("torch.Tensor"),
        PayloadError,
        "a storage class of torch, got the global torch.T",
    ),
    "class that is a text": (
        Persistent(("storage", "FloatStorage", "0", "cpu", 4)),
        PayloadError,
        "a storage class of torch, got the string",
    ),
    "another type of id": (
        Persistent(("module", 1, 2, 3, 4)),
        UnsupportedError,
        "persistent id of a storage, got a tuple",
    ),
    "an id that is a text": (Persistent("storage"), UnsupportedError, "persistent id of a storage, got the string"),
    "an id of four": (
        Persistent(("storage", 1, 2, 3)),
        UnsupportedError,
        "persistent id of a storage, got a tuple of 4",
    ),
    "two types of one storage": (
        [storage(), storage("torch.IntStorage")],
        PayloadError,
        "storage '0': expected 16 bytes of float32 on cpu, as before, got 16 bytes of int32 on cpu",
    ),
    "two sizes of one storage": (
        [storage(), storage(numel=2)],
        PayloadError,
        "16 bytes of float32 on cpu, as before, got 8 bytes of float32",
    ),
    "two devices of one storage": ([storage(), storage(device="cuda:0")], PayloadError, "as before, got .* on cuda:0"),
}


@pytest.mark.parametrize("name", STORAGE_REFUSED)
def test_contradictory_storages_are_refused(name: str) -> None:
    value, error, text = STORAGE_REFUSED[name]
    with pytest.raises(error, match=text):
        read(value)
