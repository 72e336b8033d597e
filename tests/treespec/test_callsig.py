"""The readable call signature and the check of forward_arg_names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.treespec.trees import FIELDS, spec_of, text, values

from pt2kit.errors import GraphError, SchemaError
from pt2kit.treespec import (
    LEAF,
    TreeSpec,
    call_signature,
    find_name_problems,
    leaf_count,
    parse,
    render,
    show_name,
    split_call,
)

SPECS = json.loads(Path(__file__).with_name("specs.json").read_text(encoding="utf-8"))["specs"]
NESTED = next(case["text"] for case in SPECS if "corpus.NT" in case["text"] and case["leaves"] == 11)
OLD = next(
    case["text"] for case in SPECS if case["release"] == "2.1.2" and case["leaves"] == 3 and "dict" not in case["text"]
)


def tree(name, *children, context=None):
    return TreeSpec(name, text(context), children)


def call(args, kwargs):
    return tree(
        "builtins.tuple", tree("builtins.tuple", *args), tree("builtins.dict", *kwargs.values(), context=list(kwargs))
    )


def test_a_real_call():
    """A nested call of a real file reads as a Python signature."""
    inputs = [f"f32[{i}]" for i in range(10)] + ["int = 3"]
    out = tree("builtins.dict", LEAF, tree("builtins.list", LEAF), context=["r", "nested"])
    names = ["x", "d", "tl", "nt", "scale", "extra"]
    got = call_signature(parse(NESTED), out, inputs, ["f32[s0]", "i64[]"], names, fields={"corpus.NT": ["a", "b"]})
    assert render(got) == (
        'forward(x: f32[0], d: dict{"p": f32[1], "q": list[f32[2]]}, tl: tuple[f32[3], list[f32[4], f32[5]]], '
        "nt: NT(a=f32[6], b=f32[7]), *, scale: f32[8], extra: tuple[f32[9], int = 3]) "
        '-> dict{"r": f32[s0], "nested": list[i64[]]}'
    )
    assert [p.kind for p in got.parameters] == ["positional"] * 4 + ["keyword"] * 2
    assert render(got, "model", width=60).splitlines()[:2] == ["model(", "    x: f32[0],"]
    assert render(got, "model", width=60).splitlines()[5] == "    *,"


RETURNS = [
    (LEAF, ["f32[]"], "f32[]"),
    (tree("builtins.tuple"), [], "()"),
    (tree("builtins.tuple", LEAF), ["f32[]"], "(f32[],)"),
    (tree("builtins.tuple", LEAF, tree("builtins.tuple", LEAF)), ["a", "b"], "(a, tuple[b])"),
    (tree("builtins.list", LEAF), ["a"], "list[a]"),
    (TreeSpec("collections.namedtuple", '"shapes.Point"', (LEAF, LEAF)), ["a", "b"], "Point(x=a, y=b)"),
    (TreeSpec("corpus.DC", text([["x"], ["y"]]), (LEAF,)), ["a"], "DC(x=a)"),
    (TreeSpec("m.Out", text(["k"]), (LEAF,)), ["a"], 'Out{"k": a}'),
    (TreeSpec("rm -rf /", text(None), (LEAF,)), ["a"], '"rm -rf /"(a)'),
    (TreeSpec("collections.namedtuple", '"unknown.NT"', (LEAF, LEAF)), ["a", "b"], "NT(a, b)"),
    (tree("builtins.dict"), [], None),
    (tree("builtins.dict", context=[]), [], "dict{}"),
    (tree("collections.deque", LEAF, context=4), ["a"], "deque[a]"),
    (tree("torch.Size", LEAF), ["a"], "Size[a]"),
]


@pytest.mark.parametrize(("spec", "outputs", "expected"), RETURNS, ids=range(len(RETURNS)))
def test_returns(spec, outputs, expected):
    """Every structure has a readable form; a tuple at the root reads as Python's."""
    if expected is None:
        with pytest.raises(SchemaError, match="expected a list of keys"):
            call_signature(call([], {}), spec, [], outputs)
        return
    assert render(call_signature(call([], {}), spec, [], outputs, fields=FIELDS)) == f"forward() -> {expected}"


