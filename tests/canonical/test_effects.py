"""Which nodes may change what others see."""

from __future__ import annotations

import pytest
from tests.graph.build import arg

from pt2kit import schema
from pt2kit.canonical import writes, writes_inside
from pt2kit.canonical.form import KNOWN
from pt2kit.schema.operators import known_releases, operators_of, parse_operator

WRITE = [
    *("torch.ops.aten.add_.Tensor", "torch.ops.aten.__iand__.Scalar", "torch.ops.aten.copy_.default"),
    *("torch.ops.aten.div.out_mode", "torch.ops.aten.xlogy.OutTensor", "torch.ops.aten.linalg_pinv.out_rcond_tensor"),
    "torch.ops.aten._flash_attention_forward_no_dropout_inplace.default",
    *("torch.ops.aten.add.out", "torch.ops.aten.histogram.bin_ct_out", "torch.ops.aten.max.dim_max"),
    *("torch.ops.aten._native_batch_norm_legit.default", "torch.ops.aten.geqrf.a", "torch.ops.prims.copy_to.default"),
    *(
        "torch.ops.mylib.anything.default",
        "#ext:op",
        "torch.ops.higher_order.print",
        "torch.ops.c10d.allreduce_.default",
    ),
    *("torch.ops.higher_order.triton_kernel_wrapper_mutation", "something"),
]
COMPUTE = [
    *("torch.ops.aten.add.Tensor", "torch.ops.aten.__and__.Tensor", "torch.ops.aten.max.dim", "_operator.add"),
    *("torch.ops.aten.mT.a", "torch.ops.higher_order.cond", "torch.ops.cond", "torch.sym_max", "math.floor"),
    *("torch.ops.aten._assert_scalar.default", "torch.ops.aten.batch_norm.default", "torch.ops.aten.sort.stable"),
    "torch._higher_order_ops.cond",
]


NOT_EXPORTED = {"aten.remove.Tensor", "aten.sort.Tensor", "prims.as_strided.default"}
"""Methods of lists in TorchScript; an operator that gives a view, though its schema says that it writes."""


def _node(target: str, **flags: bool) -> schema.Node:
    named = [schema.NamedArgument("x", arg(as_tensor="x"))]
    named += [schema.NamedArgument(name, schema.Argument(as_bool=value)) for name, value in flags.items()]
    return schema.Node(target, named, [], {})


def test_subgraphs_count_where_asked() -> None:
    """A node writes inside if a node of a subgraph of it does, however deep; by itself it does not."""
    write = schema.Node("torch.ops.aten.add_.Tensor", [], [], {})
    read = schema.Node("torch.ops.aten.add.Tensor", [], [], {})
    for node, expected in ((write, True), (read, False)):
        inner = schema.Graph([], [], [node], {}, {}, {})
        held = schema.Argument(as_graph=schema.GraphArgument("g", inner))
        entries = schema.Argument(as_string_to_argument={"k": held})
        carrier = schema.Node("torch.ops.higher_order.cond", [schema.NamedArgument("g", entries)], [], {})
        outer = schema.Argument(as_graph=schema.GraphArgument("o", schema.Graph([], [], [carrier], {}, {}, {})))
        whole = schema.Node("torch.ops.higher_order.cond", [schema.NamedArgument("g", outer)], [], {})
        assert [writes_inside(one) for one in (carrier, whole)] == [expected, expected]
        assert not writes(whole)


@pytest.mark.parametrize("target", WRITE)
def test_these_write(target: str) -> None:
    """In-place operators, out overloads, those known to write, and everything of unknown namespaces."""
    assert writes(_node(target))


@pytest.mark.parametrize("target", COMPUTE)
def test_these_compute(target: str) -> None:
    """Functional operators of torch's own."""
    assert not writes(_node(target))


def test_operators_of_every_release() -> None:
    """Every operator of torch 2.1 to 2.15 whose schema says that it writes into a tensor counts as writing."""
    schemas = {text: name for release in known_releases() for name, text in operators_of(release).items()}
    writing = [
        name
        for text, name in schemas.items()
        if name.partition(".")[0] in KNOWN
        and name not in NOT_EXPORTED
        and any(
            one.type.base == "Tensor" and one.type.alias.endswith("!")
            for one in parse_operator(text).parameters.values()
        )
    ]
    assert len(writing) > 1500
    assert [name for name in writing if not writes(_node(f"torch.ops.{name}"))] == []


def test_normalizations_write_while_training() -> None:
    """They update running statistics that their schemas do not show as written."""
    target = "torch.ops.aten.batch_norm.default"
    assert writes(_node(target, training=True))
    assert not writes(_node(target, training=False))
    assert not writes(_node("torch.ops.aten._native_batch_norm_legit_functional.default", training=True))
