"""A sample file with something changed in it, as bytes: how tests make programs that no exporter writes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from tests import samples

Change = Callable[[Any], None]


def sample(name: str) -> Path:
    """A file of the installed torch."""
    return samples.sample("2.13.0", name)


def edited(
    path: Path | IO[bytes],
    program: Change | None = None,
    *,
    weights: Change | None = None,
    constants: Change | None = None,
    records: Mapping[str, bytes | None] | None = None,
    model: str = "model",
) -> bytes:
    """The file after changes.

    Args:
        path: the file to start from.
        program, weights, constants: change the tree of the program's JSON, or of a payload config, in place.
        records: record below the root -> new content; None takes it away.
        model: which program.
    """
    changes = {
        f"models/{model}.json": program,
        f"data/weights/{model}_weights_config.json": weights,
        f"data/constants/{model}_constants_config.json": constants,
    }
    replaced = dict(records or {})
    out = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w") as target:
        root = source.namelist()[0].partition("/")[0]
        for name in source.namelist():
            relative = name.partition("/")[2]
            content = source.read(name)
            change = changes.get(relative)
            if change is not None:
                tree = json.loads(content)
                change(tree)
                content = json.dumps(tree).encode()
            new = replaced.pop(relative, content)
            if new is not None:
                target.writestr(name, new)
        for relative, new in replaced.items():
            if new is not None:
                target.writestr(f"{root}/{relative}", new)
    return out.getvalue()


def graph(tree: Any) -> Any:
    """The graph of a program's tree."""
    return tree["graph_module"]["graph"]


def node(tree: Any, target: str) -> Any:
    """The first node of that target."""
    return next(found for found in graph(tree)["nodes"] if found["target"] == target)
