"""Schemas of built-in operators for the design draft: argument names and list results that its programs omit.

The draft lists positional arguments without names and results without grouping. `operator_arguments.txt` holds both
for the operators of aten and prims (all overloads without `out`), as torch 2.13 registers them; a test compares the
two, `tools/operator_arguments.py` writes the file.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_PREFIX: Final = "torch.ops."


def positional_names(target: str) -> tuple[str, ...] | None:
    """Return the names of an operator's positional arguments in order ("torch.ops.aten.add.Tensor": self, other).

    Returns:
        None for an operator that is not in the list.
    """
    name = target.removeprefix(_PREFIX)
    return _table().get(name, _table().get(f"{name}[]"))


def returns_list(target: str) -> bool:
    """Return whether an operator's one result is a list of tensors ("torch.ops.aten.split.Tensor")."""
    return f"{target.removeprefix(_PREFIX)}[]" in _table()


# A file of the package, which never changes; read when a draft program is.
@functools.cache
def _table() -> Mapping[str, tuple[str, ...]]:
    text = (files("pt2kit.versions") / "operator_arguments.txt").read_text(encoding="utf-8")
    names_by_operator: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        names, _, operators = line.partition("\t")
        names_by_operator |= dict.fromkeys(operators.split(), tuple(names.split()))
    return MappingProxyType(names_by_operator)
