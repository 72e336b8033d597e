"""Small graphs of the schema, written in one line per node, for tests of the engine."""

from __future__ import annotations

from typing import Any

from pt2kit import schema

FLOAT, LONG = schema.ScalarType.FLOAT, schema.ScalarType.LONG


def tensor(name: str) -> schema.Argument:
    """A tensor value as an argument."""
    return schema.Argument(as_tensor=schema.TensorArgument(name))


def argument(value: Any) -> schema.Argument:
    """A Python value as an argument: a name of a tensor in a string, a number, a list of either, a graph."""
    if isinstance(value, schema.Argument):
        return value
    if isinstance(value, schema.Graph):
        return schema.Argument(as_graph=schema.GraphArgument("body", value))
    if value is None:
        return schema.Argument(as_none=True)
    if isinstance(value, bool):
        return schema.Argument(as_bool=value)
    if isinstance(value, str):
        return tensor(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return schema.Argument(as_tensors=[schema.TensorArgument(one) for one in value])
    if isinstance(value, list):
        return schema.Argument(as_ints=value)
    return schema.Argument(as_int=value) if isinstance(value, int) else schema.Argument(as_float=value)


def node(target: str, outputs: list[str], /, *args: Any, **named: Any) -> schema.Node:
    """A call."""
    inputs = [schema.NamedArgument("", argument(one)) for one in args]
    inputs += [schema.NamedArgument(name, argument(one)) for name, one in named.items()]
    return schema.Node(f"torch.ops.{target}", inputs, [tensor(name) for name in outputs], {})


def graph(
    inputs: list[str], nodes: list[schema.Node], outputs: list[str], dtype: schema.ScalarType = FLOAT
) -> schema.Graph:
    """A graph of tensors of one element type."""
    names = [*inputs, *(one.as_tensor.name for each in nodes for one in each.outputs if one.type == "as_tensor")]
    meta = schema.TensorMeta(dtype, [], False, schema.Device("cpu"), [], schema.SymInt(as_int=0), schema.Layout.Strided)
    return schema.Graph(
        [tensor(name) for name in inputs],
        [tensor(name) for name in outputs],
        nodes,
        dict.fromkeys(names, meta),
        {},
        {},
    )
