"""Metadata texts: what torch reads is read as torch does; what cannot be read is left out, and nothing is run."""

from __future__ import annotations

import json
import operator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._export.serde.serialize import GraphModuleDeserializer, GraphModuleSerializer
from torch.export.graph_signature import ExportGraphSignature
from torch.fx.traceback import NodeSource

from pt2kit.bridge.read.metadata import Metadata
from pt2kit.bridge.torch_names import writes_origins

ORIGIN = {"name": "add", "target": "add", "graph_id": 7, "pass_name": "first", "action": "create", "from_node": []}
TEXTS = {
    "stack_trace": ['File "a.py", line 3, in forward\n    return x + 1', "any text ; , \x00 at all"],
    "nn_module_stack": [
        "L__self__,,pkg.Model;L__self___fc,fc,torch.nn.modules.linear.Linear",
        "L['self'],L['self'],pkg.Model",
        "root,,pkg.Model",
    ],
    "source_fn_stack": [
        "linear,torch.nn.functional.linear",
        "relu,torch.nn.modules.activation.ReLU;add,_operator.add",
        "sum_1,torch.sum",
        "mine,some.package.function",
    ],
    "torch_fn": ["linear_1;builtin_function_or_method.linear", "add;method_descriptor.add"],
    "custom": ['{"a": [1, 2.5, null], "b": {"c": true}}', "{}"],
    "from_node": [json.dumps([ORIGIN]), json.dumps([{**ORIGIN, "from_node": [{**ORIGIN, "name": "older"}]}])],
}


def by_torch(texts: dict[str, str]) -> dict[str, Any]:
    """Read the same texts with torch's own reader."""
    return GraphModuleDeserializer().deserialize_metadata(texts)


@pytest.mark.parametrize(
    ("key", "text"),
    [(key, text) for key, texts in TEXTS.items() if writes_origins() or key != "from_node" for text in texts],
)
def test_as_torch(key: str, text: str) -> None:
    """Every kind of entry, as torch reads it."""
    got, want = Metadata().read({key: text})[key], by_torch({key: text})[key]
    if key == "source_fn_stack":
        assert [name for name, _ in got] == [name for name, _ in want]
        assert [function for _, function in got] == [function for _, function in want]
    elif key == "from_node":
        assert [source.to_dict() for source in got] == [source.to_dict() for source in want]
        assert all(type(source) is NodeSource for source in got)
    else:
        assert got == want
        assert type(got) is type(want)


@pytest.mark.parametrize("text", TEXTS["from_node"])
def test_origins_where_torch_reads_none(text: str) -> None:
    """Origins are read whether or not the installed torch reads them (it does since 2.11), and nothing is lost."""
    got = Metadata().read({"from_node": text})["from_node"]
    assert [source.to_dict() for source in got] == json.loads(text)
    assert ("from_node" in by_torch({"from_node": text})) is writes_origins()


UNREADABLE = {
    "nn_module_stack": ["a,b", "k,path,pkg.M;broken", 'k,"); import os; (",pkg.M', "k,a\nb,pkg.M"],
    "source_fn_stack": ["only_a_name", "a,b;c"],
    "custom": ["{", "nan", "[1"],
    "from_node": ["[", "[1]", "{}"],
}


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, texts in UNREADABLE.items() for text in texts])
def test_unreadable(key: str, text: str) -> None:
    """A text that is not what it should be is left out, and the others are read."""
    found = Metadata().read({key: text, "torch_fn": "a;b"})
    assert found == {"torch_fn": ("a", "b")}


@pytest.mark.parametrize("texts", [{}, {"unknown": "key"}, {"stack_trace": "", "custom": ""}])
def test_nothing(texts: dict[str, str]) -> None:
    """Keys that torch does not read, and empty texts, give nothing."""
    assert Metadata().read(texts) == {}


FUNCTIONS = {
    "torch.nn.functional.relu": torch.nn.functional.relu,
    "torch._C._nn.gelu": torch._C._nn.gelu,
    "_operator.getitem": operator.getitem,
    "torch.nn.modules.linear.Linear": torch.nn.Linear,
    "torch.ops.aten.add.Tensor": torch.ops.aten.add.Tensor,
    "torch.ops.aten.add": torch.ops.aten.add,
    "torch.ops.higher_order.cond": torch.ops.higher_order.cond,
}
STAY_TEXT = [
    "os.system",
    "builtins.eval",
    "torch.os.system",
    "torch._C",
    "torch.nn.functional.__builtins__",
    "torch.load.__globals__",
    "torch.__version__",
    "torch.ops.no_such_namespace.operator.default",
    "torch.ops.aten.no_such_operator.default",
    "torch.ops.aten.add.Tensor.__class__",
    "subprocess.Popen",
    "",
    "linear",
]


@pytest.mark.parametrize(("text", "function"), FUNCTIONS.items(), ids=list(FUNCTIONS))
def test_functions(text: str, function: Any) -> None:
    """Functions and classes of torch, and operators, become live."""
    assert Metadata().read({"source_fn_stack": f"f,{text}"})["source_fn_stack"] == [("f", function)]


@pytest.mark.parametrize("text", STAY_TEXT)
def test_other_names_stay_texts(text: str) -> None:
    """Nothing else is looked up: no modules, no attributes of attributes, no private names."""
    assert Metadata().read({"source_fn_stack": f"f,{text}"}).get("source_fn_stack") in (None, [("f", text)])


def test_own_containers() -> None:
    """Two nodes with one text do not share what a pass may change."""
    metadata = Metadata()
    texts = {"nn_module_stack": TEXTS["nn_module_stack"][0], "custom": '{"a": []}', "from_node": TEXTS["from_node"][0]}
    first, second = metadata.read(texts), metadata.read(texts)
    assert first["nn_module_stack"] == second["nn_module_stack"]
    for key in texts:
        assert first[key] is not second[key]


@given(st.dictionaries(st.sampled_from(sorted(TEXTS)), st.text(max_size=60)))
@settings(max_examples=200, deadline=None)
def test_any_text(texts: dict[str, str]) -> None:
    """No text makes it fail."""
    assert Metadata().read(texts).keys() <= texts.keys()


def test_what_torch_writes_comes_back() -> None:
    """Metadata of a live node, through torch's writer and this reader."""
    node = torch.fx.Graph().call_function(torch.ops.aten.relu.default, (1,))
    node.meta = {
        "stack_trace": "File x",
        "nn_module_stack": {"a": ("", "pkg.Model"), "b": ("b.0", "torch.nn.modules.activation.ReLU")},
        "source_fn_stack": [("relu", torch.nn.ReLU)],
        "torch_fn": ("relu_1", "function.relu"),
        "custom": {"k": [1]},
    }
    texts = GraphModuleSerializer(ExportGraphSignature([], []), []).serialize_metadata(node)
    assert Metadata().read(texts) == node.meta
