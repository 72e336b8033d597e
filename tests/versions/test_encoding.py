"""JSON of every release is read into one form and written back letter for letter."""

from __future__ import annotations

import json
import math

import pytest
from tests.samples import RELEASES
from tests.versions.programs import VERSIONS, copied, golden, golden_bytes, release_version, stored_programs

from pt2kit.codec import parse
from pt2kit.errors import JsonError, LimitError
from pt2kit.schema.wire import MAX_RANGE, MIN_RANGE
from pt2kit.versions import encoding
from pt2kit.versions.check import check_tree


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_wrote_comes_back(release):
    """bytes -> tree -> bytes gives the same bytes for every sample, and the tree fits the version's table."""
    version = release_version(release)
    for path, record, data in stored_programs(release):
        raw = parse(data, record, bare_literals=True)
        tree = encoding.from_wire(raw, version, record)
        check_tree(tree, version, f"{path.stem}: {record}")
        assert encoding.encode(tree, version, record) == data, path.stem


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_files_come_back(version):
    """Likewise for the golden program of every version, development states included."""
    assert encoding.encode(golden(version), version, "x") == golden_bytes(version)


def test_the_input_is_not_changed_nor_shared():
    """Reading and spelling make new trees."""
    raw = json.loads(golden_bytes("8.20"))
    before = copied(raw)
    tree = encoding.from_wire(raw, "8.20", "x")
    tree["graph_module"]["graph"]["nodes"][0]["metadata"]["k"] = "v"
    tree["verifiers"].append("X")
    assert raw == before
    again = copied(tree)
    spelled = encoding.to_wire(tree, "8.2", "x")
    spelled["verifiers"].append("Y")
    assert tree == again


def test_fields_that_may_be_left_out_are_filled_in():
    """A tree has every field, also those that 2.3 to 2.6 leave out, and each its own default."""
    tree = golden("8.2")
    raw = encoding.to_wire(tree, "8.2", "x")
    device = raw["graph_module"]["graph"]["tensor_values"]["x"]["device"]
    assert device == {"type": "cpu"}
    assert encoding.from_wire(raw, "8.2", "x") == tree
    whole = encoding.from_wire({"graph_module": {"graph": {}}}, "8.20", "x")
    assert whole["verifiers"] == []
    assert whole["verifiers"] is not whole["guards_code"]


@pytest.mark.parametrize(
    ("version", "spelled"),
    [
        ("1", (MIN_RANGE, MAX_RANGE)),
        ("2", (-math.inf, math.inf)),
        ("5.1", (-math.inf, math.inf)),
        ("5.3", (MIN_RANGE, MAX_RANGE)),
        ("7.3", (-math.inf, math.inf)),
        ("8.2", (None, None)),
        ("8.20", (None, None)),
    ],
)
def test_open_ranges(version, spelled):
    """An open end is None in a tree, whatever the release wrote."""
    tree = golden(version)
    tree["range_constraints"] = {"s0": {"min_val": None, "max_val": None}}
    raw = encoding.to_wire(tree, version, "x")
    assert raw["range_constraints"]["s0"] == dict(zip(("min_val", "max_val"), spelled, strict=True))
    assert encoding.from_wire(raw, version, "x") == tree


def test_a_number_that_means_open_elsewhere_stays():
    """9223372036854775806 is a number in the versions that write Infinity for open ranges."""
    tree = golden("7.3")
    tree["range_constraints"] = {"u0": {"min_val": 0, "max_val": MAX_RANGE}}
    assert encoding.from_wire(encoding.to_wire(tree, "7.3", "x"), "7.3", "x") == tree


@pytest.mark.parametrize(("version", "bare"), [("2", True), ("8.2", True), ("8.7", False), ("8.20", False)])
def test_infinities(version, bare):
    """inf and nan are bare words up to 2.6, strings later, and strings in trees."""
    tree = golden(version)
    argument = tree["graph_module"]["graph"]["nodes"][1]["inputs"]
    held = [named["arg"]["as_float"] for named in argument if "as_float" in named["arg"]]
    assert "Infinity" in held
    data = encoding.encode(tree, version, "x")
    assert (b": Infinity" in data) is bare
    assert (b'"Infinity"' in data) is not bare
    assert encoding.from_wire(parse(data, "x", bare_literals=bare), version, "x") == tree


def test_bools_that_2_4_wrote_as_ints():
    """2.4 and 2.5 write a constant bool under the arm of ints."""
    tree = golden("5.3")
    raw = encoding.to_wire(tree, "5.3", "x")
    values = [spec["constant_input"]["value"] for spec in raw["graph_module"]["signature"]["input_specs"][-5:]]
    assert {"as_int": True} in values
    assert {"as_bool": True} not in values
    assert encoding.from_wire(raw, "5.3", "x") == tree


def test_the_misspelled_loss():
    """A development state of schema 1 wrote loss_outout."""
    tree = golden("1")
    raw = encoding.to_wire(tree, "1", "x")
    backward = raw["graph_module"]["signature"]["backward_signature"]
    backward["loss_outout"] = backward.pop("loss_output")
    assert encoding.from_wire(raw, "1", "x") == tree
    later = golden("2")
    raw = encoding.to_wire(later, "2", "x")
    for spec in raw["graph_module"]["signature"]["output_specs"]:
        spec["loss_outout"] = spec.pop("loss_output")
    assert encoding.from_wire(raw, "2", "x") == later


def test_padded_unions():
    """2.1 and 2.2 write every arm; an arm that no table knows is kept, for the check to name."""
    raw = encoding.to_wire(golden("2"), "2", "x")
    argument = raw["graph_module"]["graph"]["inputs"][0]
    assert len(argument) > 20
    assert [arm for arm, held in argument.items() if held is not None] == ["as_tensor"]
    argument["as_what"] = None
    assert set(encoding.from_wire(raw, "2", "x")["graph_module"]["graph"]["inputs"][0]) == {"as_tensor", "as_what"}


def test_unknown_keys_are_kept():
    """Unknown keys survive both ways, behind the known keys."""
    raw = json.loads(golden_bytes("8.20"))
    raw["colour"] = {"a": [1]}
    raw["graph_module"]["graph"]["nodes"][0]["shade"] = "dark"
    tree = encoding.from_wire(raw, "8.20", "x")
    assert json.loads(encoding.encode(tree, "8.20", "x")) == raw


def test_numbers_without_a_spelling_are_refused():
    """A nan that a caller put into a place that is no float cannot be written as JSON."""
    tree = golden("8.20")
    tree["colour"] = math.nan
    with pytest.raises(JsonError, match=r"^x: expected numbers that JSON can hold"):
        encoding.encode(tree, "8.20", "x")


@pytest.mark.parametrize("function", [encoding.from_wire, encoding.to_wire])
def test_depth_is_bounded(function):
    """A tree deeper than the interpreter's stack is refused, not crashed on."""
    inner: dict[str, object] = {}
    for _ in range(5000):
        inner = {"nodes": [{"inputs": [{"arg": {"as_graph": {"graph": inner}}}]}]}
    with pytest.raises(LimitError, match="nested deeper"):
        function({"graph_module": {"graph": inner}}, "8.20", "x")
