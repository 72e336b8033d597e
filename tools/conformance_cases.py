"""Programs and configs that break one rule: a good file, and what is changed in it. A case is a line."""

# ruff: noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Tree: TypeAlias = Any
"""JSON, parsed."""
PROGRAM = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"


@dataclass(frozen=True)
class Case:
    """One file that breaks a rule.

    Args:
        name: of the file, after the rule.
        rules: the ids that fit; the first is the one it was made for.
        base: the good file that it is made from.
        wrong: what is wrong, in words.
        edit: changes the parsed JSON of `record`, in place, or gives what stands in its place.
        text: changes the bytes of `record` instead.
        record: the record that is changed.
        must: whether a reader refuses the file or reports the rule.
        also: a second record to which `edit` is applied.
    """

    name: str
    rules: tuple[str, ...]
    base: str
    wrong: str
    edit: Callable[[Tree], Any] | None = None
    text: Callable[[bytes], bytes] | None = None
    record: str = PROGRAM
    must: Literal["refuse", "report"] = "refuse"
    also: str = ""


def graph(tree: Tree) -> Tree:
    """The root graph."""
    return tree["graph_module"]["graph"]


def nodes(tree: Tree) -> list[Tree]:
    """The nodes of the root graph."""
    return graph(tree)["nodes"]


def specs(tree: Tree, side: str) -> list[Tree]:
    """The input or output specs."""
    return tree["graph_module"]["signature"][f"{side}_specs"]


def root(tree: Tree) -> Tree:
    """The signature of the root entry."""
    return tree["graph_module"]["module_call_graph"][0]["signature"]


def meta(tree: Tree, name: str) -> Tree:
    """The description of a tensor of the root graph."""
    return graph(tree)["tensor_values"][name]


def subgraph(tree: Tree) -> Tree:
    """The first subgraph of the root graph."""
    for node in nodes(tree):
        for named in node["inputs"]:
            if "as_graph" in named["arg"]:
                return named["arg"]["as_graph"]
    raise LookupError("no subgraph")


def put(holder: Callable[[Tree], Any], key: Any, value: Any) -> Callable[[Tree], None]:
    """An edit that sets one key."""

    def edit(tree: Tree) -> None:
        holder(tree)[key] = value

    return edit


def drop(holder: Callable[[Tree], Any], key: Any) -> Callable[[Tree], None]:
    """An edit that removes one key."""

    def edit(tree: Tree) -> None:
        del holder(tree)[key]

    return edit


def rename_value(tree: Tree, old: str, new: str) -> Tree:
    """The tree with a value's name changed everywhere."""
    text = json.dumps(tree).replace(json.dumps(old), json.dumps(new))
    return json.loads(text)


def sized(tree: Tree, text: str) -> None:
    """Give the input x a first size that is an expression."""
    meta(tree, "x")["sizes"][0] = {"as_expr": {"expr_str": text, "hint": None}}


def _deep_json(data: bytes) -> bytes:
    return data.replace(b'"guards_code": []', b'"guards_code": ' + b"[" * 600 + b"]" * 600)


def _twice(data: bytes) -> bytes:
    return data.replace(b'"guards_code": []', b'"guards_code": [], "guards_code": []')


JSON_CASES = (
    Case("empty", ("J1",), "small", "no text", text=lambda _: b""),
    Case("cut", ("J1",), "small", "the text is cut off", text=lambda data: data[:-20]),
    Case("trailing", ("J1",), "small", "something behind the value", text=lambda data: data + b" {}"),
    Case("bom", ("J1",), "small", "a byte-order mark", text=lambda data: b"\xef\xbb\xbf" + data),
    Case(
        "not_utf8", ("J1",), "small", "bytes that are no UTF-8", text=lambda d: d.replace(b'"linear"', b'"line\xff"', 1)
    ),
    Case("bare_nan", ("J1",), "floats", "the bare word NaN", text=lambda d: d.replace(b'"Infinity"', b"Infinity", 1)),
    Case(
        "large_float",
        ("J1",),
        "floats",
        "a number beyond binary64",
        text=lambda d: d.replace(b'"Infinity"', b"1e999", 1),
    ),
    Case("surrogate", ("J1",), "small", "a lone surrogate", text=lambda d: d.replace(b'"relu"', b'"\\ud800"')),
    Case("key_twice", ("J2",), "small", "a key twice", text=_twice),
    Case("deep", ("J3",), "small", "600 levels of arrays", text=_deep_json),
    Case("union_empty", ("J4",), "small", "a union without a key", put(lambda t: nodes(t)[0]["inputs"][0], "arg", {})),
    Case("union_two", ("J4",), "small", "a union with two keys", put(lambda t: graph(t)["outputs"][0], "as_int", 1)),
    Case(
        "union_unknown",
        ("J4", "V1"),
        "small",
        "a key that the union has not",
        put(lambda t: graph(t)["outputs"], 0, {"as_x": 1}),
    ),
    Case("type", ("J5",), "small", "a text where a list belongs", put(graph, "nodes", "none")),
    Case("missing_key", ("J5",), "small", "a required key is missing", drop(graph, "tensor_values")),
    Case(
        "bool_as_int",
        ("J5",),
        "small",
        "a truth value as a size",
        put(lambda t: meta(t, "x")["sizes"], 1, {"as_int": True}),
    ),
    Case("enum", ("J5", "P4"), "small", "a number that the enum has not", put(lambda t: meta(t, "x"), "dtype", 99)),
    Case("null", ("J5",), "small", "null where it is not allowed", put(lambda t: nodes(t)[0], "target", None)),
    Case("config_list", ("J5",), "small", "a config that is a list", lambda _: [], record=WEIGHTS),
)

