"""Operators of the user's own kinds, in a program and in the registry."""

from __future__ import annotations

import io

import pytest
import torch
from tests.bridge.write.trees import find_differences, our_file, torch_file, tree
from tests.bridge.zoo.handmade import Sketch
from tests.narrow import present
from torch._export.serde import serialize as torch_serde
from torch._export.verifier import Verifier

from pt2kit.bridge import callables
from pt2kit.bridge.callables import Extension
from pt2kit.bridge.operators import resolve
from pt2kit.errors import OperatorError, UnsupportedError

SCHEMA = torch._C.parse_schema("double(Tensor x, int[] by, *, float[]? scales=None) -> (Tensor, Tensor[])")


class Operator:
    """An operator of a kind of its own."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, x, by, *, scales=None):
        return x * sum(by), [x, x]


class Handler(torch_serde.ExtensionHandler):
    """Methods that torch requires of an extension."""

    @classmethod
    def namespace(cls):
        return "mine"

    @classmethod
    def to_op_name(cls, op):
        return op.__name__

    @classmethod
    def from_op_name(cls, name):
        return Operator(name)

    @classmethod
    def op_schema(cls, op):
        return SCHEMA


class AllowingVerifier(Verifier):
    dialect = "TEST_EXTENSIONS"

    def allowed_op_types(self):
        return (*super().allowed_op_types(), Operator)


OURS = Extension("mine", Operator, lambda op: op.__name__, Operator, lambda op: SCHEMA)


@pytest.fixture
def ours():
    callables.register_extension(OURS)
    yield OURS
    callables.unregister_extension("mine")


@pytest.fixture
def theirs(monkeypatch):
    monkeypatch.setattr(torch_serde, "_serialization_registry", {Operator: Handler})
    monkeypatch.setattr(torch_serde, "_deserialization_registry", {"mine": Handler})


def program():
    """A program that calls such an operator."""
    s = Sketch()
    x = s.input("x", torch.randn(2))
    call = s.call(Operator("double"), (x, []), (s.fake(2), [s.fake(2), s.fake(2)]))
    return s.program([s.take(call, 0)], verifiers=[AllowingVerifier])


def test_same_as_torch(theirs):
    """With a handler registered at torch, pt2kit writes what torch writes."""
    live = program()
    record = "models/model.json"
    our_bytes = our_file(live)
    try:
        their_file = torch_file(live)
    except torch_serde.SerializeError:
        pytest.skip("this torch does not write a list that nothing uses")
    assert not list(find_differences(tree(their_file, record), tree(our_bytes, record), "$"))
    assert tree(our_bytes, record)["graph_module"]["graph"]["nodes"][0]["target"] == "#mine:double"
    read = torch.export.load(io.BytesIO(our_bytes))
    assert next(type(node.target) for node in read.graph.nodes if node.op == "call_function") is Operator


def test_own_registry(ours):
    """The same with an extension registered here."""
    node = tree(our_file(program()), "models/model.json")["graph_module"]["graph"]["nodes"][0]
    assert node["target"] == "#mine:double"
    assert node["inputs"][1] == {"name": "by", "arg": {"as_ints": []}, "kind": 1}
    assert [list(output) for output in node["outputs"]] == [["as_tensor"], ["as_tensors"]]


def test_nameless_operator():
    """Without an extension it is a function like any other, which needs a name."""
    s = Sketch()
    target = Operator("x")
    live = s.program([s.call(target, (s.input("x", torch.randn(2)),), s.fake(2))], verifiers=[AllowingVerifier])
    target.__name__ = None
    with pytest.raises(
        UnsupportedError, match=r"node x_1 \(.*Operator\): expected a callable with a module and a name"
    ):
        our_file(live)


def test_find(ours):
    """Extensions are found by type and by namespace, operators by target."""
    assert callables.find_type(Operator) is ours
    assert callables.find_namespace("mine") is ours
    assert present(resolve("#mine:abc")).target.__name__ == "abc"
    assert callables.find_type(int) is None


@pytest.mark.parametrize("text", ["mine:a", "#mine", "#mine:a:b", "#other:a"])
def test_bad_targets(ours, text):
    """Other texts are refused, and so are namespaces that nothing is registered for."""
    with pytest.raises(OperatorError, match=r"which a file may not call|an extension registered|without ':'"):
        resolve(text)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"namespace": "a:b"}, "expected a namespace"),
        ({"namespace": ""}, "expected a namespace"),
        ({"namespace": "#a"}, "expected a namespace"),
        ({"type": int}, "expected a type outside torch and builtins"),
        ({"type": torch.nn.Linear}, "expected a type outside torch and builtins"),
        ({"namespace": "mine"}, "expected a free namespace"),
        ({"namespace": "other"}, "expected a free type"),
    ],
)
def test_refused(ours, changed, message):
    """Unfit and taken namespaces and types are refused."""
    fields = {name: getattr(OURS, name) for name in Extension.__dataclass_fields__}
    with pytest.raises(UnsupportedError, match=message):
        callables.register_extension(Extension(**{**fields, **changed}))


def test_bad_name(ours):
    """A name that cannot stand in a target is refused."""
    with pytest.raises(UnsupportedError, match="extension 'mine': expected a name without ':', got 'a:b'"):
        ours.target(Operator("a:b"))
