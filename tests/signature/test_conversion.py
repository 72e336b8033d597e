"""Between the schema and the specs: exact in both directions, arm by arm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.signature.build import INPUTS, OUTPUTS, everything, module
from tests.strategies import unions

from pt2kit import codec, schema
from pt2kit.errors import GraphError, UnsupportedError
from pt2kit.signature import (
    ArgumentSpec,
    ConstantArgument,
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
    argument_spec,
    from_schema,
    schema_argument,
    to_schema,
)
from pt2kit.signature.consistency import targets_below
from pt2kit.signature.specs import input_spec, output_spec, schema_input_spec, schema_output_spec

# Every arm that describes one value or constant, as JSON, and its description.
ARGUMENTS: list[tuple[dict[str, Any], ArgumentSpec]] = [
    ({"as_tensor": {"name": "x"}}, TensorArgument("x")),
    ({"as_sym_int": {"as_name": "n"}}, SymIntArgument("n")),
    ({"as_sym_float": {"as_name": "f"}}, SymFloatArgument("f")),
    ({"as_sym_bool": {"as_name": "b"}}, SymBoolArgument("b")),
    ({"as_custom_obj": {"name": "c", "class_fqn": "C"}}, CustomObjArgument("c", "C")),
    ({"as_none": True}, ConstantArgument("", None)),
    ({"as_bool": True}, ConstantArgument("", True)),
    ({"as_int": 2**70}, ConstantArgument("", 2**70)),
    ({"as_float": 0.5}, ConstantArgument("", 0.5)),
    ({"as_float": "-Infinity"}, ConstantArgument("", float("-inf"))),
    ({"as_string": "s"}, ConstantArgument("", "s")),
    ({"as_complex": {"real": 1.0, "imag": -2.0}}, ConstantArgument("", 1 - 2j)),
]
ONE = {next(iter(tree)) for tree, _ in ARGUMENTS}


@pytest.mark.parametrize(("tree", "expected"), ARGUMENTS)
def test_arguments(tree: dict[str, Any], expected: ArgumentSpec) -> None:
    """An argument that is one value or one constant is described, with its type, and written back as it was."""
    argument = codec.convert(tree, schema.Argument, "argument").value
    described = argument_spec(argument)
    assert described == expected
    if isinstance(described, ConstantArgument) and isinstance(expected, ConstantArgument):
        assert isinstance(described.value, type(expected.value))
    assert schema_argument(described) == argument


@given(unions(schema.Argument))
def test_any_argument_is_described_or_refused(argument: schema.Argument) -> None:
    """Whatever the argument: it is described and can be written back, or it is refused by the name of its arm."""
    try:
        described = argument_spec(argument)
    except GraphError as error:
        assert error.rule == "S12"
        assert argument.type not in ONE or f"{argument.type} with a constant" in str(error)
    else:
        again = schema_argument(described)
        assert again == argument or argument.type in ("as_none", "as_float", "as_complex")
        assert again.type == argument.type


@pytest.mark.parametrize(
    ("tree", "got"),
    [
        ({"as_tensors": []}, "as_tensors"),
        ({"as_sym_ints": []}, "as_sym_ints"),
        ({"as_sym_int": {"as_int": 3}}, "as_sym_int with a constant"),
        ({"as_string_to_argument": {}}, "as_string_to_argument"),
        ({"as_scalar_type": 7}, "as_scalar_type"),
    ],
)
def test_other_arguments_are_refused(tree: dict[str, Any], got: str) -> None:
    """Lists, dicts and other things are no input or output of a user."""
    argument = codec.convert(tree, schema.Argument, "argument").value
    with pytest.raises(GraphError, match=rf"^expected one value or one constant, got {got} \[S12\]$"):
        argument_spec(argument)


def test_every_arm_has_a_spec() -> None:
    """The example signature writes every arm of the schema's specs; a new arm is a failure here."""
    assert {schema_input_spec(spec).type for spec in INPUTS} == set(schema.InputSpec.__struct_fields__)
    assert {schema_output_spec(spec).type for spec in OUTPUTS} == set(schema.OutputSpec.__struct_fields__)


