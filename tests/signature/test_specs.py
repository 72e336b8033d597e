"""A spec is what its kind needs."""

from __future__ import annotations

import pytest
from tests.signature.build import INPUTS, OUTPUTS

from pt2kit.errors import GraphError
from pt2kit.signature import (
    ArgumentSpec,
    ConstantArgument,
    CustomObjArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)
from pt2kit.signature.specs import NAMED

ARGUMENTS: list[ArgumentSpec] = [
    TensorArgument("x"),
    TokenArgument("x"),
    SymIntArgument("x"),
    SymFloatArgument("x"),
    SymBoolArgument("x"),
    CustomObjArgument("x", "C"),
    ConstantArgument("x", 3),
]
USER = {TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, CustomObjArgument, ConstantArgument}
NEEDS: dict[InputKind | OutputKind, tuple[set[type], bool]] = {
    InputKind.USER_INPUT: (USER, False),
    InputKind.PARAMETER: ({TensorArgument}, True),
    InputKind.BUFFER: ({TensorArgument}, True),
    InputKind.CONSTANT_TENSOR: ({TensorArgument}, True),
    InputKind.CUSTOM_OBJ: ({CustomObjArgument}, True),
    InputKind.TOKEN: ({TokenArgument}, False),
    OutputKind.USER_OUTPUT: (USER, False),
    OutputKind.LOSS_OUTPUT: ({TensorArgument}, False),
    OutputKind.BUFFER_MUTATION: ({TensorArgument}, True),
    OutputKind.PARAMETER_MUTATION: ({TensorArgument}, True),
    OutputKind.GRADIENT_TO_PARAMETER: ({TensorArgument}, True),
    OutputKind.GRADIENT_TO_USER_INPUT: ({TensorArgument}, True),
    OutputKind.USER_INPUT_MUTATION: ({TensorArgument}, True),
    OutputKind.TOKEN: ({TokenArgument}, False),
}


def make(kind: InputKind | OutputKind, arg: ArgumentSpec, target: str | None) -> InputSpec | OutputSpec:
    """A spec of a kind; a persistent buffer where it is one."""
    if isinstance(kind, OutputKind):
        return OutputSpec(kind, arg, target)
    return InputSpec(kind, arg, target, True if kind is InputKind.BUFFER else None)


def test_every_kind_is_in_the_table() -> None:
    """A new kind is a failure here until somebody says what it needs; the example signature has all of them."""
    assert set(NEEDS) == {*InputKind, *OutputKind}
    assert {*(spec.kind for spec in INPUTS), *(spec.kind for spec in OUTPUTS)} == set(NEEDS)
    assert {type(arg) for arg in ARGUMENTS} - {ConstantArgument} == set(NAMED)


@pytest.mark.parametrize("arg", ARGUMENTS, ids=lambda arg: type(arg).__name__)
@pytest.mark.parametrize("kind", NEEDS, ids=str)
def test_arguments_fit_the_kind(kind: InputKind | OutputKind, arg: ArgumentSpec) -> None:
    """A kind takes its arguments and refuses the others, naming what it takes."""
    fitting, with_target = NEEDS[kind]
    target = "t" if with_target else None
    if type(arg) in fitting:
        assert make(kind, arg, target).arg == arg
        return
    text = rf"of kind {kind.name}: expected an arg of .*, got {type(arg).__name__} \[S11\]"
    with pytest.raises(GraphError, match=text):
        make(kind, arg, target)


@pytest.mark.parametrize("kind", NEEDS, ids=str)
def test_targets_fit_the_kind(kind: InputKind | OutputKind) -> None:
    """A kind that belongs to something in the module names it; the others name nothing."""
    fitting, with_target = NEEDS[kind]
    arg = next(arg for arg in ARGUMENTS if type(arg) in fitting)
    wrong, text = (None, "a name as target, got None") if with_target else ("t", "None as target, got 't'")
    with pytest.raises(GraphError, match=rf"of kind {kind.name}: expected {text} \[S11\]"):
        make(kind, arg, wrong)


def test_a_buffer_says_whether_it_persists() -> None:
    """A buffer without the flag is refused; for other kinds the flag means nothing."""
    with pytest.raises(GraphError, match=r"kind BUFFER: expected persistent to be True or False, got None \[S11\]"):
        InputSpec(InputKind.BUFFER, TensorArgument("b"), "b")
    assert InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument("c"), "c", True).persistent


def test_specs_are_frozen() -> None:
    """A spec can be shared: nobody changes it."""
    with pytest.raises(AttributeError, match="cannot assign to field 'target'"):
        INPUTS[1].target = "other"  # type: ignore[misc]
    assert len({*INPUTS, *OUTPUTS}) == len(INPUTS) + len(OUTPUTS)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (INPUTS[1], "p_w: PARAMETER target='w'"),
        (INPUTS[3], "b_t: BUFFER target='tmp' persistent=False"),
        (INPUTS[7], "flag: USER_INPUT"),
        (OUTPUTS[1], "m_1: BUFFER_MUTATION target='bn.mean'"),
        (OUTPUTS[5], ": USER_OUTPUT"),
    ],
)
def test_text(spec: InputSpec | OutputSpec, text: str) -> None:
    """A spec prints on one line."""
    assert str(spec) == text
