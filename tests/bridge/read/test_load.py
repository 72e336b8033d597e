"""`load` as callers use it: sources, extra files, operator sets, models, devices, threads, what weights lie over."""

from __future__ import annotations

import gc
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.read.edited import edited, graph, sample
from tests.bridge.read.same import differences
from tests.threads import in_threads
from torch._subclasses.fake_tensor import FakeTensorMode

import pt2kit
from pt2kit.bridge.load import deserialize, load
from pt2kit.bridge.save import save, serialize
from pt2kit.errors import ArchiveError, GraphError, IntegrityError, PayloadError, UnsupportedError, VersionError

MLP = sample("mlp")


def out(program: Any) -> torch.Tensor:
    """The outputs for a fixed input."""
    return program.module()(torch.ones(3, 8))


WANT = out(torch.export.load(MLP))


@pytest.mark.parametrize(
    "open_it",
    [
        str,
        Path,
        lambda path: path.read_bytes(),
        lambda path: io.BytesIO(path.read_bytes()),
        lambda path: path.open("rb"),
        lambda path: path.open("rb", buffering=0),
        lambda path: f"file://{path}",
    ],
    ids=["str", "path", "bytes", "BytesIO", "file", "raw file", "url"],
)
def test_sources(open_it: Any) -> None:
    """Any source gives the same program."""
    source = open_it(MLP)
    program = load(source)
    if hasattr(source, "close"):
        source.close()
    assert torch.equal(out(program), WANT)
    assert differences(program, torch.export.load(MLP)) == []


def test_missing_file(tmp_path: Path) -> None:
    """A path that is not there is an OSError, as from open."""
    with pytest.raises(FileNotFoundError, match=r"no\.pt2"):
        load(tmp_path / "no.pt2")


def test_extra_files() -> None:
    """The user's files come as text, whether asked for or not; a file that is no text as bytes."""
    found: dict[str, Any] = {"extra.txt": ""}
    load(sample("extra_files"), extra_files=found)
    expected: dict[str, Any] = {}
    torch.export.load(sample("extra_files"), extra_files=(wanted := {"x": ""}))
    expected = {name: text for name, text in wanted.items() if name != "x"}
    assert expected
    assert {name: found[name] for name in expected} == expected
    load(edited(MLP, records={"extra/raw": b"\xff\xfe"}), extra_files=found)
    assert found["raw"] == b"\xff\xfe"


def test_opset() -> None:
    """A file for another operator set is refused when the caller says which one it expects."""
    assert torch.equal(out(load(MLP, expected_opset_version={"aten": 10, "mine": 3})), WANT)
    with pytest.raises(VersionError, match=r"\$\.opset_version\.aten: expected 11, got 10; what changed up to 10"):
        load(MLP, expected_opset_version={"aten": 11})


def test_model() -> None:
    """Only the requested program is built; the error for an unknown name lists the known ones."""
    path = sample("multi_model_package")
    names = sorted(torch.export.pt2_archive._package.load_pt2(str(path)).exported_programs)
    for name in names:
        load(path, model=name)
    other = next(name for name in names if name != "model")
    broken = edited(path, records={f"models/{other}.json": b"{"})
    load(broken, model="model")
    with pytest.raises(ArchiveError, match=r"expected a program, one of .model., got .nope.") as error:
        load(MLP, model="nope")
    assert str(MLP.name) in str(error.value)


def test_artifact() -> None:
    """`deserialize` undoes `serialize`."""
    program = load(MLP)
    assert torch.equal(out(deserialize(serialize(program))), WANT)
    assert torch.equal(out(deserialize(MLP.read_bytes(), {"aten": 10})), WANT)
    with pytest.raises(TypeError, match=r"expected what pt2kit\.serialize gives, or bytes, got int"):
        deserialize(3)  # type: ignore[arg-type]


def test_change_stays_here() -> None:
    """A weight that is changed in place changes neither the file nor another load of it."""
    before = MLP.read_bytes()
    program = load(MLP)
    with torch.no_grad():
        for tensor in program.state_dict.values():
            tensor.fill_(7)
    assert MLP.read_bytes() == before
    assert torch.equal(out(load(MLP)), WANT)
    assert not torch.equal(out(program), WANT)


