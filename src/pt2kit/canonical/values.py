"""Values of an argument: their names in order, and renaming of the values and subgraphs.

Two answers per argument: `slots`, what the order of nodes looks at, and `rename`. Arms that name nothing come back as
they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit.graph.argument_values import Subgraphs, leaves, references, renamed
from pt2kit.schema import Argument, OptionalTensorArgument

Names = Mapping[str, str]
"""Old name -> new name; a name that is not a key stays."""

Slots = tuple[str | None, ...]

NOTHING: Final[Slots] = (None,)


def slots(argument: Argument) -> Slots:
    """List the names of the values that an argument uses, with None for a constant instead of a value.

    An argument that has no place for a value is one None. A dict of arguments is read in the order of its keys.

    Raises:
        LimitError: dicts nest too deep (G11).

    Source: torch/_export/serde/serialize.py, torch 2.13, which puts nodes in order by the ranks of these values.
    """
    if (tensor := argument.as_tensor) is not UNSET:
        return (tensor.name,)
    read = _SLOTS.get(arm := argument.type)
    return read(getattr(argument, arm)) if read else NOTHING


def _sym_slots(value: Any) -> Slots:
    return (None if value.as_name is UNSET else value.as_name,)


def _optional_slots(values: list[OptionalTensorArgument]) -> Slots:
    return tuple(None if value.as_tensor is UNSET else value.as_tensor.name for value in values)


def _entry_slots(entries: dict[str, Argument]) -> Slots:
    keyed_leaves = leaves(Argument(as_string_to_argument=entries))
    inner = [(keys, [reference.name for reference in references(leaf)]) for keys, leaf in keyed_leaves]
    return tuple(name for _, names in sorted(inner) for name in names) or NOTHING


_SLOTS: Final[Mapping[str, Callable[[Any], Slots]]] = MappingProxyType(
    {
        "as_tensors": lambda values: tuple(value.name for value in values),
        "as_nested_tensors": lambda rows: tuple(value.name for row in rows for value in row),
        "as_optional_tensor": lambda value: _optional_slots([value]),
        "as_optional_tensors": _optional_slots,
        **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), _sym_slots),
        **dict.fromkeys(
            ("as_sym_ints", "as_sym_floats", "as_sym_bools"),
            lambda values: tuple(name for value in values for name in _sym_slots(value)),
        ),
        "as_custom_obj": lambda value: (value.name,),
        "as_string_to_argument": _entry_slots,
    }
)
"""Arm -> what reads its slots; the arms that have no place for a value are not here."""


def rename(argument: Argument, names: Names, subgraphs: Subgraphs) -> Argument:
    """Rename the values that an argument names.

    Args:
        argument: any argument, with dicts of at most `graph.MAX_ARGUMENT_DEPTH` levels, as `slots` has proved.
        names: old name -> new name.
        subgraphs: the replacement of each subgraph, dicts read in the order of their keys.

    Returns:
        a new argument, dicts in the order of their keys; or the same one where there is nothing to rename.
    """
    return renamed(argument, lambda name: names.get(name, name), subgraphs, by_key=True)
