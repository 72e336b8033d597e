"""Refusals of `load` and `load_module`: the rules of `check` that are marked as refusing, with the same rule and
location.

Building a program notices most contradictions by itself, for free. `check_quickly` runs the rules that it would not
notice. If building fails for whatever reason, `explained` asks `check` for the first refusing problem, which becomes
the error, so that the three entry points give one verdict under one rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Final

from pt2kit import schema
from pt2kit.checks.call_results import created_problems
from pt2kit.checks.calls import call_problems
from pt2kit.checks.expressions import expression_problems, input_size_problems, size_problem
from pt2kit.checks.findings import ProgramContext, context_of
from pt2kit.checks.growth import growth_problems
from pt2kit.checks.guards import guard_problems
from pt2kit.checks.higher_order import escape_problems, higher_order_problems, region_problems
from pt2kit.checks.payloads import read_stored, taken_twice_problems
from pt2kit.checks.run import all_problems
from pt2kit.checks.safety import expression_findings, step_findings
from pt2kit.checks.versions import version_problems
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.def_use import single_tensor_problems
from pt2kit.graph.traversal import graphs, is_too_large, table_problems
from pt2kit.package.open import Package
from pt2kit.rules import RULES

QUICK: Final[tuple[Callable[[ProgramContext], Iterable[Problem]], ...]] = (
    call_problems,
    expression_problems,
    expression_findings,
    lambda context: (
        problem
        for step in context.steps()
        if step.node.is_hop_single_tensor_return
        for problem in single_tensor_problems(step.node, step.where)
    ),
    guard_problems,
    lambda context: (
        problem
        for scope in graphs(context.program, context.graph_place)
        if any(map(is_too_large, scope.graph.tensor_values.values()))
        for problem in table_problems(scope.graph, scope.where)
    ),
    escape_problems,
    higher_order_problems,
    input_size_problems,
    lambda context: (problem for step in context.steps() for problem in step_findings(step)),
    region_problems,
    growth_problems,
    created_problems,
    partial(version_problems, any_dialect=True),  # Building a program looks for the verifiers of the process.
)
"""Rules that run on each load: what they find, building a program does not notice."""

_WITHOUT_TRUST: Final = frozenset(("X5", "X6"))
"""Safety findings that are refused whatever the caller trusts."""

_TRUSTED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({"P15": ("X2", "X3", "P22"), "T9": ("T9",)})
"""Rules of errors that name an entry for `trust=` (besides the X rules), to the rules of `check` for the same."""

_BY_RULE: Final = frozenset(("X10", "X12", "X14", "T9"))
"""Rules of `QUICK` that the caller may trust a program to break."""

_WAY_OUT: Final = "; if you trust the file"
"""How the part of a message begins that names the entry for `trust=`."""


def refuses(problem: Problem) -> bool:
    """Return whether `load` without `trust=` refuses a program with this problem."""
    rule = RULES.get(problem.rule)
    return rule is not None and rule.refuses and problem.severity == "error"


def error_of(problem: Problem, way_out: str = "") -> Pt2Error:
    """Return the exception for a problem.

    Args:
        problem: what is wrong.
        way_out: the end of the message, which names the entry for `trust=`.
    """
    return RULES[problem.rule].error(f"{problem.loc}: {problem.message}{way_out}", rule=problem.rule)


def check_quickly(package: Package, model: str, program: schema.ExportedProgram, trust: Set[str] = frozenset()) -> None:
    """Refuse a program for faults that building it would not detect.

    Args:
        package: an open package.
        model: the program's name in it.
        program: the program, with operators of the versions that it is built with.
        trust: rules that are not refused; of those that no entry allows (K4), building relies on the refusal.

    Raises:
        Pt2Error: the first problem.
    """
    record = package.layout.program_record(model)
    context = context_of(program, record.removeprefix(package.layout.root), package.stored[model].version)
    if (large := size_problem(context, package.records[record].size)) is not None:
        raise error_of(large)
    allowed = trust & _BY_RULE
    for rule in QUICK:
        for problem in rule(context):
            if refuses(problem) and problem.rule not in allowed:
                way_out = f"{_WAY_OUT}, pass trust=({problem.rule!r},)" if problem.rule in _BY_RULE else ""
                raise error_of(problem, way_out)
    targets = [target for *_, target in context.targets()]
    if len(set(targets)) < len(targets):  # Two inputs take one stored tensor.
        payloads, _ = read_stored(package, model)
        for problem in taken_twice_problems(context, payloads):
            raise error_of(problem)


@contextmanager
def explained(package: Package, model: str) -> Iterator[None]:
    """Raise, for an error inside the block, the refusing problem of `check` that it is about, if there is one.

    A problem that the caller may allow keeps its rule and the entry for `trust=` that its message names.

    Args:
        package: an open package; after an error, its records are read as `check` with `payloads` reads them.
        model: the program.

    Raises:
        Pt2Error: what is wrong with the program.
    """
    try:
        yield
    except Pt2Error as error:
        rules = (error.rule,) if error.rule.startswith("X") else _TRUSTED.get(error.rule, ())
        problem = next((one for one in all_problems(package, True, model) if _is_about(one, rules)), None)
        if problem is None:
            raise
        _, found, after = error.message.partition(_WAY_OUT)
        raise error_of(problem, found + after if rules else "") from error


def _is_about(problem: Problem, rules: tuple[str, ...]) -> bool:
    """Return whether a problem explains an error: of the same rule, or any that refuses if the error is of no such."""
    if rules:
        return problem.rule in rules and problem.severity == "error"
    return refuses(problem) and (problem.kind != "safety" or problem.rule in _WITHOUT_TRUST)
