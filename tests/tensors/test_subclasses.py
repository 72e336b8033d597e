"""Quantized weights of torchao are read as data: the samples of `tools/torchao_samples.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests import samples
from tests.narrow import instance

import pt2kit
from pt2kit.cli.main import cli
from pt2kit.errors import IntegrityError, LimitError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.pickles import values as data
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS, Budget, Place
from pt2kit.pickles.tensor_subclasses import OPTIONS, SUBCLASSES, rebuild_subclass
from pt2kit.tensors.compound import SubclassView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.zip.reader import Storage

FOLDER = samples.DATA / "torchao"
FILES = sorted(FOLDER.glob("*.pt2"))
PARTS = {
    "int8_dynamic": "f32[8, 32] Int8Tensor, qdata i8[8, 32], scale f32[8, 1], zero_point i8[8, 1]",
    "float8": "f32[8, 32] Float8Tensor, qdata f8e4m3fn[8, 32], scale f32[8, 1]",
    "intx": "f32[8, 32] IntxUnpackedToInt8Tensor, qdata i8[8, 32], scale f32[8, 2], zero_point i8[8, 2]",
    "int4": "bf16[8, 32] Int4Tensor, qdata i8[8, 16], scale bf16[2, 8], zero_point bf16[2, 8]",
}


def weight(path: Path) -> SubclassView:
    """The quantized weight of a sample."""
    with pt2kit.open(path) as package:
        payload = next(one for one in package.weights().values() if isinstance(one, OpaquePayload))
        return instance(SubclassView, payload.meaning())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_parts(path: Path) -> None:
    """Type, sizes, class and inner tensors are known without torch."""
    view = weight(path)
    assert view.describe() == PARTS[path.stem]
    assert view.is_param
    assert view.options["block_size"] == {"intx": [1, 16], "int4": [1, 16]}.get(path.stem, [1, 32])
    assert view.nbytes == sum(part.numpy().nbytes for part in view.parts.values())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_numbers(path: Path) -> None:
    """The numbers that a weight stands for are those that torchao gave; packed ones are refused."""
    view = weight(path)
    if path.stem == "int4":
        with pytest.raises(UnsupportedError, match=r"one array, got bf16\[8, 32\] Int4Tensor.* \[P18\]"):
            view.dense()
        return
    np.testing.assert_allclose(view.numpy(), np.load(path.with_suffix(".npy")), atol=1e-6)


def test_listed_and_extracted(tmp_path: Path) -> None:
    """`pt2 weights` lists the parts, and writes each of them."""
    path = str(FOLDER / "intx.pt2")
    [row, _] = json.loads(CliRunner().invoke(cli, ["weights", path, "--json"]).output)
    assert (row["dtype"], row["sizes"], row["class"]) == (
        "float32",
        [8, 32],
        "torchao.quantization.IntxUnpackedToInt8Tensor",
    )
    assert row["options"]["target_dtype"] == "torch.int4"
    target = tmp_path / "w.npz"
    assert CliRunner().invoke(cli, ["weights", path, "--to", str(target)]).exit_code == 0
    with np.load(target) as arrays:
        assert sorted(arrays) == ["lin.bias", "lin.weight.qdata", "lin.weight.scale", "lin.weight.zero_point"]


def test_digest_and_diff(tmp_path: Path) -> None:
    """The meaning counts, not the pickle: a diff names the part that differs."""
    path = FOLDER / "int8_dynamic.pt2"
    changed = tmp_path / "changed.pt2"
    with pt2kit.open(path) as package:
        payload = instance(OpaquePayload, package.weights()["lin.weight"])
        record = payload.record
        raw = bytes(payload.buffer())
        content = bytes(instance(SubclassView, payload.meaning()).parts["qdata"].storage.read())
        offset = package.archive.data_offset(record) + raw.index(content)
    file = bytearray(path.read_bytes())
    file[offset] ^= 1
    changed.write_bytes(file)
    with pytest.raises(IntegrityError, match="CRC"):
        pt2kit.digest(pt2kit.open(changed))
    assert pt2kit.digest(pt2kit.open(path)).weights == pt2kit.digest(pt2kit.open(path)).weights
    assert pt2kit.digest(pt2kit.open(path)).weights != pt2kit.digest(pt2kit.open(FOLDER / "intx.pt2")).weights
    shown = str(pt2kit.diff(str(path), str(FOLDER / "intx.pt2")))
    assert "IntxUnpackedToInt8Tensor" in shown


STORAGE = Storage("0", 32, lambda: memoryview(bytes(32)))
QDATA = data.PickledTensor(STORAGE, "int8", (4, 8), (8, 1), 0)
SCALE = data.PickledTensor(STORAGE, "float32", (4, 1), (1, 1), 0)
INT8 = data.Global("torchao.quantization", "Int8Tensor")


def rebuilt(state: Any, cls: data.Global = INT8, **changes: Any) -> data.SubclassTensor:
    given = {"cls": cls, "dtype": data.DType("float32"), "size": (4, 8), "stride": (8, 1), "offset": 0}
    given |= {"layout": data.Layout("strided"), "device": data.Device("cpu"), "grad": False, **changes}
    return rebuild_subclass(Place(Budget("w", DEFAULT_PICKLE_LIMITS), "f"), cls, tuple(given.values()), state)


GOOD = {"qdata": QDATA, "scale": SCALE, "block_size": [1, 8], "act_quant_kwargs": None, "_is_param": True}


def test_one_that_is_fine() -> None:
    """The table's class with its attributes is described; None is no part."""
    made = rebuilt({**GOOD, "zero_point": None})
    assert (list(made.parts), made.kind, made.options["block_size"]) == (["qdata", "scale"], "parameter", [1, 8])


