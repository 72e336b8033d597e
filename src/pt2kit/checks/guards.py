"""Checks of a program's guards against its inputs: their names exist, and they can be true (rules E6 and E7).

A guard that nothing can pass makes a program that never runs; torch finds out when the module is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pt2kit import schema, symbols, treespec
from pt2kit.checks.findings import ProgramContext
from pt2kit.checks.stored_inputs import passed_inputs
from pt2kit.errors import Problem, attempt
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import tables
from pt2kit.messages import quote
from pt2kit.package.samples import in_spec
from pt2kit.symbols.guards import Guard, Path, Source, entry_path
from pt2kit.treespec.callsig import input_paths

_Ends = tuple[int | None, int | None]
_Known = schema.TensorMeta | schema.SymInt | schema.SymFloat | schema.SymBool | int | None


def guard_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield guards that name no input of the program, or that no input can satisfy.

    Those that cannot be read are left to X4.
    """
    guards = context.program.guards_code
    inputs = attempt(_inputs, context.program) if guards else None
    if inputs is None:
        return
    limits = {name: (row.min_val, row.max_val) for name, row in context.program.range_constraints.items()}
    for number, text in enumerate(guards):
        place = f"{context.record}: $.guards_code[{number}]"
        if (guard := attempt(symbols.parse_guard, text)) is None:
            continue
        known_by_source = {source.text: _find(source, inputs) for source in guard.sources}
        missing = [source for source in guard.sources if known_by_source[source.text] is _MISSING]
        if missing:
            message = f"expected a guard on inputs of the program, got {quote(missing[0].text)}, which it does not have"
            yield Problem(place, "E6", message)
        elif attempt(_is_never, guard, known_by_source, limits):
            message = f"expected a condition that some input of the declared sizes meets, got {quote(text)}"
            yield Problem(place, "E7", message)


_MISSING: Final = object()
"""Stands for what no input is."""
_FLAT: Final = "flat_args"


def _inputs(program: schema.ExportedProgram) -> dict[Path, _Known] | None:
    """Return the inputs of the program by the paths that guards have; None if the call signature does not have them."""
    module = program.graph_module
    entry = next((entry for entry in module.module_call_graph if not entry.fqn), None)
    if entry is None or (signature := entry.signature) is None or (names := signature.forward_arg_names) is None:
        return None
    spec, fields = in_spec(program, "guards")
    paths = map(_plain, input_paths(spec, names, fields=fields))
    values = [_known(module.graph, argument) for argument in passed_inputs(module)]
    if treespec.leaf_count(spec) != len(values) or len(names) < len(treespec.split_call(spec, "in_spec")[0]):
        return None
    # Strict exports name inputs by their place among all leaves; torch renames them when it loads the program.
    return {(_FLAT, place): value for place, value in enumerate(values)} | dict(zip(paths, values, strict=True))


def _plain(path: Path) -> Path:
    """Return a path in which fields are steps as keys are: a spec does not tell how a class of the user has them."""
    return tuple(step[0] if isinstance(step, tuple) and len(step) == 1 else step for step in path)


def _known(graph: schema.Graph, argument: schema.Argument) -> _Known:
    name = next(arguments(argument), None)
    if name is None:
        return argument.value if argument.type in ("as_int", "as_bool") else None
    return next((table[name] for table in tables(graph).values() if name in table), None)


def _find(source: Source, inputs: Mapping[Path, _Known]) -> Any:
    """Return the meta of the number that a guard takes from the inputs; `_MISSING` if there is no such input."""
    path = _plain(source.path)
    if path[0] not in {one[0] for one in inputs}:
        path = entry_path(path)
    if path not in inputs:
        # Containers have nothing that is known.
        return None if any(one[: len(path)] == path for one in inputs) else _MISSING
    here = inputs[path]
    if not isinstance(here, schema.TensorMeta) or source.what == "value":
        return here
    if source.what == "item":
        return None
    if source.what == "storage_offset":
        return here.storage_offset
    numbers = here.sizes if source.what == "size" else here.strides
    assert source.index is not None  # Sizes and strides have one by the grammar.
    return numbers[source.index] if source.index < len(numbers) else _MISSING


def _is_never(guard: Guard, found: Mapping[str, Any], limits: Mapping[str, _Ends]) -> bool:
    """Return whether a guard is false for all declared sizes, or for those of the example."""
    ranges = {text: _interval(known, limits) for text, known in found.items()}
    if symbols.bounds(guard.expr, ranges)[1] <= 0:
        return True
    example = {text: _example(known) for text, known in found.items()}
    if None in example.values():
        return False
    return not symbols.evaluate(guard.expr, {text: value for text, value in example.items() if value is not None})


def _interval(known: Any, limits: Mapping[str, _Ends]) -> tuple[Any, Any]:
    """Return the range of a number; unbounded if nothing is known."""
    value = getattr(known, "value", known)
    if isinstance(value, int):
        return int(value), int(value)
    return symbols.bounds(symbols.parse(value.expr_str), limits) if isinstance(value, schema.SymExpr) else (None, None)


def _example(known: Any) -> int | float | bool | None:
    """Return the value that a number had in the example; None if the file does not have it."""
    value = getattr(known, "value", known)
    if isinstance(value, schema.SymExpr):
        value = value.hint and value.hint.value
    return value if isinstance(value, (int, float)) else None
