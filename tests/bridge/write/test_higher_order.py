"""Calls of higher-order operators that the zoo has no program for."""

from __future__ import annotations

import json

import pytest
import torch
from tests.bridge.write.trees import our_file
from torch._export.serde import schema as torch_schema
from torch._export.serde import serialize as torch_serde
from torch._higher_order_ops import aoti_call_delegate
from torch.export.graph_signature import CustomObjArgument
from torch.fx import Graph, GraphModule

from pt2kit import codec
from pt2kit.bridge.write.nodes import write_node
from pt2kit.bridge.write.program import write_graph
from pt2kit.bridge.write.scope import Scope, Shared
from pt2kit.errors import GraphError, UnsupportedError

T = torch.ones(2)


class AOTInductorEPModule(torch.nn.Module):
    """A stub of a compiled module; torch recognizes it by its name."""

    aoti_path = "data/aotinductor/model"


def delegate(weights, results):
    """A graph that calls compiled code."""
    root, graph = torch.nn.Module(), Graph()
    root.lowered, root.original = AOTInductorEPModule(), GraphModule(torch.nn.Module(), Graph())
    x = graph.placeholder("x")
    x.meta["val"] = T
    obj = graph.placeholder("obj")
    obj.meta["val"] = CustomObjArgument("obj", "a.B")
    nodes = {"x": x, "obj": obj}
    call = graph.call_function(
        aoti_call_delegate,
        (graph.get_attr("lowered"), graph.get_attr("original"), [nodes[name] for name in weights], [x]),
    )
    call.meta["val"] = results
    graph.output((graph.call_function(torch.ops.aten.sin.default, (x,)),))
    list(graph.nodes)[-2].meta["val"] = T
    return GraphModule(root, graph)


@pytest.mark.parametrize("weights", [["x"], ["x", "obj"], []])
@pytest.mark.parametrize("results", [(T,), [T, T], ()])
def test_compiled_code(weights, results):
    """A call into compiled code is what torch makes of it: the path of the code, its weights, a list of results."""
    module = delegate(weights, results)
    theirs = torch_serde.GraphModuleSerializer(None, None).serialize_graph(module)
    ours = codec.to_tree(write_graph(module, Shared(write_graph)))
    if "name" not in torch_schema.Node.__annotations__:  # nodes have names since 2.11
        for node in ours["nodes"]:
            del node["name"]
    assert ours == json.loads(torch_serde._to_json_bytes(theirs))


def test_compiled_code_is_missing():
    """The compiled module must be there."""
    module = delegate([], ())
    call = next(node for node in module.graph.nodes if node.target is aoti_call_delegate)
    here = Scope(torch.nn.Module(), Shared(write_graph))
    with pytest.raises(GraphError, match="expected a compiled module 'lowered', got none"):
        write_node(call, here)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
# torch 2.10 says this of what it does itself inside flex_attention.
@pytest.mark.filterwarnings("ignore:You are calling torch.compile inside torch.export region")
def test_flex_attention():
    """Its arguments mix nodes, None and numbers in one list, which the format has no kind for."""
    from torch.nn.attention.flex_attention import flex_attention

    class Flex(torch.nn.Module):
        def forward(self, q):
            return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j))

    live = torch.export.export(Flex(), (torch.randn(1, 1, 16, 16),))
    with pytest.raises(
        UnsupportedError,
        match=r"node flex_attention \(torch\.ops\.higher_order\.flex_attention\): argument 4: expected a list of one",
    ):
        our_file(live)


def test_keyword_place():
    """An error in a keyword argument names it."""
    graph = Graph()
    call = graph.call_function(torch.ops.higher_order.cond, (), {"branch": object()})
    call.meta["val"] = (T,)
    with pytest.raises(UnsupportedError, match="argument 'branch': expected a value that the format has a kind for"):
        write_node(call, Scope(torch.nn.Module(), Shared(write_graph)))