VERSION_CASES = (
    Case("major_9", ("V1", "M4"), "small", "schema version 9.0", put(lambda t: t["schema_version"], "major", 9)),
    Case("major_0", ("V1", "M4"), "small", "schema version 0.20", put(lambda t: t["schema_version"], "major", 0)),
    Case(
        "no_number",
        ("M5", "J5", "V1"),
        "small",
        "a text as the schema version",
        put(lambda t: t, "schema_version", "new"),
    ),
    Case("no_version", ("M5", "J5"), "small", "no schema version", drop(lambda t: t, "schema_version")),
    Case("root_list", ("M5", "J5"), "small", "a list instead of a program", lambda _: []),
    Case(
        "table",
        ("M1", "J5"),
        "old",
        "a key that schema 8.7 asks for is missing",
        drop(graph, "inputs"),
        record="serialized_exported_program.json",
    ),
    Case(
        "torch_version",
        ("V2",),
        "small",
        "torch_version is a word",
        put(lambda t: t, "torch_version", "new"),
        must="report",
    ),
    Case(
        "verifiers",
        ("V3",),
        "small",
        "a dialect that nobody has",
        put(lambda t: t, "verifiers", ["MINE"]),
        must="report",
    ),
    Case(
        "node_metadata",
        ("V5",),
        "small",
        "a module stack that cannot be read",
        put(lambda t: nodes(t)[1]["metadata"], "nn_module_stack", "a,b;[("),
        must="report",
    ),
    Case("unknown_key", ("V4",), "small", "a key that schema 8.20 has not", put(graph, "colour", "red"), must="report"),
    Case("opset", ("O1",), "small", "aten 11", put(lambda t: t["opset_version"], "aten", 11), must="report"),
    Case(
        "namespace",
        ("O2",),
        "small",
        "an operator set that nobody knows",
        put(lambda t: t["opset_version"], "mine", 1),
        must="report",
    ),
)


def _swap_nodes(tree: Tree) -> None:
    nodes(tree).reverse()


def _nest(tree: Tree) -> None:
    inner: Tree = {"as_int": 1}
    for _ in range(40):
        inner = {"as_string_to_argument": {"a": inner}}
    nodes(tree)[0]["inputs"][0]["arg"] = inner


def _nest_graphs(tree: Tree) -> None:
    held = subgraph(tree)
    empty = {key: type(value)() for key, value in held["graph"].items()}
    inner = empty
    for _ in range(40):
        node: Tree = {"target": "torch.ops.higher_order.cond", "inputs": [], "outputs": [], "metadata": {}}
        node["inputs"] = [{"name": "", "arg": {"as_graph": {"name": "g", "graph": inner}}, "kind": 1}]
        inner = {**empty, "nodes": [node]}
    held["graph"]["nodes"] += inner["nodes"]


def _graph_argument(tree: Tree) -> None:
    graph(tree)["outputs"] = [{"as_graph": json.loads(json.dumps(subgraph(tree)))}]


def _second_entry(tree: Tree) -> None:
    graph(tree)["sym_int_values"]["x"] = {"as_int": 3}


def _same_names(tree: Tree) -> None:
    for node in nodes(tree):
        node["name"] = "again"


def _escaped(tree: Tree) -> None:
    """A region of vmap in which `x` loses a dimension, and a node behind it that takes what is left."""
    calls: tuple[tuple[str, list[Tree], Tree], ...] = (
        ("_vmap_increment_nesting", [{"as_int": 2}, {"as_string": "error"}], {"as_none": True}),
        ("_add_batch_dim", [{"as_tensor": {"name": "x"}}, {"as_int": 0}, {"as_int": 1}], {"as_tensor": {"name": "h"}}),
        ("_vmap_decrement_nesting", [], {"as_none": True}),
    )
    graph(tree)["tensor_values"]["h"] = {**meta(tree, "x"), "sizes": [{"as_int": 3}], "strides": [{"as_int": 1}]}
    nodes(tree)[0]["inputs"][0]["arg"] = {"as_tensor": {"name": "h"}}
    for name, args, output in reversed(calls):
        inputs = [{"name": "", "arg": arg, "kind": 1} for arg in args]
        target = f"torch._functorch.predispatch.{name}"
        nodes(tree).insert(0, {"target": target, "inputs": inputs, "outputs": [output], "metadata": {}})


