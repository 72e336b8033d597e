"""Programs with graphs that export does not produce on a machine like this one, put together by hand."""

from __future__ import annotations

import functools
import importlib
import operator
import warnings
from typing import Any

import torch
from tests.bridge.zoo.handmade import Sketch, subgraph_of
from tests.bridge.zoo.program import Program
from torch._higher_order_ops.associative_scan import associative_scan_op
from torch._higher_order_ops.auto_functionalize import auto_functionalized
from torch._higher_order_ops.effects import with_effects
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.run_const_graph import run_const_graph
from torch._higher_order_ops.torchbind import call_torchbind
from torch._higher_order_ops.wrap import tag_activation_checkpoint, wrap_with_set_grad_enabled
from torch.export import ExportedProgram

aten = torch.ops.aten
PACKED = "__torch__.torch.classes.quantized.LinearPackedParamsBase"


def effects() -> ExportedProgram:
    """Effect tokens: an operator with a side effect between tokens, and one with a result."""
    s = Sketch()
    token, x = s.token("token"), s.input("x", torch.randn(2))
    first = s.call(with_effects, (token, aten._print.default, "a; b, c"), (s.fake(0), None))
    second = s.call(with_effects, (s.take(first, 0), aten.sin.default, x), (s.fake(0), s.fake(2)))
    return s.program([s.take(second, 0), s.take(second, 1)], tokens=1)


def functionalized() -> ExportedProgram:
    """The first version of auto_functionalized, which torch up to 2.5 produced."""
    importlib.import_module("tests.bridge.zoo.programs_custom")  # registers the operator
    s = Sketch()
    x = s.input("x", torch.randn(2))
    call = s.call(auto_functionalized, (torch.ops.zoo.add_.default,), (None, s.fake(2)), x=x, by=3)
    return s.program([s.take(call, 1)])


def const_graph() -> ExportedProgram:
    """A graph of constants that runs once."""
    s = Sketch()
    x, y = s.input("x", torch.randn(2)), s.input("y", torch.randn(2))
    graph = s.subgraph("_const_graph", subgraph_of(s, lambda x, y: (x * 2 + y, y.sin()), [(2,), (2,)]))
    call = s.call(run_const_graph, (graph, (x, y)), (s.fake(2), s.fake(2)))
    return s.program([s.take(call, 0)])


def regions() -> ExportedProgram:
    """Regions that strict export cannot produce here: recomputation, hints, and a single tensor as result."""
    s = Sketch()
    x = s.input("x", torch.randn(2))
    body = s.subgraph("wrap_body_0", subgraph_of(s, lambda x: (x.sin(),), [(2,)]))
    kept = s.call(tag_activation_checkpoint, (body, x), (s.fake(2),), use_reentrant=False, preserve_rng_state=True)
    hinted = s.subgraph("hints_body_0", subgraph_of(s, lambda x: (x.cos(),), [(2,)]))
    hints = s.call(
        hints_wrapper, (hinted, (s.take(kept, 0),), {}), (s.fake(2),), hints={"level": 3, "name": "a", "f": 0.5}
    )
    single = s.subgraph("single_0", subgraph_of(s, lambda x: x.tan(), [(2,)]))
    last = s.call(wrap_with_set_grad_enabled, (False, single, s.take(hints, 0)), s.fake(2))
    return s.program([last])


def scanned() -> ExportedProgram:
    """The associative scan that a GPU would run."""
    s = Sketch()
    x = s.input("x", torch.randn(3, 2))
    body = s.subgraph("associative_scan_combine_graph_0", subgraph_of(s, lambda a, b: [a * b], [(3, 2), (3, 2)]))
    call = s.call(associative_scan_op, (body, [x], ()), (s.fake(3, 2),))
    return s.program([s.take(call, 0)])


