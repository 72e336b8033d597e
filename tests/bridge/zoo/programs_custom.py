"""Programs with operators and objects of the user's own: every argument kind, mutation."""

from __future__ import annotations

import enum
import functools

import torch
from tests.bridge.zoo.program import Recipe
from torch import nn
from torch.export import Dim

LIBRARY = torch.library.Library("zoo", "DEF")


def _define(schema, function):
    LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    LIBRARY.impl(schema.split("(")[0], function, "CompositeExplicitAutograd")


def _everything(x, y, ts, ots, i, il, si, sil, f, fl, b, bl, s, sl, dt, mf, ly, dev, sc, oi=None, *, os=None, kt=None):
    total = x * i + sum(il) + si + sum(sil) + f + sum(fl) + bool(b) + sum(map(bool, bl)) + len(s) + len(sl) + sc
    for t in [*ts, *[t for t in (*ots, y, kt) if t is not None]]:
        total = total + t
    return total + (oi or 0) + len(os or ""), [x + 1, x.to(torch.float64) + 2]


_define(
    "everything(Tensor x, Tensor? y, Tensor[] ts, Tensor?[] ots, int i, int[] il, SymInt si, SymInt[] sil, float f, "
    "float[] fl, bool b, bool[] bl, str s, str[] sl, ScalarType dt, MemoryFormat mf, Layout ly, Device dev, Scalar sc, "
    "int? oi=None, *, str? os=None, Tensor? kt=None) -> (Tensor, Tensor[])",
    _everything,
)
_define("add_(Tensor(a!) x, int by) -> ()", lambda x, by: (x.add_(by), None)[1])
_define(
    "add_two_(Tensor(a!) x, Tensor(b!)? y, Tensor z) -> Tensor",
    lambda x, y, z: (x.add_(z), None if y is None else y.mul_(2), z + 1)[2],
)
_define("scale_(Tensor(a!)[] xs, float by) -> ()", lambda xs, by: ([x.mul_(by) for x in xs], None)[1])
_define("pieces(Tensor x, int n) -> Tensor[]", lambda x, n: [x * (i + 1) for i in range(n)])
_define(
    "three(Tensor x, Tensor? y=None) -> (Tensor, Tensor, Tensor)",
    lambda x, y=None: (x + 1, x * 2, (x if y is None else y) - 3),
)
_define("nested_ints(Tensor x, int[][] ll) -> Tensor", lambda x, ll: x + sum(map(sum, ll)))
_define("nested_floats(Tensor x, float[][] ll) -> Tensor", lambda x, ll: x + sum(map(sum, ll)))
_define("nested_tensors(Tensor x, Tensor[][] ll) -> Tensor", lambda x, ll: x + sum(map(sum, ll)))
_define("keyword(Tensor x, Tensor self_, *, int lambda_=1) -> Tensor", lambda x, self_, lambda_=1: x + self_ * lambda_)
_define("measure(Tensor x, int[] extra) -> SymInt", lambda x, extra: x.shape[0] * 3 + sum(extra))
_define("maybe(Tensor x, bool give) -> (Tensor, Tensor?)", lambda x, give: (x + 1, x + 2 if give else None))


@torch.library.custom_op("zoo::decorated", mutates_args=())
def decorated(x: torch.Tensor, scale: float, shift: int = 2) -> torch.Tensor:
    return x * scale + shift


@decorated.register_fake
def _(x, scale, shift=2):
    return torch.empty_like(x)


class Setting(enum.Enum):
    LOW = 1
    HIGH = 2


class Calls(nn.Module):
    """Calls a function on its inputs."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def everything(x, y):
    n = x.shape[0]
    return torch.ops.zoo.everything(
        x,
        None,
        [x, y],
        [y, None, x],
        3,
        [1, 2],
        n,
        [n, 4],
        1.5,
        [0.5, float("inf")],
        True,
        [True, False],
        "a;b,c",
        ["", "x"],
        torch.float16,
        torch.channels_last,
        torch.strided,
        torch.device("cpu", 0),
        2.5,
        7,
        os="é",
        kt=y,
    )


def emptied(x):
    return torch.ops.zoo.everything(
        x,
        x,
        [],
        [],
        0,
        [],
        1,
        [],
        0.0,
        [],
        False,
        [],
        "",
        [],
        torch.int8,
        torch.contiguous_format,
        torch.strided,
        torch.device("cpu"),
        1j.imag,
        None,
    )[0]


def mutating(x):
    y = x.clone()
    torch.ops.zoo.add_(y, 2)
    z = x + 1
    w = torch.ops.zoo.add_two_(y, z[0], x)
    torch.ops.zoo.add_two_(z, None, x)
    return y + w, z


def mutating_list(x):
    y, z = x.clone(), x + 1
    torch.ops.zoo.scale_([y, z], 2.0)
    return y * z


def recipes() -> list[Recipe]:
    """Every model here and how it is exported."""
    square = lambda: (torch.randn(4, 3),)  # noqa: E731
    pair = lambda: (torch.randn(4, 3), torch.randn(4, 3))  # noqa: E731

    def calls(name, function, args=square, **more):
        return Recipe(name, functools.partial(Calls, function), args, **more)

    ops = torch.ops.zoo
    return [
        calls("custom_op", lambda x: ops.three(x)[0] + ops.three(x, x)[2], variants=("plain", "strict", "decomp")),
        calls("custom_op_kinds", everything, pair, dynamic_shapes=(({0: Dim.AUTO}, {0: Dim.AUTO}),)),
        calls("custom_op_empty_lists", emptied),
        calls("custom_op_pieces", lambda x: ops.pieces(x, 3)[1] + ops.pieces(x, 2)[0]),
        calls("custom_op_pieces_unused", lambda x: (ops.pieces(x, 2), x + 1)[1]),
        calls("custom_op_decorator", lambda x: decorated(x, 0.5) + decorated(x, 2.0, 3), variants=("plain", "decomp")),
        calls("custom_op_mutating", mutating, variants=("plain", "decomp")),
        calls("custom_op_mutating_list", mutating_list, variants=("plain", "decomp")),
        calls(
            "custom_op_nested_ints",
            lambda x: ops.nested_ints(x, [[1, 2], [3]]),
            flags={"torch_saves": "lists of int lists, as fx holds them, are no tuples"},
        ),
        calls(
            "custom_op_nested_int_tuples",
            lambda x: ops.nested_ints(x, [(1, 2), (3,)]),
            flags={"torch_saves": "lists of int lists, as fx holds them, are no tuples"},
        ),
        calls("custom_op_nested_floats", lambda x: ops.nested_floats(x, [[1.5, 2.0], [-float("inf"), 3.0]])),
        calls("custom_op_nested_tensors", lambda x, y: ops.nested_tensors(x, [[x, y], [y]]), pair),
        calls("custom_op_keyword", lambda x, y: ops.keyword(x, self_=y, lambda_=3), pair),
        calls("custom_op_maybe", lambda x: (ops.maybe(x, True)[1], ops.maybe(x, False)[0])),
        calls(
            "custom_op_symbol",
            lambda x: x.new_zeros(ops.measure(x, [1])) + ops.measure(x, []),
            square,
            dynamic_shapes=(({0: Dim.AUTO},),),
        ),
    ]
