"""g++ takes the header of every kind of version; a small program reads real JSON with it and writes it back equal."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests.idl.helpers import BROKEN, broken, compiler, golden, program, programs, table

from pt2kit.errors import UnsupportedError
from pt2kit.idl import cpp
from pt2kit.schema.fieldtable import make_table

PROGRAM = __file__.replace("test_cpp.py", "round_trip.cpp")
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror")

EXPECTED = {
    "a required key is missing inside": "$.graph_module.graph.nodes[0]: expected the key target, got none",
    "a union has two keys": "$.graph_module.graph.nodes[0].inputs[0].arg: expected exactly one key, got 2",
    "a union has an unknown key": ".arg: expected a key that this version knows, got as_evil",
    "an enum has an unknown number": ".dtype: expected a value of ScalarType, got 99",
    "a list is an object": ".sizes: expected an array, got object",
    "an integer has a fraction": "$.opset_version.aten: expected an integer, got 10.5",
    "a float is an unknown word": ".as_float: expected a number, ",
}


def _compile(source, target, *options):
    done = subprocess.run([compiler(), *STRICT, *options, str(source), *target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


def _run(binary, kind, paths):
    return subprocess.run([str(binary), kind, *map(str, paths)], capture_output=True, text=True)


def _write(folder, trees):
    folder.mkdir()
    for name, text in trees.items():
        (folder / f"{name.replace('/', '_').replace(' ', '_')}.json").write_bytes(text)
    return sorted(folder.iterdir())


def test_real_programs_come_back_and_broken_ones_do_not(tmp_path):
    """Every program and payload config of the current version comes back equal; every fault is named with its place."""
    compiler()
    (tmp_path / "schema.h").write_text(cpp.emit(table("8.20")))
    binary = tmp_path / "round_trip"
    _compile(PROGRAM, ("-o", str(binary)), "-O0", f"-I{tmp_path}")
    current = ("2.12.0", "2.13.0", "2.14.1", "2.15.0")
    for kind, part in (("ExportedProgram", "models/"), ("PayloadConfig", "_config.json")):
        texts = {name: text for name, _, text in programs(*current, part=part)}
        texts |= {name: text for name, root, text in golden("8.20") if root == kind}
        files = _write(tmp_path / kind, texts)
        assert len(files) > 50
        done = _run(binary, kind, files)
        assert (done.returncode, done.stderr) == (0, "")
    good = program("mlp")
    faults = {fault: json.dumps(broken(fault, good)).encode() for fault in BROKEN}
    for fault, text in (faults | _texts(good)).items():
        (path,) = _write(tmp_path / fault, {"bad": text})
        done = _run(binary, "refused", [path])
        assert done.returncode == 0, fault
        assert (EXPECTED | _TEXTS).get(fault, "expected ") in done.stdout
    extended = {**good, "new_in_8_99": [1, {"a": None}]}
    large = {**good, "opset_version": {"a": 2**63, "b": 2**64, "c": -(2**63) - 1, "d": 10**300, "e": -(2**63)}}
    texts = {"unknown keys": json.dumps(extended).encode(), "large integers": json.dumps(large).encode()}
    done = _run(binary, "ExportedProgram", _write(tmp_path / "good", texts))
    assert (done.returncode, done.stderr) == (0, "")


_TEXTS = {
    "a key twice": 'expected each key once, got "a" twice',
    "nested too deep": "expected at most 512 levels of nesting, got more",
    "no JSON": "expected JSON, got ",
    "a float out of range": "expected JSON, got [json.exception.out_of_range.406]",
    "an enum beyond 64 bits": ".dtype: expected a value of ScalarType, got 18446744073709551616",
}


def _texts(good):
    tree = json.loads(json.dumps(good))
    next(iter(tree["graph_module"]["graph"]["tensor_values"].values()))["dtype"] = 2**64
    return {
        "a key twice": b'{"a": 1, "a": 2}',
        "nested too deep": b"[" * 600 + b"]" * 600,
        "no JSON": b"{",
        "a float out of range": b"[1e999]",
        "an enum beyond 64 bits": json.dumps(tree).encode(),
    }


def test_headers_of_other_versions_compile(tmp_path):
    """Side by side in one program: the draft, one whose unions hold every key, one with containers."""
    compiler()
    source = tmp_path / "all.cpp"
    for version in ("draft", "1", "8.6"):
        (tmp_path / f"{version}.h").write_text(cpp.emit(table(version)))
    source.write_text('#include "draft.h"\n#include "1.h"\n#include "8.6.h"\n')
    _compile(source, ("-fsyntax-only",), f"-I{tmp_path}")


def _made(**types):
    return make_table("9.1", types, "test", docs={}, since={})


def test_a_type_inside_itself_is_refused():
    """A struct cannot hold itself but in a list; the message shows the circle."""
    rows = {"kind": "struct", "fields": {"b": {"type": "B | None"}}}
    with pytest.raises(
        UnsupportedError, match="expected no type that contains itself outside of lists, got A in B in A"
    ):
        cpp.emit(_made(A=rows, B={"kind": "struct", "fields": {"a": {"type": "A"}}}))
    assert "struct A" in cpp.emit(_made(A=rows, B={"kind": "struct", "fields": {"a": {"type": "list[A]"}}}))


def test_names_that_c_plus_plus_reserves_get_an_underscore():
    """In C++ only; the JSON keeps the name."""
    text = cpp.emit(_made(A={"kind": "struct", "fields": {"class": {"type": "str"}, "unknown": {"type": "int"}}}))
    assert 'object.required("class", out.class_);' in text
    assert 'object.required("unknown", out.unknown_);' in text
    text = cpp.emit(_made(A={"kind": "union", "fields": {"value": {"type": "str"}, "int": {"type": "int"}}}))
    assert "enum class Arm : std::size_t { value_, int_ };" in text
    assert 'arms = {"value", "int"};' in text


def test_a_type_with_a_name_of_the_prelude_is_refused():
    """The header needs these names itself."""
    with pytest.raises(UnsupportedError, match="expected no type named Json"):
        cpp.emit(_made(Json={"kind": "struct", "fields": {}}))
