"""Bytes -> objects and back: nothing is lost either way, and every error has a place."""

from __future__ import annotations

import json
import sys
import zipfile

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import strategies
from tests.samples import corpus

from pt2kit import codec, schema
from pt2kit.codec.encoder import encode_sorted
from pt2kit.errors import JsonError, Pt2Error, SchemaError

EXACT = [cls for cls in schema.TYPES if issubclass(cls, schema.Object | schema.Union)]
PROGRAM = schema.ExportedProgram(
    graph_module=schema.GraphModule(
        graph=schema.Graph([], [], [], {}, {}, {}),
        signature=schema.GraphSignature([], []),
        module_call_graph=[],
    ),
    opset_version={"aten": 10},
    range_constraints={"s0": schema.RangeConstraint(None, 2**70)},
    schema_version=schema.SchemaVersion(8, 20),
)


def models(release):
    """The (name, bytes) of every program of a release's sample files."""
    for path in corpus(release):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if "/models/" in name:
                    yield f"{path.stem}:{name}", archive.read(name)


def changed(path, value, *, drop=False):
    """`PROGRAM` as JSON with one place changed."""
    tree = codec.to_tree(PROGRAM)
    holder = tree
    for step in path[:-1]:
        holder = holder[step]
    if drop:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return json.dumps(tree).encode()


REFUSED = {
    "two arms": (
        changed(["graph_module", "graph", "inputs"], [{"as_int": 1, "as_float": 2.0}]),
        "$.graph_module.graph.inputs[0]: expected exactly one key, got 2 (as_int, as_float) [J4]",
    ),
    "no arm": (
        changed(["graph_module", "graph", "sym_int_values"], {"a.b": {}}),
        '$.graph_module.graph.sym_int_values["a.b"]: expected exactly one key, got none [J4]',
    ),
    "unknown arm": (
        changed(["graph_module", "graph", "sym_bool_values"], {"b": {"as_evil": 1}}),
        "$.graph_module.graph.sym_bool_values.b: expected exactly one key of as_expr, as_bool, got 'as_evil' [J4]",
    ),
    "missing": (
        changed(["graph_module", "graph"], None, drop=True),
        "$.graph_module: expected the key graph, got none [J5]",
    ),
    "type": (changed(["schema_version", "major"], "8"), "$.schema_version.major: expected int, got str [J5]"),
    "bool is no int": (changed(["opset_version", "aten"], True), "$.opset_version.aten: expected int, got bool [J5]"),
    "null": (changed(["graph_module"], None), "$.graph_module: expected object, got null [J5]"),
    "root": (b"[]", "$: expected object, got array [J5]"),
    "enum": (
        changed(["graph_module", "graph", "inputs"], [{"as_scalar_type": 99}]),
        "$.graph_module.graph.inputs[0].as_scalar_type: expected a number of the enum, got 99 [J5]",
    ),
    "float": (
        changed(["graph_module", "graph", "inputs"], [{"as_float": "inf"}]),
        "$.graph_module.graph.inputs[0].as_float: expected a number of the enum, got 'inf' [J5]",
    ),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_a_misfit_is_placed(data, message):
    """One `SchemaError` with record, full path, expected and got."""
    with pytest.raises(SchemaError) as caught:
        codec.decode(data, schema.ExportedProgram, "models/m.json")
    assert str(caught.value) == f"models/m.json: {message}"


@pytest.mark.parametrize("release", ["2.13.0", "2.15.0"])
def test_real_programs_come_back_letter_for_letter(release):
    """Decoding and encoding a program gives its text, but for blanks and escapes; nothing is reported as unknown."""
    for where, data in models(release):
        decoded = codec.decode(data, schema.ExportedProgram, where)
        assert decoded.unknown == ()
        assert json.dumps(json.loads(codec.encode(decoded.value))) == json.dumps(json.loads(data)), where
        if codec.encode(decoded.value).isascii():
            assert codec.encode(decoded.value) == msgspec.json.format(data, indent=-1), where


@pytest.mark.parametrize("cls", EXACT, ids=lambda cls: cls.__name__)
def test_every_type_round_trips(cls):
    """For any value of any type: encode, decode, encode is the same text, on the fast and on the slow road."""

    @settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
    @given(strategies.values(cls))
    def check(value):
        data = codec.encode(value)
        assert codec.encode(codec.decode(data, cls, "r").value) == data
        shuffled = json.dumps(json.loads(data), sort_keys=True).encode()
        assert codec.to_tree(codec.decode(shuffled, cls, "r").value) == codec.to_tree(value)

    check()


def with_unknown(tree, path=()):
    """A copy of a tree with a key that no schema knows in every object with fixed keys at the given places."""
    copy = json.loads(json.dumps(tree))
    for place in (copy, copy["graph_module"], copy["graph_module"]["graph"], copy["range_constraints"]["s0"]):
        place["brand new"] = {"deep": [1, None, "x"]}
    return copy


@pytest.mark.parametrize(
    "style", [{}, {"sort_keys": True}, {"sort_keys": True, "indent": 1}], ids=["", "sorted", "lines"]
)
def test_unknown_keys_survive(style):
    """Keys of a newer minor are reported with their path and written back where they were, whoever wrote the file."""
    data = json.dumps(with_unknown(codec.to_tree(PROGRAM)), **style).encode()
    decoded = codec.decode(data, schema.ExportedProgram, "r")
    assert decoded.value == PROGRAM
    assert [str(item) for item in decoded.unknown] == [
        '$["brand new"]',
        '$.graph_module["brand new"]',
        '$.graph_module.graph["brand new"]',
        '$.range_constraints.s0["brand new"]',
    ]
    assert json.loads(codec.encode(decoded.value, decoded.unknown)) == json.loads(data)


def test_keys_in_order():
    """A program written with all keys in order is equal text for equal programs alone, and nothing of it is unknown."""
    written = encode_sorted(PROGRAM)
    assert json.loads(written) == codec.to_tree(PROGRAM)
    assert encode_sorted(codec.to_tree(PROGRAM)) == written
    assert codec.decode(written, schema.ExportedProgram, "r") == codec.decode(
        codec.encode(PROGRAM), schema.ExportedProgram, "r"
    )
    outer = json.dumps({**codec.to_tree(PROGRAM), "a new one": 1}, sort_keys=True).encode()
    decoded = codec.decode(outer, schema.ExportedProgram, "r")
    assert (decoded.value, [str(item) for item in decoded.unknown]) == (PROGRAM, ['$["a new one"]'])


def test_unknown_keys_need_their_place():
    """Written back into a program that changed since, they are refused rather than misplaced or dropped."""
    decoded = codec.decode(json.dumps(with_unknown(codec.to_tree(PROGRAM))).encode(), schema.ExportedProgram, "r")
    other = msgspec.structs.replace(PROGRAM, range_constraints={})
    with pytest.raises(SchemaError, match=r"\$\.range_constraints\.s0\[\"brand new\"\]: expected the object that held"):
        codec.encode(other, decoded.unknown)


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "cpu", "index": null, "index": 1}',
        '{"type": "cpu", "type": "cpu"}',
        '{"type": "cpu", "ty\\u0070e": "cpu"}',
        '{"x": 0, "type": "cpu", "x": 1}',
    ],
)
def test_equal_keys_are_refused(text):
    """Also where one is missing elsewhere so that the counts agree, or one is spelled with escapes."""
    data = f'[{text}, {{"type": "cpu"}}]'.encode()
    with pytest.raises(JsonError, match=r"r: \$\[0\]: expected each key once"):
        codec.decode(data, list[schema.Device], "r")


