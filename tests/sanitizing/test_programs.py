"""Programs: what of them is code, what goes with metadata, which paths stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.packages import edited
from tests.sanitizing.files import sanitized

import pt2kit
from pt2kit import codec
from pt2kit.errors import UnsupportedError
from pt2kit.node_metadata.redaction import PROVENANCE_KEYS, hide_paths

MLP = samples.sample("2.13.0", "mlp")
TRACE = '  File "/srv/alice/secret/model.py", line 3, in forward\n    x = open("/home/alice/data.txt")\n'


def with_trace(tree: Any) -> None:
    """Puts machine paths into every text of a program's metadata."""
    for node in tree["graph_module"]["graph"]["nodes"]:
        node["metadata"] |= {
            "stack_trace": TRACE,
            "custom": json.dumps({"where": "/srv/alice/x.py", "trace": TRACE, "n": [1.50, None]}),
            "torch_fn": "linear_1;/srv/alice/y.linear",
        }
    tree["graph_module"]["metadata"] = {"made": "C:\\Users\\alice\\z.py"}


def metadata(data: bytes) -> list[dict[str, str]]:
    """The metadata of all nodes, and then that of the graph module."""
    with pt2kit.open(data) as package:
        module = package.programs["model"].graph_module
        return [node.metadata for node in module.graph.nodes] + [module.metadata]


def test_guards_that_are_conditions_stay() -> None:
    """Guards in the grammar are part of the program: they are kept, and the report lists them."""
    guard = "L['x'].size()[0] != 3"
    clean, done = sanitized(edited(MLP, lambda tree: tree.update(guards_code=[guard])))
    assert [finding.rule for finding in done.kept] == ["X4"]
    with pt2kit.open(clean) as package:
        assert package.programs["model"].guards_code == [guard]


@pytest.mark.parametrize("guard", ["__import__('os')", "print(1)", "L['x'].size()[0] == 3 or exit()", ""])
def test_guards_that_are_more(guard: str) -> None:
    """A guard that is no condition is refused."""
    with pytest.raises(UnsupportedError, match="X4"):
        sanitized(edited(MLP, lambda tree: tree.update(guards_code=["L['x'].size()[0] != 3", guard])))


