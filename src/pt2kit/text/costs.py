"""Text of the cost of a program: totals, and tables of modules and operators, as numbers or formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pt2kit.costs.result import Cost, Sum, plain
from pt2kit.messages import count_text, printable
from pt2kit.symbols.polynomials import Size
from pt2kit.text.format import bytes_text, table

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
    yield from _table("modules", {name or "(root)": one for name, one in modules.items()})
    yield ""
    yield from _table("operators", cost.by_operator())
    if cost.uncounted:
        listed = ", ".join(f"{printable(name, 80)} ({count})" for name, count in cost.uncounted.items())
        yield f"FLOPs not counted: {count_text(sum(cost.uncounted.values()), 'node')} of {listed}"


def _table(title: str, rows: Mapping[str, Sum]) -> Iterator[str]:
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
    if not isinstance(size, int):
        return _formula(size)
    value, unit = float(size), 0
    while value >= 999.5 and unit < 6:
        value, unit = value / 1000, unit + 1
    return str(size) if unit == 0 else f"{value:.3g} {' KMGTPE'[unit]}"


def _seconds(value: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
