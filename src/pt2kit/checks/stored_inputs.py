"""Inputs of a program that its file provides: constants, buffers, parameters as arrays; sample inputs (rule K9).

`check` and `load` look at the numbers that a file passes directly to kernels which trust them (`unchecked.py`). Rule K9
compares stored sample inputs with the inputs that a graph declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pt2kit import schema, treespec
from pt2kit.checks.findings import ProgramContext
from pt2kit.errors import Problem, Pt2Error, attempt
from pt2kit.graph.argument_values import arguments
from pt2kit.messages import quote
from pt2kit.package.open import Package
from pt2kit.package.samples import in_spec
from pt2kit.package.stored import Payload
from pt2kit.schema.names import target_of
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.view import TensorView

Tables = Callable[[], tuple[Mapping[str, Payload] | None, Mapping[str, Payload] | None]]
"""Returns the weights and the constants of a program; None for those that cannot be read."""

MAX_ELEMENTS: Final = 1 << 24
"""Elements of one tensor whose numbers are looked at."""


def tables_of(package: Package, model: str, is_whole: bool = True) -> Tables:
    """Return what reads the payloads of one program of a package, without its weights if others replace them."""

    def tables() -> tuple[Mapping[str, Payload] | None, Mapping[str, Payload] | None]:
        return attempt(package.weights, model) if is_whole else {}, attempt(package.constants, model)

    return tables


def stored_inputs(module: schema.GraphModule, tables: Tables) -> dict[str, Payload | None]:
    """Return what the file stores for the inputs of a program, by their names; None for what cannot be read.

    Args:
        module: the program.
        tables: reads its payloads; what is in neither table comes from the caller of `load`.
    """
    weights, constants = tables()
    payloads: dict[str, Payload | None] = {}
    for spec in module.signature.input_specs:
        name = target_of(spec)
        if name is None:
            continue
        candidates = [table[name] for table in (weights, constants) if table is not None and name in table]
        if candidates or None in (weights, constants):
            payload = candidates[0] if len(candidates) == 1 else None
            if not isinstance(payload, MetaView):  # The caller provides the values on loading.
                payloads[spec.value.arg.name] = payload
    return payloads


def unchanged_inputs(module: schema.GraphModule, tables: Tables) -> dict[str, Payload | None]:
    """Return those of the `stored_inputs` that a run of the program leaves as they are."""
    mutated = {name for _, names in mutated_inputs(module.signature) for name in names}
    return {name: payload for name, payload in stored_inputs(module, tables).items() if name not in mutated}


def mutated_inputs(signature: schema.GraphSignature) -> Iterator[tuple[int, list[str]]]:
    """Yield the outputs whose values inputs get after a run: the position of each, and the inputs, several of which may
    share a target.
    """
    owners: dict[str, list[str]] = {}
    for spec in signature.input_specs:
        if (target := target_of(spec)) is not None:
            owners.setdefault(target, []).append(spec.value.arg.name)
    for position, output in enumerate(signature.output_specs):
        if output.type.endswith("_mutation"):
            target = target_of(output) or ""
            yield position, [target] if output.type == "user_input_mutation" else owners.get(target, [])


def passed_inputs(module: schema.GraphModule) -> list[schema.Argument]:
    """Return the inputs of a program that its caller passes, in order; none if their number is wrong (S1)."""
    inputs, specs = module.graph.inputs, module.signature.input_specs
    pairs = zip(inputs, specs, strict=True) if len(inputs) == len(specs) else ()
    return [argument for argument, spec in pairs if spec.type in ("user_input", "constant_input")]


def numbers_of(payload: Payload | None) -> Any:
    """Return the numbers of a payload as an array; None if they are too many, or cannot be read.

    Cost: reads them.
    """
    if not isinstance(payload, TensorView) or payload.numel > MAX_ELEMENTS:
        return None
    return attempt(payload.numpy)


def sample_problems(package: Package, model: str, context: ProgramContext) -> Iterator[Problem]:
    """Yield sample inputs whose sizes are not those that the program declares for its inputs.

    Samples that cannot be read as data, or that the tree spec does not describe, are skipped.

    Raises:
        LimitError: dicts of arguments nest too deep (G11).
    """
    try:
        if (samples := package.sample_inputs(model)) is None:
            return
        spec, fields = in_spec(context.program, context.record)
        values = treespec.flatten(samples, spec, fields=fields)
    except Pt2Error:
        return
    inputs = passed_inputs(context.program.graph_module)
    if len(values) != len(inputs):
        return
    graph = context.program.graph_module.graph
    for argument, value in zip(inputs, values, strict=True):
        name = next(arguments(argument), "")
        meta = graph.tensor_values.get(name)
        if meta is None or not isinstance(value, TensorView):
            continue
        declared = [size.as_int if isinstance(size.as_int, int) else None for size in meta.sizes]
        fits = len(declared) == len(value.shape) and all(
            size in (None, got) for size, got in zip(declared, value.shape, strict=True)
        )
        if not fits:
            shown = ", ".join("?" if size is None else str(size)[:24] for size in declared[:12])
            message = f"expected the sizes of the sample input {quote(name)}, {list(value.shape)[:12]}, got [{shown}]"
            yield Problem(f"{context.graph_place}.tensor_values", "K9", message)
