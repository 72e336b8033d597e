"""Sizes of inputs that torch cannot tell to be sizes when it loads them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.packages import edited
from tests.samples import corpus, sample

import pt2kit
from pt2kit.checks.expressions import input_size_problems
from pt2kit.checks.findings import context_of
from pt2kit.errors import GraphError, Problem


def test_a_computed_size_before_its_symbols_is_refused() -> None:
    """An input whose size may be negative by the ranges stands behind those that have its symbols."""
    editor = pt2kit.edit(sample("2.3.1", "sym_ops"))
    editor.add_input("late", editor.value("zeros"))
    editor.check()
    editor.drop_input("late")
    editor.add_input("early", editor.value("zeros"), position=0)
    message = r"inputs\[0\]: expected an input before 'early' with a size 's0', 's1', which one of its sizes is made of"
    with pytest.raises(GraphError, match=message + r", got none; by the ranges alone that may be negative \[E8\]"):
        editor.finish()


def test_programs_that_torch_wrote_have_none() -> None:
    """Sizes that are computed in real programs are sizes by their ranges, or stand behind their symbols."""
    for path in corpus():
        with pt2kit.open(path) as package:
            for model in package.layout.models:
                context = context_of(package.programs[model], model, "8.20")
                assert list(input_size_problems(context)) == [], path


def sized(size: str, *, low: int = 2, torch_version: str = "2.13.0") -> list[Problem]:
    """Return the problems of a program whose first input has a size computed from the others."""

    def change(tree: Any) -> None:
        graph = tree["graph_module"]["graph"]
        tree["torch_version"] = torch_version
        tree["range_constraints"]["s77"]["min_val"] = low
        value = {"as_expr": {"expr_str": size, "hint": {"as_int": 3}}}
        graph["tensor_values"]["early"] = {**graph["tensor_values"]["x"], "sizes": [value], "strides": [{"as_int": 1}]}
        graph["inputs"].insert(0, {"as_tensor": {"name": "early"}})

    found = pt2kit.check(edited(sample("2.13.0", "sym_ops").read_bytes(), change))
    return [problem for problem in found if problem.rule == "E8"]


EARLY = r"inputs\[0\]: expected an input before 'early' with a size 's77', which one of its sizes is made of, got none"
S77 = "Symbol('s77', positive=True, integer=True)"


def test_a_size_that_may_be_negative() -> None:
    """An error shows when it is; where it never is, torch may still not be able to tell; older releases load both."""
    (found,) = sized(f"Add({S77}, Integer(-4))")
    assert re.search(
        f"{EARLY}; by the ranges alone that may be negative: where s77 is 2$", str(found).partition(" [")[0]
    )
    assert found.severity == "error"
    assert [problem.severity for problem in sized(f"Add({S77}, Integer(-4))", torch_version="2.8.0")] == ["warning"]
    (unsure,) = sized(f"Add({S77}, Mul(Integer(-1), FloorDiv({S77}, Integer(2))))")
    assert unsure.severity == "warning"
    assert unsure.message.endswith("by the ranges alone that may be negative")


@pytest.mark.parametrize(
    ("size", "low"),
    [(f"Mul(Integer(3), {S77})", 0), (f"Add({S77}, Integer(-4))", 4), (f"FloorDiv({S77}, Integer(9))", 0)],
)
def test_a_size_that_cannot(size: str, low: int) -> None:
    """A size that is 0 or more by the ranges may precede its symbols."""
    assert sized(size, low=low) == []
