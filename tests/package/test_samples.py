"""Sample inputs: the containers that they were, with views in place of tensors."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import samples
from tests.narrow import present
from tests.packages import rewritten
from tests.pickles import pickle_forge as forge

import pt2kit
from pt2kit.errors import PayloadError, Pt2Error, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.pickles.values import NamedTuple
from pt2kit.tensors import TensorView

RECORD = names.sample_inputs("model")
MLP = samples.sample("2.13.0", "mlp")
NAMEDTUPLE = samples.sample("2.13.0", "namedtuple_io")
EXPECTED: dict[str, Any] = json.loads(Path(__file__).with_name("sample_inputs.json").read_text())
"""Sample file -> its sample inputs, tensors as [type, values], as torch 2.13 reads them."""


def plain(value: Any) -> Any:
    """A tree of sample inputs as JSON has it: tensors by type and values, named tuples by their fields."""
    if isinstance(value, TensorView):
        return [value.describe(), value.numpy(upcast=True).tolist()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {type(value).__name__: {name: plain(getattr(value, name)) for name in value._fields}}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize("name", EXPECTED)
def test_real_files(name: str) -> None:
    """Arguments and keyword arguments come in their containers, with the numbers that torch finds in them."""
    with pt2kit.open(samples.sample("2.13.0", name)) as package:
        found = present(package.sample_inputs())
        assert isinstance(found[0], tuple)
        assert isinstance(found[1], dict)
        assert plain(found) == EXPECTED[name]


def test_named_tuples_have_their_fields() -> None:
    """A named tuple is one again: the tree spec has its fields; its class is a stub, nothing was imported."""
    with pt2kit.open(NAMEDTUPLE) as package:
        (value,), _ = present(package.sample_inputs())
    assert type(value).__name__ == "NT"
    assert type(value).__module__ == "pt2kit.treespec.stand_in"
    assert (value.a.sizes, value.b.sizes) == ((2,), (3,))


def test_nothing_stored() -> None:
    """None where the record is missing or empty."""
    for record in (None, b""):
        with pt2kit.open(rewritten(MLP, {RECORD: record})) as package:
            assert package.sample_inputs() is None


def _stored(value: Any, path: Path = MLP) -> Any:
    with pt2kit.open(rewritten(path, {RECORD: forge.payload(forge.stream(value))})) as package:
        return package.sample_inputs()


ITEM = forge.encode("k") + forge.encode([1]) + b"s"
"""Opcodes that set the item "k" of the dict on the stack to [1]."""


def test_containers_are_kept() -> None:
    """Every container that Python has comes back as it was; what is no tensor is left alone."""
    ordered = forge.Call("collections.OrderedDict", ([("b", 1), ("a", forge.tensor())],))
    args, kwargs = _stored(
        (
            (
                ordered,
                forge.Raw(forge.encode(forge.Call("collections.defaultdict", (forge.Ref("builtins.list"),))) + ITEM),
                forge.Call("collections.deque", ([1, 2], 5)),
                forge.Call("torch.Size", ((2, 3),)),
                [],
                {},
                None,
                "text",
            ),
            {"scale": 0.5},
        )
    )
    first, second, third, *rest = args
    assert isinstance(first, OrderedDict)
    assert list(first) == ["b", "a"]
    np.testing.assert_array_equal(first["a"].numpy(), [1, 2, 3, 4])
    assert isinstance(second, defaultdict)
    assert (second, second.default_factory) == ({"k": [1]}, list)
    assert (third, third.maxlen) == (deque([1, 2]), 5)
    assert (rest, kwargs) == ([(2, 3), [], {}, None, "text"], {"scale": 0.5})


def test_shared_storage_stays_shared() -> None:
    """Two inputs over one storage hold the same storage here."""
    (left, right), _ = _stored(((forge.tensor(), forge.tensor(size=(2,), offset=2)), {}))
    assert left.shares_storage(right)
    np.testing.assert_array_equal(right.numpy(), [3, 4])


def test_what_is_shared_is_converted_once() -> None:
    """A list that is in the payload once and in the value a million times costs as much as one."""
    doubled = forge.encode([1, forge.tensor()]) + b"q\x00"
    for number in range(20):
        doubled = doubled + b"0](" + b"h" + bytes([number]) + b"h" + bytes([number]) + b"eq" + bytes([number + 1])
    (found,), _ = _stored(((forge.Raw(doubled),), {}))
    for _ in range(20):
        left, right = found
        assert left is right
        found = left
    assert found[1].sizes == (4,)


def test_a_named_tuple_that_the_program_does_not_state() -> None:
    """A named tuple where the tree spec has none stays a description, with views in it."""
    ((value,), _) = _stored(((forge.Call("shop.Item", (forge.tensor(), 2), opcode=b"\x81"),), {}))
    assert isinstance(value, NamedTuple)
    assert value.class_name == "shop.Item"
    assert value.values[0].sizes == (4,)
    assert value.values[1] == 2


def test_deep_values_do_not_recurse() -> None:
    """A value as deep as the reader of pickles lets through is converted."""
    value: Any = forge.tensor()
    for _ in range(150):
        value = [value]
    (found,), _ = _stored(((value,), {}))
    for _ in range(150):
        [found] = found
    assert found.sizes == (4,)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        ([1], PayloadError, "expected (args, kwargs), a tuple and a dict, got a list"),
        (((), {}, ()), PayloadError, "got a tuple"),
        (((), {1: 2}), PayloadError, "got a tuple"),
        (((forge.Call("os.system", ("true",)),), {}), UnsupportedError, "os.system"),
        (((forge.Call("shop.Item", ()),), {}), UnsupportedError, "shop.Item"),
    ],
)
def test_refusals(value: Any, error: type[Pt2Error], text: str) -> None:
    """Values that are not arguments and keyword arguments, or need code, are refused by record."""
    with pytest.raises(error) as caught:
        _stored(value)
    assert text in str(caught.value)
    assert str(caught.value).startswith(RECORD)
