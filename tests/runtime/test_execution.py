"""The engine: views and writes, subgraphs, limits, and errors that name the node."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.runtime.graphs import LONG, graph, node

from pt2kit import schema
from pt2kit.errors import GraphError, LimitError, OperatorError, Pt2Error, UnsupportedError
from pt2kit.operators.higher_order import CLOSES, HIDES, OPENS, SHOWS
from pt2kit.runtime.arrays import RUNNING, Running
from pt2kit.runtime.plan import prepare
from pt2kit.runtime.table import find_kernel


def run(made, *inputs, **limits):
    token = RUNNING.set(Running(**limits))
    try:
        with np.errstate(all="ignore"):
            return prepare(made, "$")(*inputs)
    finally:
        RUNNING.reset(token)


def test_writes_are_seen_through_views():
    """An in-place operator on a view changes the tensor that it is a view of, and all its other views."""
    nodes = [
        node("aten.select.int", ["row"], self="x", dim=0, index=1),
        node("aten.permute.default", ["t"], self="x", dims=[1, 0]),
        node("aten.add_.Tensor", ["sum"], self="row", other=10),
    ]
    x = np.zeros((2, 3), np.float32)
    row, turned = run(graph(["x"], nodes, ["row", "t"]), x)
    assert x.tolist() == [[0, 0, 0], [10, 10, 10]]
    assert turned.tolist() == [[0, 10]] * 3
    assert row.base is not None


def test_results_have_the_declared_type():
    """A kernel may compute in a wider type: what is stored has the type that the program declares."""
    [result] = run(graph(["x"], [node("aten.exp.default", ["y"], self="x")], ["y"]), np.zeros(3, np.float32))
    assert result.dtype == np.float32
    [result] = run(graph(["x"], [node("aten.sum.default", ["y"], self="x")], ["y"], LONG), np.ones(3, np.int64))
    assert (result.dtype, result.shape, int(result)) == (np.int64, (), 3)


@pytest.mark.parametrize("training", [False, True])
def test_functional_rrelu_returns_its_noise(training):
    """It has two results, and leaves its argument as it is."""
    call = node("aten.rrelu_with_noise_functional.default", ["y", "slopes"], self="x", noise="n", training=training)
    x, noise = np.full(3, -2, np.float32), np.zeros(3, np.float32)
    y, slopes = run(graph(["x", "n"], [call], ["y", "slopes"]), x, noise)
    np.testing.assert_allclose(y, x * slopes if training else x * (0.125 + 1 / 3) / 2, rtol=1e-6)
    assert (noise.tolist(), bool(slopes.any())) == ([0, 0, 0], training)


def test_read_only_tensors_are_not_written_to():
    x = np.zeros(3, np.float32)
    x.setflags(write=False)
    with pytest.raises(OperatorError, match=r"nodes\[0\] \(aten.add_.Tensor\): expected a tensor that can be written"):
        run(graph(["x"], [node("aten.add_.Tensor", ["y"], self="x", other=1)], ["y"]), x)


@pytest.mark.parametrize("name", ["expand", "repeat"])
def test_nothing_is_written_to_no_elements(name):
    """Tensors of no elements can be written to, as any other, also if they come from a read-only one."""
    sizes = {"size": [3, 0]} if name == "expand" else {"repeats": [3, 1]}
    none = node(f"aten.{name}.default", ["none"], self="x", **sizes)
    x = np.zeros((1, 0), np.float32)
    x.setflags(write=False)
    [result] = run(graph(["x"], [none, node("aten.exp_.default", ["y"], self="none")], ["y"]), x)
    assert result.shape == (3, 0)


def test_errors_name_the_node():
    """Whatever a kernel raises becomes an error of ours, with the node and its operator in front."""
    made = graph(["x"], [node("aten.mm.default", ["y"], self="x", mat2="x")], ["y"])
    with pytest.raises(OperatorError, match=r"node nodes\[0\] \(aten.mm.default\): .*"):
        run(made, np.zeros((2, 3), np.float32))
    unknown = graph(["x"], [node("aten.exp.default", ["y"], self="x", nonsense=1)], ["y"])
    with pytest.raises(OperatorError, match=r"\(aten.exp.default\): expected arguments of aten.exp.default, got 'nons"):
        run(unknown, np.zeros(3, np.float32))
    counted = graph(["x"], [node("aten.bincount.default", ["y"], self="x")], ["y"], LONG)
    with pytest.raises(OperatorError, match="expected operands that the operator accepts"):
        run(counted, np.array([-1]))


@pytest.mark.parametrize(
    ("target", "named", "message"),
    [
        ("conv1d", {"input": "x", "weight": "w"}, "expected groups times weight channels as input channels"),
        (
            "native_layer_norm",
            {"input": "x", "normalized_shape": [9], "weight": None, "bias": None, "eps": 0.1},
            "normalized_shape: expected how",
        ),
        ("cat", {"tensors": ["x", "w"]}, "tensors: expected one size of dimension 1, got 4 and 2"),
        ("index_copy", {"self": "x", "dim": 2, "index": "i", "source": "w"}, "source: expected one slice for each"),
        ("topk", {"self": "x", "k": 6}, "k"),
        (
            "upsample_bilinear2d",
            {"self": "b", "output_size": [3, 3], "align_corners": False},
            "expected floating-point numbers, as torch rounds integers",
        ),
    ],
)
def test_arguments_that_torch_refuses_are_refused(target, named, message):
    """Each call is checked by the rule of its operator, as `pt2 check` does, also where NumPy computes something."""
    values = {"x": np.zeros((1, 4, 5), np.float32), "w": np.zeros((3, 2, 2), np.float32), "i": np.zeros(2, np.int64)}
    values["b"] = np.zeros((1, 1, 2, 2), np.uint8)
    made = graph(list(values), [node(f"aten.{target}.default", ["y"], **named)], ["y"])
    with pytest.raises(OperatorError, match=rf"^node nodes\[0\] \(aten.{target}.default\): .*{message}"):
        run(made, *values.values())


def test_operands_of_several_widths_are_computed():
    """Regions of autocast mix floating-point numbers of several widths."""
    made = graph(["x", "y"], [node("aten.dot.default", ["z"], self="x", tensor="y")], ["z"])
    (found,) = run(made, np.ones(3, np.float32), np.full(3, 2, np.float16))
    assert float(found) == 6


@pytest.mark.parametrize("arguments", [[2], []])
def test_errors_of_regions_of_vmap_name_the_node(arguments):
    """Entries that have results of different sizes, and a region without a size, are refused like other operands."""

    def call(target, outputs, *args):
        return replace(node("", outputs, *args), target=target)

    nodes = [
        call(OPENS, [], *arguments),
        call(HIDES, ["row"], "x", 0, 1),
        node("aten.nonzero.default", ["places"], self="row"),
        call(SHOWS, ["y"], "places", 1, 2, 0),
        call(CLOSES, []),
    ]
    with pytest.raises(OperatorError, match=r"^node nodes\[[03]\] .*expected operands that the operator accepts"):
        run(graph(["x"], nodes, ["y"]), np.array([[0, 1], [1, 1]], np.float32))


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("aten.full.default", {"size": [1 << 20, 1 << 20], "fill_value": 1.0}),
        ("aten.zeros.default", {"size": [1 << 40]}),
        ("aten.arange.default", {"end": 1 << 40}),
        ("aten.eye.default", {"n": 1 << 20}),
        ("aten.randn.default", {"size": [1 << 20, 1 << 20]}),
        ("aten.tril_indices.default", {"row": 1 << 20, "col": 1 << 20}),
        ("aten.repeat.default", {"self": "x", "repeats": [1 << 40]}),
        ("aten.constant_pad_nd.default", {"self": "x", "pad": [1 << 40, 0]}),
        ("aten.outer.default", {"self": "x", "vec2": "x"}),
        ("aten.one_hot.default", {"self": "i", "num_classes": 1 << 40}),
        ("aten.diag_embed.default", {"self": "x", "offset": 1 << 22}),
        ("aten.upsample_nearest1d.default", {"self": "b", "output_size": [1 << 40]}),
        ("aten.kron.default", {"self": "x", "other": "x"}),
        ("aten.cdist.default", {"x1": "c", "x2": "c"}),
        ("aten.reflection_pad1d.default", {"self": "b", "padding": [1 << 40, 1]}),
        ("aten.fft_fft.default", {"self": "x", "n": 1 << 40}),
        ("aten.hann_window.default", {"window_length": 1 << 40}),
        ("aten.repeat_interleave.self_int", {"self": "x", "repeats": 1 << 40}),
        ("aten.tensor_split.sections", {"self": "x", "sections": 1 << 40}),
        ("aten.linspace.default", {"start": 0, "end": 1, "steps": 1 << 40}),
        ("aten.bincount.default", {"self": "i"}),
        ("aten.nonzero_static.default", {"self": "x", "size": 1 << 40, "fill_value": 0}),
        ("aten.masked_scatter.default", {"self": "r", "mask": "l", "source": "x"}),
        ("aten.expand.default", {"self": "s", "size": [1 << 40, 1]}),
        (
            "aten._trilinear.default",
            {"i1": "x", "i2": "x", "i3": "x", "expand1": [1], "expand2": [0], "expand3": [0], "sumdim": [1]},
        ),
    ],
)
def test_no_kernel_allocates_beyond_the_limit(target, named):
    """Sizes that a program asks for are refused before memory for them is allocated."""
    values = {
        "x": np.zeros(5000, np.float32),
        "i": np.array([1 << 40]),
        "b": np.zeros((1, 1, 4), np.float32),
        "c": np.zeros((4000, 8), np.float32),
        "s": np.zeros((1, 1), np.float32),
        "r": np.zeros((1, 3500), np.float32),  # A result within the limit, whose places are beyond it.
        "l": np.zeros((3500, 1), bool),
    }
    made = graph(list(values), [node(target, ["y"], **named)], ["y"])
    with pytest.raises((LimitError, OperatorError), match="expected"):
        run(made, *values.values(), max_bytes=1 << 26)


def test_broadcasting_is_limited():
    """Two small operands can have a result of any size."""
    a, b = np.zeros((1 << 16, 1), np.float32), np.zeros((1, 1 << 16), np.float32)
    for target in (
        "aten.add.Tensor",
        "aten.mul.Tensor",
        "aten.eq.Tensor",
        "aten.maximum.default",
        "aten.matmul.default",
    ):
        with pytest.raises(LimitError, match="expected a result of at most"):
            run(graph(["a", "b"], [node(target, ["y"], self="a", other="b")], ["y"]), a, b, max_bytes=1 << 26)


@pytest.mark.parametrize(
    ("size", "stride", "offset"), [([4], [1], 6), ([2], [100], 0), ([1 << 40], [1], 0), ([2], [-1], 1), ([3], [1], -1)]
)
def test_no_view_points_outside_its_storage(size, stride, offset):
    named = {"self": "x", "size": size, "stride": stride, "storage_offset": offset}
    with pytest.raises(OperatorError, match=r"expected (sizes and strides (within|of 0 or more)|as many strides)"):
        run(graph(["x"], [node("aten.as_strided.default", ["y"], **named)], ["y"]), np.zeros(8, np.float32))


def test_as_strided_sees_the_whole_storage():
    """A view is of the storage of its operand, not of the operand alone."""
    nodes = [
        node("aten.slice.Tensor", ["part"], self="x", dim=0, start=2, end=4),
        node("aten.as_strided.default", ["y"], self="part", size=[2, 2], stride=[4, 1], storage_offset=1),
    ]
    [result] = run(graph(["x"], nodes, ["y"]), np.arange(8, dtype=np.float32))
    assert result.tolist() == [[1, 2], [5, 6]]


def test_as_strided_sees_the_storage_of_expanded_tensors():
    """A view with other strides is a view of the same storage."""
    nodes = [
        node("aten.select.int", ["row"], self="x", dim=0, index=1),
        node("aten.expand.default", ["rows"], self="row", size=[2, 3]),
        node("aten.as_strided.default", ["y"], self="rows", size=[4], stride=[1], storage_offset=2),
    ]
    (seen,) = run(graph(["x"], nodes, ["y"]), np.arange(6, dtype=np.float32).reshape(2, 3))
    assert seen.tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("target", ["aten.embedding.default", "aten.index_select.default", "aten.gather.default"])
def test_no_index_wraps_around(target):
    """torch refuses negative indices here, where NumPy counts them from the end."""
    arguments: dict[str, dict[str, Any]] = {
        "aten.embedding.default": {"weight": "w", "indices": "i"},
        "aten.index_select.default": {"self": "x", "dim": 0, "index": "i"},
        "aten.gather.default": {"self": "x", "dim": 0, "index": "i"},
    }
    made = graph(["x", "w", "i"], [node(target, ["y"], **arguments[target])], ["y"])
    for index in (-1, 3):
        with pytest.raises(OperatorError, match="expected indices below 3"):
            run(made, np.zeros(3, np.float32), np.zeros((3, 2), np.float32), np.array([index]))


def endless():
    """A graph that loops for ever."""
    nodes = [node("aten.ge.Scalar", ["more"], self="c", other=0)]
    condition = graph(["c"], nodes, ["more"], schema.ScalarType.BOOL)
    body = graph(["c"], [node("aten.add.Tensor", ["next"], self="c", other=1)], ["next"])
    call = schema.Node(
        "torch.ops.higher_order.while_loop",
        [
            schema.NamedArgument("", schema.Argument(as_graph=schema.GraphArgument(name, one)))
            for name, one in (("condition", condition), ("body", body))
        ]
        + [
            schema.NamedArgument("", schema.Argument(as_tensors=[schema.TensorArgument("x")])),
            schema.NamedArgument("", schema.Argument(as_tensors=[])),
        ],
        [schema.Argument(as_tensors=[schema.TensorArgument("y")])],
        {},
    )
    made = graph(["x", "y"], [], ["y"])
    return schema.Graph([made.inputs[0]], made.outputs, [call], made.tensor_values, {}, {})


def test_loops_end_at_the_deadline():
    with pytest.raises(LimitError, match="expected the call to end in time"):
        run(endless(), np.zeros((), np.float32), deadline=monotonic() + 0.2)


def test_values_are_defined_before_they_are_used():
    made = graph(["x", "z"], [node("aten.add.Tensor", ["y"], self="x", other="later")], ["y"])
    with pytest.raises(GraphError, match="expected a value that is defined before"):
        prepare(made, "$")
    with pytest.raises(GraphError, match="expected 2 values, got 1"):
        run(graph(["x", "z"], [], ["x"]), np.zeros(3, np.float32))


def test_unknown_operators_are_refused_before_anything_runs():
    with pytest.raises(UnsupportedError, match="expected an operator that the runtime has"):
        prepare(graph(["x"], [node("mine.op.default", ["y"], x="x")], ["y"]), "$")


def test_deep_subgraphs_are_refused():
    inner = graph(["x"], [], ["x"])
    for _ in range(40):
        inner = graph(["x"], [node("higher_order.wrap", ["y"], inner, "x")], ["y"])
    with pytest.raises(Pt2Error, match="nested at most 32 levels"):
        prepare(inner, "$")


def test_operators_that_are_arguments_get_the_defaults_of_their_schemas():
    """An operator that another one calls is called as a node of its own is."""
    linear = schema.Argument(as_operator="torch.ops.aten.linear.default")
    dtype = schema.Argument(as_scalar_type=schema.ScalarType.FLOAT)
    made = graph(["x"], [node("higher_order.out_dtype", ["y"], linear, dtype, "x", "x")], ["y"])
    (product,) = run(made, np.eye(2, dtype=np.float32) * 3)
    assert product.tolist() == [[9, 0], [0, 9]]


def test_element_types_by_their_numbers_in_torch():
    """Files of torch 2.1 have the default of a dtype as torch counts types, from 0; other numbers are refused."""
    indices = partial(node, "aten.tril_indices.default", ["y"], row=2, col=2)
    (found,) = run(graph([], [indices(dtype=4)], ["y"], LONG))
    assert found.dtype == np.int64
    assert found.tolist() == [[0, 1, 1], [0, 0, 1]]
    with pytest.raises(OperatorError, match="expected operands that the operator accepts, got ValueError"):
        run(graph([], [indices(dtype=999)], ["y"], LONG))


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_a_loop_goes_on_by_a_truth_value(kind):
    """torch refuses a number as the condition of a loop, and a tensor with a dimension."""
    body = graph(["x"], [node("aten.clone.default", ["y"], self="x")], ["y"])
    loop = node("higher_order.while_loop", ["z"], body, body, ["x"], [])
    for condition in (np.zeros((), kind), np.zeros(1, np.bool_)):
        with pytest.raises(OperatorError, match="expected a truth value"):
            run(graph(["x"], [loop], ["z"]), condition)


def test_the_first_bag_begins_at_the_first_index():
    """torch refuses other first offsets; a bag without them is empty."""
    bag = node("aten.embedding_bag.default", ["y"], weight="w", indices="i", offsets="o")
    made = graph(["w", "i", "o"], [bag], ["y"])
    with pytest.raises(OperatorError, match="expected the first offset to be 0, got 1"):
        run(made, np.zeros((4, 3), np.float32), np.arange(3), np.array([1, 2]))


@pytest.mark.parametrize(
    ("target", "inputs", "options"),
    [
        ("aten.embedding_bag.default", {"weight": (4, 3), "indices": (2,), "offsets": (1,)}, {"mode": 3}),
        (
            "aten.grid_sampler.default",
            {"input": (1, 1, 2, 2), "grid": (1, 2, 2, 2)},
            {"interpolation_mode": 3, "padding_mode": 0, "align_corners": False},
        ),
    ],
)
def test_unknown_modes_are_refused(target, inputs, options):
    """A mode that the operator does not have is no other mode."""
    made = graph(list(inputs), [node(target, ["y"], **{name: name for name in inputs}, **options)], ["y"])
    kinds = [np.int64 if name in ("indices", "offsets") else np.float32 for name in inputs]
    arrays = [np.zeros(sizes, kind) for sizes, kind in zip(inputs.values(), kinds, strict=True)]
    with pytest.raises(OperatorError, match=r"mode: expected (one of 0, 1, 2|0, 1 or 2), got 3"):
        run(made, *arrays)


def test_negative_deviations_are_refused():
    """torch looks for them in a tensor, too, whose numbers no rule knows."""
    made = graph(["x", "s"], [node("aten.normal.Tensor_Tensor", ["y"], mean="x", std="s")], ["y"])
    with pytest.raises(OperatorError, match=r"aten.normal.Tensor_Tensor\): .*scale < 0"):
        run(made, np.zeros(3, np.float32), np.array([1, -1, 0], np.float32))


def test_sparse_gradients_of_bags_are_refused():
    """The gradient would be dense, which is another result than torch's."""
    kernel = find_kernel("aten._embedding_bag_backward.default")
    assert kernel is not None
    index = np.zeros(1, np.int64)
    arguments = (np.ones((1, 2), np.float32), *[index] * 5, 3, False, 0)
    assert kernel(*arguments, False, None, -1).shape == (3, 2)
    with pytest.raises(OperatorError, match="expected a dense gradient, got a sparse one"):
        kernel(*arguments, True, None, -1)


