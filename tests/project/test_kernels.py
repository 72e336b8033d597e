"""Lines of evidence about kernels -> the table that ships: what is kept, what is replaced, how it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.kernels.lines import Evidence, read
from tools.kernels.table import SEEN, TABLE, as_text, merged

ROWS: dict[str, Any] = {
    "aten.pool": {
        "reason": "indices",
        "conditions": [{"argument": "indices"}],
        "evidence": {"default": ["old: SIGBUS"]},
    },
    "aten.kept": {"reason": "it was looked at", "kept": "harmless"},
}
STORED: dict[str, Any] = {"release": "2.13.0", "namespaces": {"c10d": "it talks"}, "operators": ROWS}


def lines(path: Path, *found: dict[str, Any]) -> Path:
    """A file of evidence."""
    path.write_text("".join(json.dumps(line) + "\n" for line in ({"release": "2.14.0"}, *found)))
    return path


def death(operator: str, *label: str, alone: str = "SIGSEGV") -> dict[str, Any]:
    """A line about a call that died."""
    return {"op": operator, "death": list(label), "signal": "SIGSEGV", "alone": alone, "case": 1}


def test_evidence_is_read(tmp_path: Path) -> None:
    """Calls that die alone count, and results that follow the filling; those that were slow, or die no more, do not."""
    path = lines(
        tmp_path / "evidence",
        death("aten.pool.default", "indices", "values", "all 2**40"),
        death("aten.pool.default", "indices", "values", "all 0", alone=""),
        death("aten.pool.default", "indices", "shape", "[0]", alone="SIGPROF"),
        death("aten.pool.default", "self", "layout", "mkldnn"),
        {"op": "aten.pool.out", "leak": ["self", "strides", "0"]},
        {"op": "aten.pool.default", "cases": 9, "ok": 7, "base": "recorded"},
    )
    release, found = read(path)
    assert release == "2.14.0"
    assert found["aten.pool.default"] == Evidence(["indices values all 2**40: SIGSEGV"], 7)
    assert found["aten.pool.out"].deaths == ["self strides 0: leak"]


def test_what_was_decided_stays() -> None:
    """Reasons and conditions stay, evidence is replaced; what died and has no row is refused."""
    found = {
        "aten.pool.default": Evidence([f"indices values {n}: SIGSEGV" for n in range(6)]),
        "aten.new.default": Evidence(["self shape [0]: SIGSEGV"]),
        "aten.some.one": Evidence(["self shape [0]: leak"]),
        "aten.some.other": Evidence(succeeded=5),
    }
    made = merged(STORED, found, "2.14.0")
    rows = made["operators"]
    assert made["release"] == "2.14.0"
    assert made["namespaces"] == STORED["namespaces"]
    assert rows["aten.pool"]["conditions"] == ROWS["aten.pool"]["conditions"]
    assert rows["aten.pool"]["evidence"]["default"][-2:] == ["indices values 3: SIGSEGV", "and 2 more"]
    assert rows["aten.kept"] == ROWS["aten.kept"]
    assert rows["aten.new"] == {"reason": SEEN, "evidence": {"default": ["self shape [0]: SIGSEGV"]}}
    assert rows["aten.some.one"]["evidence"] == {"one": ["self shape [0]: leak"]}
    assert list(rows) == sorted(rows)


def test_the_table_is_written_a_line_for_each_operator() -> None:
    """Reading and writing the table gives the same text: the shipped file was written so."""
    text = TABLE.read_text()
    table = json.loads(text)
    assert as_text(table) == text
    assert sum(line.startswith('  "') for line in text.splitlines()) == len(table["operators"]) + len(
        table["namespaces"]
    )
