"""Parts of a model, and weights from elsewhere: what `load_module` gives of them."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tests.narrow import instance
from tests.packages import bytes_of
from tests.samples import release_id, sample
from torch import nn

import pt2kit
from pt2kit.bridge.stored import leave_out
from pt2kit.errors import OperatorError, PayloadError, UnsupportedError
from pt2kit.tensors import MetaView, TensorView

MLP = sample("2.13.0", "mlp")
SHARED = sample("2.13.0", "shared_weights")


def model_and_file() -> tuple[nn.Module, bytes]:
    """A model of two layers, exported and saved with other weights."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    file = bytes_of(torch.export.save, torch.export.export(model, (torch.randn(2, 3),)))
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model, file


@pytest.mark.parametrize("how", ["live", "file"])
def test_weights_from_elsewhere(how: str, tmp_path: Path) -> None:
    """The module computes with those that are given: live ones are shared, a file is read."""
    model, file = model_and_file()
    given: Any = model.state_dict()
    if how == "file":
        save_file(given, tmp_path / "w.safetensors")
        given = tmp_path / "w.safetensors"
    module = pt2kit.load_module(file, weights=given)
    x = torch.randn(2, 3)
    assert torch.equal(module(x), model(x))
    assert [type(value) for value in module.parameters()] == [nn.Parameter] * 4
    if how == "live":
        assert module.get_parameter("0.weight").data_ptr() == model[0].weight.data_ptr()


@pytest.mark.parametrize(
    ("change", "text", "rule"),
    [
        (lambda given: given.pop("0.weight"), r"weights: expected the names .* nothing for \['0\.weight'\]", "P19"),
        (lambda given: given.update(other=torch.zeros(1)), r"got \['other'\] besides them", "P19"),
        (
            lambda given: given.update({"0.bias": torch.zeros(4).half()}),
            r"'0\.bias': expected float32 \[4\], .* got float16 \[4\]",
            "P14",
        ),
        (
            lambda given: given.update({"0.bias": torch.zeros(3)}),
            r"'0\.bias': expected float32 \[4\], .* got float32 \[3\]",
            "P14",
        ),
    ],
)
def test_weights_that_do_not_fit(change: Any, text: str, rule: str) -> None:
    """Names, types and shapes are held against the file's."""
    model, file = model_and_file()
    given = dict(model.state_dict())
    change(given)
    with pytest.raises(PayloadError, match=text) as caught:
        pt2kit.load_module(file, weights=given)
    assert caught.value.rule == rule


def test_a_part_of_the_weights() -> None:
    """Weights not included are on the meta device under their names; once filled, the module runs."""
    _, file = model_and_file()
    whole = pt2kit.load_module(file)
    part = pt2kit.load_module(file, include=lambda name: name.startswith("0."))
    assert {name for name, value in part.named_parameters() if value.is_meta} == {"2.weight", "2.bias"}
    assert torch.equal(part.get_parameter("0.weight"), whole.get_parameter("0.weight"))
    for name, value in part.named_parameters():
        wanted = whole.get_parameter(name)
        assert (value.shape, value.dtype, value.requires_grad) == (wanted.shape, wanted.dtype, wanted.requires_grad)
    x = torch.randn(2, 3)
    with pytest.raises(OperatorError, match=r"(?s)meta device.*in the node (linear_1|nodes\[2\])"):
        part(x)
    part.load_state_dict({**part.state_dict(), **pt2kit.load_weights(file, ["2.weight", "2.bias"])}, assign=True)
    assert torch.equal(part(x), whole(x))
    assert list(part.state_dict()) == list(whole.state_dict())


def test_a_part_of_weights_from_elsewhere() -> None:
    """Only what is included is taken from what is given; what is left out may be given or not."""
    model, file = model_and_file()
    given = dict(model.state_dict())
    for source in (given, {name: value for name, value in given.items() if name.startswith("0.")}):
        module = pt2kit.load_module(file, weights=source, include=lambda name: name.startswith("0."))
        assert torch.equal(module.get_parameter("0.weight"), model[0].weight)
        assert module.get_parameter("2.weight").is_meta


