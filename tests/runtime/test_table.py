"""The table of kernels: each is an overload that some release has, and accepts the parameters of its schema."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import sys

import numpy as np
import pytest

from pt2kit import operators
from pt2kit.errors import LimitError, OperatorError, UnsupportedError
from pt2kit.runtime.arrays import RUNNING, Running
from pt2kit.runtime.table import (
    WITHOUT_EFFECT,
    binding,
    find_kernel,
    mutated_by,
    parameter_name,
    register,
    supported,
    unregister,
)
from pt2kit.schema.operators import find_operator, known_releases

COMPLETE = ("aten", "prims", "quantized_decomposed")
NOT_PASSED = ("result", "results", "release")
"""Parameters of kernels that get what the rule of their operator computes, and the release of torch."""


def received(kernel, schema, *args, **named):
    """The arguments that a kernel gets in a call, by place and by name; they need not be those of tensors."""
    signature = inspect.signature(kernel)
    plain = [one for name, one in signature.parameters.items() if name not in NOT_PASSED]
    record = functools.wraps(kernel)(lambda *args, **named: ([*args], named))
    vars(record)["__signature__"] = signature.replace(parameters=plain)
    return binding(record, dataclasses.replace(schema, name="no.rule.default"))(*args, **named)


def newest_schema(name):
    return next((found for release in reversed(known_releases()) if (found := find_operator(name, release))), None)


def test_there_are_nine_hundred_kernels():
    assert len(supported()) > 900


@pytest.mark.parametrize("name", [name for name in supported() if name.split(".")[0] in COMPLETE])
def test_kernels_have_the_parameters_of_their_schemas(name):
    """A kernel accepts a call with every parameter of the newest schema, and one with the required ones only."""
    schema = newest_schema(name)
    assert schema is not None, "no release of torch has this overload"
    kernel = find_kernel(name)
    assert kernel is not None
    required = [key for key, one in schema.parameters.items() if one.is_required]
    for names in (required, schema.parameters):
        given, named = received(kernel, schema, **{parameter_name(key): key for key in names})
        computed = {key: key for key in NOT_PASSED if key in inspect.signature(kernel).parameters}
        inspect.signature(kernel).bind(*given, **named, **computed)
    assert [*given, *named.values()] == [*dict.fromkeys([*given, *named.values()])]
    assert {*schema.parameters} - {*given, *named.values()} <= WITHOUT_EFFECT


SAME = {
    "contiguous.default memory_format",  # a number of torch, of the only format that a dense array has
    "linalg_norm.ord_str dim",  # of a matrix, whose dimensions these are
    "linalg_vector_norm.default ord",
    *(
        f"{name}.{overload} unbiased"
        for name in ("var", "std", "var_mean", "std_mean")
        for overload in ("default", "dim")
    ),
}
"""Defaults that say the same in another form."""


def normal(default):
    """A default in the form in which defaults are compared: numbers and lists of one alike, empty lists as None."""
    values = [*default] if isinstance(default, list | tuple) else [default]
    return None if not values else tuple(values) if len(values) > 1 else values[0]


def test_own_defaults_are_those_of_the_schema():
    """An argument that a call leaves out has the schema's default, also where the kernel has a default of its own."""
    compared = 0
    for name in supported():
        schema = newest_schema(name)
        parameters = {} if schema is None else {parameter_name(key): one for key, one in schema.parameters.items()}
        kernel = find_kernel(name)
        assert kernel is not None
        for key, own in inspect.signature(kernel).parameters.items():
            is_number = key == "dtype"  # in the numbers of torch, and the caller casts the result
            if own.default is own.empty or key not in parameters or parameters[key].is_required or is_number:
                continue
            compared += 1
            if f"{name.partition('.')[2]} {key}" not in SAME:
                stated = ast.literal_eval(parameters[key].default)
                assert normal(own.default) == pytest.approx(normal(stated)), f"{name}: {key}"
    assert compared > 250


def test_defaults_come_from_the_schema():
    """Arguments that a call leaves out have the schema's defaults; those without effect are left out."""
    schema = newest_schema("aten.topk.default")
    assert schema is not None
    given, named = received(lambda self, k, dim, largest: None, schema, "x", k=2, sorted=False)
    assert (given, named) == ([], {"self": "x", "k": 2, "dim": -1, "largest": True})
    given, named = received(lambda x, k, dim, largest: None, schema, self="x", k=2)
    assert (given, named) == (["x"], {"k": 2, "dim": -1, "largest": True})
    given, named = received(lambda x, count, dim, largest: None, schema, self="x", k=2)
    assert (given, named) == (["x", 2], {"dim": -1, "largest": True})


@pytest.mark.parametrize(
    "name",
    [
        "aten.add_.Tensor",
        "aten.permute_copy.default",
        "aten.absolute.default",
        "aten.clip_.default",
        "aten.arctan2.default",
        "aten._linalg_eigvals.default",
    ],
)
def test_kernels_are_derived(name):
    """In-place operators, copies of views and other names of an operator need no kernels of their own."""
    assert find_kernel(name) is not None
    assert name not in supported()


