"""Saving what was loaded from a saved file gives the same bytes again: nothing gets lost on the way."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import samples
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.read.same import differences
from tests.bridge.write.trees import content, names
from tests.bridge.zoo import zoo
from tests.bridge.zoo.program import Program
from tests.bridge.zoo.programs_calling import Pair
from tests.packages import bytes_of

from pt2kit.bridge.load import load
from pt2kit.bridge.save import save
from pt2kit.release.conversion import convert

pytestmark = pytest.mark.usefixtures("quiet")

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
ZOO = "tests.bridge.zoo"
TRUST = {
    "own_container": (f"{ZOO}.programs_calling.Words",),
    "module_input": (f"{ZOO}.programs_calling.Layer",),
    "opaque_object": (f"{ZOO}.programs_opaque.Counter",),
    "opaque_value": (f"{ZOO}.programs_opaque.Weighting",),
    "script_object": ("__torch__.torch.classes.quantized.LinearPackedParamsBase",),
    "subclass_weight": ("torch._utils._rebuild_wrapper_subclass", "torch.testing._internal.two_tensor.TwoTensor"),
}
# program -> the id in docs/differences.md, and what happens
LEFT_OUT = {"enum_keys": "F1"}
WITHOUT_DATA = {"fake_weights": "F2", "meta_weights": "F2"}
ALL = zoo.programs()


def saved(program: Any) -> bytes:
    """Return what pt2kit.save writes."""
    return bytes_of(save, program)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", zoo.cases([p for p in ALL if p.name not in WITHOUT_DATA]), ids=repr)
def test_zoo(program: Program) -> None:
    """The first file, and what is saved after loading it, are the same bytes."""
    first = saved(zoo.exported(program))
    second = saved(load(first, trust=TRUST.get(program.name, ())))
    if program.name not in LEFT_OUT:
        assert first == second, [name for name in names(first) if content(first, name) != content(second, name)]
        return
    differing = [name for name in names(first) if content(first, name) != content(second, name)]
    assert differing == ["data/sample_inputs/model.pt"]
    assert saved(load(second)) == second


@pytest.mark.parametrize("program", [p for p in ALL if p.name in WITHOUT_DATA], ids=repr)
def test_without_data(program: Program) -> None:
    """Weights that were saved without their bytes come back on the meta device, and stay there from then on."""
    loaded = load(saved(zoo.exported(program)))
    assert {value.device.type for value in loaded.state_dict.values()} == {"meta"}
    second = saved(loaded)
    assert saved(load(second)) == second


@pytest.mark.parametrize("path", samples.corpus("2.13.0"), ids=samples.release_id)
def test_corpus(path: Path) -> None:
    """The same for files that torch wrote, from the first file of ours on; and the program is the same.

    Addresses of the exporting process are numbered when a program is saved (T10), so they are numbered first.
    """
    program = load(bytes_of(convert, path, normalize=True))
    first = saved(program)
    again = load(first)
    assert saved(again) == first
    assert differences(again, program) == []


def test_the_page_lists_the_same_exceptions() -> None:
    """docs/differences.md and this file know the same ids."""
    listed = set(re.findall(r"^\| (F\d+) \|", PAGE.read_text(), re.MULTILINE))
    assert listed == set(LEFT_OUT.values()) | set(WITHOUT_DATA.values())


TENSOR = torch.ones(3)
SAME = [TENSOR]
INPUTS = {
    "tensor": (TENSOR, TENSOR),
    "view": (TENSOR, TENSOR[1:]),
    "list": (SAME, SAME),
    "dict in lists": ([{"a": TENSOR}] * 2, TENSOR),
    "equal texts": ({"".join("ab"): TENSOR}, {"ab": TENSOR}),
    "field and key": (Pair(TENSOR, TENSOR[1:]), {"left": TENSOR}),
}


@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS)
def test_shared_inputs(inputs: Any) -> None:
    """Sample inputs may hold one object several times; equal texts may be one object or several."""

    class Sum(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return sum(one.sum() for one in torch.utils._pytree.tree_leaves((a, b)) if isinstance(one, torch.Tensor))

    first = saved(torch.export.export(Sum(), inputs))
    read = load(first)
    assert saved(read) == first
    if inputs[0] is inputs[1] is TENSOR:
        assert read.example_inputs[0][0] is read.example_inputs[0][1]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_marks_of_export_are_not_saved(requires_grad) -> None:
    """`Dim.DYNAMIC` leaves an attribute on the sample inputs of some releases, and a caller may have set others."""
    x = torch.ones(3, 4, requires_grad=requires_grad)
    program = torch.export.export(torch.nn.Linear(4, 2), (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    program.example_inputs[0][0].mark = [1]
    first = saved(program)
    read = load(first)
    assert saved(read) == first
    [again] = read.example_inputs[0]
    assert (vars(again), again.requires_grad, torch.equal(again, x)) == ({}, requires_grad, True)