def _one_name(tree: Tree) -> None:
    branches = next(n for n in nodes(tree) if "cond" in n["target"])["inputs"][1:3]
    branches[1]["arg"]["as_graph"]["name"] = branches[0]["arg"]["as_graph"]["name"]


GRAPH_CASES = (
    Case(
        "not_defined",
        ("G1",),
        "small",
        "an argument that nothing defines",
        put(lambda t: nodes(t)[0]["inputs"][0], "arg", {"as_tensor": {"name": "nobody"}}),
    ),
    Case("later", ("G1",), "small", "nodes in the wrong order", _swap_nodes),
    Case(
        "output",
        ("G1", "S4"),
        "small",
        "an output that nothing defines",
        put(lambda t: graph(t)["outputs"], 0, {"as_tensor": {"name": "nobody"}}),
    ),
    Case(
        "outer",
        ("G1",),
        "cond",
        "a subgraph that uses a value of the graph around it",
        lambda t: subgraph(t)["graph"]["outputs"].append({"as_tensor": {"name": "p"}}),
    ),
    Case(
        "twice",
        ("G2",),
        "small",
        "two nodes define one name",
        put(lambda t: nodes(t)[1], "outputs", [{"as_tensor": {"name": "linear"}}]),
    ),
    Case("no_entry", ("G3",), "small", "a value without an entry", drop(lambda t: graph(t)["tensor_values"], "relu")),
    Case("two_entries", ("G4",), "small", "a name in two tables", _second_entry),
    Case(
        "left_over",
        ("G5",),
        "small",
        "an entry without a value",
        lambda t: graph(t)["tensor_values"].update(nobody=meta(t, "relu")),
        must="report",
    ),
    Case("strides", ("G6",), "small", "fewer strides than sizes", lambda t: meta(t, "relu")["strides"].pop()),
    Case("negative", ("G6",), "small", "a negative size", put(lambda t: meta(t, "relu")["sizes"], 1, {"as_int": -1})),
    Case(
        "kind",
        ("G7",),
        "symbols",
        "a tensor's name as a symbolic integer",
        put(lambda t: graph(t)["outputs"], 0, {"as_sym_int": {"as_name": "x"}}),
    ),
    Case("name", ("G8", "X6"), "small", "a value's name with a quote", lambda t: rename_value(t, "relu", "re'lu")),
    Case(
        "input",
        ("G9", "S3"),
        "small",
        "a graph input that is a list",
        put(lambda t: graph(t)["inputs"], -1, {"as_tensors": [{"name": "x"}]}),
    ),
    Case("graph_output", ("G10",), "cond", "a subgraph as an output", _graph_argument),
    Case("dicts", ("G11",), "small", "40 levels of dicts of arguments", _nest),
    Case("graphs", ("G11",), "cond", "40 levels of subgraphs", _nest_graphs),
    Case(
        "single_graph",
        ("G12",),
        "cond",
        "is_single_tensor_return with two outputs",
        lambda t: (
            put(lambda u: subgraph(u)["graph"], "is_single_tensor_return", True)(t),
            subgraph(t)["graph"]["outputs"].append({"as_int": 1}),
        ),
    ),
    Case(
        "single_node",
        ("G13",),
        "cond",
        "is_hop_single_tensor_return with a list",
        lambda t: next(n for n in nodes(t) if "cond" in n["target"]).update(
            is_hop_single_tensor_return=True, outputs=[{"as_tensors": [{"name": "getitem"}]}]
        ),
    ),
    Case("node_names", ("G14",), "small", "all nodes have one name", _same_names, must="report"),
    Case("one_name", ("G16",), "cond", "two subgraphs that differ under one name", _one_name, must="report"),
    Case(
        "bytes",
        ("G17",),
        "small",
        "a value of 16 TiB",
        lambda t: meta(t, "relu").update(
            sizes=[{"as_int": 2**20}, {"as_int": 2**22}], strides=[{"as_int": 2**22}, {"as_int": 1}]
        ),
        must="report",
    ),
    Case(
        "element_type",
        ("G17",),
        "small",
        "a value of the element type UNKNOWN",
        put(lambda t: meta(t, "relu"), "dtype", 0),
        must="report",
    ),
    Case("escaped", ("G18",), "none", "a value of a region of vmap behind it", _escaped, must="report"),
    Case(
        "pasted",
        ("G15", "X6", "T3"),
        "small",
        "an argument's name with a bracket",
        put(lambda t: nodes(t)[0]["inputs"][0], "name", "self):"),
        must="report",
    ),
)


def _spec(side: str, position: int, spec: Tree) -> Callable[[Tree], None]:
    return put(lambda tree: specs(tree, side), position, spec)


def _last_first(tree: Tree, side: str) -> None:
    for rows in (graph(tree)[f"{side}s"], specs(tree, side)):
        rows.insert(0, rows.pop())


def _losses(tree: Tree) -> None:
    spec = next(spec for spec in specs(tree, "output") if "loss_output" in spec)
    at = specs(tree, "output").index(spec)
    specs(tree, "output").insert(at, spec)
    graph(tree)["outputs"].insert(at, graph(tree)["outputs"][at])


