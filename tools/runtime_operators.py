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
    modules = {module.__name__.rpartition(".")[2]: module for module in load_families()}
    listed = {
        name: family
        for family, module in modules.items()
        for row in getattr(module, "KERNELS", ())
        for name in overloads_of(row)
    }
    for name in names:
        kernel = find_kernel(name)
        assert kernel is not None
        operator, _, overload = name.rpartition(".")
        function = inspect.unwrap(kernel)
        home = getattr(function, "func", function).__module__  # of one that has some of its arguments
        family = listed.get(name, home.rpartition(".")[2])
        # Element-wise functions of NumPy get the names of their parameters where they are converted.
        families[family if family in modules else "elementwise"][operator].append(overload)
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
