"""The corpus of real files -> the suite in `conformance/`: good files with what they hold, bad files, vectors.

The expected descriptions are pt2kit's; an independent reader, made from the specification, checks them in the tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

from tools import conformance_vectors
from tools.conformance_cases import (
    CALL_CASES,
    CHECK_CASES,
    EXPRESSION_CASES,
    GRAPH_CASES,
    JSON_CASES,
    PAYLOAD_CASES,
    PROGRAM,
    SIGNATURE_CASES,
    VERSION_CASES,
    WEIGHTS,
    Case,
)
from tools.conformance_zip import (
    Entry,
    Records,
    archive_cases,
    build,
    deflate,
    descriptor,
    layout_cases,
    read,
    stored,
)

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "conformance"
CORPUS = ROOT / "tests" / "data" / "corpus"
HOSTILE = ROOT / "tests" / "data" / "hostile"

GOOD = (
    "2.1.2/buffer_mutation",
    "2.1.2/constants",
    "2.1.2/dynamic_batch",
    "2.2.2/constants",
    "2.2.2/namedtuple_io",
    "2.3.1/cond",
    "2.3.1/kwargs_and_nested_inputs",
    "2.4.1/print_effect",
    "2.4.1/sparse_buffer",
    "2.5.1/dynamic_batch",
    "2.5.1/training_loss_joint",
    "2.6.0/cond",
    "2.6.0/dynamic_batch",
    "2.7.1/cond",
    "2.7.1/namedtuple_io",
    "2.8.0/namedtuple_io",
    "2.8.0/sparse_buffer",
    "2.9.1/cond",
    "2.10.0/saved_to_buffer",
    "2.11.0/print_effect",
    "2.12.0/mlp",
    "2.13.0/buffer_mutation",
    "2.13.0/buffer_mutation__decomp",
    "2.13.0/complex_scalar",
    "2.13.0/cond",
    "2.13.0/constants",
    "2.13.0/custom_op_nested_floats",
    "2.13.0/dtypes",
    "2.13.0/dynamic_batch",
    "2.13.0/empty_graph",
    "2.13.0/extra_files",
    "2.13.0/float8",
    "2.13.0/inf_nan_floats",
    "2.13.0/input_mutation__decomp",
    "2.13.0/item_symint",
    "2.13.0/kwargs_and_nested_inputs",
    "2.13.0/multi_model_package",
    "2.13.0/none_input",
    "2.13.0/out_dtype_hop",
    "2.13.0/preserve_module_sig",
    "2.13.0/print_effect__decomp",
    "2.13.0/scalar_inputs",
    "2.13.0/shared_weights",
    "2.13.0/strided_weights",
    "2.13.0/sym_ops",
    "2.13.0/uint16_dtype",
    "2.13.0/while_loop_hop",
    "2.15.0/mlp",
)
"""Real files, by release and model."""

BASES = {
    "small": "2.13.0/dynamic_batch",
    "floats": "2.13.0/inf_nan_floats",
    "old": "2.7.1/namedtuple_io",
    "cond": "2.13.0/cond",
    "symbols": "2.13.0/sym_ops",
    "none": "2.13.0/none_input",
    "buffers": "2.13.0/buffer_mutation__decomp",
    "loss": "2.13.0/training_loss_joint",
    "tokens": "2.13.0/print_effect__decomp",
    "scalars": "2.13.0/scalar_inputs",
    "nested": "2.13.0/kwargs_and_nested_inputs",
    "kept": "2.13.0/preserve_module_sig",
    "shared": "2.13.0/shared_weights",
    "dtypes": "2.13.0/dtypes",
    "constants": "2.13.0/constants",
}
"""Bases of bad files: name in a case -> a good file."""


@cache
def base(name: str) -> tuple[tuple[str, bytes], ...]:
    """The records of a base: small, without metadata of nodes and sample inputs."""
    path = CORPUS / f"{BASES[name]}.pt2"
    if name == "old":
        return tuple(read(path, root=False).items())
    records = {key: data for key, data in read(path).items() if not key.startswith("data/sample_inputs/")}
    tree = json.loads(records[PROGRAM])
    _strip(tree)
    records[PROGRAM] = json.dumps(tree).encode()
    return tuple(records.items())


def _strip(tree: Any) -> None:
    """Empty the metadata of all nodes, in place."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if "target" in node and "metadata" in node:
                node["metadata"] = {}
            todo += node.values()
        elif isinstance(node, list):
            todo += node


def write_case(case: Case) -> bytes:
    """The file of a case.

    Raises:
        LookupError: the base does not have what the case changes.
    """
    records = dict(base(case.base))
    record = _record(case, records)
    if case.text is not None:
        changed = case.text(records[record])
    else:
        tree = json.loads(records[record])
        assert case.edit is not None
        replaced = case.edit(tree)
        is_tree = isinstance(replaced, dict) and ("graph_module" in replaced or "config" in replaced)
        changed = json.dumps(replaced if is_tree or replaced == [] else tree).encode()
    if changed == records[record]:
        raise LookupError(f"{case.rules[0]} {case.name}: nothing changed")
    records[record] = changed
    if case.also and case.edit is not None:
        records[case.also] = json.dumps(case.edit(json.loads(records[case.also]))).encode()
    return build(stored(records, "" if case.base == "old" else "base/"))


