"""The way out of every refusal: the entry of `trust=` that an error names lets the file pass."""

from __future__ import annotations

import ast
import io
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from tests.bridge.read import test_module_inputs, test_payloads
from tests.bridge.read.edited import edited
from tests.bridge.read.test_kernels import with_stored_indices
from tests.checks import mutations, test_mutations
from tests.checks.test_unchecked import wrong_padding
from tests.packages import bytes_of

import pt2kit
from pt2kit.bridge.read.reading import operator_entry, trusted
from pt2kit.bridge.torch_names import find_higher_order
from pt2kit.errors import Pt2Error


class Doubled(torch.nn.Module):
    """A module with one call, before which the cases put another."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu()


def base() -> bytes:
    """The file that the cases change."""
    return bytes_of(torch.export.save, torch.export.export(Doubled(), (torch.ones(2, 3),)))


def before(target: str, inputs: list[tuple[str, Any]], *, gives: bool = True) -> Callable[[Any], None]:
    """A change: one more call, whose result nobody uses."""

    def change(tree: Any) -> None:
        graph = tree["graph_module"]["graph"]
        if gives:
            graph["tensor_values"]["extra"] = graph["tensor_values"]["relu"]
        named = [{"name": name, "arg": argument, "kind": 1} for name, argument in inputs]
        outputs = [{"as_tensor": {"name": "extra"}} if gives else {"as_none": True}]
        node = {"target": target, "inputs": named, "outputs": outputs, "metadata": {}, "name": "extra"}
        graph["nodes"].insert(0, node)

    return change


def opaque(tree: Any) -> None:
    """A change: one more call, for a tensor in MKL-DNN's layout."""
    sizes = ("size", {"as_ints": [2, 3]})
    before("torch.ops.aten.zeros.default", [sizes, ("layout", {"as_layout": 6})])(tree)
    tree["graph_module"]["graph"]["nodes"][0]["inputs"][1]["kind"] = 2


def guards(text: str) -> Callable[[Any], None]:
    """A change: one guard."""
    return lambda tree: tree.update(guards_code=[text])


X = ("x", {"as_tensor": {"name": "x"}})
SELF, SOURCE = ("self", X[1]), ("source", X[1])
CASES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "operator": ("X10", before("torch.ops.aten.set_.source_Tensor", [SELF, SOURCE])),
    "namespace": ("X10", before("torch.ops.inductor.accumulate_grad_.default", [], gives=False)),
    "higher-order": ("X10", before("torch.ops.higher_order.trace_wrapped", [])),
    "layout": ("X10", opaque),
    "spelled by its module": ("X10", before("torch._higher_order_ops.triton_kernel_wrap.trace_wrapped", [])),
    "function": ("X7", before("math.sqrt", [("", {"as_int": 4})])),
    "format": ("X12", before("torch.ops.higher_order.print", [("", {"as_string": "{x.y}"})], gives=False)),
    "format spelled otherwise": (
        "X12",
        before("torch._higher_order_ops.triton_kernel_wrap.print", [("", {"as_string": "{:999999999}"})], gives=False),
    ),
    "region": ("X14", before("torch._C._set_grad_enabled", [("", {"as_bool": False})], gives=False)),
    "guard": ("", guards("__import__('os')")),
    "deep guard": ("X4", guards("(" * 160 + "1" + ")" * 160 + " == 1")),
}


def _edited(change: Callable[[Any], None]) -> bytes:
    return edited(io.BytesIO(base()), change)


FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "too much memory": ("T9", lambda: mutations.program(mutations.MLP, test_mutations.created).data),
    "an object that takes code": ("P15", lambda: test_payloads.with_constant(test_payloads.OPAQUE, "opaque_obj_0")),
    "a module among the inputs": ("", test_module_inputs.file),
    "an unchecked kernel": ("X10", lambda: wrong_padding().data),
    "numbers of the file": ("X10", lambda: with_stored_indices((0, 99)).data),
    **{name: (rule, partial(_edited, change)) for name, (rule, change) in CASES.items()},
}
"""A file for each row of the table in docs/security.md."""


def named_entries(error: Pt2Error) -> tuple[str, ...]:
    """Return the entries that an error names."""
    text = str(error).partition("pass trust=")[2]
    return tuple(ast.literal_eval(text[: text.rindex(")") + 1]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FILES)
def test_the_named_entry_lets_it_pass(name: str) -> None:
    """An error names rule and entry; with the entry the file loads, or fails for another reason than this refusal."""
    rule, file = FILES[name]
    if name.startswith("format") and find_higher_order("print") is None:
        pytest.skip("this torch has no operator that prints: the file is refused for that")
    data = file()
    with pytest.raises(Pt2Error, match="if you trust the file, pass trust=") as caught:
        pt2kit.load(data)
    assert not rule or caught.value.rule == rule
    entries = named_entries(caught.value)
    assert entries
    try:
        pt2kit.load(data, trust=entries)
    except Pt2Error as error:
        assert "pass trust=" not in str(error)


def test_entries() -> None:
    """A text alone would be taken letter by letter; operators are called without overload."""
    with pytest.raises(TypeError, match=r"expected a list of names, got a text: pass trust=\('X11',\)"):
        trusted("X11")
    assert operator_entry("torch.ops.aten.set_.source_Tensor") == "aten.set_"
    assert operator_entry("math.sqrt") == "math.sqrt"
