"""An error in an operator says the node, its operator, its arguments and the model's line, wherever the node stands."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.packages import bytes_of
from torch import nn

import pt2kit
from pt2kit.bridge.run.steps import source_line
from pt2kit.bridge.torch_names import find_higher_order

pytestmark = pytest.mark.filterwarnings("ignore:You are calling torch.compile:UserWarning")  # cond, in torch 2.10
GOOD, BAD = torch.tensor([0, 1]), torch.tensor([0, 9])
X = torch.ones(3, 4)


def pick(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Fails in the operator where the index is beyond the rows."""
    return torch.index_select(x, 0, index).sum(0)


class NoGrad(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = pick(x, index)
        return y + x.sum(0)


class Autocast(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = pick(x, index)
        return y + x.sum(0)


def rows(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """The other branch."""
    return x.sum(0)


class Cond(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, pick, rows, (x, index))


class Nested(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        def inner(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 1, pick, rows, (x, index))

        return torch.cond(x.sum() > 0, inner, rows, (x, index))


class While(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        def fewer(count: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return count < 3

        def body(count: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return count + 1, torch.index_select(y, 0, index)

        return torch._higher_order_ops.while_loop(fewer, body, (torch.tensor(0), x[:2]))[1]


class Scan(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> Any:
        from torch._higher_order_ops.scan import scan

        return scan(lambda carry, row: (carry + row, torch.index_select(row, 0, index)), torch.zeros(4), x)


class Map(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> Any:
        from torch._higher_order_ops.map import map as torch_map

        return torch_map(lambda row, index: torch.index_select(row, 0, index), x, index)


REGIONS = [
    (NoGrad, ["wrap_with_set_grad_enabled"]),
    (Autocast, ["wrap_with_autocast"]),
    (Cond, ["cond"]),
    (Nested, ["cond", "cond"]),
    (While, ["while_loop"]),
    (Scan, ["scan"]),
    (Map, ["map_impl"]),
]


def module_of(kind: type[nn.Module]) -> nn.Module:
    """The model, saved and loaded to run."""
    return pt2kit.load_module(bytes_of(torch.export.save, torch.export.export(kind(), (X, GOOD))))


@pytest.mark.parametrize(("kind", "outer"), REGIONS, ids=[kind.__name__ for kind, _ in REGIONS])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:torch")  # of the autograd of torch's own scan
def test_regions(kind: type[nn.Module], outer: list[str], grad: bool) -> None:
    """The node in the subgraph first, then the nodes that run it, inside out; the type of the error stays."""
    module = copy.deepcopy(module_of(kind))
    module(X.clone().requires_grad_(grad), GOOD)
    with pytest.raises(IndexError, match="index out of range in self") as caught:
        module(X.clone().requires_grad_(grad), BAD)
    _, *lines = str(caught.value).split("\n")
    named = [re.match(r"in the node \S+ \(torch\.ops\.(\S+)\), called with", line) for line in lines]
    names = [match and match[1] for match in named]
    over = [f"higher_order.{name}" for name in outer]
    if kind is Scan and grad and names == over:
        return  # this torch traces the body anew for autograd, and runs that
    assert names == ["aten.index_select.default", *over]
    assert re.search(r"called with \(float32\[[\d, ]+\], 0, int64\[2\]\)", lines[0])
    assert re.search(rf"from .*{re.escape(Path(__file__).name)}:\d+, in (forward|pick): \S", lines[0])
    assert "a subgraph" in lines[-1]


def test_compiled_and_exported() -> None:
    """torch.compile and another export see through subgraphs as before."""
    module = module_of(Cond)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X, GOOD), module(X, GOOD))
    for strict in (False, True):
        program = torch.export.export(module, (X, GOOD), strict=strict)
        assert any(node.target is find_higher_order("cond") for node in program.graph.nodes)
        assert torch.equal(program.module()(-X, GOOD), module(-X, GOOD))


TRACES = [
    ("", ""),
    ("NoneType: None", ""),
    (
        'File "model.py", line 3, in forward\n    y = self.fc(x)\n'
        '  File "/lib/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return F.linear(x)',
        ", from model.py:3, in forward: y = self.fc(x)",
    ),
    (
        'File "model.py", line 3, in forward\n    return cond(a, b, c)\n'
        '  File "<eval_with_key>.5", line 12, in forward\n    cond = torch.ops.higher_order.cond(v)',
        ", from model.py:3, in forward: return cond(a, b, c)",
    ),
    (
        'File "C:\\lib\\site-packages\\torch\\nn\\modules\\linear.py", line 134, in forward\n    return F.linear(x)',
        ", from C:\\lib\\site-packages\\torch\\nn\\modules\\linear.py:134, in forward: return F.linear(x)",
    ),
    ('File "<eval_with_key>.5", line 12, in forward', ", from <eval_with_key>.5:12, in forward"),
    (f'File "a.py", line 1, in f\n    {"x" * 500}', f", from a.py:1, in f: {'x' * 120}"),
]


@pytest.mark.parametrize(("trace", "said"), TRACES)
def testsource_line(trace: str, said: str) -> None:
    """The innermost frame of the model; one of torch or of generated code only where there is no other."""
    assert source_line(trace) == said