def _record(case: Case, records: Records) -> str:
    """The record of a case; "bool" is that of the first weight or constant of bools."""
    if case.record != "bool":
        return case.record
    for kind in ("weights", "constants"):
        for row in json.loads(records[f"data/{kind}/model_{kind}_config.json"])["config"].values():
            if row["tensor_meta"]["dtype"] == 12:
                return f"data/{kind}/{row['path_name']}"
    raise LookupError("no bools")


def made_good() -> Iterator[tuple[str, bytes]]:
    """Good files that no release writes as they are: names and bytes."""
    records = dict(base("small"))
    packed = [Entry(b"folder/", b"", attributes=0o40755 << 16)]
    packed += [Entry(f"folder/{name}".encode(), data, 8, data=deflate(data)) for name, data in records.items()]
    yield "packed_again", build(packed)
    late = [Entry(f"z/{n}".encode(), d, flags=0x808, descriptor=descriptor(d, wide=True)) for n, d in records.items()]
    yield "descriptors_zip64", build(late, zip64=True)
    tree = json.loads(records[PROGRAM])
    tree["schema_version"]["minor"] = 21
    tree["graph_module"]["graph"]["nodes"][0]["future"] = {"kept": [1, 2]}
    tree["made_by"] = "a newer release"
    yield "newer_minor", build(stored({**records, PROGRAM: json.dumps(tree).encode()}))
    tree = json.loads(records[PROGRAM])
    for key in ("verifiers", "guards_code"):
        del tree[key]
    tree = {key: tree[key] for key in reversed(tree)}
    config = json.dumps(json.loads(records[WEIGHTS]), indent=1).encode()
    yield "other_order", build(stored({**records, PROGRAM: json.dumps(tree, indent=2).encode(), WEIGHTS: config}))
    old = read(CORPUS / "2.8.0" / "namedtuple_io.pt2")
    mixed = {name.replace("model.", "old."): data for name, data in old.items() if name.count("/")}
    yield "two_releases", build(stored({**records, **{n: d for n, d in mixed.items() if "model" in n or "old" in n}}))
    yield "sample_inputs_with_code", (HOSTILE / "000_pickle_sample_inputs.pt2").read_bytes()


Bad = tuple[str, str, str, str, bytes]
"""A file that breaks rules: its name, the rules, the record, what is wrong, its bytes."""


def made_bad() -> Iterator[Bad]:
    """Yield bad files that are not made by changing JSON."""
    entries = stored(dict(base("small")))
    for name, rules, wrong, write in (*archive_cases(), *layout_cases()):
        yield name, " ".join(rules), "", wrong, write(entries)
    old = read(CORPUS / "2.8.0" / "sparse_buffer.pt2")
    payload = "data/weights/model.pt"
    records = read(BytesIO(old[payload]))
    far = {**records, "data/0": (99).to_bytes(8, "little") + records["data/0"][8:]}
    yield "sparse_index", "P17", payload, "an index beyond the sizes", _outer({**old, payload: far})
    pickle = records["data.pkl"].replace(b"ctorch._utils\n_rebuild_sparse_tensor\n", b"cos\nsystem\n", 1)
    code = {**records, "data.pkl": pickle}
    yield "pickle_code", "P15", payload, "a pickle that calls os.system", _outer({**old, payload: code})
    short = {**records, "data/1": b""}
    yield "pickle_storage", "P9 P17", payload, "a storage without its bytes", _outer({**old, payload: short})
    bare = dict(old)
    bare[payload] = records["data.pkl"]
    yield "pickle_bare", "P15 P9", payload, "a pickle outside a zip", build(stored(bare))
    tensor = (HOSTILE / "003_pickle_tensor_constant.pt2").read_bytes()
    yield "pickled_constant", "P15", "data/constants/tensor_0", "a constant that is a pickle with code", tensor


def reported() -> Iterator[Bad]:
    """Yield files that are read, and of which something is reported."""
    records = dict(base("small"))
    record = "data/weights/weight_99"
    yield "unused", "P20", record, "a record that no config names", build(stored({**records, record: b"unused.."}))
    config = json.loads(records[WEIGHTS])
    row = next(iter(config["config"].values()))
    row["use_pickle"] = True
    sizes = [size["as_int"] for size in row["tensor_meta"]["sizes"]]
    record = f"data/weights/{row['path_name']}"
    changed = {**records, WEIGHTS: json.dumps(config).encode(), record: torch_save(records[record], sizes)}
    yield "pickled_weight", "X2", record, "a weight that is pickled, plain data", build(stored(changed))
    for name, rule, record, wrong in (
        (
            "001_pickle_sample_inputs_raw",
            "X1",
            "data/sample_inputs/model.pt",
            "sample inputs that are a pickle with code",
        ),
        ("005_pickle_custom_obj_garbage", "X3", "data/constants/custom_obj_0", "an object that is a pickle"),
        ("072_aoti_compile_command", "X8", "data/aotinductor/", "compiled code"),
        ("052_op_empty_uninit", "X11 T8", PROGRAM, "memory that is returned without a write"),
    ):
        yield name.partition("_")[2], rule, record, wrong, (HOSTILE / f"{name}.pt2").read_bytes()