def test_places_of_combinations_count():
    """The places that are combined take as much memory as the result."""
    made = graph(["x"], [node("aten.combinations.default", ["y"], self="x", r=8)], ["y"])
    for size, fits in ((16, True), (17, False)):
        x = np.arange(size, dtype=np.float32)
        if fits:
            assert run(made, x, max_bytes=1_700_000)[0].shape == (12_870, 8)
        else:
            with pytest.raises(LimitError, match="expected a result of at most"):
                run(made, x, max_bytes=1_700_000)


def test_a_result_is_stored_in_a_given_tensor():
    """`out=` is the tensor that is returned, and torch's own result of a type has no value."""
    made = graph(
        ["x", "y", "z"],
        [
            node("aten.promote_types.default", [], type1=dtype_of("FLOAT"), type2=dtype_of("FLOAT")),
            node("aten.maximum.out", ["w"], self="x", other="y", out="z"),
        ],
        ["w", "z"],
    )
    x, y, z = (np.array(numbers, np.float32) for numbers in ([1, 5], [2, 3], [0, 0]))
    first, second = run(made, x, y, z)
    assert first.tolist() == second.tolist() == [2, 5]
    with pytest.raises(OperatorError, match=r"out: expected sizes \[2\], got \[3\]"):
        run(made, x, y, np.zeros(3, np.float32))


def dtype_of(name):
    """Return an argument that is an element type."""
    return schema.Argument(as_scalar_type=schema.ScalarType[name])


def test_gradients_of_layer_norm():
    """The gradient is that of finite differences, over dimensions of different sizes."""
    random = np.random.default_rng(0)
    x, weight, upstream = (random.normal(size=shape) for shape in ((2, 3, 4), (3, 4), (2, 3, 4)))
    names = ("native_layer_norm", "native_layer_norm_backward")
    forward, backward = (find_kernel(f"aten.{name}.default") for name in names)
    assert forward is not None
    assert backward is not None
    _, mean, inverse = forward(x, [3, 4], weight, None, 1e-5)
    found = backward(upstream, x, [3, 4], mean, inverse, weight, None, [True, True, True])[0]
    step = 1e-6 * np.eye(x.size).reshape(-1, *x.shape)
    ahead, behind = (
        np.array([(forward(x + sign * one, [3, 4], weight, None, 1e-5)[0] * upstream).sum() for one in step])
        for sign in (1, -1)
    )
    np.testing.assert_allclose(found, ((ahead - behind) / 2e-6).reshape(x.shape), rtol=1e-5, atol=1e-7)
