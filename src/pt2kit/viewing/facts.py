"""Facts of a program for the page's side panel: call, trees, signature, symbols, guards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pt2kit import treespec
from pt2kit.errors import Pt2Error
from pt2kit.messages import printable
from pt2kit.package.open import Package
from pt2kit.schema import ExportedProgram, InputSpec, OutputSpec
from pt2kit.text.arguments import argument_text
from pt2kit.text.call import summarize_call
from pt2kit.text.values import ValueTexts
from pt2kit.viewing.columns import MAX_TEXT
from pt2kit.viewing.notes import tree_rows

MAX_ROWS: Final = 20_000
"""Rows of one table that are sent; the last one says how many are left out."""

_NAMES: Final = ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name", "user_input_name", "name")

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a program as a whole.

    Args:
        about: (what, text): schema, torch, dialects, operator sets, counts.
        call: the call as a Python signature; "" where it contradicts itself.
        tree: (depth, key, type) of the containers and leaves of inputs and outputs.
        inputs, outputs: (kind, value, what it stands for, type) in the order of the graph.
        symbols: (name, range).
        guards: conditions that inputs must meet besides.
        problems: what could not be read.
    """

    about: list[Row]
    call: str
    tree: list[tuple[int, str, str]]
    inputs: list[Row]
    outputs: list[Row]
    symbols: list[tuple[str, str]]
    guards: list[str]
    problems: list[str]


def program_facts(package: Package, model: str, problem: str = "") -> Facts:
    """Collect the facts of a program.

    Args:
        package: open.
        model: which program.
        problem: what was found before; "" for nothing.

    Raises:
        Pt2Error: the program cannot be read. What contradicts itself is reported in `problems`.
    """
    stored = package.stored[model]
    program = stored.program
    texts, problems = ValueTexts(program), [problem] if problem else []
    call, tree = "", list[tuple[int, str, str]]()
    try:
        call = summarize_call(program, texts).text
        tree = list(_tree(program, texts))
    except Pt2Error as error:
        problems.append(printable(str(error), MAX_TEXT))
    signature = program.graph_module.signature
    return Facts(
        about=_about(package, program, stored.version),
        call=call[:MAX_ROWS],
        tree=tree[:MAX_ROWS],
        inputs=_limited([_input(spec, program, texts) for spec in signature.input_specs[:MAX_ROWS]]),
        outputs=_limited([_input(spec, program, texts) for spec in signature.output_specs[:MAX_ROWS]]),
        symbols=[*texts.ranges()][:MAX_ROWS],
        guards=[printable(guard, MAX_TEXT) for guard in program.guards_code[:MAX_ROWS]],
        problems=problems,
    )


def _about(package: Package, program: ExportedProgram, version: str) -> list[Row]:
    sets = ", ".join(f"{printable(name)} {number}" for name, number in program.opset_version.items())
    rows = [
        ("file", printable(package.name, MAX_TEXT)),
        ("written by", printable(package.producer)),
        ("schema", printable(version)),
        ("exported by", printable(f"torch {program.torch_version}")),
        ("dialect", ", ".join(map(printable, program.verifiers))),
        ("operator sets", sets),
    ]
    return [(what, text) for what, text in rows if text]


def _limited(rows: list[Row]) -> list[Row]:
    return rows if len(rows) < MAX_ROWS else [*rows[: MAX_ROWS - 1], ("…", "more are left out", "", "")]


def _input(spec: InputSpec | OutputSpec, program: ExportedProgram, texts: ValueTexts) -> Row:
    """Return one row of the signature."""
    content: Any = spec.value
    argument = getattr(content, "arg", None)
    name = getattr(argument, "name", None)
    inner = getattr(argument, "value", None)
    if name is None:
        name = getattr(inner, "name", None) or getattr(inner, "as_name", None)
    stands_for = next((getattr(content, key) for key in _NAMES if hasattr(content, key)), "")
    if isinstance(name, str):
        kind = texts.named(program.graph_module.graph, name)
    else:
        constant = argument if argument is not None else content.value
        kind = argument_text(constant)
    note = " (not persistent)" if getattr(content, "persistent", True) is False else ""
    shown = printable(name, MAX_TEXT) if isinstance(name, str) else ""
    return spec.type, shown, printable(f"{stands_for}{note}", MAX_TEXT), printable(kind, MAX_TEXT)


def _tree(program: ExportedProgram, texts: ValueTexts) -> Iterator[tuple[int, str, str]]:
    """Yield the containers and leaves of the call's arguments, then of its result."""
    module = program.graph_module
    root = next((entry.signature for entry in module.module_call_graph if entry.fqn == ""), None)
    if root is None:
        return
    fields = {key: row.field_names for key, row in module.treespec_namedtuple_fields.items()}
    signature = module.signature
    kinds = ("user_input", "constant_input"), ("user_output", "loss_output")
    for title, text, specs, wanted in (
        ("inputs", root.in_spec, signature.input_specs, kinds[0]),
        ("outputs", root.out_spec, signature.output_specs, kinds[1]),
    ):
        leaves = iter([_input(spec, program, texts)[3] for spec in specs if spec.type in wanted])
        for depth, key, _, node in tree_rows(treespec.parse(text, title), title, fields):
            kind = next(leaves, "?") if node.is_leaf else printable((node.type or "").removeprefix("builtins."))
            yield depth, printable(key, MAX_TEXT), kind
