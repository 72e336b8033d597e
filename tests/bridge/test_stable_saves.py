"""Saves are stable: one save after loading reaches the final form, however the file spelled things."""

from __future__ import annotations

import io

import msgspec
import pytest
from tests.packages import bytes_of
from tests.samples import sample

import pt2kit
from pt2kit import codec, schema


def saved_again(data: bytes) -> bytes:
    """Load a file, save it, and return the result."""
    return bytes_of(pt2kit.save, pt2kit.load(io.BytesIO(data)))


def program(data: bytes) -> schema.ExportedProgram:
    """The program of a file."""
    with pt2kit.open(data) as package:
        return package.programs["model"]


def with_longer_strides(name: str) -> bytes:
    """A file whose symbolic strides are doubled and halved: torch simplifies them when it reads them."""

    def longer(stride: schema.SymInt) -> schema.SymInt:
        if not isinstance(stride.value, schema.SymExpr):
            return stride
        text = f"FloorDiv(Mul({stride.value.expr_str}, Integer(2)), Integer(2))"
        return schema.SymInt(as_expr=msgspec.structs.replace(stride.value, expr_str=text))

    out = io.BytesIO()
    with pt2kit.open(sample("2.13.0", name)) as package:
        tree = package.programs["model"]
        graph = tree.graph_module.graph
        values = {
            value: msgspec.structs.replace(meta, strides=[longer(stride) for stride in meta.strides])
            for value, meta in graph.tensor_values.items()
        }
        assert values != graph.tensor_values
        graph = msgspec.structs.replace(graph, tensor_values=values)
        module = msgspec.structs.replace(tree.graph_module, graph=graph)
        pt2kit.write(package, out, programs={"model": msgspec.structs.replace(tree, graph_module=module)})
    return out.getvalue()


@pytest.mark.parametrize("name", ["dynamic_auto", "dynamic_two_dims"])
def test_strides_that_simplify_do_so_once(name: str) -> None:
    """The second save says what the first one said."""
    once = saved_again(with_longer_strides(name))
    assert codec.encode(program(saved_again(once))) == codec.encode(program(once))
