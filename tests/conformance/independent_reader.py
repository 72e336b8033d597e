"""A reader of `.pt2` files made from the specification alone: `python independent_reader.py FILE`.

It imports nothing of pt2kit and takes its types from the tables of docs/format/types.md, to prove that the text is
enough. It reads every layout and every released schema; it prints what `conformance/README.md` asks for, without the
digests and guards. What it does not claim (the development states) ends with exit code 3.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter, deque
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.setrecursionlimit(5000)

import independent_rules as rules  # noqa: E402
import independent_symbols as symbols  # noqa: E402
from independent_old import to_5_1  # noqa: E402
from independent_pickle import NamedTuple, Sparse, Tensor, check_geometry, read_payload  # noqa: E402
from independent_zip import Model, Refused, check_name, layout, need, read_zip  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs" / "format"


class NotClaimed(Exception):
    """A file of a kind that this reader does not read."""


def read_types() -> dict[str, dict[str, Any]]:
    """Type name -> its kind and fields, from the tables of the specification."""
    found: dict[str, dict[str, Any]] = {}
    for section in (DOCS / "types.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        name, _, rest = section.partition("\n")
        kind = re.search(r"^\*(\w+)\.\*", rest, re.MULTILINE)
        assert kind is not None
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in rest.splitlines() if line.startswith("| ")][1:]
        cells = [[cell.strip().replace("\\|", "|").strip("`") for cell in row] for row in rows]
        if kind[1] == "enum":
            found[name] = {"kind": "enum", "names": {int(row[0]): row[1] for row in cells}}
        else:
            fields = {row[0]: (row[1], row[4] if kind[1] == "struct" else "") for row in cells}
            found[name] = {"kind": kind[1], "fields": fields}
    return found


TYPES = read_types()
WORDS = ("Infinity", "-Infinity", "NaN")


def parse_json(data: bytes, bare: bool = False) -> Any:
    """JSON text (J1 to J3)."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(items)) == len(items), "J2", "a key twice")
        return dict(items)

    def word(text: str) -> float:
        need(bare, "J1", f"the word {text}")
        return float(text)

    def number(text: str) -> float:
        need(abs(float(text)) != float("inf"), "J1", f"the number {text[:20]}")
        return float(text)

    need(not data.startswith(b"\xef\xbb\xbf"), "J1", "a byte-order mark")
    brackets = re.findall(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', data, re.DOTALL)
    depth = deepest = 0
    for token in brackets:
        depth += (token in b"[{") - (token in b"]}")
        deepest = max(deepest, depth)
    need(deepest <= 512, "J3", f"{deepest} levels")
    try:
        tree = json.loads(data.decode(), object_pairs_hook=pairs, parse_constant=word, parse_float=number)
        json.dumps(tree, ensure_ascii=False).encode()
    except ValueError as error:
        raise Refused("J1", str(error)) from None
    return tree


def decode(tree: Any, text: str, path: str, unknown: list[str]) -> Any:
    """A value of a type, with defaults filled in and unknown keys noted (J4, J5)."""
    if text.endswith(" | None"):
        return None if tree is None else decode(tree, text[:-7], path, unknown)
    inner = re.fullmatch(r"(list|dict)\[(?:str, )?(.*)\]", text)
    if inner and inner[1] == "list":
        need(isinstance(tree, list), "J5", f"{path}: expected a list")
        return [decode(item, inner[2], f"{path}[{i}]", unknown) for i, item in enumerate(tree)]
    if inner:
        need(isinstance(tree, dict), "J5", f"{path}: expected an object")
        return {key: decode(item, inner[2], f"{path}.{key}", unknown) for key, item in tree.items()}
    if text in ("str", "bool"):
        need(isinstance(tree, {"str": str, "bool": bool}[text]), "J5", f"{path}: expected {text}")
        return tree
    if text in ("int", "float"):
        fits = type(tree) is int or (text == "float" and (type(tree) is float or tree in WORDS))
        need(fits, "J5", f"{path}: expected {text}")
        return tree if text == "int" else float(tree)
    row = TYPES[text]
    if row["kind"] == "enum":
        need(type(tree) is int and tree in row["names"], "J5", f"{path}: expected a number of {text}")
        return tree
    need(isinstance(tree, dict), "J5", f"{path}: expected an object")
    fields: dict[str, tuple[str, str]] = row["fields"]
    if row["kind"] == "union":
        need(len(tree) == 1 and tree.keys() <= fields.keys(), "J4", f"{path}: keys {list(tree)[:5]}")
        return {key: decode(item, fields[key][0], f"{path}.{key}", unknown) for key, item in tree.items()}
    unknown += [f"{path}.{key}" for key in tree if key not in fields]
    found = {}
    for key, (kind, default) in fields.items():
        need(key in tree or default, "J5", f"{path}: no key {key}")
        found[key] = decode(tree[key] if key in tree else json.loads(default), kind, f"{path}.{key}", unknown)
    return found


def stored_version(tree: Any) -> tuple[int, int]:
    """The schema version (V1, M4, M5)."""
    need(isinstance(tree, dict) and "schema_version" in tree, "M5", "no schema_version")
    version = tree["schema_version"]
    if type(version) is int and version >= 0:
        version = {"major": version, "minor": 0}
    known = isinstance(version, dict) and all(type(version.get(key)) is int for key in ("major", "minor"))
    need(known and version["major"] >= 0 <= version["minor"], "M5", f"schema_version {str(version)[:60]}")
    pair = (version["major"], version["minor"])
    need(pair[0] in (1, 2, 5, 7, 8), "M4", f"schema {pair}")
    return pair


def raise_tree(tree: Any, version: tuple[int, int]) -> Any:
    """The steps of docs/format/versions.md from 5.1 on, on plain JSON."""
    if version >= (8, 17):
        return tree
    if version < (8, 2):
        respell(tree)
    if version < (7, 3):
        tree["verifiers"] = [tree.pop("dialect")]
        if version < (5, 3):
            raise_constants(tree["graph_module"])
    for entry in tree["range_constraints"].values():
        for key, value in entry.items():
            entry[key] = None if value in (float("inf"), -float("inf"), 9223372036854775806) else value
    todo = deque([tree["graph_module"]["graph"]])
    while todo:
        graph = todo.popleft()
        if "co_fileinfo_ordered_list" in graph:
            raise NotClaimed("5.3 with traces")
        for node in graph["nodes"]:
            raise_node(node, version)
            todo.extend(rules.subgraphs(node))
    return tree


def respell(tree: Any) -> None:
    """None as an argument is true, and truth values are not ints, from 8.2 on."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if node.get("as_none") == []:
                node["as_none"] = True
            value = node.get("constant_input", {}).get("value", {}) if "constant_input" in node else {}
            if isinstance(value.get("as_int"), bool):
                node["constant_input"]["value"] = {"as_bool": value["as_int"]}
        todo += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def raise_constants(module: Any) -> None:
    """User inputs of 5.1 that are constants get names."""
    for number, spec in enumerate(module["signature"]["input_specs"]):
        arg = spec.get("user_input", {}).get("arg", {})
        if arg.keys() & {"as_none", "as_int", "as_float", "as_bool", "as_string"}:
            value = {"as_none": True} if "as_none" in arg else arg
            spec.clear()
            spec["constant_input"] = {"name": f"constant_{number}", "value": value}


def raise_node(node: Any, version: tuple[int, int]) -> None:
    """A node of an older version, in place."""
    target = node["target"]
    if target.startswith("torch._higher_order_ops."):
        node["target"] = target = f"torch.ops.higher_order.{target.rpartition('.')[2]}"
    higher = target.startswith("torch.ops.higher_order.")
    outputs = node["outputs"]
    for argument in (*(named["arg"] for named in node["inputs"]), *outputs):
        if version < (5, 3) and "as_optional_tensors" in argument:
            held = argument["as_optional_tensors"]
            argument["as_optional_tensors"] = [
                {"as_tensor": {"name": e["as_tensor"]}} if "as_tensor" in e else e for e in held
            ]
    if version < (8, 6) and higher:
        lone = len(outputs) == 1 and len(outputs[0].get("as_tensors", ())) == 1
        node["is_hop_single_tensor_return"] = len(outputs) == 1 and not outputs[0].keys() & {"as_tensors"}
        if lone:
            node["outputs"] = [{"as_tensor": outputs[0]["as_tensors"][0]}]
    if (
        version < (8, 8)
        and target.endswith("higher_order.invoke_subgraph")
        and "as_tensors" in node["inputs"][-1]["arg"]
    ):
        *first, last = node["inputs"]
        node["inputs"] = [*first, *({**last, "arg": {"as_tensor": tensor}} for tensor in last["arg"]["as_tensors"])]


def payloads(model: Model, kind: int) -> dict[str, Any]:
    """Name -> Tensor or kind of object, of the weights (0) or constants (1)."""
    data = (model.weights, model.constants)[kind]
    if model.stored_as == "pickles":
        found = read_payload(data) if data else {}
        need(isinstance(found, dict), "", "no dict of tensors")
        return dict(found)
    unknown: list[str] = []
    config = decode(parse_json(data), "PayloadConfig", "$", unknown)["config"]
    types: dict[str, int] = {}
    return {name: payload(name, row, model.folders[kind], types) for name, row in config.items()}


def payload(name: str, row: Any, folder: dict[str, bytes], types: dict[str, int]) -> Any:
    """One payload of a config (P1 to P13)."""
    path = row["path_name"]
    try:
        check_name(path)
    except Refused as error:
        raise Refused("P1", str(error)) from None
    need("/" not in path and not path.endswith("_config.json"), "P1", f"path_name {path!r}")
    need(path in folder, "P2", f"no record {path!r}")
    for prefix, kind in (("custom_obj_", "torchbind"), ("opaque_obj_", "opaque")):
        if path.startswith(prefix):
            return kind
    data, meta = folder[path], row["tensor_meta"]
    if row["use_pickle"]:
        return read_payload(data)
    need(meta, "P3", f"{name}: no tensor_meta")
    need(meta["dtype"] in rules.DTYPES, "P4", f"{name}: dtype {meta['dtype']}")
    dtype, width = rules.DTYPES[meta["dtype"]]
    need(meta["layout"] == 7, "P5", f"{name}: layout")
    rules.check_device(meta["device"])
    need(meta["device"]["type"] != "meta", "P6", f"{name}: on meta")
    numbers = [size.get("as_int") for size in (*meta["sizes"], *meta["strides"], meta["storage_offset"])]
    need(None not in numbers, "P7", f"{name}: an expression")
    count = len(meta["sizes"])
    sizes, strides, offset = tuple(numbers[:count]), tuple(numbers[count:-1]), numbers[-1]
    need(len(data) % width == 0, "P10", f"{name}: {len(data)} bytes")
    check_geometry(sizes, strides, offset, dtype, len(data), name)
    need(not data or types.setdefault(path, meta["dtype"]) == meta["dtype"], "P11", f"{name}: dtype of {path}")
    need(not meta["requires_grad"] or dtype.startswith(("float", "bfloat", "complex")), "P12", f"{name}: gradient")
    tensor = Tensor(data, dtype, sizes, strides, offset, meta["requires_grad"], row["is_param"])
    need(dtype != "bool" or set(tensor.contiguous()) <= {0, 1}, "P13", f"{name}: bools")
    return tensor


def show(payload: Any) -> Any:
    """A payload in the words of the suite."""
    kind = "tensor"
    if isinstance(payload, Sparse):
        kind, payload = "sparse", payload.dense()
    if not isinstance(payload, Tensor):
        return {"kind": payload}
    digest = hashlib.sha256(payload.contiguous()).hexdigest()
    return {
        "kind": kind,
        "dtype": payload.dtype,
        "sizes": list(payload.sizes),
        "requires_grad": payload.requires_grad,
        "sha256": digest,
    }


def leaves(value: Any) -> list[Any]:
    """The leaves of sample inputs."""
    if isinstance(value, NamedTuple):
        value = value.values
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for child in value for leaf in leaves(child)] if isinstance(value, tuple | list) else [value]


def samples_of(data: bytes) -> Any:
    """The leaves of the sample inputs, in the words of the suite."""
    if not data:
        return None
    try:
        value = read_payload(data)
    except Refused:
        return "refused"
    found = []
    for leaf in leaves(value):
        plain = {type(leaf).__name__: repr(leaf) if isinstance(leaf, float) else leaf}
        found.append(show(leaf) if isinstance(leaf, Tensor | Sparse) else plain)
    return found


def describe_model(model: Model) -> dict[str, Any]:
    """One program."""
    tree = parse_json(model.program, bare=True)
    version = stored_version(tree)
    if version >= (8, 6):
        tree = parse_json(model.program)
    unknown: list[str] = []
    inner: dict[str, Tensor] = {}
    stored = ".".join(map(str, version))
    if version < (5, 1):
        stored = str(version[0])
        tree, inner = to_5_1(tree, version[0])
        version = (5, 1)
    program = decode(raise_tree(tree, version), "ExportedProgram", "$", unknown)
    module = program["graph_module"]
    found = rules.check_program(program)
    weights, constants = payloads(model, 0), {**payloads(model, 1), **inner}
    rules.check_payloads(module, weights, constants)
    root = module["graph"]
    call = rules.check_calls(module)
    rules.check_expressions(program, found)
    storages: dict[int, list[str]] = {}
    for name, held in weights.items():
        if isinstance(held, Tensor) and held.data:
            storages.setdefault(id(held.data), []).append(name)
    return {
        "schema_version": stored,
        "torch_version": program["torch_version"],
        "unknown_keys": sorted(f"models/model.json: {key}" for key in unknown),
        "graph": {
            "inputs": [rules.named(argument) for argument in root["inputs"]],
            "outputs": [rules.named(argument) for argument in root["outputs"]],
            "nodes": len(root["nodes"]),
            "subgraphs": len(found) - 1,
            "operators": dict(sorted(Counter(n["target"] for g in found for n in g["nodes"]).items())),
            "values": dict(sorted(Counter(rules.definitions(root).values()).items())),
        },
        "values_at_5": {
            name: [size["as_int"] if "as_int" in size else at_5(size["as_expr"]) for size in meta["sizes"]]
            for name, meta in root["tensor_values"].items()
            if any("as_expr" in size for size in meta["sizes"])
        },
        "signature": {
            "inputs": [rules.input_row(spec) for spec in module["signature"]["input_specs"]],
            "outputs": [rules.output_row(spec) for spec in module["signature"]["output_specs"]],
        },
        "call": call,
        "modules": [entry["fqn"] for entry in module["module_call_graph"]],
        "range_constraints": {k: [v["min_val"], v["max_val"]] for k, v in program["range_constraints"].items()},
        "weights": {name: show(held) for name, held in weights.items()},
        "constants": {name: show(held) for name, held in constants.items()},
        "shared": sorted(sorted(names) for names in storages.values() if len(names) > 1),
        "sample_inputs": samples_of(model.samples),
    }


def at_5(expression: Any) -> Any:
    """A size with every symbol standing for 5."""
    value = symbols.evaluate(symbols.parse(expression["expr_str"]), 5)
    return None if value is None else int(value)


def describe(file: bytes) -> dict[str, Any]:
    """A whole file.

    Raises:
        Refused: it breaks a rule.
        NotClaimed: it is of a kind that this reader does not read.
    """
    kind, models, extra = layout(read_zip(file))
    return {
        "layout": kind,
        "models": {name: describe_model(model) for name, model in models.items()},
        "extra_files": {name: hashlib.sha256(data).hexdigest() for name, data in extra.items()},
    }


def read(path: Path) -> tuple[int, dict[str, Any]]:
    """The exit code and what is printed for a file."""
    try:
        return 0, describe(path.read_bytes())
    except Refused as refused:
        return 1, {"error": str(refused), "rule": refused.rule}
    except NotClaimed as reason:
        return 3, {"error": str(reason)}


if __name__ == "__main__":
    code, printed = read(Path(sys.argv[1]))
    print(json.dumps(printed))
    sys.exit(code)
