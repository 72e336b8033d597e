"""Specs of graph inputs and outputs: argument descriptions, kinds, `InputSpec`, `OutputSpec`, and their order.

The torch-free counterparts of the classes of the same names in torch; frozen. A spec is checked when it is made: it
has the argument and the target that its kind needs (S11).

The order of a signature's inputs and outputs decides the order of a call's arguments and results.

Source: torch/export/graph_signature.py, torch 2.13, for the classes; torch/export/exported_program.py, torch 2.13,
which calls a graph with the state first and the user's inputs after it; torch/_export/verifier.py, which counts tokens,
mutations and user outputs off in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from pt2kit.errors import GraphError, Problem
from pt2kit.messages import quote

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
