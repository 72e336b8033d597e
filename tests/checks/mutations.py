"""For each rule that a file can break: a sample file, changed so that it breaks this rule and no other."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import samples
from tests.packages import edited, rewritten
from tests.pickles import pickle_forge
from tests.zip.zip_forge import Entry, forge, simple

from pt2kit.package import record_names as names
from pt2kit.zip.reader import open_archive

MLP = samples.sample("2.13.0", "mlp")
CONSTANTS_FILE = samples.sample("2.13.0", "constants")
DYNAMIC = samples.sample("2.13.0", "dynamic_batch")
COND = samples.sample("2.13.0", "cond")
SCAN = samples.sample("2.13.0", "associative_scan_hop")
JOINT = samples.sample("2.13.0", "training_loss_joint")
MANY = samples.sample("2.13.0", "many_params")
BUFFERS = samples.sample("2.13.0", "buffer_mutation__decomp")
SHARED = samples.sample("2.13.0", "shared_weights")
TOKENS = samples.sample("2.13.0", "print_effect__decomp")
KEPT = samples.sample("2.13.0", "preserve_module_sig")
OPERATORS = samples.sample("2.13.0", "sym_ops")
PLAIN = samples.sample("2.5.1", "mlp")

WEIGHTS = names.weights_config("model")
CONFIG = names.constants_config("model")
SYMBOL = "Symbol('s77', positive=True, integer=True)"


@dataclass(frozen=True)
class Mutation:
    """A changed file, the one it was made from, and how it has to be read."""

    base: Path | None
    data: bytes
    payloads: bool = False


def graph(tree: Any) -> Any:
    """The root graph of a program's tree."""
    return tree["graph_module"]["graph"]


def root_call(tree: Any) -> Any:
    """How a program is called."""
    return tree["graph_module"]["module_call_graph"][0]["signature"]


def program(path: Path, change: Callable[[Any], object]) -> Mutation:
    """A file whose program was changed."""
    return Mutation(path, edited(path, change))


def nodes(path: Path, change: Callable[[list[Any]], None]) -> Mutation:
    """A file whose nodes were changed."""
    return program(path, lambda tree: change(graph(tree)["nodes"]))


def weights(path: Path, change: Callable[[Any], None], *, record: str = WEIGHTS, payloads: bool = False) -> Mutation:
    """A file whose list of weights was changed."""
    return Mutation(path, edited(path, lambda tree: change(tree["config"]), record), payloads)


def records(path: Path, changed: Mapping[str, bytes | None], *, payloads: bool = False) -> Mutation:
    """A file with other records."""
    return Mutation(path, rewritten(path, changed), payloads)


def forged(**end: Any) -> Mutation:
    """An archive whose directory says something wrong."""
    return Mutation(None, forge(*entries(), **end))


def entry(**changes: Any) -> Mutation:
    """An archive of two records, one of which says something wrong."""
    return Mutation(None, simple(**changes))


def entries() -> list[Entry]:
    """The records of a file, to be forged again."""
    with open_archive(MLP) as archive:
        return [Entry(name.encode(), bytes(archive.read(name))) for name in archive.records]


def edited_bytes(data: bytes, record: str, change: Callable[[Any], None]) -> bytes:
    """A file, given as bytes, whose list of payloads was changed."""
    return edited(data, lambda tree: change(tree["config"]), record)


def new_value(tree: Any, name: str, like: str) -> str:
    """Describe a new tensor as another one is described."""
    graph(tree)["tensor_values"][name] = copy.deepcopy(graph(tree)["tensor_values"][like])
    return name


def call(target: str, result: str, **arguments: Any) -> dict[str, Any]:
    """A node."""
    return {
        "target": target,
        "inputs": [{"name": name, "arg": value, "kind": 1} for name, value in arguments.items()],
        "outputs": [{"as_tensor": {"name": result}}],
        "metadata": {},
        "is_hop_single_tensor_return": None,
        "name": result,
    }


