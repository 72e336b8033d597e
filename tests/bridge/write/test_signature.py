"""The graph signature: every kind of input and output, and what each must have."""

from __future__ import annotations

import json
from enum import IntEnum

import pytest
import torch
from tests.narrow import present
from torch._export.serde import serialize as torch_serde
from torch.export import graph_signature as live
from torch.export.graph_signature import InputKind as In
from torch.export.graph_signature import InputSpec, OutputSpec
from torch.export.graph_signature import OutputKind as Out

from pt2kit import codec
from pt2kit.bridge.write.program import write_argument_spec, write_graph, write_signature
from pt2kit.bridge.write.scope import Scope, Shared
from pt2kit.errors import GraphError, UnsupportedError

TENSOR, TOKEN = live.TensorArgument("t"), live.TokenArgument("k")
OBJECT = live.CustomObjArgument("o", "a.B")


def scope(**renamed):
    return Scope(torch.nn.Module(), Shared(write_graph), renamed=renamed)


def constant(value):
    return live.ConstantArgument("c", value)


INPUTS = [
    InputSpec(In.USER_INPUT, TENSOR, None),
    InputSpec(In.USER_INPUT, live.SymIntArgument("i"), None),
    InputSpec(In.USER_INPUT, live.SymFloatArgument("f"), None),
    InputSpec(In.USER_INPUT, OBJECT, None),
    *(InputSpec(In.USER_INPUT, constant(value), None) for value in (3, True, 0.5, float("-inf"), "a", None)),
    InputSpec(In.PARAMETER, TENSOR, "a.weight"),
    InputSpec(In.BUFFER, TENSOR, "b", persistent=True),
    InputSpec(In.BUFFER, TENSOR, "b", persistent=False),
    InputSpec(In.CONSTANT_TENSOR, TENSOR, "c"),
    InputSpec(In.CUSTOM_OBJ, OBJECT, "o"),
    InputSpec(In.TOKEN, TOKEN, None),
]
OUTPUTS = [
    *(
        OutputSpec(Out.USER_OUTPUT, arg, None)
        for arg in (TENSOR, live.SymIntArgument("i"), constant(None), constant(4), OBJECT)
    ),
    OutputSpec(Out.LOSS_OUTPUT, TENSOR, None),
    OutputSpec(Out.BUFFER_MUTATION, TENSOR, "b"),
    OutputSpec(Out.PARAMETER_MUTATION, TENSOR, "p"),
    OutputSpec(Out.GRADIENT_TO_PARAMETER, TENSOR, "p"),
    OutputSpec(Out.GRADIENT_TO_USER_INPUT, TENSOR, "t"),
    OutputSpec(Out.USER_INPUT_MUTATION, TENSOR, "x"),
    OutputSpec(Out.TOKEN, TOKEN, None),
]


def test_same_as_torch():
    """Every kind of spec becomes what torch makes of it."""
    signature = live.ExportGraphSignature(INPUTS, OUTPUTS)
    theirs = torch_serde.GraphModuleSerializer(None, None).serialize_signature(signature)
    assert codec.to_tree(write_signature(signature, scope())) == json.loads(torch_serde._to_json_bytes(theirs))
    assert {spec.kind for spec in INPUTS} == set(In)
    assert {spec.kind for spec in OUTPUTS} == set(Out)


def test_truth_values():
    """A symbolic truth value is one of the kinds of the format."""
    assert codec.to_tree(write_argument_spec(live.SymBoolArgument("b"), scope())) == {"as_sym_bool": {"as_name": "b"}}


class Kind(IntEnum):
    A = 1
    B = 2


def test_subclasses_of_constants():
    """A member of an IntEnum is written as the number that it is."""
    outputs = [OutputSpec(Out.USER_OUTPUT, constant(Kind.B), None)]
    written = write_signature(live.ExportGraphSignature([], outputs), scope())
    assert type(present(written.output_specs[0].user_output).arg.as_int) is int


def test_renamed():
    """A name that stands for the same result as another becomes that one."""
    signature = live.ExportGraphSignature(
        [], [OutputSpec(Out.USER_OUTPUT, TENSOR, None), OutputSpec(Out.LOSS_OUTPUT, TENSOR, None)]
    )
    written = codec.to_tree(write_signature(signature, scope(t="first")))
    assert [spec[arm]["arg"] for spec in written["output_specs"] for arm in spec] == [
        {"as_tensor": {"name": "first"}},
        {"name": "first"},
    ]


