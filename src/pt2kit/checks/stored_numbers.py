"""Inputs of a program that the file itself fills -> whether the numbers in them are such that kernels may trust them.

Who calls a program vouches for what they pass, not for what the file holds: constants, buffers and parameters are bytes
of whoever made it. So where a kernel takes such numbers for addresses, they are read and compared (`provenance.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pt2kit import schema
from pt2kit.errors import Pt2Error
from pt2kit.package.open import Package
from pt2kit.package.stored import Payload
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.view import TensorView

Tables = Callable[[], tuple[Mapping[str, Payload] | None, Mapping[str, Payload] | None]]
"""Gives the weights and the constants of a program; None for those that cannot be read."""

MAX_ELEMENTS: Final = 1 << 24
"""Elements of one tensor whose numbers are looked at."""
MAX_REPEATS: Final = 1 << 40
"""Repeats of all elements together."""


@dataclass(frozen=True, slots=True)
class StoredInputs:
    """Inputs of a root graph for which its caller does not vouch, or not for good.

    Args:
        payloads: name of the input -> what the file stores for it; None where that cannot be read.
        written: names of inputs that get new values when the program has run.
    """

    payloads: Mapping[str, Payload | None]
    written: frozenset[str]


def tables_of(package: Package, model: str, is_whole: bool = True) -> Tables:
    """What gives the payloads of one program of a package; without its weights, where others take their place."""

    def tables() -> tuple[Mapping[str, Payload] | None, Mapping[str, Payload] | None]:
        return _table(package.weights, model) if is_whole else {}, _table(package.constants, model)

    return tables


def _table(access: Callable[[str], Mapping[str, Payload]], model: str) -> Mapping[str, Payload] | None:
    try:
        return access(model)
    except Pt2Error:
        return None


def stored_inputs(module: schema.GraphModule, tables: Tables) -> StoredInputs:
    """Say which inputs of a program the file fills, and which of them do not stay as they are.

    Args:
        module: the program.
        tables: gives its payloads; what is in neither table is given by whoever loads the program.
    """
    weights, constants = tables()
    payloads: dict[str, Payload | None] = {}
    sources: dict[str, str] = {}
    for spec in module.signature.input_specs:
        taken: Any = spec.value
        name = _payload_name(taken)
        if name is None:
            continue
        sources[name] = taken.arg.name
        candidates = [table[name] for table in (weights, constants) if table is not None and name in table]
        if candidates or None in (weights, constants):
            payload = candidates[0] if len(candidates) == 1 else None
            if not isinstance(payload, MetaView):  # Whoever loads the program fills that.
                payloads[taken.arg.name] = payload
    return StoredInputs(payloads, frozenset(_written(module.signature, sources)))


def _payload_name(spec: Any) -> str | None:
    keys = ("parameter_name", "buffer_name", "tensor_constant_name")
    return next((name for key in keys if (name := getattr(spec, key, None)) is not None), None)


def _written(signature: schema.GraphSignature, sources: Mapping[str, str]) -> Iterator[str]:
    """The inputs that an output is written to."""
    for spec in signature.output_specs:
        value: Any = spec.value
        name = getattr(value, "user_input_name", None)
        if spec.type == "user_input_mutation" and name is not None:
            yield name
        elif spec.type in ("buffer_mutation", "parameter_mutation"):
            target = _payload_name(value) or ""
            if target in sources:
                yield sources[target]


def keeps(rule: str, payload: Payload | None) -> bool:
    """Whether the numbers of a payload keep a rule of `data/kernels.json` ("offsets").

    Cost: one pass over them, which are read for it.
    """
    numbers = _numbers(payload)
    if numbers is None:
        return False
    return not numbers.size or bool(_RULES[rule](numbers))


def _numbers(payload: Payload | None) -> Any:
    """The whole numbers of a payload, as they lie in memory: kernels that trust numbers trust strides as well."""
    if not isinstance(payload, TensorView) or payload.numel > MAX_ELEMENTS or not payload.is_contiguous:
        return None
    if DTYPES[payload.dtype].kind != "int":
        return None
    try:
        return payload.numpy()
    except Pt2Error:
        return None


def _offsets(numbers: Any) -> Any:
    """Places in a list, in order; the kernel itself compares the last one with the length."""
    flat = numbers.reshape(-1)
    return flat[0] >= 0 and (flat[1:] >= flat[:-1]).all()


def _batch_sizes(numbers: Any) -> Any:
    """How many sequences reach each step: ever fewer, and some."""
    flat = numbers.reshape(-1)
    return flat[-1] > 0 and (flat[1:] <= flat[:-1]).all()


def _pivots(numbers: Any) -> Any:
    """Rows of a matrix from 1 on; negative ones stand in pairs, for two rows at once."""
    count = numbers.shape[-1] if numbers.ndim else 0
    for row in numbers.reshape(-1, count) if count else ():
        at = 0
        while at < count:
            pivot = int(row[at])
            if not 1 <= abs(pivot) <= count or (pivot < 0 and (at + 1 == count or int(row[at + 1]) >= 0)):
                return False
            if pivot < 0 and not 1 <= -int(row[at + 1]) <= count:
                return False
            at += 1 if pivot > 0 else 2
    return bool(count)


def _repeats(numbers: Any) -> Any:
    """How often each element is repeated: the kernel adds them up, as numbers of 64 bits."""
    return numbers.min() >= 0 and numbers.astype("float64").sum() <= MAX_REPEATS


_RULES: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {"offsets": _offsets, "batch sizes": _batch_sizes, "pivots": _pivots, "repeats": _repeats}
)
RULES: Final = frozenset(_RULES)
"""Names of rules."""
