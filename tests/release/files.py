"""Files to convert that no release wrote, and what tests compare of a package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.packages import bytes_of, rewritten

import pt2kit
from pt2kit.package import record_names as names

WEIGHTS = names.weights_config("model")
CONSTANTS = names.constants_config("model")


def converted(source: Any, target: str, **more: Any) -> bytes:
    """Convert, and return the bytes."""

    return bytes_of(pt2kit.convert, source, target=target, **more)


def text(package: pt2kit.Package, model: str = "model") -> bytes:
    """The JSON of a program, as the file has it."""
    return bytes(package.archive.read(package.layout.program_record(model)))


def records(package: pt2kit.Package) -> list[str]:
    """Names of the records below the root folder, sorted."""
    return sorted(map(package.relative, package.records))


def tensors(package: pt2kit.Package, model: str = "model") -> dict[tuple[str, str], Any]:
    """Describe tensors of a package: type, shape, place in the storage, kind, bytes, shared storages."""
    found: dict[tuple[str, str], Any] = {}
    for kind in ("weights", "constants"):
        views = getattr(package, kind)(model)
        storages: dict[Any, int] = {}
        for name, view in views.items():
            if not isinstance(view, pt2kit.TensorView):
                found[kind, name] = view.describe()
                continue
            shared = storages.setdefault(view.storage, len(storages)) if view.storage.nbytes else -1
            described = (view.describe(), view.strides, view.storage_offset, view.is_param, view.requires_grad)
            found[kind, name] = (*described, view.device, shared, view.tobytes())
    return found


def entry(size: int, record: str, **more: Any) -> dict[str, Any]:
    """The entry of a config for a row of float32."""
    meta = {
        "dtype": 7,
        "sizes": [{"as_int": size}],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": 1}],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }
    return {"path_name": record, "is_param": False, "use_pickle": False, "tensor_meta": meta, **more}


def with_entries(path: Path, config: str, entries: dict[str, Any], contents: dict[str, bytes]) -> bytes:
    """A file with more payloads in one of its configs."""
    with pt2kit.open(path) as package:
        tree = json.loads(bytes(package.archive.read(package.layout.record(config))))
    tree["config"] |= entries
    return rewritten(path, {config: json.dumps(tree).encode(), **contents})
