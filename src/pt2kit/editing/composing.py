"""Composition of two programs into one: outputs of the first become inputs of the second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pt2kit import schema, symbols
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.assembly import Parts
from pt2kit.editing.editor import Editor, Source, edit, package_alone
from pt2kit.editing.extracting import written_weights
from pt2kit.editing.graphs import Graph, Value
from pt2kit.editing.interface import Branch, Input, Output, Tree, leaves_of, tuple_of
from pt2kit.editing.interface_edits import find_output, substitute_symbols, substituted, take_out
from pt2kit.editing.state import find_input, forget_inputs
from pt2kit.errors import GraphError, UnsupportedError
from pt2kit.front_door import registered
from pt2kit.graph.argument_values import graph_arguments
from pt2kit.messages import count_text, quote
from pt2kit.package.open import Package
from pt2kit.package.plan import PlannedRecord
from pt2kit.package.record_names import payload_folder
from pt2kit.schema.names import free_name
from pt2kit.signature.consistency import targets_below


def compose(
    first: Source,
    second: Source,
    connect: Mapping[Any, str | Sequence[str]],
    *,
    prefixes: tuple[str, str] = ("", ""),
    models: tuple[str | None, str | None] = (None, None),
    name: str = "model",
    prove: bool = False,
) -> Any:
    """Join two programs: outputs of the first become inputs of the second.

    The new program takes what the first takes, then what is left of the second; it gives the outputs of the first that
    go nowhere else, then those of the second. Names of values that both have get a number, or the prefix. Sample inputs
    are left out.

    Args:
        first, second: as `edit` takes them; both packages, or both programs.
        connect: name (or number) of an output of the first -> name of an input of the second, or names of several.
        prefixes: put in front of the names of values ("enc" gives "enc_x") and weights ("enc.layer.weight") of each.
        models: which program of each package.
        name: of the new program in its package.
        prove: run the two and the new program on random inputs, and return nothing if results differ.

    Returns:
        A program where two programs were given, else a package, for `pt2kit.write`.

    Raises:
        ProofError: with `prove`, results differ. UnsupportedError: arguments that do not go together, or, with
            `prove`, a program has operators that cannot be run.
        GraphError: no such output or input, types or sizes that do not fit, or weights of one name that differ.
        Pt2Error: a source cannot be read.
    """
    a, b = edit(first, models[0]), edit(second, models[1])
    if a.has_weights != b.has_weights:
        raise UnsupportedError("compose: expected two packages or two programs, got one of each")
    links = [(one, other) for one, held in connect.items() for other in ([held] if isinstance(held, str) else held)]
    pairs = [
        (
            find_output(a, one, "compose: first program"),
            find_input(b, other, "compose: second program", b.user_inputs),
        )
        for one, other in links
    ]
    if len({id(target) for _, target in pairs}) != len(pairs):
        raise UnsupportedError("compose: expected each input of the second once, got one twice")
    for editor, prefix in ((a, prefixes[0]), (b, prefixes[1])):
        if prefix:
            _add_prefix(editor, prefix)
    _join_symbols(a, b, pairs)
    shared = _shared_weights(a, b)
    once = _taken_once(a, b)
    _avoid_clashes(a, b, [*(target for _, target in pairs), *once])
    for one in once:
        _connect(one, next(mine.value for mine in a.inputs if mine.name == one.name))
    forget_inputs(b, once)
    _join(a, b, pairs)
    program = a.check()
    if not a.has_weights:
        if prove:
            raise UnsupportedError("compose: expected packages to prove, got programs alone")
        return program
    joined = a.model, b.model
    package = _package(a, b, program, shared, name)
    if prove:
        registered("prove_joined")(a.source_package, b.source_package, joined, links, package)
    return package


def _add_prefix(editor: Editor, prefix: str) -> None:
    stem = prefix.rstrip("_.")
    if not stem.isidentifier():
        raise UnsupportedError(f"compose: expected a prefix that is an identifier, got {quote(prefix)}")
    names_before = {one.name: one for one in editor.user_inputs}
    for value in list(editor.graph.values.values()):
        editor.graph.rename(value, editor.graph.names.unique(f"{stem}_{value.name}"))
    for one in editor.user_inputs:
        if one.value is None and one.name:
            one.rename_constant(f"{stem}_{one.name}")
    arguments, (_, kwargs) = editor.calls.arg_names, editor.calls.sides("compose")
    keep = len(arguments) - len(kwargs.children)
    arguments[:keep] = [names_before[old].name if old in names_before else f"{stem}_{old}" for old in arguments[:keep]]
    # Names that have the prefix already make room for the others.
    targets = {one.target for one in editor.inputs if one.target}
    for target in sorted(targets, key=lambda one: [part != stem for part in one.split(".")]):
        editor.rename_weight(target, f"{stem}.{target}")
    editor.calls.prefix = stem


def _join_symbols(a: Editor, b: Editor, pairs: list[tuple[Output, Input]]) -> None:
    """Bind the symbols of the second program to sizes of the first one's outputs, and make all others distinct."""
    expr_by_name: dict[str, Any] = {}
    for output, target in pairs:
        _bind(output, target, expr_by_name)
    for output, target in pairs:
        _check_sizes(output, target, expr_by_name)
    taken = {*a.ranges, *b.ranges}
    clashing = [name for name in b.ranges if name in a.ranges and name not in expr_by_name]
    metas = [value.meta for graph in b.graph.walk() for value in graph.values.values()] if clashing else []
    known = {one.name: one for meta in metas for one in arithmetic.symbols_of(meta)}
    for name in clashing:
        free = free_name(name.rstrip("0123456789") or "s", taken.__contains__, 0, separator="")
        taken.add(free)
        if name in known:
            expr_by_name[name] = symbols.Symbol(free, known[name].assumptions)
    if any(not isinstance(expr, symbols.Symbol) or expr.name != name for name, expr in expr_by_name.items()):
        substitute_symbols(b, expr_by_name)
    for name, expr in expr_by_name.items():
        number, limits = arithmetic.known(arithmetic.expr_size(expr)), b.ranges.pop(name, (None, None))
        given = a.ranges.get(expr.name, (None, None)) if isinstance(expr, symbols.Symbol) else (number, number)
        low, high = _narrowed(given, limits)
        if low is not None and high is not None and low > high:
            raise GraphError(
                f"compose: expected {name} of the second program from {limits[0]} to {limits[1]}, got {given[0]} to "
                f"{given[1]}",
                rule="E4",
            )
        if isinstance(expr, symbols.Symbol):
            b.ranges[expr.name] = low, high


