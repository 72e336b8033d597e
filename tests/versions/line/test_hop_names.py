"""Higher-order operators keep being the same operators under their old names."""

from __future__ import annotations

import pytest

from pt2kit.schema.operators import known_releases
from pt2kit.versions.line import hops as targets

FIRST = [
    ("torch.ops.map_impl", "torch.ops.higher_order.map_impl"),
    ("torch.ops.cond", "torch.ops.higher_order.cond"),
    ("torch.ops.higher_order.cond", "torch.ops.higher_order.cond"),
    ("torch.ops.aten.add.Tensor", "torch.ops.aten.add.Tensor"),
]
MODULES = [
    ("torch._higher_order_ops.effects.with_effects", "torch.ops.higher_order.with_effects"),
    (
        "torch._higher_order_ops.auto_functionalize.auto_functionalized",
        "torch.ops.higher_order.auto_functionalized",
    ),
    ("torch._higher_order_ops.wrap.wrap_with_set_grad_enabled", "torch.ops.higher_order.wrap_with_set_grad_enabled"),
]


@pytest.mark.parametrize(("old", "new"), FIRST)
def test_names_of_2_1(old, new):
    """Names of 2.1 are read; only map_impl has to get its old name back."""
    assert targets.from_2_1(old) == new
    assert targets.to_2_1(new) == (old if "map_impl" in old else new)


@pytest.mark.parametrize(("old", "new"), MODULES)
def test_names_of_2_4(old, new):
    """Operators that are classes of their own were called by their module up to 2.4."""
    assert targets.from_2_4(old) == new
    assert targets.to_2_4(new) == old
    assert targets.is_higher_order(old)
    assert targets.is_higher_order(new)


def test_other_modules_go_up_only():
    """An operator of another module is recognised, but what has no known old name keeps the new one."""
    assert targets.from_2_4("torch._higher_order_ops.strict_mode.strict_mode") == "torch.ops.higher_order.strict_mode"
    assert targets.to_2_4("torch.ops.higher_order.strict_mode") == "torch.ops.higher_order.strict_mode"
    assert targets.to_2_4("torch.ops.higher_order.while_loop") == "torch.ops.higher_order.while_loop"
    assert targets.to_2_4("torch.ops.aten.add.Tensor") == "torch.ops.aten.add.Tensor"


def test_first_releases():
    """Python functions whose history no table of operators has; of all others nothing is claimed."""
    assert set(targets.FUNCTIONS_SINCE.values()) <= set(known_releases())
    assert targets.having("torch._functorch.predispatch._add_batch_dim")[0] == "2.13"
    assert targets.having("torch.ops.aten.add.Tensor") == []
    assert not targets.is_higher_order("torch.ops.aten.cond.default")
