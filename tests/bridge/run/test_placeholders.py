"""Programs whose inputs and outputs are containers of classes that this process does not have."""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from tests.packages import bytes_of
from torch.utils import _pytree as pytree

import pt2kit
from pt2kit.bridge.placeholder_types import Placeholder
from pt2kit.errors import InputError

NAME = "library.caches.Cache"
Save = Callable[[Any, Any], None]
BOTH_SAVES = pytest.mark.parametrize("save", [torch.export.save, pt2kit.save], ids=["torch", "pt2kit"])


class Cache:
    """A cache as libraries have it: lists of tensors, and a context with more than names."""

    def __init__(self, keys: Any, values: Any) -> None:
        self.dtypes = [tensor.dtype for tensor in (*keys, *values)]
        self.keys, self.values = list(keys), list(values)


class Indexed(Cache):
    """A cache whose context says nothing about its children."""


@dataclasses.dataclass
class Pair:
    """A dataclass for `register_dataclass`."""

    first: torch.Tensor
    second: torch.Tensor | None


def _register(kind: Any, name: str) -> None:
    if dataclasses.is_dataclass(kind):
        pytree.register_dataclass(kind, serialized_type_name=name)
        return
    context: Any = {"made by": "tests"} if kind is Indexed else [["keys", "values"], [None, None]]
    keys: Any = (
        [pytree.SequenceKey(n) for n in (0, 1)] if kind is Indexed else [pytree.MappingKey(k) for k in context[0]]
    )
    pytree.register_pytree_node(
        kind,
        lambda cache: ([cache.keys, cache.values], context),
        lambda children, _: kind(*children),
        serialized_type_name=name,
        flatten_with_keys_fn=lambda cache: (list(zip(keys, [cache.keys, cache.values], strict=True)), context),
    )


@contextmanager
def registered(*kinds: Any) -> Iterator[None]:
    """Classes under the name of the library, for as long as the block runs."""
    for kind in kinds:
        _register(kind, _name(kind))
    try:
        yield
    finally:
        for kind in kinds:
            pytree.SUPPORTED_SERIALIZED_TYPES.pop(kind, None)
            pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(_name(kind), None)
            pytree.SUPPORTED_NODES.pop(kind, None)
            pytree.CONSTANT_NODES.discard(kind)


def _name(kind: Any) -> str:
    return NAME if kind is Cache else f"library.caches.{kind.__name__}"


class Step(torch.nn.Module):
    """Adds to a cache and returns it."""

    def forward(self, x: torch.Tensor, cache: Any) -> Any:
        return {"sum": x + cache.keys[0], "cache": type(cache)([x * 2, *cache.keys], [x * 3])}


class Add(torch.nn.Module):
    """Takes a dataclass and returns one."""

    def forward(self, pair: Any) -> Any:
        return Pair(pair.first + 1, pair.second * 2)


X = torch.arange(3.0)


def saved(module: Any, args: Any, *kinds: Any, save: Save = torch.export.save, shapes: Any = None) -> bytes:
    """A file of a program whose classes are registered only while it is written."""
    out = io.BytesIO()
    with registered(*kinds):
        save(torch.export.export(module, args, dynamic_shapes=shapes), out)
    return out.getvalue()


@BOTH_SAVES
def test_runs_without_the_library(save: Save) -> None:
    """A dict with the keys of the class is taken, and a mapping with attributes returned."""
    file = saved(Step(), (X, Cache([X], [X])), Cache, save=save)
    module = pt2kit.load_module(file)
    result = module(X, {"values": [X], "keys": [X]})
    assert torch.equal(result["sum"], X * 2)
    cache = result["cache"]
    assert torch.equal(cache["keys"][0], X * 2)
    assert torch.equal(cache["values"][0], X * 3)
    assert list(cache) == ["keys", "values"]
    assert NAME not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE
    program = pt2kit.load(file)
    args, kwargs = pytree.tree_unflatten([X, X, X], program.call_spec.in_spec)
    assert torch.equal(program.module()(*args, **kwargs)["cache"]["keys"][0], X * 2)
    assert torch.equal(module(*args, **kwargs)["cache"]["keys"][0], X * 2)


def test_attributes() -> None:
    """Text keys are attributes; a name that is none is an AttributeError that lists the keys."""
    result = pt2kit.load_module(saved(Add(), (Pair(X, X),), Pair))({"first": X, "second": X})
    assert torch.equal(result.first, X + 1)
    assert torch.equal(result.second, X * 2)
    with pytest.raises(AttributeError, match="expected one of the keys first, second, got third"):
        _ = result.third


