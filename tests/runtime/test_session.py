"""Sessions: state, checks of inputs, containers, random operators, and what they refuse by name."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests import samples
from tests.checks.mutations import call, tensor
from tests.packages import edited
from tests.threads import in_threads

import pt2kit
from pt2kit import schema
from pt2kit.errors import ArchiveError, GraphError, InputError, LimitError, OperatorError, Pt2Error, UnsupportedError
from pt2kit.runtime.arrays import BFLOAT16, cast, joined_type, result_type
from pt2kit.runtime.inputs import Convention, InputSpec, random_inputs
from pt2kit.runtime.session import RunLimits, as_recorded, output_leaves, read_outputs, write_outputs
from pt2kit.runtime.table import find_kernel, register, unregister
from pt2kit.symbols.dialects import parse_size


def session(name, release="2.13.0", **options):
    return pt2kit.Session(samples.sample(release, name), **options)


def drawn(one, seed=0):
    return random_inputs(one.convention, seed)


def test_one_call_is_a_session_used_once():
    path = samples.sample("2.13.0", "mlp")
    [x] = drawn(pt2kit.Session(path))
    assert np.array_equal(pt2kit.run(path, x), pt2kit.Session(path)(x))


def test_buffers_keep_their_mutations():
    """Each call starts from the buffers of the last; another session starts from those of the file."""
    one = session("buffer_mutation")
    [x] = drawn(one)
    before = {name: array.copy() for name, array in one.state.items()}
    one(x)
    first = {name: array.copy() for name, array in one.state.items()}
    one(x)
    assert any(not np.array_equal(first[name], before[name]) for name in before)
    assert any(not np.array_equal(first[name], one.state[name]) for name in before)
    assert all(np.array_equal(session("buffer_mutation").state[name], before[name]) for name in before)


def test_parameters_keep_what_calls_write_to_them():
    """A parameter that a call writes to, directly or through a view, is a copy of the file's; others are not copied."""

    def change(tree):
        graph = tree["graph_module"]["graph"]
        weight = graph["tensor_values"]["p_0_weight"]
        graph["tensor_values"] |= {"halved": weight, "p_2_view": graph["tensor_values"]["p_2_bias"]}
        graph["tensor_values"]["view_halved"] = graph["tensor_values"]["p_2_bias"]
        graph["nodes"][:0] = [
            call("torch.ops.aten.div_.Scalar", "halved", self=tensor("p_0_weight"), other={"as_int": 2}),
            call("torch.ops.aten.detach.default", "p_2_view", self=tensor("p_2_bias")),
            call("torch.ops.aten.div_.Scalar", "view_halved", self=tensor("p_2_view"), other={"as_int": 2}),
        ]

    one = pt2kit.Session(edited(samples.sample("2.13.0", "mlp"), change))
    before = {name: array.copy() for name, array in one.state.items()}
    for _ in range(2):
        one(*drawn(one))
    for name, share in (("0.weight", 4), ("2.bias", 4), ("0.bias", 1), ("2.weight", 1)):
        assert np.array_equal(one.state[name], before[name] / share)
    assert not one.state["2.weight"].flags.writeable


