"""Make `docs/supported-operators.md`: the operators that `pt2 run` has kernels for, from the table of kernels."""

from __future__ import annotations

import inspect
from collections import defaultdict
from pathlib import Path
from typing import Final

from pt2kit.runtime.table import find_kernel, load_families, overloads_of, supported

TARGET: Final = Path(__file__).parents[1] / "docs" / "supported-operators.md"


def text() -> str:
    """Return the page."""
    families: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    names = supported()
    listed = {
        name: module.__name__.rpartition(".")[2]
        for module in load_families()
        for row in getattr(module, "KERNELS", ())
        for name in overloads_of(row)
    }
    for name in names:
        kernel = find_kernel(name)
        assert kernel is not None
        operator, _, overload = name.rpartition(".")
        function = inspect.unwrap(kernel)
        module = getattr(function, "func", function).__module__  # of one that has some of its arguments
        family = listed.get(name, module.rpartition(".")[2])
        # Element-wise functions of NumPy get the names of their parameters where they are converted.
        families["elementwise" if family in ("arrays", "_operator") else family][operator].append(overload)
    lines = [
        "# Supported operators",
        "",
        f"`pt2 run` and `pt2kit.Session` have kernels for {len(names):,} overloads. In-place variants (`aten.add_`),",
        "copies of views (`aten.permute_copy`) and other names of the same operator come with them. This page is",
        "generated from the kernels; [Run without PyTorch](run-without-pytorch.md) shows how to add a kernel.",
    ]
    for family in sorted(families):
        lines += ["", f"## {family.replace('_', ' ').capitalize()}", ""]
        shown = []
        for operator, overloads in sorted(families[family].items()):
            several = "" if overloads == ["default"] else f" ({', '.join(overloads)})"
            shown.append(f"`{operator}`{several}")
        lines.append(", ".join(shown))
    return "\n".join(lines) + "\n"
