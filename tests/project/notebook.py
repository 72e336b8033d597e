"""`docs/notebook.ipynb` -> the same with the outputs that its cells have now.

PYTHONPATH=. python -m tests.project.notebook            writes them
PYTHONPATH=. python -m tests.project.notebook --check    exit code 1 and what differs, if something does
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def executed() -> nbformat.NotebookNode:
    """The notebook, run from its first cell to its last in a fresh kernel; a cell that raises ends it."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(notebook, timeout=120, record_timing=False).execute(cwd=str(NOTEBOOK.parent))
    notebook.metadata.pop("language_info", None)  # names the release of Python
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the cells' outputs as lines."""
    lines = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            lines += ["--- " + cell.source.splitlines()[0], *text.splitlines()]
    return lines


def main() -> int:
    before = outputs(nbformat.read(NOTEBOOK, as_version=4))
    notebook = executed()
    if "--check" not in sys.argv[1:]:
        NOTEBOOK.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        return 0
    after = outputs(notebook)
    print("\n".join(difflib.unified_diff(before, after, "stored", "now", lineterm="")))
    return before != after


if __name__ == "__main__":
    sys.exit(main())