def _same_target(tree: Tree) -> None:
    first, second = (spec for spec in specs(tree, "input")[:2])
    second["buffer"]["buffer_name"] = first["buffer"]["buffer_name"]


def _target(tree: Tree) -> Tree:
    text = json.dumps(tree).replace('"fc1.weight"', '"fc1.wei\\"ght"').replace('"a.weight"', '"a.wei\\"ght"')
    return json.loads(text)


def _user_list(tree: Tree) -> None:
    specs(tree, "input")[-1]["user_input"]["arg"] = {"as_tensors": [{"name": "x"}]}


def _tokens(tree: Tree) -> None:
    at = next(i for i, spec in enumerate(specs(tree, "output")) if "token" in spec)
    del specs(tree, "output")[at], graph(tree)["outputs"][at]


def _placeholder(tree: Tree) -> None:
    next(spec for spec in specs(tree, "input") if "constant_input" in spec)["constant_input"]["name"] = "class x"


def _mutated_twice(tree: Tree) -> None:
    specs(tree, "output").insert(0, specs(tree, "output")[0])
    graph(tree)["outputs"].insert(0, graph(tree)["outputs"][0])


def _exchanged(tree: Tree) -> None:
    one, other = (spec["buffer_mutation"] for spec in specs(tree, "output")[:2])
    one["buffer_name"], other["buffer_name"] = other["buffer_name"], one["buffer_name"]


def _nan(tree: Tree) -> None:
    module = tree["graph_module"]
    module["graph"]["outputs"][0] = module["signature"]["output_specs"][0]["user_output"]["arg"] = {"as_float": "NaN"}


SIGNATURE_CASES = (
    Case("inputs", ("S1",), "small", "one input spec too few", lambda t: specs(t, "input").pop(0)),
    Case(
        "outputs",
        ("S2",),
        "small",
        "one output spec too many",
        lambda t: specs(t, "output").append({"user_output": {"arg": {"as_int": 1}}}),
    ),
    Case(
        "input_name",
        ("S3",),
        "small",
        "an input spec with another name",
        put(lambda t: specs(t, "input")[-1]["user_input"], "arg", {"as_tensor": {"name": "relu"}}),
    ),
    Case(
        "output_name",
        ("S4",),
        "small",
        "an output spec with another name",
        put(lambda t: specs(t, "output")[-1]["user_output"], "arg", {"as_tensor": {"name": "relu"}}),
    ),
    Case("input_order", ("S5",), "small", "a user input before the parameters", lambda t: _last_first(t, "input")),
    Case("output_order", ("S6",), "buffers", "a user output before the mutations", lambda t: _last_first(t, "output")),
    Case(
        "mutated",
        ("S7",),
        "buffers",
        "a mutation of a buffer that is not there",
        put(lambda t: specs(t, "output")[0]["buffer_mutation"], "buffer_name", "nobody"),
    ),
    Case("mutated_twice", ("S7",), "buffers", "two mutations of one buffer", _mutated_twice),
    Case(
        "exchanged",
        ("S15",),
        "buffers",
        "buffers of other element types than what is written to them",
        _exchanged,
        must="report",
    ),
    Case("same_target", ("S8", "S7"), "buffers", "two inputs with one target that differ", _same_target),
    Case("losses", ("S9",), "loss", "two losses", _losses),
    Case("target", ("S10", "X6"), "small", "a target with a quote", _target, also=WEIGHTS),
    Case("nan", ("S12", "S4"), "small", "an output that is NaN", _nan),
    Case("user_list", ("S12", "S3"), "small", "a user input that is a list", _user_list),
    Case("tokens", ("S13",), "tokens", "a token that does not come out again", _tokens),
    Case("placeholder", ("S14", "X6"), "scalars", "the placeholder of a constant is no identifier", _placeholder),
)


def _in_spec(text: str) -> Callable[[Tree], None]:
    return put(root, "in_spec", text)


def _respell(old: str, new: str, key: str = "in_spec") -> Callable[[Tree], None]:
    def edit(tree: Tree) -> None:
        text = root(tree)[key]
        if old not in text:
            raise LookupError(old)
        root(tree)[key] = text.replace(old, new, 1)

    return edit


def _two_roots(tree: Tree) -> None:
    tree["graph_module"]["module_call_graph"].append(tree["graph_module"]["module_call_graph"][0])


def _no_root(tree: Tree) -> None:
    entries = tree["graph_module"]["module_call_graph"]
    entries.append(entries.pop(0))


def _deep_spec(tree: Tree) -> None:
    leaf: Tree = {"type": None, "context": None, "children_spec": []}
    node: Tree = leaf
    for _ in range(205):
        node = {"type": "builtins.tuple", "context": "null", "children_spec": [node]}
    root(tree)["out_spec"] = json.dumps([1, node], separators=(",", ":"))


def _kept(tree: Tree) -> Tree:
    return next(e for e in tree["graph_module"]["module_call_graph"] if e["fqn"] and e["signature"])["signature"]