def test_replaced_file(tmp_path: Path) -> None:
    """A program keeps its weights when its file is replaced, and when it is deleted."""
    path = tmp_path / "m.pt2"
    path.write_bytes(MLP.read_bytes())
    program = load(path)
    (tmp_path / "other").write_bytes(sample("convnet").read_bytes())
    os.replace(tmp_path / "other", path)
    path.unlink()
    assert torch.equal(out(program), WANT)


def test_mapped() -> None:
    """With mmap=True the weights of a local file are in a mapping of it, aligned, and not in copies."""
    program = load(MLP, mmap=True)
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("no list of mappings on this system")
    spans = [line.split() for line in maps.read_text().splitlines() if str(MLP) in line]
    ranges = [tuple(int(end, 16) for end in span[0].split("-")) for span in spans]
    for tensor in program.state_dict.values():
        assert tensor.data_ptr() % 64 == 0
        assert any(low <= tensor.data_ptr() < high for low, high in ranges)


def test_not_aligned() -> None:
    """Records that lie elsewhere than at multiples of 64 bytes, or are deflated, are copied."""
    assert torch.equal(out(load(edited(MLP))), WANT)


def test_aliases() -> None:
    """Tied weights are one storage; changing one changes the other."""
    program = load(sample("shared_weights"))
    pointers = [tensor.untyped_storage().data_ptr() for tensor in program.state_dict.values()]
    assert len(set(pointers)) < len(pointers)


def test_damaged_record() -> None:
    """A payload whose bytes do not have their checksum is refused."""
    data = bytearray(MLP.read_bytes())
    record = load(MLP).state_dict["0.weight"].detach().numpy().tobytes()
    data[data.index(record) + 5] ^= 1
    with pytest.raises(ArchiveError, match="weight_0"):
        load(bytes(data))