def torch_save(data: bytes, sizes: list[int]) -> bytes:
    """A torch.save file of one contiguous float32 parameter's data, opcode by opcode."""

    def text(value: str) -> bytes:
        return b"X" + len(value).to_bytes(4, "little") + value.encode()

    def numbers(values: list[int]) -> bytes:
        return b"(" + b"".join(b"J" + value.to_bytes(4, "little") for value in values) + b"t"

    strides = [prod(sizes[dim + 1 :]) for dim in range(len(sizes))]
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu")
    storage += b"J" + (len(data) // 4).to_bytes(4, "little") + b"tQ"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0" + numbers(sizes) + numbers(strides)
    tensor += b"\x88ccollections\nOrderedDict\n)RtR"
    records = {"data.pkl": b"\x80\2" + tensor + b".", "byteorder": b"little", "data/0": data, "version": b"3\n"}
    return build(stored(records, "archive/"))


def _outer(records: dict[str, Any]) -> bytes:
    packed = {
        name: build(stored(data, "archive/")) if isinstance(data, dict) else data for name, data in records.items()
    }
    return build(stored(packed))


CASES = (
    *JSON_CASES,
    *VERSION_CASES,
    *GRAPH_CASES,
    *SIGNATURE_CASES,
    *CALL_CASES,
    *EXPRESSION_CASES,
    *PAYLOAD_CASES,
    *CHECK_CASES,
)


def files() -> dict[Path, bytes]:
    """Every file of the suite that is generated."""
    from conformance.pt2kit_reader import describe

    import pt2kit

    found: dict[Path, bytes] = {}
    manifest: dict[str, Any] = {"format": "pt2 conformance 1", "good": [], "bad": []}
    real = (
        (_name(model), (CORPUS / f"{model}.pt2").read_bytes(), f"torch {model.partition('/')[0]}") for model in GOOD
    )
    for name, data, producer in (*real, *((name, data, "made by hand") for name, data in made_good())):
        with pt2kit.open(data) as package:
            expected = describe(package)
        row = {"file": f"good/{name}.pt2", "expected": f"good/{name}.json", "producer": producer}
        versions = sorted({model["schema_version"] for model in expected["models"].values()})
        manifest["good"].append({**row, "layout": expected["layout"], "schema": versions})
        found[SUITE / row["file"]] = data
        found[SUITE / row["expected"]] = (json.dumps(expected, indent=1) + "\n").encode()
    changed = ((c.must, (c.name, " ".join(c.rules), c.record, c.wrong, write_case(c))) for c in CASES)
    refused = (("refuse", bad) for bad in made_bad())
    for must, (name, rules, record, wrong, data) in (*changed, *refused, *(("report", bad) for bad in reported())):
        listed = rules.split()
        file = f"bad/{listed[0]}_{name}.pt2"
        if SUITE / file in found:
            raise LookupError(f"{file}: two cases")
        found[SUITE / file] = data
        manifest["bad"].append({"file": file, "rules": listed, "record": record, "wrong": wrong, "must": must})
    manifest["bad"].sort(key=lambda row: (row["file"][4], int(row["rules"][0][1:]), row["file"]))
    found[SUITE / "manifest.json"] = conformance_vectors.one_a_line(manifest).encode()
    found[SUITE / "vectors.json"] = conformance_vectors.one_a_line(conformance_vectors.vectors()).encode()
    return found


def _name(model: str) -> str:
    release, _, name = model.partition("/")
    return f"{name.replace('__', '_')}_{release.rpartition('.')[0]}"


def stale() -> list[Path]:
    """The files that are not what they would be, and those that nobody writes."""
    wanted = files()
    there = {path for folder in ("good", "bad") for path in (SUITE / folder).glob("*")}
    wrong = [path for path, data in wanted.items() if not path.exists() or path.read_bytes() != data]
    return sorted([*wrong, *(there - wanted.keys())])


def write() -> None:
    """Write the suite, and remove what is no longer part of it."""
    wanted = files()
    for folder in ("good", "bad"):
        (SUITE / folder).mkdir(exist_ok=True)
        for path in (SUITE / folder).glob("*"):
            if path not in wanted:
                path.unlink()
    for path, data in wanted.items():
        path.write_bytes(data)