def test_groups_of_transformers():
    """Rows of each group are multiplied by a matrix of their own; rows behind the last group are 0."""
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(6, 4)).astype(np.float32), rng.normal(size=(3, 4, 5)).astype(np.float32)
    kernel = find_kernel("transformers.grouped_mm_fallback.default")
    assert kernel is not None
    result = kernel(input=x, weight=weight, offs=np.array([2, 2, 5]))
    expected = np.concatenate([x[:2] @ weight[0], x[2:5] @ weight[2], np.zeros((1, 5), np.float32)])
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("mapping", "scales", "zeros", "integers"),
    [
        ("SYMMETRIC", [[0.2001953125, 0.400390625], [0.80078125, 0.1337890625]], 0, [[7, -1, 7, 1], [-8, 0, 6, -7]]),
        (
            "SYMMETRIC_NO_CLIPPING_ERR",
            [[0.2138671875, 0.427734375], [0.75, 0.125]],
            0,
            [[7, -1, 7, 1], [-8, 0, 6, -8]],
        ),
        (
            "ASYMMETRIC",
            [[0.11669921875, 0.2001953125], [0.400390625, 0.11669921875]],
            [[-6, -8], [7, 1]],
            [[7, -8, 7, -6], [-8, 7, 7, -8]],
        ),
    ],
)
def test_operators_of_torchao(mapping, scales, zeros, integers):
    """The numbers are those of torchao 0.18, which rounds each step to bfloat16."""
    names = ("choose_qparams", "quantize", "dequantize")
    kernels: list[Any] = [find_kernel(f"torchao.{name}_affine.default") for name in names]
    choose, quantize, dequantize = kernels
    x = np.array([[1.5, -0.25, 3, 0.5], [-6, 0, 0.75, -1]], BFLOAT16)
    rest = {"block_size": [1, 2], "quant_min": -8, "quant_max": 7}
    scale, zero = choose(input=x, mapping_type=mapping, target_dtype=np.dtype("int8"), **rest)
    assert scale.astype(float).tolist() == scales
    assert np.array_equal(zero, np.broadcast_to(zeros, (2, 2)))
    q = quantize(input=x, scale=scale, zero_point=zero, output_dtype=np.dtype("int8"), **rest)
    assert q.tolist() == integers
    back = dequantize(
        input=q, scale=scale, zero_point=zero, input_dtype=q.dtype, output_dtype=np.dtype("float32"), **rest
    )
    blocks = np.reshape(integers, (2, 2, 2)) - np.broadcast_to(zeros, (2, 2))[..., None]
    assert np.array_equal(back, np.float32(blocks * np.array(scales)[..., None]).reshape(2, 4))
    with pytest.raises(Pt2Error, match="blocks that divide"):
        quantize(input=x, scale=scale, zero_point=zero, output_dtype=np.dtype("int8"), block_size=[1, 3])


@pytest.mark.parametrize(("name", "tolerance"), [("float8", 1e-6), ("intx", 1e-6), ("int8_dynamic", 4e-3)])
def test_weights_of_torchao_are_read_by_their_parts(name, tolerance):
    """They are state under names of their own, and weights in the cost of the program."""
    path = samples.DATA / "torchao" / f"{name}.pt2"
    one = pt2kit.Session(path)
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    expected = x @ np.load(path.with_suffix(".npy")).T + one.state["lin.bias"]
    assert np.abs(one(x) - expected).max() < tolerance
    assert {"lin.weight.qdata", "lin.weight.scale"} < one.state.keys()
    assert "lin.weight" not in one.state
    assert pt2kit.cost(path).weights == sum(array.nbytes for array in one.state.values())


def test_outputs_are_not_changed_by_later_calls():
    one = session("buffer_mutation")
    [x] = drawn(one)
    outputs = np.atleast_1d(one(x))
    kept = outputs.copy()
    one(x)
    assert np.array_equal(outputs, kept)


def test_threads_share_a_session():
    """Calls wait for each other, so that none of the counts of a buffer is lost."""
    one = session("buffer_mutation")
    [x] = drawn(one)
    in_threads(lambda _: [one(x) for _ in range(10)], range(8))
    alone = session("buffer_mutation")
    for _ in range(80):
        alone(x)
    assert all(np.array_equal(one.state[name], array) for name, array in alone.state.items())


def test_a_call_within_a_call():
    """An observer, or a handler of a signal, may call the session that is running."""
    one = session("mlp")
    values = drawn(one)
    inner = []
    one.run_leaves(values, lambda *_: inner.append(one.run_leaves(values)))
    assert np.array_equal(inner[0], one.run_leaves(values))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_during_a_call():
    """The child of a fork can call a session that another thread was running."""
    one = session("mlp")
    values = drawn(one)
    opened, done = threading.Event(), threading.Event()

    def hold(*_):
        opened.set()
        done.wait()

    holder = threading.Thread(target=one.run_leaves, args=(values, hold))
    holder.start()
    opened.wait()
    child = os.fork()
    if not child:
        signal.alarm(60)  # without a handler: it ends a child that waits
        one.run_leaves(values)
        os._exit(0)
    done.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0


