"""Rules of docs/format for a decoded program: graphs, signature, tree specs, expressions, payloads of inputs.

Programs are plain JSON with every default filled in. Standard library only.
"""

from __future__ import annotations

import json
import keyword
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import independent_symbols as symbols
from independent_pickle import Tensor
from independent_zip import Refused, need

DTYPES = {
    1: ("uint8", 1),
    2: ("int8", 1),
    3: ("int16", 2),
    4: ("int32", 4),
    5: ("int64", 8),
    6: ("float16", 2),
    7: ("float32", 4),
    8: ("float64", 8),
    9: ("complex32", 4),
    10: ("complex64", 8),
    11: ("complex128", 16),
    12: ("bool", 1),
    13: ("bfloat16", 2),
    28: ("uint16", 2),
    29: ("float8_e4m3fn", 1),
    30: ("float8_e5m2", 1),
    31: ("float8_e4m3fnuz", 1),
    32: ("float8_e5m2fnuz", 1),
    33: ("float8_e8m0fnu", 1),
    34: ("uint32", 4),
    35: ("uint64", 8),
}
DEVICES = {
    "cpu",
    "cuda",
    "ipu",
    "xpu",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "meta",
    "hpu",
    "mtia",
    "privateuseone",
    "npu",
    "mlu",
    "musa",
    "spyre",
    "openreg",
}
TABLES = {
    "tensor": "tensor_values",
    "sym_int": "sym_int_values",
    "sym_float": "sym_float_values",
    "sym_bool": "sym_bool_values",
    "custom_obj": "custom_obj_values",
}
VALUES = {"as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool", "as_custom_obj"}
CONSTANTS = {"as_none", "as_int", "as_float", "as_bool", "as_string", "as_complex"}

Reference = tuple[str, str, bool]


def references(argument: Any, depth: int = 0) -> Iterator[Reference]:
    """The values that an argument names: name, kind, and whether the kind is certain."""
    need(depth <= 32, "G11", "deep dicts of arguments")
    ((arm, held),) = argument.items()
    if arm in ("as_tensor", "as_custom_obj"):
        yield held["name"], arm[3:], True
    elif arm == "as_optional_tensor":
        yield from ((entry["name"], "tensor", True) for key, entry in held.items() if key == "as_tensor")
    elif arm == "as_tensors":
        yield from ((entry["name"], "tensor", False) for entry in held)
    elif arm == "as_nested_tensors":
        yield from ((entry["name"], "tensor", False) for row in held for entry in row)
    elif arm == "as_optional_tensors":
        yield from ((entry["as_tensor"]["name"], "tensor", False) for entry in held if "as_tensor" in entry)
    elif arm in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        yield from ((name, arm[3:], True) for key, name in held.items() if key == "as_name")
    elif arm in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
        yield from ((entry["as_name"], arm[3:-1], True) for entry in held if "as_name" in entry)
    elif arm == "as_string_to_argument":
        for entry in held.values():
            yield from references(entry, depth + 1)


def graphs_in(argument: Any) -> list[Any]:
    """The subgraphs that an argument carries."""
    ((arm, held),) = argument.items()
    if arm == "as_string_to_argument":
        return [graph for entry in held.values() for graph in graphs_in(entry)]
    return [held["graph"]] if arm == "as_graph" else []


def subgraphs(node: Any) -> list[Any]:
    """The subgraphs that a node carries."""
    return [graph for named in node["inputs"] for graph in graphs_in(named["arg"])]


def named(argument: Any) -> Any:
    """An input or output in the words of the suite."""
    names = [name for name, _, _ in references(argument)]
    return names[0] if names else constant(argument)


def constant(argument: Any) -> Any:
    """A constant in the words of the suite."""
    ((arm, held),) = argument.items()
    if arm == "as_complex":
        held = [repr(float(held["real"])), repr(float(held["imag"]))]
    return {arm: repr(held) if isinstance(held, float) else held}


def definitions(graph: Any) -> dict[str, str]:
    """Name -> kind, of the values that a graph defines (G2)."""
    found: dict[str, str] = {}
    for argument in (*graph["inputs"], *(output for node in graph["nodes"] for output in node["outputs"])):
        for name, kind, _ in references(argument):
            need(name not in found, "G2", f"{name!r} is defined twice")
            found[name] = kind
    return found


