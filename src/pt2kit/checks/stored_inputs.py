"""Inputs of a program that its file provides: constants, buffers and parameters, as arrays.

`check` and `load` look at the numbers that a file passes directly to kernels which trust them (`unchecked.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pt2kit import schema
from pt2kit.errors import Pt2Error
from pt2kit.package.open import Package
from pt2kit.package.stored import Payload
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.view import TensorView

Tables = Callable[[], tuple[Mapping[str, Payload] | None, Mapping[str, Payload] | None]]
"""Returns the weights and the constants of a program; None for those that cannot be read."""

MAX_ELEMENTS: Final = 1 << 24
"""Elements of one tensor whose numbers are looked at."""


@dataclass(frozen=True, slots=True)
class StoredInputs:
    """Inputs of a root graph that its file fills.

    Args:
        payloads: name of the input -> what the file stores for it; None where that cannot be read.
        written: names of inputs that get new values when the program has run.
    """

    payloads: Mapping[str, Payload | None]
    written: frozenset[str]


def tables_of(package: Package, model: str, is_whole: bool = True) -> Tables:
    """Return what reads the payloads of one program of a package, without its weights if others replace them."""

    def tables() -> tuple[Mapping[str, Payload] | None, Mapping[str, Payload] | None]:
        return _table(package.weights, model) if is_whole else {}, _table(package.constants, model)

    return tables


def _table(access: Callable[[str], Mapping[str, Payload]], model: str) -> Mapping[str, Payload] | None:
    try:
        return access(model)
    except Pt2Error:
        return None


def stored_inputs(module: schema.GraphModule, tables: Tables) -> StoredInputs:
    """Return which inputs of a program the file fills, and which of them it changes.

    Args:
        module: the program.
        tables: reads its payloads; what is in neither table comes from the caller of `load`.
    """
    weights, constants = tables()
    payloads: dict[str, Payload | None] = {}
    sources: dict[str, str] = {}
    for spec in module.signature.input_specs:
        taken: Any = spec.value
        name = payload_name(taken)
        if name is None:
            continue
        sources[name] = taken.arg.name
        candidates = [table[name] for table in (weights, constants) if table is not None and name in table]
        if candidates or None in (weights, constants):
            payload = candidates[0] if len(candidates) == 1 else None
            if not isinstance(payload, MetaView):  # The caller provides the values on loading.
                payloads[taken.arg.name] = payload
    return StoredInputs(payloads, frozenset(_written(module.signature, sources)))


def payload_name(spec: Any) -> str | None:
    """Return the name of the payload that an input or output is about; None for those of the user and tokens."""
    keys = ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name")
    return next((name for key in keys if (name := getattr(spec, key, None)) is not None), None)


def _written(signature: schema.GraphSignature, sources: Mapping[str, str]) -> Iterator[str]:
    """Yield the inputs that an output is written to."""
    for spec in signature.output_specs:
        value: Any = spec.value
        name = getattr(value, "user_input_name", None)
        if spec.type == "user_input_mutation" and name is not None:
            yield name
        elif spec.type in ("buffer_mutation", "parameter_mutation"):
            target = payload_name(value) or ""
            if target in sources:
                yield sources[target]


def numbers_of(payload: Payload | None) -> Any:
    """Return the numbers of a payload as an array; None if they are too many, or cannot be read.

    Cost: reads them.
    """
    if not isinstance(payload, TensorView) or payload.numel > MAX_ELEMENTS:
        return None
    try:
        return payload.numpy()
    except Pt2Error:
        return None
