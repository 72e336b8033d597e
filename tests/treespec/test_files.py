"""Tree specs of the real files in tests/data."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from pt2kit.errors import GraphError, JsonError, LimitError, SchemaError
from pt2kit.messages import count_text
from pt2kit.treespec import (
    dump,
    find_name_problems,
    find_problems,
    key_paths,
    leaf_count,
    parse,
    split_call,
    walk,
)

DATA = Path(__file__).parents[1] / "data"
FILES = sorted(DATA.glob("corpus/*/*.pt2"))


def programs(path):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith("serialized_exported_program.json") or ("models/" in name and name.endswith(".json")):
                yield json.loads(archive.read(name))


def active(union):
    return next(tag for tag, value in union.items() if value is not None)


def calls(graph_module):
    """(in_spec, out_spec, forward_arg_names, inputs, outputs) of every call signature, the last two as counts."""
    signature = graph_module["signature"]
    if "call_spec" in graph_module:
        spec = graph_module["call_spec"]
        yield spec["in_spec"], spec["out_spec"], None, len(signature["user_inputs"]), len(signature["user_outputs"])
    for entry in graph_module["module_call_graph"]:
        own = entry.get("signature")
        if own is None:
            continue
        # Strict export of torch 2.6 to 2.9 leaves the lists of submodules empty.
        inputs, outputs = (
            len(own[side]) if own["inputs"] or own["outputs"] else None for side in ("inputs", "outputs")
        )
        if entry["fqn"] == "":
            inputs = sum(active(spec) in ("user_input", "constant_input") for spec in signature["input_specs"])
            outputs = sum(active(spec) in ("user_output", "loss_output") for spec in signature["output_specs"])
        yield own["in_spec"], own["out_spec"], own.get("forward_arg_names"), inputs, outputs


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_specs_of_real_files(path):
    """Every spec is read, valid, written back identical, and has a leaf per user input or output."""
    for program in programs(path):
        module = program["graph_module"]
        fields = {name: entry["field_names"] for name, entry in module.get("treespec_namedtuple_fields", {}).items()}
        for in_text, out_text, names, inputs, outputs in calls(module):
            for text, count in ((in_text, inputs), (out_text, outputs)):
                spec = parse(text)
                assert dump(spec) == text
                assert leaf_count(spec) == count or count is None
                assert list(find_problems(spec, fields=fields)) == []
            assert list(find_name_problems(names or [], parse(in_text))) == []


HOSTILE = [
    ("062_treespec_defaultdict_import.pt2", None, ""),
    ("063_treespec_enum_import.pt2", SchemaError, "expected a list of keys"),
    ("064_treespec_unknown_type.pt2", SchemaError, "expected a tuple of arguments at the root, got os.system"),
    ("065_treespec_deep.pt2", LimitError, "expected JSON nested at most"),
    ("066_treespec_not_json.pt2", JsonError, "expected JSON"),
    ("067_treespec_wrong_arity.pt2", GraphError, "expected 1 leaf, got 3"),
    ("068_treespec_dict_context_short.pt2", SchemaError, "expected 0 children of builtins.dict"),
    ("030_fx_forward_arg_names.pt2", GraphError, "expected an identifier that is no keyword"),
    ("035_fx_forward_arg_keyword.pt2", GraphError, "expected an identifier that is no keyword"),
]


def inspect(path):
    """Read the specs of a file as a careful reader does: check them, compare the signature, check names."""
    types: set[str] = set()
    for program in programs(path):
        for in_text, out_text, names, inputs, outputs in calls(program["graph_module"]):
            for place, text, count in (("in_spec", in_text, inputs), ("out_spec", out_text, outputs)):
                spec = parse(text, place)
                key_paths(spec, place)
                types.update(node.type for node in walk(spec) if node.type)
                if place == "in_spec" and count:
                    split_call(spec, place)
                if leaf_count(spec) != count and inputs:
                    raise GraphError(f"{place}: expected {count_text(count, 'leaf', 'leaves')}, got {leaf_count(spec)}")
            for problem in find_name_problems(names or [], parse(in_text)) if names else ():
                raise GraphError(str(problem))
    return types


@pytest.mark.parametrize(("name", "error", "message"), HOSTILE, ids=[case[0][:3] for case in HOSTILE])
def test_hostile_specs(name, error, message):
    """Files made to import modules, to nest, or to lie about their structure get an error or are plain data."""
    if error is None:
        assert "collections.defaultdict" in inspect(DATA / "hostile" / name)
        return
    with pytest.raises(error) as caught:
        inspect(DATA / "hostile" / name)
    assert message in str(caught.value)