def check_program(program: Any) -> list[Any]:
    """Check graphs, signature and ranges; the graphs, the root first."""
    module = program["graph_module"]
    found: list[Any] = []
    todo = [(module["graph"], 0)]
    while todo:
        graph, depth = todo.pop(0)
        need(depth <= 32, "G11", "deep subgraphs")
        check_graph(graph)
        found.append(graph)
        todo += [(inner, depth + 1) for node in graph["nodes"] for inner in subgraphs(node)]
    check_signature(module)
    for symbol, row in program["range_constraints"].items():
        low, high = row["min_val"], row["max_val"]
        need(low is None or high is None or low <= high, "E3", f"range of {symbol!r}")
        symbols.parse(symbol)
    for meta in module["graph"]["tensor_values"].values():
        check_device(meta["device"])
    return found


def check_device(device: Any) -> None:
    """A device (P6)."""
    index = device["index"]
    need(device["type"] in DEVICES and (index is None or 0 <= index <= 127), "P6", f"device {device}")


def check_graph(graph: Any) -> None:
    """One graph (G1 to G13)."""
    kinds: dict[str, str] = {}
    for kind, table in TABLES.items():
        for name in graph[table]:
            need(name not in kinds, "G4", f"{name!r} has two entries")
            kinds[name] = kind
    for name, meta in graph["tensor_values"].items():
        need(len(meta["sizes"]) == len(meta["strides"]), "G6", f"{name!r}: sizes and strides")
        numbers = (*meta["sizes"], *meta["strides"], meta["storage_offset"])
        need(all(number.get("as_int", 0) >= 0 for number in numbers), "G6", f"{name!r}: a negative number")
    for argument in graph["inputs"]:
        need(argument.keys() <= VALUES | CONSTANTS, "G9", f"graph input {list(argument)}")
    everything = definitions(graph)
    defined: dict[str, str] = {}

    def define(argument: Any) -> None:
        for name, kind, _ in references(argument):
            need(kinds.get(name) == kind, "G3", f"{name!r} has no entry as {kind}")
            need(name.isidentifier(), "G8", f"name {name!r}")
            defined[name] = kind

    def use(argument: Any) -> None:
        for name, kind, certain in references(argument):
            if name not in defined and kind == "custom_obj" and name not in everything and name not in kinds:
                continue
            need(name in defined, "G1", f"{name!r} is used before it is defined")
            need(not certain or defined[name] == kind, "G7", f"{name!r} is no {kind}")

    for argument in graph["inputs"]:
        define(argument)
    for node in graph["nodes"]:
        for row in node["inputs"]:
            use(row["arg"])
        for output in node["outputs"]:
            need(not graphs_in(output), "G10", "a subgraph as output")
            define(output)
        single = node["is_hop_single_tensor_return"]
        need(not single or [list(output) for output in node["outputs"]] == [["as_tensor"]], "G13", node["target"])
    for output in graph["outputs"]:
        need(not graphs_in(output), "G10", "a subgraph as output")
        use(output)
    lone = len(graph["outputs"]) == 1 and graph["outputs"][0].keys() <= VALUES
    need(not graph["is_single_tensor_return"] or lone, "G12", "is_single_tensor_return")


def spec_of(spec: Any) -> tuple[str, Any]:
    """The one key of a spec and what it holds."""
    ((kind, held),) = spec.items()
    return kind, held


def argument_of(kind: str, held: Any, rule: str = "S12") -> Any:
    """Return the graph's input or output that a spec describes, as an argument."""
    if kind == "constant_input":
        return held["value"]
    if kind not in ("user_input", "user_output"):
        return {"as_custom_obj" if kind == "custom_obj" else "as_tensor": held["arg"]}
    argument = held["arg"]
    ((arm, value),) = argument.items()
    one = arm in VALUES and (not arm.startswith("as_sym") or "as_name" in value)
    need(one or arm in CONSTANTS, rule, f"{kind}: {arm}")
    need(kind == "user_output" or arm != "as_complex", rule, f"{kind}: {arm}")
    need(kind != "user_output" or not is_nan(arm, value), rule, "NaN")
    return argument


