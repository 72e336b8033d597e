"""The views of `pt2 show`: a package seen one way, as lines or as a tree for `--json`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pt2kit import codec
from pt2kit.cli.common import Refusal
from pt2kit.cli.completion import modules_of, nodes_of
from pt2kit.cli.frame import Result, by_program
from pt2kit.messages import printable, suggestion
from pt2kit.package.open import Package

if TYPE_CHECKING:
    from pt2kit.graph.traversal import Step
    from pt2kit.schema import ExportedProgram
    from pt2kit.text.payloads import Entry
    from pt2kit.text.program import Found


def together(models: Sequence[str], view: Callable[[str], Result]) -> Result:
    """Return one view of several programs, each below its name; that of a single program unchanged."""
    views = {model: view(model) for model in models}
    if len(views) == 1:
        return views[models[0]]
    return Result(
        by_program({model: one.lines for model, one in views.items()}),
        lambda: {model: one.tree() for model, one in views.items()},
        max((one.code for one in views.values()), default=0),
        all(one.fitted for one in views.values()),
    )


def summary_view(package: Package, models: Sequence[str] | None, oldest: bool, columns: int | None) -> Result:
    """Return the summary of a file, or of one program of it."""
    from pt2kit.text.format import WIDTH
    from pt2kit.text.report import model_lines, summary_lines
    from pt2kit.text.summary import summarize, summarize_model

    width = min(columns or WIDTH, WIDTH)
    if models is not None:
        one = summarize_model(package, models[0], oldest=oldest)
        return Result(model_lines(one, width, columns), lambda: one, int(bool(one.problems)))
    summary = summarize(package, oldest=oldest)
    problems = any(model.problems for model in summary.models)
    return Result(summary_lines(summary, width, columns), lambda: summary, int(problems))


def sizes_view(package: Package, models: Sequence[str], top: int, width: int) -> Result:
    """Return where the bytes of a file are."""
    from pt2kit.text.sizes import find_sizes, size_lines

    sizes = find_sizes(package, models, top=top)
    return Result(size_lines(sizes, width), lambda: sizes)


def cost_view(
    package: Package, model: str, at: Mapping[str, int], depth: int, device: tuple[float, float] | None
) -> Result:
    """Return FLOPs, bytes and memory of a program, by module and operator.

    Args:
        package: the file.
        model: its program.
        at: symbol -> its value; formulas are shown if there is none.
        depth: levels of modules to list.
        device: FLOPs and bytes per second, for the roofline time.
    """
    from pt2kit.costs.count import cost
    from pt2kit.text.sizes import cost_lines

    counted = cost(package, model=model)
    shown = counted.at(at) if at else counted
    seconds = None if device is None else shown.seconds(*device)
    tree = {**shown.to_tree(), **({} if seconds is None else {"seconds": seconds})}
    return Result(cost_lines(shown, at, depth, seconds), lambda: tree, fitted=False)


def text_view(package: Package, model: str) -> Result:
    """Return a program in the text form that can be parsed again."""
    from pt2kit.text.source import print_program

    text = print_program(package.programs[model])
    return Result(text.splitlines(), lambda: {"text": text}, fitted=False)


def graph_view(package: Package, model: str) -> Result:
    """Return a program, one line for each node."""
    from pt2kit.text.program import program_lines

    stored = package.stored[model]

    def tree() -> Any:
        if stored.unknown:
            return codec.parse(codec.encode(stored.program, stored.unknown), model)
        return stored.program

    return Result(program_lines(stored.program), tree)


def node_view(package: Package, models: Sequence[str], name: str) -> Result:
    """Return the nodes and values of a name, in the programs that have them.

    Raises:
        Refusal: there are none.
    """
    from pt2kit.text.program import find

    found = {model: matches for model in models if (matches := find(package.programs[model], name))}
    if not found:
        _refuse(package, models, f"a node or a value {name!r}, got none of that name", name, nodes_of)
    return together(list(found), lambda model: _node_view(package.programs[model], found[model]))


def _refuse(
    package: Package, models: Sequence[str], text: str, name: str, names_of: Callable[[Package, str], Iterable[str]]
) -> NoReturn:
    """Refuse a name that no program has; suggest close ones of theirs."""
    names = dict.fromkeys(name for model in models for name in names_of(package, model))
    shown = ", ".join(map(printable, models[:5])) + (", …" if len(models) > 5 else "")
    raise Refusal(f"{package.name}: {shown}: expected {text}{suggestion(name, names)}")


def _node_view(program: ExportedProgram, matches: Sequence[Found]) -> Result:
    from pt2kit.text.program import found_lines, users_of
    from pt2kit.text.values import ValueTexts

    rows = [
        {
            "path": entry.path,
            "values": entry.values,
            "node": entry.node,
            "users": list(users_of(entry.scope.graph, entry.values)),
        }
        for entry in matches
    ]

    def lines() -> Iterator[str]:
        texts = ValueTexts(program)
        for number, entry in enumerate(matches):
            yield from [""] if number else []
            yield from found_lines(entry, texts)

    return Result(lines(), lambda: rows)


def module_view(package: Package, models: Sequence[str], fqn: str) -> Result:
    """Return the tensors and nodes of a module and its submodules, in the programs that have it.

    Raises:
        Refusal: none has it.
    """
    inside = {model: _inside(package, model, fqn) for model in models}
    having = [model for model, found in inside.items() if not fqn or any(found)]
    if not having:
        _refuse(package, models, f"a module {fqn!r}, got no node or tensor of it", fqn, modules_of)
    return together(having, lambda model: _module_view(package.programs[model], fqn, *inside[model]))


def _inside(package: Package, model: str, fqn: str) -> tuple[list[Entry], list[Step]]:
    """Return the tensors and steps of a module and its submodules."""
    from pt2kit.graph.traversal import walk
    from pt2kit.node_metadata.modules import module_of
    from pt2kit.text.payloads import entries_of

    inside = re.compile(rf"{re.escape(fqn)}(\..*)?" if fqn else r".*", re.DOTALL)
    tensors = [entry for entry in entries_of(package, model, constants=True) if inside.fullmatch(entry.name)]
    return tensors, [step for step in walk(package.programs[model]) if inside.fullmatch(module_of(step.node.metadata))]


def _module_view(program: ExportedProgram, fqn: str, tensors: Sequence[Entry], steps: Sequence[Step]) -> Result:
    from pt2kit.messages import count_text
    from pt2kit.text.payloads import payload_lines, payload_row
    from pt2kit.text.program import node_line
    from pt2kit.text.values import ValueTexts

    def lines() -> Iterator[str]:
        texts = ValueTexts(program)
        if tensors:
            yield from payload_lines(tensors)
        yield count_text(len(steps), "node")
        yield from (f"  {node_line(step.scope.graph, step.node, texts)}" for step in steps)

    def tree() -> Any:
        rows = [payload_row(entry) for entry in tensors]
        return {"module": fqn, "tensors": rows, "nodes": [step.node for step in steps]}

    return Result(lines(), tree)


def records_view(package: Package) -> Result:
    """Return the records of the archive."""
    return Result(_record_lines(package), lambda: _records(package))


def _records(package: Package) -> list[dict[str, Any]]:
    from pt2kit.package import record_names as names

    rows = []
    for record in package.records.values():
        relative = package.relative(record.name)
        outside = package.external.get(relative)
        row = {"name": record.name, "kind": names.kind(relative), "bytes": record.size}
        if outside is None:
            method = "stored" if record.is_stored else "deflated"
            row |= {"stored_bytes": record.compressed_size, "method": method, "crc32": f"{record.crc32:08x}"}
        else:
            row |= {"stored_bytes": 0, "method": "external", "url": outside.url, "sha256": outside.sha256}
        rows.append(row)
    return rows


def _record_lines(package: Package) -> Iterator[str]:
    from pt2kit.messages import count_text
    from pt2kit.text.format import bytes_text, table

    rows = _records(package)
    yield f"{count_text(len(rows), 'record')}, {bytes_text(sum(row['bytes'] for row in rows))}"
    shown = {"stored": "", "deflated": "{} deflated", "external": "in {}"}
    cells = []
    for row in rows:
        detail = printable(row["url"]) if "url" in row else bytes_text(row["stored_bytes"])
        method = shown[row["method"]].format(detail)
        cells.append((bytes_text(row["bytes"]), method, row["kind"], printable(row["name"])))
    yield from (f"  {line}" for line in table(cells, 20, right=(0, 1)))
