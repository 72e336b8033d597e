"""Named tuples of a spec by their field names: the file's table, placeholder classes, inputs of a class that changed.

A file lists the fields that a named tuple had when it was saved. A class may since have gained, lost or reordered
fields; values are then matched by name: fields that the other side does not know are dropped, fields that it needs must
be there.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pt2kit.errors import GraphError, SchemaError
from pt2kit.messages import printable

T = TypeVar("T")


def stand_in(name: str, names: Sequence[str], where: str = "treespec") -> type[tuple[object, ...]]:
    """Return a new named tuple class as a placeholder for one that cannot be imported.

    Args:
        name: the registered type name; the class is called by its last part.
        names: its fields.
        where: place, for messages.

    Raises:
        SchemaError: a field that is not a plain identifier. `collections.namedtuple` pastes the names into source, so
        they
            are checked here first.
    """
    for field in names:
        if not _is_field(field):
            raise SchemaError(
                f"{where}: expected field names of {printable(name)} that are identifiers without a leading "
                f"underscore, got {field!a}"
            )
    plain = [unicodedata.normalize("NFKC", field) for field in names]  # what Python's own parser makes of them
    if len(set(plain)) < len(plain):
        raise SchemaError(f"{where}: expected distinct field names of {printable(name)}, got {_listed(names)}")
    last = name.rpartition(".")[2]
    class_name = last if last.isidentifier() and not keyword.iskeyword(last) else "NamedTuple"
    return namedtuple(class_name, plain, module="pt2kit.treespec.stand_in")


def adapt_values(
    values: Sequence[T],
    source: Sequence[str],
    target: Sequence[str],
    where: str,
    defaults: Mapping[str, T] | None = None,
) -> tuple[T, ...]:
    """Return the values of one named tuple in the order of another version of its class.

    Args:
        values: one value per name of `source`.
        source: the fields that the values have (of the class today for inputs, of the file for outputs).
        target: the fields that are wanted (of the file for inputs, of the class today for outputs).
        where: place of the value, for messages.
        defaults: values for wanted fields that are missing.

    Raises:
        GraphError: wanted fields that are neither there nor have a default; all are listed.
    """
    if len(values) != len(source):
        raise GraphError(f"{where}: expected {len(source)} values for the fields {_listed(source)}, got {len(values)}")
    by_name = {**(defaults or {}), **dict(zip(source, values, strict=True))}
    missing = [name for name in target if name not in by_name]
    if missing:
        raise GraphError(
            f"{where}: expected a named tuple with the fields {_listed(target)}, "
            f"got one with {_listed(source)}: missing {_listed(missing)}; pass a value that has them"
        )
    return tuple(by_name[name] for name in target)


def _is_field(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def _listed(names: Sequence[object]) -> str:
    shown = ", ".join(printable(name if isinstance(name, str) else repr(name), 40) for name in names[:12])
    return f"({shown}, ... {len(names)} in all)" if len(names) > 12 else f"({shown})"
