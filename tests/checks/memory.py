"""Programs of a few calls that make memory nothing was written to, and what X11 says of them."""

from __future__ import annotations

from typing import Any

from tests.checks.mutations import MLP, call, graph, new_value, program, sizes_of, tensor

from pt2kit.checks import check

Call = tuple[str, str, dict[str, Any]]


def number(value: int) -> dict[str, Any]:
    """An argument that is a number."""
    return {"as_int": value}


def ints(*values: int) -> dict[str, Any]:
    """An argument that is a list of numbers."""
    return {"as_ints": list(values)}


def made(name: str, *sizes: int, target: str = "empty.memory_format", **more: Any) -> Call:
    """A call that makes a tensor of some sizes; by default of memory that nothing was written to."""
    return f"aten.{target}", name, {"size": ints(*sizes), **more}


def ones(name: str, *sizes: int) -> Call:
    """A call that makes a tensor of ones."""
    return made(name, *sizes, target="full.default", fill_value=number(1))


def of(target: str, name: str, self: str, **more: Any) -> Call:
    """A call of an operator whose first argument is a value."""
    return f"aten.{target}", name, {"self": tensor(self), **more}


def said(sizes: dict[str, tuple[int, ...]], *calls: Call, returned: str, graphs: Any = None) -> list[str]:
    """What X11 says of a file that ends with some calls and returns one value.

    Args:
        sizes: of each value whose sizes are not (2,).
        calls: target without "torch.ops.", result, arguments.
        returned: the value.
        graphs: changes the tree at last.
    """

    def change(tree: Any) -> None:
        for target, result, arguments in calls:
            if result not in graph(tree)["tensor_values"]:
                new_value(tree, result, "relu")
                declare(tree, result, sizes.get(result, (2,)))
            graph(tree)["nodes"].append(call(f"torch.ops.{target}", result, **arguments))
        graph(tree)["outputs"][0] = tensor(returned)
        if graphs is not None:
            graphs(tree)

    return [problem.message for problem in check(program(MLP, change).data) if problem.rule == "X11"]


def declare(tree: Any, name: str, sizes: tuple[int, ...]) -> None:
    """Say that a value is contiguous and has some sizes."""
    sizes_of(tree, name, *sizes)
    strides: list[dict[str, int]] = []
    step = 1
    for size in reversed(sizes):
        strides.insert(0, {"as_int": step})
        step *= size
    graph(tree)["tensor_values"][name]["strides"] = strides
