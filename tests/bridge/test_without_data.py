"""Weights without data, fake ones and those on the meta device: through save, load, check, sanitize and convert."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import samples
from tests.bridge.read.edited import edited, sample
from tests.bridge.zoo.programs_state import fake_weights, meta_weights
from tests.packages import bytes_of, rewritten
from tests.pickles import pickle_forge as forge
from torch import nn
from torch.export import ExportedProgram

import pt2kit
from pt2kit import codec, schema
from pt2kit.errors import ConversionError, PayloadError
from pt2kit.tensors.pickled import FAKE_TENSOR

MADE = {"fake": (fake_weights, "P9"), "meta": (meta_weights, "P6")}


def saved(program: ExportedProgram, save: Any = pt2kit.save) -> bytes:
    """The file of a program."""
    return bytes_of(save, program)


def filled(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Numbers for every weight of a program."""
    torch.manual_seed(0)
    return {name: torch.rand(tuple(value.shape)) for name, value in program.state_dict.items()}


def warnings_of(data: bytes, caplog: pytest.LogCaptureFixture) -> tuple[ExportedProgram, list[str]]:
    """The program, and what loading it logs of weights."""
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        program = pt2kit.load(data)
    return program, [text for text in caplog.messages if "without data" in text]


@pytest.mark.parametrize("save", [pt2kit.save, torch.export.save], ids=["pt2kit", "torch"])
def test_fake_weights(save: Any, caplog: pytest.LogCaptureFixture) -> None:
    """They load on the meta device with one warning that names all of them; filled, the program computes."""
    program, said = warnings_of(saved(fake_weights(), save), caplog)
    assert {value.device.type for value in program.state_dict.values()} == {"meta"}
    assert len(said) == 1
    assert all(name in said[0] for name in program.state_dict)
    assert "load_state_dict(..., assign=True)" in said[0]
    numbers = filled(program)
    module = program.module()
    module.load_state_dict(numbers, assign=True)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2, bias=False))
    model.load_state_dict(numbers)
    x = torch.randn(2, 3)
    assert torch.equal(module(x), model(x))


def test_meta_weights(caplog: pytest.LogCaptureFixture) -> None:
    """They never had data: nothing is warned of."""
    program, said = warnings_of(saved(meta_weights()), caplog)
    assert said == []
    assert {value.device.type for value in program.state_dict.values()} == {"meta"}


@pytest.mark.parametrize("name", MADE)
def test_check(name: str) -> None:
    """`check` notes each of them, and finds nothing wrong: sample inputs that are fake tensors are data, too."""
    make, rule = MADE[name]
    program = make()
    report = pt2kit.check(saved(program))
    assert [problem for problem in report if problem.kind != "note"] == []
    notes = [problem for problem in report if problem.rule == rule]
    assert {problem.kind for problem in notes} == {"note"}
    assert all(any(name in problem.message for problem in notes) for name in program.state_dict)


@pytest.mark.parametrize("name", MADE)
def test_again(name: str) -> None:
    """Loaded and sanitized programs are saved and loaded again, and have the same meaning."""
    data = saved(MADE[name][0]())
    again = saved(pt2kit.load(data))
    assert list(pt2kit.load(again).state_dict) == list(pt2kit.load(data).state_dict)
    cleaned = bytes_of(pt2kit.sanitize, data)
    assert {value.device.type for value in pt2kit.load(cleaned).state_dict.values()} == {"meta"}


