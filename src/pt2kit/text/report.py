"""A summary -> the lines that `pt2 show` prints: one screen for an ordinary file.

Headings stand at the left margin, entries are indented by two spaces and begin with a label of `LABEL` columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pt2kit.errors import Problem
from pt2kit.text.names import dotted, printable
from pt2kit.text.quantities import bytes_text, count_text
from pt2kit.text.summary import Amount, ModelSummary, Summary
from pt2kit.traces import ModuleNode

LABEL = 13
MAX_OPERATORS = 8
MAX_MODULES = 20
MAX_LISTED = 6


def summary_lines(summary: Summary) -> Iterator[str]:
    """The summary of a file, line by line."""
    yield f"{printable(summary.file)}  {bytes_text(summary.bytes)} in {count_text(summary.records, 'record')}"
    yield from _entry("written by", f"{printable(summary.producer)}, layout of {summary.layout}")
    for model in summary.models:
        yield ""
        yield from model_lines(model)
    yield from _extra(summary)
    yield from _safety(summary.safety)


def model_lines(model: ModelSummary) -> Iterator[str]:
    """The summary of one program, line by line."""
    yield f"{printable(model.name)}  schema {model.schema_version}, {count_text(model.nodes, 'node')}"
    for line in model.signature.splitlines():
        yield f"  {line}"
    yield from _entry("where", "; ".join(f"{symbol}: {limits}" for symbol, limits in model.symbols))
    yield from _entry("guards", str(model.guards) if model.guards else "")
    opset = ", ".join(f"{printable(name)} {number}" for name, number in model.opset.items())
    yield from _entry(
        "dialect", f"{', '.join(map(printable, model.verifiers)) or 'none'}, operator set {opset or 'none'}"
    )
    yield from _entry("parameters", _amount(model.parameters))
    yield from _entry("buffers", _amount(model.buffers))
    yield from _entry("constants", _amount(model.constants))
    yield from _entry("types", _types(model.dtypes))
    yield from _entry("stored", bytes_text(model.stored_bytes) if model.stored_bytes else "")
    yield from _operators(model)
    yield from _list("mutates", model.mutations)
    yield from _list("lifted", model.constant_names)
    yield from _list("unknown keys", model.unknown)
    yield from _list("problems", tuple(printable(text, 300) for text in model.problems))
    if model.modules is not None and model.modules.children:
        yield from _entry("modules", _module_text(model.modules) or "(root)")
        yield from module_lines(model.modules)


def module_lines(root: ModuleNode, limit: int = MAX_MODULES) -> Iterator[str]:
    """The module tree below its root, a line each; what the limit cuts off is counted. Equal neighbours are folded."""
    lines = list(_tree(root, 1))
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"{' ' * (LABEL + 4)}… {count_text(len(lines) - limit, 'line')} more, see --module"


def _entry(label: str, text: str) -> Iterator[str]:
    if text:
        yield f"  {label:<{LABEL}}{text}"


def _list(label: str, items: tuple[str, ...]) -> Iterator[str]:
    for number, item in enumerate(items[:MAX_LISTED]):
        yield f"  {label if number == 0 else '':<{LABEL}}{item}"
    if len(items) > MAX_LISTED:
        yield f"  {'':<{LABEL}}… {len(items) - MAX_LISTED} more"


def _amount(amount: Amount) -> str:
    if not amount.tensors:
        return ""
    return (
        f"{count_text(amount.tensors, 'tensor')}, {count_text(amount.elements, 'element')}, {bytes_text(amount.bytes)}"
    )


def _types(dtypes: Mapping[str, Amount]) -> str:
    return ", ".join(f"{name} {bytes_text(amount.bytes)}" for name, amount in dtypes.items())


def _operators(model: ModelSummary) -> Iterator[str]:
    for number, (namespace, counts) in enumerate(model.operators.items()):
        names = [f"{_short(target)} {count}" for target, count in counts.items()]
        more = f", … {len(names) - MAX_OPERATORS} more" if len(names) > MAX_OPERATORS else ""
        mark = " (custom)" if namespace in model.custom_namespaces else ""
        total = sum(counts.values())
        text = f"{printable(namespace)}{mark} {total}: {', '.join(names[:MAX_OPERATORS])}{more}"
        yield f"  {'operators' if number == 0 else '':<{LABEL}}{text}"


def _short(target: str) -> str:
    parts = target.removeprefix("torch.ops.").split(".")
    kept = parts[1:] if len(parts) > 1 else parts
    return printable(".".join(part for part in kept if part != "default"))


def _tree(node: ModuleNode, depth: int) -> Iterator[str]:
    for first, last, child in _folded(node.children):
        name = dotted(first) if first == last else f"{dotted(first)} … {dotted(last)}"
        yield f"{' ' * (LABEL + 2)}{'  ' * depth}{name}  {_module_text(child)}".rstrip()
        yield from _tree(child, depth + 1)


def _folded(children: Iterable[ModuleNode]) -> Iterator[tuple[str, str, ModuleNode]]:
    """Runs of numbered children that look alike as one: (first name, last name, the first of them)."""
    run: list[ModuleNode] = []
    for child in children:
        if run and not (child.name.isdigit() and run[-1].name.isdigit() and _shape(child) == _shape(run[0])):
            yield run[0].name, run[-1].name, run[0]
            run = []
        run.append(child)
    if run:
        yield run[0].name, run[-1].name, run[0]


def _shape(node: ModuleNode) -> object:
    own = tuple(name.rpartition(".")[2] for name in node.parameters)
    return node.type, own, tuple((child.name, _shape(child)) for child in node.children)


def _module_text(node: ModuleNode) -> str:
    kind = (node.type or "").rpartition(".")[2]
    own = ", ".join(dotted(name.rpartition(".")[2]) for name in node.parameters)
    return f"{printable(kind)}{f' ({own})' if own else ''}"


def _extra(summary: Summary) -> Iterator[str]:
    if summary.extra_files:
        yield ""
        yield "extra files"
        for name, size in summary.extra_files.items():
            yield f"  {printable(name)}  {bytes_text(size)}"
    if summary.compiled:
        yield ""
        yield f"compiled code for {', '.join(map(printable, summary.compiled))}"


def _safety(findings: tuple[Problem, ...]) -> Iterator[str]:
    if not findings:
        return
    yield ""
    yield "what torch would run on loading this"
    for finding in findings[:MAX_LISTED]:
        yield f"  {finding.rule:<4}{printable(finding.loc)}: {printable(finding.message, 300)}"
    if len(findings) > MAX_LISTED:
        yield f"  … {len(findings) - MAX_LISTED} more"
