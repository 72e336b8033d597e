"""The chart of the README: seconds of pt2kit and of torch, in a light and a dark SVG.

python -m tools.chart                    draw docs/images/speed-{light,dark}.svg from docs/images/speed.json
python -m tools.chart OUTCOMES.json      first take new figures from `python -m benchmarks NAME… --json OUTCOMES.json`

The figures are those of docs/performance.md; `bench` names the benchmark that measures a row.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FIGURES = IMAGES / "speed.json"
COLORS: Mapping[str, Mapping[str, str]] = {
    "light": {"text": "#1f2328", "faint": "#59636e", "ours": "#0969da", "torch": "#c8ccd1"},
    "dark": {"text": "#f0f6fc", "faint": "#9198a1", "ours": "#4493f8", "torch": "#3d444d"},
}
WIDTH, LEFT, RIGHT, ROW = 720, 236, 128, 46
FONT = 'font-family="system-ui, -apple-system, \'Segoe UI\', sans-serif" font-size="13"'


def draw(rows: list[dict[str, Any]], theme: str) -> str:
    """Return the chart as SVG: two bars for each row, as long as the seconds that they stand for."""
    height = ROW * len(rows) + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="Seconds from file to result, pt2kit against torch">',
        *_bars(rows, COLORS[theme]),
        f'<text x="{LEFT}" y="{height - 10}" {FONT} fill="{COLORS[theme]["faint"]}">seconds; shorter is better</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _bars(rows: list[dict[str, Any]], colors: Mapping[str, str]) -> Iterator[str]:
    scale = (WIDTH - LEFT - RIGHT) / max(row["torch"] for row in rows)
    for number, row in enumerate(rows):
        top = ROW * number + 8
        yield (
            f'<text x="{LEFT - 10}" y="{top + 21}" {FONT} text-anchor="end" fill="{colors["text"]}">'
            f"{escape(row['label'])}</text>"
        )
        ratio = row["torch"] / row["ours"]
        texts = {"ours": f"pt2kit {row['ours']:.2g} s, {ratio:.0f} times faster"}
        texts["torch"] = f"torch {row['torch']:.2g} s"
        for place, (key, text) in enumerate(texts.items()):
            length, y = max(2.0, row[key] * scale), top + 17 * place
            yield f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="13" rx="2" fill="{colors[key]}"/>'
            yield f'<text x="{LEFT + length + 6:.1f}" y="{y + 11}" {FONT} fill="{colors["faint"]}">{text}</text>'


def update(rows: list[dict[str, Any]], outcomes: Path) -> None:
    """Take new figures for the rows whose benchmarks were run."""
    found = {one["name"]: one for one in json.loads(outcomes.read_text(encoding="utf-8"))["benchmarks"]}
    for row in rows:
        one = found.get(row["bench"], {})
        if one.get("unit") == "s" and one.get("ours") and one.get("reference"):
            row["ours"], row["torch"] = one["ours"], one["reference"]


def main() -> int:
    rows: list[dict[str, Any]] = json.loads(FIGURES.read_text(encoding="utf-8"))
    if sys.argv[1:]:
        update(rows, Path(sys.argv[1]))
        FIGURES.write_text("[\n " + ",\n ".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")
    for theme in COLORS:
        (IMAGES / f"speed-{theme}.svg").write_text(draw(rows, theme), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
