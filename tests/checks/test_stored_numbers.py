"""Numbers of the file that kernels trust: such as the table says, and never written to."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from tests.checks import mutations as m
from tests.checks.mutations import MLP, Mutation, graph, tensor
from tests.checks.test_provenance import Call, nodes_of, one, said
from tests.packages import edited, rewritten

from pt2kit.package import record_names as names

Change = Callable[[Any], None]
SPEC: dict[str, Any] = {"tensor_constant": {"arg": {"name": "c"}, "tensor_constant_name": "c"}}
BUFFER: dict[str, Any] = {"buffer": {"arg": {"name": "c"}, "buffer_name": "c", "persistent": False}}


def nothing(tree: Any) -> None:
    """No change."""


def stored(
    numbers: tuple[int, ...],
    *calls: Call,
    spec: dict[str, Any] = SPEC,
    change: Change = nothing,
    described: dict[str, Any] | None = None,
) -> Mutation:
    """A file with one more constant, "c", which a few calls at its end use."""
    meta = described or m.meta(5, (len(numbers),))

    def program(tree: Any) -> None:
        values = graph(tree)["tensor_values"]
        values["c"] = meta
        graph(tree)["inputs"].insert(0, tensor("c"))
        tree["graph_module"]["signature"]["input_specs"].insert(0, spec)
        graph(tree)["nodes"] += nodes_of(list(calls), tree, values)
        change(tree)

    config = json.dumps({"config": {"c": m.stored("tensor_0", meta)}}).encode()
    data = struct.pack(f"<{len(numbers)}q", *numbers)
    return Mutation(None, edited(rewritten(MLP, {m.CONFIG: config, names.CONSTANTS + "tensor_0": data}), program))


def bag(offsets: str = "c") -> Call:
    """A sum over pieces of a list, which begin at offsets."""
    return "aten.embedding_bag.default b g s k", {
        "weight": tensor("relu"), "indices": tensor("c"), "offsets": tensor(offsets),
    }  # fmt: skip


def solve(pivots: str = "c") -> Call:
    """A solution by a factorization, whose rows were exchanged."""
    return "aten.linalg_ldl_solve.default b", {"LD": tensor("relu"), "pivots": tensor(pivots), "B": tensor("relu")}


def pad(sizes: str = "c") -> Call:
    """Sequences beside one another."""
    return "aten._pad_packed_sequence.default b l", {"data": tensor("relu"), "batch_sizes": tensor(sizes)}


def repeat(by: str = "c") -> Call:
    """Numbers of elements, each as often as it says."""
    return "aten.repeat_interleave.Tensor b", {"repeats": tensor(by)}


CTC: Call = ("aten._ctc_loss.Tensor b l", {"log_probs": tensor("relu"), "targets": tensor("c")})

SOUND = {
    "offsets": stored((0, 2, 2, 5), bag()),
    "a copy of offsets": stored(
        (0, 2), one("lift_fresh_copy.default", "d", "c"), one("detach_.default", "e", "d"), bag("e"),
    ),
    "no offsets": stored((), bag()),
    "rows": stored((1, 3, 3), solve()),
    "rows in pairs": stored((1, -3, -3, 4), solve()),
    "batch sizes": stored((3, 3, 1), pad()),
    "repeats": stored((3, 0, 2**39), repeat()),
    "no repeats": stored((), repeat()),
    "repeats that are computed from the caller's": stored(
        (2**62,), one("mul.Tensor", "d", "c", other=tensor("relu")), repeat("d"),
    ),
    "a copy is written to": stored((0, 2), one("clone.default", "d", "c"), one("zero_.default", "z", "d"), bag()),
}  # fmt: skip
OFFSETS = "expected offsets to be an input of the program or stored numbers that are offsets, unchanged"
PIVOTS = "stored numbers that are pivots, unchanged, got 'c'"
SIZES = "stored numbers that are batch sizes, unchanged, got 'c'"
REPEATS = "stored numbers that are repeats, unchanged or"
WRITTEN = "expected offsets to stay as it is, got 'c', which is written to"


def mutated(tree: Any) -> None:
    """The program gives the buffer a new value when it has run."""
    graph(tree)["outputs"].insert(0, tensor("relu"))
    spec = {"buffer_mutation": {"arg": {"name": "relu"}, "buffer_name": "c"}}
    tree["graph_module"]["signature"]["output_specs"].insert(0, spec)


def second(tree: Any) -> None:
    """A second input takes the same constant, and is written to."""
    graph(tree)["tensor_values"]["other"] = graph(tree)["tensor_values"]["c"]
    graph(tree)["inputs"].insert(0, tensor("other"))
    spec = {"tensor_constant": {"arg": {"name": "other"}, "tensor_constant_name": "c"}}
    tree["graph_module"]["signature"]["input_specs"].insert(0, spec)
    graph(tree)["nodes"].append(m.call("torch.ops.aten.zero_.default", "z", self=tensor("other")))


HOSTILE = {
    "an offset before the list": (stored((0, -10000, 4), bag()), OFFSETS),
    "a first offset before the list": (stored((-1, 2), bag()), OFFSETS),
    "offsets out of order": (stored((0, 9, 4), bag()), OFFSETS),
    "a copy of such offsets": (stored((0, 9, 4), one("clone.default", "d", "c"), bag("d")), OFFSETS),
    "offsets that lie apart": (
        stored((0, 1, 2, 3), bag(), described={**m.meta(5, (2,)), "strides": [{"as_int": 2}]}), OFFSETS,
    ),
    "offsets in another shape": (
        stored((0, 1), one("view.default", "d", "c", size={"as_ints": [1, 2]}), bag("d")), OFFSETS,
    ),
    "a row beyond the matrix": (stored((1, 4, 3), solve()), PIVOTS),
    "row zero": (stored((1, 0, 3), solve()), PIVOTS),
    "half a pair of rows": (stored((1, 2, -3), solve()), PIVOTS),
    "half a pair of rows before another": (stored((-1, 2, 3), solve()), PIVOTS),
    "a pair of rows beyond the matrix": (stored((1, -3, -4), solve()), PIVOTS),
    "repeats whose sum is no number of 64 bits": (stored((2**62,) * 4, repeat()), REPEATS),
    "repeats of one tensor in another shape": (
        stored((2**39,), one("expand.default", "d", "c", size={"as_ints": [2**30]}), repeat("d")), REPEATS,
    ),
    "a number of repeats below zero": (stored((3, -1), repeat()), REPEATS),
    "repeats that are computed": (stored((3, 1), one("mul.Tensor", "d", "c", other=tensor("c")), repeat("d")), REPEATS),
    "a size below zero": (stored((3, 2, -1), pad()), SIZES),
    "sizes that rise": (stored((1, 3, 2), pad()), SIZES),
    "classes": (stored((1, 2), CTC), "expected targets to be an input of the program, got 'c'"),
    "a new value of a buffer": (stored((0, 2), bag(), spec=BUFFER, change=mutated), WRITTEN),
    "written to afterwards": (stored((0, 2), bag(), one("zero_.default", "z", "c")), WRITTEN),
    "written to under another name": (stored((0, 2), bag(), change=second), WRITTEN),
    "written to by a view": (
        stored((0, 2), bag(), one("detach_.default", "d", "c"), one("zero_.default", "z", "d")), WRITTEN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutation", SOUND.values(), ids=SOUND)
def test_sound(mutation: Mutation) -> None:
    """Numbers that are what a kernel needs pass, through copies that keep them."""
    assert said(mutation) == []


@pytest.mark.parametrize(("mutation", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_hostile(mutation: Mutation, expected: str) -> None:
    """Bytes of the file are not the caller's: what they are is looked at, and what is written to does not stay."""
    (found,) = said(mutation)
    assert expected in found


def test_a_tensor_that_cannot_be_read() -> None:
    """What is not there vouches for nothing."""
    broken = rewritten(stored((0, 2), bag()).data, {m.CONFIG: b"{"})
    (found,) = said(Mutation(None, broken))
    assert OFFSETS in found
