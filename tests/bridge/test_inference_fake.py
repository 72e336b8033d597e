"""What inference says of a call is what torch's fake tensors say of it, for every operator that it knows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from benchmarks.bench_edit import chain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

import pt2kit
from pt2kit import schema
from pt2kit.bridge.scalars import DTYPES
from pt2kit.editing import tensor_meta
from pt2kit.editing.inference import RULES
from pt2kit.errors import GraphError

CRASHES = {"aten.embedding.default"}
"""torch ends the process where a weight has not two dimensions."""
OPERATORS = sorted(name for name in RULES if name.startswith("aten.") and name not in CRASHES)
TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]
SHORT = {
    torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64",
    torch.int32: "i32", torch.uint8: "u8", torch.bool: "b8",
}  # fmt: skip
BASE = (2, 3, 4)
"""Shapes are made of the end of this one, so that tensors often fit each other."""


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """A tensor on the meta device: row-major, transposed, or repeated."""
    rank = draw(st.integers(0, 3))
    sizes = [draw(st.sampled_from([size, size, size, 1, 0])) for size in BASE[3 - rank :]]
    if draw(st.booleans()) and rank == 2:
        sizes[-1] = sizes[-2]  # square, for products
    made = torch.empty(sizes, dtype=draw(st.sampled_from(TYPES)), device="meta")
    how = draw(st.sampled_from(["as it is", "as it is", "transposed", "repeated"]))
    if how == "transposed" and rank >= 2:
        made = made.transpose(draw(st.integers(0, rank - 1)), draw(st.integers(0, rank - 1)))
    if how == "repeated" and rank:
        made = made[..., :1].expand(sizes) if sizes[-1] else made
    return made


def argument(parameter: Any) -> st.SearchStrategy[Any]:
    """Something for a parameter of an operator's schema."""
    text = str(parameter.real_type)
    if text.endswith("?"):
        return st.none() | of_type(text[:-1], parameter.name)
    return of_type(text, parameter.name)


def of_type(text: str, name: str) -> st.SearchStrategy[Any]:
    """Something of a type of the schema language."""
    numbers = st.integers(-3, 4)
    if text.startswith(("List[", "Optional[")):
        inner = of_type(text[text.index("[") + 1 : -1], name)
        return st.none() | inner if text.startswith("Optional[") else st.lists(inner, max_size=4)
    return {
        "Tensor": tensors(),
        "int": numbers,
        "SymInt": numbers,
        "float": st.sampled_from([0.0, 0.5, 1.0]),
        "number": st.sampled_from([0, 2, -1, 0.5, True]),
        "Scalar": st.sampled_from([0, 2, -1, 0.5, True]),
        "bool": st.booleans(),
    }.get(text, st.none())


@st.composite
def calls(draw: st.DrawFn, parameters: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call: those without a default, and some of the others."""
    args, kwargs = [], {}
    for parameter in parameters:
        text = str(parameter.type)
        if parameter.has_default_value() and draw(st.booleans()):
            if not parameter.kwarg_only:
                break
            continue
        if parameter.name == "dtype" or text == "Optional[ScalarType]":
            value: Any = draw(st.none() | st.sampled_from(TYPES))
        else:
            value = draw(of_type(text, parameter.name))
        if parameter.kwarg_only:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return args, kwargs


def named(editor: Any, value: Any) -> Any:
    """An argument as the editor takes it: tensors become inputs of the program."""
    if isinstance(value, torch.Tensor):
        meta = tensor_meta(SHORT[value.dtype], list(value.shape), strides=list(value.stride()))
        return editor.add_input(editor.graph.unique("t"), meta)
    if isinstance(value, list):
        return [named(editor, one) for one in value]
    return SHORT[value] if isinstance(value, torch.dtype) else value


def described(meta: Any) -> Any:
    """A stated tensor as type, sizes and strides; strides of dimensions of one element or none do not matter."""
    if isinstance(meta, schema.SymInt):
        return meta.as_int
    sizes = [size.as_int for size in meta.sizes]
    strides = [stride.as_int for stride in meta.strides]
    return DTYPES[meta.dtype], sizes, _that_matter(sizes, strides)


def _that_matter(sizes: list[int], strides: list[int]) -> list[int]:
    return [] if 0 in sizes else [step for size, step in zip(sizes, strides, strict=True) if size != 1]


def said(found: Any) -> list[Any]:
    """What torch made, in the same words."""
    listed = list(found) if isinstance(found, tuple | list) else [] if found is None else [found]
    if any(isinstance(one, int) for one in listed):
        return listed
    return [(one.dtype, list(one.shape), _that_matter(list(one.shape), list(one.stride()))) for one in listed]


@pytest.mark.parametrize("name", OPERATORS)
def test_inference_agrees_with_fake_tensors(name: str) -> None:
    """Where torch makes a result and inference says what it is like, both say the same."""
    target: Any = torch.ops
    for part in name.split("."):
        target = getattr(target, part)
    program = chain(1)

    @settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(calls(target._schema.arguments))
    def compare(call: tuple[list[Any], dict[str, Any]]) -> None:
        args, kwargs = call
        editor = pt2kit.edit(program)
        try:
            node = editor.graph.append(
                name, *(named(editor, one) for one in args), **{key: named(editor, one) for key, one in kwargs.items()}
            )
        except GraphError:
            return  # not inferred, or arguments that do not fit
        with FakeTensorMode(allow_non_fake_inputs=True):
            try:
                made = target(*map(on_cpu, args), **{key: on_cpu(one) for key, one in kwargs.items()})
            except Exception:  # noqa: BLE001 whatever an operator raises
                return  # torch refuses the call: there is nothing to agree on
        assert [described(value.meta) for value in node.outputs] == said(made)

    compare()


def on_cpu(value: Any) -> Any:
    """An argument for torch: tensors on the CPU, where the program says that its inputs are."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    return [on_cpu(one) for one in value] if isinstance(value, list) else value
