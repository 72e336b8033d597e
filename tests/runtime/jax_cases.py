"""Tests of the engine of jax, which `test_jax.py` runs: results, refusals by name, programs as StableHLO."""

from __future__ import annotations

import functools
import json
import subprocess
import sys

import jax
import numpy as np
import pytest
from tests import samples
from tests.cli.run import pt2
from tests.runtime.corpus_files import is_reproducible, outcome, register_operators
from tests.runtime.graphs import LONG, graph, node

import pt2kit
from pt2kit import schema
from pt2kit.errors import InputError, OperatorError, UnsupportedError
from pt2kit.runtime.inputs import random_inputs
from pt2kit.runtime.plan import prepare

HALF = schema.Argument(as_scalar_type=schema.ScalarType.HALF)
RUNS = samples.DATA / "runs"
REFUSED = ("custom", "dropout_train", "embedding_bag", "item_", "while_loop")
"""Models that jax does not run: custom and random operators, numbers of tensors that decide what is computed."""


@functools.cache
def recorded(release):
    return json.loads((RUNS / f"{release}.json").read_text()), dict(np.load(RUNS / f"{release}.npz"))


CASES = [
    (release, name)
    for release in sorted(path.stem for path in RUNS.glob("*.json"))
    for name in json.loads((RUNS / f"{release}.json").read_text())
    if samples.sample(release, name).exists()
]


def session(name, release="2.13.0", **options):
    return pt2kit.Session(samples.sample(release, name), backend="jax", **options)


def compiled(one, weights=(), constants=()):
    """A graph that jax runs."""
    from pt2kit.runtime.jax_engine import JaxExecutable

    return JaxExecutable(prepare(one, "$"), weights, constants, 1 << 30)


@pytest.mark.parametrize(("release", "name"), CASES, ids=lambda value: value)
def test_recorded_outputs_are_reproduced(release, name):
    """Outputs, and inputs that the program writes to, are those that torch recorded; others are refused by name."""
    register_operators()
    metas, arrays = recorded(release)
    own = {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}
    meta = metas[name] | {"name": name}
    found, why = outcome(samples.sample(release, name), meta, own, backend="jax")
    if name.startswith(REFUSED) and found == "refused":
        assert "aten." in why or "higher_order." in why or "corpus" in why or "torch." in why
    elif is_reproducible(meta):
        assert found in ("equal", "random"), why


def view(operator, **named):
    """A view of the input."""
    return node(f"aten.{operator}", ["v"], self="x", **named)


def both(one, *inputs):
    """Run a graph with NumPy and with jax; returns the outputs and inputs of each after the call."""
    found = []
    for engine in (prepare(one, "$"), compiled(one)):
        values = [value.copy() if isinstance(value, np.ndarray) else value for value in inputs]
        found.append([*engine(*values), *values])
    return found


@pytest.mark.parametrize(
    "nodes",
    [
        [view("transpose.int", dim0=0, dim1=1), node("aten.mul_.Scalar", ["w"], self="v", other=3)],
        [view("select.int", dim=1, index=-1), node("aten.fill_.Scalar", ["w"], self="v", value=7)],
        [view("slice.Tensor", dim=1, start=1, end=6, step=2), node("aten.neg_.default", ["w"], self="v")],
        [view("view.default", size=[2, 12]), node("aten.relu_.default", ["w"], self="v")],
        [view("diagonal.default"), node("aten.zero_.default", ["w"], self="v")],
        [view("unfold.default", dimension=1, size=2, step=3), node("aten.exp_.default", ["w"], self="v")],
        [
            view("as_strided.default", size=[3, 2], stride=[6, 2], storage_offset=1),
            node("aten.sub_.Scalar", ["w"], self="v", other=5),
        ],
        [
            node("aten.unsqueeze.default", ["u"], self="x", dim=0),
            node("aten.permute.default", ["p"], self="u", dims=[2, 0, 1]),
            node("aten.slice.Tensor", ["v"], self="p", dim=0, start=2, end=4),
            node("aten.copy_.default", ["w"], self="v", src="v"),
            node("aten.add_.Tensor", ["a"], self="w", other="v"),
        ],
    ],
    ids=lambda nodes: nodes[0].target.split(".")[-2],
)
def test_writes_through_views_reach_all_that_share_memory(nodes):
    """The base, the view that is written and another view of the same memory have what NumPy gives them."""
    more = [node("aten.reshape.default", ["flat"], self="x", shape=[24]), *nodes]
    one = graph(["x"], [*more, node("aten.add.Tensor", ["sum"], self="flat", other="flat")], ["v", "flat", "sum"])
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    with_numpy, with_jax = both(one, x)
    for expected, got in zip(with_numpy, with_jax, strict=True):
        assert got.dtype == expected.dtype
        assert np.allclose(got, expected, 1e-6, 1e-6)
    assert not np.array_equal(with_jax[-1], x)  # the caller's array is written, as by NumPy


