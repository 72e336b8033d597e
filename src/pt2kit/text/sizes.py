"""Size breakdown of a package, as data and as lines: records, modules, types, tensors, and possible savings.

Text of the cost of a program: totals, and tables of modules and operators, as numbers or formulas.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pt2kit import codec
from pt2kit.costs.result import Cost, Sum, plain
from pt2kit.messages import count_text, printable
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.sanitizing.options import STRIPS, make_options
from pt2kit.sanitizing.programs import rewrite_metadata
from pt2kit.symbols.polynomials import Size
from pt2kit.tensors.view import TensorView
from pt2kit.text.format import WIDTH, bytes_text, dotted, table, with_unit
from pt2kit.text.payloads import dtype_of
from pt2kit.zip.writer import DEFLATE_LEVEL

TITLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("weight", "weights payload"), "weights"),
    **dict.fromkeys(("tensor constant", "constants payload", "custom object", "opaque object"), "constants"),
    **dict.fromkeys(("weights config", "constants config"), "lists of tensors"),
    "program": "graph",
    "extra file": "extra files",
    "other": "other records",
}
"""Kinds of records whose titles differ from their names."""


_WRAPPING: Final = 6
"""Bytes that zlib puts around what a zip file has."""


@dataclass(frozen=True, slots=True)
class Share:
    """Some bytes of a file.

    Args:
        name: whose they are.
        count: how many records, or tensors.
        bytes: as they are read.
        stored: as stored in the file; the same if nothing is deflated.
    """

    name: str
    count: int
    bytes: int
    stored: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size breakdown of a file; of tensors that share a record, the first has its bytes.

    Args:
        file: its name.
        bytes: its size.
        parts: kinds of records, largest first; "zip" is what the archive itself takes.
        modules: of weights, as deep as at most `top` of them go, largest first.
        dtypes: of weights and constants.
        tensors: the `top` largest weights and constants; and how many there are.
        metadata: bytes of the JSON of the programs that are metadata of nodes, before deflating.
        traces: those of them that are stack traces.
        savings: option of `pt2 sanitize` -> bytes by which the records of the programs get smaller; "" for no option.
    """

    file: str
    bytes: int
    parts: tuple[Share, ...]
    modules: tuple[Share, ...]
    dtypes: tuple[Share, ...]
    tensors: tuple[Share, ...]
    tensor_count: int
    metadata: int
    traces: int
    savings: dict[str, int]


def find_sizes(package: Package, models: Sequence[str], *, top: int) -> Sizes:
    """Measure the parts of a file. Reads no tensor.

    Args:
        package: open.
        models: the programs whose weights and metadata are meant; the kinds of records are those of the whole file.
        top: how many modules and tensors are listed.

    Raises:
        Pt2Error: a program cannot be read.

    Cost: each program is written again once for each way to strip it; 2,700 nodes take about a second.
    """
    owned = list(_owned(package, models))
    weights = [(name, dtype, size) for name, dtype, size, is_weight in owned if is_weight]
    kept, savings = _stripped(package, models)
    return Sizes(
        file=printable(package.name, 1000),
        bytes=package.archive.source.size,
        parts=_parts(package),
        modules=_modules([(name, size) for name, _, size in weights], top),
        dtypes=_summed((dtype, size, size) for _, dtype, size, _ in owned),
        tensors=tuple(Share(name, 1, size, size) for name, _, size, _ in sorted(owned, key=lambda row: -row[2])[:top]),
        tensor_count=len(owned),
        metadata=kept.get("", 0) - kept.get("metadata", 0),
        traces=kept.get("", 0) - kept.get("traces", 0),
        savings=savings,
    )


