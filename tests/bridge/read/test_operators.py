"""Targets -> operators: what resolves, what is missing, and what is refused by name and reason."""

from __future__ import annotations

import io
import math
import operator
from typing import Any

import pytest
import torch
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.read.edited import edited, sample

import pt2kit
from pt2kit.bridge.callables import Extension, register_extension, unregister_extension
from pt2kit.bridge.operators import resolve, resolve_all
from pt2kit.bridge.torch_names import SYMBOLIC
from pt2kit.errors import OperatorError
from pt2kit.operators.higher_order import FUNCTIONS
from pt2kit.operators.requirements import ALLOWED, TABLE

FOUND = {
    "torch.ops.aten.add.Tensor": torch.ops.aten.add.Tensor,
    "torch.ops.aten.relu.default": torch.ops.aten.relu.default,
    "torch.ops.aten.__and__.Tensor": torch.ops.aten.__and__.Tensor,
    "torch.ops.corpus.addmul.default": torch.ops.corpus.addmul.default,
    "torch.ops.higher_order.cond": torch.ops.higher_order.cond,
    "_operator.mul": operator.mul,
    "_operator.floordiv": operator.floordiv,
    "math.trunc": math.trunc,
    "builtins.round": round,
    "torch.sym_max": torch.sym_max,
    "torch._sym_sqrt": torch._sym_sqrt,
    "torch._functorch.predispatch._add_batch_dim": torch._functorch.predispatch._add_batch_dim,
}
MISSING = [
    "torch.ops.aten.nosuchop.default",
    "torch.ops.aten.add.nosuchoverload",
    "torch.ops.aten.save.default",  # TorchScript has it, the dispatcher has not
    "torch.ops.nosuchnamespace.op.default",
]
REFUSED = [
    ("", "may not call"),
    ("torch", "may not call"),
    ("torch.os.mkdir", "may not call"),
    ("torch.hub.load", "may not call"),
    ("torch.nn.ReLU", "may not call"),
    ("_operator.__class__.__base__.__subclasses__", "may not call"),
    ("_operator.attrgetter", "may not call"),
    ("builtins.eval", "may not call"),
    ("math.__loader__", "may not call"),
    ("torch.ops.aten.add", "may not call"),
    ("torch.ops.aten.add.Tensor.__globals__", "may not call"),
    ("torch.ops.aten.ad d.Tensor", "may not call"),
    ("torch.ops.aten.from_file.default", "it reads or writes files"),
    ("torch.ops.aten._sparse_coo_tensor_unsafe.default", "it trusts its arguments with memory"),
    ("torch.ops.inductor._reinterpret_tensor.default", "it trusts its arguments with memory"),
    ("torch.ops.c10d.send.default", "it talks to other processes"),
    ("torch.ops.higher_order.aoti_call_delegate", "it runs a compiled library"),
    ("torch.ops.higher_order.flat_apply", "not one of the higher-order operators"),
    ("torch.ops.higher_order.__class__", "not one of the higher-order operators"),
    ("torch._higher_order_ops.triton_kernel_wrap.triton_kernel_wrapper_functional", "the source of its kernel"),
    ("torch.export.custom_ops._call_custom_autograd_function_in_pre_dispatch", "may not call"),
    ("#evil:op", "expected an extension registered under 'evil'"),
]


@pytest.mark.parametrize("text", FOUND)
def test_found(text: str) -> None:
    """The operator is the live object of that name."""
    found = resolve(text)
    assert found is not None
    assert found.target is FOUND[text]
    assert found.text == text


@pytest.mark.parametrize("text", MISSING)
def test_missing(text: str) -> None:
    """A name unknown to the dispatcher gives None, and creates nothing."""
    assert resolve(text) is None
    assert "nosuchnamespace" not in vars(torch.ops)
    assert "nosuchop" not in vars(torch.ops.aten)


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refused(text: str, reason: str) -> None:
    """A name that a file may not call is refused at its place, with the reason."""
    with pytest.raises(OperatorError, match=f"^here: .*{reason}"):
        resolve(text, "here")


def test_all() -> None:
    """Missing ones are collected with their places, the others resolved."""
    found, missing = resolve_all(
        {"torch.ops.aten.relu.default": "a", **dict.fromkeys(MISSING, "b"), "_operator.mul": "c"}
    )
    assert list(found) == ["torch.ops.aten.relu.default", "_operator.mul"]
    assert missing == dict.fromkeys(MISSING, "b")


def test_schema() -> None:
    """Parameters say whether they are keyword-only and required, and which arguments fit."""
    found = resolve("torch.ops.aten.random_.from")
    assert found is not None
    assert list(found.parameters) == ["self", "from", "to", "generator"]
    required = [name for name, parameter in found.parameters.items() if parameter.is_required]
    assert required == ["self", "from", "to"]
    assert found.parameters["generator"].is_keyword_only
    assert found.arms["generator"] == frozenset({"as_none"})
    assert "as_string" not in (found.arms["self"] or ())
    assert found.signature is not None
    assert [result.base for result in found.signature.results] == ["Tensor"]


def test_tables_name_what_is_there() -> None:
    """Every table row is about something that torch or a known library has; none stands in two tables."""
    overloads = set(torch._C._dispatch_get_all_op_names())
    known = overloads | {name.partition(".")[0] for name in overloads}
    elsewhere = ("image.", "torchaudio.", "torchcodec_ns.", "video_reader.", "higher_order.")
    refused = [name for name, row in TABLE.operators.items() if row.is_refused]
    torch_rows = [name.replace(".", "::", 1) for name in refused if not name.startswith(elsewhere)]
    # In some builds or releases only.
    gone = {"aten::_reshape_alias_copy", "aten::set_data", "quantized::embedding_bag_byte_prepack_with_rowwise_min_max"}
    assert [name for name in torch_rows if name not in known and name not in gone] == []
    assert not {f"higher_order.{name}" for name in ALLOWED} & {*refused}
    assert not SYMBOLIC.keys() & FUNCTIONS
    assert {"inductor", "c10d"} <= TABLE.namespaces.keys()


class Special:
    """An operator of the user's own kind."""

    __name__ = "special"

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x


SPECIAL = Special()


def test_extension() -> None:
    """A registered extension resolves its names; one it does not know is an error of ours."""
    names: dict[str, Any] = {"special": SPECIAL}
    register_extension(
        Extension(
            "mine",
            Special,
            lambda _: "special",
            lambda name: names[name],
            lambda _: torch.ops.aten.relu.default._schema,
        )
    )
    try:
        found = resolve("#mine:special")
        assert found is not None
        assert found.target is SPECIAL
        assert list(found.parameters) == ["self"]
        with pytest.raises(OperatorError, match="expected '#mine:other' to name an operator of the extension"):
            resolve("#mine:other", "here")
    finally:
        unregister_extension("mine")


def test_operators_that_export_does_not_write_load() -> None:
    """A region that is quantised, made of one without gradients: torch's own module and ours compute the same."""

    def quantised(tree: Any) -> None:
        node = tree["graph_module"]["graph"]["nodes"][1]
        node["target"] = "torch.ops.higher_order.invoke_quant_packed"
        del node["inputs"][0]  # whether gradients are computed

    data = edited(sample("no_grad_region"), quantised)
    given = torch.ones(2, 4)
    expected = torch.export.load(io.BytesIO(data)).module()(given)
    torch.testing.assert_close(pt2kit.load(io.BytesIO(data)).module()(given), expected, rtol=0, atol=0)
    torch.testing.assert_close(pt2kit.load_module(io.BytesIO(data))(given), expected, rtol=0, atol=0)
