"""Numbers on nodes, as columns: costs, errors of two runs, and numbers of the user's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pt2kit.errors import SchemaError
from pt2kit.messages import kind_of, quote
from pt2kit.package.open import Package
from pt2kit.symbols.polynomials import hint
from pt2kit.viewing.columns import OPERATION, REMOVED
from pt2kit.viewing.draw import Drawing

if TYPE_CHECKING:
    from pt2kit.comparing.runs import RunComparison

Data = Mapping[str, Mapping[str, float]]
"""Name of a column -> name of a node -> its number."""


def node_costs(package: Package, model: str, drawing: Drawing) -> dict[str, list[int | None]]:
    """Return columns of costs at the sizes of the export, a number for each drawn node; None if there is none.

    Raises:
        Pt2Error: the costs of the program cannot be counted.
    """
    from pt2kit.costs.count import cost  # the operators, which a picture does not need

    nodes, texts = drawing.picture.nodes, drawing.picture.texts
    known = {one.path: one for one in cost(package, model=model).nodes}
    columns = zip(nodes.kind, nodes.status, nodes.name, strict=True)
    drawn = [
        known.get(texts[name]) if kind == OPERATION and status != REMOVED else None for kind, status, name in columns
    ]
    return {
        "FLOPs": [None if one is None else hint(one.flops) for one in drawn],
        "bytes moved": [None if one is None else hint(one.read + one.written) for one in drawn],
        "activation memory": [None if one is None else hint(one.live) for one in drawn],
    }


def run_errors(found: RunComparison) -> Data:
    """Return the errors of a comparison of two runs as columns, by the name of the new node."""
    rows = [node for node in found.nodes if math.isfinite(node.error.max)]
    return {
        "largest error": {node.new: node.error.max for node in rows},
        "mean error": {node.new: node.error.mean for node in rows},
        "1 - cosine": {node.new: max(0.0, 1 - node.error.cosine) for node in rows},
    }


def checked_data(found: object, where: str) -> Data:
    """Return numbers for nodes.

    Args:
        found: `{node: number}`, several columns `{column: {node: number}}`, or what `compare_runs` returns.
        where: what messages call it.

    Raises:
        SchemaError: it is none of these.
    """
    if not isinstance(found, Mapping):
        from pt2kit.comparing.runs import RunComparison  # the runtime

        if isinstance(found, RunComparison):
            return run_errors(found)
    columns = found if isinstance(found, Mapping) and all(isinstance(row, Mapping) for row in found.values()) else None
    data: Data = columns if columns is not None else {"data": found}  # type: ignore[dict-item]
    for column, row in data.items():
        if not isinstance(row, Mapping):
            raise SchemaError(f"{where}: expected an object of numbers by the name of a node, got {kind_of(row)}")
        for node, number in row.items():
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise SchemaError(
                    f"{where}: {quote(column)}: {quote(node)}: expected a finite number, got {kind_of(number)}"
                )
    return data