@pytest.mark.parametrize(
    ("operator", "outputs", "arguments"),
    [
        ("nll_loss.default", 1, {"target": "t", "weight": None, "reduction": 1, "ignore_index": 2}),
        ("multi_margin_loss.default", 1, {"target": "t", "weight": "w"}),
        (
            "embedding_dense_backward.default",
            1,
            {"indices": "t", "num_weights": 6, "padding_idx": 2, "scale_grad_by_freq": True},
        ),
        ("median.dim", 2, {"dim": 1}),
        ("nanmedian.default", 1, {}),
        ("kthvalue.default", 2, {"k": 2, "dim": 0}),
        ("lgamma.default", 1, {}),
        ("mvlgamma.default", 1, {"p": 2}),
        ("digamma.default", 1, {}),
        ("special_zeta.other_scalar", 1, {"other": 1.5}),
        ("special_ndtri.default", 1, {}),
        ("special_erfcx.default", 1, {}),
        ("adaptive_max_pool1d.default", 2, {"output_size": [4]}),
        ("im2col.default", 1, {"kernel_size": [2, 2], "dilation": [1, 1], "padding": [1, 0], "stride": [2, 1]}),
        ("masked_scatter.default", 1, {"mask": "m", "source": "w"}),
        ("nonzero_static.default", 1, {"size": 3, "fill_value": 5}),
        ("nonzero_static.default", 1, {"size": 40, "fill_value": -1}),
        ("stft.default", 1, {"n_fft": 4, "hop_length": 2, "window": "u", "onesided": True, "return_complex": False}),
    ],
)
def test_sizes_that_do_not_depend_on_numbers(operator, outputs, arguments):
    """An operator of known sizes runs, whatever numbers it reads, and gives what NumPy gives."""
    names = [f"y{number}" for number in range(outputs)]
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    x = np.abs(x) + 2 if "gamma" in operator else np.where(x > 1, np.nan, x) if "median" in operator else x
    more = {
        "t": np.array([1, 2, 5, 0]),
        "w": np.arange(6, dtype=np.float32),
        "m": (x > 0.9) & (x < 1.5),
        "u": np.array([0.5, 1, 2, 1], np.float32),
    }
    x = x[None] if "im2col" in operator else x
    used = [name for name in arguments.values() if isinstance(name, str)]
    one = graph(["x", *used], [node(f"aten.{operator}", names, "x", **arguments)], names)
    with_numpy, with_jax = both(one, x, *(more[name] for name in used))
    for expected, got in zip(with_numpy, with_jax, strict=True):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert np.allclose(got, expected, 1e-5, 1e-6, equal_nan=True)
    assert len(with_numpy[0].shape) < 2 or with_numpy[0].any()


@pytest.mark.parametrize("order", range(1, 5))
def test_polygamma_below_zero(order):
    """Far below 0, where jax's own zeta function is off by up to 30 times, the numbers are those of SciPy."""
    x = np.append(np.random.default_rng(0).uniform(-40, 3, 500), [-3, 0, -1e-6]).astype(np.float32)
    one = graph(["x"], [node("aten.polygamma.default", ["y"], n=order, self="x")], ["y"])
    with_numpy, with_jax = both(one, x)
    assert np.allclose(with_jax[0], with_numpy[0], 1e-6)