def test_a_missing_optional_key_gets_its_default():
    """Absent is read as the schema's default; the next writing says it."""
    decoded = codec.decode(b'{"type": "cpu"}', schema.Device, "r")
    assert decoded == codec.Decoded(schema.Device("cpu", None), ())


@pytest.mark.parametrize("text", ["plain", "é \U0001f600 \x7f \x1b \u2028", 'quote " slash \\ \\u00e9 \n'])
def test_escapes_take_the_fast_road_too(text, monkeypatch):
    """ASCII escapes, as torch writes them, and raw UTF-8 are both read without a plain tree."""
    monkeypatch.setattr("pt2kit.codec.decoder.parse", lambda *_: pytest.fail("took the slow road"))
    text = text.replace("\x7f", "")
    for ascii_only in (True, False):
        data = json.dumps({"name": text}, ensure_ascii=ascii_only).encode()
        assert codec.decode(data, schema.TensorArgument, "r").value == schema.TensorArgument(text)


def reversed_keys(tree):
    """A tree whose objects have their keys the other way round."""
    if isinstance(tree, dict):
        return {key: reversed_keys(tree[key]) for key in reversed(tree)}
    return [reversed_keys(value) for value in tree] if isinstance(tree, list) else tree


SPELLINGS = {
    "other order": lambda tree: json.dumps(reversed_keys(tree)),
    "blanks": lambda tree: json.dumps(tree, indent=1),
    "unknown key": lambda tree: json.dumps({**tree, "brand new": 1}),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_other_spellings_are_read_by_the_typed_decoder_too(spelling):
    """The same program comes out, and twice the values make no more calls of Python than in torch's own spelling."""

    def calls(count, spelled):
        values = {f"t{number}": {"as_int": number} for number in range(count)}
        tree = {**codec.to_tree(PROGRAM), "range_constraints": {}}
        tree["graph_module"]["graph"]["sym_int_values"] = values
        data, made = spelled(tree).encode(), []
        sys.setprofile(lambda _, event, __: made.append(event))
        try:
            decoded = codec.decode(data, schema.ExportedProgram, "r")
        finally:
            sys.setprofile(None)
        assert codec.to_tree(decoded.value) == tree
        return len(made)

    more = {spelled: calls(800, spelled) - calls(400, spelled) for spelled in (json.dumps, spelling)}
    assert more[spelling] <= 1.5 * more[json.dumps]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_only_our_errors_come_out(data):
    """Any change of a few bytes of a program gives a program or one of our errors."""
    raw = codec.encode(PROGRAM)
    cut = data.draw(st.integers(0, len(raw) - 1))
    raw = raw[:cut] + data.draw(st.binary(max_size=4)) + raw[cut + data.draw(st.integers(0, 3)) :]
    try:
        codec.decode(raw, schema.ExportedProgram, "r")
    except Pt2Error as error:
        assert str(error).startswith("r: ")
