"""Constants inside the graphs of schema 1 (base64 of torch.save), lifted to inputs with bytes outside of the program.

A constant of a subgraph becomes an input of it, and an operand of the call that holds it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.jsontext import Path
from pt2kit.messages import count_text
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.tensor_reducers import needed_bytes
from pt2kit.pickles.values import (
    QUANTIZED,
    TYPED_STORAGES,
    MetaTensor,
    PickledTensor,
    SparseTensor,
    TensorKind,
)
from pt2kit.schema import ScalarType
from pt2kit.schema.names import free_name
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.fx_names import renamed
from pt2kit.versions.line.hops import is_higher_order
from pt2kit.versions.rewrite import values_of
from pt2kit.zip.reader import Storage

Graph = dict[str, Any]

TORCH_NAMES: Final[Mapping[int, str]] = {
    **{ScalarType[name.upper()]: dtype for name, dtype in TYPED_STORAGES.items() if dtype not in QUANTIZED},
    ScalarType.COMPLEXHALF: "complex32",
    ScalarType.UINT16: "uint16",
    ScalarType.FLOAT8E4M3FN: "float8_e4m3fn",
    ScalarType.FLOAT8E5M2: "float8_e5m2",
}
"""Element types that schemas up to 8.6 have: number in the schema -> torch's name. Most are called as the classes of
their storages."""

_NUMBERS: Final = {name: int(number) for number, name in TORCH_NAMES.items() if number <= ScalarType.BFLOAT16}
"""Those of schema 1: torch's name -> number."""
_STRIDED: Final = 7


def decode_bytes(text: str, place: str) -> bytes:
    """Return the bytes of a base64 text.

    Raises:
        PayloadError: it is none.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PayloadError(f"{place}: expected base64, got {text[:40]!r} ({error})") from None


def described(
    storage: Storage, dtype: str, device: str, meta: Mapping[str, Any], kind: TensorKind, place: str
) -> PickledTensor:
    """Return the tensor over a storage that a `TensorMeta` of any version describes.

    Args:
        storage: its bytes.
        dtype, device: as in `PickledTensor`.
        meta: its sizes, strides, offset and gradient flag.
        kind: what it is for its module.
        place: where it is, for messages.

    Raises:
        PayloadError: symbolic or negative numbers, or a tensor that the storage is too small for.
    """
    sizes, strides, (offset,) = (
        tuple(_concrete(number, place) for number in numbers)
        for numbers in (meta["sizes"], meta["strides"], [meta["storage_offset"]])
    )
    if len(sizes) != len(strides):
        raise PayloadError(f"{place}: expected as many strides as sizes, got {len(strides)} and {len(sizes)}")
    if (needed := needed_bytes(sizes, strides, offset, dtype)) > storage.nbytes:
        needs = f"at least {count_text(needed, 'byte')} for {dtype} {list(sizes)}"
        raise PayloadError(f"{place}: expected {needs}, got {storage.nbytes}")
    return PickledTensor(storage, dtype, sizes, strides, offset, device, requires_grad=meta["requires_grad"], kind=kind)


def _concrete(size: Mapping[str, Any], place: str) -> int:
    number = size.get("as_int")
    if not isinstance(number, int) or number < 0:
        got = repr(next(iter(size.values()), None))[:80]
        raise PayloadError(f"{place}: expected concrete sizes, strides and offset, 0 or more, got {got}")
    return number


def lift(program: Tree, log: ConversionLog) -> tuple[Tree, dict[str, dict[str, Any]]]:
    """Move the constants out of all graphs of a schema 1 program, and their bytes into the log.

    Args:
        program: fits the table of schema 1; not changed.
        log: gets the bytes of each constant by name.

    Returns:
        The program with every constant as an input of its graph, and the `TensorMeta` of those of the root graph, by
        name, in the order in which they were put before the user's inputs.

    Raises:
        PayloadError: bytes that are no base64 or no torch.save payload.
        UnsupportedError: a constant that is not a dense tensor, or one inside a subgraph of an operator whose
            operands are not known.
    """
    root = program["graph_module"]["graph"]
    taken = {name for graph, _ in values_of(program, "1", "Graph") for name in graph["tensor_values"]}
    taken.update(root["constants"])
    graph, lifted = _lift_graph(root, ("graph_module", "graph"), log, taken, is_root=True)
    return {**program, "graph_module": {**program["graph_module"], "graph": graph}}, lifted


def with_lifted(module: Tree, inputs: list[Tree], specs: list[Tree]) -> Tree:
    """Return a graph module of schema 2 or later with more inputs, and specs for them, before those of the user."""
    graph, signature = module["graph"], module["signature"]
    own = signature["input_specs"]
    first = next((i for i, spec in enumerate(own) if "user_input" in spec), len(own))
    return {
        **module,
        "graph": {**graph, "inputs": [*graph["inputs"][:first], *inputs, *graph["inputs"][first:]]},
        "signature": {**signature, "input_specs": [*own[:first], *specs, *own[first:]]},
    }


def _lift_graph(
    graph: Graph, path: Path, log: ConversionLog, taken: set[str], *, is_root: bool = False
) -> tuple[Graph, dict[str, dict[str, Any]]]:
    """Return the graph without constants, and the metas of the values that it now uses without defining them.

    Names of constants are unique in their graph only, so those of subgraphs get new ones where they must.
    """
    lifted: dict[str, dict[str, Any]] = {}
    rename: dict[str, str] = {}
    for name, text in graph["constants"].items():
        place = log.place((*path, "constants", name))
        unique = free_name(name, taken.__contains__) if name in taken and not is_root else name
        taken.add(unique)
        rename[name] = unique
        data = decode_bytes(text, place)
        lifted[unique] = _meta(data, place)
        log.constants[unique] = data
    nodes = []
    for index, node in enumerate(graph["nodes"]):
        if rename:
            named = [{**entry, "arg": renamed(entry["arg"], rename)} for entry in node["inputs"]]
            node = {**node, "inputs": named}
        new, inner = _lift_node(node, (*path, "nodes", index), log, taken)
        nodes.append(new)
        lifted |= inner
    outputs = renamed(graph["outputs"], rename) if rename else graph["outputs"]
    return {**graph, "nodes": nodes, "outputs": outputs, "constants": {}}, lifted


def _lift_node(
    node: dict[str, Any], path: Path, log: ConversionLog, taken: set[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return a call whose subgraphs have no constants left; they are passed as its last operands."""
    bodies: list[tuple[int, Graph, dict[str, dict[str, Any]]]] = []
    for index, named in enumerate(node["inputs"]):
        if "as_graph" in named["arg"]:
            inner = named["arg"]["as_graph"]["graph"]
            bodies.append(
                (index, *_lift_graph(inner, (*path, "inputs", index, "arg", "as_graph", "graph"), log, taken))
            )
    lifted = {name: meta for _, _, metas in bodies for name, meta in metas.items()}
    if not lifted:
        return node, {}
    inputs = list(node["inputs"])
    for index, graph, _ in bodies:
        argument = inputs[index]["arg"]["as_graph"]
        new_argument = {**argument, "graph": _with_inputs(graph, lifted)}
        inputs[index] = {**inputs[index], "arg": {"as_graph": new_argument}}
    return {**node, "inputs": _with_operands(node["target"], inputs, list(lifted), path, log)}, lifted


