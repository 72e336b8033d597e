"""pt2kit as a reader of the conformance suite: `python -m conformance.pt2kit_reader FILE` prints what a file holds.

`describe` makes the expected `.json` files as well; what keeps it honest is that an independent reader, made from the
specification alone, has to print the same.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pt2kit
from pt2kit import graph, schema, signature, symbols, treespec
from pt2kit.checks.findings import problem_of
from pt2kit.errors import Pt2Error
from pt2kit.package.open import Package
from pt2kit.pickles.values import NamedTuple
from pt2kit.tensors import DTYPES, OpaquePayload, SparseView, TensorView

SYMBOL_VALUE = 5
"""What every symbol stands for in `values_at_5`."""
DIGESTS = ("program", "graph", "signature", "constraints", "weights", "constants", "metadata")


def describe(package: Package) -> dict[str, Any]:
    """What a package holds, in the words of `conformance/README.md`.

    Raises:
        Pt2Error: the first thing that cannot be read.
    """
    for record in package.records:
        package.archive.read(record)
    return {
        "layout": package.layout.kind,
        "models": {model: _model(package, model) for model in package.programs},
        "extra_files": {name: _sha256(content) for name, content in package.extra_files.items()},
    }


def _model(package: Package, model: str) -> dict[str, Any]:
    program = package.programs[model]
    module = program.graph_module
    signature.from_schema(module)
    fields = {name: row.field_names for name, row in module.treespec_namedtuple_fields.items()}
    root = next(entry.signature for entry in module.module_call_graph if entry.fqn == "" and entry.signature)
    weights, constants = package.weights(model), package.constants(model)
    digest = pt2kit.digest(package, model)
    return {
        "schema_version": package.stored[model].version,
        "torch_version": program.torch_version,
        "unknown_keys": sorted(package.unknown(model)),
        "graph": _graph(program),
        "values_at_5": _values(module.graph),
        "signature": {
            "inputs": [_input(spec) for spec in module.signature.input_specs],
            "outputs": [_output(spec) for spec in module.signature.output_specs],
        },
        "call": {
            "arguments": list(treespec.key_paths(treespec.parse(root.in_spec), fields=fields)),
            "results": list(treespec.key_paths(treespec.parse(root.out_spec), fields=fields)),
            "names": root.forward_arg_names,
        },
        "modules": [entry.fqn for entry in module.module_call_graph],
        "range_constraints": {name: [row.min_val, row.max_val] for name, row in program.range_constraints.items()},
        "guards": sum(map(_is_guard, program.guards_code)),
        "weights": {name: _payload(payload) for name, payload in weights.items()},
        "constants": {name: _payload(payload) for name, payload in constants.items()},
        "shared": _shared(weights),
        "sample_inputs": _sample_inputs(package, model),
        "digests": {key: getattr(digest, key) for key in DIGESTS},
    }


def _graph(program: schema.ExportedProgram) -> dict[str, Any]:
    root = program.graph_module.graph
    found = [scope for scope, _ in graph.indexes(program)]
    index = graph.index(root)
    return {
        "inputs": [_named(argument) for argument in root.inputs],
        "outputs": [_named(argument) for argument in root.outputs],
        "nodes": len(root.nodes),
        "subgraphs": len(found) - 1,
        "operators": dict(sorted(Counter(node.target for scope in found for node in scope.graph.nodes).items())),
        "values": dict(sorted(Counter(row.kind for row in index.definitions.values()).items())),
    }


def _named(argument: schema.Argument) -> Any:
    names = list(graph.arguments(argument))
    return names[0] if names else {argument.type: _plain(argument.value)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(float(value))
    return [repr(float(value.real)), repr(float(value.imag))] if isinstance(value, schema.ComplexValue) else value


def _values(root: schema.Graph) -> dict[str, Any]:
    found = {}
    for name, meta in root.tensor_values.items():
        if any(isinstance(size.value, schema.SymExpr) for size in meta.sizes):
            found[name] = [_size(size) for size in meta.sizes]
    return found


def _size(size: schema.SymInt) -> int | None:
    if isinstance(size.value, int):
        return size.value
    expr = symbols.parse_size(size.value.expr_str)
    try:
        value = symbols.evaluate(expr, {symbol.name: SYMBOL_VALUE for symbol in symbols.free_symbols(expr)})
    except Pt2Error:
        return None
    return int(value)


def _is_guard(text: str) -> bool:
    try:
        symbols.parse_guard(text)
    except Pt2Error:
        return False
    return True


def _input(spec: schema.InputSpec) -> list[Any]:
    match spec.value:
        case schema.UserInputSpec(arg):
            return ["user_input", _named(arg), None]
        case schema.InputToConstantInputSpec(_, value):
            return ["constant_input", {value.type: _plain(value.value)}, None]
        case schema.InputToBufferSpec(arg, target, persistent):
            return ["buffer", arg.name, target, persistent]
        case schema.InputTokenSpec(arg):
            return ["token", arg.name, None]
    held = spec.value
    keys = {"parameter": "parameter_name", "tensor_constant": "tensor_constant_name", "custom_obj": "custom_obj_name"}
    return [spec.type, held.arg.name, getattr(held, keys[spec.type])]


def _output(spec: schema.OutputSpec) -> list[Any]:
    held = spec.value
    keys = ("parameter_name", "buffer_name", "user_input_name")
    target = next((getattr(held, key) for key in keys if hasattr(held, key)), None)
    name = _named(held.arg) if isinstance(held, schema.UserOutputSpec) else held.arg.name
    return [spec.type, name, target]


def _payload(payload: Any) -> dict[str, Any]:
    """Kind, type, sizes and the SHA-256 of the contiguous bytes, of a sparse tensor those of the dense one."""
    if isinstance(payload, OpaquePayload):
        if payload.kind != "pickle":
            return {"kind": payload.kind}
        payload = payload.view()
    kind = "tensor"
    if isinstance(payload, SparseView):
        kind, payload = "sparse", payload.dense()
    if not isinstance(payload, TensorView):
        return {"kind": type(payload).__name__.removesuffix("View").lower()}
    payload.numpy()
    return {
        "kind": kind,
        "dtype": DTYPES[payload.dtype].name,
        "sizes": list(payload.sizes),
        "requires_grad": payload.requires_grad,
        "sha256": _sha256(payload.contiguous_bytes()),
    }


def _shared(payloads: Mapping[str, Any]) -> list[list[str]]:
    """The names of dense tensors that have one storage of at least one byte, group by group."""
    groups: dict[int, list[str]] = {}
    for name, payload in payloads.items():
        if isinstance(payload, TensorView) and payload.storage.nbytes:
            groups.setdefault(id(payload.storage), []).append(name)
    return sorted(sorted(names) for names in groups.values() if len(names) > 1)


def _sample_inputs(package: Package, model: str) -> Any:
    try:
        samples = package.sample_inputs(model)
    except Pt2Error:
        return "refused"
    return None if samples is None else [_leaf(leaf) for leaf in _leaves(samples)]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, treespec.Node):
        value = value.children
    if isinstance(value, NamedTuple):
        value = value.values
    if isinstance(value, Mapping):
        return [leaf for child in value.values() for leaf in _leaves(child)]
    if isinstance(value, tuple | list):
        return [leaf for child in value for leaf in _leaves(child)]
    return [value]


def _leaf(leaf: Any) -> Any:
    if isinstance(leaf, TensorView):
        return {**_payload(leaf), "requires_grad": leaf.requires_grad}
    return {type(leaf).__name__: repr(leaf) if isinstance(leaf, float) else leaf}


def _sha256(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()


def read(path: Path) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON that a reader prints for a file."""
    problems = pt2kit.check(path, payloads=True)
    errors = [problem for problem in problems if problem.kind == "error"]
    if errors:
        return 1, {"error": str(errors[0]), "rule": errors[0].rule, "rules": sorted({row.rule for row in errors})}
    try:
        with pt2kit.open(path) as package:
            described = describe(package)
    except Pt2Error as error:
        return 1, {"error": str(error), "rule": problem_of(error, "").rule}
    return 0, {**described, "problems": sorted({problem.rule for problem in problems})}


def main() -> int:
    """Read the file that the command line names."""
    code, printed = read(Path(sys.argv[1]))
    print(json.dumps(printed, allow_nan=False))
    return code


if __name__ == "__main__":
    sys.exit(main())
