"""Live pytree specs -> the text of `in_spec` and `out_spec`, and the fields of the named tuples in them."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import torch

from pt2kit import treespec
from pt2kit.bridge.placeholder_types import stand_in_name
from pt2kit.bridge.torch_names import child_specs, pytree
from pt2kit.errors import GraphError, LimitError, UnsupportedError
from pt2kit.schema import NamedTupleDef
from pt2kit.treespec.spec import TreeSpec


class TreeSpecs:
    """Writes specs and collects the named-tuple field table of the program.

    Attributes:
        fields: registered type name of each named tuple seen so far -> its field names.
    """

    def __init__(self) -> None:
        self.fields: dict[str, NamedTupleDef] = {}

    def text(self, live: pytree.TreeSpec) -> str:
        """The text of a spec, as torch writes it.

        Raises:
            UnsupportedError: a container type that is not registered with a name to serialize it by, or whose context
                is not JSON.
            GraphError: two classes of one registered name with different fields.
            LimitError: nested too deeply.

        Source: `treespec_dumps` in torch/utils/_pytree.py and `serialize_treespec` in torch/_export/serde/serialize.py,
        2.13.
        """
        return treespec.dump(self._convert(live, 0))

    def _convert(self, live: pytree.TreeSpec, depth: int) -> TreeSpec:
        if live.type is None:
            return treespec.LEAF
        if depth > treespec.MAX_DEPTH:
            raise LimitError(f"expected at most {treespec.MAX_DEPTH} containers inside each other, got more")
        name, context = _describe(live.type, live.context)
        if live.type is pytree.namedtuple or pytree.is_namedtuple_class(live.type):
            self._note_fields(live.context)
        children = tuple(self._convert(child, depth + 1) for child in child_specs(live))
        return TreeSpec(name, context, children)

    def _note_fields(self, cls: Any) -> None:
        name = stand_in_name(cls) or pytree.SUPPORTED_SERIALIZED_TYPES[cls].serialized_type_name
        fields = list(cls._fields)
        known = self.fields.setdefault(name, NamedTupleDef(fields))
        if known.field_names != fields:
            raise GraphError(
                f"named tuple {name!r}: expected one set of fields, "
                f"got ({', '.join(known.field_names)}) and ({', '.join(fields)})"
            )


def _describe(kind: Any, context: Any) -> tuple[str, str]:
    """The registered name of a container type, and its context as JSON text."""
    known = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
    if kind is pytree.namedtuple and known is not None and (name := stand_in_name(context)):
        return known.serialized_type_name, json.dumps(name)
    if known is None and isinstance(kind, type) and issubclass(kind, torch.nn.Module):
        # A module as an input: torch registers its class while it saves and writes the names of its tensors.
        return f"{kind.__module__}.{kind.__qualname__}", json.dumps(json.dumps([context[0], None]))
    if known is None or known.serialized_type_name == pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
        raise UnsupportedError(
            f"expected container types that are registered with a serialized_type_name, got {_name(kind)}"
        )
    try:
        if known.to_dumpable_context is None:
            dumpable: Any = json.dumps(context, default=_plain)
        else:
            dumpable = known.to_dumpable_context(context)
        return known.serialized_type_name, json.dumps(dumpable, default=_plain)
    except NotImplementedError:
        raise UnsupportedError(
            "expected named tuples that are registered with a serialized_type_name "
            f"(torch.utils._pytree._register_namedtuple), got {_name(context)}"
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsupportedError(f"expected a context of {_name(kind)} that JSON can hold, got {error}") from error


def _plain(value: Any) -> Any:
    """An enum member in a context (a key of a dict, mostly) as JSON."""
    if isinstance(value, Enum):
        kind = type(value)
        return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": value.name}
    raise TypeError(f"a value of type {_name(type(value))}")


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else repr(kind)
