"""The views of a signature, its order, and renaming."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from tests.signature.build import INPUTS, OUTPUTS, everything

from pt2kit.errors import GraphError
from pt2kit.signature import (
    ExportBackwardSignature,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from pt2kit.signature.specs import FITS

VIEWS: dict[str, Any] = {
    "parameters": ("w",),
    "buffers": ("bn.mean", "tmp"),
    "non_persistent_buffers": ("tmp",),
    "lifted_tensor_constants": ("lifted_tensor_0",),
    "lifted_custom_objs": ("queue",),
    "user_inputs": ("x", True, None, "n", "f", "obj"),
    "user_outputs": ("y", 3, "b", "obj", "loss"),
    "inputs_to_parameters": {"p_w": "w"},
    "inputs_to_buffers": {"b_m": "bn.mean", "b_t": "tmp"},
    "buffers_to_mutate": {"m_1": "bn.mean"},
    "parameters_to_mutate": {"w_1": "w"},
    "user_inputs_to_mutate": {"x_1": "x"},
    "inputs_to_lifted_tensor_constants": {"c_0": "lifted_tensor_0"},
    "inputs_to_lifted_custom_objs": {"obj_q": "queue"},
    "backward_signature": ExportBackwardSignature({"g_w": "w"}, {"g_x": "x"}, "loss"),
    "assertion_dep_token": None,
    "input_tokens": ("token",),
    "output_tokens": ("token_1",),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views(view: str) -> None:
    """Each view has its entries in the order of the specs; mappings are read-only, sequences are tuples."""
    found = getattr(everything(), view)
    assert found == VIEWS[view]
    if isinstance(found, MappingProxyType):
        assert list(found.items()) == list(VIEWS[view].items())
    else:
        assert isinstance(found, type(VIEWS[view]))


def test_every_property_is_in_the_table() -> None:
    """A new view is a failure here until it is shown."""
    assert {name for name, held in vars(ExportGraphSignature).items() if isinstance(held, property)} == set(VIEWS)


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_nothing(view: str) -> None:
    """A graph without inputs and outputs has empty views, and no backward signature."""
    assert not getattr(ExportGraphSignature([], []), view)


def test_gradients_without_a_loss_are_no_backward_signature() -> None:
    """As in torch, which wrote joint graphs without marking the loss in 2.5."""
    outputs = [spec for spec in OUTPUTS if spec.kind is not OutputKind.LOSS_OUTPUT]
    assert ExportGraphSignature(INPUTS, outputs).backward_signature is None


def test_a_signature_has_lists_of_its_own() -> None:
    """Sequences of any kind are copied."""
    inputs, outputs = list(INPUTS), tuple(OUTPUTS)
    signature = ExportGraphSignature(inputs, outputs)  # type: ignore[arg-type]
    inputs.clear()
    assert signature == everything()
    assert isinstance(signature.output_specs, list)


def test_every_kind_has_a_place_in_the_order() -> None:
    """A new kind is a failure here until somebody says where it stands."""
    assert set(FITS) == {*InputKind, *OutputKind}


def test_order_within_a_group_is_free() -> None:
    """Buffers before parameters, input mutations before buffer mutations: both occur."""
    inputs = [INPUTS[0], *reversed(INPUTS[1:6]), *reversed(INPUTS[6:])]
    outputs = [OUTPUTS[0], *reversed(OUTPUTS[1:4]), *reversed(OUTPUTS[4:9]), *reversed(OUTPUTS[9:])]
    assert ExportGraphSignature(inputs, outputs).parameters == ("w",)


def moved(specs: list[Any], start: int, end: int) -> list[Any]:
    """The specs with one taken out and put in somewhere else."""
    rest = [*specs[:start], *specs[start + 1 :]]
    return [*rest[:end], specs[start], *rest[end:]]


INPUTS_EXPECTED = "expected tokens, then parameters, buffers, constants and custom objects, then user inputs"
OUTPUTS_EXPECTED = "expected tokens, then mutations, then user outputs and the loss, then gradients"
DISORDER: list[tuple[str, list[Any], list[Any], str]] = [
    ("S5", moved(INPUTS, 0, 1), OUTPUTS, f"input_specs[1]: {INPUTS_EXPECTED}, got TOKEN 'token' after PARAMETER 'p_w'"),
    (
        "S5",
        moved(INPUTS, 6, 1),
        OUTPUTS,
        "input_specs[2]: .*, got PARAMETER 'p_w' after USER_INPUT 'x'",
    ),
    ("S5", moved(INPUTS, 5, 11), OUTPUTS, "input_specs[11]: .*, got CUSTOM_OBJ 'obj_q' after USER_INPUT 'obj'"),
    ("S6", INPUTS, moved(OUTPUTS, 0, 2), f"output_specs[2]: {OUTPUTS_EXPECTED}, got TOKEN 'token_1' after"),
    ("S6", INPUTS, moved(OUTPUTS, 4, 1), "output_specs[2]: .*, got BUFFER_MUTATION 'm_1' after USER_OUTPUT 'y'"),
    ("S6", INPUTS, moved(OUTPUTS, 8, 10), "output_specs[10]: .*, got LOSS_OUTPUT 'loss' after GRADIENT_TO_USER_INPUT"),
    (
        "S9",
        INPUTS,
        [*OUTPUTS[:8], OutputSpec(OutputKind.LOSS_OUTPUT, TensorArgument("other"), None), *OUTPUTS[8:]],
        "output_specs[9]: expected one loss, 'other', got a second one, 'loss'",
    ),
]


@pytest.mark.parametrize(("rule", "inputs", "outputs", "text"), DISORDER)
def test_disorder_is_refused(rule: str, inputs: list[Any], outputs: list[Any], text: str) -> None:
    """An order in which a caller would pass or get the wrong thing is refused when the signature is made."""
    escaped = text.replace("[", r"\[").replace("]", r"\]")
    with pytest.raises(GraphError, match=rf"^signature\.{escaped}.* \[{rule}\]$"):
        ExportGraphSignature(inputs, outputs)


def test_renaming_is_in_place_and_leaves_targets() -> None:
    """A renamed value is renamed wherever it is an argument, and nowhere else; the lists stay the same objects."""
    signature = everything()
    inputs, outputs = signature.input_specs, signature.output_specs
    signature.replace_all_uses("x", "x_new")
    assert signature.input_specs is inputs
    assert signature.output_specs is outputs
    assert signature.user_inputs == ("x_new", True, None, "n", "f", "obj")
    assert signature.user_inputs_to_mutate == {"x_1": "x"}
    assert everything().user_inputs[0] == "x"


def test_renaming_reaches_inputs_and_outputs() -> None:
    """A value that is both input and output is renamed in both; tokens and symbolic values are values too."""
    signature = everything()
    for old in ("obj", "token", "n", "b"):
        signature.replace_all_uses(old, f"{old}_new")
    assert signature.user_inputs[3::2] == ("n_new", "obj_new")
    assert signature.user_outputs[2:4] == ("b_new", "obj_new")
    assert signature.input_tokens == ("token_new",)


def test_constants_are_not_renamed() -> None:
    """The placeholder of a constant is no value, and an unknown name changes nothing."""
    signature = everything()
    signature.replace_all_uses("flag", "other")
    signature.replace_all_uses("nobody", "other")
    assert signature == everything()


@dataclass(frozen=True)
class Node:
    """A node of torch.fx, as far as a hook looks."""

    name: str
    op: str


@pytest.mark.parametrize(
    ("old", "user", "replace_inputs", "renamed"),
    [
        (Node("y", "call_function"), Node("output", "output"), False, True),
        (Node("y", "call_function"), Node("add", "call_function"), False, False),
        (Node("x", "placeholder"), Node("add", "call_function"), False, False),
        (Node("x", "placeholder"), Node("add", "call_function"), True, True),
        (Node("y", "call_function"), Node("add", "call_function"), True, False),
    ],
)
def test_replace_hook(old: Node, user: Node, replace_inputs: bool, renamed: bool) -> None:
    """A hook follows what outputs use, and placeholders where it is asked to."""
    signature = everything()
    signature.get_replace_hook(replace_inputs)(old, "new", user)
    assert (signature != everything()) is renamed
    assert ("new" in signature.user_inputs + signature.user_outputs) is renamed


def test_text() -> None:
    """A signature prints its inputs, then its outputs, one on a line."""
    lines = str(ExportGraphSignature(INPUTS[1:3], OUTPUTS[4:5])).split("\n")
    assert lines == [
        "",
        "# inputs",
        "p_w: PARAMETER target='w'",
        "b_m: BUFFER target='bn.mean' persistent=True",
        "",
        "# outputs",
        "y: USER_OUTPUT",
        "",
    ]