def _bind(output: Output, target: Input, found: dict[str, Any]) -> None:
    """Refuse values of two kinds, types or ranks; note what the symbols are that the second has as sizes."""
    produced, wanted = output.value, target.value
    if produced is None or wanted is None or produced.kind != wanted.kind:
        raise GraphError(f"compose: expected a value like {target.name}, got {output.name}, which is of another kind")
    if produced.kind != "tensor":
        return
    place = f"compose: {output.name} -> {target.name}"
    have, want = produced.meta, wanted.meta
    if have.dtype != want.dtype:
        raise GraphError(f"{place}: expected {want.dtype.name}, got {have.dtype.name}", rule="P14")
    if len(have.sizes) != len(want.sizes):
        raise GraphError(
            f"{place}: expected {count_text(len(want.sizes), 'dimension')}, got {len(have.sizes)}", rule="P14"
        )
    for size, other in zip(have.sizes, want.sizes, strict=True):
        expr = arithmetic.expression(other)
        if isinstance(expr, symbols.Symbol):
            known = found.setdefault(expr.name, arithmetic.expression(size))
            if known != arithmetic.expression(size):
                raise GraphError(f"{place}: expected one size for {expr.name}, got two")


def _check_sizes(output: Output, target: Input, found: Mapping[str, Any]) -> None:
    """Refuse sizes that are not the same for all numbers that the symbols stand for."""
    produced, wanted = output.value, target.value
    if produced is not None and wanted is not None and produced.kind == "tensor":
        sizes = [substituted(size, found) for size in wanted.meta.sizes]
        if not arithmetic.all_same(produced.meta.sizes, sizes):
            is_plain = all(isinstance(size, int) for size in (*(wanted.shape or ()), *(produced.shape or ())))
            message = f"expected sizes {wanted.shape}, got {produced.shape}"
            hint = "" if is_plain else "; specialize a symbol"
            raise GraphError(f"compose: {output.name} -> {target.name}: {message}{hint}", rule="P14")


