"""pyproject.toml -> the lowest versions of the dependencies that it allows, as pins that pip takes.

    python tools/lowest.py [EXTRA ...]

Those of the package itself, and of the extras that are named. `make test-lowest` and `tools/release.py` install them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest_versions(*extras: str) -> list[str]:
    """The dependencies of the package and of some extras, each pinned to the lowest version that is allowed."""
    text = PYPROJECT.read_text(encoding="utf-8")
    blocks = [_list_of("dependencies", text), *(_list_of(extra, text) for extra in extras)]
    return [f"{name}=={version}" for block in blocks for name, version in re.findall(r'"([\w-]+)>=([\d.]+)', block)]


def _list_of(key: str, text: str) -> str:
    match = re.search(rf"^{re.escape(key)} = \[(.*?)\](?=[^\]\"]*$)", text, re.DOTALL | re.MULTILINE)
    if match is None:
        raise SystemExit(f"{PYPROJECT.name}: expected a list {key!r}, got none")
    return match[1]


if __name__ == "__main__":
    print(*lowest_versions(*sys.argv[1:]))
