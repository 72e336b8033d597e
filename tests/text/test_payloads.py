"""Lists of tensors."""

from __future__ import annotations

import json
from typing import Any

from tests import samples
from tests.packages import edited, rewritten, tree_of

import pt2kit
from pt2kit.package import record_names as names
from pt2kit.tensors import statistics
from pt2kit.text.payloads import Entry, entries_of, payload_lines, payload_row, statistics_lines

CONSTANTS = samples.sample("2.13.0", "constants")


def _entries(data: Any, *, constants: bool = True) -> list[Entry]:
    with pt2kit.open(data) as package:
        return entries_of(package, "model", constants=constants)


def test_kinds() -> None:
    """Weights are parameters and buffers; constants come only when asked for, buffers among them by that name."""
    path = samples.sample("2.13.0", "nonpersistent_buffer")
    assert _entries(path, constants=False) != _entries(path)
    found = {entry.name: entry.kind for entry in _entries(path)}
    assert found["np_"] == "buffer"
    assert {entry.kind for entry in _entries(samples.sample("2.13.0", "convnet"))} == {"parameter", "buffer"}
    assert {entry.kind for entry in _entries(CONSTANTS)} == {"constant"}


def test_rows() -> None:
    """A row of data has what a reader of the bytes needs; statistics where they were made."""
    with pt2kit.open(samples.sample("2.13.0", "shared_weights")) as package:
        entry = entries_of(package, "model", constants=False)[-1]
        assert payload_row(entry) == {
            "name": "mat_t",
            "kind": "buffer",
            "type": "f32[4, 3]",
            "record": "shared_weights/data/weights/weight_1",
            "bytes": 48,
            "dtype": "float32",
            "sizes": (4, 3),
            "strides": (1, 4),
            "storage_offset": 0,
            "requires_grad": False,
        }
        found = payload_row(entry, statistics(entry.payload.dense()))["statistics"]
        assert set(found) == {"numel", "min", "max", "mean", "std", "zeros", "non_finite"}


def test_statistics() -> None:
    """Statistics stand in aligned columns; what is no number is left blank."""
    with pt2kit.open(samples.sample("2.13.0", "strided_weights")) as package:
        entries = entries_of(package, "model", constants=True)
        found = {number: statistics(entry.payload.dense()) for number, entry in enumerate(entries)}
        lines = list(statistics_lines(entries, found))
    assert lines[1].split() == ["min", "max", "mean", "std"]
    assert lines[-1].split() == ["empty", "f32[0,", "3]", "0", "B", "no", "elements"]
    ends = {line[: len(lines[1])].rstrip()[-1:] for line in lines[2:-1]}
    assert all(character.isdigit() for character in ends)


def test_pickles_are_listed() -> None:
    """A constant that is a pickle is listed by what it is and how long; no type, no statistics."""
    with pt2kit.open(CONSTANTS) as package:
        config = tree_of(package.archive.read(package.layout.record(names.constants_config("model"))))
    config["config"]["odd\x1b"] = {
        "path_name": "custom_obj_0",
        "is_param": False,
        "use_pickle": False,
        "tensor_meta": None,
    }
    records = {names.constants_config("model"): json.dumps(config).encode(), names.custom_object(0): b"x" * 9}
    entries = _entries(rewritten(CONSTANTS, records))
    assert payload_row(entries[-1]) == {
        "name": "odd\x1b",
        "kind": "torchbind",
        "type": "a script object, 9 bytes",
        "record": "constants/data/constants/custom_obj_0",
        "bytes": 9,
    }
    assert list(payload_lines(entries))[-1] == (
        '  "odd\\x1b"        a script object   9 B  torchbind  constants/data/constants/custom_obj_0'
    )
    assert list(statistics_lines(entries, {}))[-1].endswith("not read")


def test_wide_names_keep_the_columns() -> None:
    """A name that is too long stands on its own line; one of wide characters counts double."""
    long = "layers." + "x" * 100

    def change(tree: Any) -> None:
        first, second, *rest = tree["config"].items()
        tree["config"] = dict([(long, first[1]), ("層.重み", second[1]), *rest])

    def rename(tree: Any) -> None:
        specs = tree["graph_module"]["signature"]["input_specs"]
        specs[0]["parameter"]["parameter_name"] = long
        specs[1]["parameter"]["parameter_name"] = "層.重み"

    path = samples.sample("2.13.0", "mlp")
    data = edited(path, change, names.weights_config("model"))
    with pt2kit.open(edited(path, rename)) as package:
        program = bytes(package.archive.read(package.layout.record(names.model_json("model"))))
    with pt2kit.open(data) as package:
        config = bytes(package.archive.read(package.layout.record(names.weights_config("model"))))
    found = rewritten(path, {names.model_json("model"): program, names.weights_config("model"): config})
    lines = list(payload_lines(_entries(found)))
    assert lines[1] == f"  {long}"
    assert lines[2].startswith("            f32[16, 8]")
    assert lines[3].startswith("  層.重み   f32[16]")
