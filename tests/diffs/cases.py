"""Pairs of files that together differ in every way."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.digests.packing import packed, records, with_json
from tests.samples import sample

RELEASE = "2.13.0"
Pair = tuple[bytes, bytes]


def data(name: str) -> bytes:
    """A sample file."""
    return sample(RELEASE, name).read_bytes()


def with_program(name: str, **fields: Any) -> Pair:
    """A sample file, and the same with other fields of its program."""
    found = records(sample(RELEASE, name))
    return packed(found), packed(with_json(found, "models/model.json", lambda tree: {**tree, **fields}))


def with_other_bytes(name: str, kind: str) -> Pair:
    """A sample file, and the same with the first numbers of its weights or constants set to zero."""
    found = records(sample(RELEASE, name))
    changed = {
        record: bytes(4) + held[4:] if re.search(rf"{kind}/(weight|tensor)_\d+$", record) else held
        for record, held in found.items()
    }
    return packed(found), packed(changed)


def with_other_model_name() -> Pair:
    """A sample file, and the same with its model called `other`."""
    found = records(sample(RELEASE, "mlp"))
    renamed = {re.sub(r"(?<=/)model(?=[._])", "other", record): held for record, held in found.items()}
    return packed(found), packed(renamed)


def hostile_text() -> str:
    """A text that would take over a terminal, a page or a line, if it were printed as it is."""
    return "\x1b[2J<script>alert(1)</script>\"'&\n\r\u202e\u2028%"


def hostile() -> Pair:
    """A sample file, and the same with hostile names everywhere."""
    found = records(sample(RELEASE, "mlp"))
    text = hostile_text()

    def change(tree: Any) -> Any:
        module = tree["graph_module"]
        first, second, third = module["graph"]["nodes"]
        first["target"] = f"torch.ops.{text}"
        first["name"] = text
        second["metadata"] = {text: text, "nn_module_stack": f"{text},{text},{text}", "stack_trace": text}
        third["inputs"].append({"name": text, "arg": {"as_string": text}, "kind": 2})
        module["metadata"] = {text: text}
        module["module_call_graph"].append({"fqn": text, "signature": None})
        module["treespec_namedtuple_fields"] = {text: {"field_names": [text]}}
        module["signature"]["input_specs"][0]["parameter"]["parameter_name"] = text
        guards = [*tree["guards_code"], text]
        ranges = {**tree["range_constraints"], text: {"min_val": 1, "max_val": 2}}
        return {**tree, "guards_code": guards, "range_constraints": ranges, "verifiers": [text], "torch_version": text}

    def rename(config: Any) -> Any:
        rows = {f"{name}{text}": row for name, row in config["config"].items()}
        return {"config": rows, text: text}

    changed = with_json(found, "models/model.json", change)
    changed = with_json(changed, "model_weights_config.json", rename)
    return packed(found), packed({**changed, "extra/" + json.dumps(text)[1:-1].replace("\\", "_"): b"x"})


def pairs() -> dict[str, Pair]:
    """Name of a case -> two files."""
    return {
        "other program": (data("mlp"), data("convnet")),
        "lifted constants": (data("mlp"), data("constants")),
        "no constants": (data("constants"), data("mlp")),
        "dynamic sizes": (data("mlp"), data("dynamic_two_dims")),
        "static sizes": (data("dynamic_two_dims"), data("mlp")),
        "one dynamic size": (data("dynamic_two_dims"), data("dynamic_batch")),
        "subgraphs": (data("cond"), data("while_loop_hop")),
        "more files": (data("mlp"), data("extra_files")),
        "fewer files": (data("extra_files"), data("mlp")),
        "more models": (data("mlp"), data("multi_model_package")),
        "fewer models": (data("multi_model_package"), data("mlp")),
        "renamed model": with_other_model_name(),
        "weights": with_other_bytes("mlp", "weights"),
        "constants": with_other_bytes("constants", "constants"),
        "versions": with_program("mlp", opset_version={"aten": 11}, torch_version="9.9"),
        "hostile": hostile(),
    }