def test_sessions_are_not_pickled():
    """Pickling says what to do instead, as for processes that are spawned."""
    with pytest.raises(TypeError, match=r"got a Session: pass the path of its file on and make another one there"):
        pickle.dumps(session("mlp"))


def test_inputs_that_are_written_are_the_callers():
    """As in torch, a program that writes to an input changes the array of the caller; a read-only one is refused."""
    one = session("input_mutation")
    values = drawn(one)
    before = [value.copy() for value in values]
    one(*values)
    assert any(not np.array_equal(value, old) for value, old in zip(values, before, strict=True))
    for value in values:
        value.setflags(write=False)
    with pytest.raises(Pt2Error, match="written to"):
        one(*values)


class Unreadable:
    """An array of another library that gives no numbers, as tensors of torch that require gradients."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no numbers")


def test_inputs_of_other_structures_are_refused():
    one = session("dynamic_batch")
    x = np.zeros((3, 8), np.float32)
    cases = [
        ((), {}, r"expected 1 positional argument \(x\), got 0"),
        ((x, x), {}, "expected 1 positional argument"),
        ((x,), {"x": x}, "expected the keyword arguments none, got x"),
        ((x,), {"y": x}, "expected the keyword argument"),
        (([x],), {}, "expected an array, got a list of 1"),
        ((x.astype(np.float64),), {}, "expected float32, got float64; convert it"),
        ((x[0],), {}, r"expected 2 dimensions, got 1"),
        ((Unreadable(),), {}, "expected an array, got an? Unreadable: no numbers"),
        ((x[:, :7],), {}, "size of dimension 1: expected 8, as it was exported, got 7"),
    ]
    for args, kwargs, message in cases:
        with pytest.raises(InputError, match=message):
            one(*args, **kwargs)


def test_sizes_beyond_the_declared_range_are_refused():
    one = session("dynamic_batch")
    most = max(most for _, most in one.convention.ranges.values() if most is not None)
    with pytest.raises(InputError, match="of at most"):
        one(np.zeros((most + 1, 8), np.float32))


def test_equal_symbols_have_equal_sizes():
    """Sizes that are expressions of the same symbol have to agree."""
    one = session("dynamic_auto")
    values = drawn(one, 3)
    sizes = {name for spec in one.inputs for size in spec.sizes for name in [str(size)] if not isinstance(size, int)}
    assert sizes
    one.run_leaves(values)


@pytest.mark.parametrize(("arm", "value"), [("as_int", 3), ("as_float", 2.5), ("as_bool", True)])
def test_constants_may_be_numbers_of_numpy(arm, value):
    """As `load_module` accepts them; another number is refused."""
    convention = Convention(None, None, (), {}, (InputSpec("n", schema.Argument(**{arm: value})),), {}, ())
    assert convention.checked([np.asarray(value)[()]]) == [value]
    with pytest.raises(InputError, match="as it was exported"):
        convention.checked([np.int64(7)])


def test_large_numbers_are_solved_exactly():
    """A number that is declared as an expression may be larger than what floats hold exactly."""
    argument = schema.Argument(as_sym_int=schema.SymIntArgument(as_name="n"))
    spec = InputSpec("n", argument, numbers=(parse_size("2*s0"),), hints=(None,))
    convention = Convention(None, None, (), {}, (spec,), {}, ())
    assert convention.checked([2**60 + 2]) == [2**60 + 2]


def test_containers_go_in_and_come_out():
    """Named tuples of classes that are not there become placeholders with the same fields."""
    one = session("namedtuple_io")
    values = drawn(one)
    result = one.run_leaves(values)
    assert type(result)._fields == ("a", "b")
    assert np.array_equal(one(p=type(result)(*values)).a, result.a)
    with pytest.raises(InputError, match=r"input p: expected corpus.NT, got tuple"):
        one(tuple(values))


@pytest.mark.parametrize("name", ["dtypes", "float8", "uint16_dtype"])
def test_outputs_are_compared_with_their_records(name, tmp_path):
    """Types that NumPy's files lack are stored as bits, None as an empty text."""
    one = session(name)
    values = drawn(one)
    outputs = output_leaves(one.run_leaves(values))
    write_outputs(outputs, str(tmp_path))
    compared = pt2kit.compare_runs(samples.sample("2.13.0", name), read_outputs(str(tmp_path)), leaves=values)
    assert len(compared.outputs) == len(outputs)
    assert not any(error.exceeds for error in compared.outputs)