@pytest.mark.parametrize("name", ["aten.no_such.default", "nobody.op.default", "os.system", "aten.add.Nothing", ""])
def test_unknown_operators_have_none(name):
    assert find_kernel(name) is None


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("split.Tensor", [1]),
        ("split.sizes", [[1] * 5000]),
        ("chunk.default", [5000]),
        ("unbind.int", []),
        ("tensor_split.sections", [5000]),
    ],
)
def test_tensors_are_divided_into_any_number(name, parameters):
    """The rules of results know the first 4096."""
    kernel = find_kernel(f"aten.{name}")
    assert kernel is not None
    run = binding(kernel, newest_schema(f"aten.{name}"))
    assert len(run(np.zeros((5000, 3)), *parameters)) == 5000
    if name == "chunk.default":
        assert len(run(np.zeros((0, 3)), *parameters)) == 5000


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("aten.add.Tensor", "other"),
        ("aten.triplet_margin_loss.default", "positive"),
        ("aten.convolution.default", "padding"),
        ("aten.avg_pool2d_backward.default", "ceil_mode"),
    ],
)
def test_arguments_without_a_default_are_needed(name, missing):
    """The kernel itself is not called, also if it passes the argument on by its name, or has no use for it."""
    kernel, schema = find_kernel(name), newest_schema(name)
    assert kernel is not None
    given = {key: np.ones(3) for key, one in schema.parameters.items() if one.is_required and key != missing}
    with pytest.raises(OperatorError, match=f"expected the arguments {missing}, got none of that name"):
        binding(kernel, schema)(**given)


@pytest.mark.parametrize("name", ["aten.relu.default", "aten.max_pool2d.default", "aten.conv2d.default"])
def test_arguments_that_the_operator_lacks_are_refused(name):
    """Also by kernels that pass arguments on by their names, or have no use for some."""
    kernel, schema = find_kernel(name), newest_schema(name)
    assert kernel is not None
    given = {key: np.ones((1, 1, 3, 3)) for key, one in schema.parameters.items() if one.is_required}
    with pytest.raises(OperatorError, match=f"expected arguments of {name}, got 'bogus'"):
        binding(kernel, schema)(**given, bogus=1)


def test_a_kernel_is_checked_by_the_limit_of_each_call():
    """Sessions share bound kernels: a call that one may make is not one that another with less memory may make."""
    kernel = find_kernel("aten.add.Tensor")
    assert kernel is not None
    add = binding(kernel, newest_schema("aten.add.Tensor"))
    x = np.ones(1000, np.float32)
    for limit in (4000, 3999, 4000):
        token = RUNNING.set(Running(limit))
        try:
            if limit < x.nbytes:
                with pytest.raises(LimitError, match="expected a result of at most 3,999 bytes, got 4,000"):
                    add(x, x)
            else:
                assert add(x, x).sum() == 2000
        finally:
            RUNNING.reset(token)


def test_registering_a_kernel():
    """A custom operator is found under its default overload, with what it writes to, until it is unregistered."""

    @register("mine::twice", mutates=["x"])
    def twice(x):
        x *= 2

    try:
        found = find_kernel("mine.twice.default")
        assert found is not None
        assert found is twice
        assert mutated_by(found) == ("x",)
    finally:
        unregister("mine::twice")
    assert find_kernel("mine.twice.default") is None


def test_name_of_a_registered_kernel():
    """The name of an overload as nodes have it means the same as that of its schema."""
    register("mine.twice.default", abs)
    assert find_kernel("mine.twice.default") is abs
    unregister("mine::twice")
    assert find_kernel("mine.twice.default") is None


@pytest.mark.parametrize("name", ["twice", "mine::", "::twice", "a b::c", "a::b-c"])
@pytest.mark.parametrize("add", [register, operators.register])
def test_registering_needs_a_name(add, name):
    """A kernel or a row is for an operator, so that another name is refused."""
    with pytest.raises(OperatorError, match="expected a name such as 'corpus::addmul', got"):
        add(name, len)


@pytest.mark.parametrize("name", ["aten.feature_dropout.default", "aten.feature_alpha_dropout.default"])
def test_dropout_of_features_drops_whole_channels(name):
    """All elements of a channel are kept, or none."""
    kernel = find_kernel(name)
    assert kernel is not None
    channels = kernel(input=np.ones((4, 8, 5), np.float32), p=0.5, train=True).reshape(32, 5)
    assert np.all(channels == channels[:, :1])
    assert len(np.unique(channels[:, 0])) == 2


@pytest.mark.parametrize("kind", ["dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"])
def test_dropout_of_all_elements(kind):
    """As torch, a probability of 1 multiplies by 0, whatever the kind; one beyond is refused."""
    kernel = find_kernel(f"aten.{kind}.default")
    assert kernel is not None
    given = np.array([[1, -2, np.inf, np.nan]], np.float32)
    with np.errstate(invalid="ignore"):
        found = kernel(input=given, p=1.0, train=True)
    assert np.array_equal(found, [[0, 0, np.nan, np.nan]], equal_nan=True)
    with pytest.raises(OperatorError, match=r"expected a probability of 0 to 1, got 1\.5"):
        kernel(input=given, p=1.5, train=True)


@pytest.mark.parametrize(
    "name", [f"aten.{name}.default" for name in ("igamma", "special_bessel_j0", "digamma", "erfinv")]
)
def test_kernels_that_need_scipy_name_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    kernel = find_kernel(name)
    assert kernel is not None
    with pytest.raises(UnsupportedError, match="expected the package scipy, which is not installed: pip install"):
        kernel(np.ones(2, np.float32))


@pytest.mark.parametrize(("release", "expected"), [("2.13", [1]), ("2.14", [1, 2]), ("", [1, 2])])
def test_kernels_that_depend_on_the_release(release, expected):
    """Releases before 2.14 cut the ends of a range of integers before they count."""
    kernel, schema = find_kernel("aten.arange.start"), newest_schema("aten.arange.start")
    assert kernel is not None
    assert binding(kernel, schema, release)(1, 2.75, dtype=np.dtype("int64")).tolist() == expected
