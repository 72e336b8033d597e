"""Comparison of the NumPy runtime with torch, node by node: `pt2 diff FILE --run --against torch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Interpreter, Node

from pt2kit.bridge.load import load
from pt2kit.bridge.operators import DTYPES
from pt2kit.comparing.runs import Error, NodeError, RunComparison, copied, error_of, settle, source_line, worst
from pt2kit.errors import Pt2Error
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import node_label, operator_name
from pt2kit.node_metadata.modules import module_of
from pt2kit.operators.requirements import UNINITIALIZED, name_of
from pt2kit.operators.schemas import is_random
from pt2kit.package.open import open_package
from pt2kit.runtime.arrays import running
from pt2kit.runtime.execution import Given
from pt2kit.runtime.inputs import random_inputs
from pt2kit.runtime.session import DEFAULT_RUN_LIMITS, RunLimits, Session, output_leaves
from pt2kit.tensors.dtypes import numpy_dtype
from pt2kit.zip.listing import FileLike

_BITS = {1: torch.uint8, 2: torch.int16}
_DTYPES = {dtype: numpy_dtype(number) for number, dtype in DTYPES.items()}


class _Recorder(Interpreter):  # type: ignore[misc]
    """Runs a graph, and keeps copies of the values that nodes return."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.values: dict[str, Any] = {}

    def run_node(self, n: Node) -> Any:
        """Run a node and keep its result; operators with several results have a node for each of them, too.

        Uninitialized memory is zero, as in a session.
        """
        result = super().run_node(n)
        if name_of(str(n.target)) in UNINITIALIZED:
            result.zero_()
        if isinstance(result, torch.Tensor | bool | int | float):
            self.values[n.name] = _array(result)
        return result


def compare_with_torch(
    file: FileLike,
    leaves: Sequence[Any] | None = None,
    *,
    model: str | None = None,
    seed: int = 0,
    limits: RunLimits = DEFAULT_RUN_LIMITS,
) -> RunComparison:
    """Run a program with NumPy and with torch on the same inputs, and compare the results of all nodes.

    Args:
        file: what `pt2kit.load` accepts.
        leaves: one value per input; random ones within the declared ranges by default.
        model: the program; by default the only one, or "model".
        seed: of random inputs. Random numbers, places of equal elements and signs of vectors are those of torch.
        limits: what the call of the session may cost.

    Raises:
        Pt2Error: the program cannot be loaded or run.
    """
    with open_package(file) as package:
        chosen = package.choose(model)
        session = Session(package, model=chosen, limits=limits, seed=seed)
        graph, name = package.programs[chosen].graph_module.graph, package.name
    leaves = random_inputs(session.convention, seed) if leaves is None else session.convention.checked(leaves)
    program = load(file, model=chosen)
    recorder = _Recorder(program.graph_module)
    users = iter(leaves)
    tensors = {**program.constants, **program.state_dict}
    given = [
        _tensor(next(users)) if spec.kind is InputKind.USER_INPUT else tensors[spec.target]
        for spec in program.graph_signature.input_specs
    ]
    try:
        with torch.no_grad():
            returned = recorder.run(*given)
    except (RuntimeError, AssertionError, TypeError, IndexError, ValueError) as error:
        raise Pt2Error(f"{name}: expected torch to run the program, got {error}") from error
    specs = program.graph_signature.output_specs
    outputs = [one for one, spec in zip(returned, specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]
    nodes: list[NodeError] = []
    drawn = np.random.default_rng(seed).bit_generator.state  # It changes with each node that draws numbers.

    def observe(number: int, values: list[Any], given: Given) -> None:
        nonlocal drawn
        node = graph.nodes[number]
        names = [name for output in node.outputs for name in arguments(output)]
        pairs = [(recorder.values[a], b) for a, b in zip(names, values, strict=False) if a in recorder.values]
        if pairs:
            name = operator_name(node.target)
            if is_random(name) and (state := running().random.bit_generator.state) != drawn:
                drawn = state
                for a, b in pairs:
                    if isinstance(b, np.ndarray) and b.shape == a.shape:
                        b[...] = a
            settle(name, given, [recorder.values.get(one) for one in names], values)
            label, error = node_label(node, number), worst(error_of(a, b) for a, b in pairs)
            nodes.append(NodeError(label, label, name, module_of(node.metadata), source_line(node), error))

    results = output_leaves(session.run_leaves(copied(leaves), observe))
    errors: list[Error] = [error_of(_array(a), b) for a, b in zip(outputs, results, strict=True)]
    missing = len(graph.nodes) - len(nodes)
    return RunComparison("torch", name, tuple(nodes), tuple(errors), (missing, missing))


def _array(value: Any) -> Any:
    """Return a tensor as an array of its own memory; numbers as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    plain = value.detach().resolve_conj().resolve_neg().cpu()
    dtype = _DTYPES[plain.dtype]
    if dtype.type.__module__ != "numpy":
        return plain.view(_BITS[plain.itemsize]).numpy().copy().view(dtype)
    return plain.numpy().copy()


def _tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    dtype = next(torch_dtype for torch_dtype, one in _DTYPES.items() if one == value.dtype)
    if value.dtype.type.__module__ != "numpy":
        return torch.from_numpy(value.view(f"i{value.itemsize}").copy()).view(dtype)
    return torch.from_numpy(value.copy())
