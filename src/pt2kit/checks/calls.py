"""Checks of the module call graph, its tree specs, names (rules K1 to K8, G8, S10), and known targets of calls.

The call graph is compared with the signature.

Known targets are operators of torch's dispatcher, and functions that export itself writes. Everything else that torch
would find, it finds by walking from attribute to attribute, wherever the name leads.

Reading takes any identifier for a name. torch writes names into the source of a function: keywords, `self` and other
spellings of an identifier end there as a syntax error, or as another value's name. No variable of Python can have
those of values that G8 lists, no attribute those of parameters and constants that S10 lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET

from pt2kit import schema, treespec
from pt2kit.checks.findings import ProgramContext
from pt2kit.errors import GraphError, Problem, Pt2Error, attempt
from pt2kit.graph.argument_values import arguments, leaves, references
from pt2kit.graph.traversal import argument_place, graphs, tables
from pt2kit.messages import PRINTED, count_text, quote
from pt2kit.operators.higher_order import FUNCTIONS
from pt2kit.schema.names import HIGHER_ORDER_OPS, MAX_NAME, is_reserved, is_variable, plain_target
from pt2kit.signature.specs import argument_spec
from pt2kit.symbols.functions import TARGETS
from pt2kit.treespec.containers import PYTHONS_OWN

_INPUTS: Final = ("user_input", "constant_input")
_OUTPUTS: Final = ("user_output", "loss_output")
_Fields = Mapping[str, Sequence[str]]

_DISPATCHER: Final = re.compile(r"torch\.ops\.(higher_order|\w+\.\w+)\.\w+")
_UNQUOTABLE: Final = re.compile(r'["\\\x00-\x1f\x7f\x85\u2028\u2029]')


def call_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield problems of the call signatures of the program and of modules that keep theirs."""
    module = context.program.graph_module
    where = f"{context.record}: $.graph_module.module_call_graph"
    entries = module.module_call_graph
    if not entries or entries[0].fqn or entries[0].signature is None:
        got = f"{quote(entries[0].fqn)}{'' if entries[0].signature else ' without one'}" if entries else "nothing"
        message = f"expected the root (fqn '') with its signature as the first entry, got {got}"
        yield Problem(f"{where}[0]" if entries else where, "K1", message)
    for number, entry in enumerate(entries):
        if number and not entry.fqn:
            yield Problem(f"{where}[{number}].fqn", "K1", "expected the name of a module, got '', the root once more")
        if entry.fqn and "" in entry.fqn.split("."):
            message = f"expected names with dots between them, got {quote(entry.fqn)}, of which torch makes no module"
            yield Problem(f"{where}[{number}].fqn", "K1", message)
        if _UNQUOTABLE.search(entry.fqn) or len(entry.fqn) > MAX_NAME:
            expected = f"at most {MAX_NAME:,} characters without quotes, backslashes and control characters"
            message = f"expected {expected}, got {quote(entry.fqn)}"
            yield Problem(f"{where}[{number}].fqn", "K1", message)
    if module.graph.is_single_tensor_return and len(module.graph.outputs) == 1:  # Else G12 says it.
        message = "expected false, as a program returns a list of outputs, got true"
        yield Problem(f"{context.graph_place}.is_single_tensor_return", "K8", message)
    fields = {name: row.field_names for name, row in module.treespec_namedtuple_fields.items()}
    names = {name for table in tables(module.graph).values() for name in table}
    others: dict[str, str] = {}
    for number, entry in enumerate(entries):
        if entry.signature is None:
            continue
        place = f"{where}[{number}].signature"
        counts = _counts(module.signature) if not entry.fqn else _kept_counts(entry.signature)
        has_keywords = context.stored_version != "1"  # It left the keyword arguments away where there were none.
        yield from _entry(entry.signature, place, counts, fields, others, has_keywords=has_keywords)
        yield from _unknown_values(entry.signature, place, names)
    for kind, place in others.items():
        message = (
            f"containers of the type {quote(kind, PRINTED)} are not checked: torch loads them where it is registered"
        )
        yield Problem(place, "K7", message, "note")


def _counts(signature: schema.GraphSignature) -> tuple[int, int]:
    """Return how many inputs and outputs the caller of the program has."""
    return (
        sum(spec.type in _INPUTS for spec in signature.input_specs),
        sum(spec.type in _OUTPUTS for spec in signature.output_specs),
    )


def _kept_counts(signature: schema.ModuleCallSignature) -> tuple[int, int] | None:
    """Return how many inputs and outputs a kept signature lists; None if it lists none, as strict export writes it."""
    if not signature.inputs and not signature.outputs:
        return None
    return len(signature.inputs), len(signature.outputs)


