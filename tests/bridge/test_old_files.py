"""Files that torch 2.1 to 2.8 wrote, loaded as live programs: they run, and give what their own release gave."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import samples
from tests.bridge import recorded
from tests.bridge.read import corpus_types as corpus_types
from tests.packages import bytes_of, edited, rewritten
from tests.pickles import pickle_forge as forge

import pt2kit
from pt2kit.bridge.load import load
from pt2kit.bridge.torch_names import child_specs
from pt2kit.errors import UnsupportedError

pytestmark = pytest.mark.usefixtures("quiet")

OLD = [path for path in samples.corpus() if path.parent.name not in samples.CURRENT_LAYOUT]
SPECIALISED = {"2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1"}
"""The releases whose exporter replaced max and min of two sizes (in `sym_ops`) by the one that the example had."""


@pytest.mark.parametrize("path", OLD, ids=samples.release_id)
def test_outputs_are_those_of_the_release(path: Path) -> None:
    """Every comparable file reproduces the outputs that the release that wrote it had, at all recorded sizes."""
    assert recorded.has_outputs(path)
    found = recorded.difference_unless_own(lambda: load(path), path)
    if path.stem == "sym_ops" and path.parent.name in SPECIALISED:
        assert found.startswith("case 1: result 1: ")
    else:
        assert found == ""


@pytest.mark.parametrize("path", OLD, ids=samples.release_id)
def test_live_programs_can_be_saved_today(path: Path) -> None:
    """A loaded old program is one of today: saved and loaded again, its graph is the same code."""
    program = load(path)
    again = pt2kit.deserialize(pt2kit.serialize(program))
    assert again.graph_module.code == program.graph_module.code
    assert {name: value.shape for name, value in again.state_dict.items()} == {
        name: value.shape for name, value in program.state_dict.items()
    }


@pytest.mark.parametrize("release", ["2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0"])
def test_example_inputs(release: str) -> None:
    """From 2.4 on files hold the inputs of the export, and the program runs on them."""
    program = load(samples.sample(release, "kwargs_and_nested_inputs"))
    args, kwargs = program.example_inputs
    assert program.module()(*args, **kwargs) is not None


@pytest.mark.parametrize("release", ["2.1.2", "2.2.2", "2.3.1"])
def test_named_tuples_by_class_name(release: str) -> None:
    """Before 2.4 a file has the class name alone: the class registered under another name is found by it."""
    program = load(samples.sample(release, "namedtuple_io"))
    positional, _ = child_specs(program.call_spec.in_spec)
    assert child_specs(positional)[0].context is corpus_types.NT


def test_state_of_old_files() -> None:
    """Parameters are parameters, tied ones are one object in memory, sparse buffers are sparse."""
    program = load(samples.sample("2.2.2", "shared_weights"))
    state = program.state_dict
    assert isinstance(state["emb.weight"], torch.nn.Parameter)
    assert state["emb.weight"].data_ptr() == state["out.weight"].data_ptr()
    sparse = load(samples.sample("2.6.0", "sparse_buffer"))
    [buffer] = sparse.state_dict.values()
    assert buffer.layout is torch.sparse_coo


def test_devices_of_a_container(tmp_path: Path) -> None:
    """The device map of an 8.6 container is applied, unless the caller says where things go."""
    with pt2kit.open(samples.sample("2.7.1", "sym_arith_simple")) as package:
        text = str(package.archive.read("serialized_exported_program.json"), "utf-8")
    text = text.replace('"type": "cpu", "index": null', '"type": "cuda", "index": 0')
    model = {
        "name": "m",
        "tensorPaths": {},
        "program": {"methods": {"forward": json.loads(text)}},
        "delegates": {},
        "deviceAllocationMap": {"cuda:0": "cpu"},
        "constantPaths": {},
    }
    path = tmp_path / "m.json"
    path.write_text(json.dumps(model))
    moved = load(path)
    kinds = {
        node.meta["val"].device.type for node in moved.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor)
    }
    assert kinds == {"cpu"}
    stay = load(path, device={})
    kinds = {
        node.meta["val"].device.type for node in stay.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor)
    }
    assert "cuda" in kinds


@pytest.mark.parametrize(
    ("release", "record"), [("2.7.1", "serialized_constants.pt"), ("2.8.0", "data/constants/model.pt")]
)
@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning", "ignore:TypedStorage:UserWarning")
def test_script_objects_need_trust(release: str, record: str) -> None:
    """A script object among old constants is refused by its name, and rebuilt for who trusts it."""
    weight = torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 0, torch.qint8)
    file = bytes_of(torch.save, {"odd": torch.ops.quantized.linear_prepack(weight, None), "t": torch.ones(2)})
    data = rewritten(samples.sample(release, "mlp"), {record: file})
    with pytest.raises(UnsupportedError, match=r"'odd': .*torch\.ScriptObject"):
        load(data)
    constants = load(data, trust=["torch.ScriptObject"]).constants
    assert isinstance(constants["odd"], torch.ScriptObject)
    assert constants["t"].tolist() == [1, 1]


def test_constants_that_call_something() -> None:
    """Calls in a constant are never made, whatever else is in the file."""
    value = {"odd": forge.Call("io.open", ("marker", "w"))}
    data = rewritten(samples.sample("2.7.1", "mlp"), {"serialized_constants.pt": forge.payload(forge.stream(value))})
    with pytest.raises(UnsupportedError, match=r"io\.open"):
        load(data)
    assert not Path("marker").exists()


def test_buffers_named_by_the_source_of_a_module(tmp_path: Path) -> None:
    """Torch 2.1 and 2.3 named scales of quantized `Sequential`s so: `check` finds nothing, and any reader runs it."""
    holder, model = torch.nn.Module(), torch.nn.Module()
    holder.register_buffer("blocks, '0')_scale_0", torch.arange(3.0))
    model.add_module("getattr(L['self']", holder)
    model.forward = lambda x: x * holder.get_buffer("blocks, '0')_scale_0")
    x, path = torch.randn(2, 3), tmp_path / "scales.pt2"
    torch.export.save(torch.export.export(model, (x,)), path)
    assert pt2kit.check(path).ok
    for found in (load(path).module()(x), pt2kit.load_module(path)(x), torch.export.load(path).module()(x)):
        assert torch.equal(found, x * torch.arange(3.0))
    assert torch.equal(torch.from_numpy(pt2kit.Session(path)(x.numpy())), x * torch.arange(3.0))


@pytest.mark.parametrize(("dim", "reverse"), [(1, True), (1, False), (0, True)])
def test_scans_of_2_6(dim: int, reverse: bool) -> None:
    """torch 2.6 stores the dimension and direction of a scan, and stacks along the first one; results are today's."""
    from torch._higher_order_ops.scan import scan

    def scanned(xs: torch.Tensor, **options: Any) -> list[torch.Tensor]:
        return list(scan(lambda carry, x: (carry + x, carry * x), torch.ones(3), xs, **options))

    class Forwards(torch.nn.Module):
        def forward(self, xs: torch.Tensor) -> list[torch.Tensor]:
            return scanned(xs)

    xs, newest, oldest = torch.randn(3, 3), io.BytesIO(), io.BytesIO()
    torch.export.save(torch.export.export(Forwards(), (xs,), strict=True), newest)
    pt2kit.convert(newest, oldest, target="torch==2.6")

    def other_way(tree: Any) -> None:
        [node] = [one for one in tree["graph_module"]["graph"]["nodes"] if one["target"].endswith(".scan")]
        node["inputs"][3]["arg"], node["inputs"][4]["arg"] = {"as_int": dim}, {"as_bool": reverse}

    data = edited(oldest.getvalue(), other_way, "serialized_exported_program.json")
    wanted = scanned(xs.movedim(dim, 0), reverse=reverse)
    torch.testing.assert_close(list(load(io.BytesIO(data)).module()(xs)), wanted)
    torch.testing.assert_close(list(pt2kit.load_module(io.BytesIO(data))(xs)), wanted)
    torch.testing.assert_close([torch.from_numpy(one) for one in pt2kit.Session(data)(xs.numpy())], wanted)
    pt2kit.convert(data, newest := io.BytesIO(), target="torch==2.13")
    torch.testing.assert_close(list(torch.export.load(io.BytesIO(newest.getvalue())).module()(xs)), wanted)