def test_fields_that_are_none() -> None:
    """A field of a dataclass that is None is an attribute as well, but no key: it has no children."""

    class First(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return Pair(x + 1, None)

    module = pt2kit.load_module(saved(First(), (X,), Pair))
    for result in (module(X), copy.deepcopy(module(X)), pickle.loads(pickle.dumps(module(X)))):
        assert torch.equal(result.first, X + 1)
        assert result.second is None
        assert list(result) == ["first"]
    with pytest.raises(
        AttributeError, match=r"^placeholder of library\.caches\.Pair: expected one of the keys first, got third$"
    ):
        _ = module(X).third


def test_the_class_comes_later() -> None:
    """A class that is registered later is what outputs are made of, and is taken as an input; a dict still is."""
    module = pt2kit.load_module(saved(Step(), (X, Cache([X], [X])), Cache))
    assert isinstance(module(X, {"keys": [X], "values": [X]})["cache"], Placeholder)
    with registered(Cache):
        result = module(X, Cache([X], [X]))
        assert type(result["cache"]) is Cache
        assert torch.equal(result["cache"].keys[0], X * 2)
        assert type(module(X, {"keys": [X], "values": [X]})["cache"]) is Cache


def test_children_by_index() -> None:
    """If a context has no keys, the keys are indices, and a list is accepted."""
    module = pt2kit.load_module(saved(Step(), (X, Indexed([X], [X])), Indexed))
    result = module(X, [[X], [X]])
    assert torch.equal(result["cache"][0][0], X * 2)
    assert torch.equal(module(X, {0: [X], 1: [X]})["sum"], X * 2)


def test_other_inputs() -> None:
    """An input that is not the container is refused with the class, the keys and what was passed."""
    module = pt2kit.load_module(saved(Step(), (X, Cache([X], [X])), Cache))
    for other in (X, {"keys": [X]}, [[X], [X]], Indexed([X], [X])):
        with pytest.raises(InputError, match=rf"input cache: expected {NAME}, .* the keys 'keys', 'values'"):
            module(X, other)


def test_guards() -> None:
    """Conditions on the sizes of values in a container are held, by attributes as well as by keys."""
    dim = torch.export.Dim("n", min=2, max=8)
    file = saved(Add(), (Pair(X, X),), Pair, shapes=([{0: dim}, {0: dim}],))
    module = pt2kit.load_module(file)
    assert module({"first": torch.ones(5), "second": torch.ones(5)}).first.shape == (5,)
    with pytest.raises(InputError, match=r"input pair\.second: size of dimension 0"):
        module({"first": torch.ones(5), "second": torch.ones(6)})
    program = pt2kit.load(file)
    (args, kwargs) = pytree.tree_unflatten([torch.ones(5), torch.ones(5)], program.call_spec.in_spec)
    assert program.module()(*args, **kwargs).first.shape == (5,)


def test_saved_again() -> None:
    """Saving writes the names of the library; with it, torch loads the file."""
    again = bytes_of(pt2kit.save, pt2kit.load(saved(Step(), (X, Cache([X], [X])), Cache)))
    with registered(Cache):
        result = torch.export.load(io.BytesIO(again)).module()(X, Cache([X], [X]))
    assert type(result["cache"]) is Cache
    inputs = bytes_of(pt2kit.save, pt2kit.load(saved(Add(), (Pair(X, X),), Pair)))
    with registered(Pair):
        assert torch.export.load(io.BytesIO(inputs)).module()(Pair(X, X)).first.shape == (3,)


def test_under_torch() -> None:
    """Placeholders go through torch.compile, another export, copies and pickles."""
    module = pt2kit.load_module(saved(Add(), (Pair(X, X),), Pair))
    given = {"first": X, "second": X}
    assert torch.equal(torch.compile(module, backend="eager", fullgraph=True)(given).first, X + 1)
    assert torch.equal(torch.export.export(module, (given,)).module()(given).first, X + 1)
    result = module(given)
    for other in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert pytree.tree_structure(other) == pytree.tree_structure(result)


def test_nothing_is_registered() -> None:
    """Loading and calling leave torch's tables of containers as they were, whatever names the file has."""
    before = dict(pytree.SUPPORTED_NODES), dict(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)
    file = saved(Step(), (X, Cache([X], [X])), Cache)
    pt2kit.load_module(file)(X, {"keys": [X], "values": [X]})
    pt2kit.load(file)
    assert (dict(pytree.SUPPORTED_NODES), dict(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)) == before
