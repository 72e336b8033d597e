"""The inputs and outputs that were recorded next to a sample file (`.json` and `.npz`) -> whether a program gives them.

An entry of the JSON is a tree: {"t": kind, "v": children or value}; a tensor is a key of the archive of arrays.
"""

from __future__ import annotations

import collections
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import samples
from tests.bridge.read import corpus_types

BITS = {"bfloat16": "int16", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64"}
"""Types whose arrays hold something else of the same width."""


def difference(program: Any, path: Path, *, fresh: Any = None) -> str:
    """Return how a loaded program's results differ from the outputs recorded next to `path`; "" if they are equal.

    Args:
        program: an `ExportedProgram`.
        path: the sample file.
        fresh: gives the program anew, for cases that need one which was not called yet.
    """
    meta = json.loads(path.with_suffix(".json").read_text())
    if meta["nocompare"]:
        return ""
    arrays = np.load(path.with_suffix(".npz"))
    for number, case in enumerate(meta["cases"]):
        called = fresh() if number and case.get("fresh") and fresh is not None else program
        args, kwargs, wanted = (_value(case[key], arrays, meta["dtypes"]) for key in ("args", "kwargs", "out"))
        if found := _differs(called.module()(*args, **kwargs), wanted):
            return f"case {number}: {found}"
    return ""


def difference_unless_own(load: Callable[[], Any], path: Path) -> str:
    """The same as `difference`; the test is skipped where the installed torch fails on its own file of the model."""
    try:
        return difference(load(), path, fresh=load)
    except Exception:
        if not _runs_its_own(path.stem):
            pytest.skip(f"torch {torch.__version__} does not run its own file of this model either")
        raise


def _runs_its_own(stem: str) -> bool:
    """Return whether the installed torch runs its own files of a model, as they are and decomposed."""
    for path in samples.corpus():
        if path.stem != stem or _minor(path.parent.name) != _minor(torch.__version__):
            continue
        buffer = io.BytesIO()
        torch.export.save(torch.export.load(path).run_decompositions(), buffer)
        buffer.seek(0)
        try:
            difference(torch.export.load(path), path)
            difference(torch.export.load(buffer), path)
        except Exception:  # noqa: BLE001 - torch has no error family
            return False
    return True


def readable(paths: Iterable[Path]) -> list[Path]:
    """Those sample files whose release is not newer than the installed torch, which so knows all that they hold."""
    return [path for path in paths if _minor(path.parent.name) <= _minor(torch.__version__)]


def _minor(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")[:2]))


def has_outputs(path: Path) -> bool:
    """Return whether outputs are recorded next to a sample file."""
    return path.with_suffix(".npz").exists()


def _value(node: dict[str, Any], arrays: Any, dtypes: dict[str, str]) -> Any:
    kind = node["t"]
    if kind == "tensor":
        made = _tensor(arrays[node["k"]], dtypes[node["k"]])
        if node.get("stride"):
            return torch.empty_strided(made.shape, node["stride"], dtype=made.dtype).copy_(made)
        return made
    if kind in ("NoneType", "bool", "int", "float", "str"):
        return node["v"]
    children = [_value(child, arrays, dtypes) for child in node["v"]]
    match kind:
        case "NT":
            return corpus_types.NT(*children)
        case "DC":
            return corpus_types.DC(*children)
        case "dict" | "odict":
            make = dict if kind == "dict" else collections.OrderedDict
            return make(zip(node["keys"], children, strict=True))
        case "tuple":
            return tuple(children)
    return children


def _tensor(array: Any, dtype: str) -> torch.Tensor:
    if dtype in BITS:
        array = array.view(BITS[dtype])
    made = torch.from_numpy(np.array(array))
    return made if made.dtype == getattr(torch, dtype) else made.view(getattr(torch, dtype))


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, corpus_types.DC):
        value = [value.x, value.y]
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value, key=str)]
    return [leaf for child in value for leaf in _leaves(child)] if isinstance(value, (tuple, list)) else [value]


def _differs(got: Any, wanted: Any) -> str:
    ours, theirs = _leaves(got), _leaves(wanted)
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if isinstance(other, torch.Tensor):
            same = isinstance(one, torch.Tensor) and _same(one.detach(), other)
        else:
            same = one == other or (isinstance(other, float) and abs(one - other) <= 1e-5 * max(1, abs(other)))
        if not same:
            return f"result {index}: {one!r}, not {other!r}"
    return ""


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    one = one if one.layout == torch.strided else one.to_dense()
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    narrow = one.itemsize < 4 and one.is_floating_point()
    wide = torch.complex128 if one.is_complex() else torch.float64
    tolerance = 2e-2 if narrow else 1e-4
    return torch.allclose(one.to(wide), other.to(wide), rtol=tolerance, atol=tolerance / 10, equal_nan=True)
