"""The operators that torch registers -> `src/pt2kit/checks/data/operators-<release>.json.z`. Needs torch.

    python -m tools.operator_schemas            write the file for the torch that is installed
    python -m tools.operator_schemas --check    exit 1 if the file of that release is not what it would be

The file is deflated JSON: `release`, `higher_order` (names of higher-order operators) and `operators`, which maps
"namespace.name.overload" to a signature that `pt2kit.checks.schemas` reads. The same torch gives the same bytes.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import Any

import torch
import torch._higher_order_ops  # registers all higher-order operators; torch alone registers some

FOLDER = Path(__file__).parents[1] / "src" / "pt2kit" / "checks" / "data"
TESTED = ("_test", "debug_mode_ops")
"""Namespaces that torch registers for its own tests."""


def release() -> str:
    """The release of the installed torch, without what names the build: "2.13.0"."""
    return torch.__version__.partition("+")[0]


def target() -> Path:
    """The file of the installed torch."""
    return FOLDER / f"operators-{release()}.json.z"


def content() -> bytes:
    """What the file holds: JSON with sorted keys, deflated."""
    operators: dict[str, str] = {}
    for schema in torch._C._jit_get_all_schemas():
        namespace, name = schema.name.split("::")
        if namespace not in TESTED:
            operators.setdefault(f"{namespace}.{name}.{schema.overload_name or 'default'}", signature(schema))
    table = {
        "release": release(),
        "higher_order": sorted(torch._ops._higher_order_ops),
        "operators": dict(sorted(operators.items())),
    }
    return zlib.compress(json.dumps(table, separators=(",", ":")).encode(), 9)


def signature(schema: Any) -> str:
    """One schema as text: "self:Tensor other:Tensor *alpha:number= -> Tensor".

    `*` stands before what is passed by name only, `!` before what is written to, `=` behind what has a default; `&`
    before a result that shares memory with an argument which is not written. `...` stands for any number of others.
    """
    arguments = [
        ("*" if argument.kwarg_only else "")
        + ("!" if argument.alias_info is not None and argument.alias_info.is_write else "")
        + f"{argument.name}:{_type(argument)}"
        + ("=" if argument.has_default_value() else "")
        for argument in schema.arguments
    ]
    returns = [
        ("&" if result.alias_info is not None and not result.alias_info.is_write else "") + _type(result)
        for result in schema.returns
    ]
    head, _, tail = str(schema).partition(" -> ")
    arguments += ["..."] if "..." in head else []
    returns += ["..."] if "..." in tail else []
    return f"{' '.join(arguments)} -> {' '.join(returns)}".strip()


def _type(value: Any) -> str:
    return str(value.real_type).replace(" ", "")


def main() -> int:
    path = target()
    if "--check" in sys.argv[1:]:
        if path.exists() and zlib.decompress(path.read_bytes()) == zlib.decompress(content()):
            return 0
        print(f"{path.name}: not what tools/operator_schemas.py writes; run it")
        return 1
    path.write_bytes(content())
    return 0


if __name__ == "__main__":
    sys.exit(main())