def _without_keywords(tree: Tree) -> None:
    protocol, spec = json.loads(root(tree)["in_spec"])
    root(tree)["in_spec"] = json.dumps([protocol, spec["children_spec"][0]])


CALL_CASES = (
    Case("root", ("K1",), "small", "the root entry is not the first", _no_root),
    Case("two_roots", ("K1",), "small", "two entries for the root", _two_roots),
    Case(
        "no_root", ("K1",), "small", "no module call graph", put(lambda t: t["graph_module"], "module_call_graph", [])
    ),
    Case("no_json", ("K2",), "small", "a tree spec that is no JSON", _in_spec("((x,), {})")),
    Case("keys", ("K2",), "small", "a node with other keys", _respell('"context"', '"state"')),
    Case("deep", ("K2",), "small", "205 containers inside each other", _deep_spec),
    Case("protocol", ("V1", "K2"), "small", "tree spec protocol 2", _respell("[1,", "[2,")),
    Case(
        "context",
        ("K3",),
        "nested",
        "a dict with fewer keys than children",
        _respell('[\\"p\\", \\"q\\"]', '[\\"p\\"]'),
    ),
    Case(
        "fields",
        ("K3",),
        "nested",
        "a named tuple with fewer fields than children",
        put(lambda t: t["graph_module"]["treespec_namedtuple_fields"]["corpus.NT"], "field_names", ["a"]),
    ),
    Case(
        "leaves",
        ("K4",),
        "small",
        "more leaves than user inputs",
        _respell(
            '{"type": null, "context": null, "children_spec": []}',
            '{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}',
        ),
    ),
    Case(
        "results",
        ("K4",),
        "nested",
        "an out_spec with one leaf",
        put(root, "out_spec", '[1, {"type": null, "context": null, "children_spec": []}]'),
    ),
    Case(
        "names",
        ("K5", "X6"),
        "small",
        "the name of an argument is no identifier",
        put(root, "forward_arg_names", ["x: int"]),
        must="report",
    ),
    Case("names_count", ("K5",), "small", "more names than arguments", put(root, "forward_arg_names", ["x", "y"])),
    Case(
        "kept_values",
        ("K6",),
        "kept",
        "a kept call that names no value of the graph",
        put(lambda t: _kept(t)["inputs"], 0, {"as_tensor": {"name": "nobody"}}),
        must="report",
    ),
    Case("no_keywords", ("K8", "K3"), "small", "an in_spec of the arguments alone", _without_keywords, must="report"),
    Case(
        "container",
        ("K7",),
        "nested",
        "a container that somebody registers",
        lambda t: _respell('"builtins.list"', '"mine.List"')(t),
        must="report",
    ),
)


def _assumptions(tree: Tree) -> None:
    relu = meta(tree, "relu")["sizes"][0]["as_expr"]
    relu["expr_str"] = relu["expr_str"].replace("positive=True, ", "")


def _maximum(number: int, calls: int) -> str:
    """Return a maximum of remainders that no maximum of another number has."""
    symbol = "Symbol('s77', positive=True, integer=True)"
    return f"Max({', '.join(f'Mod({symbol}, Integer({100 * number + place + 2}))' for place in range(calls))})"


EXPRESSION_CASES = (
    Case("syntax", ("E1",), "small", "an expression that is cut off", lambda t: sized(t, "Add(Integer(1), ")),
    Case("empty", ("E1",), "small", "an empty expression", lambda t: sized(t, "")),
    Case(
        "kind",
        ("E1",),
        "small",
        "a float as a size",
        lambda t: sized(t, "Mul(Symbol('s77', positive=True, integer=True), Float('0.5', precision=53))"),
    ),
    Case("arity", ("E1",), "small", "a function with too few arguments", lambda t: sized(t, "FloorDiv(Integer(4))")),
    Case(
        "zero",
        ("E1",),
        "small",
        "a division by zero",
        lambda t: sized(t, "FloorDiv(Symbol('s77', positive=True, integer=True), Integer(0))"),
    ),
    Case(
        "power",
        ("E1",),
        "small",
        "a power with millions of digits",
        lambda t: sized(t, "Pow(Integer(10), Integer(99999999))"),
    ),
    Case(
        "deep",
        ("E1",),
        "small",
        "300 calls inside each other",
        lambda t: sized(t, "Identity(" * 300 + "Integer(2)" + ")" * 300),
    ),
    Case(
        "maximum_nested",
        ("E1",),
        "small",
        "a maximum of 17 calls, 16 of them in a minimum",
        lambda t: sized(
            t,
            f"Max({_maximum(0, 16).replace('Max', 'Min')}, FloorDiv(Symbol('s77', positive=True, integer=True), Integer(3)))",
        ),
    ),
    Case(
        "maxima",
        ("E1",),
        "small",
        "nine different maxima of 16 calls",
        lambda t: sized(t, f"Add({', '.join(_maximum(n, 16) for n in range(9))})"),
    ),
    Case("code", ("X5", "E1"), "small", "an expression that is code", lambda t: sized(t, "__import__('os').getpid()")),
    Case(
        "no_range",
        ("E2",),
        "small",
        "a symbol without a range",
        lambda t: t["range_constraints"].clear(),
        must="report",
    ),
    Case(
        "range",
        ("E3",),
        "small",
        "a range whose ends are exchanged",
        put(lambda t: t["range_constraints"]["s77"], "min_val", 100),
    ),
    Case(
        "hint",
        ("E4",),
        "small",
        "a hint outside the range",
        put(lambda t: meta(t, "x")["sizes"][0]["as_expr"]["hint"], "as_int", 1000),
        must="report",
    ),
    Case("assumptions", ("E5",), "small", "a symbol with two meanings", _assumptions),
    Case(
        "guards",
        ("E6", "E7"),
        "small",
        "a guard on an input that is not there, and one that nothing passes",
        put(lambda t: t, "guards_code", ["L['y'].size()[0] >= 2", "L['x'].size()[0] > 1000"]),
        must="report",
    ),
    Case(
        "large", ("E8",), "small", "a size of 2**63", lambda t: sized(t, "Integer(9223372036854775808)"), must="report"
    ),
    Case(
        "hint_kind",
        ("E9",),
        "small",
        "a float as the value of a size",
        put(lambda t: meta(t, "x")["sizes"][0]["as_expr"], "hint", {"as_float": 3.0}),
        must="report",
    ),
)