def test_records_of_other_values():
    write = np.asarray
    assert [as_recorded(write(text), value) for text, value in (("", None), ("", ""), ("a", "a"))] == [None, "", "a"]
    assert as_recorded(3, 3) == 3
    assert as_recorded(np.array([0x4080], np.uint16), np.zeros(1, BFLOAT16)).tolist() == [4]


@pytest.mark.parametrize(
    ("value", "got"), [(5.5, "the number 5.5"), (np.zeros(2), "a ndarray"), ("5", "the string '5'")]
)
def test_sizes_are_integers(value, got):
    argument = schema.Argument(as_sym_int=schema.SymIntArgument(as_name="n"))
    convention = Convention(None, None, (), {}, (InputSpec("n", argument, numbers=(parse_size("s0"),)),), {}, ())
    with pytest.raises(InputError, match=f"input n: expected an integer, got {got}"):
        convention.checked([value])


def test_no_sizes_for_unknown_symbols():
    with pytest.raises(InputError, match="symbols: expected one of s77, got s0"):
        random_inputs(session("dynamic_batch").convention, sizes={"s0": 3})


def test_seeds_are_not_negative():
    with pytest.raises(UnsupportedError, match="seed: expected a number of at least 0, got -1"):
        session("mlp", seed=-1)


def test_random_operators_follow_the_seed():
    path = samples.sample("2.13.0", "dropout_train")
    [x] = drawn(pt2kit.Session(path))
    outputs = [pt2kit.Session(path, seed=seed)(x)[0] for seed in (1, 1, 2)]
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


def test_random_inputs_fit_every_program():
    """Inputs that are drawn within the declared ranges are accepted, for each seed, with other sizes, too."""
    for name in ("mlp", "dynamic_two_dims", "sym_ops", "embedding_lstm", "kwargs_and_nested_inputs", "scalar_inputs"):
        one = session(name)
        for seed in range(3):
            assert len(random_inputs(one.convention, seed)) == len(one.inputs)
            random_inputs(one.convention, seed, vary=True)


def test_missing_operators_are_listed_with_counts():
    with pytest.raises(UnsupportedError, match=r"corpus.addmul.default \(3\).*pt2kit.runtime.register"):
        session("custom_op")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda **_: None, r"expected a result of sizes \[3, 4\] of the kernel, got None"),
        (lambda x, **_: x[:2], r"expected a result of sizes \[3, 4\] of the kernel, got \[2, 4\]"),
        (lambda x, **_: x.sum(), r"expected a result of sizes \[3, 4\] of the kernel, got \[\]"),
        (lambda x, y, **_: [x, y], "expected 1 result of the kernel, got 2"),
    ],
)
def test_results_of_registered_kernels_are_those_declared(kernel, message):
    """A kernel of a user that forgets its result, or returns another one, is an error at the node that calls it."""
    register("corpus::addmul", kernel)
    try:
        with pytest.raises(OperatorError, match=rf"node addmul \(corpus.addmul.default\): {message}"):
            session("custom_op")(*(np.ones([3, 4], np.float32),) * 2)
    finally:
        unregister("corpus::addmul")


