"""Sanitizing of one program: everything that is more than data, removal of metadata and machine paths, sample inputs.

Sample inputs become leaves with views of raw tensors, or there is a reason why they are more than data.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pt2kit import codec, symbols, treespec
from pt2kit.checks.expressions import expressions
from pt2kit.checks.findings import context_of
from pt2kit.checks.safety import is_condition, names_imports, safety_findings
from pt2kit.errors import PayloadError, Problem, Pt2Error, UnsupportedError
from pt2kit.jsontext import Path, path_text
from pt2kit.messages import count_text
from pt2kit.node_metadata.redaction import hide_paths, strip_metadata
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.package.pickle_free_inputs import PickleFreeInputs, leaf_tree, read_pickle_free_inputs
from pt2kit.package.samples import check_call, in_spec, open_container
from pt2kit.package.stored import StoredProgram
from pt2kit.pickles.builtin_reducers import FACTORIES
from pt2kit.pickles.reader import globals_in, is_plain, read_payload
from pt2kit.pickles.values import Opaque, TensorLike
from pt2kit.sanitizing.options import Options
from pt2kit.schema import CURRENT, ExportedProgram
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.pickled import FAKE_TENSOR, from_pickled
from pt2kit.tensors.view import TensorView
from pt2kit.treespec.containers import DEFAULTDICT, defaultdict_parts
from pt2kit.versions.rewrite import Visitor, rewrite
from pt2kit.zip.chosen_names import show_name

HANDLED: Final = frozenset(("X1", "X2", "X3", "X8"))
"""Findings about payloads and records: they are moved, or refused where that is found out."""

_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {"float": symbols.parse_number, "bool": symbols.parse_truth}
"""Kind of an expression -> its parser; all others are sizes."""

_SHOWN_KEYS: Final = 3
_MAX_PATHS: Final = 20


def find_code(package: Package) -> tuple[list[Problem], list[Problem]]:
    """Divide the safety findings of a package's programs.

    Returns:
        those that keep it from being sanitized, and those about plain data that stock torch needs: guards that are
        conditions (X4), defaultdicts of Python's own containers and numbers (X9).

    Raises:
        Pt2Error: a program cannot be read.
    """
    harmless: dict[tuple[str, str], bool] = {}
    for model in package.layout.models:
        for place, fine in _places(package, model):
            # Programs of one record have the same places: all of them must be harmless there.
            harmless[place] = fine and harmless.get(place, True)
    refused: list[Problem] = []
    kept: list[Problem] = []
    for finding in safety_findings(package):
        if finding.rule not in HANDLED:
            # Warnings about kernels are about what a run computes, not about what loading runs.
            is_computed = finding.rule == "X10" and finding.kind == "warning"
            fine = is_computed or harmless.get((finding.rule, finding.loc), False)
            (kept if fine else refused).append(finding)
    odd = [problem for model in package.layout.models for problem in _suspicious_expressions(package, model)]
    # The findings are only about expressions that would do something; these are about all that are none.
    return [*(one for one in refused if one.rule != "X5" or not odd), *odd], kept


def _suspicious_expressions(package: Package, model: str) -> Iterator[Problem]:
    """Yield texts that are not valid where they are stored: torch would evaluate them all the same."""
    stored, record = package.stored[model], package.relative(_record(package, model))
    context = context_of(stored.program, record, stored.version)
    places: list[tuple[str, str, Callable[[str], Any]]] = [
        *((f"{record}: $.range_constraints", text, symbols.parse) for text in stored.program.range_constraints),
        *((found.place, found.text, _PARSERS.get(found.kind, symbols.parse_size)) for found in expressions(context)),
    ]
    for place, text, parse in places:
        try:
            parse(text)
        except Pt2Error as error:
            message = f"torch evaluates the expression {show_name(text[:100])}: {error}"
            yield Problem(place, "X5", message, "safety")


def _places(package: Package, model: str) -> Iterator[tuple[tuple[str, str], bool]]:
    """Yield rule and location of possible findings about plain data, and whether it is plain."""
    module = package.programs[model].graph_module
    plain = all(is_condition(text) for text in package.programs[model].guards_code)
    for where in dict.fromkeys((names.model_json(model), package.relative(_record(package, model)))):
        yield ("X4", f"{where}: $.guards_code"), plain
        for number, entry in enumerate(module.module_call_graph):
            specs = (entry.signature.in_spec, entry.signature.out_spec) if entry.signature else ()
            yield ("X9", f"{where}: $.graph_module.module_call_graph[{number}]"), all(map(_is_plain_spec, specs))


def _record(package: Package, model: str) -> str:
    return package.layout.program_record(model)


def _is_plain_spec(text: str) -> bool:
    """Return whether no context of a spec makes torch import more than Python's own containers or numbers."""
    try:
        for node in treespec.walk(treespec.parse(text)):
            if node.type == DEFAULTDICT:
                factory, keys = defaultdict_parts(node)
                if factory not in FACTORIES or names_imports(json.dumps(keys)):
                    return False
            elif names_imports(node.context):
                return False
    except Pt2Error:
        return False
    return True


