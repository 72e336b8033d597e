"""The operators of every release: what the table says, and what it is asked."""

from __future__ import annotations

import pytest

from pt2kit.errors import VersionError
from pt2kit.schema.operators import find_operator, operators_of, release_operators


def test_an_operator_is_found_by_the_name_that_targets_have():
    """The overload without a name is the default one."""
    assert operators_of("2.1")["aten.relu.default"] == "aten::relu(Tensor self) -> Tensor"
    assert "aten.add.Tensor" in operators_of("2.13")


def test_what_changed_between_releases():
    """Arguments that came, operators that came and went."""
    old = find_operator("aten.scaled_dot_product_attention.default", "2.1")
    new = find_operator("aten.scaled_dot_product_attention.default", "2.13")
    assert old is not None
    assert new is not None
    assert [name for name in new.parameters if name not in old.parameters] == ["enable_gqa"]
    assert find_operator("aten._scaled_dot_product_flash_attention_for_cpu.default", "2.1") is None
    assert find_operator("aten._scaled_dot_product_flash_attention_for_cpu.default", "2.13") is not None


def test_operators_without_schemas():
    """Higher-order operators and Python functions are known by release as well."""
    old, new = release_operators("2.1"), release_operators("2.13")
    assert {"cond", "map_impl"} <= old.higher_order
    assert "scan" not in old.higher_order
    assert "scan" in new.higher_order
    assert "_operator.add" in old.functions & new.functions
    assert "torch.sym_ite" in new.functions - old.functions


def test_a_release_that_the_table_does_not_have():
    """The message lists those that it has."""
    with pytest.raises(VersionError, match=r"expected a release of torch that the table has \(2\.1, .*got '1\.13'"):
        operators_of("1.13")