def _narrowed(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    low = max((one for one in (a[0], b[0]) if one is not None), default=None)
    high = min((one for one in (a[1], b[1]) if one is not None), default=None)
    return low, high


def _avoid_clashes(a: Editor, b: Editor, gone: list[Input]) -> None:
    """Rename values, nodes and subgraphs of the second program whose names the first one has."""
    mine = {*a.graph.values, *(node.name for node in a.graph.nodes if node.name)}
    targets = {one.value for one in gone}

    def is_taken(name: str) -> bool:
        return name in mine or b.graph.names.unique(name) != name

    for value in list(b.graph.values.values()):
        if value not in targets and value.name in mine:
            _rename(b, value, free_name(value.name, is_taken))
    for node in b.graph.nodes:
        if node.name in mine:
            b.graph.name_node(node, free_name(node.name or "", is_taken))
    _rename_subgraphs(a.graph, b.graph)


def _rename(editor: Editor, value: Value, new: str) -> None:
    if any(one.value is value for one in editor.user_inputs):
        editor.rename_input(value.name, new)
    else:
        editor.graph.rename(value, new)


def _rename_subgraphs(a: Graph, b: Graph) -> None:
    mine = {name for node in a.nodes for name in node.subgraphs}
    for node in b.nodes:
        for slot in node.slots:
            for _, carried in graph_arguments(slot.template):
                if carried.name not in mine or slot.template.type != "as_graph":
                    continue
                name = free_name(carried.name, mine.__contains__)
                mine.add(name)
                slot.template = schema.Argument(as_graph=schema.GraphArgument(name, carried.graph))


def _shared_weights(a: Editor, b: Editor) -> set[str]:
    """Return the names of weights that both programs have; their values must be equal, and not written to by both.

    Raises:
        GraphError: they are not, or the name of a weight of one is below that of the other.
    """
    targets_a, targets_b = ([one.target for one in editor.inputs if one.target] for editor in (a, b))
    for name, other in (targets_below(targets_a, targets_b) | targets_below(targets_b, targets_a)).items():
        raise GraphError(
            f"compose: expected weights of other names than modules, got {quote(name)} in one program "
            f"and {quote(other)} in the other; pass prefixes="
        )
    both = {*targets_a} & {*targets_b}
    for name in both:
        mine = a.weights.get(name) or a.constants.get(name)
        theirs = b.weights.get(name) or b.constants.get(name)
        if mine is None and theirs is None:
            continue
        if mine is None or theirs is None or not _equal(mine, theirs):
            raise GraphError(
                f"compose: expected weights of other names, or equal numbers, got {quote(name)} "
                "in both programs; pass prefixes="
            )
    if twice := both & written_weights(a) & written_weights(b):
        raise GraphError(
            f"compose: expected weights that one of the programs writes to, got {quote(min(twice))}, to which both "
            "do; pass prefixes="
        )
    return both


def _taken_once(a: Editor, b: Editor) -> list[Input]:
    """Return the inputs of the second program whose weight the first program takes by an input of the same name."""
    mine = {one.name: one for one in a.inputs if one.target is not None}
    return [
        one for one in b.inputs if one.target is not None and one.name in mine and _taken(one) == _taken(mine[one.name])
    ]


def _taken(one: Input) -> tuple[Any, ...]:
    return one.kind, one.target, one.persistent, None if one.value is None else one.value.meta


def _equal(a: Any, b: Any) -> bool:
    if a.describe() != b.describe():
        return False
    if hasattr(a, "tobytes") and hasattr(b, "tobytes"):
        return a.storage is b.storage or a.tobytes() == b.tobytes()
    return bytes(a.buffer()) == bytes(b.buffer()) if hasattr(a, "buffer") and hasattr(b, "buffer") else False


def _join(a: Editor, b: Editor, pairs: list[tuple[Output, Input]]) -> None:
    """Append the second program to the first."""
    for output, target in pairs:
        _connect(target, output.value)
        take_out(b, target, f"compose({quote(target.name)})")
    a.calls.added = b.calls.written()[1:]
    for output, _ in pairs:
        if output in a.outputs:
            a.drop_output(a.user_outputs.index(output))
    _join_calls(a, b)
    a.graph.absorb(b.graph)
    a.inputs[:] = sorted([*a.inputs, *b.inputs], key=lambda one: one.group)
    a.outputs[:] = sorted([*a.outputs, *b.outputs], key=lambda one: one.group)
    a.calls.order(a.inputs, a.calls.ins)
    a.calls.order(a.outputs, a.calls.outs)
    a.ranges |= b.ranges
    a.metadata = b.metadata | a.metadata
    a.namedtuple_fields = b.namedtuple_fields | a.namedtuple_fields
    a.opset_version = b.opset_version | a.opset_version
    a.verifiers = max(a.verifiers, b.verifiers, key=lambda names: "TRAINING" in names)  # which allows more calls
    a.guards += b.guards


def _connect(one: Input, value: Value | None) -> None:
    """Use a value of the first program for an input of the second."""
    if one.value is not None and value is not None:
        for slot, position in list(one.value.uses):
            slot.put(position, value)


def _join_calls(a: Editor, b: Editor) -> None:
    """Replace the call of the first program by one that takes and gives what both do."""
    args_a, kwargs_a = a.calls.sides("compose")
    args_b, kwargs_b = b.calls.sides("compose")
    keys = [*(kwargs_a.keys or []), *(kwargs_b.keys or [])]
    names = [*a.calls.names("compose")[: len(args_a.children)], *b.calls.names("compose")[: len(args_b.children)]]
    names = [one if one not in names[:place] else f"{one}_{place}" for place, one in enumerate(names)]
    for place, key in enumerate(keys):
        if key in names or key in keys[:place]:
            raise GraphError(f"compose: expected keyword arguments of different names, got {quote(key)} twice")
    is_named = a.calls.arg_names or b.calls.arg_names  # files up to torch 2.5 do not name them
    a.calls.restart(
        [*args_a.children, *args_b.children],
        dict(zip(keys, [*kwargs_a.children, *kwargs_b.children], strict=True)),
        _results(a, b),
        [*names, *keys] if is_named else None,
    )


def _results(a: Editor, b: Editor) -> Tree:
    """Return the tree of the new program's outputs: that of the second, if nothing of the first remains."""
    left, right = a.calls.outs, b.calls.outs
    if left is None or not list(leaves_of(left)):
        return right
    return tuple_of([*_items(left), *_items(right)])


def _items(tree: Tree) -> list[Tree]:
    return tree.children if isinstance(tree, Branch) and tree.type == "builtins.tuple" else [tree]


def _package(a: Editor, b: Editor, program: schema.ExportedProgram, shared: set[str], name: str) -> Package:
    """Return the package of both programs' weights."""
    a.model = name
    a.parts.origins += b.parts.origins
    a.parts.reduce(name)
    for mine, theirs in ((a.weights, b.weights), (a.constants, b.constants)):
        for key, payload in theirs.items():
            if (line := theirs.line(key)) is not None and not (key in shared and key in mine):
                mine.payloads[key] = payload
                mine.add_line(payload, a.parts.copy_payload(line, b.parts, mine.kind, _same_record))
    return package_alone(a, program)


def _same_record(parts: Parts, record: str, part: PlannedRecord, kind: str) -> str | None:
    """Return the record of the same storage if both programs come from one package, so that tied weights stay tied."""
    folder = payload_folder(kind)
    return next((name for name, one in parts.records.items() if name.startswith(folder) and one.is_same(part)), None)