def find_unknown(package: Package, model: str) -> Iterator[Problem]:
    """Yield keys that this build does not know: they may not be data.

    Raises:
        Pt2Error: a record cannot be read.
    """
    keys = package.unknown(model)
    if keys:
        shown = ", ".join(keys[:_SHOWN_KEYS]) + (", …" if len(keys) > _SHOWN_KEYS else "")
        message = (
            f"expected keys that this build knows, got {count_text(len(keys), 'other')} ({shown[:500]}); upgrade pt2kit"
        )
        yield Problem(package.relative(_record(package, model)), "Z3", message, "safety")


def find_container(stored: StoredProgram, model: str) -> Iterator[Problem]:
    """Yield the contents of a program's container that would be lost, because a program alone has no place for them."""
    if stored.model is None:
        return
    for what, entries in (("delegates", stored.model.delegates), ("a map of devices", stored.model.devices)):
        if entries:
            shown = ", ".join(map(show_name, list(entries)[:_SHOWN_KEYS]))
            message = f"expected a program that stands alone, got a method of a model with {what} ({shown})"
            yield Problem(model, "Z6", message, "safety")


def rewrite_metadata(program: ExportedProgram, where: str, options: Options) -> tuple[ExportedProgram, list[Problem]]:
    """Remove the metadata that the options name from a program.

    Args:
        program: of the current version; not changed.
        where: its record, for problems.
        options: what goes.

    Returns:
        the program, the same object where nothing changed, and the places where paths are part of what it means.
    """
    if not options.strip and not options.scrub_paths:
        return program, []
    old = codec.to_tree(program)
    keys = options.stripped_keys
    of_module = None if keys is None else frozenset[str]()
    # Thousands of nodes have the same few hundred texts.
    hide = functools.cache(hide_paths) if options.scrub_paths else None
    visitors = {"Node": _stripping(keys, hide), "GraphModule": _stripping(of_module, hide)}
    tree = rewrite(old, CURRENT.number, visitors)
    problems = list(_paths_left(tree, where)) if options.scrub_paths else []
    if tree is old:
        return program, problems
    return codec.convert(tree, ExportedProgram, where).value, problems


def _stripping(keys: frozenset[str] | None, hide: Callable[[str], str] | None) -> Visitor:
    """Return a visitor that gives a node or a graph module less metadata.

    Args:
        keys: what is removed; None for all.
        hide: hides the paths in a text of the rest; None to keep them.
    """

    def visit(holder: Any, _: Path) -> Any:
        old = holder["metadata"]
        new = {} if keys is None else strip_metadata(old, keys)
        if hide is not None:
            new = {key: hide(text) for key, text in new.items()}
        return holder if new == old else {**holder, "metadata": new}

    return visit


