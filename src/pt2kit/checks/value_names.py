"""Check of names that no Python variable or attribute can have: values (rule G8), parameters and constants (S10).

Reading takes any identifier for a name. torch writes names into the source of a function: keywords, `self` and other
spellings of an identifier end there as a syntax error, or as another value's name.
"""

from __future__ import annotations

from collections.abc import Iterator

from pt2kit.checks.findings import ProgramContext
from pt2kit.checks.stored_inputs import payload_name
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import graphs
from pt2kit.messages import quote
from pt2kit.schema.names import is_reserved, is_variable


def target_name_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield parameters, buffers and constants named like an attribute that every module has (S10)."""
    for number, spec in enumerate(context.program.graph_module.signature.input_specs):
        name = payload_name(spec.value)
        if name is not None and is_reserved(name):
            place = f"{context.record}: $.graph_module.signature.input_specs[{number}]"
            message = f"expected a name that modules do not have as an attribute, got {quote(name)}"
            yield Problem(place, "S10", message)


def value_name_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield the values whose name is an identifier, but no valid name of a variable (a keyword).

    Names that are no identifiers at all are found with the graph.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for scope in graphs(context.program, context.graph_place):
        places = [(f"{scope.where}.inputs[{place}]", argument) for place, argument in enumerate(scope.graph.inputs)]
        for number, node in enumerate(scope.graph.nodes):
            places += [(f"{scope.where}.nodes[{number}].outputs[{at}]", out) for at, out in enumerate(node.outputs)]
        for where, argument in places:
            for name in arguments(argument):
                if name.isidentifier() and not is_variable(name):
                    message = f"expected a name that a variable of Python can have, got {quote(name)}"
                    yield Problem(where, "G8", message)
