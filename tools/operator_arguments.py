"""The operators that torch registers -> `src/pt2kit/versions/operator_arguments.txt`. Needs torch.

    python -m tools.operator_arguments          write the file
    python -m tools.operator_arguments --check  exit 1 if it is not what it would be

A line is the names of positional arguments, a tab, and the operators that have them; `[]` behind an operator says that
its one result is a list of tensors.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from tools.generated import CHECK, write_or_check

TARGET = Path(__file__).parents[1] / "src" / "pt2kit" / "versions" / "operator_arguments.txt"
NAMESPACES = ("aten", "prims")


def text() -> str:
    """The file's content, sorted."""
    operators: dict[str, list[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        namespace, name = schema.name.split("::")
        overload = schema.overload_name or "default"
        positional = [argument.name for argument in schema.arguments if not argument.kwarg_only]
        if namespace in NAMESPACES and not any(argument.is_out for argument in schema.arguments):
            mark = "[]" if [str(result.type) for result in schema.returns] == ["List[Tensor]"] else ""
            operators.setdefault(" ".join(positional), []).append(f"{namespace}.{name}.{overload}{mark}")
    return "".join(f"{names}\t{' '.join(sorted(set(found)))}\n" for names, found in sorted(operators.items()))


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, text(), "tools.operator_arguments", check=CHECK in sys.argv[1:]))
