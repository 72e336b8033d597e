"""Verification of edited programs by the rules of `checks`, and the ranges of symbols that they need.

Errors name the edit that caused them. Errors that the program had before the edits are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pt2kit import graph as rules
from pt2kit import schema
from pt2kit.checks.findings import context_of
from pt2kit.checks.regions import region_problems
from pt2kit.checks.run import RULES_OF_PROGRAMS
from pt2kit.checks.storages import storage_problems
from pt2kit.editing.sizes import symbols_of
from pt2kit.editing.state import EditState
from pt2kit.errors import GraphError, Problem, Pt2Error
from pt2kit.graph.traversal import tables

_RECORD = "program"
NEW_SYMBOL = (1, None)
_REFUSED = ("error", "safety")
_UNSURE = ("E8",)
"""Rules whose warnings say that torch may not load the program."""
_STEP = re.compile(r"\.nodes\[(\d+)\](?:\.inputs\[(\d+)\])?")
_TABLE = re.compile(r"_values(?:\.(\w+)|\[['\"](.*?)['\"]\])")


def check_program(editor: EditState, program: schema.ExportedProgram) -> None:
    """Refuse a program that has errors which it did not have before.

    Raises:
        GraphError: the first of them, with the last edit at its place.
    """
    problems = list(_errors(program))
    if not problems:
        return
    known = {(problem.rule, problem.message) for problem in _errors(editor.program)}
    for problem in problems:
        if (problem.rule, problem.message) not in known:
            edit = _edit_at(editor, problem.loc)
            raise GraphError(f"{edit}{problem.loc}: {problem.message}", rule=problem.rule)


def needed_ranges(editor: EditState, graph: schema.Graph) -> dict[str, schema.RangeConstraint]:
    """Return the ranges that a program needs: those it had, without removed symbols, and with new ones."""
    old = editor.program.range_constraints
    if graph is editor.graph.origin:
        new = {name: range_of(limits) for name, limits in editor.ranges.items()}
        return old if new == old else new
    before, after = set(needed_symbols(editor.graph.origin)), dict.fromkeys(needed_symbols(graph))
    # Symbols that no value had before are kept: the program states them without using them.
    kept = {name: range_of(limits) for name, limits in editor.ranges.items() if name in after or name not in before}
    came = {name: range_of(None) for name in after if name not in kept and name not in before}
    return {**kept, **came}


def range_of(limits: tuple[int | None, int | None] | None) -> schema.RangeConstraint:
    """Return a range as the schema has it; that of a new symbol if there is none."""
    return schema.RangeConstraint(*(NEW_SYMBOL if limits is None else limits))


def needed_symbols(graph: schema.Graph) -> Iterator[str]:
    """Yield the symbols in the metas of the values of a graph and its subgraphs."""
    seen: set[int] = set()
    for scope in rules.graphs(graph):
        for kind, table in tables(scope.graph).items():
            for meta in table.values():
                if id(meta) in seen:
                    continue
                seen.add(id(meta))
                yield from meta_symbols(kind, meta)


def meta_symbols(kind: str, meta: Any) -> Iterator[str]:
    """Yield the symbols in the meta of a value."""
    if kind == "tensor":
        for size in (*meta.sizes, *meta.strides, meta.storage_offset):
            yield from symbols_of(size)
    elif kind in ("sym_int", "sym_float", "sym_bool") and meta.type == "as_expr":
        yield from symbols_of(schema.SymInt(as_expr=meta.value))


def _errors(program: schema.ExportedProgram) -> Iterator[Problem]:
    context = context_of(program, _RECORD, schema.CURRENT.number)
    for rule in (*RULES_OF_PROGRAMS, region_problems, storage_problems):
        try:
            yield from (problem for problem in rule(context) if problem.kind in _REFUSED or problem.rule in _UNSURE)
        except Pt2Error as error:
            yield Problem(_RECORD, error.rule, str(error))


def _edit_at(editor: EditState, loc: str) -> str:
    """Return the last edit at a location, for messages: of its node, of the node that carries its subgraph, of its
    value."""
    graph, node = editor.graph, None
    edited = None
    for index, input_index in _STEP.findall(loc):
        nodes = graph.nodes
        if int(index) >= len(nodes):
            break
        node = nodes[int(index)]
        edited = node if node.edit else edited
        slots = node.slots
        inner = slots[int(input_index)].graphs if input_index and int(input_index) < len(slots) else ()
        if not inner:
            break
        graph, node = inner[0], None
    if node is None and (named := _TABLE.search(loc)) is not None:
        value = graph.values.get(named[1] or named[2])
        if value is not None and value.producer is not None and value.producer.edit:
            edited = value.producer
    return f"{edited.edit}: {edited.label}: " if edited is not None else ""