def size_lines(sizes: Sizes, width: int = WIDTH) -> Iterator[str]:
    """Yield the lines that `pt2 show --sizes` prints."""
    yield f"{sizes.file}  {bytes_text(sizes.bytes)}"
    yield from _table("where the bytes are", sizes.parts, sizes.bytes, "record", width)
    weights = sum(share.bytes for share in sizes.dtypes)
    yield from _table("weights by module", sizes.modules, weights, "tensor", width)
    yield from _table("tensors by type", sizes.dtypes, weights, "tensor", width)
    shown = len(sizes.tensors)
    title = "tensors" if shown == sizes.tensor_count else f"largest tensors ({shown:,} of {sizes.tensor_count:,})"
    yield from _table(title, sizes.tensors, weights, "", width)
    yield ""
    yield "what pt2 sanitize would save of the graph"
    rows = [(option or "(no option)", bytes_text(saved)) for option, saved in sizes.savings.items()]
    yield from (f"  {line}" for line in table(rows, width // 2, right=(1,)))
    yield f"  its JSON has {bytes_text(sizes.metadata)} of metadata, {bytes_text(sizes.traces)} of them traces"


def _table(title: str, shares: Sequence[Share], total: int, noun: str, width: int) -> Iterator[str]:
    if not shares:
        return
    yield ""
    yield title
    rows = []
    for share in shares:
        part = f"{100 * share.stored / total:.1f} %" if total else ""
        inflated = f"{bytes_text(share.bytes)} inflated" if share.stored != share.bytes else ""
        count = count_text(share.count, noun) if noun and share.name != "zip" else ""
        rows.append((printable(share.name), bytes_text(share.stored), part, count, inflated))
    yield from (f"  {line}" for line in table(rows, max(20, width - 50), right=(1, 2, 3)))


def _parts(package: Package) -> tuple[Share, ...]:
    rows = [
        (TITLES.get(kind := names.kind(package.relative(record.name)), kind), record.size, record.compressed_size)
        for record in package.records.values()
    ]
    if rest := package.archive.source.size - sum(stored for _, _, stored in rows):
        rows.append(("zip", rest, rest))
    return _summed(rows)


def _owned(package: Package, models: Sequence[str]) -> Iterator[tuple[str, str, int, bool]]:
    """Yield name, type, record bytes and whether it is a weight for each payload that is the first with its record."""
    seen = set[object]()
    for model in models:
        head = f"{model}: " if len(models) > 1 else ""
        for is_weight, payloads in ((True, package.weights(model)), (False, package.constants(model))):
            for name, payload in payloads.items():
                key = payload.storage.record if isinstance(payload, TensorView) else (model, is_weight, name)
                if key in seen:
                    continue
                seen.add(key)
                if isinstance(payload, TensorView):
                    yield head + dotted(name), dtype_of(payload), payload.storage.nbytes, is_weight
                else:
                    yield head + dotted(name), payload.describe().partition(",")[0], payload.nbytes, is_weight


def _modules(weights: Sequence[tuple[str, int]], top: int) -> tuple[Share, ...]:
    """Return weights by module, as deep as their count allows; deeper than the depth of the names nothing changes."""
    depth, shares = 1, _at_depth(weights, 1)
    while len(deeper := _at_depth(weights, depth + 1)) <= top and depth < 64:
        depth, shares = depth + 1, deeper
    if len(shares) <= top:
        return shares
    rest = shares[top:]
    return (
        *shares[:top],
        Share(
            f"… {len(rest):,} more", *(sum(getattr(one, key) for one in rest) for key in ("count", "bytes", "stored"))
        ),
    )


def _at_depth(weights: Sequence[tuple[str, int]], depth: int) -> tuple[Share, ...]:
    return _summed((".".join(name.split(".")[:-1][:depth]) or "(root)", size, size) for name, size in weights)


def _summed(rows: Iterable[tuple[str, int, int]]) -> tuple[Share, ...]:
    """Return rows of name, bytes and stored bytes as one share for each name, those with most stored bytes first."""
    shares: dict[str, Share] = {}
    for name, size, stored in rows:
        share = shares.get(name, Share(name, 0, 0, 0))
        shares[name] = Share(name, share.count + 1, share.bytes + size, share.stored + stored)
    return tuple(sorted(shares.values(), key=lambda share: (-share.stored, share.name)))


def _stripped(package: Package, models: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the remaining bytes of JSON by stripped part, and the saved record bytes by option; "" for none."""
    records = {model: package.layout.program_record(model) for model in models}
    now = sum(package.records[record].compressed_size for record in set(records.values()))
    kept: dict[str, int] = {}
    savings: dict[str, int] = {}
    for name in ("", *STRIPS):
        options = make_options(strip=[name] if name else [])
        kept[name], deflated = 0, 0
        for model in models:
            stored = package.stored[model]
            program, _ = rewrite_metadata(stored.program, model, options)
            same = program is stored.program
            text = codec.encode(program, stored.unknown if same else ())
            kept[name] += len(text)
            # Unchanged records are copied.
            written = package.archive.read(records[model]) if same and not stored.is_raised else text
            deflated += len(zlib.compress(written, DEFLATE_LEVEL)) - _WRAPPING
        savings[f"--strip {name}" if name else ""] = now - deflated
    return kept, savings


_HEAD: Final = ("nodes", "FLOPs", "read", "written", "parameters")
_FORMULA: Final = 60
_MODULE: Final = 48


def cost_lines(cost: Cost, at: Mapping[str, int], depth: int, seconds: float | None) -> Iterator[str]:
    """Return what `pt2 show --cost` prints.

    Args:
        cost: the counts.
        at: the values of symbols that the user chose.
        depth: levels of modules to list.
        seconds: the roofline time, if it was asked for.
    """
    total = cost.total
    where = ", ".join(
        f"{printable(name)} = {value}" for name, value in (at or cost.symbols).items() if value is not None
    )
    if where:
        yield f"sizes        {where}{'' if at else ' when it was exported'}"
    yield f"FLOPs        {_flops(total.flops)}"
    peak = cost.peak_node
    yield f"peak memory  {_bytes(cost.peak)} of activations" + (f", at {printable(peak.path, 80)}" if peak else "")
    yield f"weights      {_bytes(cost.weights)}, {_number(total.parameters)} parameters"
    yield f"inputs       {_bytes(cost.inputs)}"
    yield f"moved        {_bytes(total.read)} read, {_bytes(total.written)} written"
    if seconds is not None:
        yield f"time         {_seconds(seconds)} at least"
    yield ""
    modules = cost.by_module(depth, folded=True)
    yield from _cost_table("modules", {name or "(root)": one for name, one in modules.items()})
    yield ""
    yield from _cost_table("operators", cost.by_operator())
    if cost.uncounted:
        listed = ", ".join(f"{printable(name, 80)} ({count})" for name, count in cost.uncounted.items())
        yield f"FLOPs not counted: {count_text(sum(cost.uncounted.values()), 'node')} of {listed}"


def _cost_table(title: str, rows: Mapping[str, Sum]) -> Iterator[str]:
    cells = [
        (
            printable(name, 100),
            f"{one.nodes:,}",
            _flops(one.flops),
            _bytes(one.read),
            _bytes(one.written),
            _number(one.parameters) if one.parameters != 0 else "",
        )
        for name, one in rows.items()
    ]
    yield from table([(title, *_HEAD), *cells], _MODULE, right=range(1, 6))


def _formula(size: Size) -> str:
    shown = str(plain(size))
    return shown if len(shown) <= _FORMULA else f"{shown[: _FORMULA - 1]}…"


def _number(size: Size) -> str:
    return f"{size:,}" if isinstance(size, int) else _formula(size)


def _bytes(size: Size) -> str:
    return bytes_text(size) if isinstance(size, int) else f"{_formula(size)} B"


def _flops(size: Size) -> str:
    return with_unit(size, " KMGTPE") if isinstance(size, int) else _formula(size)


def _seconds(value: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
