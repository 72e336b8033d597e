"""Live operators of torch for the targets in a file; dtypes, layouts and devices converted to and from the schema's.

Operators and their schemas come only from the dispatcher, which is asked first whether it has them: an unknown name
creates nothing. Functions and higher-order operators come from closed tables. Memory formats are converted like dtypes,
layouts and devices.

`call_with_arrays` calls a torch module with arrays instead of tensors, for tools without tensors of their own.

`warn_if_untested` warns for versions of torch that the bridge was not tested with. Nothing else depends on the number
of a release: missing features are found by looking for them (`torch_names.py`).
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, Literal

import torch

from pt2kit.bridge.callables import checked_name, find_namespace
from pt2kit.bridge.read.reading import operator_entry, refused, trusts_operator
from pt2kit.bridge.torch_names import (
    SYMBOLIC,
    OpOverload,
    find_function,
    find_higher_order,
    find_schema,
    optional,
    register_late,
    schema_of,
)
from pt2kit.checks.operators import parameter_arms, result_arms
from pt2kit.errors import OperatorError, UnsupportedError
from pt2kit.operators.higher_order import FUNCTIONS
from pt2kit.operators.promotion import takes_numbers_as_tensors
from pt2kit.operators.requirements import refusal
from pt2kit.schema import Device, Layout, MemoryFormat, ScalarType
from pt2kit.schema.names import ATEN_OPS, OPS, plain_target
from pt2kit.schema.operators import Operator as Signature
from pt2kit.schema.operators import Parameter, parse_operator
from pt2kit.schema.versions import LOG
from pt2kit.tensors.bounds import MAX_DEVICE_INDEX, device_text
from pt2kit.tensors.dtypes import DTYPES as ROWS

Kind = Literal["operator", "symbolic", "higher_order", "function"]

_DISPATCHED: Final = re.compile(r"torch\.ops\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)", re.ASCII)
_HIGHER_ORDER: Final = re.compile(r"torch\.ops\.higher_order\.(\w+)", re.ASCII)

OLDEST: Final = (2, 9)
NEWEST: Final = max(tuple(map(int, release.split("."))) for row in LOG for release in row.releases)
"""Releases that the bridge was tested with."""

DTYPES: Mapping[ScalarType, torch.dtype] = MappingProxyType(
    {number: getattr(torch, row.name) for number, row in ROWS.items() if hasattr(torch, row.name)}
)


def _named(members: type[IntEnum]) -> Mapping[Any, Any]:
    """Return what torch calls as the schema does: `torch.sparse_coo` for the member SparseCoo; Unknown is nothing."""
    spelled = {member: re.sub(r"(?<=[a-z])(?=[A-Z\d])", "_", member.name).lower() for member in members}
    return MappingProxyType({member: vars(torch)[name] for member, name in spelled.items() if name in vars(torch)})


LAYOUTS: Mapping[Layout, torch.layout] = _named(Layout)
MEMORY_FORMATS: Mapping[MemoryFormat, torch.memory_format] = _named(MemoryFormat)
SCHEMA: Mapping[Any, Any] = MappingProxyType(
    {live: stored for table in (DTYPES, LAYOUTS, MEMORY_FORMATS) for stored, live in table.items()}
)
"""dtype, layout or memory format of torch -> member of the schema."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A callable that a node may have as its target.

    Args:
        text: as the file names it.
        target: the callable.
        kind: "operator" has a schema; "symbolic" is a function over numbers; "higher_order" takes subgraphs;
            "function" is one of torch's other functions.
        signature: its parameters and results; None for kinds without a schema.
        arms: the arms of `schema.Argument` that each parameter accepts; None if its type does not restrict them.
        result_arms: the arms that each result accepts; None if it accepts every arm.
        schema: `torch.FunctionSchema`; None for kinds without one.
    """

    text: str
    target: Callable[..., Any]
    kind: Kind
    signature: Signature | None = None
    arms: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    result_arms: tuple[frozenset[str] | None, ...] = ()
    schema: Any = None

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Return name -> parameter, in the schema's order."""
        return {} if self.signature is None else self.signature.parameters