def _paths_left(tree: Any, where: str) -> Iterator[Problem]:
    """Yield the texts of a program that still contain a path."""
    count = 0
    stack: list[tuple[Any, Path]] = [(tree, ())]
    while stack and count < _MAX_PATHS:
        value, path = stack.pop()
        if isinstance(value, dict):
            stack += [(key, (*path, "a key")) for key in value if "/" in key or "\\" in key]
            stack += [(item, (*path, key)) for key, item in value.items()]
        elif isinstance(value, list):
            stack += [(item, (*path, number)) for number, item in enumerate(value)]
        elif isinstance(value, str) and hide_paths(value) != value:
            count += 1
            message = f"expected no path of a machine, got {show_name(value[:100])}, which is part of what it means"
            yield Problem(f"{where}: {path_text(path)}", "Z5", message, "safety")


def read_samples(package: Package, model: str, record: str | None) -> PickleFreeInputs | None:
    """Describe the sample inputs of a program; None where it has none. Reads no tensor.

    Args:
        package: an open package.
        model: which program.
        record: the full name of their pickle, if there is one.

    Raises:
        UnsupportedError: they hold more than data; what, is named.
        Pt2Error: they cannot be read.
    """
    if record is not None and (data := package.archive.read(record)):
        where = package.relative(record)
        return PickleFreeInputs(where, tuple(_views(_leaves(data, where, package.programs[model]), where)))
    moved = read_pickle_free_inputs(package.layout, model)
    if moved is None:
        return None
    spec, _ = in_spec(package.programs[model], moved.where)
    if len(moved.leaves) != (wanted := treespec.leaf_count(spec)):
        raise PayloadError(f"{moved.where}: expected {count_text(wanted, 'leaf', 'leaves')}, got {len(moved.leaves)}")
    return moved


def _leaves(data: memoryview, where: str, program: ExportedProgram) -> list[Any]:
    """Return the leaves of pickled inputs.

    Containers may be objects of classes that the program's tree spec has. Such objects are not written: the tree spec,
    which is part of the program, describes them.
    """
    global_paths = frozenset(globals_in(data, where))
    is_data = all(path == FAKE_TENSOR or is_plain(path) for path in global_paths)
    try:
        value = read_payload(data, where, trust=frozenset((FAKE_TENSOR,)) if is_data else frozenset())
    except UnsupportedError as error:
        if is_data:
            raise
        try:
            return _flat(read_payload(data, where, trust=global_paths), where, program)
        except Pt2Error:
            raise error from None
    return _flat(value, where, program)


def _flat(value: Any, where: str, program: ExportedProgram) -> list[Any]:
    """Return the leaves of inputs in the order of the program's tree spec; each is one that an index can hold."""
    check_call(value, where)
    spec, fields = in_spec(program, where)
    expand = functools.partial(_open, treespec.names_of_fields(spec, where, fields))
    leaves = treespec.flatten(value, spec, where, fields=fields, expand=expand)
    for leaf in leaves:
        if not isinstance(leaf, TensorLike):
            leaf_tree(leaf, where)
    return leaves


def _views(leaves: Sequence[Any], where: str) -> Iterator[Any]:
    """Yield leaves with views in place of tensors; the same tensor is the same view again."""
    views: dict[int, TensorView | MetaView] = {}
    for leaf in leaves:
        if isinstance(leaf, TensorLike) and id(leaf) not in views:
            view = from_pickled(leaf, name=f"sample input {len(views)}", where=where)
            if not isinstance(view, TensorView | MetaView):
                raise UnsupportedError(
                    f"{where}: expected dense tensors, as raw records are, got {view.describe()[:200]}"
                )
            if isinstance(view, TensorView) and (view.conj or view.neg):
                raise UnsupportedError(
                    f"{where}: expected the numbers as they are, got a tensor marked as conjugate or negative"
                )
            views[id(leaf)] = view
        yield views.get(id(leaf), leaf)


def _open(fields: Mapping[str, Sequence[str] | None], kind: str, value: object) -> Sequence[object] | None:
    """Open an object that stands where the spec has a container with named fields, if its state has all of these."""
    if isinstance(value, Opaque) and isinstance(value.state, dict) and not (value.args or value.kwargs):
        names = fields.get(kind)
        state = value.state
        # A registered dataclass leaves fields out of the spec where they are None.
        if names and all(name in state for name in names):
            others = [item for name, item in state.items() if name not in names]
            return None if any(item is not None for item in others) else [state[name] for name in names]
    return open_container(kind, value)