def script_object() -> ExportedProgram:
    """A script object: packed weights of a quantized layer, as input of an operator and of a method call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weight = torch.quantize_per_tensor(torch.eye(4), 0.1, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(weight, torch.ones(4))
    s = Sketch()
    obj, x = s.custom("obj_packed", "packed", packed, PACKED), s.input("x", torch.randn(2, 4))
    linear = s.call(torch.ops.quantized.linear_dynamic.default, (x, obj), s.fake(2, 4))
    bias = s.call(call_torchbind, (obj, "bias"), s.fake(4))
    return s.program([s.call(aten.add.Tensor, (linear, bias), s.fake(2, 4))])


def repeated() -> ExportedProgram:
    """Several getitem nodes for one result, used in a list and as an output, one of them counting from the end."""
    s = Sketch()
    x = s.input("x", torch.randn(4))
    split = s.call(aten.split.Tensor, (x, 2), [s.fake(2), s.fake(2)])
    a, b = s.take(split, 0), s.take(split, 1)
    cat = s.call(aten.cat.default, ([a, b],), s.fake(8))
    program = s.program([cat, b, s.call(aten.add.Tensor, (a, b), s.fake(2))])
    # The constructor of a program leaves one getitem node for each result, so the others come after it.
    split, a, b, cat, add = (node for node in program.graph.nodes if node.op == "call_function")
    c, d = _taken_again(a, 0), _taken_again(b, -1)
    cat.args = ([a, b, c, d],)
    add.args = (c, d)
    program.graph.output_node().args = ((cat, d, add),)
    program.graph_signature.output_specs[1].arg.name = d.name
    return program


def _taken_again(node: torch.fx.Node, index: int) -> torch.fx.Node:
    """A second node that takes the same result as a getitem node."""
    with node.graph.inserting_after(node):
        again = node.graph.call_function(operator.getitem, (node.args[0], index))
    again.meta.update(node.meta)
    return again


def unused() -> ExportedProgram:
    """Results that nothing takes, of operators that give tensors, lists and None."""
    importlib.import_module("tests.bridge.zoo.programs_custom")
    s = Sketch()
    x = s.input("x", torch.randn(4))
    s.call(aten.split.Tensor, (x, 2), [s.fake(2), s.fake(2)])
    three = s.call(torch.ops.zoo.three.default, (x,), (s.fake(4), s.fake(4), s.fake(4)))
    maybe = s.call(torch.ops.zoo.maybe.default, (x, False), (s.fake(4), None))
    none = s.take(maybe, 1)
    everything = s.call(torch.ops.zoo.three.default, (x, none), (s.fake(4), s.fake(4), s.fake(4)))
    return s.program([s.take(three, 1), s.take(everything, 2)])


def shared_subgraph() -> ExportedProgram:
    """One subgraph that two calls share, with names that the outer graph uses too."""
    s = Sketch()
    x = s.input("x", torch.randn(4))

    def body(x: torch.Tensor) -> Any:
        a, b = x.split(2)
        return (torch.cat([b, a]),)

    graph = subgraph_of(s, body, [(4,)])
    first = s.call(wrap_with_set_grad_enabled, (True, s.subgraph("body", graph), x), (s.fake(4),))
    second = s.call(wrap_with_set_grad_enabled, (True, s.subgraph("body", graph), s.take(first, 0)), (s.fake(4),))
    return s.program([s.take(second, 0)])


def crossed() -> ExportedProgram:
    """A subgraph that takes one result twice, and an outer graph that uses the same names for two results."""
    s = Sketch()
    x = s.input("x", torch.randn(4))
    split = s.call(aten.split.Tensor, (x, 2), [s.fake(2), s.fake(2)])
    a, b = s.take(split, 0), s.take(split, 1)

    def body(x: torch.Tensor) -> Any:
        first, _ = x.split(2)
        return (first + first,)

    inner = s.subgraph("body", subgraph_of(s, body, [(4,)]))
    call = s.call(wrap_with_set_grad_enabled, (True, inner, x), (s.fake(2),))
    total = s.call(aten.add.Tensor, (a, b), s.fake(2))
    program = s.program([s.take(call, 0), total])
    first = next(node for node in program.graph_module.body.graph.nodes if node.target is operator.getitem)
    next(iter(first.users)).args = (first, _taken_again(first, 0))
    return program


def programs() -> list[Program]:
    """All programs of this file."""

    def calls(*examples: torch.Tensor) -> Any:
        return functools.partial(lambda: [(examples, {})])

    twice = "several getitem nodes for one result"
    return [
        Program("effects", effects),
        Program("auto_functionalized_v1", functionalized),
        Program("run_const_graph", const_graph, calls(torch.ones(2), torch.ones(2))),
        Program("regions", regions),
        Program("associative_scan_op", scanned),
        Program("script_object", script_object, calls(torch.ones(2, 4))),
        Program("repeated_results", repeated, calls(torch.arange(4.0)), torch_saves=twice),
        Program("unused_results", unused, calls(torch.arange(4.0)), torch_saves="a result that is None is used"),
        Program("crossed_names", crossed, calls(torch.arange(4.0))),
        Program("shared_subgraph", shared_subgraph, calls(torch.arange(4.0))),
    ]
