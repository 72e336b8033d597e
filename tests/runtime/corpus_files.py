"""Recorded inputs and outputs of real files: what a session must reproduce, with torch's tolerances by element type."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import pt2kit
from pt2kit.errors import UnsupportedError
from pt2kit.runtime.table import register, unregister
from pt2kit.treespec.values import Node

NT = collections.namedtuple("NT", ["a", "b"])

TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""Element type -> relative and absolute tolerance of `assert_close`; 8-bit floats are compared exactly."""


@dataclass
class DC:
    """The dataclass that corpus models take."""

    x: Any
    y: Any


def array_of(array: Any, dtype: str) -> Any:
    """An array of the npz in its element type; bfloat16 and float8 are stored as bits."""
    if dtype == "bfloat16":
        return array.view(ml_dtypes.bfloat16).copy()
    if "float8" in dtype:
        return array.view(getattr(ml_dtypes, dtype)).copy()
    return np.array(array)


def decode(node: Any, arrays: Any, dtypes: Any) -> Any:
    """A tree of a sidecar as Python values."""
    kind = node["t"]
    if kind == "tensor":
        return _laid_out(array_of(arrays[node["k"]], dtypes[node["k"]]), node.get("stride"))
    if kind in ("NoneType", "bool", "int", "float", "str"):
        return node["v"]
    values = [decode(one, arrays, dtypes) for one in node["v"]]
    if kind in ("dict", "odict"):
        return dict(zip(node["keys"], values, strict=True))
    return {
        "NT": lambda: NT(*values),
        "DC": lambda: DC(*values),
        "list": lambda: values,
        "tuple": lambda: tuple(values),
    }[kind]()


def _laid_out(array: Any, stride: Any) -> Any:
    """The same array with other strides, in elements."""
    if not stride or not array.size:
        return array
    span = sum((size - 1) * step for size, step in zip(array.shape, stride, strict=True)) + 1
    steps = tuple(step * array.itemsize for step in stride)
    result = np.lib.stride_tricks.as_strided(np.zeros(span, array.dtype), array.shape, steps)
    result[...] = array
    return result


def leaves(tree: Any) -> list[Any]:
    """The leaves of nested containers; keys of dicts sorted."""
    if isinstance(tree, DC):
        return leaves([tree.x, tree.y])
    if isinstance(tree, Node):
        return leaves(tree.children)
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in leaves(item)]
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree, key=str) for leaf in leaves(tree[key])]
    return [tree]


def difference(got: Any, want: Any) -> str | None:
    """None if two trees are equal within the tolerances of their element types, else the first difference."""
    found, expected = leaves(got), leaves(want)
    if len(found) != len(expected):
        return f"{len(found)} leaves, expected {len(expected)}"
    for place, (x, y) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(y, np.ndarray):
            if x is None or y is None or isinstance(y, str):
                same = x is y or x == y
            else:
                same = isinstance(x, int | float) and abs(float(x) - float(y)) <= 1e-5 * max(1, abs(float(y)))
            if not same:
                return f"leaf {place}: {x!r}, expected {y!r}"
        elif not isinstance(x, np.ndarray) or x.dtype != y.dtype or x.shape != y.shape:
            return (
                f"leaf {place}: {getattr(x, 'dtype', type(x))} {getattr(x, 'shape', ())}, expected {y.dtype} {y.shape}"
            )
        else:
            relative, absolute = TOLERANCES.get(y.dtype.name, (0, 0))
            wide = np.complex128 if y.dtype.kind == "c" else np.float64
            exact = y.dtype.kind in "iub"
            a, b = (x, y) if exact else (x.astype(wide), y.astype(wide))
            if not (np.array_equal(a, b) if exact else np.allclose(a, b, relative, absolute, equal_nan=True)):
                return f"leaf {place}: values differ by up to {np.abs(x.astype(wide) - y.astype(wide)).max():.3g}"
    return None


def outcome(path: Path, meta: Any, arrays: Any, backend: str = "numpy") -> tuple[str, str]:
    """Result of one file: "equal", "random", "refused" or "different", and why.

    Args:
        path: the file.
        meta: its sidecar: calls as trees, element types of their arrays.
        arrays: name in the sidecar -> array.
        backend: of the session.
    """
    try:
        session = pt2kit.Session(path, backend=backend)
        for number, case in enumerate(meta["cases"]):
            if number and case.get("fresh"):
                session = pt2kit.Session(path, backend=backend)
            args, kwargs = (decode(case[key], arrays, meta["dtypes"]) for key in ("args", "kwargs"))
            got = session(*args, **kwargs)
            if meta.get("nocompare"):
                continue
            why = difference(got, decode(case["out"], arrays, meta["dtypes"]))
            if not why and case.get("args_after"):
                why = difference((args, kwargs), decode(case["args_after"], arrays, meta["dtypes"]))
                why = why and f"inputs after the call: {why}"
            if why:
                return "different", f"case {number}: {why}"
    except UnsupportedError as error:
        return "refused", str(error)
    return ("random" if meta.get("nocompare") else "equal"), ""


def is_reproducible(meta: Any) -> bool:
    """Return whether the release that wrote a file gives the recorded outputs itself, as far as it runs.

    Releases up to 2.7 export one model (`sym_ops`) with a size that is too special; it differs in them, too.
    """
    return "sym_ops" not in meta.get("name", "") or meta.get("same_version_reproduces") is not False


def register_operators() -> None:
    """The custom operators that corpus models call."""

    @register("corpus::addmul")
    def addmul(x: Any, y: Any, alpha: float = 1.0) -> Any:
        return x + y * np.asarray(alpha, x.dtype)

    @register("corpus::inc_", mutates=["x"])
    def inc_(x: Any, by: int) -> None:
        x += by

    @register("corpus::nested_ints")
    @register("corpus::nested_floats")
    def nested(x: Any, ll: Any) -> Any:
        return x + np.asarray(sum(map(sum, ll)), x.dtype)

    @register("corpus2::scaleshift")
    def scaleshift(x: Any, scale: float, shift: int = 2) -> Any:
        return x * np.asarray(scale, x.dtype) + shift

    @register("corpus::kitchen2")
    def kitchen2(
        x: Any,
        y: Any,
        ts: Any,
        ots: Any,
        i: int,
        il: Any,
        f: float,
        fl: Any,
        b: bool,
        bl: Any,
        s: str,
        sc: Any,
        oi: int | None = None,
        *,
        os: str | None = None,
    ) -> Any:
        result = x * i + sum(il) + f + sum(fl) + bool(b) + sum(map(bool, bl)) + len(s) + sc
        result = result if y is None else result + y
        for one in ts:
            result = result + one
        for one in ots:
            result = result if one is None else result * one
        return result


def unregister_operators() -> None:
    """Forget them, as other tests run files with operators that nobody registered."""
    for name in ("addmul", "inc_", "nested_ints", "nested_floats", "kitchen2"):
        unregister(f"corpus::{name}")
    unregister("corpus2::scaleshift")
