"""Calls become those of a release, or block with the version that brought what it does not have."""

from __future__ import annotations

from typing import Any

import pytest
from tests.versions.programs import golden, node

from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.operator_calls import fit_calls

NONE = {"as_none": True}
X = {"as_tensor": {"name": "x"}}


def call(target: str, **arguments):
    """A node that calls something by names."""
    return node(target, list(arguments.items()), [])


def fitted(called, release: str, version: str = "8.7"):
    """A call as a release takes it, and the notes."""
    tree = golden(version)
    tree["graph_module"]["graph"]["nodes"] = [called]
    log = ConversionLog("x")
    new = fit_calls(tree, version, release, log)
    return new["graph_module"]["graph"]["nodes"][0], log.notes


def names(called) -> list[str]:
    return [named["name"] for named in called["inputs"]]


@pytest.mark.parametrize(
    ("release", "target", "message", "since"),
    [
        ("2.3", "torch.ops.higher_order.scan", "the operator torch.ops.higher_order.scan", "8.2"),
        ("2.2", "torch.ops.higher_order.with_effects", "the operator torch.ops.higher_order.with_effects", "5.3"),
        (
            "2.2",
            "torch._higher_order_ops.effects.with_effects",
            "the operator torch.ops.higher_order.with_effects",
            "5.3",
        ),
        ("2.6", "torch.ops.higher_order.of_tomorrow", "the operator torch.ops.higher_order.of_tomorrow", "8.7"),
        (
            "2.12",
            "torch._functorch.predispatch._add_batch_dim",
            "the operator torch._functorch.predispatch._add_batch_dim",
            "8.20",
        ),
        ("2.7", "math.trunc", "the operator math.trunc", "8.8"),
        ("2.2", "torch.sym_ite", "the operator torch.sym_ite", "5.1"),
        ("2.6", "_operator.and_", "the operator _operator.and_", "8.7"),
        ("2.2", "torch.ops.aten._assert_scalar.default", "the operator torch.ops.aten._assert_scalar.default", "5.1"),
    ],
)
def test_operators_that_came_later_block(release, target, message, since):
    """With and without a schema, by every name that they had; not in the release that brought them."""
    arguments = {"self": X, "assert_msg": {"as_string": "no"}} if "_assert_scalar" in target else {}
    _, notes = fitted(call(target, **arguments), release)
    assert [(note.kind, note.message, note.since) for note in notes] == [("blocked", message, since)]
    assert fitted(call(target, **arguments), "2.15")[1] == ()


def test_defaults_of_other_releases_are_stated():
    """An argument that the release requires, and another one has a default for, is passed."""
    called, notes = fitted(call("torch.ops.aten.sym_constrain_range_for_size.default", size={"as_int": 3}), "2.1")
    assert names(called) == ["size", "min", "max"]
    assert [named["arg"] for named in called["inputs"][1:]] == [NONE, NONE]
    text = "the argument {} of aten.sym_constrain_range_for_size.default is written out"
    assert [(note.kind, note.message) for note in notes] == [("changed", text.format(name)) for name in ("min", "max")]


def test_operators_that_are_gone_block():
    """The message says which release was the last to have them."""
    _, (note,) = fitted(call("torch.ops.aten.qr.default", self=X), "2.14")
    assert note.message == "the operator torch.ops.aten.qr.default, which torch has up to 2.13"
    assert fitted(call("torch.ops.aten.qr.default", self=X), "2.13")[1] == ()


def test_operators_of_libraries_are_left_alone():
    """No table knows them."""
    for target in ("torch.ops.corpus.addmul.default", "_operator.getitem"):
        assert fitted(call(target, symm=X), "2.2")[1] == ()
    assert fitted(call("torch.ops.mkl._mkl_linear.default", X=X), "2.15")[1] == ()


@pytest.mark.parametrize(
    ("target", "argument", "value", "release"),
    [
        ("torch.ops.aten.scaled_dot_product_attention.default", "enable_gqa", {"as_bool": False}, "2.4"),
        ("torch.ops.aten.pad_sequence.default", "padding_side", {"as_string": "right"}, "2.4"),
        ("torch.ops.aten.stft.default", "align_to_window", NONE, "2.6"),
    ],
)
def test_an_argument_that_says_its_default_is_left_out(target, argument, value, release):
    """And one that says something else blocks, with the version that brought it."""
    arguments: dict[str, dict[str, Any]] = {
        "torch.ops.aten.scaled_dot_product_attention.default": {"query": X, "key": X, "value": X},
        "torch.ops.aten.pad_sequence.default": {"sequences": {"as_tensors": []}},
        "torch.ops.aten.stft.default": {"self": X, "n_fft": {"as_int": 4}},
    }
    usual = arguments[target]
    new, (note,) = fitted(call(target, **usual, **{argument: value}), release)
    assert note.kind == "changed"
    assert names(new) == list(usual)
    _, (note,) = fitted(call(target, **usual, **{argument: {"as_int": 7}}), release)
    assert (note.kind, note.message) == ("blocked", f"the argument {argument} of {target.removeprefix('torch.ops.')}")


def test_an_argument_that_is_called_otherwise_gets_its_name():
    """Both ways: the name is all that changed."""
    grads = {"x1": X, "x2": X, "p": {"as_float": 2.0}, "cdist": X}
    old = call("torch.ops.aten._cdist_backward.default", grad=X, **grads)
    new, notes = fitted(old, "2.15")
    assert names(new) == ["grad_output", "x1", "x2", "p", "cdist"]
    assert [note.kind for note in notes] == ["changed"]
    back, _ = fitted(new, "2.13")
    assert names(back) == names(old)


def test_another_number_of_results_blocks():
    """The call would give something else."""
    called = call("torch.ops.aten._scaled_mm.default", self=X, mat2=X, scale_a=X, scale_b=X, out_dtype=NONE)
    _, (note,) = fitted({**called, "outputs": [X]}, "2.4")
    assert note.message == "1 result of aten._scaled_mm.default, which has 2 in torch 2.4"


def test_what_only_asserts_may_assert_less():
    """The device that an assertion compares is known to the program anyway; it is lost by name."""
    called = call("torch.ops.aten._assert_tensor_metadata.default", a=X, dtype=NONE, device={"as_device": {}})
    new, (note,) = fitted(called, "2.5")
    assert names(new) == ["a", "dtype"]
    assert (note.kind, note.name) == ("lost", "assertions")


def test_a_call_that_fits_shares_its_tree():
    """Nothing is copied where nothing changes."""
    tree = golden("8.20")
    assert fit_calls(tree, "8.20", "2.15", ConversionLog("x")) is tree


@pytest.mark.parametrize(
    ("release", "kept"),
    [("2.2", {"topk", "qr"}), ("2.3", set()), ("2.14", set()), ("2.15", {"topk"})],
)
def test_result_tuples_of_operators(release, kept):
    """They become plain tuples for releases that do not have them as containers."""
    for name in ("topk", "qr"):
        tree = golden("8.20")
        entry = next(one for one in tree["graph_module"]["module_call_graph"] if one["signature"])
        entry["signature"]["out_spec"] = (
            f'[1, {{"type": "torch.return_types.{name}", "context": "null", "children": []}}]'
        )
        log = ConversionLog("x")
        new = fit_calls(tree, "8.20", release, log)
        calls = [one["signature"] for one in new["graph_module"]["module_call_graph"]]
        text = next(one["out_spec"] for one in calls if one)
        assert (name in text) == (name in kept)
        assert ("builtins.tuple" in text) == (name not in kept)
        assert sum("became a tuple" in note.message for note in log.notes) == (name not in kept)
