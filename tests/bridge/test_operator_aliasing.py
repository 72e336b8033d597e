"""The measured table of aliasing, compared with calls in the torch that is installed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tools.measure_aliasing import Evidence, by_hand_alone, measure
from torch.utils import _pytree as pytree

from pt2kit.operators.aliasing import aliases, is_measured, written

RELEASE = ".".join(torch.__version__.split(".")[:2])
aten = torch.ops.aten


def normalization(overload: Any, *, training: bool) -> tuple[Any, tuple[Any, ...]]:
    """Return a call of a batch normalization."""
    statistics = (torch.rand(3), torch.rand(3))
    tail = (0.1, 1e-5, False) if overload is not aten.native_batch_norm.default else (0.1, 1e-5)
    return overload, (torch.rand(2, 3, 4), None, None, *statistics, training, *tail)


def calls() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return calls of operators that share memory or write, with and without a declaration."""
    x = torch.rand(2, 3, 4)
    return [
        (aten.reshape.default, (x, [6, 4])),
        (aten.reshape.default, (x.mT, [6, 4])),
        (aten.contiguous.default, (x,)),
        (aten.contiguous.default, (x.mT,)),
        (aten.to.dtype, (x, torch.float32)),
        (aten.to.dtype, (x, torch.float64)),
        (aten.to.dtype, (x, torch.float32, False, True)),
        (aten._to_copy.default, (x,)),
        (aten.conj_physical.default, (x,)),
        (aten.dropout.default, (x, 0.5, False)),
        (aten.dropout.default, (x, 0.5, True)),
        (aten.native_dropout.default, (x, 0.5, False)),
        (aten.expand_as.default, (x[0].clone(), x)),
        (aten.broadcast_tensors.default, ([x, x[0].clone()],)),
        (aten.atleast_1d.Sequence, ([x, x[0].clone()],)),
        (aten._unsafe_view.default, (x, [24])),
        (aten.unsafe_split.Tensor, (x, 1, 1)),
        (aten.unsafe_chunk.default, (x, 2)),
        (aten.split.Tensor, (x, 1, 1)),
        (aten.meshgrid.default, ([x[0, 0], x[0, 0]],)),
        (aten.type_as.default, (x, x.clone())),
        (aten.add.Tensor, (x, x.clone())),
        (aten.cat.default, ([x],)),
        (aten.pad.default, (x, [0, 0])),
        (aten.constant_pad_nd.default, (x, [0, 0])),
        (aten.clone.default, (x,)),
        (aten.add_.Tensor, (x.clone(), x)),
        (aten.set_.source_Tensor, (torch.empty(0), x)),
        (aten._foreach_mul_.Scalar, ([x.clone()], 2.0)),
        (aten.squeeze_.default, (x[:1].clone(),)),
        (aten.rrelu_with_noise.default, (x - 0.5, torch.zeros_like(x), 0.1, 0.3, True)),
        normalization(aten.batch_norm.default, training=True),
        normalization(aten.batch_norm.default, training=False),
        normalization(aten.native_batch_norm.default, training=True),
        normalization(aten._batch_norm_impl_index.default, training=True),
        normalization(aten.instance_norm.default, training=True),
    ]


@pytest.mark.parametrize(("overload", "args"), [pytest.param(*call, id=str(call[0])) for call in calls()])
def test_what_a_call_shares_and_writes(overload: Any, args: tuple[Any, ...]) -> None:
    """Memory that a result shares with an argument is in the table; "always" holds; what changes is in `written`."""
    torch.manual_seed(0)
    schema = overload._schema
    names = [argument.name for argument in schema.arguments][: len(args)]
    given = {name: _tensors(value) for name, value in zip(names, args, strict=True)}
    storages = {name: {tensor.untyped_storage()._cdata for tensor in tensors} for name, tensors in given.items()}
    before = {name: [(tensor.shape, tensor.clone()) for tensor in tensors] for name, tensors in given.items()}
    result = overload(*args)
    shared = {
        (index, name)
        for index, one in enumerate([result] if len(schema.returns) == 1 else result or ())
        for name, held in storages.items()
        if held & {tensor.untyped_storage()._cdata for tensor in _tensors(one)}
    }
    stated = aliases(str(overload), RELEASE)
    assert shared <= {(alias.result, alias.parameter) for alias in stated}
    if overload is not aten.set_.source_Tensor:  # The written tensor gets other memory.
        assert {(alias.result, alias.parameter) for alias in stated if alias.certainty == "always"} <= shared
    changed = {
        name
        for name, tensors in given.items()
        if not all(
            tensor.shape == shape and torch.equal(tensor, old)
            for tensor, (shape, old) in zip(tensors, before[name], strict=True)
        )
    }
    assert changed <= written(str(overload), RELEASE)


AGAIN = [
    *("aten.to.dtype", "aten.conj_physical.default", "aten.einsum.default", "aten.squeeze.dim", "aten.add.Tensor"),
    *("aten.atleast_2d.default", "aten.unsafe_chunk.default", "aten.set_data.default", "aten.sum.dim_IntList"),
    *("aten.unflatten_dense_tensors.default", "aten.to_dense.default", "aten.transpose.int", "aten.mul_.Scalar"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", AGAIN)
def test_measured_again(name: str) -> None:
    """The tool finds nothing that the table lacks, and what the table calls certain it finds in every call."""
    torch.manual_seed(0)
    evidence = Evidence()
    measure(name, by_hand_alone(), evidence)
    assert evidence.calls > 5
    assert is_measured(name)
    stated = {f"{alias.result} {alias.parameter}": alias.certainty for alias in aliases(name, RELEASE)}
    for pair, (seen, possible) in evidence.aliases.items():
        assert not seen or pair in stated
        assert seen == possible or stated.get(pair) != "always"
    assert {parameter for parameter, (seen, _) in evidence.written.items() if seen} <= written(name, RELEASE)
    assert not evidence.drawn


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
