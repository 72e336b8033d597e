"""Which callables torch finds without walking attributes."""

from __future__ import annotations

import pytest
from tests import samples

import pt2kit
from pt2kit.checks.calls import is_usual
from pt2kit.graph import walk


@pytest.mark.parametrize(
    "target",
    [
        *("torch.ops.aten.add.Tensor", "torch.ops.corpus.op.default", "torch.ops.higher_order.cond"),
        *("_operator.mul", "math.ceil", "builtins.round", "torch.sym_max", "torch._sym_sqrt", "#ext:op"),
    ],
)
def test_usual(target: str) -> None:
    """The dispatcher's operators, the functions that export writes, and extensions."""
    assert is_usual(target)


@pytest.mark.parametrize(
    "target",
    [
        *("", "torch", "torch.os.mkdir", "torch.hub.load", "os.system", "builtins.eval", "math.nan"),
        *("_operator.attrgetter", "_operator.__class__", "torch.sym_max.__call__", "torch.ops", "torch.ops."),
        *("torch.ops.a.b.c.d", "torch.ops.a-b.c", "torch.ops.aten.add\n", "torch.ops.aten.add", "torch.ops.cond"),
        "torch._higher_order_ops.triton_kernel_wrap.triton_kernel_wrapper_functional",
    ],
)
def test_unusual(target: str) -> None:
    """Everything else is found attribute by attribute, or not at all."""
    assert not is_usual(target)


def test_real_files() -> None:
    """Nothing that torch wrote into a sample file is unusual."""
    for path in samples.corpus(*samples.CURRENT_LAYOUT):
        with pt2kit.open(path) as package:
            for program in package.programs.values():
                assert [step.node.target for step in walk(program) if not is_usual(step.node.target)] == []
