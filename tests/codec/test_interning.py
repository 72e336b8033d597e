"""Entries with the same text are read once; what comes out is what reading each of them gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType
from tests import strategies

from pt2kit import codec, schema
from pt2kit.codec.shapes import Skeleton, skeleton_of
from pt2kit.errors import JsonError, Pt2Error, SchemaError
from pt2kit.schema.types import share_arguments
from pt2kit.schema.wire import FrozenList

META = schema.TensorMeta(
    schema.ScalarType.FLOAT,
    [schema.SymInt(as_int=2), schema.SymInt(as_expr=schema.SymExpr("s0", schema.SymExprHint(as_int=7)))],
    False,
    schema.Device("cpu"),
    [schema.SymInt(as_int=7), schema.SymInt(as_int=1)],
    schema.SymInt(as_int=0),
    schema.Layout.Strided,
)


def program(**graph: Any) -> schema.ExportedProgram:
    """A program with these fields of its graph."""
    empty: dict[str, Any] = {key: [] for key in ("inputs", "outputs", "nodes")}
    empty |= {"tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {}}
    return schema.ExportedProgram(
        graph_module=schema.GraphModule(
            graph=schema.Graph(**(empty | graph)),
            signature=schema.GraphSignature([], []),
            module_call_graph=[],
        ),
        opset_version={"aten": 10},
        range_constraints={"s0": schema.RangeConstraint(2, 9), "s1": schema.RangeConstraint(2, 9)},
        schema_version=schema.SchemaVersion(8, 20),
    )


def spaced(value: Any) -> bytes:
    """An object's text as torch writes it."""
    return json.dumps(codec.to_tree(value)).encode()


def values(found: schema.ExportedProgram) -> dict[str, schema.TensorMeta]:
    """The tensor values of the root graph."""
    return found.graph_module.graph.tensor_values


@pytest.fixture(autouse=True, scope="module")
def all_are_long() -> Iterator[None]:
    """Take the shortest text for a long one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pt2kit.codec.decoder._INTERN_MIN_BYTES", 0)
        yield


@pytest.fixture
def fast_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a text is read as a plain tree."""
    monkeypatch.setattr("pt2kit.codec.decoder.parse", lambda *_: pytest.fail("took the slow road"))


@pytest.mark.usefixtures("fast_only")
@pytest.mark.parametrize("write", [spaced, codec.encode], ids=["spaced", "compact"])
@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65, 200])
def test_equal_entries(write, count):
    """Each entry equals what was written; those that share an object share one that cannot change."""
    other = msgspec.structs.replace(META, sizes=[])
    whole = program(tensor_values={f"t{index}": other if index % 3 == 2 else META for index in range(count)})
    found = codec.decode(write(whole), schema.ExportedProgram, "r").value
    assert found == whole
    assert list(values(found)) == list(values(whole))
    lists = [one for meta in values(found).values() for one in (meta.sizes, meta.strides)]
    assert all(isinstance(one, FrozenList) for one in lists)
    assert len({id(one) for one in lists}) == (2 * len({index % 3 == 2 for index in range(count)}))
    assert type(found) is schema.ExportedProgram
    assert type(found.graph_module.graph) is schema.Graph


