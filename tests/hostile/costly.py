"""Files whose cost is the attack: of up to 1 MB, they want to take long or to need much memory.

    build("chain", 1_000)       a file, bytes: a program of a thousand calls in a row

Each attack builds the tree of a program for a size; `ATTACKS` has the size at which its file is as large as a hostile
file may be, or its JSON as large as is read from such a file.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Tree = dict[str, Any]
LEAF = '{"type":null,"context":null,"children_spec":[]}'
SYMBOL = "Symbol('s0', positive=True, integer=True)"
SIZE = "L['x'].size()[0]"
_FILL = "filled in as text"
_VERSIONS = {"archive_format": "pt2", "archive_version": "0", ".data/version": "6", "byteorder": "little"}


@dataclass(frozen=True)
class Attack:
    """A family of files.

    Args:
        build: size -> program, or a program and the JSON text that replaces its `FILL`.
        full: the size of the largest.
    """

    build: Callable[[int], Tree | tuple[Tree, str]]
    full: int


ATTACKS: dict[str, Attack] = {}


def attack(full: int) -> Callable[[Callable[[int], Any]], Callable[[int], Any]]:
    """Register a builder under its name."""

    def register(build: Callable[[int], Any]) -> Callable[[int], Any]:
        ATTACKS[build.__name__] = Attack(build, full)
        return build

    return register


def build(name: str, size: int) -> bytes:
    """Return the file of an attack: an archive whose records are deflated."""
    made = ATTACKS[name].build(size)
    return pack(*made) if isinstance(made, tuple) else pack(made)


def pack(tree: Tree, filling: str = "") -> bytes:
    """Return the file of a program: an archive whose records are deflated.

    Args:
        tree: the program; its keys `config` and `extra` are the entries of the weights and the number of extra files.
        filling: JSON text that replaces `FILL`.
    """
    config = tree.pop("config", {"w": payload()})
    text = json.dumps(tree).replace(json.dumps(_FILL), filling)
    records = {
        **_VERSIONS,
        "models/model.json": text,
        "data/weights/weight_0": "\0" * 8,
        "data/weights/model_weights_config.json": json.dumps({"config": config}),
        "data/constants/model_constants_config.json": '{"config": {}}',
        **{f"extra/{number}": "" for number in range(tree.pop("extra", 0))},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for record, content in records.items():
            archive.writestr(f"m/{record}", content)
    return out.getvalue()


# Parts of a program


def number(value: Any) -> Tree:
    """Return a size: a number, or an expression."""
    return {"as_expr": {"expr_str": value, "hint": None}} if isinstance(value, str) else {"as_int": value}


def meta(*sizes: Any, dtype: int = 7) -> Tree:
    """Return the description of a contiguous tensor of at most one dimension."""
    return {
        "dtype": dtype,
        "sizes": [number(size) for size in sizes],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [number(1) for _ in sizes],
        "storage_offset": number(0),
        "layout": 7,
    }


VECTOR = meta(2)


def payload() -> Tree:
    """Return the entry of a weight."""
    return {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": VECTOR}


def tensor(name: str) -> Tree:
    """Return an argument that is a tensor."""
    return {"as_tensor": {"name": name}}


def tensors(names: Sequence[str]) -> Tree:
    """Return an argument that is a list of tensors."""
    return {"as_tensors": [{"name": name} for name in names]}


def call(target: str, result: Any, *, metadata: Mapping[str, str] | None = None, **inputs: Any) -> Tree:
    """Return a node of one result; arguments that are names are tensors."""
    return {
        "target": f"torch.ops.{target}" if target.startswith(("aten.", "higher_order.")) else target,
        "inputs": [
            {"name": name, "arg": tensor(value) if isinstance(value, str) else value, "kind": 1}
            for name, value in inputs.items()
        ],
        "outputs": [result if isinstance(result, dict) else tensor(result)],
        "metadata": dict(metadata or {}),
        "is_hop_single_tensor_return": None,
        "name": result if isinstance(result, str) else "made",
    }


def relu(source: str, result: str, **metadata: str) -> Tree:
    """Return a call of one tensor."""
    return call("aten.relu.default", result, metadata=metadata, self=source)


def cat(sources: Sequence[str], result: str) -> Tree:
    """Return a call of many tensors."""
    return call("aten.cat.default", result, tensors=tensors(sources))


def graph(inputs: Sequence[str], nodes: list[Tree], outputs: Sequence[str], values: Mapping[str, Tree]) -> Tree:
    """Return a graph; results without an entry among `values` are vectors."""
    results = (one["as_tensor"]["name"] for node in nodes for one in node["outputs"] if "as_tensor" in one)
    return {
        "inputs": [tensor(name) for name in inputs],
        "outputs": [tensor(name) for name in outputs],
        "nodes": nodes,
        "tensor_values": {**dict.fromkeys((*inputs, *results), VECTOR), **values},
        "sym_int_values": {},
        "sym_bool_values": {},
        "is_single_tensor_return": False,
        "custom_obj_values": {},
        "sym_float_values": {},
    }


def program(
    nodes: list[Tree],
    outputs: Sequence[str],
    values: Mapping[str, Tree] | None = None,
    inputs: Sequence[str] = ("x",),
) -> Tree:
    """Return a program without weights."""
    return program_of(graph(inputs, nodes, outputs, values or {}))


def program_of(root: Tree) -> Tree:
    """Return the program of a root graph."""
    inputs = ",".join([LEAF] * len(root["inputs"]))
    outputs = ",".join([LEAF] * len(root["outputs"]))
    signature = {
        "inputs": [],
        "outputs": [],
        "in_spec": in_spec(inputs),
        "out_spec": f'[1,{{"type":"builtins.tuple","context":"null","children_spec":[{outputs}]}}]',
        "forward_arg_names": [one["as_tensor"]["name"] for one in root["inputs"]],
    }
    return {
        "graph_module": {
            "graph": root,
            "signature": {
                "input_specs": [{"user_input": {"arg": one}} for one in root["inputs"]],
                "output_specs": [{"user_output": {"arg": one}} for one in root["outputs"]],
            },
            "module_call_graph": [{"fqn": "", "signature": signature}],
            "metadata": {},
            "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": 10},
        "range_constraints": {},
        "schema_version": {"major": 8, "minor": 20},
        "verifiers": ["TRAINING"],
        "torch_version": "2.13.0+cpu",
        "guards_code": [],
    }


def in_spec(children: str) -> str:
    """Return the tree spec of positional arguments."""
    return (
        '[1,{"type":"builtins.tuple","context":"null","children_spec":[{"type":"builtins.tuple","context":"null",'
        f'"children_spec":[{children}]}},{{"type":"builtins.dict","context":"[]","children_spec":[]}}]}}]'
    )


def small(**changes: Any) -> Tree:
    """Return a program of one call, with other keys."""
    return {**program([relu("x", "a")], ["a"]), **changes}


# Graphs


@attack(52_000)
def chain(size: int) -> Tree:
    """Call after call."""
    return program([relu(f"a{n - 1}" if n else "x", f"a{n}") for n in range(size)], [f"a{size - 1}"])


@attack(40_000)
def ladder(size: int) -> Tree:
    """Calls that each use the one before twice: 2**n paths."""
    sources = ["x", *(f"a{n}" for n in range(size - 1))]
    nodes = [call("aten.add.Tensor", f"a{n}", self=source, other=source) for n, source in enumerate(sources)]
    return program(nodes, [f"a{size - 1}"])


@attack(49_000)
def fan(size: int) -> Tree:
    """One value for many calls, whose results are joined."""
    names = [f"a{n}" for n in range(size)]
    return program([*(relu("x", name) for name in names), cat(names, "z")], ["z"], {"z": meta(2 * size)})


@attack(700)
def fans(size: int) -> Tree:
    """Many calls that each use all results of many others."""
    names, joined = [f"a{n}" for n in range(size)], [f"b{n}" for n in range(size)]
    nodes = [*(relu("x", name) for name in names), *(cat(names, name) for name in joined)]
    return program(nodes, joined, dict.fromkeys(joined, meta(2 * size)))


@attack(300_000)
def one_value_often(size: int) -> Tree:
    """A call that uses one value many times."""
    return program([cat(["x"] * size, "z")], ["z"], {"z": meta(2 * size)})


@attack(20_000)
def weights_of_one_record(size: int) -> Tree:
    """Weights without an input that all have the same bytes."""
    return {**program([relu("x", "a")], ["a"]), "config": {f"w{n}": payload() for n in range(size)}}


@attack(20_000)
def outputs(size: int) -> Tree:
    """One value, returned often."""
    return program([relu("x", "a")], ["a"] * size)


@attack(30_000)
def inputs(size: int) -> Tree:
    """Many inputs."""
    return program([relu("x0", "a")], ["a"], inputs=[f"x{n}" for n in range(size)])


@attack(38_000)
def dead(size: int) -> Tree:
    """Calls whose results nothing uses."""
    return program([relu("x", f"a{n}") for n in range(size)], ["x"])


@attack(15_000)
def views_written(size: int) -> Tree:
    """Views of one tensor, and a write into each."""
    nodes = []
    for n in range(size):
        nodes.append(call("aten.view.default", f"a{n}", self="x", size={"as_ints": [2]}))
        nodes.append(call("aten.add_.Tensor", f"b{n}", self=f"a{n}", other={"as_int": 1}))
    return program(nodes, ["x"])


@attack(30_000)
def views_of_views(size: int) -> Tree:
    """A view of a view of a view, and a write at the end."""
    sources = ["x", *(f"a{n}" for n in range(size - 1))]
    nodes = [call("aten.view.default", f"a{n}", self=source, size={"as_ints": [2]}) for n, source in enumerate(sources)]
    nodes.append(call("aten.add_.Tensor", "z", self=f"a{size - 1}", other={"as_int": 1}))
    return program(nodes, ["z"])


def regular(size: int, shift: int, layers: int = 3) -> Tree:
    """Return a graph in which all nodes of a layer look alike: each uses two of the layer before."""
    last = [f"a{n}" for n in range(size)]
    nodes = [call("aten.add.Tensor", name, self="x", other="x") for name in last]
    for layer in range(layers):
        names = [f"l{layer}_{n}" for n in range(size)]
        neighbors = [last[(n + shift + layer) % size] for n in range(size)]
        nodes += [
            call("aten.mul.Tensor", name, self=own, other=other)
            for name, own, other in zip(names, last, neighbors, strict=True)
        ]
        last = names
    nodes.append(cat(last, "z"))
    return graph(["x"], nodes, ["z"], {"z": meta(2 * size)})


@attack(3_000)
def regular_graph(size: int) -> Tree:
    """A graph whose nodes look alike."""
    return program_of(regular(size, 1))


@attack(2_000)
def dead_regular_graph(size: int) -> Tree:
    """The same, and nothing uses the result."""
    root = regular(size, 1)
    return program_of({**root, "nodes": root["nodes"][:-1], "outputs": [tensor("x")]})


def cond(result: str, branches: Sequence[Tree], operand: str = "x") -> Tree:
    """Return a call of one of two graphs."""
    graphs = [{"as_graph": {"name": f"{result}_{n}", "graph": one}} for n, one in enumerate(branches)]
    arguments = [{"as_bool": True}, *graphs, tensors([operand])]
    return {
        **call("higher_order.cond", result),
        "inputs": [{"name": "", "arg": argument, "kind": 1} for argument in arguments],
        "is_hop_single_tensor_return": False,
    }


@attack(200)
def regular_branches(size: int) -> Tree:
    """Twelve graphs whose nodes look alike, in the branches of six calls."""
    results = [f"c{n}" for n in range(6)]
    nodes = [cond(name, [regular(size, 2 * n + 1), regular(size, 2 * n + 2)]) for n, name in enumerate(results)]
    return program(nodes, results, dict.fromkeys(results, meta(2 * size)))


@attack(13)
def branches_in_branches(size: int) -> Tree:
    """Two branches that each have two branches."""
    root = graph(["x"], [relu("x", "z")], ["z"], {})
    for _ in range(size):
        root = graph(["x"], [cond("z", [root, root])], ["z"], {})
    return program_of(root)


@attack(6_000)
def deep_branch(size: int) -> Tree:
    """Many calls in a branch of a branch, and so on."""
    root = graph(["x"], [relu("x", f"a{n}") for n in range(size)], ["a0"], {})
    for _ in range(12):
        root = graph(["x"], [cond("z", [root, graph(["x"], [], ["x"], {})])], ["z"], {})
    return program_of(root)


@attack(400_000)
def empty_nodes(size: int) -> Tree:
    """Many of the smallest nodes."""
    tree = small()
    tree["graph_module"]["graph"]["nodes"] = [{"target": "t", "inputs": [], "outputs": [], "metadata": {}}] * size
    return tree


# Expressions, guards and tree specs


def sized(expressions: Sequence[str]) -> Tree:
    """Return a chain of calls whose results have these sizes."""
    sources = ["x", *(f"a{n}" for n in range(len(expressions) - 1))]
    nodes = [relu(source, f"a{n}") for n, source in enumerate(sources)]
    values = {f"a{n}": meta(text) for n, text in enumerate(expressions)}
    tree = program(nodes, [f"a{len(expressions) - 1}"], {"x": meta(SYMBOL), **values})
    return {**tree, "range_constraints": {"s0": {"min_val": 2, "max_val": 100}}}


@attack(20_000)
def wide_sum(size: int) -> Tree:
    """One sum of many terms."""
    return sized([f"Add({', '.join([SYMBOL] * size)})"])


@attack(2_000)
def product_of_sums(size: int) -> Tree:
    """A product that has 2**n terms once it is multiplied out."""
    return sized([f"Mul({', '.join(f'Add({SYMBOL}, Integer({n}))' for n in range(size))})"])


@attack(3_000)
def products_to_compare(size: int) -> Tree:
    """Remainders of products, each to be compared with the one before."""
    return sized(
        [
            f"Mod(Mul(Add({SYMBOL}, Integer({n})), Add({SYMBOL}, Integer({n + 1}))), Add({SYMBOL}, Integer({n + 2})))"
            for n in range(size)
        ]
    )


@attack(3_000)
def powers_to_compare(size: int) -> Tree:
    """Powers that cancel out, each to be compared with the one before."""
    powers = [f"Pow(Add({SYMBOL}, Integer({n})), Integer(8))" for n in range(size)]
    return sized([f"Add({power}, Mul(Integer(-1), {power}), {SYMBOL})" for power in powers])


@attack(3_000)
def maxima_to_compare(size: int) -> Tree:
    """Maxima of minima, each to be compared with the one before."""
    return sized(
        [f"Max({', '.join(f'Min({SYMBOL}, Integer({n + other}))' for other in range(16))})" for n in range(size)]
    )


@attack(140)
def nested_fractions(size: int) -> Tree:
    """Divisions in divisions."""
    text = SYMBOL
    for _ in range(size):
        text = f"FloorDiv(Add({text}, {SYMBOL}), Integer(2))"
    return sized([text])


@attack(20_000)
def symbols(size: int) -> Tree:
    """A size of many symbols."""
    text = ", ".join(f"Symbol('s{n}', positive=True, integer=True)" for n in range(size))
    ranges = {f"s{n}": {"min_val": 2, "max_val": 100} for n in range(size)}
    return {**sized([f"Add({text})"]), "range_constraints": ranges}


@attack(15_000)
def guards(size: int) -> Tree:
    """Many guards."""
    return {**sized([SYMBOL]), "guards_code": [f"{SIZE} != {n + 1000}" for n in range(size)]}


@attack(15_000)
def wide_guard(size: int) -> Tree:
    """A guard of many parts."""
    return {**sized([SYMBOL]), "guards_code": [" and ".join([f"{SIZE} >= 2"] * size)]}


@attack(2_000)
def guards_to_solve(size: int) -> Tree:
    """Guards that no value of a range passes quickly."""
    texts = [f"{SIZE} % {n + 2} * {SIZE} % {n + 3} != {10**6 + n}" for n in range(size)]
    return {**sized([SYMBOL]), "guards_code": texts}


def with_in_spec(text: str) -> Tree:
    """Return a small program that is called by this tree spec."""
    tree = small()
    tree["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = text
    return tree


@attack(20_000)
def wide_spec(size: int) -> Tree:
    """A tree spec of many empty containers."""
    return with_in_spec(in_spec(LEAF + ',{"type":"builtins.tuple","context":"null","children_spec":[]}' * size))


@attack(192)
def deep_specs(size: int) -> Tree:
    """A tree spec of many deep containers."""
    deep = '{"type":"builtins.tuple","context":"null","children_spec":[' * 100 + "]}" * 100
    return with_in_spec(in_spec(LEAF + f",{deep}" * size))


@attack(60_000)
def spec_in_a_long_record(size: int) -> Tree:
    """A tree spec of many containers, in a record that cannot be deflated much."""
    spec = in_spec(LEAF + ',{"type":"builtins.dict","context":"[]","children_spec":[]}' * size)
    return {**with_in_spec(spec), "torch_version": random.Random(0).randbytes(800_000).hex()}


@attack(15_000)
def kept_signatures(size: int) -> Tree:
    """Many modules whose call signature was kept."""
    tree = small()
    entries = tree["graph_module"]["module_call_graph"]
    entries += [{"fqn": f"m{n}", "signature": entries[0]["signature"]} for n in range(size)]
    return tree


# Metadata


def described(count: int, key: str, text: Callable[[int], str]) -> Tree:
    """Return a chain of calls with this metadata."""
    nodes = [relu(f"a{n - 1}" if n else "x", f"a{n}", **{key: text(n)}) for n in range(count)]
    return program(nodes, [f"a{count - 1}"])


@attack(50)
def long_traces(size: int) -> Tree:
    """Traces of 20,000 frames."""
    return described(size, "stack_trace", lambda n: 'File "a.py", line 1, in f\n    x\n' * 20_000)


@attack(1_500)
def other_traces(size: int) -> Tree:
    """Traces of which no two frames are equal."""
    return described(
        size, "stack_trace", lambda n: "".join(f'File "a{n}.py", line {row}, in f\n    x\n' for row in range(200))
    )


@attack(2_000)
def deep_modules(size: int) -> Tree:
    """Module stacks of a hundred levels."""
    paths = [".".join("a" * level) for level in range(1, 100)]
    return described(size, "nn_module_stack", lambda n: ";".join(f"L__self__{path},{path},M" for path in paths))


@attack(10_000_000)
def long_stack(size: int) -> Tree:
    """A module stack of many levels."""
    return described(1, "nn_module_stack", lambda n: "a,b,c;" * size + "a,b,c")


@attack(20_000)
def other_modules(size: int) -> Tree:
    """A module for each node."""
    return described(size, "nn_module_stack", lambda n: f"L__self__,,M;L__self__m{n},m{n},N")


@attack(20)
def long_paths(size: int) -> Tree:
    """Modules at paths of 100,000 levels."""
    return described(size, "nn_module_stack", lambda n: f"L__self__,,M;L__self__x,{'a.' * 100_000}b{n},N")


@attack(2_000)
def deep_origins(size: int) -> Tree:
    """Origins of origins of nodes."""
    text = "[]"
    for n in range(90):
        text = f'[{{"name":"a","target":"b","graph_id":{n},"pass_name":"","action":[1],"from_node":{text}}}]'
    return described(size, "from_node", lambda n: text)


# Records


@attack(20_000_000)
def unknown_objects(size: int) -> tuple[Tree, str]:
    """A key that no version has, with many empty objects."""
    return small(unknown=_FILL), f"[{'{},' * (size - 1)}{{}}]"


@attack(6_000_000)
def unknown_floats(size: int) -> tuple[Tree, str]:
    """A key that no version has, with many numbers of many digits."""
    return small(unknown=_FILL), f"[{'1e-9999,' * (size - 1)}0]"


@attack(200_000)
def unknown_keys(size: int) -> Tree:
    """Keys that no version has, in many nodes."""
    tree = small()
    node = {"target": "t", "inputs": [], "outputs": [], "metadata": {}, "unknown": 0}
    tree["graph_module"]["graph"]["nodes"] = [node] * size
    return tree


@attack(8_000_000)
def long_list(size: int) -> tuple[Tree, str]:
    """An argument of many numbers."""
    nodes = [call("aten.relu.default", "a", self="x", other={"as_ints": _FILL})]
    return program(nodes, ["a"]), f"[{'1,' * (size - 1)}1]"


@attack(60_000_000)
def long_text(size: int) -> tuple[Tree, str]:
    """A very long version of torch."""
    return small(torch_version=_FILL), f'"{"9" * size}"'


@attack(220_000)
def values(size: int) -> Tree:
    """Descriptions of values that no graph has."""
    tree = small()
    tree["graph_module"]["graph"]["tensor_values"].update({f"k{n}": VECTOR for n in range(size)})
    return tree


@attack(200_000)
def ranges(size: int) -> Tree:
    """Ranges of symbols that nothing uses."""
    return small(range_constraints={f"s{n}": {"min_val": 0, "max_val": None} for n in range(size)})


@attack(15_000)
def views_of_a_weight(size: int) -> Tree:
    """Many weights with one storage."""
    return small(config={f"w{n}": payload() for n in range(size)})


@attack(8_000)
def records(size: int) -> Tree:
    """Many empty records."""
    return small(extra=size)
