"""The test vectors of the digests, for every implementation of `docs/digest.md`: `tests/data/digest_vectors.json`.

`python -m tests.digests.vectors` writes them anew; a test compares. Of values and files they come from `reference.py`,
which shares no code with pt2kit; programs with nodes that only the search of section 2 tells apart come from pt2kit.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.canonical.programs import A, B, node, program, rewritten, tensor_graph
from tests.digests.packing import records
from tests.digests.reference import B as of_bytes
from tests.digests.reference import H, digests, encode
from tests.graph.build import arg, subgraph
from tests.samples import CURRENT_LAYOUT, DATA, corpus, release_id

from pt2kit import codec, schema
from pt2kit.digests import digest_program

PATH = DATA / "digest_vectors.json"
NOTE = (
    "Test vectors of docs/digest.md. In values, {'$float': text} is a float, {'$bytes': hexadecimal} are bytes; other "
    "numbers are integers. 'encodings': a value and its bytes. 'hashes': H(kind, value), or B of bytes where the kind "
    "is 'bytes'. 'programs': the JSON of models/<name>.json and its digests; those of one 'group' are one program "
    "written down in different ways: all but 'metadata' are equal, no two groups have one 'graph' and 'constraints'. "
    "'files': files of tests/data/corpus and all their digests."
)


def untagged(value: Any) -> Any:
    """A value of the file as what it stands for."""
    if isinstance(value, list):
        return [untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$float"}:
        return float(value["$float"])
    if set(value) == {"$bytes"}:
        return bytes.fromhex(value["$bytes"])
    return {key: untagged(item) for key, item in value.items()}


VALUES: list[Any] = [
    *(None, False, True, 0, -12, 2**63, "", "é", "\U0001f600\0", [], {}, [[], {}], {"b": [1, -2, True], "a": None}),
    *({"$float": text} for text in ("0.0", "-0.0", "1.0", "0.1", "inf", "-inf", "nan", "5e-324")),
    *({"$bytes": text} for text in ("", "00ff")),
    {"a": 1, "é": 2, "z": 3, "B": 4, "\U0001f600": 5, "\uffee": 6},
    {"as_int": 3},
]
HASHES: list[tuple[str, Any]] = [
    ("bytes", {"$bytes": ""}),
    ("bytes", {"$bytes": "616263"}),
    ("constraints", {"guards_code": [], "range_constraints": {}}),
    ("constraints", {"guards_code": ["a"], "range_constraints": {"s0": {"min_val": 2, "max_val": None}}}),
    ("payloads", {"shared": [], "tensors": {}}),
    (
        "tensor",
        {"kind": "meta", "dtype": "float32", "sizes": [2], "strides": [1], "requires_grad": False, "is_param": True},
    ),
    ("program", {"graph": {"$bytes": "00" * 32}}),
]


def _loop(count: int, base: int = 0) -> list[tuple[int, int]]:
    return [(base + n, base + (n + 1) % count) for n in range(count)]


def _net(count: int, pairs: list[tuple[int, int]]) -> schema.ExportedProgram:
    """Nodes that use nothing, and for each pair a node that uses two of them; nothing leads to an output."""
    nodes = [node(A, [f"r{n}"]) for n in range(count)]
    nodes += [node(B, [], arg(as_tensor=f"r{a}"), arg(as_tensor=f"r{b}")) for a, b in pairs]
    return program(tensor_graph([], nodes, []))


def programs() -> dict[str, list[schema.ExportedProgram]]:
    """Group -> one program, written down in several ways; no two groups have one graph digest."""
    rand = [node(A, ["r"]), node(A, ["s"])]
    late = node(B, ["t"], arg(as_tensor="r"), arg(as_tensor="s"))
    write = node("torch.ops.aten.add_.Tensor", ["w"], arg(as_tensor="x"))
    read = node(A, ["y"], arg(as_tensor="x"))
    keyed = {"b": arg(as_tensor="x"), "a": arg(as_tensors=["y", "x"]), "c": schema.Argument(as_int=1)}
    body = tensor_graph(["b"], [node(A, ["c"], arg(as_tensor="b")), node(B, ["d"], arg(as_tensor="c"))], ["d"])
    symbolic = tensor_graph(["x"], [node(A, ["y"], schema.Argument(as_float=0.5))], ["y"])
    found = {
        "nothing": program(tensor_graph([], [], [])),
        "told apart by outputs": program(tensor_graph([], [*rand, late], ["t", "s"])),
        "told apart by outputs, the other one": program(tensor_graph([], [*rand, late], ["t", "r"])),
        "a fence": _net(5, [(n, n + 1) for n in range(4)]),
        "two triangles": _net(6, _loop(3) + _loop(3, 3)),
        "a hexagon": _net(6, _loop(6)),
        "a triangle and a square": _net(7, _loop(3) + _loop(4, 3)),
        "a prism": _net(6, [*_loop(3), *_loop(3, 3), (0, 3), (1, 4), (2, 5)]),
        "a write before a read": program(tensor_graph(["x"], [write, read], ["y"])),
        "a read before a write": program(tensor_graph(["x"], [read, write], ["y"])),
        "a dict of arguments": program(
            tensor_graph(["x", "y"], [node(A, ["z"], schema.Argument(as_string_to_argument=keyed))], ["z"])
        ),
        "an empty list": program(tensor_graph(["x"], [node(A, ["y"], arg(as_tensors=[]))], ["y"])),
        "a subgraph": program(tensor_graph(["x"], [node(A, ["y"], arg(as_tensor="x"), subgraph(body))], ["y"])),
        "a float": program(symbolic),
        "constraints": replace(
            program(symbolic), guards_code=["b", "a"], range_constraints={"s0": schema.RangeConstraint(2, None)}
        ),
    }
    writing = {"a write before a read", "a read before a write"}
    return {
        name: [one] if name in writing else [one, rewritten(one, 1), rewritten(one, 2)] for name, one in found.items()
    }


def vectors() -> dict[str, Any]:
    """All vectors, as they are in the file."""
    listed = [(group, one) for group, ways in programs().items() for one in ways]
    files = [path for release in ("2.13.0",) for path in corpus(release)]
    files += [
        path for release in CURRENT_LAYOUT for path in corpus(release) if path.stem == "mlp" and path not in files
    ]
    return {
        "format": "pt2kit digest 3",
        "note": NOTE,
        "encodings": [{"value": value, "bytes": encode(untagged(value)).hex()} for value in VALUES],
        "hashes": [
            {"kind": kind, "value": value, "sha256": _hashed(kind, untagged(value)).hex()} for kind, value in HASHES
        ],
        "programs": [
            {"group": group, "program": codec.to_tree(one), "digests": digest_program(one)} for group, one in listed
        ],
        "files": {release_id(path): _of_file(path) for path in files},
    }


def _hashed(kind: str, value: Any) -> bytes:
    return of_bytes(value) if kind == "bytes" else H(kind, value)


def _of_file(path: Path) -> dict[str, Any]:
    found = records(path)
    models = sorted(name[len("models/") : -len(".json")] for name in found if name.startswith("models/"))
    return {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "models": {name: digests(found, name) for name in models},
    }


def text() -> str:
    """The file: a vector a line."""
    found = vectors()
    lines = []
    for key, value in found.items():
        if isinstance(value, str):
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
            continue
        rows = value.items() if isinstance(value, dict) else value
        shown = [f"{json.dumps(row[0])}: {_line(row[1])}" if isinstance(value, dict) else _line(row) for row in rows]
        opened, closed = "{}" if isinstance(value, dict) else "[]"
        lines.append(f"{json.dumps(key)}: {opened}\n " + ",\n ".join(shown) + f"\n{closed}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
