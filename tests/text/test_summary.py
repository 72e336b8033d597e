"""A package at a glance, as data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests import samples
from tests.packages import edited, rewritten

import pt2kit
from pt2kit import codec
from pt2kit.errors import Pt2Error
from pt2kit.package import record_names as names
from pt2kit.package.layouts.detection import detect
from pt2kit.package.open import Package
from pt2kit.text.summary import ModelSummary, Summary, Symbol, summarize, summarize_model
from pt2kit.zip.reader import open_archive

MLP = samples.sample("2.13.0", "mlp")


def _summary(data: Any) -> Summary:
    with pt2kit.open(data) as package:
        return summarize(package)


def _model(data: Any, model: str = "model") -> ModelSummary:
    with pt2kit.open(data) as package:
        return summarize_model(package, model)


@pytest.mark.parametrize("path", samples.corpus(*samples.CURRENT_LAYOUT), ids=samples.release_id)
def test_real_files(path) -> None:
    """Every sample file is summarised without a problem, and the summary is JSON."""
    summary = _summary(path)
    assert summary.producer.startswith(f"torch {path.parent.name}")
    assert summary.bytes == path.stat().st_size
    for model in summary.models:
        assert model.problems == ()
        assert model.unknown == ()
        assert model.call is not None
        assert model.nodes == sum(count for counts in model.operators.values() for count in counts.values())
    tree = json.loads(codec.encode_indented(summary))
    assert tree["models"][0]["name"] == summary.models[0].name
    assert set(tree) == set(Summary.__dataclass_fields__)


def test_operators() -> None:
    """Operators are counted by namespace, the most frequent first; those that torch does not bring are marked."""
    model = _model(samples.sample("2.13.0", "custom_op"))
    assert model.operators == {
        "corpus": {"torch.ops.corpus.addmul.default": 3},
        "aten": {"torch.ops.aten.linear.default": 1},
    }
    assert model.custom_namespaces == ("corpus",)


def test_dynamic_sizes() -> None:
    """Symbols come by the names that types use, with their ranges; no end means none."""
    assert _model(samples.sample("2.13.0", "dynamic_batch")).symbols == (Symbol("s77", 2, 64),)
    unbounded = edited(
        samples.sample("2.13.0", "dynamic_batch"),
        lambda tree: tree["range_constraints"]["s77"].update(max_val=None),
    )
    assert _model(unbounded).symbols == (Symbol("s77", 2, None),)


def test_mutations_and_gradients() -> None:
    """Changes by a call are listed as the signature states them, apart from in-place operators."""
    assert _model(samples.sample("2.13.0", "batchnorm_train__decomp")).mutations == (
        "buffer bn.running_mean",
        "buffer bn.running_var",
        "buffer bn.num_batches_tracked",
    )
    assert _model(samples.sample("2.13.0", "input_mutation__decomp")).mutations == ("input x",)
    assert _model(samples.sample("2.13.0", "training_loss_joint")).gradients == (
        "parameter l.weight",
        "parameter l.bias",
    )
    in_place = _model(samples.sample("2.13.0", "buffer_mutation"))
    assert in_place.mutations == ()
    assert in_place.in_place == {
        "torch.ops.aten.add_.Tensor": 2,
        "torch.ops.aten.copy_.default": 1,
        "torch.ops.aten.mul_.Tensor": 1,
    }


def test_buffers_that_are_not_persistent() -> None:
    """They are buffers, although the file keeps them among the constants."""
    model = _model(samples.sample("2.13.0", "nonpersistent_buffer"))
    assert (model.buffers.total.tensors, model.constants.total.tensors) == (2, 0)
    assert model.lifted == ("np_: f32[4] (buffer, not persistent)",)


def test_extra_files_and_compiled_code() -> None:
    """Files next to the programs are listed with their sizes, compiled code by its model."""
    extra = {names.extra("a\x1b.txt"): b"12345", names.aotinductor("m", "x.so"): b"", names.aotinductor("m", "y"): b""}
    summary = _summary(rewritten(MLP, extra))
    assert summary.extra_files == {"a\x1b.txt": 5}
    assert summary.compiled == ("m",)
    assert [finding.rule for finding in summary.safety] == ["X1", "X8"]


def test_compiled_code_alone() -> None:
    """A package without a program has a summary too."""
    summary = _summary(rewritten(MLP, {names.model_json("model"): None, names.aotinductor("m", "x.so"): b"1"}))
    assert (summary.models, summary.producer) == ((), "torch 2.9 and later")


def _root(tree: Any) -> Any:
    return tree["graph_module"]["module_call_graph"][0]["signature"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(
            lambda: edited(MLP, lambda tree: _root(tree).update(in_spec="x")), "in_spec: expected JSON", id="call"
        ),
        pytest.param(lambda: rewritten(MLP, {names.weight(0): None}), "weight_0", id="missing weight"),
        pytest.param(lambda: rewritten(MLP, {names.constants_config("model"): b"["}), "constants_config", id="config"),
    ],
)
def test_lesser_trouble(data, text: str) -> None:
    """Everything but the broken part is shown; the problem is listed."""
    model = _model(data())
    [problem] = model.problems
    assert text in problem
    assert model.nodes == 3


def test_unreadable_programs() -> None:
    """A program that cannot be read is an error."""
    with pytest.raises(Pt2Error, match=r"\$: expected the key graph_module, got none \[J5\]"):
        _summary(rewritten(MLP, {names.model_json("model"): b"{}"}))


def test_unknown_keys() -> None:
    """Keys that this build does not know are listed by place."""
    assert _model(edited(MLP, lambda tree: tree.update(novelty=1))).unknown == ("models/model.json: $.novelty",)


def test_file_names_are_escaped() -> None:
    """A file name that does not print, or is not Unicode, can be printed and is JSON."""
    with open_archive(MLP.read_bytes(), name="a\x1b\udcff.pt2") as archive:
        summary = summarize(Package(detect(archive)))
    assert summary.file == "a\\x1b\\udcff.pt2"
    assert b"udcff" in codec.encode_indented(summary)
