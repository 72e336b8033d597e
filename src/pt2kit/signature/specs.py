"""Specs of graph inputs and outputs: argument descriptions, kinds, `InputSpec`, `OutputSpec`, and their order.

The torch-free counterparts of the classes of the same names in torch; frozen. A spec is checked when it is made: it
has the argument and the target that its kind needs (S11). Specs are read from those of `schema.GraphSignature` and
written as these, one at a time and exactly.

A constant input is one spec here and, by the age of the file, one of two in the schema: `constant_input`, which names
its placeholder, or (before schema 5.3) a `user_input` that holds the constant. The name "" stands for the latter.

The order of a signature's inputs and outputs decides the order of a call's arguments and results.

Source: torch/export/graph_signature.py, torch 2.13, for the classes; torch/_export/serde/serialize.py, torch 2.13, for
their form in the schema; torch/export/exported_program.py, torch 2.13, which calls a graph with the state first and
the user's inputs after it; torch/_export/verifier.py, which counts tokens, mutations and user outputs off in this
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.errors import GraphError, Problem, UnsupportedError
from pt2kit.messages import quote
from pt2kit.schema.names import target_of
from pt2kit.schema.reflection import field_classes

Constant = int | float | bool | str | complex | None

_INPUTS_EXPECTED = "expected tokens, then parameters, buffers, constants and custom objects, then user inputs"
_OUTPUTS_EXPECTED = "expected tokens, then mutations, then user outputs and the loss, then gradients"


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor, by the name of its value in the graph."""

    name: str


@dataclass(frozen=True, slots=True)
class TokenArgument:
    """An effect token, by the name of its value in the graph."""

    name: str


@dataclass(frozen=True, slots=True)
class SymIntArgument:
    """A symbolic integer, by the name of its value in the graph."""

    name: str


@dataclass(frozen=True, slots=True)
class SymFloatArgument:
    """A symbolic float, by the name of its value in the graph."""

    name: str


@dataclass(frozen=True, slots=True)
class SymBoolArgument:
    """A symbolic truth value, by the name of its value in the graph."""

    name: str


@dataclass(frozen=True, slots=True)
class CustomObjArgument:
    """A custom object, by the name of its value in the graph.

    Args:
        name: the name of the value.
        class_fqn: the qualified name of its class.
    """

    name: str
    class_fqn: str


@dataclass(frozen=True, slots=True)
class ConstantArgument:
    """A constant of the calling convention.

    Args:
        name: the placeholder's name; "" for constant outputs, and for inputs of files before schema 5.3.
        value: the constant itself.
    """

    name: str
    value: Constant


NAMED: Final = (TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, CustomObjArgument, TokenArgument)
"""The arguments that stand for a value of the graph."""

ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)

_USER = (TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, CustomObjArgument, ConstantArgument)


