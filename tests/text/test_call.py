"""The call signature of a program."""

from __future__ import annotations

from typing import Any

import pytest
from tests import samples
from tests.packages import edited

import pt2kit
from pt2kit.errors import Pt2Error
from pt2kit.text.values import CallSummary, ValueTexts, summarize_call

NESTED = samples.sample("2.13.0", "kwargs_and_nested_inputs")
MLP = samples.sample("2.13.0", "mlp")


def _call(data: Any) -> CallSummary:
    with pt2kit.open(data) as package:
        program = package.programs["model"]
        return summarize_call(program, ValueTexts(program))


@pytest.mark.parametrize("path", samples.corpus(*samples.CURRENT_LAYOUT), ids=samples.release_id)
def test_real_files(path) -> None:
    """Every sample file has a call signature, with a type for every leaf."""
    call = _call(path)
    assert call.text.startswith("forward(")
    assert "?" not in call.text
    assert call.text.isprintable() or "\n" in call.text


def test_parameters() -> None:
    """Positional parameters come by the names of the source, keywords after them."""
    call = _call(NESTED)
    assert [(row.name, row.kind) for row in call.parameters] == [
        *((name, "positional") for name in ("x", "d", "tl", "nt")),
        *((name, "keyword") for name in ("scale", "extra")),
    ]
    assert call.parameters[1].type == 'dict{"p": f32[2, 3], "q": list[f32[2, 3]]}'
    assert call.returns == 'dict{"r": f32[2, 3], "nested": list[f32[2, 3], tuple[f32[2, 3]]]}'


def _root(tree: Any) -> Any:
    return next(entry for entry in tree["graph_module"]["module_call_graph"] if entry["fqn"] == "")


def test_names_are_shown_not_pasted() -> None:
    """A name that is no identifier is quoted and escaped."""
    call = _call(edited(MLP, lambda tree: _root(tree)["signature"].update(forward_arg_names=["x=1):\x1b import os"])))
    assert call.text.startswith('forward("x=1):\\x1b import os": f32[3, 8])')


def test_names_are_taken_as_far_as_they_go() -> None:
    """Without names, parameters are numbered."""
    call = _call(edited(NESTED, lambda tree: _root(tree)["signature"].update(forward_arg_names=["x"])))
    assert [row.name for row in call.parameters] == ["x", "arg_1", "arg_2", "arg_3", "scale", "extra"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda tree: _root(tree).update(signature=None), "expected a signature of the root module, got none"),
        (lambda tree: tree["graph_module"].update(module_call_graph=[]), "got none"),
        (lambda tree: _root(tree)["signature"].update(in_spec="nope"), "in_spec: expected JSON"),
        (
            lambda tree: tree["graph_module"]["signature"]["input_specs"].pop(),
            "call: in_spec: expected 1 leaf, got 0",
        ),
        (lambda tree: tree["graph_module"]["signature"].update(output_specs=[]), "out_spec: expected 1 leaf, got 0"),
    ],
)
def test_contradictions(change, text: str) -> None:
    """A call that contradicts itself is an error that says where."""
    with pytest.raises(Pt2Error) as caught:
        _call(edited(MLP, change))
    assert text in str(caught.value)
