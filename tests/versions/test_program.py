"""Programs of every release are raised to the current version, and go back to the bytes they came from."""

from __future__ import annotations

from typing import Any

import pytest
from tests.samples import RELEASES
from tests.versions.programs import as_read, copied, golden, golden_bytes, release_version, stored_programs

from pt2kit import codec, graph, schema, signature
from pt2kit.errors import ConversionError, LimitError, Pt2Error, SchemaError, VersionError
from pt2kit.versions import encoding
from pt2kit.versions.conversion_log import HARMLESS, SideInputs
from pt2kit.versions.program import downgrade_program, oldest_version, upgrade_program


def parse(data, record):
    return codec.parse(data, record, bare_literals=True)


@pytest.mark.parametrize("release", RELEASES)
def test_samples_are_raised_and_come_back(release):
    """Each is a whole program that contradicts itself nowhere; lowered again it is what the release wrote."""
    version = release_version(release)
    for path, record, data in stored_programs(release):
        raw = parse(data, record)
        before = copied(raw)
        raised = upgrade_program(raw, record)
        assert repr(raw) == repr(before)
        assert raised.found.table == version
        assert raised.tree["schema_version"] == {"major": 8, "minor": 20}
        side_inputs = SideInputs(constants=raised.constants)
        # Some releases wrote what they do not read.
        lowered = downgrade_program(
            raised.tree, version, record, allow=HARMLESS | {"unreadable"}, side_inputs=side_inputs
        )
        assert lowered.encode(record) == as_read(data, release), path.stem
        decoded = codec.convert(raised.tree, schema.ExportedProgram, record)
        assert decoded.unknown == ()
        found = [*graph.problems(decoded.value, path.stem), *signature.problems(decoded.value.graph_module)]
        assert [str(problem) for problem in found if problem.kind == "error"] == []


@pytest.mark.parametrize("release", RELEASES)
def test_raising_twice_changes_nothing_more(release):
    """A raised program is a current one."""
    for _, record, data in stored_programs(release):
        tree = upgrade_program(parse(data, record), record).tree
        assert upgrade_program(tree, record).tree == tree


def test_current_programs_have_nothing_to_say():
    """A file of the current version comes out as it is."""
    raised = upgrade_program(parse(golden_bytes("8.20"), "x"), "x")
    assert (raised.notes, raised.constants, raised.weights) == ((), {}, {})
    assert raised.tree == golden("8.20")


def test_development_states_are_stamped():
    """A number between two releases is read by the next table, and what it may leave out is filled in."""
    raw = encoding.to_wire(golden("8.8"), "8.8", "x")
    raw["schema_version"] = {"major": 8, "minor": 10}
    raised = upgrade_program(raw, "x")
    assert (raised.found.number, raised.found.table) == ("8.10", "8.14")
    assert raised.tree["guards_code"] == []
    assert raised.tree["schema_version"] == {"major": 8, "minor": 20}


def test_newer_minors_keep_their_keys():
    """Unknown keys of newer minors are kept, for the codec to report."""
    raw = encoding.to_wire(golden("8.20"), "8.20", "x")
    raw["schema_version"] = {"major": 8, "minor": 99}
    raw["colour"] = "red"
    raised = upgrade_program(raw, "x")
    assert raised.tree["colour"] == "red"
    unknown = codec.convert(copied(raised.tree), schema.ExportedProgram, "x").unknown
    assert [str(item) for item in unknown] == ["$.colour"]
    with pytest.raises(
        ConversionError, match=r"ExportedProgram\.colour, which no schema here knows; allow 'unknown_keys'"
    ):
        downgrade_program(raised.tree, "8.17", "x")


def test_named_tuples_get_the_name_that_the_caller_gives():
    """2.3 knows the class name only."""
    raised = upgrade_program(parse(golden_bytes("5.1"), "x"), "x", namedtuples={"NT": "corpus.NT"})
    assert raised.tree["graph_module"]["treespec_namedtuple_fields"] == {"corpus.NT": {"field_names": ["a", "b"]}}


def test_stacks_that_torch_cannot_read_are_mended():
    """Stacks of older programs are fixed; current ones are unchanged."""
    for version, text in (("8.17", "a_b,a%2Cb,m.A"), ("8.20", "a_b,a,b,m.A")):
        tree = golden(version)
        tree["graph_module"]["graph"]["nodes"][0]["metadata"]["nn_module_stack"] = "a_b,a,b,m.A"
        raised = upgrade_program(encoding.to_wire(tree, version, "x"), "x")
        assert raised.tree["graph_module"]["graph"]["nodes"][0]["metadata"]["nn_module_stack"] == text