def test_calls_of_torch_2_1():
    """Without keywords 2.1 writes just the tuple of arguments; unknown names are arg_<i>."""
    got = call_signature(parse(OLD), LEAF, ["a", "b", "c"], ["d"])
    assert render(got) == "forward(arg_0: a, arg_1: b, arg_2: c) -> d"
    assert split_call(call([LEAF], {}), schema_1=True)[1] == {}
    assert len(split_call(call([LEAF], {}), schema_1=True)[0]) == 2
    args, kwargs = split_call(call([LEAF], {"k": LEAF}), schema_1=True)
    assert (len(args), list(kwargs)) == (1, ["k"])
    with pytest.raises(SchemaError, match="in_spec: expected a tuple of arguments at the root, got None"):
        split_call(LEAF)


def test_hostile_names_are_shown_escaped():
    """Control characters, and text that looks like code, are quoted and escaped."""
    spec = call([LEAF, LEAF, LEAF], {"\x1b]0;t\x07": tree("builtins.dict", LEAF, context=['"\u202ek']), "for": LEAF})
    names = ["y=[open('f','w'),None][1]", "class", "é"]
    line = render(call_signature(spec, LEAF, ["1", "2\x1b[31m", "3", "4", "5"], ["r\n"], names), "a b")
    assert line == (
        '"a b"("y=[open(\'f\',\'w\'),None][1]": 1, "class": 2\\x1b[31m, é: 3, *, '
        '"\\x1b]0;t\\x07": dict{"\\"\\u202ek": 4}, "for": 5) -> r\\n'
    )
    assert line.isprintable()


@given(values, st.text())
def test_any_signature_prints(value, name):
    """Any structure and any name give one printable line."""
    spec = spec_of(value)
    leaves = ["f32[]"] * leaf_count(spec)
    got = call_signature(call([spec], {name: spec}), spec, leaves * 2, leaves, [name], fields=FIELDS)
    assert render(got).isprintable()


def test_description_count_must_match():
    """One description per leaf, on both sides."""
    with pytest.raises(GraphError, match="sig: in_spec: expected 1 leaf, got 2 descriptions"):
        call_signature(call([LEAF], {}), LEAF, ["a", "b"], ["c"], where="sig")
    with pytest.raises(GraphError, match="sig: out_spec: expected 1 leaf, got 0 descriptions"):
        call_signature(call([LEAF], {}), LEAF, ["a"], [], where="sig")


NAMES = [
    (["x"], call([LEAF], {}), []),
    ([], call([LEAF], {}), []),
    (["x", "k"], call([LEAF], {"k": LEAF}), []),
    (["args_0", "été"], call([LEAF, LEAF], {}), []),
    (["for"], call([LEAF], {}), ['forward_arg_names[0]: expected an identifier that is no keyword, got "for"']),
    (["x y"], call([LEAF], {}), ['forward_arg_names[0]: expected an identifier that is no keyword, got "x y"']),
    (["\x1b"], call([LEAF], {}), ['expected an identifier that is no keyword, got "\\x1b"']),
    (["self"], call([LEAF], {}), ["expected a name other than self"]),
    (["x", "x"], call([LEAF, LEAF], {}), ["forward_arg_names[1]: expected distinct names, got x also at [0]"]),
    (
        ["ﬁ", "fi"],
        call([LEAF, LEAF], {}),
        [
            "forward_arg_names[0]: expected a name that a variable of Python can have",
            "expected distinct names, got fi also at [0]",
        ],
    ),
    (["__debug__"], call([LEAF], {}), ["forward_arg_names[0]: expected a name that a variable of Python can have"]),
    (
        ["x", "y=[open('m','w'),None][1]"],
        call([LEAF], {}),
        ["forward_arg_names[1]: expected an identifier", "expected 1 name (1 positional, 0 keyword), got 2"],
    ),
    (["x", "z"], call([LEAF], {"k": LEAF}), ["expected the keyword arguments of in_spec at the end (k), got z"]),
]


@pytest.mark.parametrize(("names", "spec", "messages"), NAMES, ids=range(len(NAMES)))
def test_argument_names(names, spec, messages):
    """Only distinct plain identifiers, as many as the call has arguments, may reach generated source."""
    problems = list(find_name_problems(names, spec))
    assert len(problems) == len(messages)
    for problem, message in zip(problems, messages, strict=True):
        assert message in f"{problem.loc}: {problem.message}"


@given(st.text())
def test_shown_names_are_printable(name):
    """A name is shown as itself only if it is a plain identifier."""
    shown = show_name(name)
    assert shown.isprintable()
    assert shown == name or shown.startswith('"')
