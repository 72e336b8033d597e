"""Requirements of unchecked kernels, and the operators that a file may not call: the table of kernels (rule X10).

`data/kernels.json` has a row for each operator, with what was seen when it was called with hostile arguments
(`python -m tools.kernels`). A row without `requires` and `kept` is refused. A row with `requires` names the rule that
validates the actual arguments of each call (`kernel_rules.py`).
`load_module` runs the rule before the kernel; `check` and `load` ask it of what a file shows of the arguments.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pt2kit.data_files import data_file
from pt2kit.operators.higher_order import HIGHER_ORDER, RUNNING_CODE
from pt2kit.schema import Layout, Node
from pt2kit.schema.names import OPS, plain_target

ALLOWED: Final = HIGHER_ORDER.keys() - RUNNING_CODE
"""Higher-order operators that a file may call: they run subgraphs and operators that are checked themselves."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operator of the table of kernels.

    Args:
        reason: why a file should not call it.
        requires: the name of the rule that validates its arguments.
        kept: why it is called without a check, although it was seen to end the process.
        copied: results that the program gets a copy of, because a kernel trusts them later.
        evidence: overload -> what was seen: "indices values 2**40: SIGSEGV".
    """

    reason: str
    requires: str = ""
    kept: str = ""
    copied: tuple[int, ...] = ()
    evidence: dict[str, tuple[str, ...]] = {}

    @property
    def is_refused(self) -> bool:
        """Return whether no file may call the kernel."""
        return not (self.requires or self.kept)


class Table(msgspec.Struct, frozen=True):
    """The table of kernels.

    Args:
        release: of torch, with which the evidence was made.
        namespaces: namespace -> why a file should not call any operator in it.
        operators: "namespace.name", or with its overload -> row.
    """

    release: str
    namespaces: dict[str, str]
    operators: dict[str, Row]


TABLE: Final = msgspec.json.decode(data_file("operators/data/kernels.json").read_bytes(), type=Table)

_UNINITIALIZED: Final = """
    aten.empty aten.empty_like aten.empty_strided aten.empty_permuted aten.empty_quantized aten.new_empty
    aten.new_empty_strided aten._empty_affine_quantized aten._empty_per_channel_affine_quantized
    prims.empty_permuted prims.empty_strided
"""
UNINITIALIZED: Final = frozenset(_UNINITIALIZED.split())
"""Operators, without overload, whose result is memory that nothing was written to; `load_module` fills it with 0."""

GROWING: Final = frozenset(("aten.resize", "aten.resize_", "aten.resize_as", "aten.resize_as_"))
"""Operators, without overload, whose result may have more elements than their first argument; likewise."""


def refusal(target: str) -> str | None:
    """Return why a file should not call an operator ("torch.ops.aten.from_file.default"); None if it may."""
    row = find_row(target)
    if row is not None:
        return row.reason if row.is_refused else None
    parts = plain_target(target).split(".")
    if parts[:2] != ["torch", "ops"] or len(parts) < 4:
        return None
    if parts[2] == "higher_order" and parts[3] not in ALLOWED:
        return "it is not one of the higher-order operators that a file may call"
    return TABLE.namespaces.get(parts[2])


def layout_problem(node: Node) -> str | None:
    """Return why a file should not ask for the layout of a tensor; None if it may."""
    for named in node.inputs:
        layout = (named.arg.as_string_to_argument or {named.name: named.arg}).get("layout")
        if layout is not None and layout.as_layout is Layout._mkldnn:
            return "expected no tensor in MKL-DNN's layout, which kernels mistake for strided memory"
    return None


def find_row(target: str) -> Row | None:
    """Return the row of an operator ("torch.ops.aten.from_file.default"); None if there is none."""
    target = plain_target(target)
    if not target.startswith(OPS):
        return None
    parts = target.removeprefix(OPS).split(".")
    # An overload that writes to a given tensor has the same kernel: "dtype_out" of "dtype".
    overload = ".".join(parts[:3])
    for name in (overload, overload.removesuffix("_out"), ".".join(parts[:2])):
        if name in TABLE.operators:
            return TABLE.operators[name]
    return None


def find_requirement(target: str) -> Row | None:
    """Return the row of an operator whose calls are validated; None for any other."""
    row = find_row(target)
    return row if row is not None and row.requires else None


def name_of(target: str) -> str:
    """Return an operator without overload: "aten.add" for "torch.ops.aten.add.Tensor"."""
    return ".".join(target.removeprefix(OPS).split(".")[:2])
