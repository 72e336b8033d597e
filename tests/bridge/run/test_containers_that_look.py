"""Containers among the inputs whose constructor inspects its elements, as the KV caches of libraries do."""

from __future__ import annotations

import io
import zipfile
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from tests.packages import bytes_of
from torch.utils import _pytree as pytree

import pt2kit
from pt2kit.errors import InputError


class Cache:
    """Keys and values of a layer; it asks each element for its dtype, and refuses what has none."""

    def __init__(self, keys: Any, values: Any) -> None:
        self.dtype = (keys.dtype, values.dtype)
        self.keys, self.values = keys, values


@dataclass
class Mask:
    """Two tensors as fields."""

    before: Any
    after: Any


Pair = namedtuple("Pair", "first second")
NAMES = ("tests.Cache", "tests.Pair")


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    pytree.register_pytree_node(
        Cache,
        lambda cache: ([cache.keys, cache.values], ["keys", "values"]),
        lambda children, context: Cache(*children),
        serialized_type_name=NAMES[0],
        flatten_with_keys_fn=lambda cache: (
            [(pytree.MappingKey("keys"), cache.keys), (pytree.MappingKey("values"), cache.values)],
            ["keys", "values"],
        ),
    )
    pytree._register_namedtuple(Pair, serialized_type_name=NAMES[1])
    yield
    for kind, name in ((Cache, NAMES[0]), (Pair, NAMES[1])):
        pytree.SUPPORTED_SERIALIZED_TYPES.pop(kind, None)
        pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(name, None)
        pytree.SUPPORTED_NODES.pop(kind, None)
        pytree.CONSTANT_NODES.discard(kind)


class Attend(torch.nn.Module):
    """Uses everything in nested containers."""

    def forward(self, x: torch.Tensor, cache: Any, *, more: Any) -> Any:
        return x + sum(leaf.sum() for leaf in pytree.tree_leaves((cache, more)))


def without_samples(data: bytes) -> bytes:
    """The file without its sample inputs."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            if "sample_inputs" not in name:
                target.writestr(name, source.read(name))
    return out.getvalue()


def ones() -> torch.Tensor:
    return torch.ones(2)


def _default() -> Any:
    made: defaultdict[str, Any] = defaultdict(list)
    made["k"] = Cache(ones(), ones())
    return made


MORE: dict[str, Any] = {
    "cache": lambda: Cache(ones(), ones()),
    "list of caches": lambda: [Cache(ones(), ones()), Cache(ones(), ones())],
    "dict": lambda: {"b": Cache(ones(), ones()), "a": ones()},
    "ordered": lambda: OrderedDict(b=ones(), a=Cache(ones(), ones())),
    "default": _default,
    "named tuple": lambda: Pair(ones(), Cache(ones(), ones())),
    "tuple": lambda: (ones(), (), Cache(ones(), ones())),
}


@pytest.mark.parametrize("more", MORE)
def test_runs(more: str) -> None:
    """With sample inputs and without, the module is called with the library's own objects, and gives torch's result."""
    call = (ones(), Cache(ones(), ones())), {"more": MORE[more]()}
    saved = bytes_of(torch.export.save, torch.export.export(Attend(), *call))
    wanted = Attend()(*call[0], **call[1])
    for data in (saved, without_samples(saved)):
        assert torch.equal(pt2kit.load_module(data)(*call[0], **call[1]), wanted)


def test_places_in_messages() -> None:
    """An input of another size is named by its way through the containers, whether they can be built or not."""
    call = (ones(), Cache(ones(), ones())), {"more": Pair(ones(), {"k": ones()})}
    module = pt2kit.load_module(without_samples(bytes_of(torch.export.save, torch.export.export(Attend(), *call))))
    with pytest.raises(InputError, match=r"input cache\['values'\]: size of dimension 0"):
        module(ones(), Cache(ones(), torch.ones(3)), more=call[1]["more"])
    with pytest.raises(InputError, match=r"input more\.second\['k'\]: size of dimension 0"):
        module(*call[0], more=Pair(ones(), {"k": torch.ones(3)}))


def test_named_tuples_in_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other containers than a named tuple are refused with its name and fields, registered or not."""
    saved = bytes_of(torch.export.save, torch.export.export(Attend(), (ones(), Pair(ones(), ones())), {"more": []}))
    for name in ("Pair", NAMES[1]):
        module = pt2kit.load_module(saved)
        with pytest.raises(InputError) as caught:
            module(ones(), (ones(), ones()), more=[])
        assert str(caught.value) == (
            f"input cache: expected a namedtuple {name} of the fields first, second, got a tuple of 2"
        )
        monkeypatch.delitem(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE, NAMES[1], raising=False)


def test_fields_of_data_classes_in_messages() -> None:
    """Without sample inputs, a field of a registered data class is an attribute on the way to an input."""
    name = "tests.Mask"
    pytree.register_dataclass(Mask, serialized_type_name=name)
    try:
        program = torch.export.export(Attend(), (ones(), Mask(ones(), ones())), {"more": ones()})
        module = pt2kit.load_module(without_samples(bytes_of(torch.export.save, program)))
        with pytest.raises(InputError, match=r"input cache\.after: size of dimension 0"):
            module(ones(), Mask(ones(), torch.ones(3)), more=ones())
    finally:
        pytree._deregister_pytree_node(Mask)
