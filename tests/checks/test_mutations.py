"""Every rule that a file can break has a file that breaks it, and no other rule."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.checks import mutations as m
from tests.checks.mutations import (
    COND,
    DYNAMIC,
    JOINT,
    KEPT,
    MANY,
    MLP,
    OPERATORS,
    PLAIN,
    SHARED,
    TOKENS,
    Mutation,
    edited_bytes,
    graph,
    root_call,
    tensor,
)
from tests.packages import rewritten
from tests.zip.zip_forge import Entry, deflated, forge

from pt2kit.checks import RULES, check
from pt2kit.errors import Problem
from pt2kit.package import record_names as names
from pt2kit.package.layouts.detection import detect
from pt2kit.zip.reader import open_archive

HOSTILE = {case["name"]: case["path"] for case in samples.hostile()}

UNREACHABLE = {
    "A1": "of sources that cannot be read: folders, URLs, streams",
    "A17": "of callers that ask for a record by name",
    "A27": "of callers that go on after closing",
    "M2": "the limit on nesting (J3) comes first",
    "M3": "of lowering a program to an older version",
    "O3": "of raising programs of older operator sets",
    "P15": "of callers that ask for the numbers of an opaque payload",
    "P16": "of callers that ask for copies",
    "P17": "of sparse tensors in torch.save payloads, which tests of the tensors forge",
    "P18": "of exporting tensors",
    **{rule: "of sanitizing" for rule in RULES if rule.startswith("Z")},
    **{rule: "of weights next to an archive, which tests of the package forge" for rule in RULES if rule[0] == "B"},
    "S11": "of specs that are built, not read: the schema leaves no room for it",
}
"""Rules that no file breaks by being checked, with the reason."""


def hostile(name: str, *, payloads: bool = False) -> Mutation:
    """A file of the hostile ones."""
    return Mutation(None, HOSTILE[name].read_bytes(), payloads)


def _with(entry: Entry) -> Mutation:
    """A file with one more record, whose bytes are read."""
    return Mutation(MLP, forge(*m.entries(), entry), True)


ARCHIVE: dict[str, Callable[[], Mutation]] = {
    "A2": lambda: m.forged(after=b"more"),
    "A3": lambda: m.forged(end64={"size": 97}),
    "A4": lambda: m.forged(end={"size": 1}),
    "A5": lambda: hostile("flip_eocd_count"),
    "A6": lambda: m.entry(name=b"m/../b"),
    "A7": lambda: m.entry(name=b"m/A"),
    "A8": lambda: hostile("zip_symlink_entry"),
    "A9": lambda: m.entry(flags=0x0801),
    "A10": lambda: m.entry(local={"method": 93}, entry={"method": 93}),
    "A11": lambda: m.entry(local={"size": 99}, entry={"size": 99}),
    "A12": lambda: m.entry(gap=b"gap", entry={"offset": 0}),
    "A13": lambda: m.entry(local={"crc32": 1}),
    "A14": lambda: m.entry(flags=0x0808, local={"crc32": 0, "csize": 0, "size": 0}),
    "A15": lambda: _with(Entry(b"mlp/extra/x", b"short", deflate=True, packed=deflated(b"longer than short"))),
    "A16": lambda: _with(Entry(b"mlp/extra/x", b"a", local={"crc32": 7}, entry={"crc32": 7})),
    "A18": lambda: hostile("zip_bomb_overlap"),
    "A19": lambda: m.entry(name=b"other/b"),
    "A20": lambda: m.records(MLP, {names.ARCHIVE_FORMAT: b"pt3"}),
    "A21": lambda: m.records(MLP, {names.ARCHIVE_VERSION: b"1"}),
    "A22": lambda: m.records(MLP, {names.DATA_VERSION: b"99"}),
    "A23": lambda: m.records(MLP, {names.BYTEORDER: b"big"}),
    "A24": lambda: m.records(MLP, {"models/other.txt": b""}),
    "A25": lambda: m.records(MLP, {names.weights_payload("model"): b"x"}),
    "A26": lambda: hostile("pickle_fallback_polyglot"),
}


def _set(key: str, value: Any) -> Callable[[Any], None]:
    return lambda tree: tree.__setitem__(key, value)


def _from_the_future(tree: Any) -> None:
    tree["schema_version"]["minor"] = 99
    graph(tree)["outputs"].append({"as_novelty": 1})


JSON: dict[str, Callable[[], Mutation]] = {
    "J1": lambda: m.records(MLP, {names.model_json("model"): b"{"}),
    "J2": lambda: m.records(MLP, {m.WEIGHTS: b'{"config": {}, "config": {}}'}),
    "J3": lambda: m.program(MLP, _set("x", json.loads("[" * 600 + "]" * 600))),
    "J4": lambda: m.program(MLP, lambda tree: graph(tree)["outputs"].append({"as_evil": 1})),
    "J5": lambda: m.program(MLP, lambda tree: tree.pop("graph_module")),
    "V1": lambda: m.program(MLP, _from_the_future),
    "V2": lambda: m.program(MLP, _set("torch_version", "two")),
    "V3": lambda: m.program(MLP, _set("verifiers", ["EVIL"])),
    "V4": lambda: m.program(MLP, _set("novelty", 1)),
    "M1": lambda: m.records(PLAIN, {names.PLAIN_PROGRAM: b'{"schema_version": {"major": 7, "minor": 3}}'}),
    "M4": lambda: m.program(MLP, _set("schema_version", {"major": 9, "minor": 0})),
    "M5": lambda: m.records(PLAIN, {names.PLAIN_PROGRAM: b"{}"}),
    "V5": lambda: m.nodes(MLP, lambda found: found[1]["metadata"].__setitem__("nn_module_stack", "a,b;[(")),
    "O1": lambda: m.program(MLP, _set("opset_version", {"aten": 11})),
    "O2": lambda: m.program(MLP, _set("opset_version", {"aten": 10, "mine": 1})),
}


def _reorder(tree: Any, side: str, order: list[int]) -> None:
    """Put inputs or outputs, and their specs, into another order."""
    for holder, key in ((graph(tree), f"{side}s"), (tree["graph_module"]["signature"], f"{side}_specs")):
        holder[key] = [holder[key][number] for number in order]


def _second_entry(tree: Any) -> None:
    name = next(iter(graph(tree)["sym_int_values"]))
    described = graph(tree)["tensor_values"]
    described[name] = next(iter(described.values()))


def _undescribed(tree: Any) -> None:
    del graph(tree)["tensor_values"]["relu"]


def _defined_twice(tree: Any) -> None:
    graph(tree)["nodes"].append(m.call("torch.ops.aten.relu.default", "relu", self=tensor("linear")))
    graph(tree)["nodes"][-1]["name"] = "relu_1"


def _odd_value_name(tree: Any) -> None:
    m.rename(tree, "relu", "re lu")
    graph(tree)["nodes"][1]["name"] = "relu"


def _subgraph(**parts: Any) -> dict[str, Any]:
    """A subgraph as an argument."""
    empty: Any = {"inputs": [], "outputs": [], "nodes": []}
    empty |= {"tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {}}
    return {"as_graph": {"name": "inner", "graph": {**empty, **parts}}}


def _subgraph_as_output(found: list[Any]) -> None:
    found[0]["outputs"].append(_subgraph())


def _argument(number: int, position: int, value: Any) -> Callable[[list[Any]], None]:
    """Give a node another argument."""
    return lambda found: found[number]["inputs"][position].__setitem__("arg", value)


def _one_name(found: list[Any]) -> None:
    """Both branches under one name: torch runs whichever comes last."""
    branches = next(node for node in found if node["target"].endswith("cond"))["inputs"][1:3]
    branches[1]["arg"]["as_graph"]["name"] = branches[0]["arg"]["as_graph"]["name"]


_MUL = "torch.ops.aten.mul.Tensor"


GRAPH: dict[str, Callable[[], Mutation]] = {
    "G1": lambda: m.nodes(MLP, _argument(1, 0, tensor("ghost"))),
    "G2": lambda: m.program(MLP, _defined_twice),
    "G3": lambda: m.program(MLP, _undescribed),
    "G4": lambda: m.program(OPERATORS, _second_entry),
    "G5": lambda: m.program(MLP, lambda tree: m.new_value(tree, "nobody", "relu")),
    "G6": lambda: m.program(MLP, lambda tree: graph(tree)["tensor_values"]["relu"]["strides"].pop()),
    "G7": lambda: m.added(DYNAMIC, _MUL, self=tensor("x"), other={"as_sym_int": {"as_name": "x"}}),
    "G8": lambda: m.program(MLP, _odd_value_name),
    "G9": lambda: m.nodes(TOKENS, _argument(0, 2, _subgraph(inputs=[{"as_ints": [1]}]))),
    "G10": lambda: m.nodes(TOKENS, _subgraph_as_output),
    "G11": lambda: m.nodes(TOKENS, _argument(0, 2, m.nested(40))),
    "G12": lambda: m.program(JOINT, lambda tree: graph(tree).__setitem__("is_single_tensor_return", True)),
    "G13": lambda: m.nodes(TOKENS, lambda found: found[0].__setitem__("is_hop_single_tensor_return", True)),
    "G14": lambda: m.nodes(MLP, lambda found: found[2].__setitem__("name", "relu")),
    "G16": lambda: m.nodes(COND, _one_name),
    "G17": lambda: m.program(MLP, lambda tree: graph(tree)["tensor_values"]["relu"].__setitem__("dtype", 0)),
    "G18": lambda: m.nodes(m.SCAN, _argument(25, 0, tensor("add_1"))),
    "G15": lambda: m.nodes(MLP, lambda found: found[1].__setitem__("name", "re-lu")),
}


def _specs(tree: Any, side: str) -> list[Any]:
    found: list[Any] = tree["graph_module"]["signature"][f"{side}_specs"]
    return found


def _two_losses(tree: Any) -> None:
    found = _specs(tree, "output")
    found[1] = {"loss_output": {"arg": found[1]["gradient_to_parameter"]["arg"]}}
    call = root_call(tree)
    call["out_spec"] = json.dumps([1, {"type": "builtins.tuple", "context": "null", "children_spec": [_LEAF, _LEAF]}])


_LEAF: Any = {"type": None, "context": None, "children_spec": []}


def _two_targets(tree: Any) -> None:
    """Two inputs for one parameter, one of which wants no gradient."""
    found = [spec["parameter"] for spec in _specs(tree, "input") if "parameter" in spec]
    second = next(spec for spec in found if spec["parameter_name"] == "out.weight")
    second["parameter_name"] = "emb.weight"
    graph(tree)["tensor_values"][second["arg"]["name"]]["requires_grad"] = False


def _constant_input(tree: Any) -> None:
    """The input becomes a constant whose placeholder has an impossible name."""
    graph(tree)["inputs"].append({"as_int": 3})
    _specs(tree, "input").append({"constant_input": {"name": "not a name", "value": {"as_int": 3}}})
    _one_more_input(tree)


def _exchanged(tree: Any) -> None:
    """Each of two buffers gets what is meant for the other one, of another element type."""
    one, other = m.spec(tree, "output", 0), m.spec(tree, "output", 1)
    one["buffer_name"], other["buffer_name"] = other["buffer_name"], one["buffer_name"]


def _one_more_input(tree: Any) -> None:
    call = root_call(tree)
    spec = json.loads(call["in_spec"])
    spec[1]["children_spec"][0]["children_spec"].append(_LEAF)
    call["in_spec"] = json.dumps(spec)
    call["forward_arg_names"].append("other")


def _list_for_the_user(tree: Any) -> None:
    graph(tree)["outputs"].append({"as_ints": [1]})
    _specs(tree, "output").append({"user_output": {"arg": {"as_ints": [1]}}})
    call = root_call(tree)
    call["out_spec"] = json.dumps([1, {"type": "builtins.tuple", "context": "null", "children_spec": [_LEAF, _LEAF]}])


def _dropped_token(tree: Any) -> None:
    """The token that comes out becomes a mutation-less user output."""
    _specs(tree, "output").pop(0)
    graph(tree)["outputs"].pop(0)


def _odd_target() -> Mutation:
    """A parameter whose name has an empty part, in the signature and among the weights."""

    def rename(config: Any) -> None:
        config["0..weight"] = config.pop("0.weight")

    def point(tree: Any) -> None:
        m.spec(tree, "input", 0)["parameter_name"] = "0..weight"

    return Mutation(MLP, edited_bytes(m.program(MLP, point).data, m.WEIGHTS, rename))


SIGNATURE: dict[str, Callable[[], Mutation]] = {
    "S1": lambda: m.program(MLP, lambda tree: graph(tree)["inputs"].append({"as_int": 1})),
    "S2": lambda: m.program(JOINT, lambda tree: _specs(tree, "output").pop()),
    "S3": lambda: m.program(MLP, lambda tree: m.spec(tree, "input", 4)["arg"]["as_tensor"].__setitem__("name", "x")),
    "S4": lambda: m.program(MLP, lambda tree: m.spec(tree, "output", 0)["arg"]["as_tensor"].__setitem__("name", "x")),
    "S5": lambda: m.program(MLP, lambda tree: _reorder(tree, "input", [4, 0, 1, 2, 3])),
    "S6": lambda: m.program(JOINT, lambda tree: _reorder(tree, "output", [1, 0, 2])),
    "S7": lambda: m.program(JOINT, lambda tree: m.spec(tree, "output", 1).__setitem__("parameter_name", "nope")),
    "S8": lambda: m.program(SHARED, _two_targets),
    "S9": lambda: m.program(JOINT, _two_losses),
    "S10": _odd_target,
    "S12": lambda: m.program(MLP, _list_for_the_user),
    "S13": lambda: m.program(TOKENS, _dropped_token),
    "S14": lambda: m.program(MLP, _constant_input),
    "S15": lambda: m.program(m.BUFFERS, _exchanged),
}


def _kept_input(tree: Any) -> None:
    found = tree["graph_module"]["module_call_graph"][1]["signature"]
    found["inputs"][0]["as_tensor"]["name"] = "nobody"


def _other_container(spec: Any) -> Any:
    spec[1]["children_spec"][0]["children_spec"] = [{"type": "mine.Pair", "context": "null", "children_spec": [_LEAF]}]
    return spec


def _odd_context(spec: Any) -> Any:
    spec[1]["children_spec"][0]["context"] = '"odd"'
    return spec


def _other_input(tree: Any) -> None:
    for meta in graph(tree)["tensor_values"].values():
        meta["sizes"][0], meta["strides"][0] = {"as_int": 7}, {"as_int": 7}


CALLS: dict[str, Callable[[], Mutation]] = {
    "K1": lambda: m.program(MLP, lambda tree: tree["graph_module"]["module_call_graph"].pop(0)),
    "K2": lambda: m.program(MLP, lambda tree: root_call(tree).__setitem__("out_spec", "[1, {}]")),
    "K3": lambda: m.tree_spec(_odd_context),
    "K4": lambda: m.tree_spec(
        lambda spec: [1, {"type": "builtins.tuple", "context": "null", "children_spec": []}], "out_spec"
    ),
    "K5": lambda: m.program(MLP, lambda tree: root_call(tree).__setitem__("forward_arg_names", ["for"])),
    "K6": lambda: m.program(KEPT, _kept_input),
    "K7": lambda: m.tree_spec(_other_container),
    "K8": lambda: m.tree_spec(lambda spec: [1, spec[1]["children_spec"][0]]),
    "K9": lambda: m.program(samples.sample("2.13.0", "empty_graph"), _other_input),
}


def _hint(tree: Any, value: Any) -> None:
    m.sizes_of(tree, "linear_1", {"as_expr": {"expr_str": m.SYMBOL, "hint": value}}, 4)


EXPRESSIONS: dict[str, Callable[[], Mutation]] = {
    "E1": lambda: m.with_input_size("s77 +* 2"),
    "E2": lambda: m.with_input_size("Symbol('s99', positive=True, integer=True)"),
    "E3": lambda: m.program(DYNAMIC, lambda tree: tree["range_constraints"]["s77"].__setitem__("min_val", 99)),
    "E4": lambda: m.with_input_size(m.SYMBOL, 1000),
    "E5": lambda: m.with_input_size("Symbol('s77', integer=True)"),
    "E6": lambda: m.program(DYNAMIC, _set("guards_code", ["L['y'].size()[0] >= 2"])),
    "E7": lambda: m.program(DYNAMIC, _set("guards_code", ["L['x'].size()[0] > 64"])),
    "E8": lambda: m.with_input_size(str(1 << 63)),
    "E9": lambda: m.program(DYNAMIC, lambda tree: _hint(tree, {"as_float": 3.0})),
}


def _no_bias_argument(found: list[Any]) -> None:
    found[0]["inputs"].pop(1)


def _sized(tree: Any) -> None:
    m.sizes_of(tree, "relu", 3, 9)


def created(tree: Any) -> None:
    """A call makes 64 GiB out of two numbers."""
    huge = {"as_ints": [1 << 20, 1 << 14]}
    graph(tree)["nodes"].append(m.call("torch.ops.aten.zeros.default", m.new_value(tree, "extra", "relu"), size=huge))
    m.sizes_of(tree, "extra", 1 << 20, 1 << 14)
    graph(tree)["tensor_values"]["extra"]["strides"] = [{"as_int": 1 << 14}, {"as_int": 1}]


_ARGMAX = "torch.ops.aten.argmax.default"


def _argmax_by_place(tree: Any) -> None:
    node = m.call(_ARGMAX, m.new_value(tree, "extra", "relu"), self=tensor("relu"), keepdim={"as_bool": False})
    graph(tree)["nodes"].append(node)
    m.sizes_of(tree, "extra")
    graph(tree)["tensor_values"]["extra"]["dtype"] = 5


def _unknown_approximation(tree: Any) -> None:
    result = m.new_value(tree, "extra", "relu")
    node = m.call("torch.ops.aten.gelu.default", result, self=tensor("relu"), approximate={"as_string": "erf"})
    node["inputs"][1]["kind"] = 2
    graph(tree)["nodes"].append(node)


def _other_sum(tree: Any) -> None:
    """A sum of symbols that is declared to be more than it is."""
    node = next(node for node in graph(tree)["nodes"] if node["target"] == "_operator.add")
    name = node["outputs"][0]["as_sym_int"]["as_name"]
    graph(tree)["sym_int_values"][name]["as_expr"] = {"expr_str": "Integer(3)", "hint": None}


def _written_in_aten(tree: Any) -> None:
    """A call that writes, in a program that says it is functional."""
    graph(tree)["nodes"][1]["target"] = "torch.ops.aten.relu_.default"
    tree["verifiers"] = ["ATEN"]


TARGETS: dict[str, Callable[[], Mutation]] = {
    "T1": lambda: m.nodes(MLP, lambda found: found[1].__setitem__("target", "torch.ops.aten.relu.nope")),
    "T2": lambda: m.nodes(MLP, lambda found: found[1].__setitem__("target", "torch.ops.mine.relu.default")),
    "T3": lambda: m.nodes(MLP, lambda found: found[1]["inputs"].append({"name": "bogus", "arg": {"as_int": 1}})),
    "T4": lambda: m.nodes(MLP, _no_bias_argument),
    "T5": lambda: m.nodes(MLP, _argument(1, 0, {"as_string": "text"})),
    "T6": lambda: m.nodes(MLP, lambda found: found[1].__setitem__("outputs", [{"as_tensors": [{"name": "relu"}]}])),
    "T7": lambda: m.nodes(COND, _argument(0, 3, {"as_tensors": []})),
    "T8": lambda: m.program(MLP, _sized),
    "T9": lambda: m.program(MLP, created),
    "T10": lambda: m.program(MLP, _argmax_by_place),
    "T11": lambda: m.added(MLP, "torch.ops.aten.to.dtype", self=tensor("relu"), dtype={"as_scalar_type": 8}),
    "T12": lambda: m.added(MLP, "torch.ops.aten.softmax.int", self=tensor("relu"), dim={"as_int": 7}),
    "T13": lambda: m.program(OPERATORS, _other_sum),
    "T14": lambda: m.program(MLP, _written_in_aten),
    "T15": lambda: m.program(MLP, _unknown_approximation),
}


def _path_name(name: str) -> Mutation:
    """A file whose last weight says that it is elsewhere; the record it had is dropped."""
    changed = m.weights(MLP, lambda config: config["2.bias"].__setitem__("path_name", name))
    return Mutation(MLP, rewritten(changed.data, {names.weight(3): None}))


def _bias(**changes: Any) -> Mutation:
    """A file whose last weight is described otherwise."""
    return m.weights(MLP, lambda config: config["2.bias"]["tensor_meta"].update(changes))


def _two_types() -> Mutation:
    """Two constants of different types over one record."""
    config = {name: m.stored("tensor_0", m.meta(dtype)) for name, dtype in (("a", 7), ("b", 4))}
    text = json.dumps({"config": config}).encode()
    return m.records(MLP, {m.CONFIG: text, names.CONSTANTS + "tensor_0": bytes(8)})


def _floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def _marked_as_pickled() -> dict[str, bytes | None]:
    """A weight whose raw record is said to be pickled."""
    with open_archive(MLP) as archive:
        root = detect(archive).root
        config = json.loads(bytes(archive.read(root + m.WEIGHTS)))
    config["config"]["2.bias"]["use_pickle"] = True
    return {m.WEIGHTS: json.dumps(config).encode()}


def _named_twice(tree: Any) -> None:
    """One weight for two inputs, while the other one lies there unused."""
    found = [spec["parameter"] for spec in _specs(tree, "input") if "parameter" in spec]
    found[2]["parameter_name"] = found[0]["parameter_name"]


def _in_both(tree: Any) -> None:
    """A buffer among the weights gets an entry among the constants."""
    tree["state"] = next(iter(tree.values()))


PAYLOADS: dict[str, Callable[[], Mutation]] = {
    "P1": lambda: _path_name("../weight_3"),
    "P2": lambda: _path_name("weight_9"),
    "P3": lambda: m.weights(MLP, lambda config: config["2.bias"].__setitem__("tensor_meta", None)),
    "P4": lambda: _bias(dtype=0),
    "P5": lambda: _bias(layout=1),
    "P6": lambda: _bias(device={"type": "evil", "index": None}),
    "P7": lambda: _bias(storage_offset={"as_int": -1}),
    "P8": lambda: m.extra(m.meta(7, (0, 1 << 62))),
    "P9": lambda: _bias(storage_offset={"as_int": 1000}),
    "P10": lambda: m.records(MLP, {names.weight(3): bytes(4 * 4 + 1)}),
    "P11": _two_types,
    "P12": lambda: m.extra(m.meta(5, (1,), requires_grad=True)),
    "P13": lambda: Mutation(MLP, m.extra(m.meta(12), b"\x02\x00").data, True),
    "P14": lambda: m.weights(MLP, lambda config: config["2.bias"]["tensor_meta"].update(sizes=[{"as_int": 2}])),
    "P19": lambda: m.program(MLP, lambda tree: m.spec(tree, "input", 3).__setitem__("parameter_name", "nope")),
    "P20": lambda: m.records(MLP, {names.weight(9): bytes(8)}),
    "P22": lambda: m.records(MLP, _marked_as_pickled()),
    "P23": lambda: m.program(MANY, _named_twice),
    "P24": lambda: m.weights(m.BUFFERS, _in_both, record=m.CONFIG),
    "P21": lambda: m.records(MLP, {names.weight(3): _floats(1, 2, 3, math.nan)}, payloads=True),
}


def _pickled(path_name: str) -> Mutation:
    """A file with a constant that is a pickle, and calls something."""
    config = {"extra": m.stored(path_name, None, use_pickle=True)}
    text = json.dumps({"config": config}).encode()
    return m.records(MLP, {m.CONFIG: text, names.CONSTANTS + path_name: m.pickled("os.getcwd")})


def _imports(spec: Any) -> Any:
    context = {"default_factory_module": "this", "default_factory_name": "s", "dict_context": ["k"]}
    spec[1]["children_spec"][0]["children_spec"] = [
        {"type": "collections.defaultdict", "context": context, "children_spec": [_LEAF]}
    ]
    return spec


def _set_storage(found: list[Any]) -> None:
    found[1]["target"] = "torch.ops.aten.set_.source_Tensor"
    found[1]["inputs"].append({"name": "source", "arg": tensor("linear"), "kind": 1})


def _gradients_off() -> dict[str, Any]:
    """A call that turns gradients off, and nothing turns them on again."""
    inputs = [{"name": "", "arg": {"as_bool": False}, "kind": 1}]
    return {"target": "torch._C._set_grad_enabled", "inputs": inputs, "outputs": [{"as_none": True}], "metadata": {}}


def _returns_empty(tree: Any) -> None:
    m.graph(tree)["nodes"][1]["target"] = "torch.ops.aten.empty_like.default"
    returned = m.graph(tree)["nodes"][1]["outputs"][0]
    m.graph(tree)["outputs"][0] = returned
    tree["graph_module"]["signature"]["output_specs"][0]["user_output"]["arg"] = returned


SAFETY: dict[str, Callable[[], Mutation]] = {
    "X1": lambda: m.records(MLP, {names.sample_inputs("model"): m.pickled("os.getcwd")}),
    "X2": lambda: _pickled("tensor_0"),
    "X3": lambda: _pickled("opaque_obj_0"),
    "X4": lambda: m.program(MLP, _set("guards_code", ["this is not ("])),
    "X5": lambda: m.with_input_size("__import__('os').getpid()"),
    "X6": lambda: m.program(DYNAMIC, lambda tree: m.rename(tree, "x", "x=print()")),
    "X7": lambda: m.nodes(MLP, lambda found: found[1].__setitem__("target", "os.getcwd")),
    "X8": lambda: m.records(MLP, {names.aotinductor("model", "x.so"): b"code"}),
    "X9": lambda: m.tree_spec(_imports),
    "X10": lambda: m.nodes(MLP, _set_storage),
    "X11": lambda: m.program(MLP, _returns_empty),
    "X12": lambda: m.nodes(TOKENS, _argument(0, 2, {"as_string": "two\nlines"})),
    "X13": lambda: m.nodes(MLP, lambda found: found[1].__setitem__("target", "#mine:relu")),
    "X14": lambda: m.nodes(MLP, lambda found: found.append(_gradients_off())),
}

TABLE = {**ARCHIVE, **JSON, **GRAPH, **SIGNATURE, **CALLS, **EXPRESSIONS, **TARGETS, **PAYLOADS, **SAFETY}


def reported(mutation: Mutation) -> list[Problem]:
    """Return the problems of a changed file that its base does not have; notes only if there is nothing else."""
    before = set(check(mutation.base, payloads=mutation.payloads)) if mutation.base else set()
    found = [problem for problem in check(mutation.data, payloads=mutation.payloads) if problem not in before]
    return [problem for problem in found if problem.kind != "note"] or found


@pytest.mark.parametrize("rule", TABLE)
def test_rule(rule: str) -> None:
    """A file that breaks one rule has problems of that rule, and of no other."""
    found = reported(TABLE[rule]())
    assert {problem.rule for problem in found} == {rule}, found
    for problem in found:
        assert problem.loc
        assert problem.message
        assert len(str(problem)) < 1500


def test_every_rule_has_a_file() -> None:
    """The table has every rule; those that no file can break by being checked have their reasons."""
    assert set(TABLE) | set(UNREACHABLE) == set(RULES)
    assert not set(TABLE) & set(UNREACHABLE)


@pytest.mark.parametrize("path", samples.corpus(), ids=samples.release_id)
def test_real_files(path: Path) -> None:
    """No file that torch wrote has an error; of warnings, only that pickled inputs need classes of their writer, and
    that only a run tells whether an unchecked kernel gets what it needs."""
    for problem in check(path, payloads=True):
        if (problem.rule, problem.kind) == ("X10", "warning"):
            assert problem.message.endswith("only known in a run")
            continue
        assert problem.kind == "note" or (problem.rule, problem.kind) == ("X1", "warning"), problem
        assert problem.kind == "note" or "calls make." in problem.message


def test_classes_of_sample_inputs() -> None:
    """A pickle that needs a class which only its writer has is a warning; one that calls Python's library is not."""
    for name, kind in (("make.NT", "warning"), ("os.getcwd", "safety"), ("torch.load", "safety")):
        [problem] = reported(m.records(MLP, {names.sample_inputs("model"): m.pickled(name)}))
        assert (problem.rule, problem.kind) == ("X1", kind)
