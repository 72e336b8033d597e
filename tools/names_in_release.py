"""Names of torch -> which of them the torch of this process lacks. Runs in any torch since 2.9, and needs nothing else.

    /path/to/environment/bin/python tools/names_in_release.py NAMES.json

NAMES is a JSON list of paths below `torch` ("fx.Graph._insert"); printed is a JSON list of those that are not there.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.export
from torch import fx


class _Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def _environment() -> Any:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    return ShapeEnv()


# Attributes that only instances have are looked for on one.
INSTANCES: dict[str, Callable[[], Any]] = {
    "torch.fx.Graph": fx.Graph,
    "torch.fx.experimental.symbolic_shapes.ShapeEnv": _environment,
    "torch.export.ExportedProgram": lambda: torch.export.export(_Plain(), (torch.ones(1),)),
    "torch.UntypedStorage": lambda: torch.UntypedStorage(0),
    "torch._ops.OpOverload": lambda: torch.ops.aten.add.Tensor,
}


def find(path: str) -> Any:
    """Return the object at a path of `torch`.

    Raises:
        ImportError: there is no such module or attribute.
    """
    found: Any = torch
    done = "torch"
    for part in path.split("."):
        owner = INSTANCES[done]() if done in INSTANCES else found
        done = f"{done}.{part}"
        found = getattr(owner, part) if hasattr(owner, part) else importlib.import_module(done)
    return found


def is_there(path: str) -> bool:
    """Return whether a path below `torch` exists."""
    try:
        find(path)
    except ImportError:
        return False
    return True


def main() -> int:
    paths = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps([path for path in paths if not is_there(path)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
