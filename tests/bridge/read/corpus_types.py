"""The named tuple, the dataclass and the custom operators that programs of the sample files use. Import to register."""

from __future__ import annotations

import collections
import importlib
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

NT = collections.namedtuple("NT", ["a", "b"])


@dataclass
class DC:
    """The dataclass that `kwargs_and_nested_inputs` takes."""

    x: torch.Tensor
    y: torch.Tensor


# torch unpickles sample inputs, which name the classes by the module they were made in.
sys.modules.setdefault("make", sys.modules[__name__])
pytree._register_namedtuple(NT, serialized_type_name="corpus.NT")
torch.export.register_dataclass(DC, serialized_type_name="corpus.DC")
importlib.import_module("torch.ao.quantization.fx._decomposed")  # registers quantized_decomposed::*

LIBRARY = torch.library.Library("corpus", "DEF")


def _kitchen(x: Any, y: Any, ts: Any, ots: Any, *rest: Any, **names: Any) -> Any:
    """All numbers and tensors, each in its own way, so that none can be lost or swapped unseen."""
    del names
    i, il, f, fl, b, bl, s, sc = rest[:8]
    result = x * i + sum(il) + f + sum(fl) + bool(b) + sum(map(bool, bl)) + len(s) + sc
    for tensor in (y, *ts):
        result = result if tensor is None else result + tensor
    for tensor in ots:
        result = result if tensor is None else result * tensor
    return result.clone()


SCHEMAS = {
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
    "kitchen2(Tensor x, Tensor? y, Tensor[] ts, Tensor?[] ots, int i, int[] il, float f, float[] fl, bool b, "
    "bool[] bl, str s, Scalar sc, int? oi=None, *, str? os=None) -> Tensor": _kitchen,
}

for _schema, _function in SCHEMAS.items():
    LIBRARY.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))
    LIBRARY.impl(_schema.split("(")[0], _function, "CompositeExplicitAutograd")


@torch.library.custom_op("corpus2::scaleshift", mutates_args=())
def scaleshift(x: torch.Tensor, scale: float, shift: int = 2) -> torch.Tensor:
    """x * scale + shift."""
    return x * scale + shift


@scaleshift.register_fake
def _(x: torch.Tensor, scale: float, shift: int = 2) -> torch.Tensor:
    return torch.empty_like(x)