def test_every_obstacle_is_in_one_error():
    """With its place and the version that brought it, from all steps on the way."""
    with pytest.raises(ConversionError) as caught:
        downgrade_program(golden("8.20"), "2", "models/m.json")
    text = str(caught.value)
    assert text.startswith("models/m.json: expected a program that schema 2 can express, got one with:\n")
    for part in (
        "the arm as_float_lists of Argument (since 8.20)",
        "the arm as_nested_tensors of Argument (since 8.17)",
        "the arm as_int_lists of Argument (since 8.15)",
        "the arm as_complex of Argument (since 8.14)",
        "the arm parameter_mutation of OutputSpec (since 8.14)",
        "the ScalarType 29 (since 8.6)",
        "the symbolic float 'f' (since 8.2)",
        "the arm token of InputSpec (since 5.3)",
        "the arm as_operator of Argument (since 5.1)",
        "that the buffer 'a.buf1' is not persistent (since 5.1); allow 'persistent' to drop it",
    ):
        assert part in text
    assert "$.graph_module.graph.nodes[1].inputs[" in text


def test_losses_must_be_allowed():
    """Nothing is dropped in silence: by default what is harmless, else what the caller names."""
    tree = golden("8.14")
    assert {
        note.name
        for note in downgrade_program(tree_of("8.14"), "8.8", "x", allow={"guards_code", "x"}).notes
        if note.name
    }
    with pytest.raises(ConversionError, match=r"guards_code \(since 8\.14\); allow 'guards_code' to drop it"):
        downgrade_program(tree_of("8.14"), "8.8", "x", allow=())
    assert tree == golden("8.14")


def tree_of(version):
    """The golden program of a version without what older versions block, raised."""
    tree = golden(version)
    graph_ = tree["graph_module"]["graph"]
    graph_["nodes"] = []
    graph_["tensor_values"] = {name: meta for name, meta in graph_["tensor_values"].items() if "dtype" not in name}
    module = tree["graph_module"]["signature"]
    module["output_specs"] = [spec for spec in module["output_specs"] if "parameter_mutation" not in spec]
    return upgrade_program(encoding.to_wire(tree, version, "x"), "x").tree


def test_bad_targets_and_trees():
    """Each with its own error."""
    with pytest.raises(VersionError, match=r"got '8\.9'"):
        downgrade_program(golden("8.20"), "8.9", "x")
    with pytest.raises(SchemaError, match=r"^x: schema 8\.20: "):
        downgrade_program({**golden("8.20"), "verifiers": 3}, "8.17", "x")
    with pytest.raises(SchemaError, match=r"^x: schema 8\.7: "):
        upgrade_program({**golden("8.7"), "verifiers": 3}, "x")


def test_missing_fields_are_filled_in_before_lowering():
    """A tree may leave out what has a default."""
    tree = golden("8.20")
    for node in tree["graph_module"]["graph"]["nodes"]:
        node.pop("name")
        for named in node["inputs"]:
            named.pop("kind")
    allowed = {*HARMLESS, "persistent"}
    with pytest.raises(ConversionError, match=r"^x: expected a program that schema 5\.1 can express"):
        downgrade_program(tree, "5.1", "x", allow=allowed)


def test_oldest_versions():
    """The oldest that can express a program; what is inside for schema 1 counts as given."""
    found = {}
    for path, record, data in stored_programs("2.13.0"):
        found[path.stem] = oldest_version(upgrade_program(parse(data, record), record).tree, record)
    assert found["mlp"] == "1"
    assert found["constants"] == "7.3"
    assert found["none_input"] == "5.1"  # 2.2 writes inputs that are no tensors, but reads none
    assert found["float8"] == "8.7"
    assert found["complex_scalar"] == "8.14"
    assert found["sym_float"] == "8.2"
    assert found["custom_op_nested_floats"] == "8.20"


@pytest.mark.parametrize("function", [upgrade_program, oldest_version])
def test_depth_is_bounded(function):
    """A program deeper than the interpreter's stack is refused, not crashed on."""
    tree = golden("8.20")
    graph_ = tree["graph_module"]["graph"]
    inner = copied({**graph_, "nodes": []})
    for _ in range(1500):
        argument = {"name": "", "arg": {"as_graph": {"name": "g", "graph": inner}}, "kind": 1}
        inner = {**graph_, "nodes": [{**graph_["nodes"][0], "inputs": [argument]}]}
    tree["graph_module"]["graph"] = inner
    with pytest.raises(LimitError, match="nested deeper"):
        function(tree, "x")


def test_errors_are_the_project_s_own():
    """Whatever is wrong with a program."""
    trees: tuple[Any, ...] = (None, 3, [], {}, {"schema_version": 1}, {"schema_version": {"major": 8, "minor": 20}})
    for raw in trees:
        with pytest.raises(Pt2Error, match=r"^x: .*: expected .*, got .*"):
            upgrade_program(raw, "x")