def is_nan(arm: str, value: Any) -> bool:
    """Return whether a constant is NaN, or has a part that is."""
    parts = [value] if arm == "as_float" else [*value.values()] if arm == "as_complex" else []
    return any(float(part) != float(part) for part in parts)


def same(first: Any, second: Any) -> bool:
    """Return whether two arguments are the same value or constant."""
    ((arm, a),), ((other, b),) = first.items(), second.items()
    if arm in CONSTANTS and other in CONSTANTS:
        none = ("as_none" in first) + ("as_none" in second)
        return none == 2 or (not none and (a == b or (a != a and b != b)))
    return bool(first == second)


def target_of(held: Any) -> Any:
    """The target of a spec, if it has one."""
    keys = ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name", "user_input_name")
    return next((held[key] for key in keys if key in held), None)


INPUT_ORDER = {"token": 0, "user_input": 2, "constant_input": 2}
OUTPUT_ORDER = {"token": 0, "user_output": 2, "loss_output": 2, "gradient_to_parameter": 3, "gradient_to_user_input": 3}


def check_signature(module: Any) -> None:
    """The signature (S1 to S14)."""
    graph = module["graph"]
    inputs = [spec_of(spec) for spec in module["signature"]["input_specs"]]
    outputs = [spec_of(spec) for spec in module["signature"]["output_specs"]]
    need(len(inputs) == len(graph["inputs"]), "S1", "number of input_specs")
    need(len(outputs) == len(graph["outputs"]), "S2", "number of output_specs")
    tokens = [sum(kind == "token" for kind, _ in rows) for rows in (inputs, outputs)]
    need(tokens[0] == tokens[1], "S13", f"{tokens} tokens")
    for rows, values, rule in ((inputs, graph["inputs"], "S3"), (outputs, graph["outputs"], "S4")):
        for (kind, held), value in zip(rows, values, strict=True):
            need(same(argument_of(kind, held), value), rule, f"{kind} {str(held)[:80]}")
    for rows, order, rule in ((inputs, INPUT_ORDER, "S5"), (outputs, OUTPUT_ORDER, "S6")):
        places = [order.get(kind, 1) for kind, _ in rows]
        need(places == sorted(places), rule, f"order {places}")
    need(sum(kind == "loss_output" for kind, _ in outputs) <= 1, "S9", "two losses")
    users = {
        held["arg"]["as_tensor"]["name"] for kind, held in inputs if kind == "user_input" and "as_tensor" in held["arg"]
    }
    owners = {
        "parameter_name": {target_of(held) for kind, held in inputs if kind == "parameter"},
        "buffer_name": {target_of(held) for kind, held in inputs if kind == "buffer"},
        "user_input_name": users,
    }
    for _, held in outputs:
        need(all(held[key] in owners[key] for key in owners if key in held), "S7", f"target {target_of(held)!r}")
    mutated = [(kind, held["arg"]["name"]) for kind, held in outputs if kind.endswith("_mutation")]
    need(len(mutated) == len(set(mutated)), "S7", f"two mutations by one value in {mutated}")
    written = [(kind, target_of(held)) for kind, held in outputs if kind.endswith("_mutation")]
    need(len(written) == len(set(written)), "S7", f"two mutations of one target in {written}")
    first: dict[str, Any] = {}
    targets = [target for _, held in inputs if (target := target_of(held)) is not None]
    for kind, held in inputs:
        target = target_of(held)
        if target is None:
            continue
        need(not any(other.startswith(f"{target}.") for other in targets), "S8", f"targets below {target!r}")
        plain = all(target.split(".")) and not re.search(r"[\"\\\x00-\x1f\x7f]", target)
        need(plain, "S10", f"target {target!r}")
        what = (kind, held["arg"].get("class_fqn"), graph["tensor_values"].get(held["arg"]["name"]))
        need(first.setdefault(target, what) == what, "S8", f"target {target!r}")
    taken = {
        name for kind, held in inputs if kind != "constant_input" for name, _, _ in references(argument_of(kind, held))
    }
    taken |= {name for key, table in graph.items() if key.endswith("_values") for name in table}
    for kind, held in inputs:
        if kind == "constant_input":
            need(held["name"].isidentifier() and held["name"] not in taken, "S14", f"placeholder {held['name']!r}")
            taken.add(held["name"])


