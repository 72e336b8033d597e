"""Operators that a file should not call, with the reason."""

from __future__ import annotations

import pytest

from pt2kit.checks import schemas
from pt2kit.checks.refused import REFUSED_NAMESPACES, REFUSED_OPERATORS, refusal


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("torch.ops.aten.from_file.default", "it reads or writes files"),
        ("torch.ops.c10d.send.default", "it talks to other processes"),
        ("torch.ops.higher_order.aoti_call_delegate", "it runs a compiled library"),
        ("torch.ops.aten.add.Tensor", None),
        ("torch.ops.mine.from_file.default", None),
        ("torch.ops.aten", None),
        ("_operator.add", None),
        ("", None),
    ],
)
def test_refusal(target: str, reason: str | None) -> None:
    """A refusal says what the operator does; everything else is fine."""
    assert refusal(target) == reason


def test_names_exist() -> None:
    """What torch itself registers is spelt as torch spells it."""
    table = schemas.operators("2.13")
    known = {name.rpartition(".")[0] for name in table.schemas} | {f"higher_order.{n}" for n in table.higher_order}
    own = {name for name in REFUSED_OPERATORS if name.partition(".")[0] in ("aten", "prims")}
    assert own - known == set()
    assert set(REFUSED_NAMESPACES) - {"fsdp", "static_runtime"} <= {name.partition(".")[0] for name in table.schemas}
