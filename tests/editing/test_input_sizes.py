"""Sizes of inputs that torch cannot tell to be sizes when it loads them."""

from __future__ import annotations

import pytest
from tests.samples import corpus, sample

import pt2kit
from pt2kit.checks.program_context import context_of
from pt2kit.editing.input_sizes import early_sizes
from pt2kit.errors import GraphError


def test_a_computed_size_before_its_symbols_is_refused() -> None:
    """An input whose size may be negative by the ranges stands behind those that have its symbols."""
    editor = pt2kit.edit(sample("2.3.1", "sym_ops"))
    editor.add_input("late", editor.value("zeros"))
    editor.check()
    editor.drop_input("late")
    editor.add_input("early", editor.value("zeros"), position=0)
    message = r"inputs\[0\]: expected an input before 'early' with a size 's0', 's1', which one of its sizes is made of"
    with pytest.raises(GraphError, match=message + r", got none \[E8\]"):
        editor.finish()


def test_programs_that_torch_wrote_have_none() -> None:
    """Sizes that are computed in real programs are sizes by their ranges, or stand behind their symbols."""
    for path in corpus():
        with pt2kit.open(path) as package:
            for model in package.layout.models:
                context = context_of(package.programs[model], model, "8.20")
                assert list(early_sizes(context)) == [], path