def resolve_all(places: Mapping[str, str], trust: Set[str] = frozenset()) -> tuple[dict[str, Operator], dict[str, str]]:
    """Find every operator of a program.

    Args:
        places: target -> where it is first used, for messages.
        trust: operators, and rules, that the caller lets pass.

    Returns:
        Target -> operator, and those that this process does not have, with their places. Cost: about 20 microseconds
        per distinct target.

    Raises:
        OperatorError: one is refused, or is no name of an operator.
    """
    operators: dict[str, Operator] = {}
    missing: dict[str, str] = {}
    for text, where in places.items():
        operator = resolve(text, where, trust)
        if operator is None:
            register_late()
            operator = resolve(text, where, trust)
        if operator is None:
            missing[text] = where
        else:
            operators[text] = operator
    return operators, missing


def resolve(text: str, where: str = "", trust: Set[str] = frozenset()) -> Operator | None:
    """Find the operator that a file names.

    Args:
        text: the target: "torch.ops.aten.add.Tensor", "_operator.mul", "torch.ops.higher_order.cond", "#mine:op".
        where: the place to name in errors.
        trust: operators, and rules, that the caller lets pass.

    Returns:
        The operator, or None where this process has none of that name.

    Raises:
        OperatorError: the name is refused, or is no name of an operator.
    """
    place = where or "target"
    if text in SYMBOLIC:
        return Operator(text, SYMBOLIC[text], "symbolic")
    if text in FUNCTIONS:
        function = find_function(text)
        return None if function is None else Operator(text, function, "function")
    if text.startswith("#"):
        return _extension(text, place)
    higher, dispatched = _HIGHER_ORDER.fullmatch(plain_target(text)), _DISPATCHED.fullmatch(text)
    reason = refusal(text) if higher or dispatched else None
    if reason and not trusts_operator(trust, text, "X10"):
        message = f"{place}: {text[:80]} is refused: {reason}"
        raise refused(OperatorError, message, "X10", [operator_entry(text[:200])])
    if higher:
        target = find_higher_order(higher[1])
        return None if target is None else Operator(text, target, "higher_order")
    if dispatched:
        return _dispatched(text, dispatched, place)
    if trusts_operator(trust, text, "X7"):
        return _trusted(text, place)
    raise refused(
        OperatorError,
        f"{place}: expected an operator (torch.ops.<namespace>.<name>.<overload>) or a function over numbers, "
        f"got {text[:80]!r}, which a file may not call",
        "X7",
        [text[:200]],
    )


def _trusted(text: str, place: str) -> Operator | None:
    """Return a function that the caller trusts by its name, imported like a class of `trust=`."""
    module, _, name = text.rpartition(".")
    target = optional(module, name) if module else None
    if target is None:
        return None
    if not callable(target):
        raise OperatorError(f"{place}: expected {text[:80]!r} to be a function, got a {type(target).__name__}")
    return Operator(text, target, "function")


def _dispatched(text: str, match: re.Match[str], place: str) -> Operator | None:
    namespace, name, overload = match.groups()
    if not find_schema(f"{namespace}::{name}", "" if overload == "default" else overload):
        return None
    target = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    if not isinstance(target, OpOverload):
        raise OperatorError(f"{place}: expected {text} to be an operator, got {type(target).__name__}")
    return of_overload(text, target)


# A memo of a pure function over overloads: an operator that is registered again is another object.
@functools.lru_cache(maxsize=4096)
def of_overload(text: str, target: OpOverload) -> Operator:
    """Describe an overload of the dispatcher, under its name in files."""
    return with_schema(text, target, schema_of(target))