def _with_inputs(graph: Graph, metas: Mapping[str, dict[str, Any]]) -> Graph:
    inputs = [*graph["inputs"], *({"as_tensor": {"name": name}} for name in metas)]
    values = {**graph["tensor_values"], **{name: {"meta": meta} for name, meta in metas.items()}}
    return {**graph, "inputs": inputs, "tensor_values": values}


def _with_operands(
    target: str, inputs: list[dict[str, Any]], names: list[str], path: Path, log: ConversionLog
) -> list[dict[str, Any]]:
    tensors = [{"name": name} for name in names]
    if is_higher_order(target) and target.endswith("cond") and len(inputs) == 4:
        ((_, operands),) = inputs[3]["arg"].items()
        if operands == [] or "as_tensors" in inputs[3]["arg"]:
            return [*inputs[:3], {**inputs[3], "arg": {"as_tensors": [*operands, *tensors]}}]
    if is_higher_order(target) and target.endswith("map_impl"):
        return [*inputs, *({"name": "", "arg": {"as_tensor": tensor}} for tensor in tensors)]
    raise UnsupportedError(
        f"{log.place((*path, 'inputs'))}: expected constants in subgraphs of cond or map_impl only, got "
        f"{', '.join(names)} in one of {target}"
    )


def _meta(data: bytes, place: str) -> dict[str, Any]:
    """Return the `TensorMeta` (of schema 1) of a torch.save payload that holds one tensor."""
    tensor = read_payload(data, place)
    if not isinstance(tensor, PickledTensor) or tensor.dtype_name not in _NUMBERS:
        kind = type(tensor).__name__
        if isinstance(tensor, PickledTensor | SparseTensor | MetaTensor):
            raise UnsupportedError(f"{place}: expected a dense tensor of a type that schema 1 has, got {kind}")
        raise PayloadError(f"{place}: expected one tensor, got {kind}")
    kind, _, index = tensor.device.partition(":")
    return {
        "dtype": _NUMBERS[tensor.dtype_name],
        "sizes": [{"as_int": size} for size in tensor.sizes],
        "requires_grad": tensor.requires_grad,
        "device": {"type": kind, "index": int(index) if index.isdecimal() else None},
        "strides": [{"as_int": stride} for stride in tensor.strides],
        "storage_offset": tensor.storage_offset,
        "layout": _STRIDED,
    }
