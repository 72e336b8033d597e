"""Stored sample inputs against the inputs that a graph declares."""

from __future__ import annotations

from typing import Any

import pytest
from tests import samples
from tests.checks import mutations as m

from pt2kit.checks import check


def said(*sizes: Any) -> list[str]:
    """Return K9's messages for a file whose input is declared with these sizes; its sample is 5 by 8."""
    found = m.program(m.DYNAMIC, lambda tree: m.sizes_of(tree, "x", *sizes))
    return [problem.message for problem in check(found.data) if problem.rule == "K9"]


def test_sound() -> None:
    """The sample of a file that torch wrote fits; a symbol takes any size."""
    assert [problem for problem in check(m.DYNAMIC) if problem.rule == "K9"] == []


@pytest.mark.parametrize(("sizes", "shown"), [((4, 8), "4, 8"), ((8,), "8"), ((1, 1, 1), "1, 1, 1")])
def test_other_sizes(sizes: tuple[int, ...], shown: str) -> None:
    """Other sizes, and another rank, are reported with both."""
    (message,) = said(*sizes)
    assert message.startswith("expected the sizes of the sample input 'x', [")
    assert message.endswith(f"got [{shown}]")


@pytest.mark.parametrize("name", ["d_q_0", "scale"])
def test_inputs_in_mappings(name: str) -> None:
    """Inputs in dicts of several entries are found by the tree spec."""
    path = samples.sample("2.9.1", "kwargs_and_nested_inputs")
    found = m.program(path, lambda tree: m.sizes_of(tree, name, 77, 77))
    (message,) = [problem.message for problem in check(found.data) if problem.rule == "K9"]
    assert message.startswith(f"expected the sizes of the sample input '{name}', [")


@pytest.mark.parametrize("place", ["graph", "signature"])
def test_nested_inputs(place: str) -> None:
    """A program whose input nests too deep is reported, although its sample has no place to be compared with."""

    def change(tree: Any) -> None:
        module = tree["graph_module"]
        if place == "graph":
            module["graph"]["inputs"][-1] = m.nested(40)
        else:
            module["signature"]["input_specs"][-1]["user_input"]["arg"] = m.nested(40)

    rules = {problem.rule for problem in check(m.program(samples.sample("2.13.0", "mlp"), change).data)}
    assert rules & {"G11", "S12"}
