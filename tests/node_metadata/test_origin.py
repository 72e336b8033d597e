"""from_node and custom <-> data."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.narrow import present
from tests.node_metadata.texts import texts

from pt2kit.errors import JsonError, LimitError, Pt2Error, SchemaError
from pt2kit.node_metadata.frames import (
    MAX_CUSTOM_DEPTH,
    MAX_ORIGINS,
    NodeSource,
    dump_custom,
    dump_from_node,
    parse_custom,
    parse_from_node,
)

sources = st.recursive(
    st.builds(NodeSource, st.text(), st.text(), st.integers(-1)),
    lambda inner: st.builds(
        NodeSource, st.text(), st.text(), st.integers(), st.text(), st.text(), st.lists(inner).map(tuple)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("text", [text for _, text in texts("from_node")])
def test_real_origins(text):
    """Every text of every release is read and written back identical."""
    origins = parse_from_node(text)
    assert origins
    assert dump_from_node(origins) == text


@pytest.mark.parametrize("text", [text for _, text in texts("custom")])
def test_real_custom_values(text):
    """Every text of every release is read and written back identical."""
    assert isinstance(parse_custom(text), dict)
    assert dump_custom(parse_custom(text)) == text


@given(st.one_of(st.none(), st.lists(sources, max_size=3).map(tuple)))
def test_any_origins_survive(origins):
    """Origins are read back as they were written."""
    assert parse_from_node(dump_from_node(origins)) == origins


def test_missing_keys_take_defaults():
    """torch fills in what an origin does not say, and so does this reader."""
    assert parse_from_node('[{"name": "a", "from_node": null}, {}]') == (NodeSource("a"), NodeSource())
    assert parse_from_node("null") is None


def chain(length):
    return '[{"name":"a","from_node":' * length + "[]" + "}]" * length


REFUSED = [
    ("nope", JsonError, "nodes[0]: expected JSON, got 'Expecting value' at character 0"),
    ("{}", SchemaError, "nodes[0]: expected a list of origins, got dict"),
    ("[3]", SchemaError, "nodes[0][0]: expected an object with the keys name, target"),
    ('[{"nam": ""}]', SchemaError, "nodes[0][0]: expected an object with the keys name, target"),
    ('[{"name": 3}]', SchemaError, "nodes[0][0].name: expected text, got int"),
    ('[{"graph_id": true}]', SchemaError, "nodes[0][0].graph_id: expected an integer, got bool"),
    (
        '[{"from_node": [{"from_node": ""}]}]',
        SchemaError,
        "nodes[0][0].from_node[0].from_node: expected a list of origins, got str",
    ),
    (chain(MAX_ORIGINS + 1), LimitError, f"expected at most {MAX_ORIGINS} origins in a chain, got more"),
    (chain(900), LimitError, "expected JSON nested at most"),
    ("[" * 500_000, LimitError, "expected JSON nested at most"),
    ("[" + "9" * 5000 + "]", Pt2Error, "nodes[0]"),
]


@pytest.mark.parametrize(("text", "error", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refusals(text, error, message):
    """Text that is no list of origins gets one error of ours with the place in it."""
    with pytest.raises(error) as caught:
        parse_from_node(text, "nodes[0]")
    assert message in str(caught.value)


def test_longest_chain():
    """Exactly the stated number of origins works both ways; one more is refused both ways."""
    origins = present(parse_from_node(chain(MAX_ORIGINS)))
    assert parse_from_node(dump_from_node(origins)) == origins
    with pytest.raises(LimitError, match=f"at most {MAX_ORIGINS} origins"):
        dump_from_node([NodeSource(from_node=origins)])


def test_custom_limits():
    """Custom metadata is JSON of bounded depth."""
    with pytest.raises(LimitError, match=f"custom: expected JSON nested at most {MAX_CUSTOM_DEPTH} levels deep"):
        parse_custom("[" * (MAX_CUSTOM_DEPTH + 1) + "]" * (MAX_CUSTOM_DEPTH + 1))
    with pytest.raises(SchemaError, match=r"custom: expected a value that JSON can hold, got one it can't: .*set"):
        dump_custom({"a": {1}})
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(SchemaError, match="custom: expected a value that JSON can hold"):
        dump_custom(loop)


@given(
    st.one_of(st.text(), st.recursive(st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)).map(json.dumps))
)
def test_any_text_raises_only_our_errors(text):
    """Arbitrary text and arbitrary JSON are read or refused."""
    with contextlib.suppress(Pt2Error):
        parse_from_node(text)
    with contextlib.suppress(Pt2Error):
        parse_custom(text)