def _extension(text: str, place: str) -> Operator | None:
    namespace, colon, name = text[1:].partition(":")
    extension = find_namespace(namespace) if colon else None
    if extension is None:
        raise OperatorError(
            f"{place}: expected an extension registered under {namespace[:80]!r} for {text[:80]!r}, got none: "
            "call pt2kit.register_extension first"
        )
    try:
        target = extension.from_name(checked_name(name, namespace))
    except Exception as error:  # The caller's code, which gets a name from the file.
        raise OperatorError(
            f"{place}: expected {text[:80]!r} to name an operator of the extension, "
            f"got: {error or type(error).__name__}"
        ) from error
    if not issubclass(type(target), extension.type):
        raise OperatorError(
            f"{place}: expected {text[:80]!r} to name an operator of the type {extension.type.__name__}, "
            f"got a {type(target).__name__}"
        )
    return with_schema(text, target, extension.schema(target))


def with_schema(text: str, target: Callable[..., Any], schema: Any) -> Operator:
    """Describe an operator by its `torch.FunctionSchema`."""
    signature = parse_operator(str(schema))
    # Numbers for tensors are refused where the table of `checks` speaks of all operators: in aten.
    takes_numbers = not text.startswith(ATEN_OPS) or takes_numbers_as_tensors(text.removeprefix(OPS))
    return Operator(
        text,
        target,
        "operator",
        signature,
        {
            name: parameter_arms(parameter.type, numbers_as_tensors=takes_numbers)
            for name, parameter in signature.parameters.items()
        },
        tuple(map(result_arms, signature.results)),
        schema,
    )


def call_with_arrays(module: torch.nn.Module, arrays: Iterable[Any]) -> Any:
    """Call a module with arrays as 32-bit floats, without gradients.

    Args:
        module: the module to call.
        arrays: anything that `torch.as_tensor` accepts, one for each input.

    Returns:
        an array if the module returns one tensor, else the module's result.
    """
    with torch.no_grad():
        output = module(*(torch.as_tensor(one, dtype=torch.float32) for one in arrays))
    return output.numpy() if isinstance(output, torch.Tensor) else output


def warn_if_untested(version: str) -> None:
    """Warn, once per process, that a release is older or newer than all tested ones (`make test-torches`).

    Args:
        version: `torch.__version__`: "2.16.0a0+git1234"; one that is no number causes no warning.
    """
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None or OLDEST <= (int(match[1]), int(match[2])) <= NEWEST:
        return
    tested = " to ".join(".".join(map(str, pair)) for pair in (OLDEST, NEWEST))
    warnings.warn(
        f"pt2kit was tried with torch {tested}, got torch {version}; saving and loading may fail, or be refused",
        UserWarning,
        stacklevel=2,
    )


def to_schema(live: torch.dtype | torch.layout | torch.memory_format) -> Any:
    """Return the schema's member for a dtype, layout or memory format of torch.

    Raises:
        UnsupportedError: the schema has no number for it (for example sub-byte and quantized dtypes).
    """
    if live not in SCHEMA:
        kind = type(live).__name__.replace("_", " ")
        raise UnsupportedError(f"expected a {kind} of the schema, got {live}")
    return SCHEMA[live]


def to_device(device: Device) -> torch.device:
    """Return the live device of a schema `Device`; nothing is allocated on it.

    Raises:
        UnsupportedError: a type unknown to torch, or an index that it has no number for.
    """
    name = device_text(device)
    if device.index is not None and not 0 <= device.index <= MAX_DEVICE_INDEX:  # torch keeps the lowest byte
        raise UnsupportedError(f"expected a device index from 0 to {MAX_DEVICE_INDEX}, got {name[:80]!a}")
    try:
        return torch.device(device.type) if device.index is None else torch.device(device.type, device.index)
    except (RuntimeError, ValueError) as error:
        raise UnsupportedError(f"expected a device that torch knows, got {name[:80]!a}") from error


def from_device(device: torch.device) -> Device:
    """Return the schema `Device` of a live one."""
    return Device(device.type, device.index)
