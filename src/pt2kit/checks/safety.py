"""Safety checks of a package: code that torch would run, or resolve by name, on loading it (rules X1 to X14).

Each finding is a `Problem` of kind "safety"; of kind "note" if the data that would be run is plain (real files have
some of those, because sample inputs are always a pickle); of kind "warning" if a pickle needs classes of packages that
torch does not bring, and calls none of their public functions. A pickle that cannot be read may run anything. Nothing
is run here, and the signatures of operators are read only for programs that call unchecked kernels (`unchecked.py`).

The called targets of nodes are their own, and operators passed to higher-order operators; each is checked once. Formats
that a program prints are checked for reading attributes of values, and for printing too much.
"""

from __future__ import annotations

import re
import string
import sys
from _compat_pickle import IMPORT_MAPPING
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from msgspec import UNSET

from pt2kit import symbols, treespec
from pt2kit.checks.calls import is_usual, named_operators
from pt2kit.checks.expressions import expressions, is_code
from pt2kit.checks.findings import ProgramContext, context_of
from pt2kit.checks.higher_order import region_problems
from pt2kit.checks.stored_inputs import Tables, tables_of, unchanged_inputs
from pt2kit.checks.unchecked import is_concerned, kernel_findings, text_of
from pt2kit.errors import Kind, Problem, Pt2Error, attempt
from pt2kit.graph.argument_values import leaves
from pt2kit.graph.traversal import Step, graphs
from pt2kit.jsontext import load_json
from pt2kit.messages import count_text, cut, listed, printable
from pt2kit.operators import schemas
from pt2kit.operators.requirements import layout_problem, refusal
from pt2kit.package import record_names as names
from pt2kit.package.layouts.base import Parts
from pt2kit.package.open import Package
from pt2kit.pickles.budget import parts_of
from pt2kit.pickles.reader import is_plain, read_payload, uses_in
from pt2kit.schema.names import HIGHER_ORDER_OPS, plain_target, target_of
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import FAKE_TENSOR, fake_tensor
from pt2kit.treespec.spec import MAX_LEVELS

MAX_TEXT: Final = 10_000
"""Characters of one text."""

MAX_WIDTHS: Final = 10_000
"""Limit of the sum of all widths of one format, in characters."""

_FIELD: Final = re.compile(r"[A-Za-z_]\w*|\d*", re.ASCII)
_SPEC: Final = re.compile(r"[^{}\d]?[<>=^]?[ +\-]?#?(\d{0,3})[,_]?(?:\.(\d{1,3}))?[A-Za-z%]?", re.ASCII)

_PATH: Final = re.compile(r"[^\"\\\x00-\x1f\x7f]*")
_IMPORTING: Final = frozenset(("__enum__", "fqn", "default_factory_module"))
"""Keys of objects in the context of a tree spec whose values torch imports."""

_PRINT: Final = "torch.ops.aten._print.default"
_FORMAT: Final = f"{HIGHER_ORDER_OPS}print"
_SHOWN: Final = 80
_SHOWN_GLOBALS: Final = 20
_GLOBAL: Final = 115
"""Characters of the name of a class: the longest ones of libraries, which `trust=` needs whole."""
_INSTALLED: Final = frozenset(
    (
        *("", "distutils", *sys.stdlib_module_names, *(name.partition(".")[0] for name in IMPORT_MAPPING)),
        *("_distutils_hack", "pip", "pkg_resources", "setuptools", "wheel"),
        *("fsspec", "functorch", "jinja2", "numpy", "sympy", "torch", "torchgen"),
    )
)
"""Packages of nearly every process that loads a program, also by names of Python 2, which the unpickler translates: a
pickle that refers to more of them than data needs is meant to run."""


def text_problem(text: str) -> str | None:
    """Return why a text should not be printed; None if it is safe."""
    if not text.isprintable() or len(text) > MAX_TEXT:
        return "expected one line of printable text to print"
    return None