def test_options_that_repeat_options() -> None:
    """Lists of one list, which has one list again and again, are refused before they are traversed as a tree."""
    value: list[Any] = [1] * 100
    for _ in range(4):
        value = [value] * 100
    with pytest.raises(LimitError, match="expected calls that copy at most"):
        rebuilt({**GOOD, "block_size": value})


def test_int4_for_cpus() -> None:
    """The form of torchao 0.14 for CPUs, which holds scales and zeros in one tensor."""
    state = {"qdata": QDATA, "scale_and_zero": SCALE, "block_size": [1, 8], "shape": data.Size((4, 16))}
    made = rebuilt(state, data.Global("torchao.quantization", "Int4OpaqueTensor"), size=(4, 16), stride=(16, 1))
    assert list(made.parts) == ["qdata", "scale_and_zero"]


@pytest.mark.parametrize(
    ("state", "changes", "error", "text"),
    [
        (GOOD, {"cls": data.Global("os", "system")}, UnsupportedError, "expected a class of the table, got the global"),
        ({**GOOD, "__class__": 1}, {}, UnsupportedError, "expected attributes of torchao .*, got '__class__'"),
        ({**GOOD, "scale": 1.0}, {}, PayloadError, "scale: expected a dense tensor"),
        ({"qdata": QDATA}, {}, PayloadError, "expected the tensor scale, got none"),
        (GOOD, {"size": (4, 9)}, PayloadError, r"qdata of sizes \[4, 9\]"),
        (GOOD, {"size": (4, -8)}, PayloadError, "an integer from 0"),
        (GOOD, {"device": "cpu"}, PayloadError, "a device"),
        ([], {}, PayloadError, "a dict of attributes"),
        ({**GOOD, "block_size": [[[[[[1]]]]]]}, {}, PayloadError, "expected plain options"),
        ({**GOOD, "block_size": data.Opaque(data.Global("os", "system"), ("x",))}, {}, PayloadError, "plain options"),
        ({**GOOD, "_is_param": 1}, {}, PayloadError, "True or False"),
    ],
)
def test_others(state: Any, changes: dict[str, Any], error: type[Pt2Error], text: str) -> None:
    """Another class, another attribute, or parts that contradict each other are refused."""
    with pytest.raises(error, match=text):
        rebuilt(state, changes.pop("cls", INT8), **changes)


def test_scales_that_do_not_fit() -> None:
    """A scale for other blocks is refused when the numbers are asked for."""
    view = weight(FOLDER / "int8_dynamic.pt2")
    odd = view.parts["scale"]
    broken = SubclassView(
        "w", view.class_name, view.dtype, view.sizes, {"qdata": view.parts["qdata"], "scale": odd}, {}
    )
    assert broken.numpy().shape == (8, 32)
    parts = {"qdata": view.parts["qdata"], "scale": view.parts["qdata"]}
    assert SubclassView("w", view.class_name, view.dtype, view.sizes, parts, {}).numpy().shape == (8, 32)
    with pytest.raises((PayloadError, LimitError), match=r"expected one number for each block.* \[P17\]"):
        SubclassView("w", view.class_name, view.dtype, (8, 32), {**parts, "scale": _rows(odd)}, {}).numpy()


def _rows(view: Any) -> Any:
    from dataclasses import replace

    return replace(view, sizes=(3, 1))


def test_the_tables_name_classes_of_torchao() -> None:
    """Nothing else can be named by a file."""
    assert all(name.startswith("torchao.") for name in (*SUBCLASSES, *OPTIONS))
