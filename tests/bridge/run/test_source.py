"""The source of a program holds numbers of ours; values die after their last use; lines lead back to steps."""

from __future__ import annotations

import inspect
import operator
import re
import weakref
from typing import Any

import pytest
import torch

from pt2kit.bridge.run import emitters
from pt2kit.bridge.run.emitters import compile_steps, subgraph_module
from pt2kit.bridge.run.steps import Origin, Step, Steps, Value

HERE = Origin("node", "")


def step(target: Any, result: int, *args: Any, **kwargs: Any) -> Step:
    """A step."""
    return Step(target, args, kwargs, Value(result), HERE)


STEPS = Steps(
    2,
    [
        step(torch.ops.aten.split.Tensor, 2, Value(0), 2),
        step(operator.getitem, 3, Value(2), 0),
        step(operator.getitem, 4, Value(2), 1),
        step(torch.ops.aten.cat.default, 5, [Value(3), Value(1)], dim=0),
        step(torch.ops.aten.sum.default, 6, Value(5)),
    ],
    [Value(5), 'x"); import os', None],
)


def test_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but values, table entries and punctuation, whatever the constants are; an unused part is not taken."""
    seen: list[str] = []

    def seeing(text: str, *rest: Any) -> Any:
        seen.append(text)
        return compile(text, *rest)

    monkeypatch.setattr(emitters, "compile", seeing, raising=False)
    compiled = compile_steps(STEPS, [1, 0])
    [text] = seen
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    assert {word for word in words if not re.fullmatch(r"[vt]\d+", word)} == {"def", "run", "return", "del"}
    assert not set(text) & set("\"'\\")
    assert re.findall(r"del (.*)", text) == ["v2", "v3"]  # after their last uses
    x, y = torch.ones(4, 2), torch.zeros(1, 2)
    results = compiled.function(y, x)
    assert torch.equal(results[0], torch.cat([x[:2], y]))
    assert results[1:] == ('x"); import os', None)
    assert list(inspect.signature(compiled.function).parameters) == ["v1", "v0"]


def test_lets_go() -> None:
    """A value is freed after its last use."""
    made: list[weakref.ref[torch.Tensor]] = []

    def make(x: torch.Tensor) -> torch.Tensor:
        made.append(weakref.ref(new := x + 1))
        return new

    def count(x: torch.Tensor) -> tuple[int, torch.Tensor]:
        return sum(ref() is not None for ref in made), x

    steps = [
        step(make, 1, Value(0)),
        step(make, 2, Value(0)),
        step(make, 3, Value(0)),
        step(count, 4, Value(1)),
        step(torch.ops.aten.add.Tensor, 5, Value(2), Value(3)),
        step(count, 6, Value(5)),
    ]
    function = compile_steps(Steps(1, steps, [Value(4), Value(6)]), [0]).function
    (before, _), (after, result) = function(torch.ones(2))
    assert before == 3
    assert after == 1  # what the first count gave back
    assert torch.equal(result, torch.full((2,), 4.0))


def test_lines() -> None:
    """An error's line is that of its step."""
    compiled = compile_steps(STEPS, [0, 1])
    with pytest.raises(RuntimeError, match="Sizes of tensors must match") as caught:
        compiled.function(torch.ones(4, 2), torch.ones(1, 3))
    trace: Any = caught.tb
    while trace.tb_frame.f_code is not compiled.function.__code__:
        trace = trace.tb_next
    place = compiled.stopped(trace)
    assert place is not None
    assert place.step.target is torch.ops.aten.cat.default
    assert place.read(Value(1)).shape == (1, 3)
    assert place.read(Value(3)).shape == (2, 2)


def test_subgraph() -> None:
    """The same steps as a module of torch.fx give the same."""
    x, y = torch.ones(4, 2), torch.zeros(1, 2)
    got, want = subgraph_module(STEPS)(x, y), compile_steps(STEPS, [0, 1]).function(x, y)
    assert torch.equal(got[0], want[0])
    assert got[1:] == want[1:]
    single = Steps(1, [step(torch.ops.aten.sin.default, 1, Value(0))], [Value(1)], is_single=True)
    assert torch.equal(subgraph_module(single)(x), x.sin())
    assert torch.equal(compile_steps(single, [0]).function(x), x.sin())