def test_ties_of_what_is_left_out() -> None:
    """A weight that shares memory with one that is included comes with it; where none is, they share nothing's."""
    whole = pt2kit.load_module(SHARED)
    part = pt2kit.load_module(SHARED, include=lambda name: name == "emb.weight")
    assert part.get_parameter("out.weight") is part.get_parameter("emb.weight") or (
        part.get_parameter("out.weight").data_ptr() == part.get_parameter("emb.weight").data_ptr()
    )
    assert any(value.is_meta for value in part.state_dict().values())
    none = pt2kit.load_module(SHARED, include=lambda name: False)
    for one, two in (("emb.weight", "out.weight"), ("base", "tail")):
        same = [
            module.state_dict()[one].untyped_storage()._cdata == module.state_dict()[two].untyped_storage()._cdata
            for module in (whole, none)
        ]
        assert same == [True, True], (one, two)


@pytest.mark.parametrize("path", [MLP, SHARED, sample("2.13.0", "strided_weights")], ids=release_id)
def test_nothing_is_read_of_what_is_left_out(path: Path) -> None:
    """Names and order stay, and no record of weights is asked for."""
    with pt2kit.open(path) as package:
        views = leave_out(package.weights(), lambda name: False)
        assert list(views) == list(package.weights())
        for name, view in package.weights().items():
            left_out = instance(MetaView, views[name])
            assert left_out.sizes == instance(TensorView, view).sizes
            assert left_out.strides == instance(TensorView, view).strides


def test_devices_by_map() -> None:
    """A table of devices, as in `load`: what lay on one goes to another, and the program runs there."""
    file = io.BytesIO()
    model = nn.Linear(3, 2)
    pt2kit.save(torch.export.export(model, (torch.randn(2, 3),)), file)
    module = pt2kit.load_module(file.getvalue(), device={"cpu": "meta"})
    assert {value.device.type for value in module.state_dict().values()} == {"meta"}
    assert module(torch.ones(2, 3, device="meta")).shape == (2, 2)
    with pytest.raises(UnsupportedError, match="expected a device that torch knows, got 'no such one'"):
        pt2kit.load_module(file.getvalue(), device={"cpu": "no such one"})


def test_what_is_imported(tmp_path: Path) -> None:
    """A program is loaded and called without sympy and without torch's compiler and serializer, which take seconds."""

    class Regions(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                y = x * 2
            with torch.autocast("cpu", dtype=torch.bfloat16):
                z = x @ x.T
            return y.sum() + z.float().sum()

    batch = torch.export.Dim("batch", min=2, max=8)
    program = torch.export.export(Regions(), (torch.ones(4, 3),), dynamic_shapes={"x": {0: batch}}).run_decompositions(
        {}
    )
    torch.export.save(program, tmp_path / "a.pt2")
    script = (
        "import sys, torch; before = set(sys.modules); import pt2kit; "
        "module = pt2kit.load_module(sys.argv[1]); module(torch.ones(5, 3)); "
        "late = [n for n in ('sympy', 'torch._dynamo', 'torch._export.serde.serialize') if n in sys.modules]; "
        "print([n for n in late if n not in before])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.pt2")], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"


class Bag(nn.Module):
    """Sums of pieces of a list that begin at offsets, which a kernel trusts."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, 2, 4]))
        self.register_buffer("indices", torch.tensor([0, 1, 2, 0]))

    def forward(self, table: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding_bag(self.indices, table, self.offsets, mode="sum")


def test_numbers_of_the_file_are_looked_at_whatever_is_included() -> None:
    """Offsets of the file that lead out of memory are refused unless the caller's take their place."""
    program = torch.export.export(Bag(), (torch.ones(3, 4),))
    sound = {name: value.clone() for name, value in program.state_dict.items()}
    program.state_dict["offsets"] = torch.tensor([0, 1 << 40, 4])
    file = io.BytesIO()
    torch.export.save(program, file)
    for options in ({}, {"include": lambda name: True}, {"include": lambda name: False}):
        file.seek(0)
        with pytest.raises(OperatorError, match="offsets: expected offsets that do not fall"):
            pt2kit.load_module(file, **options)  # type: ignore[arg-type]
    file.seek(0)
    module = pt2kit.load_module(file, weights=sound)
    assert torch.equal(module(torch.ones(3, 4)), Bag()(torch.ones(3, 4)))