def test_zeta_where_it_is_no_number():
    """Poles are infinite, and sums that do not converge are nan, as with SciPy."""
    s, q = np.meshgrid(np.array([-2, 0, 0.5, 1, 1.5, 2], np.float32), np.array([-1, -0.5, 0, 1, 2], np.float32))
    one = graph(["s", "q"], [node("aten.special_zeta.default", ["y"], self="s", other="q")], ["y"])
    with_numpy, with_jax = both(one, s, q)
    np.testing.assert_allclose(with_jax[0], with_numpy[0], 1e-6)


def test_digamma_at_its_poles():
    """At 0 it is infinite, by the sign of the zero."""
    x = np.array([-1, -0.5, -0.0, 0.0, 2], np.float32)
    with_numpy, with_jax = both(graph(["x"], [node("aten.digamma.default", ["y"], self="x")], ["y"]), x)
    np.testing.assert_allclose(with_jax[0], with_numpy[0], 1e-6)


def test_a_mask_of_too_many_elements_is_an_error_after_the_call():
    one = graph(["x", "m", "s"], [node("aten.masked_scatter.default", ["y"], self="x", mask="m", source="s")], ["y"])
    x, source = np.zeros(5, np.float32), np.ones(2, np.float32)
    with pytest.raises(OperatorError, match="expected a mask of at most 2 elements, got more"):
        compiled(one)(x, np.ones(5, bool), source)


def test_two_inputs_that_are_one_array_share_writes():
    one = graph(["x", "y"], [node("aten.add_.Scalar", ["w"], self="x", other=1)], ["y"])
    x = np.zeros(3, np.float32)
    assert compiled(one)(x, x)[0].tolist() == [1, 1, 1]


def test_inputs_that_overlap_one_that_is_written_are_refused():
    one = graph(["x", "y"], [node("aten.add_.Scalar", ["w"], self="x", other=1)], ["y"])
    memory = np.zeros(4, np.float32)
    with pytest.raises(UnsupportedError, match="expected no tensors that share memory with one that is written"):
        compiled(one)(memory[:3], memory[1:])


@pytest.mark.parametrize("dtype", ["f4", "i8", "?"])
def test_repeated_indices_of_some_dimensions_are_added(dtype):
    """Dimensions that no index names are taken whole."""
    indices = schema.Argument(
        as_optional_tensors=[
            schema.OptionalTensorArgument(as_none=True),
            schema.OptionalTensorArgument(as_tensor=schema.TensorArgument("i")),
        ]
    )
    call = node("aten.index_put.default", ["y"], self="x", indices=indices, values="v", accumulate=True)
    x, values = (np.arange(size).reshape(shape).astype(dtype) for size, shape in [(12, (2, 6)), (8, (2, 4))])
    with_numpy, with_jax = both(graph(["x", "i", "v"], [call], ["y"]), x, np.array([0, 3, 3, 5]), values)
    assert np.array_equal(with_jax[0], with_numpy[0])


def test_indices_outside_are_an_error_of_the_node():
    """jax reads other elements in their place; the check is computed with the outputs."""
    one = graph(["w", "i"], [node("aten.embedding.default", ["y"], weight="w", indices="i")], ["y"])
    run_it = compiled(one)
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert run_it(w, np.array([2, 0]))[0].tolist() == [[4, 5], [0, 1]]
    with pytest.raises(OperatorError, match=r"\(aten.embedding.default\): expected indices below 3"):
        run_it(w, np.array([3, 0]))