def spec_with(context: Any, kind: str = "collections.defaultdict") -> Any:
    """Changes the structure of the outputs to a container with a context."""

    def change(tree: Any) -> None:
        leaf: Any = {"type": None, "context": None, "children_spec": []}
        spec = {"type": kind, "context": context, "children_spec": [leaf]}
        tree["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = json.dumps([1, spec])

    return change


def spec_text(text: str) -> Any:
    """Changes the structure of the outputs to a text."""

    def change(tree: Any) -> None:
        tree["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = text

    return change


ENUM = '{"__enum__": true, "fqn": "this:E", "name": "A"}'


def factory(module: str, name: str, keys: Any = ("a",)) -> Any:
    return {"default_factory_module": module, "default_factory_name": name, "dict_context": list(keys)}


@pytest.mark.parametrize(
    ("module", "name"), [("builtins", "list"), ("builtins", "int"), ("collections", "OrderedDict")]
)
def test_defaultdicts_of_plain_types(module: str, name: str) -> None:
    """A defaultdict of Python's own containers and numbers names nothing that could do harm."""
    _, done = sanitized(edited(MLP, spec_with(factory(module, name))))
    assert [finding.rule for finding in done.kept] == ["X9"]


@pytest.mark.parametrize(
    "change",
    [
        spec_with(factory("os", "getcwd")),
        spec_with(factory("builtins", "eval")),
        spec_with(factory("this", "list")),
        spec_with(factory("builtins", "list", [{"__enum__": True, "fqn": "this:E", "name": "A"}])),
        spec_with(json.dumps([{"__enum__": True, "fqn": "this:E", "name": "A"}]), "builtins.dict"),
        spec_with({"fqn": "this:E"}, "shop.Item"),
        spec_with(ENUM.replace("__enum__", r"\u005f_enum__").replace("fqn", r"\u0066qn"), "builtins.dict"),
        spec_with(f"[{ENUM}, ", "builtins.dict"),
        spec_with(f'{{"a": [{ENUM}], "a": 1}}', "builtins.dict"),
        spec_with("[" * 40 + ENUM + "]" * 40, "builtins.dict"),
        spec_text(f'[1, {{"type": "builtins.dict", "context": {json.dumps(ENUM)}}}]'),
        spec_text(f'[1.0, {{"type": "builtins.dict", "context": {json.dumps(ENUM)}, "children_spec": []}}]'),
    ],
    ids=range(12),
)
def test_tree_specs_that_import(change: Any) -> None:
    """A tree spec that has torch import anything else is refused."""
    with pytest.raises(UnsupportedError, match="X9"):
        sanitized(edited(MLP, change))


@pytest.mark.parametrize("key", ["{a}", '{"fqn": 1}', "__enum__", "fqn"])
def test_keys_that_name_nothing(key: str) -> None:
    """Keys of a dict are texts, whatever they look like."""
    _, done = sanitized(edited(MLP, spec_with(json.dumps([key]), "builtins.dict")))
    assert done.kept == ()


def test_stripping_traces() -> None:
    """Traces go and the rest stays; the meaning is the same, and the report has both digests of the metadata."""
    clean, done = sanitized(edited(MLP, with_trace), strip=["traces"])
    assert all("stack_trace" not in found for found in metadata(clean))
    assert all("nn_module_stack" in found for found in metadata(clean)[:-1])
    assert done.metadata_before["model"] != done.digests["model"]["metadata"]
    assert done.digests["model"]["program"] == pt2kit.digest(MLP).program


def test_stripping_provenance_and_all() -> None:
    """Provenance is what says where a node comes from; "metadata" is all."""
    for found in metadata(sanitized(MLP, strip=["provenance"])[0])[:-1]:
        assert found.keys() & PROVENANCE_KEYS == set()
        assert "nn_module_stack" in found
    assert not any(metadata(sanitized(edited(MLP, with_trace), strip=["metadata"])[0]))


def test_stripping_subgraphs() -> None:
    """The nodes of subgraphs are stripped as well."""
    clean, _ = sanitized(samples.sample("2.13.0", "cond"), strip=["metadata"])
    with pt2kit.open(clean) as package:
        text = codec.encode(package.programs["model"]).decode()
    assert '"metadata":{"' not in text
    assert '"metadata":{}' in text


def test_scrubbing() -> None:
    """No absolute path is left in the metadata: base names stay, and the JSON in it is JSON."""
    clean, _ = sanitized(edited(MLP, with_trace), scrub_paths=True)
    found = metadata(clean)
    assert "alice" not in json.dumps(found)
    assert found[0]["stack_trace"] == TRACE.replace("/srv/alice/secret/", ".../").replace("/home/alice/", ".../")
    custom = json.loads(found[0]["custom"])
    assert (custom["where"], custom["n"]) == (".../x.py", [1.5, None])
    assert found[-1] == {"made": ".../z.py"}
    assert sanitized(clean, scrub_paths=True)[0] == clean


@pytest.mark.parametrize("path", samples.corpus("2.13.0"), ids=samples.release_id)
def test_scrubbing_real_files(path: Path) -> None:
    """Real files have no absolute path left, and keep what is below site-packages."""
    clean, done = sanitized(path, scrub_paths=True)
    with pt2kit.open(clean) as package:
        for program in package.programs.values():
            texts = {text for node in program.graph_module.graph.nodes for text in node.metadata.values()}
            assert all(hide_paths(text) == text for text in texts)
            assert not any("/lib/python" in text for text in texts)
    assert sanitized(clean, scrub_paths=True)[0] == clean
    assert done.metadata_before.keys() == done.digests.keys()


def test_paths_that_mean_something() -> None:
    """A path in an argument cannot be scrubbed without changing the program: it is refused with its place."""

    def change(tree: Any) -> None:
        node = tree["graph_module"]["graph"]["nodes"][0]
        node["inputs"].append({"name": "file", "arg": {"as_string": "/srv/alice/x.bin"}, "kind": 2})

    data = edited(MLP, change)
    sanitized(data)
    with pytest.raises(UnsupportedError, match=r"nodes\[0\]\.inputs\[3\]\.arg\.as_string: .*/srv/alice/x\.bin.*Z5"):
        sanitized(data, scrub_paths=True)


def test_nothing_to_strip_changes_nothing() -> None:
    """Stripping and scrubbing what is not there leaves the program's record as it was."""
    bare, _ = sanitized(MLP, strip=["metadata"])
    again, done = sanitized(bare, strip=["traces", "provenance"], scrub_paths=True)
    assert again == bare
    assert done.metadata_before["model"] == done.digests["model"]["metadata"]
