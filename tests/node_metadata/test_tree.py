"""The module tree of a program."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node_metadata.texts import names

from pt2kit.errors import LimitError
from pt2kit.node_metadata.frames import lenient
from pt2kit.node_metadata.modules import MAX_MODULE_DEPTH, ModuleEntry, module_fqn, module_tree, parse_module_stack

DATA = Path(__file__).parents[1] / "data"

FQNS = [
    ("", ""),
    ("mid.n", "mid.n"),
    ("d.a-b", "d.a-b"),
    ("L['self']", ""),
    ("L['s'].mid.inner.l", "mid.inner.l"),
    ("L['s'].d['a-b']", "d.a-b"),
    ('L["s"].d["it\'s"]', "d.it's"),
    ("L['s'].d['été']", "d.été"),
    ("L['self'][0]", "0"),
    ("L['s'].blocks[12].mlp", "blocks.12.mlp"),
    ("L['fn']", ""),
    ("getattr(L['fn'], '0')", "0"),
    ("getattr(L['s'].blocks, '0').mlp", "blocks.0.mlp"),
    ("getattr(getattr(L['s'].blocks, '0').mlp, 'a,b)')", "blocks.0.mlp.a,b)"),
    ("L['s'].d['a\\'b']", "d.a'b"),
    ("_export_root", ""),
    ("_export_root.mid", "mid"),
    ("mid@1", "mid"),
    ("mid@1.n@12", "mid.n"),
    # No expressions of traced code: names as they are.
    ("L['s'", "L['s'"),
    ("getattr(L['fn'], '0'", "getattr(L['fn'], '0'"),
    ("L['s'].a), 'b')", "L['s'].a), 'b')"),
    ("L['s'] + 1", "L['s'] + 1"),
]


@pytest.mark.parametrize(("path", "fqn"), FQNS)
def test_names_from_paths(path, fqn):
    """Every release's way of reaching a module gives the one dotted name."""
    assert module_fqn(path) == fqn


def shape(node):
    return {child.name: shape(child) for child in node.children}


def test_a_small_program():
    """Types, node counts, parameters and order of first appearance come together."""
    root = ModuleEntry("L__self__", "", "make.M")
    mid = ModuleEntry("1234", "L['s'].mid", "make.Mid")
    leaf = ModuleEntry("1235", "L['s'].mid.fc", "torch.nn.Linear")
    made = ModuleEntry(*["_empty_nn_module_stack_from_metadata_hook"] * 3)
    tree = module_tree([(root, mid, leaf), (root, mid), (root,), (made,), ()], ["", "head"], ["mid.fc.weight", "scale"])
    assert shape(tree) == {"mid": {"fc": {}}, "head": {}}
    assert (tree.type, tree.nodes, tree.parameters) == ("make.M", 1, ("scale",))
    fc = tree.children[0].children[0]
    assert (fc.name, fc.fqn, fc.type, fc.nodes) == ("fc", "mid.fc", "torch.nn.Linear", 1)
    assert fc.parameters == ("mid.fc.weight",)
    assert tree.children[1].type is None


def test_parameters_of_torch_2_1_find_their_module():
    """torch 2.1 names parameters by the module's key; they belong to the module of that key."""
    stack = parse_module_stack("L__s___d_a_b:(L['s'].d['a-b'],m.Linear)")
    tree = module_tree([stack], [], ["L__s___d_a_b.weight", "k"])
    assert tree.children[0].children[0].parameters == ("L__s___d_a_b.weight",)
    assert tree.parameters == ("k",)


def test_limits():
    """Very deep names end in one long name; too many modules are refused."""
    deep = ".".join("m" * 100_000)
    tree = module_tree([], [deep])
    levels = 0
    while tree.children:
        (tree,) = tree.children
        levels += 1
    assert levels == MAX_MODULE_DEPTH
    assert tree.fqn == deep
    with pytest.raises(LimitError, match="module tree: expected at most 200000 modules, got more"):
        module_tree([], (f"m{i}" for i in range(200_001)))


@given(st.lists(st.lists(st.builds(ModuleEntry, names, names, names), max_size=3)), st.lists(names), st.lists(names))
def test_any_names_make_a_tree(stacks, fqns, parameters):
    """Whatever names a file has, there is a tree; every parameter is in it once and every node is counted."""
    tree = module_tree(stacks, fqns, parameters)
    seen: list[str] = []
    nodes, todo = 0, [tree]
    while todo:
        node = todo.pop()
        seen += node.parameters
        nodes += node.nodes
        todo += node.children
    assert sorted(seen) == sorted(parameters)
    assert nodes == sum(bool(stack) for stack in stacks)


@pytest.mark.parametrize(
    "path", sorted(DATA.glob("corpus/*/preserve_module_sig.pt2")), ids=lambda path: path.parent.name
)
def test_the_same_model_of_every_release(path):
    """One model traced by every release has one tree, though each writes its stacks in its own way."""
    with zipfile.ZipFile(path) as archive:
        name = next(
            n for n in archive.namelist() if n.endswith(("serialized_exported_program.json", "models/model.json"))
        )
        module = json.loads(archive.read(name))["graph_module"]
    stacks = [parse_module_stack(node["metadata"].get("nn_module_stack", "")) for node in module["graph"]["nodes"]]
    tree = module_tree(stacks, [entry["fqn"] for entry in module["module_call_graph"]])
    assert shape(tree) == {"mid": {"n": {}, "inner": {"l": {}}}, "head": {}}
    types = {child.name: child.type for child in tree.children[0].children}
    assert types["n"] == "torch.nn.modules.normalization.LayerNorm"


@pytest.mark.parametrize("name", ["038_meta_stack_trace_injection", "265_meta_nn_module_stack_bad"])
def test_hostile_metadata_is_shown_or_skipped(name):
    """Hostile metadata text is data, or nothing where it can't be read."""
    with zipfile.ZipFile(DATA / "hostile" / f"{name}.pt2") as archive:
        record = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        nodes = json.loads(archive.read(record))["graph_module"]["graph"]["nodes"]
    stacks = [lenient(parse_module_stack, node["metadata"].get("nn_module_stack", "")) or () for node in nodes]
    assert module_tree(stacks).name == ""
