"""Report of a package summary, as `pt2 show` prints it: one screen for an ordinary file.

Headings are at the left margin, entries are indented by two blanks and begin with a label of `LABEL` columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from pt2kit.errors import Problem
from pt2kit.messages import count_text, printable
from pt2kit.schema import LOG
from pt2kit.schema.names import OPS
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.text.format import WIDTH, bytes_text, display_width, dotted, reach, table, wrap
from pt2kit.text.payloads import TensorGroup
from pt2kit.text.summary import ModelSummary, ModuleSummary, Summary
from pt2kit.text.values import bounds_text

LABEL = 13
MAX_OPERATORS = 8
MAX_MODULES = 24
MAX_PARAMETERS = 30
MAX_LISTED = 6
MAX_CHARACTERS = 300

_SHORT = {row.name: row.short for row in DTYPES.values()}


def summary_lines(summary: Summary, width: int = WIDTH, columns: int | None = None) -> Iterator[str]:
    """Yield the summary of a file, line by line.

    Args:
        summary: the facts.
        width: columns that lines should fit in; a name or a number that is longer is not cut.
        columns: of a terminal: labels of modules are cut to fit it.
    """
    yield f"{summary.file}  {bytes_text(summary.bytes)} in {count_text(summary.records, 'record')}"
    yield from _entry("written by", f"{printable(summary.producer)}, layout of {summary.layout}", width)
    outside = [f"{printable(url)} {bytes_text(size)}" for url, size in summary.external.items()]
    yield from _entry("weights in", ", ".join(_first(outside)), width)
    for model in summary.models:
        yield ""
        yield from model_lines(model, width, columns)
    yield from _extra(summary, width)
    yield from _safety(summary.safety)


def model_lines(model: ModelSummary, width: int = WIDTH, columns: int | None = None) -> Iterator[str]:
    """Yield the summary of one program, line by line; as `summary_lines`."""
    yield f"{printable(model.name)}  schema {model.schema_version}, {count_text(model.nodes, 'node')}"
    yield from _call(model)
    symbols = [f"{symbol.name}: {bounds_text(symbol.min, symbol.max)}" for symbol in model.symbols]
    yield from _entry("where", "; ".join(_first(symbols, 3 * MAX_LISTED)), width)
    yield from _entry("guards", f"{model.guards:,}" if model.guards else "", width)
    opset = ", ".join(f"{printable(name)} {number}" for name, number in model.opset_version.items())
    dialect = ", ".join(map(printable, model.verifiers)) or "none"
    yield from _entry("dialect", f"{dialect}, operator set {opset or 'none'}", width)
    yield from _entry("oldest", _oldest(model.oldest_version), width)
    for name, methods in model.delegates.items():
        yield from _entry("delegate", f"{printable(name)}: {', '.join(map(printable, methods))}", width)
    moves = [f"{printable(source)} to {printable(target)}" for source, target in model.devices.items()]
    yield from _entry("devices", ", ".join(_first(moves)), width)
    yield from _group("parameters", model.parameters, width)
    yield from _group("buffers", model.buffers, width)
    yield from _group("constants", model.constants, width)
    stated = model.parameters.total + model.buffers.total + model.constants.total
    if model.stored_bytes != stated.bytes:
        gaps = f", {count_text(model.without_data, 'tensor')} without data" if model.without_data else ""
        yield from _entry("stored", f"{bytes_text(model.stored_bytes)}, what tensors share once{gaps}", width)
    yield from _operators(model, width)
    yield from _list("mutates", model.mutations)
    if model.in_place:
        counts = ", ".join(_first([f"{_short(target)} {count:,}" for target, count in model.in_place.items()]))
        yield from _entry("in place", f"{counts} (what they change, the signature does not say)", width)
    yield from _list("gradients of", model.gradients)
    yield from _list("lifted", model.lifted)
    yield from _list("unknown keys", model.unknown)
    yield from _list("problems", model.problems)
    if model.modules is not None and model.modules.children:
        room = None if columns is None else columns - LABEL - 2
        yield from _labeled("modules", module_lines(model.modules, room=room))


def _oldest(version: str) -> str:
    """Return the oldest release that could read a program; "" if that is not known."""
    numbers = [row.number for row in LOG]
    if version not in numbers:
        return ""
    release = next((row.releases[0] for row in LOG[numbers.index(version) :] if row.releases), "")
    return f"torch {release} could read it, once converted to schema {version}"


def module_lines(root: ModuleSummary, room: int | None = None) -> Iterator[str]:
    """Yield a module and those below it, a line each with its elements and bytes, as deep as `MAX_MODULES` lines allow.

    Neighbours that look alike are shown once.

    Args:
        root: the module.
        room: columns of a line: longer labels are cut; None for no limit.
    """
    depth, rows = 0, _rows(root, 0, 0)
    while len(deeper := _rows(root, 0, depth + 1)) <= MAX_MODULES and len(deeper) > len(rows):
        depth, rows = depth + 1, deeper
    if not depth:
        rows = _rows(root, 0, 1)[:MAX_MODULES]
    if room is not None:
        sizes = sum(max(len(row[column]) for row in rows) + 2 for column in (1, 2))
        rows = [(_cut(label, max(12, room - sizes)), count, size) for label, count, size in rows]
    yield from table(rows, WIDTH, right=(1, 2))
    if hidden := len(_rows(root, 0, MAX_MODULES)) - len(rows):
        yield f"… {count_text(hidden, 'line')} more: pt2 show --module NAME"


def _call(model: ModelSummary) -> Iterator[str]:
    lines = model.call.text.splitlines() if model.call else []
    if len(lines) > MAX_PARAMETERS + 2:
        hidden = len(lines) - 2 - MAX_PARAMETERS
        lines = [*lines[: MAX_PARAMETERS + 1], f"    … {count_text(hidden, 'parameter')} more", lines[-1]]
    for line in lines:
        yield f"  {printable(line, 20 * WIDTH)}"


def _cut(label: str, width: int) -> str:
    """Return a label in at most some columns of a terminal, with "…" for the rest."""
    return label if display_width(label) <= width else f"{label[: reach(label, width - 1)]}…"


def _entry(label: str, text: str, width: int) -> Iterator[str]:
    if text:
        yield from _labeled(label, wrap(text, width - LABEL - 2))


def _list(label: str, items: Sequence[str]) -> Iterator[str]:
    yield from _labeled(label, (printable(item, MAX_CHARACTERS) for item in _first(items)))


def _labeled(label: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with a label before the first one."""
    for number, line in enumerate(lines):
        yield f"  {label if number == 0 else '':<{LABEL}}{line}"