def _entry(
    signature: schema.ModuleCallSignature,
    place: str,
    counts: tuple[int, int] | None,
    fields: _Fields,
    others: dict[str, str],
    *,
    has_keywords: bool,
) -> Iterator[Problem]:
    """Check the tree specs of one entry; container types that torch does not have are added to `others`."""
    for side, text in (("in_spec", signature.in_spec), ("out_spec", signature.out_spec)):
        where = f"{place}.{side}"
        try:
            spec = treespec.parse(text, where)
        except Pt2Error as error:
            yield Problem(where, "K2", error.message.removeprefix(f"{where}: "))
            continue
        for node in treespec.walk(spec):
            if node.type is not None and node.type not in PYTHONS_OWN:
                others.setdefault(node.type, where)
        misfits = list(treespec.find_problems(spec, where, fields))
        yield from (Problem(problem.loc, "K3", problem.message) for problem in misfits)
        expected = None if counts is None else counts[side == "out_spec"]
        if expected is not None and (leaves := treespec.leaf_count(spec)) != expected:
            noun = "inputs" if side == "in_spec" else "outputs"
            yield Problem(
                where,
                "K4",
                f"expected {count_text(expected, 'leaf', 'leaves')}, one for each of the {noun}, got {leaves}",
            )
        elif side == "in_spec" and not misfits:
            yield from _argument_names(signature, spec, place)
        if side == "in_spec" and has_keywords:
            yield from _call_form(spec, where)


def _call_form(spec: treespec.TreeSpec, where: str) -> Iterator[Problem]:
    """Check that a call has positional and keyword arguments (K8)."""
    kinds = [child.type for child in spec.children]
    if spec.type == "builtins.tuple" and kinds != ["builtins.tuple", "builtins.dict"]:
        got = f"one of {', '.join('a leaf' if kind is None else quote(kind) for kind in kinds[:4]) or 'nothing'}"
        yield Problem(where, "K8", f"expected a tuple of a tuple (arguments) and a dict (keyword arguments), got {got}")


def _argument_names(signature: schema.ModuleCallSignature, spec: treespec.TreeSpec, place: str) -> Iterator[Problem]:
    where = f"{place}.in_spec"
    try:
        _, keywords = treespec.split_call(spec, where)
    except Pt2Error as error:
        yield Problem(where, "K3", error.message.removeprefix(f"{where}: "))
        return
    for name in keywords:
        if not name.isidentifier():
            yield Problem(where, "K5", f"expected an identifier as the name of a keyword argument, got {quote(name)}")
    names = signature.forward_arg_names or ()
    for problem in treespec.find_name_problems(names, spec, f"{place}.forward_arg_names"):
        yield Problem(problem.loc, "K5", problem.message)


def _unknown_values(signature: schema.ModuleCallSignature, place: str, names: set[str]) -> Iterator[Problem]:
    """Check for values of a kept signature that the graph does not have (K6)."""
    for side, passed in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        for position, argument in enumerate(passed):
            try:
                argument_spec(argument)
            except GraphError as error:
                yield Problem(f"{place}.{side}[{position}]", "K6", error.message.removeprefix(f"{place}: "))
                continue
            for reference in attempt(references, argument) or ():
                if reference.name not in names:
                    message = f"expected the name of a value of the graph, got {quote(reference.name)}"
                    yield Problem(f"{place}.{side}[{position}]", "K6", message)


def named_operators(node: schema.Node) -> Iterator[str]:
    """Yield the target of a node, and the operators among its arguments.

    Raises:
        LimitError: dicts of arguments nest too deep (G11).
    """
    yield node.target
    for named in node.inputs:
        if named.arg.as_operator is not UNSET:
            yield named.arg.as_operator
        elif named.arg.as_string_to_argument is not UNSET:
            yield from (leaf.as_operator for _, leaf in leaves(named.arg) if leaf.as_operator is not UNSET)


def higher_order_name(target: str) -> str | None:
    """Return the name of a higher-order operator ("cond"), in any spelling; None for other targets."""
    plain = plain_target(target)
    return plain.removeprefix(HIGHER_ORDER_OPS) if plain.startswith(HIGHER_ORDER_OPS) else None


def is_usual(target: str) -> bool:
    """Return whether a target is an operator of the dispatcher, a function that export writes, or an extension
    ("#ns:op")."""
    return bool(_DISPATCHER.fullmatch(target)) or target in TARGETS or target in FUNCTIONS or target.startswith("#")


def target_name_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield parameters, buffers and constants named like an attribute that every module has (S10)."""
    for place, _, name in context.targets():
        if is_reserved(name):
            message = f"expected a name that modules do not have as an attribute, got {quote(name)}"
            yield Problem(place, "S10", message)


def value_name_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield the values whose name is an identifier, but no valid name of a variable (a keyword).

    Names that are no identifiers at all are found with the graph.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for scope in graphs(context.program, context.graph_place):
        inputs = [(None, position, argument) for position, argument in enumerate(scope.graph.inputs)]
        outputs = [(at, *one) for at, node in enumerate(scope.graph.nodes) for one in enumerate(node.outputs)]
        for number, position, argument in (*inputs, *outputs):
            for name in arguments(argument):
                if name.isidentifier() and not is_variable(name):
                    place = argument_place(scope.where, "inputs" if number is None else "outputs", number, position)
                    message = f"expected a name that a variable of Python can have, got {quote(name)}"
                    yield Problem(place, "G8", message)


def singles(graph: schema.Graph) -> Callable[[str], bool]:
    """Return a function that tells whether a value is a number, or a tensor of one element as far as plain numbers
    show."""

    def is_single(name: str) -> bool:
        meta = graph.tensor_values.get(name)
        return meta is None or all(size.as_int is UNSET or size.as_int == 1 for size in meta.sizes)

    return is_single
