"""Names of values that no variable of Python can have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.packages import edited
from tests.samples import sample

import pt2kit

DYNAMIC = sample("2.13.0", "dynamic_batch").read_bytes()


def renamed(old: str, new: str) -> bytes:
    """A file with another name for a value."""

    def change(tree: Any) -> None:
        text = json.dumps(tree).replace(f'"name": "{old}"', f'"name": {json.dumps(new)}')
        tree.clear()
        tree.update(json.loads(text.replace(f'"{old}": {{"dtype"', f'{json.dumps(new)}: {{"dtype"')))

    return edited(DYNAMIC, change)


@pytest.mark.parametrize(
    "name", ["lambda", "self", "None", "__debug__", "\uff4c\uff41\uff4d\uff42\uff44\uff41", "\xaa"]
)
@pytest.mark.parametrize(("old", "place"), [("x", "inputs[4]"), ("relu", "nodes[1].outputs[0]")])
def test_names_that_no_variable_can_have(name: str, old: str, place: str) -> None:
    """Keywords, `self`, `__debug__` and other spellings of identifiers are found where they are made."""
    found = [problem for problem in pt2kit.check(renamed(old, name)) if problem.rule == "G8"]
    assert [problem.loc for problem in found] == [f"models/model.json: $.graph_module.graph.{place}"]
    assert found[0].message == f"expected a name that a variable of Python can have, got {name!r}"


@pytest.mark.parametrize("name", ["print", "args", "\xe9t\xe9", "_", "match"])
def test_names_that_a_variable_can_have(name: str) -> None:
    """Names of Python's own functions, and letters of other alphabets, are names."""
    assert [problem for problem in pt2kit.check(renamed("relu", name)) if problem.rule == "G8"] == []


def test_reading_takes_them() -> None:
    """Such a file is read and shown."""
    with pt2kit.open(renamed("relu", "lambda")) as package:
        assert package.programs["model"].graph_module.graph.nodes[1].outputs[0].value.name == "lambda"
