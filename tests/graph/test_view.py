"""The short answers for printers."""

from __future__ import annotations

import pytest
from tests.graph.build import arg, node, program
from tests.samples import sample

from pt2kit import graph
from pt2kit.schema.operators import known_releases, release_operators

# target: namespace, short name, whether somebody else than torch has to register it
TARGETS = {
    "torch.ops.aten.add.Tensor": ("aten", "aten.add.Tensor", False),
    "torch.ops.higher_order.cond": ("higher_order", "higher_order.cond", False),
    "torch.ops.cond": ("higher_order", "higher_order.cond", False),
    "torch.ops.map_impl": ("higher_order", "higher_order.map_impl", False),
    "torch._higher_order_ops.cond.cond": ("higher_order", "higher_order.cond", False),
    "torch.ops.corpus2.scaleshift.default": ("corpus2", "corpus2.scaleshift.default", True),
    "_operator.floordiv": ("_operator", "_operator.floordiv", False),
    "math.floor": ("math", "math.floor", False),
    "torch.sym_max": ("torch", "torch.sym_max", False),
    "#ext:op": ("#ext", "#ext:op", True),
    "somebody.module.function": ("somebody", "somebody.module.function", True),
    "": ("", "", True),
}


@pytest.mark.parametrize("target", TARGETS)
def test_operator_names(target: str) -> None:
    """Each way a release has written an operator gives its namespace, its short name and whose it is."""
    expected = TARGETS[target]
    assert (graph.operator_namespace(target), graph.operator_name(target), graph.is_custom(target)) == expected


def test_counts_go_into_subgraphs() -> None:
    """Operators are counted in all graphs of a program, by target."""
    read = program(sample("2.13.0", "cond"))
    assert graph.operator_counts(read) == {
        "torch.ops.higher_order.cond": 1,
        "torch.ops.aten.sin.default": 1,
        "torch.ops.aten.add.Tensor": 1,
        "torch.ops.aten.cos.default": 1,
        "torch.ops.aten.sub.Tensor": 1,
    }


def test_custom_operators_of_a_real_program() -> None:
    """The custom operators of the sample are the ones that are marked."""
    counts = graph.operator_counts(program(sample("2.13.0", "custom_op")))
    assert {graph.operator_namespace(target) for target in counts if graph.is_custom(target)} == {"corpus"}


@pytest.mark.parametrize("release", known_releases())
def test_namespaces_of_torch_are_not_custom(release: str) -> None:
    """Every namespace that a release has operators in is a built-in one."""
    namespaces = {name.partition(".")[0] for name in release_operators(release).schemas}
    assert namespaces <= graph.BUILTIN_NAMESPACES


def test_node_outputs() -> None:
    """Results are listed flat; None has no name."""
    made = node([arg(as_tensor="a"), arg(as_none=True), arg(as_tensors=["b", "c"])])
    assert graph.node_outputs(made) == ("a", "b", "c")


def test_input_by_name() -> None:
    """An argument is found by the name that the operator's schema gives it, or None."""
    made = node([], arg(as_int=1), arg(as_tensor="x"))
    assert graph.input_by_name(made, "a1") == arg(as_tensor="x")
    assert graph.input_by_name(made, "dim") is None


def test_node_label() -> None:
    """A node goes by its name, or by its number."""
    assert graph.node_label(node([], name="add"), 3) == "add"
    assert graph.node_label(node([]), 3) == "nodes[3]"