def _first(items: Sequence[str], limit: int = MAX_LISTED) -> list[str]:
    return [*items[:limit], *([f"… {len(items) - limit:,} more"] if len(items) > limit else [])]


def _group(label: str, group: TensorGroup, width: int) -> Iterator[str]:
    if not group.total.tensors:
        return
    text = f"{count_text(group.total.elements, 'element')} in {count_text(group.total.tensors, 'tensor')}"
    if group.opaque:
        text += f", {len(group.opaque)} of them pickled"
    types = ", ".join(f"{_SHORT.get(name, name)} {bytes_text(amount.bytes)}" for name, amount in group.dtypes.items())
    yield from _entry(label, f"{text}: {types or bytes_text(group.total.bytes)}", width)
    if group.opaque:
        shown = [f"{dotted(name)}: {what}" for name, what in group.opaque.items()]
        yield from _list("pickled", shown)


def _operators(model: ModelSummary, width: int) -> Iterator[str]:
    for number, (namespace, counts) in enumerate(model.operators.items()):
        names = [f"{_short(target)} {count:,}" for target, count in counts.items()]
        mark = " (custom)" if namespace in model.custom_namespaces else ""
        text = f"{printable(namespace)}{mark} {sum(counts.values()):,}: {', '.join(_first(names, MAX_OPERATORS))}"
        yield from _entry("operators" if number == 0 else "", text, width)


def _short(target: str) -> str:
    parts = target.removeprefix(OPS).split(".")
    kept = parts[1:] if len(parts) > 1 else parts
    return printable(".".join(part for part in kept if part != "default"), 80)


def _rows(node: ModuleSummary, indent: int, depth: int) -> list[tuple[str, str, str]]:
    """Return the rows of a module and of those at most `depth` below it: name and class, elements, bytes."""
    rows = [_row(_class_text(node) or "(root)", node, indent)] if not indent else []
    if depth:
        for first, last, child in _folded(node.children):
            name = dotted(first) if first == last else f"{dotted(first)} … {dotted(last)}"
            each = "" if first == last else ", each"
            rows.append(_row(f"{name}  {_class_text(child)}{each}".rstrip(), child, indent + 1))
            rows += _rows(child, indent + 1, depth - 1)
    return rows


def _row(text: str, node: ModuleSummary, indent: int) -> tuple[str, str, str]:
    total = node.total
    sizes = (f"{total.elements:,}", bytes_text(total.bytes)) if total.tensors else ("", "")
    return f"{'  ' * indent}{text}", *sizes


def _folded(children: Iterable[ModuleSummary]) -> Iterator[tuple[str, str, ModuleSummary]]:
    """Yield runs of numbered children that look alike as one: (first name, last name, the first of them)."""
    for _, run in groupby(children, lambda child: _shape(child) if child.name.isdigit() else child.fqn):
        first, *others = run
        yield first.name, others[-1].name if others else first.name, first


def _shape(node: ModuleSummary) -> object:
    own = tuple(name.rpartition(".")[2] for name in node.tensors)
    return node.type, own, node.total, tuple((child.name, _shape(child)) for child in node.children)


def _class_text(node: ModuleSummary) -> str:
    kind = printable((node.type or "").rpartition(".")[2])
    own = ", ".join(_first([dotted(name.rpartition(".")[2]) for name in node.tensors]))
    return f"{kind} ({own})".strip() if own else kind


def _extra(summary: Summary, width: int) -> Iterator[str]:
    if summary.extra_files:
        yield ""
        yield "extra files"
        rows = [(printable(name), bytes_text(size)) for name, size in summary.extra_files.items()]
        limit = width if width >= WIDTH else width - 12
        yield from (f"  {line}" for line in table(rows[: 2 * MAX_LISTED], limit, right=(1,)))
        if len(rows) > 2 * MAX_LISTED:
            yield f"  … {len(rows) - 2 * MAX_LISTED:,} more: pt2 show --records"
    if summary.compiled:
        yield ""
        yield f"compiled code for {', '.join(map(printable, summary.compiled))}"


def _safety(findings: tuple[Problem, ...]) -> Iterator[str]:
    if not findings:
        return
    yield ""
    yield "what torch would run on loading this"
    for finding in findings[: 2 * MAX_LISTED]:
        yield f"  {finding.rule:<4}{printable(finding.loc)}: {printable(finding.message, MAX_CHARACTERS)}"
    if len(findings) > 2 * MAX_LISTED:
        yield f"  … {len(findings) - 2 * MAX_LISTED:,} more: pt2 show --json"
