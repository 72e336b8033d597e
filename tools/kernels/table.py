"""Write the shipped table, `src/pt2kit/operators/data/kernels.json`, from evidence.

Manual decisions are kept: reasons, requirements, copied results. Evidence is replaced. An operator that died
and has no row yet gets one that refuses it; those are printed, for somebody to decide whether it is supported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tools.kernels.lines import Evidence, read

TABLE: Final = Path(__file__).parents[2] / "src" / "pt2kit" / "operators" / "data" / "kernels.json"
SEEN: Final = "it trusts its arguments with memory that they may not have"
MAX_TEXTS: Final = 4


def update(evidence: Path) -> int:
    """Write the table anew; print the operators that nobody decided about."""
    release, found = read(evidence)
    table = json.loads(TABLE.read_text())
    made = merged(table, found, release)
    TABLE.write_text(as_text(made))
    for name in sorted(made["operators"].keys() - table["operators"].keys()):
        print(f"new: {name}: {'; '.join(next(iter(made['operators'][name]['evidence'].values())))}")
    return 0


def merged(table: Mapping[str, Any], found: Mapping[str, Evidence], release: str) -> dict[str, Any]:
    """The table with other evidence.

    Args:
        table: as it is stored.
        found: operator with overload -> what was seen of it.
        release: of torch.
    """
    rows = {name: {key: row[key] for key in row if key != "evidence"} for name, row in table["operators"].items()}
    for name in sorted(found):
        if found[name].deaths:
            row = rows.setdefault(_row_name(name, rows, found), {"reason": SEEN})
            row.setdefault("evidence", {})[name.split(".", 2)[2]] = _texts(found[name].deaths)
    return {"release": release, "namespaces": table["namespaces"], "operators": dict(sorted(rows.items()))}


def _row_name(name: str, rows: Mapping[str, Any], found: Mapping[str, Evidence]) -> str:
    """One row for all overloads; one of its own for an overload where the others were called and lived."""
    base, _, _ = name.rpartition(".")
    # An overload that writes to an `out` argument is the same kernel: "dtype_out" of "dtype".
    for row in (name, name.removesuffix("_out"), base):
        if row in rows:
            return row
    others = [item for other, item in found.items() if other.rpartition(".")[0] == base and other != name]
    return name if any(item.succeeded and not item.deaths for item in others) else base


def _texts(deaths: Iterable[str]) -> list[str]:
    texts = list(dict.fromkeys(deaths))
    return texts[:MAX_TEXTS] + ([f"and {len(texts) - MAX_TEXTS} more"] if len(texts) > MAX_TEXTS else [])


def as_text(table: Mapping[str, Any]) -> str:
    """The table as it is stored: a line for each operator, so that changes can be read."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table["operators"].items())
    head = {key: table[key] for key in ("release", "namespaces")}
    return json.dumps(head, indent=1)[:-2] + ',\n "operators": {\n' + rows + "\n }\n}\n"