def input_row(spec: Any) -> list[Any]:
    """An input spec in the words of the suite."""
    kind, held = spec_of(spec)
    if kind in ("user_input", "constant_input"):
        return [kind, named(held["arg"]) if kind == "user_input" else constant(held["value"]), None]
    row = [kind, held["arg"]["name"], target_of(held)]
    return [*row, held["persistent"]] if kind == "buffer" else row


def output_row(spec: Any) -> list[Any]:
    """An output spec in the words of the suite."""
    kind, held = spec_of(spec)
    return [kind, named(held["arg"]) if kind == "user_output" else held["arg"]["name"], target_of(held)]


def check_payloads(module: Any, weights: dict[str, Any], constants: dict[str, Any]) -> None:
    """Check that payloads which the signature takes are there and fit (P14, P19)."""
    for kind, held in map(spec_of, module["signature"]["input_specs"]):
        target = target_of(held)
        if target is None:
            continue
        place = weights if kind == "parameter" or (held.get("persistent") and target in weights) else constants
        need(target in place, "P19", f"{kind} {target!r} is nowhere")
        meta, tensor = module["graph"]["tensor_values"].get(held["arg"]["name"]), place[target]
        need(kind != "parameter" or getattr(tensor, "is_param", True), "P19", f"{target!r} is no parameter")
        if meta is None or not isinstance(tensor, Tensor):
            continue
        need(meta["layout"] == 7, "P5", f"{target!r}: layout in the graph")
        need(meta["dtype"] in DTYPES and DTYPES[meta["dtype"]][0] == tensor.dtype, "P14", f"{target!r}: dtype")
        sizes = [size.get("as_int") for size in meta["sizes"]]
        fits = len(sizes) == len(tensor.sizes) and all(a in (None, b) for a, b in zip(sizes, tensor.sizes, strict=True))
        need(fits, "P14", f"{target!r}: sizes {sizes} and {tensor.sizes}")


def load(text: Any, rule: str) -> Any:
    """JSON inside a text of a tree spec."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(items)) == len(items), rule, "a key twice")
        return dict(items)

    need(isinstance(text, str), rule, "no text")
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        raise Refused(rule, f"no JSON: {text[:60]!r}") from None


SEQUENCES = {"builtins.tuple", "builtins.list", "torch.Size", "torch.fx.immutable_collections.immutable_list"}
MAPPINGS = {"builtins.dict", "collections.OrderedDict", "torch.fx.immutable_collections.immutable_dict"}


def paths(node: Any, fields: dict[str, Any], path: str = "", depth: int = 1) -> list[str]:
    """The paths of the leaves below a node of a tree spec (K2, K3)."""
    need(isinstance(node, dict) and node.keys() == {"type", "context", "children_spec"}, "K2", f"a node at {path!r}")
    kind, context, children = node["type"], node["context"], node["children_spec"]
    need(isinstance(children, list) and depth <= 201, "K2", f"children at {path!r}")
    if kind is None:
        need(context is None and not children, "K2", f"a leaf at {path!r}")
        return [path]
    need(isinstance(kind, str) and depth <= 200, "K2", f"a type at {path!r}")
    steps = child_steps(kind, context, len(children), fields)
    need(len(steps) == len(children), "K3", f"{len(children)} children at {path!r}")
    below = zip(children, steps, strict=True)
    return [leaf for child, step in below for leaf in paths(child, fields, path + step, depth + 1)]


def child_steps(kind: str, context: Any, count: int, fields: dict[str, Any]) -> list[str]:
    """How the children of a container are reached."""
    indices = [f"[{i}]" for i in range(count)]
    if kind in SEQUENCES:
        need(load(context, "K3") is None, "K3", f"context of {kind}")
        return indices
    if kind == "collections.deque":
        most = load(context, "K3")
        need(most is None or (type(most) is int and most >= count), "K3", "context of a deque")
        return indices
    if kind in MAPPINGS or kind == "collections.defaultdict":
        keys: Any = context.get("dict_context") if isinstance(context, dict) else load(context, "K3")
        need(isinstance(keys, list), "K3", f"keys of {kind}")
        shown = [f"[{key!r}]" for key in keys]
        need(len(set(shown)) == len(shown), "K3", f"keys of {kind}")
        return shown
    if kind == "collections.namedtuple":
        names = context.get("fields") if isinstance(context, dict) else fields.get(context)
        return indices if names is None else [f".{name}" for name in names]
    return indices


def check_calls(module: Any) -> dict[str, Any]:
    """The module call graph (K1 to K5, V1); the root's call in the words of the suite."""
    entries = module["module_call_graph"]
    need(entries and entries[0]["fqn"] == "" and entries[0]["signature"], "K1", "no root entry")
    need(all(entry["fqn"] for entry in entries[1:]), "K1", "a second root entry")
    fields = {name: row["field_names"] for name, row in module["treespec_namedtuple_fields"].items()}
    root = entries[0]["signature"]
    arguments, results = (leaf_paths(root[key], fields) for key in ("in_spec", "out_spec"))
    kinds = [[next(iter(spec)) for spec in module["signature"][key]] for key in ("input_specs", "output_specs")]
    need(len(arguments) == sum(kind in ("user_input", "constant_input") for kind in kinds[0]), "K4", "user inputs")
    need(len(results) == sum(kind in ("user_output", "loss_output") for kind in kinds[1]), "K4", "user outputs")
    for entry in entries[1:]:
        held = entry["signature"]
        if held and (held["inputs"] or held["outputs"]):
            for key, side in (("in_spec", "inputs"), ("out_spec", "outputs")):
                count = len(leaf_paths(held[key], fields))
                need(count == len(held[side]), "K4", f"{entry['fqn']}: {side}")
    node = load(root["in_spec"], "K2")[1]
    shape = [child["type"] for child in node["children_spec"]]
    need(node["type"] == "builtins.tuple" and shape == ["builtins.tuple", "builtins.dict"], "K3", "in_spec is no call")
    names = root["forward_arg_names"]
    if names:
        positional, keywords = node["children_spec"]
        plain = [unicodedata.normalize("NFKC", name) for name in names]
        fit = all(name.isidentifier() and not keyword.iskeyword(name) and name != "self" for name in plain)
        need(fit and len(set(plain)) == len(plain), "K5", f"names {names[:5]}")
        last = load(keywords["context"], "K3")
        need(len(names) == len(positional["children_spec"]) + len(last), "K5", f"{len(names)} names")
        need(names[len(names) - len(last) :] == last, "K5", "names of keywords")
    return {"arguments": arguments, "results": results, "names": names}