@pytest.mark.usefixtures("fast_only")
@pytest.mark.parametrize("key", ["a", "a b", "é", 'quote " back \\ slash', "", "\n", "\x00", "as_int", '","', "a.b[0]"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_any_name_is_a_key(key, ascii_only):
    """Names that need escapes, or are none to Python, are written as they were read."""
    whole = program(sym_int_values={key: schema.SymInt(as_int=1), "plain": schema.SymInt(as_int=1)})
    data = json.dumps(codec.to_tree(whole), ensure_ascii=ascii_only).encode()
    assert codec.decode(data, schema.ExportedProgram, "r").value == whole


TEXT = spaced(META).decode()
HINT = '"hint": {"as_int": 7}'
PLACE = "$.graph_module.graph.tensor_values"
REFUSED = {
    "an entry twice": (
        f'"a": {TEXT}, "b": {TEXT}, "a": {TEXT}',
        JsonError,
        f"{PLACE}: expected each key once, got 'a'",
    ),
    "an entry twice, escaped": (f'"ab": {TEXT}, "\\u0061b": {TEXT}', JsonError, f"{PLACE}: expected each key once"),
    "a key of an entry twice": (
        f'"a": {TEXT}, "b": {TEXT.replace(HINT, HINT + ", " + HINT)}',
        JsonError,
        f"{PLACE}.b.sizes[1].as_expr: expected each key once, got 'hint' twice",
    ),
    "the same in every entry": (
        f'"a": {TEXT.replace(HINT, HINT + ", " + HINT)}, "b": {TEXT.replace(HINT, HINT + ", " + HINT)}',
        JsonError,
        f"{PLACE}.a.sizes[1].as_expr: expected each key once",
    ),
    "two arms": (
        f'"a": {TEXT}, "b": {TEXT.replace(HINT, HINT.replace("}", ", " + chr(34) + "as_bool" + chr(34) + ": true}"))}',
        SchemaError,
        f"{PLACE}.b.sizes[1].as_expr.hint: expected exactly one key, got 2 (as_int, as_bool) [J4]",
    ),
    "no arm": (
        f'"a": {TEXT}, "b": {TEXT.replace(HINT, chr(34) + "hint" + chr(34) + ": {}")}',
        SchemaError,
        f"{PLACE}.b.sizes[1].as_expr.hint: expected exactly one key, got none [J4]",
    ),
    "another type": (f'"a": {TEXT}, "b": 3', SchemaError, f"{PLACE}.b: expected object, got int [J5]"),
    "a key left out": (f'"a": {TEXT}, "b": {{}}', SchemaError, f"{PLACE}.b: expected the key dtype, got none [J5]"),
    "no JSON": (f'"a": {TEXT}, "b": {{"dtype" 7}}', JsonError, "not JSON"),
}


@pytest.mark.parametrize(("entries", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_a_misfit_of_an_entry_is_placed(entries, error, message):
    """A wrong entry is refused with its path, wherever the same text stands again."""
    data = spaced(program()).decode().replace('"tensor_values": {}', f'"tensor_values": {{{entries}}}').encode()
    with pytest.raises(error) as caught:
        codec.decode(data, schema.ExportedProgram, "r")
    assert message in str(caught.value)


def test_unknown_keys_of_entries_are_kept():
    """A newer minor's key inside an entry is reported with its place, and the entry is read."""
    entries = ", ".join(f'"{name}": {TEXT[:-1]}, "brand new": 1}}' for name in "ab")
    data = spaced(program()).decode().replace('"tensor_values": {}', f'"tensor_values": {{{entries}}}').encode()
    found = codec.decode(data, schema.ExportedProgram, "r")
    assert values(found.value) == {"a": META, "b": META}
    assert [str(item) for item in found.unknown] == [f'{PLACE}.a["brand new"]', f'{PLACE}.b["brand new"]']


METAS = st.lists(strategies.values(schema.TensorMeta), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), METAS)
def test_both_roads_agree(data, metas):
    """Any text, with entries in any spelling, gives what a plain tree of it gives."""
    names = data.draw(st.lists(st.text(max_size=4), unique=True, max_size=6))
    whole = program(tensor_values={name: data.draw(st.sampled_from(metas)) for name in names})
    tree = codec.to_tree(whole)
    style: dict[str, Any] = {
        "separators": data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :"), (",", ": ")])),
        "ensure_ascii": data.draw(st.booleans()),
        "sort_keys": data.draw(st.booleans()),
        "indent": data.draw(st.sampled_from([None, 0, 1])),
    }
    text = json.dumps(tree, **style).encode()
    found = codec.decode(text, schema.ExportedProgram, "r")
    assert found == codec.convert(codec.parse(text, "r"), schema.ExportedProgram, "r")
    assert codec.to_tree(found.value) == tree


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_nothing_hides_in_an_entry(data):
    """However a text is damaged: both roads give the same, or both refuse it."""
    raw = spaced(program(tensor_values={"a": META, "b": META, "c": META}))
    at = raw.index(b"tensor_values") + data.draw(st.integers(0, 900))
    piece = data.draw(st.sampled_from([b"", b" ", b'"as_int": 7, ', b'"index": null, ', b"0", b"}", b'"a": ', b"\xff"]))
    raw = raw[:at] + piece + raw[at + data.draw(st.integers(0, 12)) :]

    def outcome(read):
        try:
            return read()
        except Pt2Error as error:
            return str(error)

    fast = outcome(lambda: codec.decode(raw, schema.ExportedProgram, "r"))
    slow = outcome(lambda: codec.convert(codec.parse(raw, "r"), schema.ExportedProgram, "r"))
    assert fast == slow


def all_entries(found: Skeleton | None) -> set[str]:
    """The fields of an skeleton_of, at all its levels, whose entries are read by their text."""
    if found is None:
        return set()
    return set(found.entries).union(*(all_entries(part) for part in found.inner.values()))


class Plain(Struct, frozen=True):
    """Nothing in it can change."""

    name: str
    flag: bool | UnsetType | None = UNSET


class Lists(Struct, frozen=True):
    """Only its own list can change."""

    plain: list[Plain]


class Deep(Struct, frozen=True):
    """A list in a list can change."""

    rows: list[list[int]]


class Below(Struct, frozen=True):
    """A struct below it can change."""

    lists: Lists | None


class Loop(Struct, frozen=True):
    """Holds its own type."""

    next: Loop | None


class Holder(Struct, frozen=True):
    """Dicts of each of them."""

    plain: dict[str, Plain]
    lists: dict[str, Lists]
    deep: dict[str, Deep]
    below: dict[str, Below]
    loop: dict[str, Loop]
    numbers: dict[str, int]
    anything: dict[str, Any]


def test_only_what_can_be_shared_is_outlined():
    """Entries that would share something that changes are read one by one."""
    assert all_entries(skeleton_of(Holder)) == {"plain", "lists"}
    assert skeleton_of(schema.PayloadConfig) is None, "its entries hold a TensorMeta, which holds lists"
    assert skeleton_of(schema.Argument) is None
    assert skeleton_of(list[schema.Device]) is None
    assert {"tensor_values", "sym_int_values", "range_constraints"} <= all_entries(skeleton_of(schema.ExportedProgram))


SHARED: codec.Share = {schema.Node: share_arguments}


def tensor(name: str) -> schema.Argument:
    return schema.Argument(as_tensor=schema.TensorArgument(name))


def chain(count: int, **last: Any) -> dict[str, Any]:
    """The tree of a program of calls, each of which uses the result of the one before twice."""
    nodes = []
    for number in range(count):
        inputs = [schema.NamedArgument(name, tensor(f"x{number}")) for name in ("self", "other")]
        nodes.append(schema.Node("add", inputs, [tensor(f"x{number + 1}")], {"é": "\n"}))
    tree: dict[str, Any] = json.loads(codec.encode(program(nodes=nodes)))
    tree["graph_module"]["graph"]["nodes"][-1].update(last)
    return tree


@pytest.mark.usefixtures("fast_only")
@pytest.mark.parametrize("write", [json.dumps, codec.encode], ids=["spaced", "compact"])
@pytest.mark.parametrize("count", [1, 2, 1023, 1024, 1025, 3000])
def test_arguments_are_shared(write, count):
    """Reading nodes some at a time gives the same program; arguments of one name are one object."""
    text = write(chain(count))
    data = text.encode() if isinstance(text, str) else text
    found = codec.decode(data, schema.ExportedProgram, "p", SHARED).value
    assert found == codec.decode(data, schema.ExportedProgram, "p").value
    arguments = [named.arg for node in found.graph_module.graph.nodes for named in node.inputs]
    arguments += [argument for node in found.graph_module.graph.nodes for argument in node.outputs]
    assert len(set(map(id, arguments))) == count + 1
    assert type(found.graph_module.graph.nodes) is FrozenList


def test_unknown_keys_and_misfits_of_nodes_that_are_shared():
    """A node with another key keeps it; one of another form is refused with its place."""
    read = codec.decode(codec.encode(chain(1100, new=[1])), schema.ExportedProgram, "p", SHARED)
    assert [str(key) for key in read.unknown] == ["$.graph_module.graph.nodes[1099].new"]
    for wrong, message in (
        ({"target": 3}, r"nodes\[1099\].target: "),
        ({"inputs": [1]}, r"nodes\[1099\].inputs\[0\]: "),
    ):
        with pytest.raises(SchemaError, match=message):
            codec.decode(codec.encode(chain(1100, **wrong)), schema.ExportedProgram, "p", SHARED)
    twice = json.dumps(chain(1100)).replace('"target": "add"', '"target": "add", "target": "add"').encode()
    with pytest.raises(JsonError, match="target"):
        codec.decode(twice, schema.ExportedProgram, "p", SHARED)