@pytest.mark.parametrize("spec", INPUTS, ids=str)
def test_inputs(spec: InputSpec) -> None:
    """An input spec is written and read back as it was."""
    assert input_spec(schema_input_spec(spec)) == spec


@pytest.mark.parametrize("spec", OUTPUTS, ids=str)
def test_outputs(spec: OutputSpec) -> None:
    """An output spec is written and read back as it was."""
    assert output_spec(schema_output_spec(spec)) == spec


def test_a_whole_signature() -> None:
    """A signature is written, and read back with the graph that goes with it."""
    assert from_schema(module(everything())) == everything()


def test_constants_of_old_files_stay_where_they_were() -> None:
    """Before schema 5.3 a constant input was a user input with a constant and no name; it is written back as one."""
    old = schema.InputSpec(user_input=schema.UserInputSpec(schema.Argument(as_int=3)))
    new = schema.InputSpec(
        constant_input=schema.InputToConstantInputSpec("k", schema.ConstantValue(as_int=3)),
    )
    assert input_spec(old) == InputSpec(InputKind.USER_INPUT, ConstantArgument("", 3), None)
    assert input_spec(new) == InputSpec(InputKind.USER_INPUT, ConstantArgument("k", 3), None)
    assert [schema_input_spec(input_spec(spec)) for spec in (old, new)] == [old, new]


def test_a_complex_constant_input_cannot_be_written() -> None:
    """The schema has complex outputs, but no complex constant inputs."""
    output = OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", 2j), None)
    to_schema(ExportGraphSignature([], [output]))
    spec = InputSpec(InputKind.USER_INPUT, ConstantArgument("k", 2j), None)
    with pytest.raises(UnsupportedError, match=r"expected None, an int, a float, a bool or a str as constant, got 2j"):
        to_schema(ExportGraphSignature([spec], []))


NAME = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
TARGET = st.lists(st.from_regex(r"[A-Za-z0-9_ -]{1,6}", fullmatch=True), min_size=1, max_size=3).map(".".join)
CONSTANT = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)


@st.composite
def signatures(draw: st.DrawFn) -> ExportGraphSignature:
    """Any signature that is in order: names all different, no target below another, what is mutated exists."""
    names = iter(draw(st.lists(NAME, min_size=40, max_size=40, unique=True)))
    tensors = st.lists(TARGET, min_size=8, max_size=8, unique=True)
    targets = iter(draw(tensors.filter(lambda several: not targets_below(several, several))))
    kinds = st.sampled_from([InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR])
    tokens = draw(st.integers(0, 2))
    inputs = [InputSpec(InputKind.TOKEN, TokenArgument(next(names)), None) for _ in range(tokens)]
    for kind in draw(st.lists(kinds, max_size=6)):
        flag = draw(st.booleans()) if kind is InputKind.BUFFER else None
        inputs.append(InputSpec(kind, TensorArgument(next(names)), next(targets), flag))
    state = list(inputs[tokens:])
    for cls in draw(st.lists(st.sampled_from([TensorArgument, SymIntArgument, ConstantArgument]), max_size=5)):
        held = (next(names), draw(CONSTANT)) if cls is ConstantArgument else (next(names),)
        inputs.append(InputSpec(InputKind.USER_INPUT, cls(*held), None))
    outputs = [OutputSpec(OutputKind.TOKEN, TokenArgument(next(names)), None) for _ in range(tokens)]
    mutations = {InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION, InputKind.BUFFER: OutputKind.BUFFER_MUTATION}
    outputs += [
        OutputSpec(mutations[spec.kind], TensorArgument(next(names)), spec.target)
        for spec in state
        if spec.kind in mutations and draw(st.booleans())
    ]
    for constant in draw(st.lists(CONSTANT, max_size=3)):
        outputs.append(OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", constant), None))
        outputs.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(next(names)), None))
    return ExportGraphSignature(inputs, outputs)


@given(signatures())
def test_any_signature_survives_the_file(signature: ExportGraphSignature) -> None:
    """Written, encoded, decoded and read back against its graph, a signature is what it was."""
    written = to_schema(signature)
    stored = codec.decode(codec.encode(written), schema.GraphSignature, "signature").value
    again = from_schema(module(stored))
    assert again == signature
    assert to_schema(again) == written
    assert str(again) == str(signature)
