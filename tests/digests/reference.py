"""`docs/digest.md`, implemented from its text alone: the records of an archive -> digests. No code of pt2kit is used.

Plain and slow. Of files as torch 2.9 and later write them; of nodes that lead to no output and do the same with the
same values, any is taken.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import struct
from pathlib import Path
from typing import Any

from tests.digests.reference_expressions import normal as normal_expression

OPERATORS = Path(__file__).parents[2] / "src" / "pt2kit" / "schema" / "history" / "operators.txt"

DEFAULTS: dict[str, Any] = {
    "index": None,
    "hint": None,
    "kind": None,
    "is_hop_single_tensor_return": None,
    "forward_arg_names": None,
    "signature": None,
    "is_single_tensor_return": False,
    "custom_obj_values": {},
    "sym_float_values": {},
}
DTYPES = {1: "uint8 B", 2: "int8 b", 3: "int16 h", 4: "int32 i", 5: "int64 q", 6: "float16 e", 7: "float32 f"}
DTYPES |= {8: "float64 d", 9: "complex32 I", 10: "complex64 Q", 11: "complex128 QQ", 12: "bool ?", 13: "bfloat16 H"}
DTYPES |= {28: "uint16 H", 29: "float8_e4m3fn B", 30: "float8_e5m2 B", 31: "float8_e4m3fnuz B"}
DTYPES |= {32: "float8_e5m2fnuz B", 33: "float8_e8m0fnu B", 34: "uint32 I", 35: "uint64 Q"}
SYMBOLIC = ("as_sym_int", "as_sym_float", "as_sym_bool")
INPUT_RANKS = {"token": (0, ""), "parameter": (1, "parameter_name"), "buffer": (2, "buffer_name")}
INPUT_RANKS |= {"tensor_constant": (3, "tensor_constant_name"), "custom_obj": (4, "custom_obj_name")}
INPUT_RANKS |= {"user_input": (5, ""), "constant_input": (6, "name")}
OUTPUT_RANKS = {"token": (0, ""), "parameter_mutation": (1, "parameter_name"), "buffer_mutation": (2, "buffer_name")}
OUTPUT_RANKS |= {"user_input_mutation": (3, ""), "user_output": (4, ""), "loss_output": (4, "")}
OUTPUT_RANKS |= {"gradient_to_parameter": (5, "parameter_name"), "gradient_to_user_input": (6, "")}


def encode(value: Any) -> bytes:
    """Section 1. Floats of the schema have been made floats, defaults have been left out."""
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, int):
        return b"i%d;" % value
    if isinstance(value, float):
        return b"d" + (bytes.fromhex("7ff8000000000000") if math.isnan(value) else struct.pack(">d", value))
    if isinstance(value, str):
        return b"s%d:" % len(value.encode()) + value.encode()
    if isinstance(value, bytes):
        return b"b%d:" % len(value) + value
    if isinstance(value, list):
        return b"l%d:" % len(value) + b"".join(map(encode, value))
    members = sorted(value.items(), key=lambda member: member[0].encode())
    return b"o%d:" % len(members) + b"".join(encode(key) + encode(item) for key, item in members)


def schema_value(tree: Any, key: str = "") -> Any:
    """JSON as a value: floats of the schema as floats, defaults left out. Maps with free keys keep all of theirs."""
    if isinstance(tree, list):
        return [schema_value(item, key) for item in tree]
    if isinstance(tree, dict):
        if key in ("tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values", "custom_obj_values"):
            return {name: schema_value(item) for name, item in tree.items()}
        if key in ("metadata", "as_string_to_argument", "opset_version", "range_constraints"):
            return {name: schema_value(item) for name, item in tree.items()}
        if key == "treespec_namedtuple_fields":
            return {name: schema_value(item) for name, item in tree.items()}
        kept = {name: item for name, item in tree.items() if name not in DEFAULTS or item != DEFAULTS[name]}
        if "target" in kept and kept.get("name") is None:
            kept.pop("name", None)
        return {name: schema_value(item, name) for name, item in kept.items()}
    if key in ("as_float", "as_floats", "as_float_lists", "real", "imag"):
        return float(tree)
    return tree


def H(kind: str, value: Any) -> bytes:
    return hashlib.sha256(b"pt2kit " + kind.encode() + b" 1\0" + encode(value)).digest()


def B(data: bytes) -> bytes:
    return hashlib.sha256(b"pt2kit bytes 1\0" + data).digest()


def slots(argument: dict[str, Any]) -> list[str | None]:
    """The names of the values in an argument, None for what has rank -1."""
    [(arm, value)] = argument.items()
    if arm in ("as_tensor", "as_custom_obj"):
        return [value["name"]]
    if arm == "as_tensors":
        return [item["name"] for item in value]
    if arm == "as_nested_tensors":
        return [item["name"] for row in value for item in row]
    if arm in ("as_optional_tensor", "as_optional_tensors"):
        items = value if isinstance(value, list) else [value]
        return [item["as_tensor"]["name"] if "as_tensor" in item else None for item in items]
    if arm.removesuffix("s") in SYMBOLIC:
        items = value if isinstance(value, list) else [value]
        return [item.get("as_name") for item in items]
    if arm == "as_string_to_argument":
        names = [name for key in sorted(value) for name in slots(value[key]) if name is not None]
        return list(names) or [None]
    return [None]


def subgraphs(argument: dict[str, Any]) -> list[dict[str, Any]]:
    [(arm, value)] = argument.items()
    if arm == "as_graph":
        return [value]
    if arm == "as_string_to_argument":
        return [found for key in sorted(value) for found in subgraphs(value[key])]
    return []


def renamed(tree: Any, names: dict[str, str]) -> Any:
    """An argument, or a list or dict of them, or of what they hold, under other names."""
    if isinstance(tree, list):
        return [renamed(item, names) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if set(tree) in ({"name"}, {"name", "class_fqn"}):
        return {**tree, "name": names.get(tree["name"], tree["name"])}
    if set(tree) == {"as_name"}:
        return {"as_name": names.get(tree["as_name"], tree["as_name"])}
    return {key: renamed(item, names) for key, item in tree.items()}


def writes(node: dict[str, Any]) -> bool:
    target = node["target"]
    if target.startswith("torch._higher_order_ops."):
        target = "higher_order." + target.rpartition(".")[2]
    elif target.startswith("torch.ops."):
        target = target.removeprefix("torch.ops.")
        target = target if "." in target else f"higher_order.{target}"
    namespace, name, overload = (*target.split(".", 2), "", "")[:3]
    known = ("aten", "prim", "prims", "_operator", "math", "torch", "export", "higher_order", "quantized_decomposed")
    outs = r"(\w+_)?out\d*(_\w*)?|Out\w+|output|L|Q|U|X|dim_max|dim_min|dim_values|eigenvalues|eigvals|grad_input"
    return (
        namespace not in known
        or re.fullmatch(r"__i\w+__|(?!__)\w*[^_]_", name) is not None
        or (
            namespace == "aten"
            and re.fullmatch(f"{outs}|inverse|result|sign|values|values_stable", overload) is not None
        )
        or f"{namespace}.{name}" in ("higher_order.print", "higher_order.call_torchbind")
        or (
            "norm" in name
            and not name.endswith("functional")
            and any(named["name"] == "training" and named["arg"].get("as_bool") for named in node["inputs"])
        )
        or any(
            writes(inner)
            for named in node["inputs"]
            for held in subgraphs(named["arg"])
            for inner in held["graph"]["nodes"]
        )
    )


@functools.cache
def operators() -> dict[str, list[tuple[int, list[str]]]]:
    """Operator -> the names of its parameters, release by release, from the table that section 2 refers to."""
    head, *groups = OPERATORS.read_text(encoding="utf-8").split("\n@ ")
    releases = head.split()
    found: dict[str, list[tuple[int, list[str]]]] = {}
    for group in groups:
        spans, *lines = group.splitlines()
        oldest = min(releases.index(span.partition("-")[0]) for span in spans.split())
        for line in lines:
            name, bracket, rest = line.partition("(")
            if bracket:
                name = name.replace("::", ".")
                inside = re.sub(r"\[[^\]]*\]|\([^()]*\)|\"[^\"]*\"", "", rest.rpartition(" -> ")[0])
                names = [part.partition("=")[0].split()[-1] for part in inside.strip("()").split(",") if part.strip()]
                key = name if name.count(".") > 1 else f"{name}.default"
                found.setdefault(key, []).append((oldest, names))
    return {name: sorted(rows, key=lambda row: row[0]) for name, rows in found.items()}


def usual(node: dict[str, Any]) -> dict[str, Any]:
    """A node with its arguments as section 2 wants them."""
    target, inputs = node["target"], node["inputs"]
    short = target.removeprefix("torch.ops.")
    is_higher = target.startswith("torch._higher_order_ops.") or (
        target != short and (short.startswith("higher_order.") or "." not in short)
    )
    if target.startswith(("_operator.", "math.", "builtins.", "torch.sym_", "torch._sym_")):
        named = [("", one["arg"]) for one in inputs]
    elif target.startswith("#") or (target != short and not is_higher):
        names = [one["name"] for one in inputs]
        rows = [row for _, row in operators().get(short, []) if set(names) <= set(row)] if target != short else []
        if rows and len(set(names)) == len(names):
            inputs = sorted(inputs, key=lambda one: rows[0].index(one["name"]))
        named = [(one["name"], one["arg"]) for one in inputs]
    else:
        placed = [one for one in inputs if not one["name"] or one.get("kind") == 1]
        others = [one for one in inputs if one["name"] and one.get("kind") != 1]
        named = [("", one["arg"]) for one in placed]
        named += [(one["name"], one["arg"]) for one in sorted(others, key=lambda one: one["name"])]
    return {**node, "inputs": [{"name": name, "arg": arg, "kind": None} for name, arg in named]}


TABLES = ("tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values", "custom_obj_values")


def normal(graph: dict[str, Any], inputs: list[Any], outputs: list[Any]) -> tuple[Any, dict[str, str], list[Any]]:
    """Section 2, one graph: the graph in normal form, its names, and the metadata of all graphs in it."""
    nodes = [usual(node) for node in graph["nodes"]]
    metas = {name: meta for table in TABLES for name, meta in graph.get(table, {}).items()}
    results = [[name for output in node["outputs"] for name in slots(output) if name] for node in nodes]
    definer = {name: number for number, names in enumerate(results) for name in names}
    started = [name for argument in inputs for name in slots(argument) if name]
    inner = [
        [
            (held, *normal(held["graph"], held["graph"]["inputs"], held["graph"]["outputs"]))
            for named in node["inputs"]
            for held in subgraphs(named["arg"])
        ]
        for node in nodes
    ]

    def stripped(number: int, names: dict[str, str], numbers: Any) -> dict[str, Any]:
        held = iter(inner[number])

        def argument(tree: dict[str, Any]) -> Any:
            [(arm, value)] = tree.items()
            if arm == "as_graph":
                label = next(numbers)
                return {arm: {"name": label, "graph": G(next(held)[1])}}
            if arm == "as_string_to_argument":
                return {arm: {key: argument(value[key]) for key in sorted(value)}}
            return renamed(tree, names)

        node = {key: value for key, value in nodes[number].items() if key != "name"}
        named = [{**one, "arg": argument(one["arg"])} for one in node["inputs"]]
        return schema_value({**node, "inputs": named, "outputs": renamed(node["outputs"], names), "metadata": {}})

    def content(number: int) -> bytes:
        blank = dict.fromkeys(metas, "")
        endless = iter(lambda: "", None)
        return encode(
            [stripped(number, blank, endless), schema_value(renamed([metas[name] for name in results[number]], blank))]
        )

    def walk_numbers() -> dict[int, int]:
        found: dict[int, int] = {}
        todo = [name for argument in reversed(outputs) for name in reversed(slots(argument)) if name]
        while todo:
            number = definer.get(todo.pop())
            if number is not None and number not in found:
                found[number] = len(found)
                used = [name for named in nodes[number]["inputs"] for name in slots(named["arg"]) if name]
                todo += reversed(used)
        return found

    numbers = walk_numbers()
    ranks = {name: rank for rank, name in enumerate(started)}
    parts: list[list[int]] = [[]]
    for number, node in enumerate(nodes):
        if writes(node):
            parts += [[number], []]
        else:
            parts[-1].append(number)
    order: list[int] = []
    for left in parts:
        while left:
            ready = [
                number
                for number in left
                if all(
                    name in ranks or name not in metas
                    for named in nodes[number]["inputs"]
                    for name in slots(named["arg"])
                    if name
                )
            ]
            keys = {
                number: (
                    nodes[number]["target"],
                    [
                        (named["name"], [-1 if name is None else ranks.get(name, -1) for name in slots(named["arg"])])
                        for named in nodes[number]["inputs"]
                    ],
                )
                for number in ready
            }
            least = min(keys.values())
            ties = [number for number in ready if keys[number] == least]
            if len(ties) > 1:
                whole = {
                    number: (content(number), numbers.get(number, math.inf), encode(nodes[number]["metadata"]))
                    for number in ties
                }
                ties = [number for number in ties if whole[number] == min(whole.values())]
                # Nodes that lead to no output and do the same: in the samples they can be exchanged.
            left.remove(ties[0])
            order.append(ties[0])
            for name in results[ties[0]]:
                ranks[name] = len(ranks)
    names = {name: f"_{rank}" for name, rank in ranks.items()}
    labels = (f"_g{number}" for number in range(10**9))
    form: dict[str, Any] = {
        "inputs": schema_value(renamed(inputs, names)),
        "outputs": schema_value(renamed(outputs, names)),
        "nodes": [stripped(number, names, labels) for number in order],
        **({"is_single_tensor_return": True} if graph.get("is_single_tensor_return") else {}),
    }
    for table in TABLES:
        held = {
            names[name]: schema_value(renamed(meta, names))
            for name, meta in graph.get(table, {}).items()
            if name in names
        }
        if held or table not in DEFAULTS:
            form[table] = held
    metadata = [[dict(nodes[number]["metadata"]) for number in order]]
    for number in order:
        for *_, deeper in inner[number]:
            metadata += deeper
    return form, names, metadata


def G(form: dict[str, Any]) -> bytes:
    return hashlib.sha256(b"pt2kit graph 1\0" + encode(form)).digest()


UNORDERED = ("Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equality", "Unequality")
SYMBOL = re.compile(r"Symbol\('(\w+)'")


def symbol_names(graph: dict[str, Any], inputs: list[Any]) -> dict[str, str]:
    """Section 2, "Symbols": new names of the symbols of inputs."""
    tables = {name: meta for key, table in graph.items() if key.endswith("_values") for name, meta in table.items()}
    texts = []
    for argument in inputs:
        for name in slots(argument):
            meta = tables.get(name, {})
            texts += [one["as_expr"]["expr_str"] for one in meta.get("sizes", [meta]) if "as_expr" in one]
    alone = [match[1] for text in texts if (match := re.fullmatch(SYMBOL.pattern + r"[^()]*\)", text))]
    found: dict[str, str] = {}
    counts: dict[str, int] = {}
    for name in dict.fromkeys([*alone, *(name for text in texts for name in SYMBOL.findall(text))]):
        letters = name.lstrip("_").rstrip("0123456789")
        found[name] = f"_{letters}{counts.get(letters, 0)}"
        counts[letters] = counts.get(letters, 0) + 1
    return found


def with_symbols(tree: Any, names: dict[str, str]) -> Any:
    """Section 2, "Symbols": all expressions under the new names."""
    if isinstance(tree, list):
        return [with_symbols(item, names) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "expr_str" in tree:
        return {**tree, "expr_str": expression(tree["expr_str"], names)}
    return {key: with_symbols(item, names) for key, item in tree.items()}


def expression(text: str, names: dict[str, str]) -> str:
    """One expression under the new names, sorted where the order of arguments says nothing."""
    if not names.keys() & set(SYMBOL.findall(text)):
        return text
    text = SYMBOL.sub(lambda found: f"Symbol('{names.get(found[1], found[1])}'", text)
    return ordered(text)


def ordered(text: str) -> str:
    function, opening, rest = text.partition("(")
    if not opening or function == "Symbol":
        return text
    arguments, depth, start = [], 0, 0
    for place, letter in enumerate(rest):
        if letter in ",)" and depth == 0:
            arguments.append(ordered(rest[start:place].strip()))
            start = place + 1
        depth += (letter == "(") - (letter == ")")
    return f"{function}({', '.join(sorted(arguments) if function in UNORDERED else arguments)})"


def reloaded(program: dict[str, Any]) -> dict[str, Any]:
    """Section 2, "Round trips through torch"."""
    used = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'|\"[^\"]*\"", "", " ".join(program["guards_code"]))))
    graph = _reloaded(program["graph_module"]["graph"], used)
    ranges = program["range_constraints"]
    kept = {key: row for key, row in ranges.items() if used & set(re.findall(r"[A-Za-z_]\w*", key))}
    return {**program, "graph_module": {**program["graph_module"], "graph": graph}, "range_constraints": kept}


def _reloaded(tree: Any, used: set[str]) -> Any:
    if isinstance(tree, list):
        return [_reloaded(item, used) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "target" in tree and "metadata" in tree:
        inputs = [_reloaded(named, used) for named in tree["inputs"]]
        for named in inputs:
            if str(named["arg"].get("as_string", "")).startswith("torch.ops."):
                named["arg"] = {"as_operator": named["arg"]["as_string"]}
        return {**tree, "inputs": inputs, "metadata": _addressless(tree["metadata"])}
    if "as_expr" in tree:
        found, symbols = normal_expression(tree["as_expr"]["expr_str"])
        used |= symbols
        whole = isinstance(found, int)
        return {"as_int": found} if whole else {"as_expr": {**tree["as_expr"], "expr_str": found}}
    offset = {"storage_offset": {"as_int": 0}} if "storage_offset" in tree else {}
    return {**{key: _reloaded(item, used) for key, item in tree.items()}, **offset}


def _addressless(metadata: dict[str, str]) -> dict[str, str]:
    found = dict(metadata)
    if "from_node" in found:
        text = re.sub(r'("graph_id": ?)[0-9]+', r"\g<1>0", found["from_node"])
        found["from_node"] = re.sub(" at 0x[0-9A-Fa-f]+", "", text)
    if "stack_trace" in found:
        found["stack_trace"] = re.sub(r"<eval_with_key>\.[0-9]+", "<eval_with_key>.0", found["stack_trace"])
    if "nn_module_stack" in found:
        entries = found["nn_module_stack"].split(";")
        found["nn_module_stack"] = ";".join(
            re.sub("^((?:L__self__)*)[0-9]{9,}(?=[@,:])", r"\g<1>0", entry) for entry in entries
        )
    return found


def program_parts(program: dict[str, Any]) -> dict[str, bytes]:
    """Section 3."""
    program = reloaded(program)
    specs = program["graph_module"]["signature"]["input_specs"]
    sorted_inputs = sorted(range(len(specs)), key=lambda position: _rank(specs[position], INPUT_RANKS, position))
    root = program["graph_module"]["graph"]
    symbols = symbol_names(root, [root["inputs"][position] for position in sorted_inputs])
    program = {
        **program,
        "graph_module": {**program["graph_module"], "graph": with_symbols(root, symbols)},
        "range_constraints": {symbols.get(key, key): row for key, row in program["range_constraints"].items()},
    }
    module = program["graph_module"]
    graph, specs = module["graph"], module["signature"]["input_specs"]
    ins = sorted(range(len(specs)), key=lambda position: _rank(specs[position], INPUT_RANKS, position))
    places = {name: place for place, position in enumerate(ins) for name in slots(graph["inputs"][position]) if name}
    out_specs = module["signature"]["output_specs"]

    def output_key(position: int) -> Any:
        [(_, held)] = out_specs[position].items()
        rank, name, _ = _rank(out_specs[position], OUTPUT_RANKS, position)
        return rank, name, places.get(held.get("user_input_name"), 0), position

    outs = sorted(range(len(out_specs)), key=output_key)
    form, names, metadata = normal(
        graph, [graph["inputs"][position] for position in ins], [graph["outputs"][position] for position in outs]
    )
    spec = {
        "input_specs": [_spec(specs[position], names) for position in ins],
        "output_specs": [_spec(out_specs[position], names) for position in outs],
    }
    calls = [
        {**call, "signature": call.get("signature") and renamed(call["signature"], names)}
        for call in sorted(module["module_call_graph"], key=lambda call: call["fqn"])
    ]
    arguments = [
        ins.index(position) for position, one in enumerate(specs) if "user_input" in one or "constant_input" in one
    ]
    return {
        "graph": H(
            "program graph",
            {"graph": G(form), "opset_version": program["opset_version"], "verifiers": program["verifiers"]},
        ),
        "signature": H(
            "signature",
            {
                "signature": spec,
                "arguments": arguments,
                "module_call_graph": schema_value(calls),
                "treespec_namedtuple_fields": module.get("treespec_namedtuple_fields", {}),
            },
        ),
        "constraints": H(
            "constraints",
            {"range_constraints": program["range_constraints"], "guards_code": sorted(program.get("guards_code", []))},
        ),
        "metadata": H(
            "metadata",
            {"nodes": metadata, "metadata": module.get("metadata", {}), "torch_version": program["torch_version"]},
        ),
    }


def _rank(spec: dict[str, Any], ranks: dict[str, tuple[int, str]], position: int) -> tuple[int, str, int]:
    [(kind, held)] = spec.items()
    rank, field = ranks[kind]
    return rank, held[field] if field else "", position


def _spec(spec: dict[str, Any], names: dict[str, str]) -> Any:
    [(kind, held)] = spec.items()
    new = {key: renamed(value, names) if key == "arg" else value for key, value in held.items()}
    if "user_input_name" in new:
        new["user_input_name"] = names[new["user_input_name"]]
    return schema_value({kind: new})


def payloads(records: dict[str, bytes], kind: str, model: str) -> tuple[bytes, dict[str, bytes]]:
    """Section 4."""
    config = json.loads(records[f"data/{kind}/{model}_{kind}_config.json"])["config"]
    tensors, spans = {}, []
    for name, row in config.items():
        data, meta = records[f"data/{kind}/{row['path_name']}"], row["tensor_meta"]
        found = re.match("custom_obj_|opaque_obj_", row["path_name"])
        if found or row["use_pickle"]:
            kind_of = {"custom_obj_": "torchbind", "opaque_obj_": "opaque"}[found[0]] if found else "pickle"
            described = {"kind": kind_of, "tensor_meta": None if found or meta is None else schema_value(meta)}
            tensors[name] = H("tensor", {**described, "is_param": not found and row["is_param"], "bytes": B(data)})
            continue
        dtype, code = DTYPES[meta["dtype"]].split()
        size = struct.calcsize(f"<{code}")
        sizes, strides = ([one["as_int"] for one in meta[field]] for field in ("sizes", "strides"))
        start = meta["storage_offset"]["as_int"]
        places = [start]
        for length, stride in zip(sizes, strides, strict=True):
            places = [place + step * stride for place in places for step in range(length)]
        elements = b"".join(data[place * size : (place + 1) * size] for place in places)
        if places:
            spans.append((row["path_name"], min(places) * size, (max(places) + 1) * size, name))
        tensors[name] = H(
            "tensor",
            {
                "kind": "tensor",
                "dtype": dtype,
                "sizes": sizes,
                "strides": strides,
                "requires_grad": meta["requires_grad"] and row["is_param"],
                "is_param": row["is_param"],
                "device": schema_value(meta["device"]),
                "elements": B(elements),
            },
        )
    groups: list[list[Any]] = []
    for record, first, last, name in sorted(spans):
        if not groups or groups[-1][0] != record or first >= groups[-1][2]:
            groups.append([record, first, last, {}])
        groups[-1][2] = max(groups[-1][2], last)
        groups[-1][3][name] = first - groups[-1][1]
    shared = sorted((group[3] for group in groups if len(group[3]) > 1), key=min)
    return H("payloads", {"tensors": tensors, "shared": shared}), tensors


def digests(records: dict[str, bytes], model: str = "model") -> dict[str, Any]:
    """All digests of one program, as `pt2 digest --json` has them."""
    raw = program_parts(json.loads(records[f"models/{model}.json"]))
    raw["weights"], weights = payloads(records, "weights", model)
    raw["constants"], constants = payloads(records, "constants", model)
    raw["program"] = H("program", {part: raw[part] for part in raw if part != "metadata"})
    return {
        "format": "pt2kit digest 3",
        **{part: f"sha256:{found.hex()}" for part, found in raw.items()},
        "tensors": {name: f"sha256:{found.hex()}" for name, found in weights.items()},
        "constant_tensors": {name: f"sha256:{found.hex()}" for name, found in constants.items()},
    }
