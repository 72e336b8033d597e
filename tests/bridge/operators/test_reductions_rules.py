"""Result rules of reductions compared with torch's fake tensors."""

from __future__ import annotations

from typing import Any

import torch
from tests.bridge.operators.fake_calls import COMPLEX, FLOATS, Draw, agreement


def dim(draw: Draw) -> int:
    return draw.dim()


def optional_dim(draw: Draw) -> int | None:
    return draw.choice(None, draw.dim())


def dims(draw: Draw) -> Any:
    return draw.dims() if draw.rng.random() < 0.9 else [0, 0]


def optional_dims(draw: Draw) -> Any:
    return draw.choice(None, draw.dims())


def real_floats(draw: Draw) -> Any:
    return draw.tensor(dtypes=(*FLOATS, torch.int64))


def floats(draw: Draw) -> Any:
    return draw.tensor(dtypes=(*FLOATS, *COMPLEX, torch.int64))


FLOAT_TYPE = lambda draw: draw.choice(None, torch.float32, torch.float64)  # noqa: E731
DIM = {"dim": dim}
OPERATORS: dict[str, dict[str, Any]] = {
    **{f"aten.{name}.default": {} for name in ("sum", "prod", "mean", "any", "all", "max", "min", "var", "std")},
    **{f"aten.{name}.default": {} for name in ("var_mean", "std_mean", "median", "nanmedian", "count_nonzero")},
    "aten.sum.dim_IntList": {"dim": optional_dims},
    "aten.nansum.default": {"dim": optional_dims},
    "aten.prod.dim_int": DIM,
    "aten.mean.dim": {"dim": optional_dims, "self": floats, "dtype": FLOAT_TYPE},
    "aten.nanmean.default": {"dim": optional_dims, "self": floats, "dtype": FLOAT_TYPE},
    **{f"aten.{name}.dim": DIM for name in ("any", "all", "max", "min", "median", "nanmedian")},
    **{f"aten.{name}.dims": {"dim": dims} for name in ("any", "all")},
    **{f"aten.{name}.default": {"dim": dims} for name in ("amax", "amin", "logsumexp", "special_logsumexp")},
    **{f"aten.{name}.default": {"dim": optional_dim} for name in ("argmax", "argmin", "aminmax")},
    **{
        f"aten.{name}.{kind}": {
            "dim": optional_dims,
            "self": floats,
            "correction": lambda draw: draw.choice(None, 0, 1),
        }
        for name in ("var", "std", "var_mean", "std_mean")
        for kind in ("dim", "correction")
    },
    "aten.mode.default": DIM,
    "aten.kthvalue.default": {**DIM, "k": lambda draw: draw.rng.randint(0, 4)},
    "aten.norm.Scalar": {"self": floats},
    "aten.norm.ScalarOpt_dim": {"self": floats, "dim": dims},
    "aten.norm.ScalarOpt_dim_dtype": {"self": floats, "dim": dims, "dtype": lambda draw: torch.float64},
    "aten.norm.ScalarOpt_dtype": {"self": floats, "dtype": lambda draw: torch.float64},
    "aten.linalg_vector_norm.default": {"self": floats, "dim": optional_dims, "dtype": lambda draw: None},
    "aten.linalg_norm.default": {
        "self": floats,
        "ord": lambda draw: draw.choice(None, 1),
        "dim": lambda draw: draw.choice(None, [0], [0, 1]),
        "dtype": lambda draw: None,
    },
    "aten.linalg_matrix_norm.str_ord": {
        "self": floats,
        "ord": lambda draw: "fro",
        "dim": lambda draw: draw.choice([-2, -1], [0, 1], [0]),
        "dtype": lambda draw: None,
    },
    "aten.frobenius_norm.dim": {"self": floats, "dim": lambda draw: draw.choice([0], [0, 1], [-1])},
    "aten.nuclear_norm.default": {"self": floats},
    "aten.count_nonzero.dim_IntList": {"dim": dims},
    **{
        f"prims.{name}.default": {"dims": lambda draw: draw.dims("inp"), "output_dtype": lambda draw: None}
        for name in ("sum", "prod", "amax", "amin")
    },
    "prims.var.default": {
        "inp": lambda draw: draw.tensor(dtypes=(*FLOATS, torch.complex64)),
        "dims": lambda draw: draw.dims("inp"),
        "output_dtype": lambda draw: None,
    },
    "aten.quantile.scalar": {
        "self": real_floats,
        "q": lambda draw: 0.5,
        "dim": optional_dim,
        "interpolation": lambda draw: "linear",
    },
    "aten.quantile.default": {
        "self": real_floats,
        "q": lambda draw: draw.tensor(*draw.choice((2,), (3,)), dtypes=(draw.given["self"].dtype,)),
        "dim": optional_dim,
        "interpolation": lambda draw: "linear",
    },
    "aten.dist.default": {"other": lambda draw: draw.like("self")},
    "aten.pairwise_distance.default": {"x1": real_floats, "x2": lambda draw: draw.like("x1")},
    "aten.cdist.default": {
        "x1": lambda draw: draw.tensor(*draw.choice((2, 3, 4), (3, 4)), dtypes=(*FLOATS, torch.int64)),
        "x2": lambda draw: draw.tensor(*draw.choice((2, 5, 4), (1, 4), (3, 5)), dtypes=(draw.given["x1"].dtype,)),
        "compute_mode": lambda draw: None,
    },
    "aten.pdist.default": {"self": lambda draw: draw.tensor(5, 3, dtypes=FLOATS)},
    "aten.histc.default": {"self": real_floats, "bins": lambda draw: draw.rng.randint(0, 5)},
    **{f"aten.{name}.dx": DIM for name in ("trapezoid", "trapz", "cumulative_trapezoid")},
    **{
        f"aten.{name}.x": {
            "y": lambda draw: draw.tensor(ranks=(1, 2, 3)),
            "x": lambda draw: draw.tensor(draw.given["y"].sizes[-1], dtypes=(torch.float32, torch.int64)),
            "dim": lambda draw: -1,
        }
        for name in ("trapezoid", "cumulative_trapezoid")
    },
    "aten.diff.default": {
        **DIM,
        "n": lambda draw: draw.rng.randint(0, 4),
        "prepend": lambda draw: draw.choice(None, draw.like("self")),
        "append": lambda draw: None,
    },
    "aten.gradient.scalarint": {"self": real_floats, "dim": optional_dim, "spacing": lambda draw: None},
}
for _name in ("trapezoid.dx", "trapz.dx", "cumulative_trapezoid.dx"):
    OPERATORS[f"aten.{_name}"] = {"y": lambda draw: draw.tensor(ranks=(1, 2, 3)), "dim": lambda draw: draw.dim("y")}
test_rules_of_reductions_agree_with_fake_tensors = agreement(OPERATORS.items())
