"""Real files: each becomes one without pickles that means the same; the same bytes every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.package.test_samples import plain
from tests.sanitizing.files import pickles_in, sanitized

import pt2kit
from pt2kit.checks import safety_findings
from pt2kit.digests import PARTS
from pt2kit.errors import Pt2Error, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.pickles.values import NamedTuple
from pt2kit.treespec import Node


def digests(source: Any) -> dict[str, dict[str, str]]:
    """Model -> part -> digest."""
    with pt2kit.open(source) as package:
        return {
            model: {part: getattr(pt2kit.digest(package, model), part) for part in PARTS}
            for model in package.layout.models
        }


def sample_inputs(source: Any) -> dict[str, Any]:
    """Model -> sample inputs, with the numbers of their tensors."""
    with pt2kit.open(source) as package:
        return {model: _plain(package.sample_inputs(model)) for model in package.layout.models}


def _plain(value: Any) -> Any:
    """As `plain`, also of named tuples and objects without known fields."""
    if isinstance(value, Node | NamedTuple):
        name, inside = (value.type, value.children) if isinstance(value, Node) else (value.class_name, value.values)
        return {name: [_plain(item) for item in inside]}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if type(value) in (list, tuple) else plain(value)


@pytest.mark.parametrize("path", samples.corpus(*samples.CURRENT_LAYOUT), ids=samples.release_id)
def test_real_files(path: Path) -> None:
    """Same digests, same sample inputs, no pickle, no finding but plain guards; sanitizing again changes nothing."""
    data, done = sanitized(path)
    assert pickles_in(data) == []
    assert digests(path) == done.digests
    assert sample_inputs(data) == sample_inputs(path)
    with pt2kit.open(data) as package:
        assert list(safety_findings(package)) == list(done.kept)
        assert {finding.rule for finding in done.kept if finding.kind != "warning"} <= {"X4"}
        for model in package.layout.models:
            assert package.records[package.layout.record(names.sample_inputs(model))].size == 0
        with pt2kit.open(path) as original:
            assert {name: bytes(content) for name, content in package.extra_files.items()} == {
                name: bytes(content) for name, content in original.extra_files.items()
            }
    again, second = sanitized(data)
    assert again == data
    assert second.moved == done.moved
    assert (done.dropped, done.unpickled, done.raised) == ((), (), ())


@pytest.mark.parametrize(
    "path",
    samples.corpus(*(release for release in samples.RELEASES if release not in samples.CURRENT_LAYOUT)),
    ids=samples.release_id,
)
def test_older_files(path: Path) -> None:
    """A file of an older release gets today's layout, and means the same."""
    if path.stem == "sparse_buffer":
        with pytest.raises(UnsupportedError, match=r"model: weight 'sp': expected a dense tensor.* got f32.*Z4"):
            sanitized(path)
        return
    data, done = sanitized(path)
    assert pickles_in(data) == []
    assert digests(path) == done.digests
    assert sample_inputs(data) == sample_inputs(path)
    with pt2kit.open(data) as package:
        assert package.layout.kind == "archive"
    assert sanitized(data)[0] == data


@pytest.mark.parametrize("name", ["mlp", "multi_model_package", "kwargs_and_nested_inputs", "extra_files"])
def test_same_file_same_bytes(name: str) -> None:
    """The same file gives the same bytes, and its digests are those that the report has."""
    path = samples.sample("2.13.0", name)
    data, done = sanitized(path)
    assert sanitized(path.read_bytes())[0] == data
    assert digests(data) == done.digests


def test_programs_are_not_touched() -> None:
    """If nothing is stripped, the JSON of a program is the original, of its version, letter by letter."""
    path = samples.sample("2.9.1", "mlp")
    with pt2kit.open(path) as old, pt2kit.open(sanitized(path)[0]) as new:
        record = names.model_json("model")
        assert new.archive.read(new.layout.record(record)) == old.archive.read(old.layout.record(record))
        assert new.stored_schema_version == "8.14"


def test_shared_records_stay_shared() -> None:
    """Tied weights share one record, in one program and between programs."""
    data, _ = sanitized(samples.sample("2.13.0", "shared_weights"))
    with pt2kit.open(data) as package, pt2kit.open(samples.sample("2.13.0", "shared_weights")) as old:
        found, wanted = ([view.record for view in one.weights().values()] for one in (package, old))
        assert len(set(found)) == len(set(wanted)) < len(found)


@pytest.mark.parametrize("case", samples.hostile(), ids=lambda case: case["name"])
def test_hostile_files(case: dict[str, Any]) -> None:
    """A hostile file is refused, or what comes out is clean and means what the file meant."""
    if case["name"] == "zip_bomb_json_list":
        pytest.skip("its JSON takes half a gigabyte; test_manifest reads it in a process of its own")
    try:
        data, done = sanitized(case["path"])
    except Pt2Error as error:
        assert all(line.isprintable() for line in str(error).split("\n"))
        return
    assert pickles_in(data) == []
    with pt2kit.open(data) as package:
        assert {finding.rule for finding in safety_findings(package)} <= {"X4", "X9"}
    assert digests(data) == done.digests
    assert sanitized(data)[0] == data
    assert not Path(case["marker"] or "/nonexistent").exists(), "the payload ran"


REFUSED = {
    "pickle_sample_inputs": r"data/sample_inputs/model\.pt: expected sample inputs that are plain data.*io\.open.*X1",
    "pickle_sample_inputs_raw": r"data/sample_inputs/model\.pt: .*X1",
    "pickle_tensor_constant": r"model: constant .*X2",
    "pickle_opaque_constant": r"model: constant .*a Python object.*X3",
    "pickle_custom_obj_garbage": r"model: constant .*a script object.*X3",
    "eval_expr_import": r"X5",
    "eval_expr_garbage": r"X5",
    "eval_expr_empty": r"X5",
    "guard_syntax_error": r"X4",
    "fx_placeholder_name": r"X6",
    "fx_parameter_name": r"X6",
    "fx_forward_arg_names": r"X6",
    "aoti_so_dlopen": r"data/aotinductor/.*: torch loads compiled code.*X8",
    "treespec_defaultdict_import": r"X9",
    "treespec_enum_import": r"X9",
    "op_torch_os_mkdir": r"X7",
}
CASES = {case["name"]: case["path"] for case in samples.hostile()}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    """Each kind of attack is refused with its place and its rule."""
    with pytest.raises(UnsupportedError, match=REFUSED[name]):
        sanitized(CASES[name])
