"""Sample inputs: moved, dropped by name, or refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from tests import samples
from tests.narrow import instance
from tests.packages import edited, rewritten
from tests.pickles import pickle_forge as forge
from tests.sanitizing.files import sanitized

import pt2kit
from pt2kit.errors import JsonError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.tensors import TensorView
from pt2kit.treespec import Node

MLP = samples.sample("2.13.0", "mlp")
RECORD = names.sample_inputs("model")
INDEX = "extra/pt2kit/sample_inputs/model.json"


def stored(value: Any, **options: Any) -> bytes:
    """A file with other sample inputs."""
    return rewritten(MLP, {RECORD: forge.payload(forge.stream(value), **options)})


def read(data: bytes) -> Any:
    """The sample inputs of a file; the numbers of plain arguments can be read when it is closed."""
    with pt2kit.open(data) as package:
        found = package.sample_inputs()
        stack = list(found[0]) if found else []
        while stack:
            item = stack.pop()
            stack += item.children if isinstance(item, Node) else []
            if isinstance(item, TensorView):
                item.storage.read()
        return found


def rewritten_clean(records: dict[str, bytes | None]) -> bytes:
    """A sanitized file with other records."""
    return rewritten(io.BytesIO(sanitized(MLP)[0]), records)


def test_the_index_is_no_extra_file() -> None:
    """The index is the format's, not the user's: it is not among the extra files, and an old one is replaced."""
    data = rewritten(MLP, {INDEX: b"an old one"})
    with pt2kit.open(data) as package:
        assert dict(package.extra_files) == {}
        assert package.sample_inputs() is not None
    assert sanitized(data)[0] == sanitized(MLP)[0]


def test_shared_storages() -> None:
    """Two tensors over one storage share it again, and the record is there once."""
    value: Any = ((forge.tensor(), forge.tensor(size=(2,), offset=2)), {})
    payload = forge.payload(forge.stream(value))
    data = rewritten(io.BytesIO(edited(MLP, spec_of("%(leaf)s,%(leaf)s"))), {RECORD: payload})
    (left, right), _ = read(sanitized(data)[0])
    assert left.shares_storage(right)
    np.testing.assert_array_equal(right.numpy(), [3, 4])


def test_dropped_by_name() -> None:
    """Sample inputs are dropped by name, whatever they contain; the report lists them."""
    hostile = stored(((forge.Call("os.system", ("true",)),), {}))
    for data in (MLP, hostile):
        clean, done = sanitized(data, drop=["sample-inputs"])
        assert read(clean) is None
        assert done.dropped == ("sample inputs of model",)
        assert done.moved == ()
    assert sanitized(sanitized(MLP, drop=["sample-inputs"])[0], drop=["sample-inputs"])[1].dropped == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (((forge.Call("os.system", ("true",)),), {}), r"os\.system"),
        (((forge.Build(forge.Call("shop.Item", ()), {"a": 1}),), {}), r"shop\.Item"),
        (((forge.Ref("builtins.eval"),), {}), r"builtins\.eval"),
        ([1], "a list"),
        (((), {1: 2}), "a tuple"),
        (((1, 2), {}), "of length 1, got 2"),
        (((b"x",), {}), "a bytes"),
        (((forge.tensor(metadata={"conj": False, "neg": True}),), {}), "conjugate"),
    ],
)
def test_refused(value: Any, text: str) -> None:
    """Values that call code are refused by the name of the call, with what to do."""
    with pytest.raises(UnsupportedError, match=rf"data/sample_inputs/model\.pt: expected sample inputs.*{text}.*X1"):
        sanitized(stored(value))


def spec_of(child: str) -> Any:
    """Changes the structure of the inputs to one child of another type."""

    def change(tree: Any) -> None:
        signature = tree["graph_module"]["module_call_graph"][0]["signature"]
        leaf = '{"type":null,"context":null,"children_spec":[]}'
        args = f'{{"type":"builtins.tuple","context":"null","children_spec":[{child % {"leaf": leaf}}]}}'
        kwargs = '{"type":"builtins.dict","context":"[]","children_spec":[]}'
        signature["in_spec"] = f'[1,{{"type":"builtins.tuple","context":"null","children_spec":[{args},{kwargs}]}}]'

    return change


OBJECT = r'{"type":"shop.Item","context":"[[\"a\"],[\"b\"]]","children_spec":[%(leaf)s]}'


def test_objects_of_registered_classes() -> None:
    """An object that stands where the program has a container is moved by its fields; its class is not in the index."""
    item = forge.Build(forge.Call("shop_private.Item", (), opcode=b"\x81"), {"a": forge.tensor(), "b": None})
    payload = forge.payload(forge.stream(((item,), {})))
    data = rewritten(io.BytesIO(edited(MLP, spec_of(OBJECT))), {RECORD: payload})
    clean, done = sanitized(data)
    assert done.moved == ("model",)
    ((found,), _) = read(clean)
    assert isinstance(found, Node)
    np.testing.assert_array_equal(instance(TensorView, found.children[0]).numpy(), [1, 2, 3, 4])
    assert b"shop_private" not in clean
    assert sanitized(clean)[0] == clean


@pytest.mark.parametrize(
    "item",
    [
        forge.Build(forge.Call("shop.Item", (), opcode=b"\x81"), {"a": 1, "b": 2}),
        forge.Build(forge.Call("shop.Item", (), opcode=b"\x81"), {"b": 2}),
        forge.Build(forge.Call("shop.Item", ("x",)), {"a": 1}),
        forge.Build(forge.Call("shop.Item", (), opcode=b"\x81"), {"a": forge.Call("os.getcwd", ())}),
    ],
    ids=["a field more", "a field less", "arguments", "a call inside"],
)
def test_objects_that_hold_more(item: Any) -> None:
    """An object whose fields are not those of the program's container is refused: something would be lost."""
    payload = forge.payload(forge.stream(((item,), {})))
    data = rewritten(io.BytesIO(edited(MLP, spec_of(OBJECT))), {RECORD: payload})
    with pytest.raises(UnsupportedError, match="X1"):
        sanitized(data)


def test_other_leaves_than_the_program_has() -> None:
    """An index must have the leaves of the program; what cannot be read cannot be sanitized."""
    for content, text in (
        (b'{"format":"pt2kit sample inputs 2","leaves":[],"config":{}}', "expected 1 leaf, got 0"),
        (b"[", "not JSON"),
    ):
        data = rewritten_clean({INDEX: content})
        with pytest.raises((PayloadError, JsonError), match=text) as caught:
            read(data)
        assert str(caught.value).startswith(INDEX)
        with pytest.raises(UnsupportedError, match="X1"):
            sanitized(data)


def test_a_pickle_counts() -> None:
    """If there is a pickle, the index next to it is ignored."""
    with pt2kit.open(MLP) as package:
        pickle = bytes(package.archive.read(package.layout.record(RECORD)))
    wanted = read(MLP.read_bytes())[0][0].tobytes()
    data = rewritten_clean({RECORD: pickle, INDEX: b"["})
    assert read(data)[0][0].tobytes() == wanted


def test_damaged_storages() -> None:
    """A flipped bit in a moved tensor is found when it is read."""
    clean = sanitized(MLP)[0]
    with pt2kit.open(clean) as package:
        offset = package.archive.data_offset(package.layout.record("data/sample_inputs/tensor_0"))
    damaged = bytearray(clean)
    damaged[offset] ^= 1
    with pytest.raises(Pt2Error, match="CRC"):
        read(bytes(damaged))
