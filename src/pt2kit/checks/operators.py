"""Checks of operator calls against torch's release: names, arguments, results (rules T1 to T6, T10, T14).

A program of a release that the table has must fit it; what does not fit in a program of another one is a warning that
names both, and an operator that other releases have a note.

Source for the arguments that torch accepts for the types of parameters: `toIValue` in
torch/csrc/jit/python/pybind_utils.cpp, and `should_allow_numbers_as_tensors`, torch 2.13, both measured by calling
operators with every kind of value for every kind of parameter.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from pt2kit import schema
from pt2kit.checks.calls import higher_order_name, is_usual, named_operators, singles
from pt2kit.checks.findings import ProgramContext
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import ONE_VALUE, SYMBOLIC
from pt2kit.graph.traversal import HIGHER_ORDER, Step, is_custom, operator_namespace
from pt2kit.messages import count_text, kind_of, quote
from pt2kit.operators import schemas
from pt2kit.operators.higher_order import FUNCTIONS
from pt2kit.operators.promotion import takes_numbers_as_tensors
from pt2kit.schema import ArgumentKind
from pt2kit.schema.names import OPS, is_variable, plain_target
from pt2kit.schema.operators import (
    COMPLETE,
    Operator,
    Parameter,
    ValueType,
    nearest,
)
from pt2kit.symbols.functions import TARGETS, Target

_MAX_LISTED: Final = 12

WITHOUT_DIALECT: Final = frozenset(("1", "2", "5.1", "5.3", "draft"))
"""Schema versions whose programs may name no dialect."""
INT64: Final = range(-(1 << 63), 1 << 63)
_UINT64: Final = range(-(1 << 63), 1 << 64)
_PLAIN_INTS: Final = frozenset(("as_int", "as_ints", "as_int_lists"))

EXTENDED: Final = frozenset(("quantized_decomposed",))
"""Namespaces of torch that other libraries, such as ExecuTorch, register more operators in."""

_TENSORS_ONLY: Final = frozenset(("2.1", "2.2"))
"""Releases that leave numbers out of the results of a node."""

_NAMED_RESULTS: Final = (
    ONE_VALUE | {f"{arm}s" for arm in ONE_VALUE} | {"as_none", "as_optional_tensor", "as_optional_tensors"}
)
"""Arms of the results of a function."""
_ARMS_OF_KINDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"Tensor": ("as_tensor",), "int": ("as_int", "as_sym_int")}
)


def operator_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield problems of the calls of a program.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    unchecked: dict[str, list[Step]] = {}
    unknown: dict[str, str] = {}
    for step in context.steps():
        for target in named_operators(step.node):
            yield from _existence(context, step, target, unchecked, unknown)
        yield from _call(context, step)
    for what, steps in unchecked.items():
        message = f"{what}: {count_text(len(steps), 'call')} not checked"
        yield Problem(f"{steps[0].where}.target", "T2", message, "note")


def _existence(
    context: ProgramContext, step: Step, target: str, unchecked: dict[str, list[Step]], unknown: dict[str, str]
) -> Iterator[Problem]:
    """Check that the release has an operator; targets outside the dispatcher are safety findings (X7).

    Of the first few that are `unknown`, the message says what there is instead: looking that up takes long.
    """
    target = plain_target(target)
    if not target.startswith(OPS) or not is_usual(target):
        return
    name, namespace = target.removeprefix(OPS), operator_namespace(target)
    known = schemas.operators(context.release)
    higher_order = known.higher_order if namespace == HIGHER_ORDER else ()
    if name in known.schemas or name in schemas.RAISED or name.rpartition(".")[2] in higher_order:
        return
    if is_custom(target) or namespace not in schemas.namespaces() | {HIGHER_ORDER}:
        whose = "of a library" if is_custom(target) else "of parts of torch that not every build has"
        text = f"operators of the namespace {quote(namespace)}, {whose}"
    elif (others := schemas.releases_with(target)) and (
        namespace not in COMPLETE or not schemas.is_known(context.release)
    ):
        text = f"{quote(target)[1:-1]}, which torch {nearest(context.release)} does not have ({_of(context)})"
    elif namespace in EXTENDED:
        text = f"{quote(target)[1:-1]}, of a namespace that libraries register operators in, too"
    else:
        if target not in unknown:
            unknown[target] = schemas.similar(name, known.schemas) if len(unknown) < _MAX_LISTED else ""
        whose = f"torch {nearest(context.release)}" if others or not schemas.is_known(context.release) else "torch"
        message = f"expected an operator that {whose} has, got {quote(target)}{unknown[target]}"
        yield Problem(f"{step.where}.target", "T1", message)
        return
    unchecked.setdefault(text, []).append(step)


def _call(context: ProgramContext, step: Step) -> Iterator[Problem]:
    node = step.node
    if not node.target.startswith(OPS) or higher_order_name(node.target) is not None:
        yield from function_problems(node, step.where)
    elif (operator := schemas.find(node.target, context.release)) is None:
        yield from _ints(node, step.where)
        for position, named in enumerate(node.inputs):
            if not named.name:
                message = "expected the name of an argument, got none"
                yield Problem(f"{step.where}.inputs[{position}].name", "T3", message)
    elif not operator.is_open:
        found = argument_problems(node, step.where, operator, singles(step.scope.graph))
        for problem in (*found, *result_problems(node, step.where, operator, context.release)):
            yield _of_release(context, problem)
        yield from _dialect(context, step, operator)


def function_problems(node: schema.Node, where: str) -> Iterator[Problem]:
    """Yield the problems of a call of what has no schema: a function over numbers, one of export's own, a higher-order
    operator.

    Args:
        node: a node; one that calls a function over numbers passes all by place.
        where: its place.
    """
    yield from _ints(node, where)
    if node.target in TARGETS:
        yield from _numbers(node, where, TARGETS[node.target])
        return
    yield from _names(node, where)
    if node.target in FUNCTIONS:
        for position, (named, kind) in enumerate(zip(node.inputs, FUNCTIONS[node.target].kinds, strict=False)):
            if (arm := named.arg.type) not in (arms := _ARMS_OF_KINDS.get(kind, ("as_string",))):
                message = f"expected {' or '.join(arms)} as argument {position} of {node.target}, got {arm}"
                yield Problem(f"{where}.inputs[{position}].arg", "T5", message)
            elif arm == "as_string" and (text := named.arg.as_string) not in (texts := kind.split("|")):
                message = f"expected {' or '.join(texts)} as argument {position} of {node.target}, got {quote(text)}"
                yield Problem(f"{where}.inputs[{position}].arg", "T15", message)
        for position, output in enumerate(node.outputs):
            if output.type not in _NAMED_RESULTS:
                message = f"expected a value or none as result {position} of {node.target}, got {output.type}"
                yield Problem(f"{where}.outputs[{position}]", "T6", message)


def _names(node: schema.Node, where: str) -> Iterator[Problem]:
    """Yield names that no keyword argument can have (G15), or two have (T3), and places after names (T10)."""
    taken: set[str] = set()
    for position, named in enumerate(node.inputs):
        place, name = f"{where}.inputs[{position}]", named.name
        if named.is_placed:
            if taken:
                yield Problem(f"{place}.kind", "T10", "expected arguments by place before those by name, got one after")
            continue
        if name in taken:
            yield Problem(f"{place}.name", "T3", f"expected {quote(name)} once, got it twice")
        elif name.isidentifier() and not is_variable(name):
            message = f"expected a name that a keyword argument can have, got {quote(name)}"
            yield Problem(f"{place}.name", "G15", message)
        taken.add(name)


def _numbers(node: schema.Node, where: str, function: Target) -> Iterator[Problem]:
    """Check a call of a function over numbers: the number of arguments, and that they are numbers."""
    least, most = function.least, function.most
    if not least <= len(node.inputs) <= most:
        expected = count_text(most, "argument") if least == most else f"{least} to {most} arguments"
        message = f"expected {expected} of {node.target}, got {len(node.inputs)}"
        yield Problem(f"{where}.inputs", "T4", message)
    for position, named in enumerate(node.inputs):
        if (arm := named.arg.type) not in _NUMBERS and not (function.is_of_list and arm in _NUMBER_LISTS):
            message = f"expected a number as argument {position} of {node.target}, got {arm}"
            yield Problem(f"{where}.inputs[{position}].arg", "T5", message)
    if [output.type.removeprefix("as_") in SYMBOLIC for output in node.outputs] != [True]:
        got = ", ".join(output.type for output in node.outputs) or "none"
        message = f"expected one result of {node.target}, a symbolic number, got {got}"
        yield Problem(f"{where}.outputs", "T6", message)


def argument_problems(node: schema.Node, where: str, found: Operator, is_single: IsSingle) -> Iterator[Problem]:
    """Yield arguments that an operator does not have or lacks, or that do not fit (T3, T4, T5, T10).

    Args:
        node: the call.
        where: its place.
        found: the schema of the operator.
        is_single: of a value, whether it is one number or one element.
    """
    names: set[str] = set()
    for position, named in enumerate(node.inputs):
        place, name = f"{where}.inputs[{position}]", named.name
        if name in names:
            yield Problem(f"{place}.name", "T3", f"expected {quote(name)} once, got it twice")
        if name in found.parameters:
            names.add(name)
        if (problem := argument_problem(_short(node), named, place, found, is_single)) is not None:
            yield problem
    for parameter in found.parameters.values():
        if parameter.is_required and parameter.name not in names:
            message = f"expected the argument {parameter.name} of {_short(node)}, got none of that name"
            yield Problem(f"{where}.inputs", "T4", message)
    yield from _binding(node, where, found)


def argument_problem(
    short: str, named: schema.NamedArgument, place: str, found: Operator, is_single: IsSingle
) -> Problem | None:
    """Return that an operator does not have an argument (T3), or that it does not fit its parameter (T5).

    Args:
        short: the operator, without "torch.ops.".
        named: the argument.
        place: its place.
        found, is_single: as in `argument_problems`.
    """
    parameter = found.parameters.get(named.name)
    if parameter is None:
        known = ", ".join(list(found.parameters)[:_MAX_LISTED]) or "none"
        return Problem(f"{place}.name", "T3", f"expected an argument of {short} ({known}), got {quote(named.name)}")
    got = misfit(named.arg, parameter.type, is_single, numbers_as_tensors=takes_numbers_as_tensors(short))
    if got is None:
        return None
    message = f"expected {parameter.type} as the argument {named.name} of {short}, got {got}"
    return Problem(f"{place}.arg", "T5", message)


def _binding(node: schema.Node, where: str, found: Operator) -> Iterator[Problem]:
    """Check for positional arguments that bind to another parameter, or to none (T10).

    torch passes those without a kind by place if they have no default and may stand by place.
    """
    kinds = {named.name: named.kind for named in node.inputs}
    if any(parameter.is_required and name not in kinds for name, parameter in found.parameters.items()):
        return  # T4 reports it; later arguments are shifted because of it.
    by_place = [
        parameter
        for parameter in found.parameters.values()
        if parameter.name in kinds and is_by_place(parameter, kinds[parameter.name])
    ]
    for parameter, own in zip(by_place, found.parameters.values(), strict=False):
        if parameter.is_keyword_only or parameter.name != own.name:
            place = next(n for n, named in enumerate(node.inputs) if named.name == parameter.name)
            taken = "which takes it by name only" if parameter.is_keyword_only else f"where it would be {own.name}"
            message = f"expected the argument {parameter.name} of {_short(node)} by name, got it by place, {taken}"
            yield Problem(f"{where}.inputs[{place}].kind", "T10", message)
            return


def is_by_place(parameter: Parameter, kind: ArgumentKind | None) -> bool:
    """Return whether an argument is passed by place: as stated, or as torch decides for one without a kind."""
    if kind is ArgumentKind.POSITIONAL:
        return True
    if kind is ArgumentKind.KEYWORD and not keyword.iskeyword(parameter.name):
        return False
    return (parameter.is_required and not parameter.is_keyword_only) or keyword.iskeyword(parameter.name)


def result_problems(node: schema.Node, where: str, found: Operator, release: str = "") -> Iterator[Problem]:
    """Yield results that an operator of a release does not have (T6)."""
    returns = found.results
    if release in _TENSORS_ONLY and len(node.outputs) != len(returns):
        returns = tuple(kind for kind in returns if kind.base == "Tensor")
    if len(node.outputs) != len(returns):
        message = (
            f"expected {count_text(len(returns), 'output')}, as many as {_short(node)} has, got {len(node.outputs)}"
        )
        yield Problem(f"{where}.outputs", "T6", message)
        return
    for position, (output, kind) in enumerate(zip(node.outputs, returns, strict=True)):
        arms = result_arms(kind)
        if arms is not None and (arm := output.type) not in arms:
            message = f"expected {kind} as result {position} of {_short(node)}, got {arm}"
            yield Problem(f"{where}.outputs[{position}]", "T6", message)


def _dialect(context: ProgramContext, step: Step, found: Operator) -> Iterator[Problem]:
    """Check for an operator that writes to its arguments in a program whose dialect has none (T14)."""
    dialects = context.program.verifiers
    if "TRAINING" in dialects or context.stored_version in WITHOUT_DIALECT or not found.parameters:
        return
    if any(parameter.type.is_written for parameter in found.parameters.values()):
        said = ", ".join(dialects) or "none"
        message = f"expected the dialect TRAINING where {_short(step.node)} writes to its arguments, got {said}"
        # Of no release: one that began to write (`rrelu_with_noise`) changes the dialect when a program is read.
        yield Problem(f"{step.where}.target", "T14", message)


def _ints(node: schema.Node, where: str) -> Iterator[Problem]:
    """Check whole numbers in calls of what has no known schema: they have at most 64 bits, with or without sign."""
    for position, named in enumerate(node.inputs):
        if exceeds(named.arg, _UINT64):
            label = quote(named.name) if named.name else position
            message = f"expected numbers of 64 bits as the argument {label}, got a larger one"
            yield Problem(f"{where}.inputs[{position}].arg", "T5", message)


def _of_release(context: ProgramContext, problem: Problem) -> Problem:
    """Return an error for a program of a known release, and a warning that names both releases for other programs."""
    if schemas.is_known(context.release):
        return problem
    message = f"{problem.message} (as torch {nearest(context.release)} has it; {_of(context)})"
    return replace(problem, message=message, kind="warning")


def _of(context: ProgramContext) -> str:
    return f"the program is of torch {context.release}" if context.release else "the program's release is not known"


def _short(node: schema.Node) -> str:
    return node.target.removeprefix(OPS)


IsSingle = Callable[[str], bool]
"""The name of a value -> whether it is a tensor of one element, or a number."""

_NUMBERS: Final = frozenset(("as_int", "as_float", "as_bool", "as_sym_int", "as_sym_float", "as_sym_bool"))
_INTS: Final = frozenset(("as_int", "as_bool", "as_sym_int", "as_sym_bool"))
_ENUMS: Final = frozenset(("as_scalar_type", "as_layout", "as_memory_format"))
_NUMBER_LISTS: Final = frozenset(f"{arm}s" for arm in _NUMBERS)
_LISTS_OF_NUMBERS: Final = _NUMBER_LISTS | {"as_tensors"}
_LISTS_OF_INTS: Final = _LISTS_OF_NUMBERS - {"as_floats", "as_sym_floats"}
_LISTS: Final = _LISTS_OF_NUMBERS | {
    *("as_strings", "as_optional_tensors", "as_nested_tensors", "as_int_lists", "as_float_lists"),
}

_ONE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Tensor": frozenset(("as_tensor",)),
        "int": _INTS | _ENUMS,
        "SymInt": _INTS,
        "float": _NUMBERS,
        "bool": _NUMBERS | {"as_complex", "as_none"},
        "Scalar": _NUMBERS | {"as_complex"},
        "complex": _NUMBERS | {"as_complex"},
        "str": frozenset(("as_string",)),
        "Device": frozenset(("as_device", "as_string")),
        "ScalarType": frozenset(("as_scalar_type", "as_int")),
        "Layout": frozenset(("as_layout",)),
        "MemoryFormat": frozenset(("as_memory_format", "as_int")),
        "Generator": frozenset[str](),
    }
)
"""Type -> the arms that a single value of it comes in."""

_MANY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        **dict.fromkeys(("Tensor[]", "Tensor?[]"), frozenset(("as_tensors", "as_optional_tensors"))),
        "Tensor[][]": frozenset(("as_nested_tensors",)),
        **dict.fromkeys(("int[]", "SymInt[]"), _LISTS_OF_INTS),
        "int[][]": frozenset(("as_int_lists",)),
        **dict.fromkeys(("float[]", "bool[]", "Scalar[]"), _LISTS_OF_NUMBERS),
        "float[][]": frozenset(("as_float_lists", "as_int_lists")),
        "str[]": frozenset(("as_strings",)),
    }
)
"""Type of a list -> the arms that it comes in, besides empty lists of any arm."""

_OF_ONE_ELEMENT: Final = frozenset(("int", "SymInt", "float", "bool", "complex", "ScalarType"))
"""Types whose value may be taken out of a tensor of one element."""

_SIZED: Final = frozenset(("int", "float", "bool"))
"""Types of which a list with a length may be given as a single value. Those of `SymInt` may not."""

_RESULTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Tensor": frozenset(("as_tensor", "as_none", "as_optional_tensor")),
        "Tensor[]": frozenset(("as_tensors", "as_optional_tensors", "as_none")),
        **{kind: frozenset((f"as_sym_{kind}", f"as_{kind}", "as_none")) for kind in ("int", "float", "bool")},
        "SymInt": frozenset(("as_sym_int", "as_int", "as_none")),
        "Scalar": _NUMBERS | {"as_none"},
    }
)


def _listed(kind: ValueType) -> str:
    """Return a type without its own optional mark: "Tensor?[]" for "Tensor?[]?"."""
    return kind.base + kind.suffix.removesuffix("?")


def parameter_arms(kind: ValueType, *, numbers_as_tensors: bool = True) -> frozenset[str] | None:
    """Return the arms of `schema.Argument` that a type accepts; None if it accepts every arm.

    Args:
        kind: the type of the parameter.
        numbers_as_tensors: whether the operator accepts numbers for a Tensor.
    """
    if kind.base not in _ONE or (kind.is_list and _listed(kind) not in _MANY):
        return None  # Of other types, such as classes and dictionaries, nothing is known.
    arms = _MANY[_listed(kind)] | _LISTS if kind.is_list else frozenset()
    if not kind.is_list or (kind.length > 0 and kind.base in _SIZED):
        arms |= _ONE[kind.base] | ({"as_tensor"} if kind.base in _OF_ONE_ELEMENT else frozenset())
        arms |= _NUMBERS | {"as_complex"} if kind.base == "Tensor" and numbers_as_tensors else frozenset()
    return arms | ({"as_none"} if kind.is_optional else frozenset())


def misfit(argument: schema.Argument, kind: ValueType, is_single: IsSingle, *, numbers_as_tensors: bool) -> str | None:
    """Return the error of an argument of a parameter.

    Args:
        argument: the argument.
        kind: the type of the parameter.
        is_single: of a value, whether it is one number or one element.
        numbers_as_tensors: whether the operator takes numbers for parameters of type Tensor.

    Returns:
        The error, for a message; None if torch accepts the argument, or if that is not known.
    """
    arms = parameter_arms(kind, numbers_as_tensors=numbers_as_tensors)
    if arms is None:
        return None
    arm, value = argument.type, argument.value
    fits = arm in arms
    if kind.is_list and arm in _LISTS:
        fits = not value or (arm in _MANY[_listed(kind)] and _entries_fit(arm, value, kind, is_single))
    elif arm == "as_tensor" and kind.base != "Tensor":
        fits = fits and is_single(value.name)
    if not fits:
        return arm
    if arm in _ENUMS and int(value) == 0:
        return f"{arm} 0, which is none"
    return _too_large(arm, value, kind)


def _entries_fit(arm: str, entries: list[Any], kind: ValueType, is_single: IsSingle) -> bool:
    if arm == "as_optional_tensors" and _listed(kind) == "Tensor[]":
        return all(entry.type == "as_tensor" for entry in entries)
    # torch also writes lists of symbolic numbers as lists of tensors.
    return arm != "as_tensors" or kind.base == "Tensor" or all(is_single(entry.name) for entry in entries)


def _too_large(arm: str, value: Any, kind: ValueType) -> str | None:
    """Return the error of a number that does not fit into its C++ type."""
    if kind.base not in ("int", "SymInt", "Scalar", "Tensor"):
        return None
    is_index = kind.base in ("int", "SymInt")
    for number in _ints_in(arm, value):
        if number not in (INT64 if is_index else _UINT64):
            return f"{kind_of(number)}, which {'63' if is_index else '64'} bits cannot hold"
    return None


def exceeds(argument: schema.Argument, numbers: range) -> bool:
    """Return whether an argument has a plain int outside of a range."""
    return any(number not in numbers for number in _ints_in(argument.type, argument.value))


def _ints_in(arm: str, value: Any) -> Iterable[int]:
    """Return the plain ints of an argument."""
    entries = value if isinstance(value, list) else [value]
    if arm in ("as_sym_int", "as_sym_ints"):
        return [entry.as_int for entry in entries if isinstance(entry.as_int, int)]
    return chain.from_iterable(entries) if arm == "as_int_lists" else entries if arm in _PLAIN_INTS else ()


def result_arms(kind: ValueType) -> frozenset[str] | None:
    """Return the arms that match a result; None if every arm does."""
    return _RESULTS.get(_listed(kind))
