"""The operators that the torch of this process registers -> JSON. Runs in any torch since 2.1, and needs nothing else.

    /path/to/environment/bin/python tools/registered_operators.py > 2.4.json

`release` is the release without what names the build, `schemas` are the texts of all operators as torch prints them,
`higher_order` the names of the operators that take subgraphs, `functions` the Python functions that a program may call
("_operator.add", "math.ceil"), as its targets name them. `tags` maps each tag to the
overloads that have it ("aten.add.Tensor").
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pkgutil
import sys

import torch
import torch._export.serde.serialize as serialize

NEVER_CALLED = ("_test", "debug_mode_ops", "static_runtime")
"""Namespaces that torch registers for its own tests, and for the inside of a TorchScript interpreter."""


def register_all() -> None:
    """Import what registers operators that `import torch` alone does not."""
    import torch._higher_order_ops as folder

    modules = [f"{folder.__name__}.{found.name}" for found in pkgutil.iter_modules(folder.__path__)]
    for name in (*modules, "functorch.experimental.control_flow", "torch.ao.quantization.fx._decomposed"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def schemas() -> list[str]:
    """The text of every operator, sorted."""
    found = torch._C._jit_get_all_schemas()
    return sorted({str(schema) for schema in found if schema.name.partition("::")[0] not in NEVER_CALLED})


def tags() -> dict[str, list[str]]:
    """Return the overloads that have each tag, sorted."""
    found: dict[str, set[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, operator = schema.name.partition("::")
        overload = schema.overload_name or "default"
        if namespace in NEVER_CALLED:
            continue
        # Operators of TorchScript alone ("prim::If") have schemas, but no overload. Those of Python ("prims::abs") get
        # tags that the dispatcher does not know of.
        with contextlib.suppress(AttributeError, RuntimeError):
            for tag in getattr(getattr(getattr(torch.ops, namespace), operator), overload).tags:
                found.setdefault(tag.name, set()).add(f"{namespace}.{operator}.{overload}")
    return {tag: sorted(names) for tag, names in sorted(found.items())}


def higher_order() -> list[str]:
    """The names of the higher-order operators, sorted."""
    tables = (getattr(torch._ops, name, {}) for name in ("_higher_order_ops", "_global_higher_order_ops"))
    return sorted({name for table in tables for name in table})


def functions() -> list[str]:
    """The Python functions that programs call, sorted: the tables of the serializer hold them."""
    tables = (held for name, held in vars(serialize).items() if name.startswith("_SYM") and name.endswith("_OPS"))
    found = {entry for table in tables for entry in table if callable(entry)}
    return sorted(f"{entry.__module__}.{entry.__name__}" for entry in found if not isinstance(entry, _OVERLOAD))


_OVERLOAD = torch._ops.OpOverload


def main() -> int:
    register_all()
    release = torch.__version__.partition("+")[0]
    dump = {
        "release": release,
        "schemas": schemas(),
        "higher_order": higher_order(),
        "functions": functions(),
        "tags": tags(),
    }
    json.dump(dump, sys.stdout, indent=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
