"""The calls of a program against the operators of torch: names, arguments, results (rules T1 to T6).

The table is that of one release. A program of that release must fit it; what does not fit in a program of another one
is a warning that names both, and an operator that the table does not have a note: other releases had other operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks import schemas
from pt2kit.checks.parameter_kinds import parameter_arms, result_arms
from pt2kit.checks.subject import Subject
from pt2kit.checks.targets import argument_counts, is_usual
from pt2kit.errors import Kind, Problem
from pt2kit.graph import Step, is_custom, leaves, operator_namespace
from pt2kit.graph.rules import show

_OPERATORS: Final = "torch.ops."
_HIGHER_ORDER: Final = "torch.ops.higher_order."
_MAX_LISTED: Final = 12


def operator_problems(subject: Subject) -> Iterator[Problem]:
    """Iterate what is wrong with the calls of a program.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    unchecked: dict[str, list[Step]] = {}
    unknown: dict[str, str] = {}
    for step in subject.steps():
        for target in _named_operators(step):
            yield from _existence(subject, step, target, unchecked, unknown)
        yield from _call(subject, step)
    for what, steps in unchecked.items():
        calls = f"{len(steps):,} call{'' if len(steps) == 1 else 's'}"
        yield Problem(f"{steps[0].where}.target", "T2", f"{what}: {calls} not checked", "note")


def _named_operators(step: Step) -> Iterator[str]:
    """What a node calls, and the operators among its arguments."""
    yield step.node.target
    for named in step.node.inputs:
        if named.arg.as_operator is not UNSET:
            yield named.arg.as_operator
        elif named.arg.as_string_to_argument is not UNSET:
            yield from (leaf.as_operator for _, leaf in leaves(named.arg) if leaf.as_operator is not UNSET)


def _existence(
    subject: Subject, step: Step, target: str, unchecked: dict[str, list[Step]], unknown: dict[str, str]
) -> Iterator[Problem]:
    """Whether the release has an operator; targets outside the dispatcher are safety findings (X7).

    Of the first few that are `unknown`, the message says what there is instead: looking that up takes long.
    """
    if not target.startswith(_OPERATORS) or not is_usual(target):
        return
    namespace = operator_namespace(target)
    if target.startswith(_HIGHER_ORDER):
        if target.removeprefix(_HIGHER_ORDER) not in schemas.table().higher_order:
            unchecked.setdefault(f"the higher-order operator {show(target)[1:-1]}", []).append(step)
    elif schemas.find(target, subject.release) is not None:
        return
    elif is_custom(target) or namespace not in schemas.COMPLETE:
        whose = "of a library" if is_custom(target) else "of parts of torch that not every build has"
        unchecked.setdefault(f"operators of the namespace {show(namespace)}, {whose}", []).append(step)
    elif _is_of_table(subject):
        if target not in unknown:
            unknown[target] = _close(target) if len(unknown) < _MAX_LISTED else ""
        message = f"expected an operator that torch {schemas.RELEASE} has, got {show(target)}{unknown[target]}"
        yield Problem(f"{step.where}.target", "T1", message)
    else:
        text = f"{show(target)[1:-1]}, which torch {schemas.RELEASE} does not have ({_of(subject)})"
        unchecked.setdefault(text, []).append(step)


def _call(subject: Subject, step: Step) -> Iterator[Problem]:
    node = step.node
    if node.target.startswith(_OPERATORS):
        found = None if node.target.startswith(_HIGHER_ORDER) else schemas.find(node.target, subject.release)
        if found is not None and not found.is_open:
            yield from _arguments(subject, step, found)
            yield from _results(subject, step, found)
    elif (counts := argument_counts(node.target)) is not None and not counts[0] <= len(node.inputs) <= counts[1]:
        expected = str(counts[0]) if counts[0] == counts[1] else f"{counts[0]} to {counts[1]}"
        yield Problem(
            f"{step.where}.inputs", "T4", f"expected {expected} arguments of {node.target}, got {len(node.inputs)}"
        )


def _arguments(subject: Subject, step: Step, found: schemas.Signature) -> Iterator[Problem]:
    node, parameters = step.node, found.parameters
    given: set[str] = set()
    for position, named in enumerate(node.inputs):
        place, name = f"{step.where}.inputs[{position}]", named.name
        parameter = parameters.get(name)
        if parameter is None:
            known = ", ".join(list(parameters)[:_MAX_LISTED]) or "none"
            message = f"expected an argument of {_short(node)} ({known}), got {show(name)}"
            yield _problem(subject, f"{place}.name", "T3", message)
            continue
        if name in given:
            yield _problem(subject, f"{place}.name", "T3", f"expected {show(name)} once, got it twice")
        given.add(name)
        arms = parameter_arms(parameter.type)
        if arms is not None and (arm := named.arg.type) not in arms:
            message = f"expected {parameter.type} as the argument {name} of {_short(node)}, got {arm}"
            yield _problem(subject, f"{place}.arg", "T5", message)
    for parameter in parameters.values():
        if parameter.required and parameter.name not in given:
            message = f"expected the argument {parameter.name} of {_short(node)}, got none of that name"
            yield _problem(subject, f"{step.where}.inputs", "T4", message)


def _results(subject: Subject, step: Step, found: schemas.Signature) -> Iterator[Problem]:
    node = step.node
    if len(node.outputs) != len(found.returns):
        message = f"expected {len(found.returns)} outputs, as many as {_short(node)} has, got {len(node.outputs)}"
        yield _problem(subject, f"{step.where}.outputs", "T6", message)
        return
    for position, (output, kind) in enumerate(zip(node.outputs, found.returns, strict=True)):
        arms = result_arms(kind)
        if arms is not None and (arm := output.type) not in arms:
            message = f"expected {kind} as result {position} of {_short(node)}, got {arm}"
            yield _problem(subject, f"{step.where}.outputs[{position}]", "T6", message)


def _problem(subject: Subject, place: str, rule: str, message: str) -> Problem:
    """An error in a program of the table's release; a warning that says so in one of another."""
    if _is_of_table(subject):
        return Problem(place, rule, message)
    kind: Kind = "warning"
    return Problem(place, rule, f"{message} (as torch {schemas.RELEASE} has it; {_of(subject)})", kind)


def _is_of_table(subject: Subject) -> bool:
    return subject.release == schemas.RELEASE.rpartition(".")[0]


def _of(subject: Subject) -> str:
    return f"the program is of torch {subject.release}" if subject.release else "the program's release is not known"


def _short(node: schema.Node) -> str:
    return node.target.removeprefix(_OPERATORS)


def _close(target: str) -> str:
    """The overloads that there are instead, or operators of a similar name."""
    from difflib import get_close_matches

    name = target.removeprefix(_OPERATORS)
    known = schemas.table().operators
    family = name.rpartition(".")[0] + "."
    found: Sequence[str] = [other for other in known if other.startswith(family)]
    if not found and len(name) < 100:
        found = get_close_matches(name, known, n=3, cutoff=0.85)
    return f"; there is {', '.join(found[:4])}" if found else ""