def test_programs_and_backends_are_chosen_by_name():
    with pytest.raises(ArchiveError, match="expected a program, one of"):
        session("mlp", model="other")
    with pytest.raises(UnsupportedError, match="backend: expected numpy"):
        session("mlp", backend="tpu")
    path = samples.sample("2.13.0", "multi_model_package")
    with pt2kit.open(path) as package:
        for model in package.programs:
            one = pt2kit.Session(package, model=model)
            one.run_leaves(drawn(one))


def test_arrays_are_limited():
    one = session("convnet", limits=RunLimits(max_bytes=64))
    with pytest.raises(LimitError, match="expected a result of at most 64 bytes"):
        one.run_leaves(drawn(session("convnet")))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float8_e4m3fn", [448, 448, -448, 448, 416]),
        ("float8_e5m2", [448, np.inf, -np.inf, 1024, 448]),
        ("float8_e4m3fnuz", [np.nan] * 5),
        ("float8_e5m2fnuz", [448, np.nan, np.nan, 1024, 448]),
    ],
)
def test_numbers_beyond_an_8_bit_type(name, expected):
    """float8_e4m3fn has no infinity: torch 2.13 stores its greatest number."""
    found = cast(np.array([464, np.inf, -70000, 1000, 430], np.float32), np.dtype(name))
    np.testing.assert_array_equal(found.astype(np.float32), expected)
    assert np.isnan(cast(np.array([np.nan], np.float32), np.dtype(name)).astype(np.float32))


def test_promotion_is_torchs():
    """Integers never widen floats; a Python number or a tensor without dimensions counts by its category alone."""
    half, single, byte = np.dtype("float16"), np.dtype("float32"), np.dtype("uint8")
    assert joined_type([np.zeros(1, np.int64), np.zeros((), half)]) == half
    assert joined_type([np.zeros(1, half), np.zeros(1, ml_dtypes.bfloat16)]) == single
    assert joined_type([np.zeros(1, byte), np.zeros(1, np.int8)]) == np.int16
    assert result_type(np.zeros(2, half), np.zeros((), np.float64)) == half
    assert result_type(np.zeros(2, byte), 300) == byte
    assert result_type(np.zeros(2, byte), 0.5) == single
    assert result_type(np.zeros(2, np.float64), 1j) == np.complex128


@pytest.mark.parametrize("number", [{}, {"as_sym_int": {"as_name": "n"}}], ids=["tensor", "number"])
def test_inputs_without_a_description(number):
    """An input that no value table has ends in one error."""

    def change(tree):
        module = tree["graph_module"]
        module["graph"]["tensor_values"].clear()
        if number:
            module["graph"]["inputs"][-1] = number
            module["signature"]["input_specs"][-1] = {"user_input": {"arg": number}}

    with pytest.raises(GraphError, match=f"in {'sym_int' if number else 'tensor'}_values, got none"):
        pt2kit.Session(edited(samples.sample("2.13.0", "mlp"), change))


@pytest.mark.parametrize("case", samples.hostile(), ids=lambda case: case["file"])
def test_hostile_files_end_in_an_error_of_ours(case):
    """A hostile file runs within its limits, or ends in one error of ours."""
    try:
        with pt2kit.open(case["path"]) as package:
            for model in package.layout.models:
                one = pt2kit.Session(package, model=model, limits=RunLimits(1 << 28, 5))
                one.run_leaves(drawn(one))
    except (Pt2Error, OSError):
        pass


@pytest.mark.parametrize("names", [["output_1"], ["output_0", "output_2"], ["result"], []])
def test_recorded_outputs_are_numbered_from_0(tmp_path, names):
    """A file with other names is refused; the message has them."""
    path = tmp_path / "outputs.npz"
    arrays: dict[str, Any] = {name: np.zeros(2) for name in names}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=f"expected output_0, output_1, …, got {', '.join(names) or 'none'}"):
        read_outputs(str(path))
    np.savez(path, output_1=np.ones(2), output_0=np.zeros(2))
    assert [array.sum() for array in read_outputs(str(path))] == [0, 2]
