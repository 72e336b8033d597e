"""Tree spec text <-> TreeSpec."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.treespec.trees import any_specs, leaves_of, spec_of, values

from pt2kit.errors import JsonError, LimitError, Pt2Error, SchemaError, VersionError
from pt2kit.treespec import (
    LEAF,
    MAX_DEPTH,
    TreeSpec,
    context_text,
    context_value,
    depth,
    dump,
    inner_context,
    leaf_count,
    map_nodes,
    parse,
)

SPECS = json.loads(Path(__file__).with_name("specs.json").read_text(encoding="utf-8"))["specs"]
LEAF_TEXT = '{"type": null, "context": null, "children_spec": []}'


def nested(levels: int) -> str:
    opened = '{"type": "builtins.list", "context": "null", "children_spec": [' * levels
    return f"[1, {opened}{LEAF_TEXT}{']}' * levels}]"


@pytest.mark.parametrize("case", SPECS, ids=lambda case: f"{case['release']}-{case['leaves']}")
def test_real_texts_come_back_identical(case):
    """Every spec text that a release wrote parses, counts its leaves and is written back byte for byte."""
    spec = parse(case["text"])
    assert dump(spec) == case["text"]
    assert leaf_count(spec) == case["leaves"]


@given(any_specs)
def test_dump_then_parse_is_the_same_spec(spec):
    """Any spec, with any context, survives being written and read."""
    assert parse(dump(spec)) == spec


@given(values)
def test_leaf_count_and_depth(value):
    """The count is the number of leaves of the value; walking meets every container."""
    spec = spec_of(value)
    assert leaf_count(spec) == len(leaves_of(value))
    assert depth(spec) == 0 if spec.is_leaf else depth(spec) == 1 + max(map(depth, spec.children), default=0)


REFUSALS = [
    ("nope", JsonError, "in_spec: expected JSON, got 'Expecting value' at character 0"),
    ("[1, 2", JsonError, "at character 5"),
    ("[1, 2] 3", JsonError, "Extra data"),
    ('[1, {"type": null, "type": null, "context": null, "children_spec": []}]', JsonError, "'type' 2 times"),
    (f"[1, {'9' * 5000}]", Pt2Error, "in_spec"),
    ("{}", SchemaError, "in_spec: expected a list [protocol, node], got an empty object"),
    ("[1]", SchemaError, "got a list of 1"),
    ("null", SchemaError, "got None"),
    (f"[2, {LEAF_TEXT}]", VersionError, "in_spec: expected tree spec protocol 1, got 2"),
    (f"[true, {LEAF_TEXT}]", VersionError, "expected tree spec protocol 1, got True"),
    ("[1, []]", SchemaError, "in_spec: $[1]: expected an object with the keys type, context, children_spec"),
    ('[1, {"type": null, "context": null}]', SchemaError, "got an object with the keys 'type', 'context'"),
    (
        '[1, {"type": "t", "context": null, "children_spec": [3]}]',
        SchemaError,
        "in_spec: $[1].children_spec[0]: expected an object",
    ),
    ('[1, {"type": "t", "context": null, "children_spec": {}}]', SchemaError, "$[1].children_spec: expected a list"),
    ('[1, {"type": 3, "context": null, "children_spec": []}]', SchemaError, "$[1].type: expected a type name or null"),
    (
        '[1, {"type": null, "context": "x", "children_spec": []}]',
        SchemaError,
        "expected a leaf (type null) without context and children, got context 'x' and 0 children",
    ),
    (f'[1, {{"type": null, "context": null, "children_spec": [{LEAF_TEXT}]}}]', SchemaError, "and 1 child"),
    (nested(MAX_DEPTH + 1), LimitError, f"expected at most {MAX_DEPTH} containers inside each other, got more"),
    (nested(800), LimitError, "expected JSON nested at most"),
    ("[" * 1_000_000, LimitError, "expected JSON nested at most"),
]


@pytest.mark.parametrize(("text", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals_say_where_and_what(text, error, message):
    """Text that is no tree spec gets one error of ours with the place in it."""
    with pytest.raises(error) as caught:
        parse(text, "in_spec")
    assert message in str(caught.value)
    assert str(caught.value).startswith("in_spec")


def test_deepest_spec_is_read_and_written():
    """Exactly the stated number of nested containers works both ways; one more is refused both ways."""
    spec = parse(nested(MAX_DEPTH))
    assert depth(spec) == MAX_DEPTH
    assert dump(spec) == nested(MAX_DEPTH)
    with pytest.raises(LimitError, match=f"at most {MAX_DEPTH} containers inside each other, got {MAX_DEPTH + 1}"):
        dump(TreeSpec("builtins.list", context_text(None), (spec,)))


@settings(max_examples=300)
@given(st.text())
def test_any_text_raises_only_our_errors(text):
    """Arbitrary text is parsed or refused."""
    with contextlib.suppress(Pt2Error):
        parse(text)


@settings(max_examples=500)
@given(st.sampled_from(SPECS), st.data())
def test_damaged_text_raises_only_our_errors(case, data):
    """A real text with a piece cut out, repeated or replaced is parsed or refused."""
    text = case["text"]
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    inserted = data.draw(st.sampled_from(["", "[", "}", '"', "null", "\\ud800", text[:start], "1e999", "\x00", ", "]))
    with contextlib.suppress(Pt2Error):
        spec = parse(text[:start] + inserted + text[stop:])
        assert parse(dump(spec)) == spec


def test_contexts_are_data():
    """A context is reachable as JSON, whole or inside its string; a context that is no JSON is refused."""
    spec = TreeSpec("builtins.dict", context_text(["a"]), (LEAF,))
    assert context_value(spec) == '["a"]'
    assert inner_context(spec) == ["a"]
    with pytest.raises(SchemaError, match="expected a context string that holds JSON, got an object"):
        inner_context(TreeSpec("x", '{"a": 1}'))
    with pytest.raises(JsonError, match="here: expected JSON"):
        context_value(TreeSpec("x", "{"), "here")


def test_map_nodes_rewrites_contexts():
    """A converter can rename named tuples from torch 2.3's contexts to 2.4's, everywhere, in one pass."""
    old = parse(next(case["text"] for case in SPECS if "class_name" in case["text"] and case["leaves"] == 11))

    def register(node: TreeSpec) -> TreeSpec:
        if node.type != "collections.namedtuple":
            return node
        return TreeSpec(node.type, json.dumps("corpus.NT"), node.children)

    new = parse(next(case["text"] for case in SPECS if "corpus.NT" in case["text"] and case["leaves"] == 11))
    assert map_nodes(old, register) == new
    assert map_nodes(new, lambda node: node) == new