def leaf_paths(text: str, fields: dict[str, Any]) -> list[str]:
    """The paths of the leaves of a tree spec."""
    tree = load(text, "K2")
    need(isinstance(tree, list) and len(tree) == 2, "K2", "no tree spec")
    need(type(tree[0]) is int and tree[0] == 1, "V1", f"protocol {tree[0]}")
    return paths(tree[1], fields)


def check_expressions(program: Any, found: list[Any]) -> None:
    """Expressions and their symbols (E1, E2, E5)."""
    assumed: dict[str, Any] = {}
    terms: dict[str, int] = {}
    maxima: dict[Any, int] = {}
    for graph in found:
        sizes = [s for m in graph["tensor_values"].values() for s in (*m["sizes"], *m["strides"], m["storage_offset"])]
        places = [(sizes, {"int"}), (graph["sym_int_values"].values(), {"int"})]
        places += [(graph["sym_float_values"].values(), {"int", "float", "fraction"})]
        places += [(graph["sym_bool_values"].values(), {"bool"})]
        for values, wanted in places:
            for text in dict.fromkeys(value["as_expr"]["expr_str"] for value in values if "as_expr" in value):
                tree = symbols.parse(text)
                symbols.check_constants(tree)
                need(symbols.kind(tree) in wanted, "E1", f"{text[:60]!r} is no {sorted(wanted)[0]}")
                terms[text] = symbols.count_terms(tree)
                symbols.count_compared(tree, maxima)
                for name, assumptions in symbols.symbols(tree):
                    need(name in program["range_constraints"], "E2", f"{name!r} has no range")
                    held = assumed.setdefault(name, assumptions)
                    need(held == assumptions or not (held and assumptions), "E5", f"assumptions of {name!r}")
    need(sum(count for count in terms.values() if count > 64) <= 65_536, "E1", "many terms together")
    need(sum(count**2 for count in maxima.values()) <= 2048, "E1", "many maxima together")