def _damaged(path: Path, name: str) -> bytes:
    """The file with one bit of one record turned."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = next(entry for entry in archive.infolist() if entry.filename.endswith(name))
    start = entry.header_offset + 30
    start += int.from_bytes(data[start - 4 : start - 2], "little") + int.from_bytes(data[start - 2 : start], "little")
    data[start + entry.compress_size // 2] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    "name",
    [
        "models/model.json",
        "model_weights_config.json",
        "model_constants_config.json",
        "sample_inputs/model.pt",
        "weight_0",
        "weight_3",
    ],
)
@pytest.mark.parametrize("verify", [False, True])
def test_one_bit(name: str, verify: bool, tmp_path: Path) -> None:
    """One bit in any record that a load reads, from a path or from memory, is an integrity error that names it."""
    data = _damaged(MLP, name)
    path = tmp_path / "damaged.pt2"
    path.write_bytes(data)
    for source in (data, path):
        with pytest.raises(IntegrityError, match=rf"{name}: expected CRC-32 0x") as caught:
            load(source, verify=verify)
        assert caught.value.rule == "A16"


def test_verify(tmp_path: Path) -> None:
    """Mapped weights are compared if that is asked for; those that are read always are; what is whole loads."""
    path = tmp_path / "damaged.pt2"
    save(load(MLP), path)
    assert torch.equal(out(load(path, mmap=True, verify=True)), WANT)
    path.write_bytes(_damaged(path, "weight_1"))
    load(path, mmap=True)
    for mmap in (True, False):
        with pytest.raises(IntegrityError, match="weight_1"):
            load(path, mmap=mmap, verify=mmap)


def _on(kind: str, tree: Any) -> None:
    """Let every device in a tree be another one."""
    if isinstance(tree, dict):
        if set(tree) == {"type", "index"}:
            tree.update(type=kind, index=0)
        for item in tree.values():
            _on(kind, item)
    elif isinstance(tree, list):
        for item in tree:
            _on(kind, item)


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), {"xpu:0": "cpu"}, {"xpu:0": torch.device("cpu")}])
def test_devices(device: Any) -> None:
    """Weights, constants, values and arguments go where the caller says."""
    data = edited(
        sample("constants__decomp"),
        lambda tree: _on("xpu", tree),
        weights=lambda tree: _on("xpu", tree),
        constants=lambda tree: _on("xpu", tree),
    )
    program = load(data, device=device)
    assert "xpu" not in program.graph_module.code
    assert "xpu" not in str([node.meta.get("val") for node in program.graph.nodes])
    assert {str(tensor.device) for tensor in program.constants.values()} == {"cpu"}
    with pytest.raises(UnsupportedError, match=r"device xpu:0: not available here; pass device="):
        load(data)
    with pytest.raises(UnsupportedError, match="expected a device that torch knows, got 'evil'"):
        load(data, device="evil")


def test_threads() -> None:
    """Loads at the same time do not disturb each other."""
    paths = [sample(name) for name in ("dynamic_two_dims", "cond", "mlp", "sym_ops__decomp")] * 2
    for path, found in zip(paths, in_threads(load, paths), strict=True):
        assert differences(found, torch.export.load(path)) == []
    assert gc.isenabled()


def test_collector_stays_as_it_was() -> None:
    """The garbage collector is on after a load if it was on before, also after one that fails."""
    with pytest.raises(ArchiveError, match=r"expected a \.pt2 file, got a text"):
        load(b"no zip")
    assert gc.isenabled()
    gc.disable()
    try:
        load(MLP)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_inside_a_mode() -> None:
    """A fake tensor mode or a default device around the call does not get hold of the weights."""
    with FakeTensorMode():
        program = load(MLP)
    assert torch.equal(out(program), WANT)
    with torch.device("meta"):
        program = load(MLP)
    assert torch.equal(out(program), WANT)


def test_nothing_shared_between_loads() -> None:
    """Two loads of one file have tensors and descriptions of their own."""
    first, second = load(MLP), load(MLP)
    assert first.state_dict["0.weight"].data_ptr() != second.state_dict["0.weight"].data_ptr()
    values = [{id(node.meta["val"]) for node in p.graph.nodes if node.op == "call_function"} for p in (first, second)]
    assert not values[0] & values[1]


def _rename(tree: Any) -> None:
    tree["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = "gone"


def test_missing_weight() -> None:
    """A parameter missing from the weights is refused by name and place."""
    with pytest.raises(GraphError, match=r"signature.input_specs\[0\]: expected a parameter 'gone' among the weights"):
        load(edited(MLP, _rename))


def test_bools() -> None:
    """A byte that is neither true nor false is refused."""
    path = sample("dtypes")

    def widen(tree: Any) -> None:
        for meta in graph(tree)["tensor_values"].values():
            meta["dtype"] = 12 if meta["dtype"] == 1 else meta["dtype"]

    def change(tree: Any) -> None:
        for meta in tree["config"].values():
            if meta["tensor_meta"]["dtype"] == 1:
                meta["tensor_meta"]["dtype"] = 12

    with pytest.raises(PayloadError, match="expected bools stored as 0 or 1, got"):
        load(edited(path, widen, weights=change, constants=change))


def test_the_only_program() -> None:
    """Without `model=` the only program is meant, whatever it is called; of several the error lists them."""
    data = io.BytesIO()
    pt2kit.save({"encoder": load(MLP)}, data)
    assert load(data.getvalue()).graph_module.code == load(MLP).graph_module.code
    assert isinstance(pt2kit.load_module(data.getvalue()), torch.nn.Module)
    assert list(pt2kit.load_weights(data.getvalue())) == list(load(MLP).state_dict)
    pt2kit.save({"encoder": load(MLP), "decoder": load(MLP)}, data := io.BytesIO())
    for loader in (load, pt2kit.load_module, pt2kit.load_weights):
        with pytest.raises(ArchiveError, match=r"expected a program, one of 'encoder', 'decoder', got none;"):
            loader(data.getvalue())
        assert loader(data.getvalue(), model="decoder") is not None
