"""Shape and type inference of an edited call, by running it on torch's fake tensors.

The operator's fake kernel runs; no tensor holds numbers. Sizes that are symbols remain symbols, at least 2 each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit import schema
from pt2kit.bridge.operators import DTYPES, LAYOUTS, MEMORY_FORMATS, resolve, to_device
from pt2kit.bridge.read.tensors import Devices
from pt2kit.bridge.read.values import Shapes
from pt2kit.bridge.read.values import Values as FakeValues
from pt2kit.bridge.torch_names import pytree
from pt2kit.bridge.write.values import Values as Descriptions
from pt2kit.editing.graphs import Value
from pt2kit.editing.sizes import symbols_of
from pt2kit.errors import GraphError, Pt2Error

_RANGE: Final = schema.RangeConstraint(2, None)

_CONSTANTS: Final[Mapping[type, Callable[[Any], Any]]] = MappingProxyType(
    {
        schema.ScalarType: DTYPES.__getitem__,
        schema.Device: to_device,
        schema.Layout: LAYOUTS.__getitem__,
        schema.MemoryFormat: MEMORY_FORMATS.__getitem__,
    }
)


def infer_with_torch(target: str, arguments: Mapping[str, Any], edit: str) -> Any:
    """Run a call on fake tensors.

    Args:
        target: the operator.
        arguments: by parameter, plain, with `Value`s where it uses values.
        edit: what messages call the edit.

    Returns:
        A meta, a tuple of them for several results, a list for a result that is a list.

    Raises:
        GraphError: torch does not have the operator, or its fake kernel refuses the arguments.
    """
    operator = resolve(target, edit)
    if operator is None or operator.kind not in ("operator", "symbolic"):
        raise GraphError(f"{edit}: expected an operator that torch has here, with a schema, got {target}; give meta=")
    values = [held for held in pytree.tree_leaves(dict(arguments)) if isinstance(held, Value)]
    integers = [value for value in values if value.kind in ("tensor", "sym_int")]
    shapes = Shapes({one.name: _RANGE for value in integers for one in symbols_of(value.meta)}, edit)
    fakes = FakeValues(shapes, Devices(None))

    def live(held: Any) -> Any:
        if isinstance(held, Value):
            where = f"{edit}: {held.name!r}"
            if not isinstance(held.meta, schema.TensorMeta | schema.SymInt | schema.SymFloat | schema.SymBool):
                raise GraphError(f"{where}: expected a tensor or a number, got a {held.kind} value; give meta=")
            return fakes.value(held.meta, where)
        convert = _CONSTANTS.get(type(held))
        return held if convert is None else convert(held)

    try:
        plain = pytree.tree_map(live, dict(arguments))
        with shapes.mode:
            result = operator.target(**plain) if operator.parameters else operator.target(*plain.values())
    except Pt2Error:
        raise
    except Exception as error:
        raise GraphError(f"{edit}: expected arguments that {target} takes, got what torch refuses: {error}") from error
    descriptions = Descriptions()

    def described(one: Any) -> Any:
        if one is None:
            return ()
        found = descriptions.described(one)
        if found is None:
            got = type(one).__name__
            raise GraphError(f"{edit}: expected a tensor or number as the result, got {got}; give meta=")
        return found

    return pytree.tree_map(described, result)
