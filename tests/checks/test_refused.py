"""Operators that a file should not call, with the reason."""

from __future__ import annotations

import pytest

from pt2kit.checks import schemas, stored_numbers
from pt2kit.checks.kernel_sizes import RULES
from pt2kit.checks.refused import EVERYDAY, REFUSED_NAMESPACES, REFUSED_OPERATORS, TABLE, find_row, refusal
from pt2kit.schema.operator_text import Operator, parse_operator

RELEASE = "2.13"
"""The release whose operators the table of kernels was made with."""


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("torch.ops.aten.from_file.default", "it reads or writes files"),
        ("torch.ops.c10d.send.default", "it talks to other processes"),
        ("torch.ops.higher_order.aoti_call_delegate", "it runs a compiled library"),
        ("torch.ops.aten.view_copy.dtype", "it trusts its arguments with memory that they may not have"),
        ("torch.ops.aten.view_copy.dtype_out", "it trusts its arguments with memory that they may not have"),
        ("torch.ops.aten.view_copy.out", None),
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
    table = schemas.operators(RELEASE)
    known = {name.rpartition(".")[0] for name in table.schemas} | {f"higher_order.{n}" for n in table.higher_order}
    own = {name for name in REFUSED_OPERATORS if name.partition(".")[0] in ("aten", "prims")}
    assert own - known - set(table.schemas) == set()
    assert set(REFUSED_NAMESPACES) - {"fsdp", "static_runtime"} <= {name.partition(".")[0] for name in table.schemas}


def overloads(name: str) -> list[Operator]:
    """The signatures of an operator, of one overload where the name has it."""
    table = schemas.operators(RELEASE).schemas
    return [parse_operator(text) for key, text in table.items() if key == name or key.rpartition(".")[0] == name]


def test_rows_fit_their_operators() -> None:
    """What is asked of everyday operators speaks of arguments and results that they have, by rules that there are."""
    for name, row in EVERYDAY.items():
        assert not row.is_refused
        assert row.sizes in ("", *RULES), name
        assert overloads(name), name
        for condition in row.conditions:
            assert all(condition.argument in one.parameters for one in overloads(name)), (name, condition.argument)
            for origin in condition.origins:
                makers = overloads(origin.operator)
                assert bool(makers) == (origin.operator not in ("input", "computed", "file")), origin
                assert (origin.numbers in stored_numbers.RULES) == (origin.operator == "file"), origin
                # Overloads that write into `out` give no new value.
                assert not makers or any(len(maker.results) > origin.result for maker in makers), origin
                assert all(any(theirs in maker.parameters for maker in makers) for _, theirs in origin.same), origin
                assert all(any(ours in one.parameters for one in overloads(name)) for ours, _ in origin.same), origin


def test_variants() -> None:
    """What writes its result elsewhere, or into its argument, is looked at as what it is a variant of."""
    table = schemas.operators(RELEASE).schemas
    for name, row in TABLE.operators.items():
        base, _, overload = name.partition(".")[2].partition(".")
        namespace = name.partition(".")[0]
        own = {key for key in table if key.startswith(f"{namespace}.{base}.")}
        out = {key for key in own if "out: " in table[key] or key.endswith(("_out", ".out"))}
        if overload:
            out &= {f"{name}_out"}
        assert all(find_row(f"torch.ops.{key}") is row for key in out), name
        plain, in_place = f"{namespace}.{base.removesuffix('_')}", f"{namespace}.{base.removesuffix('_')}_"
        partners = {key.rpartition(".")[0] for key in table} & {plain, in_place}
        assert row.kept or overload or partners <= set(TABLE.operators) | WITHOUT_DANGER, name


WITHOUT_DANGER = {"aten._foreach_copy_"}
"""Operators that compare what their variants take on trust."""


def test_evidence() -> None:
    """The evidence is of the release of the other tables, and of overloads that it has; most rows have some."""
    assert TABLE.release.startswith(RELEASE)
    for name, row in TABLE.operators.items():
        for overload, texts in row.evidence.items():
            base = ".".join(name.split(".")[:2])
            if base.startswith(("aten.", "prims.")):
                assert f"{base}.{overload}" in schemas.operators(RELEASE).schemas, (name, overload)
            assert texts
    assert sum(bool(row.evidence) for row in TABLE.operators.values()) > 80
