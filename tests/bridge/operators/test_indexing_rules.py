"""Result rules of indexing compared with torch's fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.operators.fake_calls import FLOATS, INTS, Draw, Drawn, agreement, compare_calls

LONG = (torch.int64,)
INDICES = (torch.int64, torch.int64, torch.int64, torch.int32, torch.float32)


def dim(draw: Draw) -> int:
    return draw.dim()


def tensors(draw: Draw) -> list[Drawn | None]:
    """Draw indices for some dimensions of `self`, sometimes too many."""
    listed: list[Drawn | None] = []
    for _ in range(draw.rng.randint(1, max(draw.rank(), 1)) + (draw.rng.random() < 0.05)):
        sizes = draw.choice((3,), (2, 3), (1,), (2, 1), ())
        index = Drawn((), torch.int64, ()) if not sizes else draw.tensor(*sizes, dtypes=INDICES)
        listed.append(None if draw.rng.random() < 0.4 else index)
    return listed


def values(draw: Draw) -> Drawn:
    dtype = draw.given["self"].dtype if draw.rng.random() < 0.9 else torch.float32
    return Drawn((), dtype, ())


def list_of_indices(draw: Draw) -> Drawn:
    sizes = draw.choice((3,), (1,), (2,), (2, 2))
    return draw.tensor(*sizes, dtypes=INDICES) if draw.rng.random() < 0.9 else Drawn((), torch.int64, ())


def source(draw: Draw) -> Drawn:
    """Draw what `index_add` adds: as `self`, with one slice for each index."""
    sizes = list(draw.given["self"].sizes)
    dim = draw.given["dim"]
    if sizes and -len(sizes) <= dim < len(sizes):
        sizes[dim] = (*draw.given["index"].sizes, 1)[0]
    if sizes and draw.rng.random() < 0.1:
        sizes[0] += 1
    return draw.like("self", sizes=tuple(sizes))


def element_index(draw: Draw) -> Drawn:
    """Draw an index for `gather`: of the rank of `self`, not larger than it, as a rule."""
    sizes = [draw.rng.randint(1, max(size, 1)) for size in draw.given["self"].sizes]
    if sizes and draw.rng.random() < 0.1:
        sizes[draw.rng.randrange(len(sizes))] += 4
    dtypes = (torch.int64, torch.int64, torch.int64, torch.float32)
    return draw.like("self", sizes=tuple(sizes), dtypes=dtypes)


def scattered(draw: Draw) -> Drawn:
    sizes = tuple([size + draw.rng.randint(0, 1) for size in draw.given["index"].sizes])
    if sizes and draw.rng.random() < 0.1:
        sizes = (max(sizes[0] - 2, 1), *sizes[1:])
    return draw.like("self", sizes=sizes)


def mask(draw: Draw) -> Drawn:
    dtypes = (torch.bool, torch.bool, torch.bool, torch.float32)
    sizes = draw.given["self"].sizes
    return draw.like("self", dtypes=dtypes, sizes=sizes[draw.rng.randint(0, len(sizes)) :])


def number(draw: Draw) -> int:
    return 1


def scalar(draw: Draw) -> Drawn:
    return Drawn((), draw.given["self"].dtype, ())


def weight(draw: Draw) -> Drawn:
    return draw.tensor(*draw.choice((5, 3), (5, 3), (5, 3, 2)), dtypes=FLOATS)


def indices(draw: Draw) -> Drawn:
    return draw.tensor(dtypes=INDICES)


def reals(draw: Draw) -> Drawn:
    return draw.tensor(dtypes=(*FLOATS, *INTS), ranks=(1, 2, 3, 4))


def modes(*names: str) -> Any:
    return lambda draw: draw.choice(*names)


ELEMENTS: dict[str, Any] = {"self": reals, "dim": dim, "index": element_index}
SLICES: dict[str, Any] = {"self": reals, "dim": dim, "index": list_of_indices}
REDUCTIONS = modes("sum", "prod", "mean", "amax", "amin", "max")
OPERATORS: dict[str, dict[str, Any]] = {
    **{f"aten.{name}.Tensor": {"indices": tensors} for name in ("index", "_unsafe_index")},
    "aten.index_put.default": {"indices": tensors, "values": values},
    "aten.index_put_.default": {"indices": tensors, "values": values},
    "aten._unsafe_index_put.default": {"indices": tensors, "values": values},
    "aten.index_select.default": SLICES,
    **{f"aten.index_{name}.default": {**SLICES, "source": source, "alpha": number} for name in ("add", "add_")},
    **{f"aten.index_{name}.default": {**SLICES, "source": source} for name in ("copy", "copy_")},
    "aten.index_reduce.default": {**SLICES, "source": source, "reduce": modes("prod", "mean", "amax", "amin", "sum")},
    "aten.index_fill.int_Scalar": {**SLICES, "value": number},
    "aten.index_fill.int_Tensor": {**SLICES, "value": scalar},
    "aten.index_fill_.int_Scalar": {**SLICES, "value": number},
    "aten.gather.default": ELEMENTS,
    **{f"aten.{name}.src": {**ELEMENTS, "src": scattered} for name in ("scatter", "scatter_")},
    **{f"aten.{name}.value": {**ELEMENTS, "value": number} for name in ("scatter", "scatter_")},
    "aten.scatter.reduce": {**ELEMENTS, "src": scattered, "reduce": modes("add", "multiply", "x")},
    "aten.scatter.value_reduce": {**ELEMENTS, "value": number, "reduce": modes("add", "multiply", "x")},
    **{f"aten.{name}.default": {**ELEMENTS, "src": scattered} for name in ("scatter_add", "scatter_add_")},
    "aten.scatter_reduce.two": {**ELEMENTS, "src": scattered, "reduce": REDUCTIONS},
    "aten.take.default": {"index": indices},
    "aten.take_along_dim.default": {
        **ELEMENTS,
        "indices": element_index,
        "dim": lambda draw: draw.choice(None, draw.dim()),
    },
    "aten.put.default": {
        "index": lambda draw: draw.tensor(3, dtypes=LONG),
        "source": lambda draw: draw.like("self", sizes=(3,)),
    },
    "aten.masked_scatter.default": {"mask": mask, "source": lambda draw: draw.like("self")},
    "aten.masked_scatter_.default": {"mask": mask, "source": lambda draw: draw.like("self")},
    "aten.nonzero_static.default": {"size": lambda draw: draw.rng.randint(-1, 4)},
    "aten.embedding.default": {
        "weight": weight,
        "indices": indices,
        **{name: lambda draw: False for name in ("scale_grad_by_freq", "sparse")},
    },
    "aten.embedding_dense_backward.default": {
        "grad_output": lambda draw: draw.tensor(2, 4, 3, dtypes=FLOATS),
        "indices": lambda draw: draw.tensor(2, 4, dtypes=LONG),
        "num_weights": lambda draw: draw.rng.randint(0, 5),
        "padding_idx": lambda draw: -1,
    },
    **{
        f"aten.{name}": {
            "weight": lambda draw: draw.tensor(5, 3, dtypes=(*FLOATS, torch.int64)),
            "indices": lambda draw: draw.tensor(6, dtypes=INDICES),
            "offsets": lambda draw: draw.tensor(3, dtypes=(draw.given["indices"].dtype,)),
            "mode": lambda draw: draw.rng.randint(0, 2),
            "sparse": lambda draw: False,
            "per_sample_weights": lambda draw: None,
            "padding_idx": lambda draw: -1,
        }
        for name in ("_embedding_bag.default", "_embedding_bag_forward_only.default")
    },
    "aten.one_hot.default": {
        "self": lambda draw: draw.tensor(dtypes=(torch.int64, torch.int64, torch.int32)),
        "num_classes": lambda draw: draw.rng.randint(0, 4),
    },
    "aten.select_scatter.default": {
        "src": lambda draw: draw.like("self", sizes=draw.given["self"].sizes[1:]),
        "dim": lambda draw: draw.choice(0, 0, 0, 1),
        "index": lambda draw: 0,
    },
    "aten.slice_scatter.default": {
        "self": reals,
        "src": lambda draw: draw.like("self", sizes=(2, *draw.given["self"].sizes[1:])),
        "dim": lambda draw: 0,
        "start": lambda draw: draw.choice(None, 0, 1),
        "end": lambda draw: draw.choice(2, 2, 3, None),
        "step": lambda draw: 1,
    },
    "aten.diagonal_scatter.default": {
        "self": lambda draw: draw.tensor(3, 4),
        "src": lambda draw: draw.like("self", sizes=(draw.choice(3, 3, 2),)),
        "offset": lambda draw: draw.choice(0, 1, 2),
        "dim1": lambda draw: 0,
        "dim2": lambda draw: 1,
    },
    "aten.select_backward.default": {
        "grad_output": lambda draw: draw.tensor(3),
        "input_sizes": lambda draw: [2, 3],
        "dim": lambda draw: 0,
        "index": lambda draw: 1,
    },
    "aten.slice_backward.default": {
        "grad_output": lambda draw: draw.tensor(2, 3),
        "input_sizes": lambda draw: [4, 3],
        "dim": lambda draw: 0,
        "start": lambda draw: 1,
        "end": lambda draw: 3,
        "step": lambda draw: 1,
    },
}
MASKED: dict[str, dict[str, Any]] = {
    "aten.index.Tensor": {
        "indices": lambda draw: [draw.like("self", dtypes=(torch.bool,), sizes=draw.given["self"].sizes[:2])]
    },
    "aten.masked_select.default": {"mask": mask},
    "aten.nonzero.default": {},
    "aten.argwhere.default": {},
    "aten.where.default": {},
    "aten.nonzero_numpy.default": {},
}
test_rules_of_indexing_agree_with_fake_tensors = agreement(OPERATORS.items())


@pytest.mark.parametrize("name", MASKED)
def test_sizes_that_elements_decide_contradict_no_fake_tensor(name: str) -> None:
    report = compare_calls(name, 15, **MASKED[name])
    assert report.calls > report.refused + sum(report.unknown.values()), report