class InputKind(Enum):
    """Kinds of graph inputs."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """Kinds of graph outputs."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The spec of one graph input.

    Args:
        kind: the kind.
        arg: the input itself.
        target: the name in the module of a parameter, buffer, constant or custom object; None for the other kinds.
        persistent: whether a buffer is in the state dict. It says nothing of the other kinds: torch leaves it behind
            where a buffer became a constant, and no file has it.

    Raises:
        GraphError: the fields do not fit the kind (S11).
    """

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        _check_fit(self.kind, self.arg, self.target)
        if self.kind is InputKind.BUFFER and not isinstance(self.persistent, bool):
            message = f"InputSpec of kind BUFFER: expected persistent to be True or False, got {self.persistent!r}"
            raise GraphError(message, rule="S11")

    def __str__(self) -> str:
        """Return the spec on one line, as torch prints it: "p_w: PARAMETER target='w'"."""
        flag = "" if self.persistent is None else f" persistent={self.persistent}"
        return _line(self.kind, self.arg, self.target) + flag


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The spec of one graph output.

    Args:
        kind: the kind.
        arg: the output itself.
        target: for a mutation or gradient the parameter or buffer in the module, or the user input in the graph, that
            it belongs to; None for the other kinds.

    Raises:
        GraphError: the fields do not fit the kind (S11).
    """

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __post_init__(self) -> None:
        _check_fit(self.kind, self.arg, self.target)

    def __str__(self) -> str:
        """Return the spec on one line, as torch prints it: "add: BUFFER_MUTATION target='b'"."""
        return _line(self.kind, self.arg, self.target)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Requirements of a kind: one of some arguments, a target or none, and its group.

    Groups stand in the order of their numbers. Within a group any order is right.
    """

    arguments: tuple[type, ...]
    target: bool
    group: int


_STATE = _Fit((TensorArgument,), target=True, group=1)

FITS: Final[Mapping[InputKind | OutputKind, _Fit]] = MappingProxyType(
    {
        **dict.fromkeys((InputKind.TOKEN, OutputKind.TOKEN), _Fit((TokenArgument,), target=False, group=0)),
        **dict.fromkeys((InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR), _STATE),
        **{kind: _STATE for kind in OutputKind if kind.name.endswith("_MUTATION")},
        InputKind.CUSTOM_OBJ: _Fit((CustomObjArgument,), target=True, group=1),
        **dict.fromkeys((InputKind.USER_INPUT, OutputKind.USER_OUTPUT), _Fit(_USER, target=False, group=2)),
        OutputKind.LOSS_OUTPUT: _Fit((TensorArgument,), target=False, group=2),
        **{kind: _Fit((TensorArgument,), target=True, group=3) for kind in OutputKind if "GRADIENT" in kind.name},
    }
)
"""Kind of an input or output -> what its specs require."""


def _check_fit(kind: InputKind | OutputKind, arg: ArgumentSpec, target: str | None) -> None:
    fit = FITS[kind]
    if not isinstance(arg, fit.arguments):
        expected = " or ".join(cls.__name__ for cls in fit.arguments)
        raise GraphError(f"{_owner(kind)}: expected an arg of {expected}, got {type(arg).__name__}", rule="S11")
    if isinstance(target, str) is not fit.target or not (target is None or isinstance(target, str)):
        expected = "a name" if fit.target else "None"
        raise GraphError(f"{_owner(kind)}: expected {expected} as target, got {target!r}", rule="S11")


def _owner(kind: InputKind | OutputKind) -> str:
    return f"{'InputSpec' if isinstance(kind, InputKind) else 'OutputSpec'} of kind {kind.name}"


def _line(kind: InputKind | OutputKind, arg: ArgumentSpec, target: str | None) -> str:
    return f"{arg.name}: {kind.name}" + ("" if target is None else f" target='{target}'")


def order_problems(inputs: Mapping[int, InputSpec], outputs: Mapping[int, OutputSpec], where: str) -> Iterator[Problem]:
    """Yield specs in the wrong group (S5, S6), and every loss after the first (S9).

    Args:
        inputs: position -> spec, in order; positions may be missing.
        outputs: position -> spec, likewise.
        where: the place of the signature, for messages.
    """
    sides: tuple[tuple[str, Mapping[int, InputSpec | OutputSpec], str, str], ...] = (
        ("input_specs", inputs, "S5", _INPUTS_EXPECTED),
        ("output_specs", outputs, "S6", _OUTPUTS_EXPECTED),
    )
    for side, specs, rule, expected in sides:
        last: InputSpec | OutputSpec | None = None
        for position, spec in specs.items():
            if last is not None and FITS[spec.kind].group < FITS[last.kind].group:
                first, second = quote(spec.arg.name), quote(last.arg.name)
                got = f"{spec.kind.name} {first} after {last.kind.name} {second}"
                yield Problem(f"{where}.{side}[{position}]", rule, f"{expected}, got {got}")
            else:
                last = spec
    losses = [(position, spec) for position, spec in outputs.items() if spec.kind is OutputKind.LOSS_OUTPUT]
    for position, loss in losses[1:]:
        expected = f"expected one loss, {quote(losses[0][1].arg.name)}"
        yield Problem(
            f"{where}.output_specs[{position}]", "S9", f"{expected}, got a second one, {quote(loss.arg.name)}"
        )


_SYMBOLIC: Final[Mapping[str, type[SymIntArgument | SymFloatArgument | SymBoolArgument]]] = MappingProxyType(
    {"as_sym_int": SymIntArgument, "as_sym_float": SymFloatArgument, "as_sym_bool": SymBoolArgument}
)
_CONSTANTS: Final = frozenset(("as_none", "as_int", "as_float", "as_bool", "as_string", "as_complex"))


def argument_spec(argument: schema.Argument) -> ArgumentSpec:
    """Describe one argument of the schema.

    Raises:
        GraphError: it is neither one value nor one constant (S12).
    """
    arm, value = argument.type, argument.value
    if arm in ("as_tensor", "as_custom_obj"):
        return _named_value(value)
    if arm in _SYMBOLIC and value.as_name is not UNSET:
        return _SYMBOLIC[arm](value.as_name)
    if arm in _CONSTANTS:
        if isinstance(value, schema.ComplexValue):
            value = complex(float(value.real), float(value.imag))
        return ConstantArgument("", None if arm == "as_none" else value)
    got = f"{arm} with a constant" if arm in _SYMBOLIC else arm
    raise GraphError(f"expected one value or one constant, got {got}", rule="S12")


def _named_value(held: schema.TensorArgument | schema.CustomObjArgument | schema.TokenArgument) -> ArgumentSpec:
    if isinstance(held, schema.CustomObjArgument):
        return CustomObjArgument(held.name, held.class_fqn)
    return TensorArgument(held.name) if isinstance(held, schema.TensorArgument) else TokenArgument(held.name)


def schema_argument(arg: ArgumentSpec) -> schema.Argument:
    """Write one argument description as an argument of the schema, which has no arm for tokens: they are tensors."""
    match arg:
        case TensorArgument(name) | TokenArgument(name):
            return schema.Argument(as_tensor=schema.TensorArgument(name))
        case CustomObjArgument(name, class_fqn):
            return schema.Argument(as_custom_obj=schema.CustomObjArgument(name, class_fqn))
        case ConstantArgument(_, complex() as value):
            return schema.Argument(as_complex=schema.ComplexValue(value.real, value.imag))
        case ConstantArgument(_, value):
            return schema.Argument(**_constant_arm(value))
    arm = next(arm for arm, cls in _SYMBOLIC.items() if isinstance(arg, cls))
    return schema.Argument(**{arm: field_classes(schema.Argument)[arm](as_name=arg.name)})


def input_spec(spec: schema.InputSpec) -> InputSpec:
    """Read an input spec of the schema.

    Raises:
        GraphError: a user input that is neither one value nor one constant (S12).
    """
    held = spec.value
    match held:
        case schema.UserInputSpec(arg):
            given = argument_spec(arg)
            if isinstance(given, ConstantArgument) and isinstance(given.value, complex):
                raise GraphError("expected a constant that an input can be, got a complex number", rule="S12")
            return InputSpec(InputKind.USER_INPUT, given, None)
        case schema.InputToConstantInputSpec(name, value):
            constant = None if value.type == "as_none" else value.value
            return InputSpec(InputKind.USER_INPUT, ConstantArgument(name, constant), None)
    kind = InputKind.CONSTANT_TENSOR if spec.type == "tensor_constant" else InputKind[spec.type.upper()]
    return InputSpec(kind, _named_value(held.arg), target_of(spec), getattr(held, "persistent", None))


def output_spec(spec: schema.OutputSpec) -> OutputSpec:
    """Read an output spec of the schema.

    Raises:
        GraphError: a user output that is neither one value nor one constant (S12).
    """
    kind, held = OutputKind[spec.type.upper()], spec.value
    if isinstance(held, schema.UserOutputSpec):
        returned = argument_spec(held.arg)
        if isinstance(returned, ConstantArgument) and returned.value != returned.value:
            # torch compares the constants of outputs with those of the graph.
            raise GraphError("expected a constant that equals itself, got NaN", rule="S12")
        return OutputSpec(kind, returned, None)
    return OutputSpec(kind, _named_value(held.arg), target_of(spec))


def schema_input_spec(spec: InputSpec) -> schema.InputSpec:
    """Write an input spec as the schema has it.

    Raises:
        UnsupportedError: a complex constant input, which the schema cannot hold.
    """
    if isinstance(spec.arg, ConstantArgument) and spec.arg.name:
        constant = schema.ConstantValue(**_constant_arm(spec.arg.value))
        return schema.InputSpec(constant_input=schema.InputToConstantInputSpec(spec.arg.name, constant))
    flags = (spec.persistent,) if spec.kind is InputKind.BUFFER else ()
    field = "tensor_constant" if spec.kind is InputKind.CONSTANT_TENSOR else spec.kind.name.lower()
    return schema.InputSpec(**_spec_field(schema.InputSpec, field, spec, *flags))


def schema_output_spec(spec: OutputSpec) -> schema.OutputSpec:
    """Write an output spec as the schema has it."""
    return schema.OutputSpec(**_spec_field(schema.OutputSpec, spec.kind.name.lower(), spec))


def _spec_field(union: type[schema.Union], field: str, spec: InputSpec | OutputSpec, *flags: Any) -> dict[str, Any]:
    """Return the one field of a spec of the schema: its argument, the target if the kind has one, then flags."""
    argument: Any = schema_argument(spec.arg)
    if isinstance(spec.arg, TokenArgument):
        argument = schema.TokenArgument(spec.arg.name)
    elif field not in ("user_input", "user_output"):
        argument = argument.value
    targets = () if spec.target is None else (spec.target,)
    return {field: field_classes(union)[field](argument, *targets, *flags)}


def _constant_arm(value: Constant) -> dict[str, Any]:
    """Return the arm of a constant, by its name, as `schema.Argument` and `schema.ConstantValue` share them.

    Raises:
        UnsupportedError: the constant is complex, or no constant of the schema.
    """
    if value is None:
        return {"as_none": True}
    for cls, arm in _ARMS:
        if isinstance(value, cls):
            return {arm: cls(value)}  # of an IntEnum, say, the number
    got = quote(value)
    raise UnsupportedError(
        f"signature: expected None, an int, a float, a bool or a str as constant, got {got}", rule="S12"
    )


_ARMS: Final = ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string"))  # a bool is an int too
