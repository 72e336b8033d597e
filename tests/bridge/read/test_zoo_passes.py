"""Torch's passes on an exported program work on the loaded one too, for every program of the zoo."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.export.passes
from tests.bridge.test_fixed_point import TRUST, WITHOUT_DATA
from tests.bridge.zoo import zoo
from tests.bridge.zoo.program import Program
from torch.utils import _pytree as pytree

from pt2kit.bridge.load import load
from pt2kit.bridge.save import save

pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.filterwarnings("ignore")]

PROGRAMS = [program for program in zoo.programs() if program.name not in WITHOUT_DATA and program.calls()]
PASSES: dict[str, Callable[[Any, Any, Any], Callable[..., Any]]] = {
    "module": lambda program, args, kwargs: program.module(),
    "copied": lambda program, args, kwargs: copy.deepcopy(program).module(),
    "moved": lambda program, args, kwargs: torch.export.passes.move_to_device_pass(program, "cpu").module(),
    "decomposed": lambda program, args, kwargs: program.run_decompositions().module(),
    "taken apart": lambda program, args, kwargs: torch.export.unflatten(program),
    "exported again": lambda program, args, kwargs: torch.export.export(program.module(), args, kwargs).module(),
}
# Tried for one variant of each model, up to this many nodes.
COSTLY = {"exported again": 200, "decomposed": 20}


def outcome(work: Callable[..., Any], program: Any, call: Any) -> Any:
    """The outputs of a pass over a program, flat; or the error it ends in."""
    args, kwargs = copy.deepcopy(call)
    try:
        with torch.no_grad():
            return pytree.tree_leaves(work(program, *copy.deepcopy(call))(*args, **kwargs))
    except Exception as error:  # noqa: BLE001 (torch has no error family)
        return error


@pytest.mark.sampled(4)
@pytest.mark.parametrize("program", zoo.cases(PROGRAMS), ids=repr)
def test_passes(program: Program) -> None:
    """A pass that works on the exported program works on the loaded one, with the same outputs."""
    buffer = io.BytesIO()
    live = zoo.exported(program)
    save(live, buffer)
    trust = TRUST.get(program.name, ())
    call = program.calls()[0]
    load(buffer.getvalue(), trust=trust).validate()
    want = outcome(PASSES["module"], live, call)
    for name, work in PASSES.items():
        if name in COSTLY and ("__" in program.name or program.slow or len(live.graph.nodes) > COSTLY[name]):
            continue
        theirs = outcome(lambda *given, work=work: work(copy.deepcopy(given[0]), *given[1:]), live, call)
        if difference(theirs, want, program.random):
            continue
        got = outcome(work, load(buffer.getvalue(), trust=trust), call)
        assert not (found := difference(got, want, program.random)), f"{name}: {found}"


def difference(got: Any, want: Any, random: bool) -> str:
    """Return how two outcomes differ; errors differ from everything."""
    if isinstance(got, Exception) or isinstance(want, Exception):
        return f"{type(got).__name__}: {got}"
    if len(got) != len(want):
        return f"{len(got)} outputs, not {len(want)}"
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        if isinstance(b, torch.Tensor):
            try:
                torch.testing.assert_close(a, b, equal_nan=True, atol=math.inf if random else 1e-4, rtol=1e-3)
            except AssertionError as error:
                return f"output {index}: {error}"
        elif not isinstance(b, torch.nn.Module) and not (random or a == b or (a != a and b != b)):
            return f"output {index}: {a}, not {b}"
    return ""
