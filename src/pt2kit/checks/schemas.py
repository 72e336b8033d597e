"""The operators of a release of torch -> their signatures, from data that ships with the package; no torch.

`data/operators-<release>.json.z` (written by `tools/operator_schemas.py`) has every operator that one release
registers. It takes a few milliseconds to read and is read when the first call is checked. What other releases are
known to have otherwise stands in `DIFFERENCES`.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Final

import msgspec

RELEASE: Final = "2.13.0"
"""The release whose table ships."""

COMPLETE: Final = frozenset(("aten", "prim", "prims"))
"""The namespaces that every build of a release registers whole; others depend on the build and on what is imported."""

DIFFERENCES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "aten._scaled_dot_product_flash_attention.default": MappingProxyType(
            {
                "2.2": "query:Tensor key:Tensor value:Tensor dropout_p:float= is_causal:bool= return_debug_mask:bool= "
                "*scale:Optional[float]= -> Tensor Tensor Tensor Tensor int int Tensor",
            }
        ),
    }
)
"""Operator -> release ("2.2") -> its signature there, where it is not that of the table.

Source: the files of torch 2.1 to 2.15; all their other calls fit the table.
"""

_TARGET: Final = "torch.ops."


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operator.

    Args:
        name: as the schema has it.
        type: as torch prints it, without blanks: "Optional[List[int]]".
        keyword_only: it stands after the "*".
        required: it has no default.
        is_written: the operator writes into the tensor it gets.
    """

    name: str
    type: str
    keyword_only: bool
    required: bool
    is_written: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """What the schema of an operator says.

    Args:
        parameters: name -> parameter, in order.
        returns: the type of each result.
        is_view: some result shares memory with an argument that is not written.
        is_open: it takes, or gives, any number of values more.
    """

    parameters: Mapping[str, Parameter]
    returns: tuple[str, ...]
    is_view: bool
    is_open: bool


class Table(msgspec.Struct, frozen=True):
    """The operators of one release.

    Args:
        release: of torch.
        higher_order: the names of the operators that take subgraphs.
        operators: "namespace.name.overload" -> signature as text.
    """

    release: str
    higher_order: frozenset[str]
    operators: dict[str, str]


# A file of the package, which never changes; read when the first call is checked.
@functools.cache
def table() -> Table:
    """The table that ships."""
    data = (files("pt2kit.checks") / "data" / f"operators-{RELEASE}.json.z").read_bytes()
    return msgspec.json.decode(zlib.decompress(data), type=Table)


def find(target: str, release: str) -> Signature | None:
    """The signature of an operator ("torch.ops.aten.add.Tensor"); None where the table has none of that name.

    Args:
        target: what a node calls.
        release: of the program ("2.2"), for what is known to differ.
    """
    name = target.removeprefix(_TARGET)
    text = DIFFERENCES.get(name, {}).get(release) or table().operators.get(name)
    return None if text is None else parse(text)


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Signature:
    """Read a signature as the table has it: "self:Tensor *alpha:number= -> Tensor"."""
    head, _, tail = text.partition("->")
    given, results = head.split(), tail.split()
    parameters = [_parameter(token) for token in given if token != "..."]
    return Signature(
        MappingProxyType({parameter.name: parameter for parameter in parameters}),
        tuple(result.lstrip("&") for result in results if result != "..."),
        any(result.startswith("&") for result in results),
        "..." in given or "..." in results,
    )


def _parameter(token: str) -> Parameter:
    name, _, kind = token.partition(":")
    return Parameter(
        name.lstrip("*!"), kind.removesuffix("="), name.startswith("*"), not kind.endswith("="), "!" in name[:2]
    )
