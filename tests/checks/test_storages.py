"""Views of given strides beyond the storage of what a call creates, of weights, buffers and constants."""

from __future__ import annotations

import io
from typing import Any

import pytest
from tests.checks.mutations import MLP, Mutation, call, graph, program, tensor
from tests.checks.test_unchecked import calling, described
from tests.packages import bytes_of

from pt2kit.checks import check

WEIGHT = "p_0_weight"
"""128 elements: 16 rows of 8."""


def found(mutation: Mutation) -> list[str]:
    """Return messages about storages."""
    return [problem.message for problem in check(mutation.data) if "a storage of" in problem.message]


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [
        ([8], [1], 0),
        ([2, 4], [1, 2], 0),
        ([3, 4], [2, 1], 0),
        ([3, 4], [2, 1], 1),
        ([9], [1], 0),
        ([8], [1], 1),
        ([1], [99], 7),
        ([1], [1], 8),
        ([0], [1], 99),
        ([2, 4], [9, 1], 0),
        ([5, 5], [0, 0], 7),
    ],
)
def test_views_beyond_a_storage(size: list[int], stride: list[int], offset: int) -> None:
    """A view of given strides beyond the storage of a tensor that a call created is refused where torch refuses it."""
    arguments = {"size": {"as_ints": size}, "stride": {"as_ints": stride}, "storage_offset": {"as_int": offset}}
    mutation = calling("aten.as_strided.default", {"v": (tuple(size), 7)}, {"g": (2, 4)}, self=tensor("g"), **arguments)
    messages = found(mutation)
    torch = pytest.importorskip("torch")
    try:
        torch.zeros(2, 4).as_strided(size, stride, offset)
    except RuntimeError:
        assert len(messages) == 1
        assert messages[0].endswith("or more, got 8")
    else:
        assert messages == []


def looking(target: str, self: str, size: list[int], stride: list[int], offset: int | None, *before: Any) -> Mutation:
    """A file that looks at a tensor with given strides, after other calls."""
    arguments: dict[str, Any] = {"size": {"as_ints": size}, "stride": {"as_ints": stride}}
    if offset is not None:
        arguments["storage_offset"] = {"as_int": offset}
    if "scatter" in target:
        arguments["src"] = tensor("src")

    def change(tree: Any) -> None:
        for name, sizes, node in before:
            described(tree, name, sizes)
            graph(tree)["nodes"].append(node)
        made = call("torch.ops.aten.zeros.default", described(tree, "src", tuple(size)), size={"as_ints": size})
        described(tree, "seen", (16, 8) if "scatter" in target else tuple(size))
        node = call(f"torch.ops.aten.{target}.default", "seen", self=tensor(self), **arguments)
        graph(tree)["nodes"] += [made, node]

    return program(MLP, change)


TRANSPOSED = ("t", (8, 16), call("torch.ops.aten.t.default", "t", self=tensor(WEIGHT)))
CHANGED = ("c", (16, 8), call("torch.ops.aten.clone.default", "c", self=tensor(WEIGHT)))


@pytest.mark.parametrize("target", ["as_strided", "as_strided_copy", "as_strided_scatter"])
@pytest.mark.parametrize(
    ("size", "stride", "offset", "before"),
    [
        ([128], [1], 0, ()),
        ([129], [1], 0, ()),
        ([128], [1], 1, ()),
        ([2, 8], [120, 1], None, ()),
        ([2, 8], [121, 1], None, ()),
        ([1], [1], 127, (TRANSPOSED,)),
        ([1], [1], 128, (TRANSPOSED,)),
        ([16], [8], 7, (TRANSPOSED,)),
        ([16], [8], 8, (TRANSPOSED,)),
        ([0], [1], 500, ()),
    ],
)
def test_views_beyond_a_stored_tensor(
    target: str, size: list[int], stride: list[int], offset: int | None, before: tuple[Any, ...]
) -> None:
    """A view beyond the storage of a weight, or of a view of it, is refused where torch refuses it."""
    mutation = looking(target, before[-1][0] if before else WEIGHT, size, stride, offset, *before)
    messages = found(mutation)
    torch = pytest.importorskip("torch")
    module = torch.export.load(io.BytesIO(mutation.data)).module().requires_grad_(False)
    try:
        module(torch.zeros(3, 8))
    except RuntimeError:
        assert len(messages) == 1
        assert messages[0].endswith("or more, got 128")
    else:
        assert messages == []


def test_storages_that_are_not_known() -> None:
    """Views of results with a storage of unknown size are not judged, nor those after a `resize_`."""
    resized = ("r", (9, 9), call("torch.ops.aten.resize_.default", "r", self=tensor("c"), size={"as_ints": [9, 9]}))
    assert found(looking("as_strided", "input", [900], [1], 0)) == []
    assert len(found(looking("as_strided", "c", [900], [1], 0, CHANGED))) == 1
    assert found(looking("as_strided", "c", [900], [1], 0, CHANGED, resized)) == []


def test_a_weight_that_views_a_larger_storage() -> None:
    """The storage of a weight is the whole record, which may be longer than the weight."""
    torch = pytest.importorskip("torch")

    class Part(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("whole", torch.arange(12.0))
            self.register_buffer("part", self.whole[2:6])

        def forward(self, x: Any) -> Any:
            return self.whole[:3] * 0 + x + self.part.as_strided((3,), (4,), 3)

    file = bytes_of(torch.export.save, torch.export.export(Part(), (torch.zeros(3),), strict=False))
    assert not check(file).errors
    again = torch.export.load(io.BytesIO(file)).module()
    assert again(torch.zeros(3)).tolist() == [3.0, 7.0, 11.0]
