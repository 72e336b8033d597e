"""The signature that is read without torch is the one that torch reads."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bridge import recorded
from tests.graph.build import program
from tests.samples import corpus, release_id, sample
from torch.export import graph_signature as theirs

from pt2kit import signature as ours
from pt2kit.graph import BUILTIN_NAMESPACES

VIEWS = sorted(name for name, held in vars(ours.ExportGraphSignature).items() if isinstance(held, property))
NAMES = ("InputKind", "OutputKind", "InputSpec", "OutputSpec", "ExportBackwardSignature", "ExportGraphSignature")


def loadable(path: Path) -> bool:
    """Return whether torch can load a sample without additional operators or classes."""
    return not path.stem.startswith(("custom_op", "namedtuple_io", "kwargs_and_nested_inputs", "const_output"))


SAMPLES = [path for path in recorded.readable(corpus("2.9.1", "2.13.0", "2.15.0")) if loadable(path)]


def load(path: Path) -> theirs.ExportGraphSignature:
    """The signature that torch reads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.load(str(path)).graph_signature


def same(mine: Any, other: Any) -> bool:
    """Return whether two specs, arguments or values are equal, with the same field names and types."""
    if isinstance(other, Mapping):
        return isinstance(mine, Mapping) and list(mine.items()) == list(other.items())
    if hasattr(other, "__dataclass_fields__"):
        names = [field.name for field in fields(other) if field.name != "fake_val"]
        if type(mine).__name__ != type(other).__name__ or [field.name for field in fields(mine)] != names:
            return False
        return all(same(getattr(mine, name), getattr(other, name)) for name in names)
    if isinstance(other, (theirs.InputKind, theirs.OutputKind)):
        return type(mine).__name__ == type(other).__name__ and (mine.name, mine.value) == (other.name, other.value)
    if isinstance(other, (list, tuple)):
        return type(mine) is type(other) and len(mine) == len(other) and all(map(same, mine, other))
    return isinstance(mine, type(other)) and mine == other


@pytest.mark.parametrize("path", SAMPLES, ids=release_id)
def test_real_signatures(path: Path) -> None:
    """Every spec, every view and the text are torch's, for every sample that torch loads."""
    other = load(path)
    mine = ours.from_schema(program(path).graph_module)
    assert same(mine, other)
    for view in VIEWS:
        assert same(getattr(mine, view), getattr(other, view)), view
    assert str(mine) == str(other)


def test_there_are_no_other_views() -> None:
    """Torch's class has the properties that ours has, and no more."""
    assert (
        sorted(name for name, held in vars(theirs.ExportGraphSignature).items() if isinstance(held, property)) == VIEWS
    )


@pytest.mark.parametrize("name", NAMES)
def test_classes_have_the_same_fields(name: str) -> None:
    """Kinds have torch's members in torch's order, specs have torch's fields in torch's order."""
    mine, other = getattr(ours, name), getattr(theirs, name)
    if name.endswith("Kind"):
        assert {kind.name: kind.value for kind in mine} == {kind.name: kind.value for kind in other}
    else:
        assert [field.name for field in fields(mine)] == [field.name for field in fields(other)]


RENAMED = ["input_mutation__decomp", "print_effect__decomp", "training_loss_joint", "none_input"]


@pytest.mark.parametrize("name", RENAMED)
def test_renaming(name: str) -> None:
    """Renaming any value changes what it changes in torch."""
    path = sample("2.13.0", name)
    read = program(path).graph_module
    names = {spec.arg.name for spec in ours.from_schema(read).input_specs}
    names |= {spec.arg.name for spec in ours.from_schema(read).output_specs}
    other = load(path)
    mine = ours.from_schema(read)
    for old in sorted(names - {""}):
        mine.replace_all_uses(old, f"{old}_new")
        other.replace_all_uses(old, f"{old}_new")
        assert same(mine, other), old


@pytest.mark.parametrize("replace_inputs", [False, True])
def test_replace_hook(replace_inputs: bool) -> None:
    """A hook follows the same replacements as torch's when a pass replaces every node of a program."""
    path = sample("2.13.0", "buffer_mutation__decomp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = torch.export.load(str(path))
    other, mine = loaded.graph_signature, ours.from_schema(program(path).graph_module)
    hooks = [signature.get_replace_hook(replace_inputs) for signature in (other, mine)]
    for node in loaded.graph.nodes:
        for user in node.users:
            for hook in hooks:
                hook(node, f"{node.name}_new", user)
    assert same(mine, other)
    assert any("_new" in str(held) for held in mine.user_outputs)


def test_namespaces_of_torch_are_not_custom() -> None:
    """Every namespace that torch itself has registered operators in is a built-in one."""
    listing = "import torch; print(*{name.partition('::')[0] for name in torch._C._dispatch_get_all_op_names()})"
    # A process of its own: other tests register operators of theirs in this one.
    process = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    assert set(process.stdout.split()) - BUILTIN_NAMESPACES == set()
