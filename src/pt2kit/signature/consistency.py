"""Consistency checks of a graph module's signature, as data; `from_schema` raises the first error."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

from pt2kit import schema
from pt2kit.errors import GraphError, Problem
from pt2kit.messages import quote
from pt2kit.schema.names import MAX_NAME, is_own_spelling
from pt2kit.signature.specs import (
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
    argument_spec,
    input_spec,
    order_problems,
    output_spec,
)

A = TypeVar("A")
B = TypeVar("B")

DEFAULT_WHERE = "$.graph_module"

_MAX_PARTS: Final = 128
"""Modules inside modules; torch and Python go through them by recursion."""


def problems(graph_module: schema.GraphModule, where: str = DEFAULT_WHERE) -> Iterator[Problem]:
    """Yield everything that is wrong with the signature of a graph module (rules S1 to S14). Raises nothing.

    Args:
        graph_module: the graph and its signature.
        where: the place of the graph module, for messages ("models/model.json: $.graph_module").

    Cost: linear in the specs.
    """
    return read_specs(graph_module, where, {}, {})


def read_specs(
    graph_module: schema.GraphModule, where: str, inputs: dict[int, InputSpec], outputs: dict[int, OutputSpec]
) -> Iterator[Problem]:
    """Yield the problems of a signature, and fill dicts with the readable specs by position."""
    graph, signature = graph_module.graph, graph_module.signature
    place = f"{where}.signature"
    yield from _count_problems(graph, signature, place)
    yield from _token_problems(signature, place)
    yield from _read(signature.input_specs, input_spec, f"{place}.input_specs", inputs)
    yield from _read(signature.output_specs, output_spec, f"{place}.output_specs", outputs)
    yield from _compare(inputs, graph.inputs, f"{place}.input_specs", "S3")
    yield from _compare(outputs, graph.outputs, f"{place}.output_specs", "S4")
    yield from order_problems(inputs, outputs, place)
    yield from _owner_problems(inputs, outputs, place)
    yield from _target_problems(inputs, graph, place)
    yield from _placeholder_problems(inputs, graph, place)


def _count_problems(graph: schema.Graph, signature: schema.GraphSignature, place: str) -> Iterator[Problem]:
    sides = (
        ("S1", "input", len(graph.inputs), len(signature.input_specs)),
        ("S2", "output", len(graph.outputs), len(signature.output_specs)),
    )
    for rule, side, expected, got in sides:
        if expected != got:
            message = f"expected {expected} {side}_specs, one for each {side} of the graph, got {got}"
            yield Problem(f"{place}.{side}_specs", rule, message)


def check_counts(graph_module: schema.GraphModule, where: str = DEFAULT_WHERE) -> None:
    """Refuse a signature that has not one spec for each input and output of its graph.

    Raises:
        GraphError: there are more or fewer (S1, S2).
    """
    for problem in _count_problems(graph_module.graph, graph_module.signature, f"{where}.signature"):
        raise GraphError(f"{problem.loc}: {problem.message}", rule=problem.rule)


def _token_problems(signature: schema.GraphSignature, place: str) -> Iterator[Problem]:
    tokens_in = sum(spec.type == "token" for spec in signature.input_specs)
    tokens_out = sum(spec.type == "token" for spec in signature.output_specs)
    if tokens_in != tokens_out:
        message = f"expected {tokens_in} output tokens, as many as input tokens, got {tokens_out}"
        yield Problem(f"{place}.output_specs", "S13", message)


def _read(specs: Sequence[A], reader: Callable[[A], B], place: str, into: dict[int, B]) -> Iterator[Problem]:
    """Convert specs into `into`, by position; what cannot be converted is a problem (S12)."""
    for position, spec in enumerate(specs):
        try:
            into[position] = reader(spec)
        except GraphError as error:
            yield Problem(f"{place}[{position}]", error.rule, error.message)


def _compare(
    specs: Mapping[int, InputSpec] | Mapping[int, OutputSpec],
    arguments: Sequence[schema.Argument],
    place: str,
    rule: str,
) -> Iterator[Problem]:
    """Compare specs with the inputs or outputs of the graph at their positions."""
    for position, spec in specs.items():
        if position >= len(arguments):
            continue
        argument = arguments[position]
        try:
            stated = argument_spec(argument)
        except GraphError:
            expected = argument.type
        else:
            if _same(spec.arg, stated):
                continue
            expected = _describe(stated)
        message = f"expected what the graph has there, {expected}, got {_describe(spec.arg)}"
        yield Problem(f"{place}[{position}]", rule, message)


def _same(spec: ArgumentSpec, found: ArgumentSpec) -> bool:
    if isinstance(spec, ConstantArgument) and isinstance(found, ConstantArgument):
        both_nan = spec.value != spec.value and found.value != found.value
        return spec.value == found.value or both_nan
    # The schema has no arm for tokens: among the inputs and outputs of the graph they are tensors.
    return found == (TensorArgument(spec.name) if isinstance(spec, TokenArgument) else spec)


def _describe(arg: ArgumentSpec) -> str:
    if isinstance(arg, ConstantArgument):
        return f"the constant {quote(arg.value)}"
    of = f" of the class {quote(arg.class_fqn)}" if isinstance(arg, CustomObjArgument) else ""
    return f"the {_NOUNS[type(arg)]} {quote(arg.name)}{of}"


_NOUNS: Mapping[type, str] = MappingProxyType(
    {
        TensorArgument: "tensor",
        TokenArgument: "token",
        SymIntArgument: "symbolic int",
        SymFloatArgument: "symbolic float",
        SymBoolArgument: "symbolic bool",
        CustomObjArgument: "custom object",
    }
)


def _owner_problems(
    inputs: Mapping[int, InputSpec], outputs: Mapping[int, OutputSpec], place: str
) -> Iterator[Problem]:
    """Check for mutations and gradients of missing targets, and mutations that torch takes for one (S7).

    Source: `_verify_exported_program_signature` in torch/_export/verifier.py, 2.13, counts them by their values.
    """
    parameters = {spec.target for spec in inputs.values() if spec.kind is InputKind.PARAMETER}
    buffers = {spec.target for spec in inputs.values() if spec.kind is InputKind.BUFFER}
    user_inputs = {
        spec.arg.name
        for spec in inputs.values()
        if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument)
    }
    owners: dict[OutputKind, tuple[set[str | None] | set[str], str]] = {
        OutputKind.PARAMETER_MUTATION: (parameters, "parameter"),
        OutputKind.GRADIENT_TO_PARAMETER: (parameters, "parameter"),
        OutputKind.BUFFER_MUTATION: (buffers, "buffer"),
        OutputKind.USER_INPUT_MUTATION: (user_inputs, "user input that is a tensor"),
        OutputKind.GRADIENT_TO_USER_INPUT: (user_inputs, "user input that is a tensor"),
    }
    written: dict[tuple[OutputKind, str], str | None] = {}
    targets: set[tuple[OutputKind, str | None]] = set()
    for position, spec in outputs.items():
        if spec.kind not in owners:
            continue
        if spec.kind.name.endswith("_MUTATION"):
            if (spec.kind, spec.target) in targets:
                message = f"expected one mutation of {quote(spec.target)}, got another one"
                yield Problem(f"{place}.output_specs[{position}]", "S7", message)
            targets.add((spec.kind, spec.target))
            value = spec.arg.name
            other = written.setdefault((spec.kind, value), spec.target)
            if other != spec.target:
                message = (
                    f"expected a value of its own for {quote(spec.target)}, got {quote(value)}, as for {quote(other)}"
                )
                yield Problem(f"{place}.output_specs[{position}]", "S7", message)
        known, noun = owners[spec.kind]
        if spec.target not in known:
            message = f"expected the name of a {noun}, got {quote(spec.target)}; the signature has {len(known)} of them"
            yield Problem(f"{place}.output_specs[{position}]", "S7", message)


def _target_problems(inputs: Mapping[int, InputSpec], graph: schema.Graph, place: str) -> Iterator[Problem]:
    """Check for targets that are no names (S10), and inputs that share a target but not its kind (S8).

    Two inputs for one parameter are legal: torch writes them for tied weights. A target below another is not, as a
    tensor holds no others: torch fails where it makes the module.
    """
    first: dict[str, tuple[int, InputSpec]] = {}
    targets = [spec.target for spec in inputs.values() if spec.target is not None]
    below = targets_below(targets, targets)
    for position, spec in inputs.items():
        if spec.target is None:
            continue
        if not is_target(spec.target):
            message = (
                "expected names with dots between them, without double quotes, backslashes and control characters, "
                f"got {quote(spec.target)}"
            )
            yield Problem(f"{place}.input_specs[{position}]", "S10", message)
        if spec.target in below:
            message = (
                f"expected {quote(spec.target)} to hold no others, as it is a {spec.kind.name}, "
                f"got {quote(below[spec.target])} below it"
            )
            yield Problem(f"{place}.input_specs[{position}]", "S8", message)
        other_position, other = first.setdefault(spec.target, (position, spec))
        if other.kind is not spec.kind:
            message = (
                f"expected {quote(spec.target)} to be a {other.kind.name}, as input_specs[{other_position}] says, "
                f"got {spec.kind.name}"
            )
            yield Problem(f"{place}.input_specs[{position}]", "S8", message)
        elif other is not spec and _meta(graph, spec) != _meta(graph, other):
            message = (
                f"expected the same tensor or object as input_specs[{other_position}], which has the same target "
                f"{quote(spec.target)}, got one that differs from it"
            )
            yield Problem(f"{place}.input_specs[{position}]", "S8", message)


def targets_below(names: Iterable[str], targets: Iterable[str]) -> dict[str, str]:
    """Map each name that is a prefix of targets ("a" of "a.b") to the first of these.

    Cost: that of sorting the targets; targets below a name follow it directly.
    """
    paths = sorted({tuple(target.split(".")) for target in targets})
    below: dict[str, str] = {}
    for name in names:
        path = tuple(name.split("."))
        place = bisect_right(paths, path)
        if place < len(paths) and paths[place][: len(path)] == path:
            below[name] = ".".join(paths[place])
    return below


def _meta(graph: schema.Graph, spec: InputSpec) -> object:
    """Return the graph's meta of the value of a parameter, buffer, constant or custom object."""
    if isinstance(spec.arg, CustomObjArgument):
        return spec.arg.class_fqn
    return graph.tensor_values.get(spec.arg.name)


