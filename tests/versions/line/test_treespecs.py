"""Tree specs of old programs are those of later ones, in another form."""

from __future__ import annotations

import pytest

from pt2kit.errors import JsonError, SchemaError
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line import texts

LEAF = '{"type": null, "context": null, "children_spec": []}'


def tuple_of(*children: str) -> str:
    return f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{", ".join(children)}]}}'


def dict_of(**children: str) -> str:
    keys = ", ".join(f'\\"{key}\\"' for key in children)
    listed = ", ".join(children.values())
    return f'{{"type": "builtins.dict", "context": "[{keys}]", "children_spec": [{listed}]}}'


def pair(context: str) -> str:
    return f'{{"type": "collections.namedtuple", "context": {context}, "children_spec": [{LEAF}, {LEAF}]}}'


EMPTY = '{"type": "builtins.dict", "context": "[]", "children_spec": []}'
CALLS = [
    # (in_spec of 2.1, in_spec of 2.2)
    (tuple_of(LEAF), tuple_of(tuple_of(LEAF), EMPTY)),
    (tuple_of(), tuple_of(tuple_of(), EMPTY)),
    (tuple_of(tuple_of(LEAF), dict_of(k=LEAF)), tuple_of(tuple_of(LEAF), dict_of(k=LEAF))),
    (tuple_of(tuple_of(LEAF), LEAF), tuple_of(tuple_of(tuple_of(LEAF), LEAF), EMPTY)),
    (tuple_of(tuple_of(LEAF), EMPTY), tuple_of(tuple_of(tuple_of(LEAF), EMPTY), EMPTY)),
]


@pytest.mark.parametrize(("old", "new"), CALLS)
def test_calls_of_2_1(old, new):
    """2.1 leaves the keywords out where there are none."""
    log = ConversionLog("x")
    assert texts.with_keywords(f"[1, {old}]", (), log) == f"[1, {new}]"
    assert texts.without_keywords(f"[1, {new}]", (), log) == f"[1, {old}]"
    assert log.notes == ()


def test_a_call_that_2_1_would_misread_is_blocked():
    """Two arguments, a tuple and a dict, look like a call with keywords there."""
    log = ConversionLog("x")
    spec = tuple_of(tuple_of(tuple_of(LEAF), dict_of(k=LEAF)), EMPTY)
    texts.without_keywords(f"[1, {spec}]", ("in_spec",), log)
    assert [(note.kind, note.places) for note in log.notes] == [("blocked", ("$.in_spec",))]
    texts.without_keywords(f"[1, {tuple_of(LEAF)}]", ("in_spec",), log)
    assert len(log.notes) == 2


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("nothing", JsonError, r"^x: \$\.in_spec: "),
        (f"[1, {LEAF}]", SchemaError, r"^x: \$\.in_spec: expected a tuple of arguments at the root, got None$"),
    ],
)
def test_no_call_is_refused(text, error, message):
    """With the place of the text."""
    with pytest.raises(error, match=message):
        texts.with_keywords(text, ("in_spec",), ConversionLog("x"))


def changed(text, change, log, having=""):
    """The text after a change of its containers."""
    visit = texts.call_specs(change, log, having=having)
    new = visit({"in_spec": text, "out_spec": f"[1, {LEAF}]"}, ())
    assert new["out_spec"] == f"[1, {LEAF}]"
    return new["in_spec"]


OLD = '{"class_name": "NT", "fields": ["a", "b"]}'


@pytest.mark.parametrize(("names", "registered"), [({}, "NT"), ({"NT": "corpus.NT"}, "corpus.NT")])
def test_named_tuples_get_their_registered_name(names, registered):
    """The class name stands for it, unless the caller knows better; fields are kept for the way back and up."""
    log = ConversionLog("x", namedtuples=names)
    text = f"[1, {tuple_of(pair(OLD))}]"
    new = changed(text, texts.name_tuple, log)
    assert new == f"[1, {tuple_of(pair(f'{chr(34)}{registered}{chr(34)}'))}]"
    assert log.namedtuple_fields == {registered: ["a", "b"]}
    assert texts.registered_names(new, (), log) == [registered]
    assert changed(new, texts.describe_tuple, log) == text
    assert log.notes == ()


@pytest.mark.parametrize("fields", [{}, {"corpus.NT": ["a"]}])
def test_named_tuples_without_fields_are_blocked_for_2_3(fields):
    """Up to 2.3 the fields are in the text."""
    log = ConversionLog("x")
    log.namedtuple_fields.update(fields)
    changed(f"[1, {pair(chr(34) + 'corpus.NT' + chr(34))}]", texts.describe_tuple, log)
    assert [note.message for note in log.notes] == [
        "a named tuple 'corpus.NT' whose field names the program does not have"
    ]


def test_two_classes_of_one_name_are_refused():
    """They could not be told apart later."""
    other = '{"class_name": "NT", "fields": ["a", "c"]}'
    with pytest.raises(SchemaError, match=r"expected the fields a, b of the named tuple 'NT'.* got a, c"):
        changed(f"[1, {tuple_of(pair(OLD), pair(other))}]", texts.name_tuple, ConversionLog("x"))


def test_texts_without_named_tuples_are_not_touched():
    """Not even parsed."""
    log = ConversionLog("x")
    assert texts.registered_names("no spec", (), log) == []
    for change in (texts.name_tuple, texts.describe_tuple):
        assert changed("no spec", change, log, texts.NAMEDTUPLE) == "no spec"
    signature = {"in_spec": f"[1, {LEAF}]", "out_spec": f"[1, {LEAF}]"}
    assert texts.call_specs(texts.name_tuple, log)(signature, ()) is signature


def dataclass(context: str, kind: str = "pkg.DC") -> str:
    return f'[1, {{"type": "{kind}", "context": {context}, "children_spec": [{LEAF}]}}]'


def test_the_context_of_a_dataclass_became_text():
    """2.2 lists where the class is, the fields given and those that are None; later the latter two are JSON text."""
    old, new = dataclass('["pkg.DC", ["x"], ["y"]]'), dataclass(r'"[[\"x\"], [\"y\"]]"')
    log = ConversionLog("x")
    assert changed(old, texts.text_dataclass, log) == new
    assert changed(new, texts.list_dataclass, log) == old
    assert [note.kind for note in log.notes] == ["changed", "changed"]


@pytest.mark.parametrize("context", [r'"[[\"x\", \"z\"], []]"', '"no JSON"', '"[1, 2]"', "null", r'"[\"x\"]"'])
def test_other_contexts_are_left_alone(context):
    """Any other text, or one that does not fit its children, is unchanged."""
    text = dataclass(context)
    log = ConversionLog("x")
    assert changed(text, texts.list_dataclass, log) == text
    assert changed(text, texts.text_dataclass, log) == text
    assert log.notes == ()