def format_problem(text: str) -> str | None:
    """Return why a text should not be printed as a format; None if it is safe."""
    if (problem := text_problem(text)) is not None:
        return problem
    try:
        fields = [(name, spec or "") for _, name, spec, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        return f"expected a format ({error})"
    total = 0
    for name, spec in fields:
        match = _SPEC.fullmatch(spec)
        if not _FIELD.fullmatch(name) or match is None:
            return f"expected a format of plain names and widths below 1,000, got {name[:40]!a} with {spec[:40]!a}"
        total += int(match[1] or 0) + int(match[2] or 0)
    if total > MAX_WIDTHS:
        return f"expected widths that add up to at most {MAX_WIDTHS:,}, got {total:,}"
    return None


def safety_findings(package: Package) -> Iterator[Problem]:
    """Yield a finding for everything that torch would run or resolve when it loads a package; runs nothing.

    Unreadable records are skipped: reading them raises elsewhere. X11, which needs the signatures of operators, is
    for `check` alone.
    """
    yield from package_findings(package)
    for model in package.layout.models:
        try:
            stored = package.stored[model]
            context = context_of(stored.program, names.model_json(model), stored.version)
            yield from program_findings(context, tables_of(package, model))
        except Pt2Error:
            continue


def package_findings(package: Package, models: Iterable[str] | None = None) -> Iterator[Problem]:
    """Yield the findings about records: pickles (X1 to X3) of some programs or all, and compiled code (X8)."""
    for model in package.layout.models if models is None else models:
        model_parts = attempt(package.layout.parts, model)
        if model_parts is None:
            model_parts = Parts("", sample_inputs=package.layout.record(names.sample_inputs(model)))
        yield from _pickles(package, [model_parts.sample_inputs], "X1", "torch unpickles the sample inputs")
        yield from _pickles(package, model_parts.pickles, "X2", "torch unpickles tensors")
        yield from _pickled_payloads(package, model)
    yield from _compiled_code(package)


def program_findings(context: ProgramContext, tables: Tables) -> Iterator[Problem]:
    """Yield the safety findings about the text of a program (X4 to X7, X9, X10, X12 to X14).

    Args:
        context: the program.
        tables: reads its payloads; asked if a program calls an unchecked kernel.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    yield from _guards(context)
    yield from expression_findings(context)
    yield from _pasted_names(context)
    for step in context.steps():
        yield from _targets(step)
        yield from step_findings(step)
    yield from _trusting(context, tables)
    yield from _tree_specs(context)
    yield from region_problems(context)


def step_findings(step: Step) -> Iterator[Problem]:
    """Yield a layout that kernels do not expect (X10), and texts that a call should not print (X12)."""
    if (problem := layout_problem(step.node)) is not None:
        yield Problem(step.where, "X10", problem, "safety")
    yield from _printed(step)


def _pickles(package: Package, records: Iterable[str | None], rule: str, what: str) -> Iterator[Problem]:
    """Check sample inputs, and the weights and constants of torch 2.8 and before, which are a pickle each."""
    for record in records:
        if record is not None and record in package.records and package.records[record].size:
            yield _pickle(package, record, rule, what)


def _pickle(package: Package, record: str, rule: str, what: str) -> Problem:
    """Return how severe it is to unpickle a record, and what that would do."""
    kind: Kind = "note"
    verdict = "plain data"
    try:
        uses = uses_in(package.archive.read(record), record)
        odd = sorted(name for name in uses.seen if not is_plain(name))
        if odd == [FAKE_TENSOR] and _only_describes(package.archive.read(record), record):
            odd = []
        if odd:
            kind = "safety" if any(_runs(name, name in uses.called) for name in odd) else "warning"
            verdict = f"calls {listed([cut(name, _GLOBAL) for name in odd], _SHOWN_GLOBALS)}"
    except Pt2Error as error:  # The unpickler, which is less strict, may go on to calls that were not seen here.
        kind, verdict = "safety", f"cannot be read as data ({error})"
    return Problem(package.relative(record), rule, f"{what}: {verdict}", kind)


def _only_describes(data: memoryview, record: str) -> bool:
    """Return whether torch evaluates nothing for the fake tensors in a pickle without other functions.

    Raises:
        Pt2Error: it cannot be read as data.
    """
    waiting = [read_payload(data, record, trust=frozenset((FAKE_TENSOR,)))]
    while waiting:
        part = waiting.pop()
        if (fake := fake_tensor(part, record)) is not None:
            sizes = (*fake[0].sizes, *fake[0].strides, fake[0].storage_offset)
            if any(is_code(one.as_expr.expr_str) for one in sizes if one.as_expr is not UNSET):
                return False
        waiting += parts_of(part) or ()
    return True


def _runs(path: str, is_called: bool) -> bool:
    """Return whether a global is one that is there to be run in nearly every process, or a public function by its name.

    Libraries rebuild their objects by private functions, such as `_make_td`.
    """
    return path.partition(".")[0] in _INSTALLED or (is_called and path.rpartition(".")[2][:1].islower())


def _pickled_payloads(package: Package, model: str) -> Iterator[Problem]:
    for payloads in (package.weights, package.constants):
        for name, payload in (attempt(payloads, model) or {}).items():
            if isinstance(payload, OpaquePayload) and payload.record in package.records and _is_pickled(payload):
                rule = "X2" if payload.kind == "pickle" else "X3"
                what = f"torch unpickles {cut(name, _SHOWN)!r} ({payload.kind})"
                found = _pickle(package, payload.record, rule, what)
                if payload.kind == "torchbind" and found.kind == "note":
                    message = f"{what}: names no class, as which torch could rebuild it"
                    found = Problem(found.loc, rule, message, "safety")
                yield found


def _is_pickled(payload: OpaquePayload) -> bool:
    """Return whether there is anything to unpickle; a record that cannot be read counts as one, and is reported as
    such."""
    return attempt(lambda: payload.is_pickled) is not False


def _guards(context: ProgramContext) -> Iterator[Problem]:
    guards = context.program.guards_code
    if not guards:
        return
    odd = [text for text in guards if not is_condition(text)]
    verdict = f"{len(odd)} of them no plain conditions: {cut(odd[0], _SHOWN)!r}" if odd else "plain conditions"
    message = f"torch compiles {count_text(len(guards), 'guard')}, {verdict}"
    yield Problem(f"{context.record}: $.guards_code", "X4", message, "safety" if odd else "note")


def is_condition(text: str) -> bool:
    """Return whether a guard is a condition that pt2kit can read, and no other code."""
    return attempt(symbols.parse_guard, text) is not None


def expression_findings(context: ProgramContext) -> Iterator[Problem]:
    """Yield texts that contain code instead of an expression (X5): evaluating it runs it. Others are errors (E1)."""
    texts = dict.fromkeys(context.program.range_constraints, f"{context.record}: $.range_constraints")
    for expression in expressions(context):
        texts.setdefault(expression.text, expression.place)
    for text, place in texts.items():
        if is_code(text):
            yield Problem(place, "X5", f"torch evaluates the expression {cut(text, _SHOWN)!r}", "safety")


def _pasted_names(context: ProgramContext) -> Iterator[Problem]:
    identifiers = ((place, "name", name) for place, name in _identifiers(context) if name and not name.isidentifier())
    paths = ((place, "path", name) for place, name in _paths(context) if not _PATH.fullmatch(name))
    for place, what, name in chain(identifiers, paths):
        yield Problem(place, "X6", f"torch pastes the {what} {cut(name, _SHOWN)!r} into source", "safety")


def _identifiers(context: ProgramContext) -> Iterator[tuple[str, str]]:
    """Yield names of placeholders, of arguments of the call and of keyword arguments of nodes, each with its
    location."""
    for scope in graphs(context.program, context.graph_place):
        for number, argument in enumerate(scope.graph.inputs):
            name = getattr(argument.value, "name", None)
            yield from [(f"{scope.where}.inputs[{number}]", name)] if isinstance(name, str) else []
    for step in context.steps():
        for position, named in enumerate(step.node.inputs):
            yield f"{step.where}.inputs[{position}].name", named.name
    for number, entry in enumerate(context.program.graph_module.module_call_graph):
        place = f"{context.record}: $.graph_module.module_call_graph[{number}].signature.forward_arg_names"
        for position, name in enumerate((entry.signature.forward_arg_names or ()) if entry.signature else ()):
            yield f"{place}[{position}]", name


def _paths(context: ProgramContext) -> Iterator[tuple[str, str]]:
    """Yield dotted names of parameters, buffers, constants and subgraphs, each with its location."""
    yield from ((place, target) for place, _, target in context.targets())
    for number, spec in enumerate(context.program.graph_module.signature.output_specs):
        if "user_input" not in spec.type and (name := target_of(spec)) is not None:
            yield f"{context.record}: $.graph_module.signature.output_specs[{number}]", name
    for step in context.steps():
        for position, named in enumerate(step.node.inputs):
            if named.arg.as_graph is not UNSET:
                yield f"{step.where}.inputs[{position}]", named.arg.as_graph.name


def _targets(step: Step) -> Iterator[Problem]:
    place = f"{step.where}.target"
    for target in named_operators(step.node):
        if target.startswith("#"):
            text = f"torch asks the handler of an extension for {cut(target, _SHOWN)!r}"
            yield Problem(place, "X13", text, "safety")
        elif (reason := refusal(plain_target(target))) is not None:
            yield Problem(place, "X10", f"torch calls {cut(target, _SHOWN)}: {reason}", "safety")
        elif not is_usual(target):
            yield Problem(place, "X7", f"torch looks up {cut(target, _SHOWN)!r} attribute by attribute", "safety")


def _trusting(context: ProgramContext, tables: Tables) -> Iterator[Problem]:
    """Check calls of unchecked kernels: errors, and one warning for each operator whose calls only a run can judge."""
    if not is_concerned({target for step in context.steps() for target in named_operators(step.node)}):
        return
    root = next(graphs(context.program, context.graph_place))
    stored = unchanged_inputs(context.program.graph_module, tables)
    warned: set[str] = set()
    for finding in kernel_findings(root, lambda target: schemas.find(target, context.release), stored, context.program):
        if finding.is_wrong:
            yield Problem(finding.step.where, "X10", text_of(finding), "safety")
        elif finding.operator not in warned:
            warned.add(finding.operator)
            yield Problem(finding.step.where, "X10", text_of(finding), "warning")


def _printed(step: Step) -> Iterator[Problem]:
    """Check for texts that are printed to the user's terminal, or are formats that read attributes of values."""
    target = plain_target(step.node.target)
    if target != _PRINT and not target.startswith(HIGHER_ORDER_OPS):
        return
    called = set(map(plain_target, named_operators(step.node)))
    if not called & {_PRINT, _FORMAT}:
        return
    for leaf in [leaf for named in step.node.inputs for _, leaf in leaves(named.arg)]:
        text = leaf.as_string
        if text is not UNSET and (format_problem if _FORMAT in called else text_problem)(text) is not None:
            yield Problem(step.where, "X12", f"the program prints {cut(text, _SHOWN)!r}", "safety")


def _tree_specs(context: ProgramContext) -> Iterator[Problem]:
    for number, entry in enumerate(context.program.graph_module.module_call_graph):
        place = f"{context.record}: $.graph_module.module_call_graph[{number}]"
        for text in (entry.signature.in_spec, entry.signature.out_spec) if entry.signature else ():
            spec = attempt(treespec.parse, text, place)
            if spec is None:
                if names_imports(text):  # Torch imports as it reads, up to where the text is wrong.
                    named = f"a tree spec names that is not well formed: {cut(text, _SHOWN)!r}"
                    yield Problem(place, "X9", f"torch may import what {named}", "safety")
                continue
            for node in treespec.walk(spec):
                if names_imports(node.context):
                    named = f"the context of {cut(str(node.type), _SHOWN)} names: {cut(node.context, _SHOWN)!r}"
                    yield Problem(place, "X9", f"torch imports what {named}", "safety")


def names_imports(text: str) -> bool:
    """Return whether torch may import what a text names, while it reads the text as a tree spec or a context of one.

    A context may be a string that is JSON again. What cannot be read counts: objects are imported before the rest is
    read.
    """
    held: list[tuple[Any, bool]] = [(text, True)]
    while held:
        value, is_json = held.pop()
        if isinstance(value, str) and is_json and "{" in value:
            if (loaded := attempt(load_json, value, "tree spec", MAX_LEVELS)) is None:
                return True
            held.append((loaded, True))
        elif isinstance(value, dict):
            if not _IMPORTING.isdisjoint(value):
                return True
            held += [(item, key == "context") for key, item in value.items()]
        elif isinstance(value, list):
            held += [(item, False) for item in value]
    return False


def _compiled_code(package: Package) -> Iterator[Problem]:
    models = (names.aotinductor_model(package.relative(record)) for record in package.records)
    for model, count in Counter(model for model in models if model is not None).items():
        text = f"torch loads compiled code ({count_text(count, 'record')}) into the process"
        yield Problem(printable(names.aotinductor(model, "")), "X8", text, "safety")
