"""Modules among the inputs: their classes are found only if they are trusted."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.zoo import zoo
from tests.bridge.zoo.programs_calling import Layer
from tests.packages import bytes_of

from pt2kit.bridge.load import load
from pt2kit.bridge.read.treespecs import Prototype, find_module_class, module_context
from pt2kit.bridge.save import save
from pt2kit.errors import SchemaError, UnsupportedError
from pt2kit.treespec import LEAF, TreeSpec, context_text

NAME = "tests.bridge.zoo.programs_calling.Layer"
PROGRAM = next(program for program in zoo.programs() if program.name == "module_input")


def file() -> bytes:
    """The program of the zoo, saved."""
    return bytes_of(save, zoo.exported(PROGRAM))


@pytest.mark.filterwarnings("ignore")
def test_trusted() -> None:
    """With its class trusted, the program is the one that was saved, and can be called."""
    program = load(file(), trust=(NAME,))
    program.validate()
    ((args, kwargs),) = PROGRAM.calls()
    assert torch.equal(program.module()(*args, **kwargs), zoo.exported(PROGRAM).module()(*args, **kwargs))
    assert type(program.example_inputs[0][1]) is Layer


def test_not_trusted() -> None:
    """Without, it is refused and told by name, and what to do."""
    with pytest.raises(SchemaError, match=rf"the container type {NAME}\. .*modules among the inputs.*trust="):
        load(file())


@pytest.mark.parametrize(
    ("name", "trust", "found"),
    [
        (NAME, (NAME,), Layer),
        (NAME, (), None),
        (NAME, ("tests.bridge.zoo.programs_calling",), None),
        ("os.system", ("os.system",), None),
        ("collections.OrderedDict", ("collections.OrderedDict",), None),
    ],
)
def test_find(name: str, trust: tuple[str, ...], found: Any) -> None:
    """Only what is trusted, by its whole name, and only modules."""
    assert find_module_class(name, frozenset(trust)) is found


@pytest.mark.parametrize("name", ["no_such_module_of_ours.A", "os.no_such_name", "plain", ".A", ""])
def test_cannot_be_imported(name: str) -> None:
    """A trusted name that is not there is an error of ours."""
    with pytest.raises(UnsupportedError, match=r"trust: expected .* to be importable, got"):
        find_module_class(name, frozenset({name}))


@pytest.mark.parametrize("stored", [None, [], [["a"]], [["a", 1], None], ["a", None], [["a"], None], {"a": 1}])
def test_bad_context(stored: Any) -> None:
    """A context that does not name each tensor is refused."""
    node = TreeSpec(NAME, context_text(stored), (LEAF, LEAF))
    with pytest.raises(SchemaError, match=r"in_spec: tests.*Layer: expected"):
        module_context(node, Layer, "in_spec")


def test_prototypes() -> None:
    """Prototypes are equal for one class, as torch compares them."""
    assert Prototype(Layer) == Prototype(Layer)
    assert Prototype(Layer) != Prototype(torch.nn.Linear)
    assert Prototype(Layer)() is None