def spec(kind, arg, target=None, **more):
    """A spec that torch's own checks do not stop."""
    made = InputSpec(In.USER_INPUT, TENSOR, None) if isinstance(kind, In) else OutputSpec(Out.USER_OUTPUT, TENSOR, None)
    made.kind, made.arg, made.target = kind, arg, target
    for name, value in more.items():
        setattr(made, name, value)
    return made


ERRORS = [
    (
        spec(In.PARAMETER, TENSOR),
        GraphError,
        r"graph signature: input 0 \(PARAMETER\): .*: expected a name as target, got None",
    ),
    (spec(In.PARAMETER, OBJECT, "p"), GraphError, "expected an arg of TensorArgument, got CustomObjArgument"),
    (spec(In.BUFFER, TENSOR, "b", persistent=None), GraphError, "expected persistent to be True or False"),
    (spec(In.CUSTOM_OBJ, TENSOR, "o"), GraphError, "expected an arg of CustomObjArgument, got TensorArgument"),
    (spec(In.TOKEN, TENSOR), GraphError, "expected an arg of TokenArgument, got TensorArgument"),
    (spec(In.USER_INPUT, TOKEN), GraphError, "expected an arg of TensorArgument or .*, got TokenArgument"),
    (
        spec(In.USER_INPUT, constant(1j)),
        UnsupportedError,
        "expected None, an int, a float, a bool or a str as constant, got 1j",
    ),
    (
        spec(Out.BUFFER_MUTATION, TENSOR),
        GraphError,
        r"graph signature: output 0 \(BUFFER_MUTATION\): .*: expected a name as target, got None",
    ),
    (spec(Out.LOSS_OUTPUT, OBJECT), GraphError, "expected an arg of TensorArgument, got CustomObjArgument"),
    (spec(Out.TOKEN, TENSOR), GraphError, "expected an arg of TokenArgument, got TensorArgument"),
    (spec(Out.USER_OUTPUT, constant(object())), UnsupportedError, "expected None, an int, a float, a bool or a str"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), ERRORS, ids=range(len(ERRORS)))
def test_refused(wrong, error, message):
    """A spec that lacks something, or has another argument, is refused with its place."""
    inputs, outputs = ([wrong], []) if isinstance(wrong, InputSpec) else ([], [wrong])
    with pytest.raises(error, match=message):
        write_signature(live.ExportGraphSignature(inputs, outputs), scope())


class FakeKind:
    name = "NEW"


@pytest.mark.parametrize("side", ["input", "output"])
def test_unknown_kind(side):
    """A kind that the format does not have is refused."""
    wrong = spec(In.USER_INPUT if side == "input" else Out.USER_OUTPUT, TENSOR, "x")
    wrong.kind = FakeKind()
    inputs, outputs = ([wrong], []) if side == "input" else ([], [wrong])
    with pytest.raises(UnsupportedError, match=rf"{side} 0 \(NEW\): expected a kind of {side} that the format has"):
        write_signature(live.ExportGraphSignature(inputs, outputs), scope())


def test_gradient_of_a_traced_input():
    """A gradient that says how tracing called its input gets the input's name."""
    inputs = [
        InputSpec(In.PARAMETER, live.TensorArgument("p"), "w"),
        InputSpec(In.USER_INPUT, live.TensorArgument("x"), None),
    ]
    output = OutputSpec(Out.GRADIENT_TO_USER_INPUT, TENSOR, "arg1_1")
    written = write_signature(live.ExportGraphSignature(inputs, [output]), scope())
    assert present(written.output_specs[0].gradient_to_user_input).user_input_name == "x"


@pytest.mark.parametrize("target", ["arg0_1", "arg2_1", "y", "arg1_2", ""])
def test_gradient_of_no_input(target):
    """One that names no user input is refused, with its place."""
    inputs = [
        InputSpec(In.PARAMETER, live.TensorArgument("p"), "w"),
        InputSpec(In.USER_INPUT, live.TensorArgument("x"), None),
    ]
    output = OutputSpec(Out.GRADIENT_TO_USER_INPUT, TENSOR, target)
    with pytest.raises(GraphError, match=r"output 0 \(GRADIENT_TO_USER_INPUT\): expected the name of a user input"):
        write_signature(live.ExportGraphSignature(inputs, [output]), scope())