def is_target(target: str) -> bool:
    """Return whether a target can be the path of an attribute: module names may hold blanks and dashes, but nothing
    that would end the quoted text which torch pastes them into, nor letters that Python spells otherwise.
    """
    parts = target.split(".")
    return (
        all(parts)
        and len(target) <= MAX_NAME
        and len(parts) <= _MAX_PARTS
        and _UNFIT.search(target) is None
        and all(is_own_spelling(part) for part in parts if part.isidentifier())
    )


_UNFIT = re.compile(r"[\"\\\x00-\x1f\x7f\x85\u2028\u2029]")


def _placeholder_problems(inputs: Mapping[int, InputSpec], graph: schema.Graph, place: str) -> Iterator[Problem]:
    """Check for constant inputs whose placeholder torch could not declare (S14)."""
    tables = (graph.tensor_values, graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values)
    taken = {name: "a value" for table in (*tables, graph.custom_obj_values) for name in table}
    taken |= {
        spec.arg.name: f"input_specs[{position}]"
        for position, spec in inputs.items()
        if not isinstance(spec.arg, ConstantArgument)
    }
    for position, spec in inputs.items():
        name = spec.arg.name
        if not isinstance(spec.arg, ConstantArgument) or not name:
            continue
        place_of_spec = f"{place}.input_specs[{position}]"
        if not name.isidentifier():
            message = f"expected an identifier as the name of a placeholder, got {quote(name)}"
            yield Problem(place_of_spec, "S14", message)
        if name in taken:
            message = f"expected a name of its own, got {quote(name)}, which {taken[name]} has"
            yield Problem(place_of_spec, "S14", message)
        taken.setdefault(name, f"input_specs[{position}]")