def test_operators_that_jax_cannot_run_are_named_with_the_number_of_their_nodes():
    nodes = [
        node("aten.nonzero.default", ["y"], self="x"),
        node("aten.nonzero.default", ["z"], self="x"),
    ]
    with pytest.raises(
        UnsupportedError,
        match=r"operators that jax can run, got aten.nonzero.default \(2\): .* reads the numbers of a tensor$",
    ):
        compiled(graph(["x"], nodes, ["y", "z"]))(np.ones(3, np.float32))
    with pytest.raises(UnsupportedError, match=r"aten.rand_like.default \(1\).*not random"):
        compiled(graph(["x"], [node("aten.rand_like.default", ["y"], self="x")], ["y"]))(np.ones(3, np.float32))


def test_a_program_is_refused_when_the_session_is_made():
    with pytest.raises(UnsupportedError, match=r"got aten.item.default \(\d+\)"):
        session("item_symint")


def test_buffers_keep_their_mutations():
    """Each call starts from the buffers of the last, as with NumPy."""
    one, other = session("buffer_mutation"), pt2kit.Session(samples.sample("2.13.0", "buffer_mutation"))
    for seed in range(3):
        [x] = random_inputs(one.convention, seed)
        assert np.allclose(one(x), other(x), 1e-5, 1e-6)
        for name, array in other.state.items():
            assert np.allclose(one.state[name], array, 1e-5, 1e-6)


def test_other_sizes_are_traced_anew():
    one, other = session("dynamic_batch"), pt2kit.Session(samples.sample("2.13.0", "dynamic_batch"))
    for seed in range(3):
        values = random_inputs(one.convention, seed, vary=True)
        assert np.allclose(one(*values), other(*values), 1e-5, 1e-6)


def test_types_of_64_bits_leave_the_configuration_unchanged():
    x = np.array([1, 1 << 40])
    one = graph(["x"], [node("aten.mul.Scalar", ["y"], self="x", other=2)], ["y"], LONG)
    assert compiled(one)(x)[0].tolist() == [2, 1 << 41]
    assert jax.numpy.asarray(x[:1]).dtype == np.int32
    assert not jax.config.jax_enable_x64


def test_nodes_cannot_be_observed():
    one = session("mlp")
    with pytest.raises(UnsupportedError, match="expected the backend numpy"):
        one.run_leaves(random_inputs(one.convention), observe=lambda *_: None)


def test_jax_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "pt2kit.runtime.jax_engine", raising=False)
    monkeypatch.delitem(sys.modules, "pt2kit.runtime.jax_arrays", raising=False)
    with pytest.raises(UnsupportedError, match=r"expected the package jax, .*pip install 'pt2kit\[jax\]'"):
        session("mlp")


@pytest.mark.bare
def test_nothing_imports_jax_unless_it_is_asked_for():
    path = samples.sample("2.13.0", "no_inputs")
    code = f"import sys, pt2kit; pt2kit.run({str(path)!r}); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (node("aten.gelu.default", ["y"], self="x"), (150, 150)),
        (
            node("aten.view.dtype", ["y"], self="x", dtype=schema.Argument(as_scalar_type=schema.ScalarType.HALF)),
            (3, 4),
        ),
        (node("aten.view_as_complex.default", ["y"], self="x"), (3, 2)),
    ],
    ids=lambda value: value.target if hasattr(value, "target") else "",
)
def test_kernels_that_copy_what_they_read(call, shape):
    """Kernels that work on blocks, or on copies of another layout, are traced as others are."""
    x = np.random.default_rng(0).uniform(3, 9, shape).astype(np.float32)
    with_numpy, with_jax = both(graph(["x"], [call], ["y"]), x)
    assert with_jax[0].dtype == with_numpy[0].dtype
    np.testing.assert_allclose(with_jax[0], with_numpy[0], 1e-5)


def test_quantiles_that_inputs_decide():
    """The fractions may depend on inputs."""
    calls = [
        node("aten.sigmoid.default", ["q"], self="x"),
        node("aten.reshape.default", ["r"], self="q", shape=[6]),
        node("aten.quantile.default", ["y"], self="x", q="r", dim=1),
        node("aten.nanquantile.default", ["z"], self="x", q="r", interpolation=schema.Argument(as_string="lower")),
    ]
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    with_numpy, with_jax = both(graph(["x"], calls, ["y", "z"]), x)
    for expected, got in zip(with_numpy, with_jax, strict=True):
        np.testing.assert_allclose(got, expected, 1e-5)