@pytest.mark.parametrize("release", ["2.1.2", "2.8.0"])
def test_fake_weights_of_older_releases(release: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Up to 2.8 the state dict is a pickle that describes each of them."""
    original = pt2kit.open(samples.sample(release, "mlp"))
    described = {
        name: forge.Call(FAKE_TENSOR, (forge.Call("_codecs.encode", (meta_of(view), "latin1")), True))
        for name, view in original.weights().items()
    }
    content = forge.payload(forge.stream(described))
    record = original.relative(str(original.layout.parts(original.choose(None)).weights))
    file, newer = rewritten(samples.sample(release, "mlp"), {record: content}), tmp_path / "newer.pt2"
    assert [problem for problem in pt2kit.check(file) if problem.kind == "error"] == []
    program, said = warnings_of(file, caplog)
    assert {value.device.type for value in program.state_dict.values()} == {"meta"}
    assert len(said) == 1
    pt2kit.convert(file, newer, target="torch==2.13")
    assert pt2kit.digest(newer).weights == pt2kit.digest(file).weights


def meta_of(view: Any) -> str:
    """The JSON that torch describes a fake tensor by."""
    meta = schema.TensorMeta(
        dtype=view.dtype,
        sizes=[schema.SymInt(as_int=size) for size in view.sizes],
        requires_grad=view.requires_grad,
        device=schema.Device("cpu"),
        strides=[schema.SymInt(as_int=stride) for stride in view.strides],
        storage_offset=schema.SymInt(as_int=0),
        layout=schema.Layout.Strided,
    )
    return codec.encode(meta).decode()


def test_mixed(caplog: pytest.LogCaptureFixture) -> None:
    """A program some of whose weights have data is saved so that the others load on the meta device."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    program = torch.export.export(model, (torch.randn(2, 3),))
    with torch._subclasses.fake_tensor.FakeTensorMode():
        program._state_dict["1.weight"] = nn.Parameter(torch.empty(2, 4))
    loaded, _ = warnings_of(saved(program), caplog)
    assert loaded.state_dict["1.weight"].is_meta
    assert torch.equal(loaded.state_dict["0.weight"], model[0].weight)


def test_mixed_as_torch_saves_it() -> None:
    """torch writes a fake weight among real ones as a truncated one would look: refused, saying what to do."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    program = torch.export.export(model, (torch.randn(2, 3),))
    with torch._subclasses.fake_tensor.FakeTensorMode():
        program._state_dict["1.weight"] = nn.Parameter(torch.empty(2, 4))
    with pytest.raises(
        PayloadError, match=r"'1\.weight': expected 32 bytes, .* is saved by pt2kit\.save, which marks it"
    ):
        pt2kit.load(saved(program, torch.export.save))


def test_damage(tmp_path: Path) -> None:
    """One empty record among weights with data is damage, not a weight without data; a short record is, too."""
    for content in (b"", bytes(8)):
        data = edited(sample("mlp"), records={"data/weights/weight_1": content})
        with pytest.raises(PayloadError, match=r"expected .* bytes|byte") as caught:
            pt2kit.load(data)
        assert caught.value.rule == "P9"
        assert [problem.rule for problem in pt2kit.check(data).errors] == ["P9"]
    program = tmp_path / "fake.pt2"
    program.write_bytes(saved(fake_weights()))
    with pytest.raises(PayloadError, match=r"device: expected one that holds data, got meta"):
        pt2kit.load(edited(program, weights=_to_meta, records={"data/weights/weight_0": bytes(48)}))


def _to_meta(tree: Any) -> None:
    for payload in tree["config"].values():
        payload["tensor_meta"]["device"] = {"type": "meta", "index": None}


@pytest.mark.parametrize("target", ["2.8", "2.5", "2.1"])
def test_older_layouts_keep_those_of_the_meta_device(target: str) -> None:
    """torch.save has a form for them."""
    data, written = saved(meta_weights()), io.BytesIO()
    pt2kit.convert(data, written, target=f"torch=={target}")
    assert pt2kit.digest(written.getvalue()).weights == pt2kit.digest(data).weights
    assert {value.device.type for value in pt2kit.load(written.getvalue()).state_dict.values()} == {"meta"}


@pytest.mark.parametrize("target", ["2.8", "2.5", "2.1"])
def test_older_layouts_have_no_form_for_fake_ones(target: str) -> None:
    """Converting to one is refused once, for all of them, with what to do; filled, they go over."""
    program = fake_weights()
    data, written = saved(program), io.BytesIO()
    with pytest.raises(ConversionError, match=r"a tensor without data, for which files of torch 2\.8") as caught:
        pt2kit.convert(data, written, target=f"torch=={target}")
    [line] = str(caught.value).splitlines()[1:]
    first, *others = program.state_dict
    assert f"models/model.json: {first!r} and {len(others)} more" in line
    assert "pt2 weights FILE --from NUMBERS" in line
    assert not written.getvalue()
    with pt2kit.edit(data) as editor:
        editor.load_weights({weight: value.numpy() for weight, value in filled(program).items()})
    pt2kit.convert(editor.result, written, target=f"torch=={target}")
    assert set(pt2kit.open(written.getvalue()).weights()) == set(program.state_dict)
