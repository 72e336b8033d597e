"""Files, in the torch of this process -> which load, run, and give recorded outputs. Runs in any torch since 2.1.

    /path/to/environment/bin/python tools/run_in_release.py FILES.json > RESULTS.jsonl

FILES is a JSON list of pairs: a `.pt2` file, and the file whose neighbours `.json` and `.npz` hold inputs and outputs.
The first line of the results is {"torch": its version}. Any other is {"file", "outcome", "why"}; the outcome is
"equal", "random" (loaded; outputs that nobody can compare), "differs", "fails" (when run) or "refused" (when loaded). A
line is written as soon as it is known, so that what is missing after a crash shows which file it was.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import importlib
import json
import logging
import os
import pkgutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch._higher_order_ops
import torch.export
from torch.utils import _pytree as pytree

NT = collections.namedtuple("NT", ["a", "b"])


@dataclasses.dataclass
class DC:
    """The dataclass that `kwargs_and_nested_inputs` takes."""

    x: torch.Tensor
    y: torch.Tensor


def register() -> None:
    """Make known what the sample files use: a named tuple, a dataclass, operators; as far as this torch can."""
    sys.modules.setdefault("make", sys.modules[__name__])  # sample inputs name the classes by this module
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    for module in pkgutil.iter_modules(torch._higher_order_ops.__path__):
        with contextlib.suppress(Exception):  # up to 2.4, an operator is found once its module was imported
            importlib.import_module(f"torch._higher_order_ops.{module.name}")
    if hasattr(pytree, "_register_namedtuple"):
        pytree._register_namedtuple(NT, serialized_type_name="corpus.NT")
    _register_dataclass()
    _define("corpus", _SCHEMAS)
    _define("corpus2", {"scaleshift(Tensor x, float scale, int shift=2) -> Tensor": lambda x, a, b=2: x * a + b})


def _register_dataclass() -> None:
    from torch._export import utils

    DC.__module__ = "corpus"  # up to 2.2, the name under which a dataclass is registered follows from its module
    try:
        utils.register_dataclass_as_pytree_node(DC, serialized_type_name="corpus.DC")
    except TypeError:  # torch 2.1
        utils.register_dataclass_as_pytree_node(DC)
    known = getattr(utils, "SERIALIZED_DATACLASS_TO_PYTHON_DATACLASS", {})
    known["make.DC"] = DC  # files of 2.2 have the module that made them


_LIBRARIES: list[Any] = []


def _define(namespace: str, schemas: dict[str, Any]) -> None:
    library = torch.library.Library(namespace, "DEF")
    _LIBRARIES.append(library)
    for schema, function in schemas.items():
        if hasattr(torch.Tag, "pt2_compliant_tag"):  # since torch 2.2
            library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        else:
            library.define(schema)
        library.impl(schema.split("(")[0], function, "CompositeExplicitAutograd")


def _numbers(x: Any, i: Any, il: Any, f: Any, fl: Any, b: Any, bl: Any, s: Any, sc: Any) -> Any:
    return x * i + sum(il) + f + sum(fl) + bool(b) + sum(map(bool, bl)) + len(s) + sc


def _tensors(result: Any, y: Any, ts: Any, ots: Any) -> Any:
    for tensor in (y, *ts):
        result = result if tensor is None else result + tensor
    for tensor in ots:
        result = result if tensor is None else result * tensor
    return result


def _kitchen(
    x: Any,
    y: Any,
    ts: Any,
    ots: Any,
    i: Any,
    il: Any,
    si: Any,
    sil: Any,
    f: Any,
    fl: Any,
    *rest: Any,
    os: Any = None,
    kt: Any = None,
    sl: Any = None,
) -> Any:
    b, bl, s, _, _, _, _, sc = rest[:8]
    oi, of = (*rest[8:], None, None)[:2]
    result = _tensors(_numbers(x, i, il, f, fl, b, bl, s, sc) + si + sum(sil), y, ts, ots)
    result = result + (oi or 0) + (of or 0) + len(os or "") - (0 if kt is None else kt) + len(sl or ())
    return result.clone(), [x + 1, x.to(torch.float64) + 2]


def _kitchen2(x: Any, y: Any, ts: Any, ots: Any, *rest: Any, os: Any = None) -> Any:
    return _tensors(_numbers(x, *rest[:8]), y, ts, ots).clone()


_SCHEMAS = {
    "addmul(Tensor x, Tensor y, float alpha=1.0) -> Tensor": lambda x, y, alpha=1.0: x + y * alpha,
    "inc_(Tensor(a!) x, int by) -> ()": lambda x, by: (x.add_(by), None)[1],
    "pieces(Tensor x, int n) -> Tensor[]": lambda x, n: [x * (i + 1) for i in range(n)],
    "multi(Tensor x, Tensor? y=None) -> (Tensor, Tensor, Tensor)": lambda x, y=None: (
        x + 1,
        x * 2,
        (x if y is None else y) - 3,
    ),
    "nested_ints(Tensor x, int[][] ll) -> Tensor": lambda x, ll: x + sum(map(sum, ll)),
    "nested_floats(Tensor x, float[][] ll) -> Tensor": lambda x, ll: x + sum(map(sum, ll)),
    "nested_tensors(Tensor x, Tensor[][] ll) -> Tensor": lambda x, ll: x + sum(map(sum, ll)),
    "kitchen(Tensor x, Tensor? y, Tensor[] ts, Tensor?[] ots, int i, int[] il, SymInt si, SymInt[] sil, float f, "
    "float[] fl, bool b, bool[] bl, str s, ScalarType dt, MemoryFormat mf, Layout ly, Device dev, Scalar sc, "
    "int? oi=None, float? of=None, *, str? os=None, Tensor? kt=None, str[]? sl=None) -> (Tensor, Tensor[])": _kitchen,
    "kitchen2(Tensor x, Tensor? y, Tensor[] ts, Tensor?[] ots, int i, int[] il, float f, float[] fl, bool b, "
    "bool[] bl, str s, Scalar sc, int? oi=None, *, str? os=None) -> Tensor": _kitchen2,
}


def look_at(file: str, recorded: Path) -> tuple[str, str]:
    """Load and run one file.

    Returns:
        The outcome, and why it is not "equal".
    """
    meta = json.loads(recorded.with_suffix(".json").read_text(encoding="utf-8"))
    try:
        program = torch.export.load(file)
    except Exception as error:  # noqa: BLE001 - whatever it is belongs into the table
        return "refused", _words(error)
    if meta.get("nocompare"):
        return "random", ""
    arrays = np.load(recorded.with_suffix(".npz"))
    try:
        for number, case in enumerate(meta["cases"]):
            called = torch.export.load(file) if number and case.get("fresh") else program
            args, kwargs, wanted = (value(case[key], arrays, meta["dtypes"]) for key in ("args", "kwargs", "out"))
            why = difference(_callable(called)(*args, **kwargs), wanted)
            if not why and case.get("args_after"):
                why = difference((args, kwargs), value(case["args_after"], arrays, meta["dtypes"]))
                why = why and f"inputs after the call: {why}"
            if why:
                return "differs", f"case {number}: {why}"
    except Exception as error:  # noqa: BLE001 - likewise
        return "fails", f"case {number}: {_words(error)}"
    return "equal", ""


def _callable(program: Any) -> Any:
    if torch.__version__.startswith(("2.1.", "2.2.")):  # whose module() takes no keywords, nor all changed buffers
        return program
    return program.module()


def _words(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    trail = error.__traceback__
    while trail is not None and trail.tb_next is not None:
        trail = trail.tb_next
    place = f"{Path(trail.tb_frame.f_code.co_filename).name}:{trail.tb_lineno}" if trail is not None else ""
    return f"{type(error).__name__} at {place}: {' '.join(str(error).split())[:300]}"


def value(node: dict[str, Any], arrays: Any, dtypes: dict[str, str]) -> Any:
    """A tree of arguments or outputs, as it was recorded."""
    kind = node["t"]
    if kind == "tensor":
        made = tensor(arrays[node["k"]], dtypes[node["k"]])
        if not node.get("stride"):
            return made
        return torch.empty_strided(made.shape, node["stride"], dtype=made.dtype).copy_(made)
    if kind in ("NoneType", "bool", "int", "float", "str"):
        return node["v"]
    children = [value(child, arrays, dtypes) for child in node["v"]]
    if kind in ("NT", "DC"):
        return {"NT": NT, "DC": DC}[kind](*children)
    if kind in ("dict", "odict"):
        return {"dict": dict, "odict": collections.OrderedDict}[kind](zip(node["keys"], children, strict=True))
    return tuple(children) if kind == "tuple" else children


def tensor(array: Any, dtype: str) -> torch.Tensor:
    """A tensor of an array; what numpy has no type for is there as bits."""
    wanted = getattr(torch, dtype)
    if dtype == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(wanted)
    if "float8" in dtype:
        return torch.from_numpy(array.copy()).view(wanted)
    return torch.from_numpy(np.array(array)).to(wanted)


def difference(got: Any, wanted: Any) -> str:
    """Return how two trees of values differ; "" if by rounding at most."""
    ours, theirs = leaves(got), leaves(wanted)
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if not _same(one, other):
            return f"result {index}: {' '.join(repr(one).split())[:100]}, not {' '.join(repr(other).split())[:100]}"
    return ""


def leaves(tree: Any) -> list[Any]:
    """The values of a tree of arguments or outputs."""
    if isinstance(tree, DC):
        return leaves([tree.x, tree.y])
    if isinstance(tree, dict):
        return leaves([tree[key] for key in sorted(tree, key=str)])
    return [leaf for item in tree for leaf in leaves(item)] if isinstance(tree, (tuple, list)) else [tree]


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        if isinstance(one, torch.Tensor) != isinstance(other, torch.Tensor):
            return False
        if one is None or other is None or isinstance(one, str):
            return bool(one == other)
        return abs(float(one) - float(other)) <= 1e-5 * max(1, abs(float(other)))
    one, other = (held.detach() if held.layout == torch.strided else held.detach().to_dense() for held in (one, other))
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    tolerance = 2e-2 if one.is_floating_point() and one.element_size() < 4 else 1e-4
    wide = torch.complex128 if one.is_complex() else torch.float64
    return torch.allclose(one.to(wide), other.to(wide), rtol=tolerance, atol=tolerance / 10, equal_nan=True)


def main() -> int:
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print belongs to no table
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    register()
    print(json.dumps({"torch": torch.__version__}), file=results, flush=True)
    for file, recorded in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        outcome, why = look_at(file, Path(recorded))
        print(json.dumps({"file": file, "outcome": outcome, "why": why}), file=results, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