def weight(tree: Tree, position: int = 0) -> Tree:
    """The first entry of a config."""
    return list(tree["config"].values())[position]


def tensor(tree: Tree) -> Tree:
    """Return the `tensor_meta` of a config's first entry."""
    return weight(tree)["tensor_meta"]


def _weight_case(name: str, rule: str, wrong: str, edit: Callable[[Tree], Any], *more: str) -> Case:
    return Case(name, (rule, *more), "small", wrong, edit, record=WEIGHTS)


def _named_twice(tree: Tree) -> None:
    named = {
        spec["parameter"]["parameter_name"]: spec["parameter"] for spec in specs(tree, "input") if "parameter" in spec
    }
    named["mid.n.bias"]["parameter_name"] = "mid.inner.l.bias"


def _in_both(tree: Tree) -> None:
    tree["config"]["state"] = next(iter(tree["config"].values()))


PAYLOAD_CASES = (
    _weight_case("parent", "P1", "a path_name with ..", put(weight, "path_name", "../weights/weight_0")),
    _weight_case("config", "P1", "a path_name that is a config", put(weight, "path_name", "model_weights_config.json")),
    _weight_case("record", "P2", "a record that does not exist", put(weight, "path_name", "weight_77")),
    _weight_case("no_meta", "P3", "no tensor_meta", put(weight, "tensor_meta", None)),
    _weight_case("dtype_0", "P4", "the element type UNKNOWN", put(tensor, "dtype", 0)),
    _weight_case("layout", "P5", "a sparse layout over raw bytes", put(tensor, "layout", 1)),
    _weight_case("device", "P6", "a device that nobody has", put(lambda t: tensor(t)["device"], "type", "toaster")),
    _weight_case("device_index", "P6", "device number 1000", put(lambda t: tensor(t)["device"], "index", 1000)),
    _weight_case("meta_device", "P6", "bytes on the meta device", put(lambda t: tensor(t)["device"], "type", "meta")),
    _weight_case("negative", "P7", "a negative offset", put(tensor, "storage_offset", {"as_int": -1})),
    _weight_case(
        "expression",
        "P7",
        "an expression as a size",
        put(lambda t: tensor(t)["sizes"], 0, {"as_expr": {"expr_str": "Integer(2)", "hint": None}}),
    ),
    _weight_case("strides", "P7", "fewer strides than sizes", lambda t: tensor(t)["strides"].pop()),
    _weight_case(
        "large_size", "P7", "a size beyond 64 bits", put(lambda t: tensor(t)["sizes"], 0, {"as_int": 1 << 70})
    ),
    _weight_case(
        "dimensions",
        "P7",
        "65 dimensions",
        lambda t: tensor(t).update(sizes=[{"as_int": 1}] * 65, strides=[{"as_int": 1}] * 65),
    ),
    _weight_case(
        "elements",
        "P8",
        "more bytes than 64 bits count",
        lambda t: tensor(t).update(sizes=[{"as_int": 1 << 40}] * 2, strides=[{"as_int": 0}] * 2),
    ),
    _weight_case(
        "empty_elements",
        "P8",
        "a size of 0 next to huge ones",
        lambda t: tensor(t).update(sizes=[{"as_int": 0}, *[{"as_int": 1 << 40}] * 2], strides=[{"as_int": 1}] * 3),
    ),
    _weight_case("beyond", "P9", "sizes beyond the record", put(lambda t: tensor(t)["sizes"], 0, {"as_int": 1000})),
    _weight_case("offset", "P9", "an offset beyond the record", put(tensor, "storage_offset", {"as_int": 1000})),
    _weight_case(
        "wrap",
        "P9",
        "an extent that wraps to 0 in 64 bits",
        lambda t: tensor(t).update(sizes=[{"as_int": 2}] * 2, strides=[{"as_int": 1 << 62}] * 2),
        "P7",
    ),
    Case(
        "part",
        ("P10",),
        "small",
        "a record of 3 bytes more",
        text=lambda data: data + b"abc",
        record="data/weights/weight_0",
    ),
    Case(
        "two_types",
        ("P11", "P14"),
        "shared",
        "two element types over one record",
        lambda t: list(t["config"].values())[-1]["tensor_meta"].update(dtype=4, requires_grad=False),
        record=WEIGHTS,
    ),
    Case(
        "gradient",
        ("P12",),
        "buffers",
        "an integer that requires a gradient",
        lambda t: next(r for r in t["config"].values() if r["tensor_meta"]["dtype"] == 5)["tensor_meta"].update(
            requires_grad=True
        ),
        record=WEIGHTS,
    ),
    Case("bool", ("P13",), "dtypes", "a bool that is 7", text=lambda data: b"\7" * len(data), record="bool"),
    _weight_case(
        "graph_dtype", "P14", "another element type than the graph has", put(tensor, "dtype", 4), "P12", "P11"
    ),
    _weight_case(
        "graph_sizes", "P14", "other sizes than the graph has", put(lambda t: tensor(t)["sizes"], 0, {"as_int": 1})
    ),
    _weight_case(
        "copy",
        "P16",
        "2 GiB by strides of 0",
        lambda t: tensor(t).update(sizes=[{"as_int": 1 << 15}] * 2, strides=[{"as_int": 0}] * 2),
        "P14",
    ),
    Case(
        "nowhere",
        ("P19",),
        "small",
        "a parameter without a payload",
        lambda t: t["config"].pop(next(iter(t["config"]))),
        record=WEIGHTS,
    ),
    Case(
        "not_param",
        ("P19",),
        "small",
        "a parameter that is stored as none",
        put(weight, "is_param", False),
        record=WEIGHTS,
    ),
    Case(
        "pickled",
        ("P22", "P15"),
        "small",
        "a raw record that is said to be pickled",
        put(weight, "use_pickle", True),
        record=WEIGHTS,
        must="report",
    ),
    Case(
        "in_both",
        ("P24",),
        "buffers",
        "a name among the weights and the constants",
        _in_both,
        record=CONSTANTS,
        must="report",
    ),
    Case(
        "named_twice",
        ("P23",),
        "kept",
        "a parameter that two inputs take, and one that none does",
        _named_twice,
        must="report",
    ),
    Case(
        "nan",
        ("P21",),
        "small",
        "nan among the weights",
        text=lambda data: b"\0\0\xc0\x7f" * (len(data) // 4),
        record="data/weights/weight_0",
        must="report",
    ),
)


def _call(target: str, sizes: list[int], **arguments: Tree) -> Callable[[Tree], None]:
    """An edit that appends a call whose one result is a tensor of known sizes."""

    def edit(tree: Tree) -> None:
        inputs = [{"name": name, "arg": arg, "kind": 1} for name, arg in arguments.items()]
        node = {"target": target, "inputs": inputs, "outputs": [{"as_tensor": {"name": "more"}}], "metadata": {}}
        nodes(tree).append({**node, "is_hop_single_tensor_return": None, "name": "more"})
        known = {"sizes": [{"as_int": size} for size in sizes], "strides": [{"as_int": 1} for _ in sizes]}
        graph(tree)["tensor_values"]["more"] = {**meta(tree, "relu"), **known, "requires_grad": False}

    return edit


def _printed(tree: Tree) -> None:
    for node in nodes(tree):
        for named in node["inputs"]:
            if "as_string" in named["arg"]:
                named["arg"]["as_string"] = "done\n\x1b[2J"


def _other_product(tree: Tree) -> None:
    """A number that is declared to be another than it is."""
    made: Tree = {"metadata": {}, "is_hop_single_tensor_return": None}
    whose = {"self": {"as_tensor": {"name": "x"}}, "dim": {"as_int": 0}}
    size = [{"name": name, "arg": arg, "kind": 1} for name, arg in whose.items()]
    taken = [{"name": "", "arg": arg, "kind": 1} for arg in ({"as_sym_int": {"as_name": "rows"}}, {"as_int": 2})]
    for name, target, inputs in (("rows", "torch.ops.aten.sym_size.int", size), ("twice", "_operator.mul", taken)):
        outputs = [{"as_sym_int": {"as_name": name}}]
        nodes(tree).append({"target": target, "inputs": inputs, "outputs": outputs, "name": name, **made})
    numbers = graph(tree)["sym_int_values"]
    numbers["rows"] = meta(tree, "x")["sizes"][0]
    numbers["twice"] = {"as_expr": {"expr_str": "Integer(3)", "hint": None}}


def _written(tree: Tree) -> None:
    nodes(tree)[1]["target"] = "torch.ops.aten.relu_.default"
    tree["verifiers"] = ["ATEN"]


CHECK_CASES = (
    Case(
        "sizes",
        ("T8",),
        "small",
        "sizes that do not meet",
        put(lambda t: meta(t, "relu")["sizes"], 1, {"as_int": 9}),
        must="report",
    ),
    Case(
        "bytes",
        ("T9",),
        "small",
        "a call that makes 4 TiB",
        _call("torch.ops.aten.full.default", [1 << 40], size={"as_ints": [1 << 40]}, fill_value={"as_int": 1}),
        must="report",
    ),
    Case(
        "file",
        ("X10",),
        "small",
        "a call that maps a file",
        _call(
            "torch.ops.aten.from_file.default",
            [1],
            filename={"as_string": "/etc/hostname"},
            shared={"as_none": True},
            size={"as_int": 1},
        ),
        must="report",
    ),
    Case("printed", ("X12",), "tokens", "a text with control characters that is printed", _printed, must="report"),
    Case(
        "extension",
        ("X13", "T2"),
        "small",
        "an operator of an extension",
        put(lambda t: nodes(t)[1], "target", "#mine:relu"),
        must="report",
    ),
    Case(
        "gradients",
        ("X14",),
        "tokens",
        "gradients that are turned off and never on again",
        lambda t: nodes(t).append(
            {
                "target": "torch._C._set_grad_enabled",
                "inputs": [{"name": "", "arg": {"as_bool": False}, "kind": 1}],
                "outputs": [{"as_none": True}],
                "metadata": {},
            }
        ),
        must="report",
    ),
    Case(
        "operator",
        ("T1",),
        "small",
        "an aten operator that does not exist",
        put(lambda t: nodes(t)[1], "target", "torch.ops.aten.rellu.default"),
        must="report",
    ),
    Case(
        "custom",
        ("T2",),
        "small",
        "an operator of somebody's own",
        put(lambda t: nodes(t)[1], "target", "torch.ops.mine.relu.default"),
        must="report",
    ),
    Case(
        "argument",
        ("T3",),
        "small",
        "an argument that the operator has not",
        put(lambda t: nodes(t)[1]["inputs"][0], "name", "colour"),
        must="report",
    ),
    Case(
        "no_argument",
        ("T4",),
        "small",
        "a required argument is missing",
        put(lambda t: nodes(t)[1], "inputs", []),
        must="report",
    ),
    Case(
        "argument_kind",
        ("T5",),
        "small",
        "a text where a tensor belongs",
        put(lambda t: nodes(t)[1]["inputs"][0], "arg", {"as_string": "x"}),
        must="report",
    ),
    Case(
        "results",
        ("T6",),
        "small",
        "no result where there is one",
        lambda t: nodes(t).append({**nodes(t)[1], "outputs": [], "name": "more"}),
        must="report",
    ),
    Case(
        "by_place",
        ("T10",),
        "small",
        "an argument by place that lands in another parameter",
        _call("torch.ops.aten.argmax.default", [1], self={"as_tensor": {"name": "x"}}, keepdim={"as_bool": True}),
        must="report",
    ),
    Case(
        "result_type",
        ("T11",),
        "small",
        "a result of another element type than is asked for",
        _call("torch.ops.aten.to.dtype", [1], self={"as_tensor": {"name": "relu"}}, dtype={"as_scalar_type": 8}),
        must="report",
    ),
    Case(
        "dimension",
        ("T12",),
        "small",
        "a dimension that the tensor has not",
        _call("torch.ops.aten.softmax.int", [1], self={"as_tensor": {"name": "relu"}}, dim={"as_int": 7}),
        must="report",
    ),
    Case("number", ("T13",), "small", "a number that is not what its function gives", _other_product, must="report"),
    Case("dialect", ("T14",), "small", "a call that writes, in a functional program", _written, must="report"),
    Case(
        "value",
        ("T15",),
        "small",
        "a slice with a step of 0",
        _call(
            "torch.ops.aten.slice.Tensor",
            [1],
            self={"as_tensor": {"name": "relu"}},
            dim={"as_int": 0},
            start={"as_int": 0},
            end={"as_int": 1},
            step={"as_int": 0},
        ),
        must="report",
    ),
    Case(
        "operands",
        ("T7",),
        "cond",
        "an operand too few",
        lambda t: next(n for n in nodes(t) if "cond" in n["target"])["inputs"][3].update(arg={"as_tensors": []}),
        must="report",
    ),
    Case(
        "guard",
        ("X4",),
        "small",
        "a guard that is code",
        put(lambda t: t, "guards_code", ["__import__('os').getpid() > 0"]),
        must="report",
    ),
    Case(
        "attribute",
        ("X7", "T1"),
        "small",
        "a target outside the dispatcher",
        put(lambda t: nodes(t)[1], "target", "torch.hub.load"),
        must="report",
    ),
    Case(
        "factory",
        ("X9",),
        "nested",
        "a tree spec that names a class",
        _respell(
            '{"type": "builtins.dict", "context": "[\\"p\\", \\"q\\"]"',
            '{"type": "collections.defaultdict", "context": {"default_factory_module": "os", "default_factory_name": "getpid", "dict_context": ["p", "q"]}',
        ),
        must="report",
    ),
)