def compute(text, arrays):
    """Run the text of a StableHLO module."""
    from jaxlib import xla_client

    device = jax.local_devices()[0]
    program = device.client.compile_and_load(text, xla_client.DeviceList((device,)), xla_client.CompileOptions())
    with jax.enable_x64(True):
        return [np.asarray(one) for one in program.execute([jax.numpy.asarray(one) for one in arrays])]


@pytest.mark.parametrize("name", ["convnet", "mlp", "sdpa", "buffer_mutation"])
def test_stablehlo_computes_the_same(name):
    """Arguments are weights, buffers and inputs as the comments list them; results are outputs and what is written."""
    one, other = session(name), pt2kit.Session(samples.sample("2.13.0", name))
    values = random_inputs(one.convention)
    text = one.stablehlo(values)
    listed = [line.split(": ", 1)[1].split(" ")[0] for line in text.splitlines() if line.startswith("// %arg")]
    named = dict(one.state) | {
        spec.argument.as_tensor.name: value for spec, value in zip(one.inputs, values, strict=True)
    }
    results = compute(text, [named[argument] for argument in listed])
    expected = other(*values)
    assert np.allclose(results[0], expected if isinstance(expected, np.ndarray) else expected[0], 1e-5, 1e-6)
    written = [line.split(": ")[1].removesuffix(" after the call") for line in text.splitlines() if "after the" in line]
    for place, target in enumerate(written, len(results) - len(written)):
        assert np.allclose(results[place], other.state[target], 1e-5, 1e-6)


def test_convert_writes_stablehlo(tmp_path):
    """Sizes are those of the export, or of --at; the same file gives the same text."""
    path, out = samples.sample("2.13.0", "dynamic_batch"), tmp_path / "model.mlir"
    assert pt2("convert", str(path), "--to", "stablehlo", "-o", str(out), fresh=True).code == 0
    assert "module @" in out.read_text()
    [symbol] = session("dynamic_batch").convention.ranges
    for _ in range(2):
        assert pt2("convert", str(path), str(out), "--to", "stablehlo", "--at", f"{symbol}=9", fresh=True).code == 0
    assert "float32[9, " in out.read_text()
    assert "tensor<9x" in out.read_text()


def test_convert_to_stablehlo_refuses_what_it_does_not_do(tmp_path):
    path = str(samples.sample("2.13.0", "item_symint"))
    refused = pt2("convert", path, str(tmp_path / "x.mlir"), "--to", "stablehlo", fresh=True)
    assert refused.code == 2
    assert "aten.item.default" in refused.err
    assert not (tmp_path / "x.mlir").exists()
    assert "--to" in pt2("convert", path, str(tmp_path / "x"), "--to", "stablehlo", "--json", fresh=True).err
    assert "--at" in pt2("convert", path, str(tmp_path / "x"), "--target", "8.7", "--at", "s0=3", fresh=True).err


def test_run_takes_the_backend():
    found = pt2("run", str(samples.sample("2.13.0", "mlp")), "--random", "--backend", "jax", "--json", fresh=True)
    assert found.code == 0
    assert json.loads(found.out)["outputs"][0]["dtype"] == "float32"


@pytest.mark.parametrize("name", ["float8", "intx", "int8_dynamic"])
def test_weights_of_torchao(name):
    """Programs take their inner tensors, and torchao's operators are traced."""
    path = samples.DATA / "torchao" / f"{name}.pt2"
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    np.testing.assert_allclose(pt2kit.Session(path, backend="jax")(x), pt2kit.run(path, x), rtol=1e-5, atol=1e-6)


def test_inputs_are_checked_as_with_numpy():
    with pytest.raises(InputError, match="expected float32, got float64"):
        session("mlp")(np.zeros((4, 8)))