def tensor(name: str) -> dict[str, Any]:
    """An argument that is a tensor."""
    return {"as_tensor": {"name": name}}


def added(path: Path, target: str, **arguments: Any) -> Mutation:
    """A file with one more call at its end, whose result nobody uses; it is described as the call's first tensor."""

    def change(tree: Any) -> None:
        held = [argument["as_tensor"]["name"] for argument in arguments.values() if "as_tensor" in argument]
        result = new_value(tree, "extra", (held or [graph(tree)["inputs"][-1]["as_tensor"]["name"]])[0])
        graph(tree)["nodes"].append(call(target, result, **arguments))

    return program(path, change)


def rename(tree: Any, old: str, new: str) -> None:
    """Call a value otherwise, everywhere."""
    text = json.dumps(tree["graph_module"]).replace(json.dumps(old), json.dumps(new))
    tree["graph_module"] = json.loads(text)


def sizes_of(tree: Any, name: str, *sizes: Any) -> None:
    """Declare other sizes of a value, with the row-major strides that fit if only the first size is symbolic."""
    meta = graph(tree)["tensor_values"][name]
    meta["sizes"] = [{"as_int": size} if isinstance(size, int) else size for size in sizes]
    numbers = [size if isinstance(size, int) else 1 for size in sizes]
    meta["strides"] = [{"as_int": math.prod(numbers[place + 1 :])} for place in range(len(sizes))]


def expression(text: str, hint: int | None = None) -> dict[str, Any]:
    """A symbolic size."""
    return {"as_expr": {"expr_str": text, "hint": None if hint is None else {"as_int": hint}}}


def with_input_size(text: str, hint: int | None = None) -> Mutation:
    """A file in which one size of its result is another expression."""
    return program(DYNAMIC, lambda tree: sizes_of(tree, "linear_1", expression(text, hint), 4))


def spec(tree: Any, side: str, number: int) -> Any:
    """One spec of the signature: what its one key holds."""
    return next(iter(tree["graph_module"]["signature"][f"{side}_specs"][number].values()))


def tree_spec(change: Callable[[Any], Any], side: str = "in_spec") -> Mutation:
    """A file with another tree spec."""

    def apply(tree: Any) -> None:
        signature = root_call(tree)
        signature[side] = json.dumps(change(json.loads(signature[side])))

    return program(MLP, apply)


def nested(depth: int) -> dict[str, Any]:
    """Dicts of arguments inside one another."""
    found: dict[str, Any] = {"as_int": 1}
    for _ in range(depth):
        found = {"as_string_to_argument": {"k": found}}
    return found


def pickled(name: str) -> bytes:
    """A pickle that calls something."""
    return pickle_forge.payload(pickle_forge.stream(((pickle_forge.Call(name, ()),), {})))


def meta(dtype: int = 7, sizes: tuple[int, ...] = (2,), **more: Any) -> dict[str, Any]:
    """The description of a stored tensor."""
    strides = [{"as_int": 1} for _ in sizes]
    return {
        "dtype": dtype,
        "sizes": [{"as_int": size} for size in sizes],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": strides,
        "storage_offset": {"as_int": 0},
        "layout": 7,
        **more,
    }


def stored(path_name: str, described: dict[str, Any] | None, *, use_pickle: bool = False) -> dict[str, Any]:
    """An entry of a payload config."""
    return {"path_name": path_name, "is_param": False, "use_pickle": use_pickle, "tensor_meta": described}


def extra(described: dict[str, Any] | None, data: bytes | None = bytes(8), path_name: str = "tensor_0") -> Mutation:
    """A file with one more constant, which no input takes (that alone is a note)."""
    config = json.dumps({"config": {"extra": stored(path_name, described)}}).encode()
    changed = {CONFIG: config} if data is None else {CONFIG: config, names.CONSTANTS + "tensor_0": data}
    return records(MLP, changed)
