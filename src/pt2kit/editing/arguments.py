"""Conversion of plain Python values to arguments of the schema, with the values that they name.

A text is what the parameter's type makes of it: a device, an element type, or a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pt2kit import schema
from pt2kit.editing.metas import Operand, device_of, scalar_type
from pt2kit.errors import GraphError, Pt2Error
from pt2kit.graph.reading import MEMORY_FORMATS
from pt2kit.messages import quote
from pt2kit.schema import Argument
from pt2kit.schema.operators import ValueType

_SYMBOLIC: Final[Mapping[str, tuple[str, type[Any], str]]] = MappingProxyType(
    {
        "sym_int": ("as_sym_int", schema.SymIntArgument, "as_int"),
        "sym_float": ("as_sym_float", schema.SymFloatArgument, "as_float"),
        "sym_bool": ("as_sym_bool", schema.SymBoolArgument, "as_bool"),
    }
)
_PLAIN: Final = ((bool, "as_bool", "as_bools"), (int, "as_int", "as_ints"), (str, "as_string", "as_strings"))
_EMPTY: Final[Mapping[str, str]] = MappingProxyType(
    {"Tensor": "as_tensors", "float": "as_floats", "bool": "as_bools", "str": "as_strings"}
)


def to_argument(value: Any, kind: ValueType | None, edit: str) -> tuple[Argument, list[Operand]]:
    """Write a plain value as an argument.

    Args:
        value: a value of a graph, a node with one result, None, a number, a text, an enum or device of the schema, a
            list or dict of these, or a `schema.GraphArgument`.
        kind: the type of the parameter; None where it is not known.
        edit: what messages call the edit.

    Returns:
        the argument, and the values that it names.

    Raises:
        GraphError: a value that the format has no kind for.
    """
    try:
        return _write(value, kind, edit)
    except Pt2Error as error:
        raise error if str(error).startswith(edit) else GraphError(f"{edit}: {error}") from None


def argument_of(value: Operand) -> Argument:
    """Return the argument that names one value."""
    if value.kind == "tensor":
        return Argument(as_tensor=schema.TensorArgument(value.name))
    if value.kind == "custom_obj":
        return Argument(as_custom_obj=schema.CustomObjArgument(value.name, value.meta.class_fqn if value.meta else ""))
    arm, cls, _ = _SYMBOLIC[value.kind]
    return _of_arm(arm, cls(as_name=value.name))


def named_argument(
    name: str, argument: Argument, kind: schema.ArgumentKind | None, old: Sequence[schema.NamedArgument]
) -> schema.NamedArgument:
    """Return an argument with its name; the old one, if there is one and it is the same."""
    for one in old:
        if one.arg is argument and one.name == name and one.kind is kind:
            return one
    return schema.NamedArgument(name, argument, kind)


def _of_arm(arm: str, held: Any) -> Argument:
    return Argument(**{arm: held})


def _write(value: Any, kind: ValueType | None, edit: str) -> tuple[Argument, list[Operand]]:
    base = kind.base if kind is not None else ""
    value = _result(value)
    if isinstance(value, Operand):
        if kind is not None and kind.is_list and value.kind == "tensor" and base == "Tensor":
            raise GraphError(
                f"{edit}: expected a list of tensors, got the value {quote(value.name)}; write it as a list"
            )
        return argument_of(value), [value]
    if isinstance(value, list | tuple):
        return _list([_result(item) for item in value], kind, edit)
    if isinstance(value, dict):
        written = {str(key): _write(item, None, edit) for key, item in value.items()}
        values = [one for _, inner in written.values() for one in inner]
        return Argument(as_string_to_argument={key: inner for key, (inner, _) in written.items()}), values
    return _constant(value, base, edit), []


def _result(value: Any) -> Any:
    """Return the one result of a node, which a node as an argument means; return anything else unchanged."""
    return value.output if hasattr(value, "outputs_") else value


def _constant(value: Any, base: str, edit: str) -> Argument:
    if value is None:
        return Argument(as_none=True)
    if (base == "ScalarType" and not isinstance(value, int)) or isinstance(value, schema.ScalarType):
        return Argument(as_scalar_type=scalar_type(value))
    if isinstance(value, schema.Layout):
        return Argument(as_layout=value)
    if isinstance(value, schema.MemoryFormat):
        return Argument(as_memory_format=value)
    if (base == "Device" and isinstance(value, str)) or isinstance(value, schema.Device):
        return Argument(as_device=device_of(value))
    if isinstance(value, str) and base in ("Layout", "MemoryFormat"):
        return _named(value.removeprefix("torch."), base, edit)
    for cls, arm, _ in _PLAIN:
        if isinstance(value, cls):
            return _of_arm(arm, cls(value))
    if isinstance(value, complex):
        return Argument(as_complex=schema.ComplexValue(value.real, value.imag))
    if isinstance(value, float) or hasattr(value, "__float__"):
        return Argument(as_int=int(value)) if hasattr(value, "__index__") else Argument(as_float=float(value))
    if isinstance(value, schema.GraphArgument):
        return Argument(as_graph=value)
    raise GraphError(
        f"{edit}: expected a Value, a number, a text, None, a list or dict of these, or a schema.Argument, got "
        f"{type(value).__name__}"
    )


def _named(name: str, base: str, edit: str) -> Argument:
    if base == "Layout" and name in ("strided", "Strided"):
        return Argument(as_layout=schema.Layout.Strided)
    if base == "Layout" and name in schema.Layout.__members__:
        return Argument(as_layout=schema.Layout[name])
    if base == "MemoryFormat" and name in MEMORY_FORMATS:
        return Argument(as_memory_format=MEMORY_FORMATS[name])
    known = ", ".join(MEMORY_FORMATS if base == "MemoryFormat" else schema.Layout.__members__)
    raise GraphError(f"{edit}: expected one of {known}, got {quote(name)}")


def _list(items: Sequence[Any], kind: ValueType | None, edit: str) -> tuple[Argument, list[Operand]]:
    base = kind.base if kind is not None else ""
    values = [item for item in items if isinstance(item, Operand)]
    takes_none = kind is not None and base == "Tensor" and kind.suffix.startswith("?[")
    if takes_none or None in [item for item in items if not isinstance(item, Operand)]:
        return _optional_tensors(items, edit), values
    if not items:
        return _of_arm(_EMPTY.get(base, "as_ints"), []), []
    if any(isinstance(item, list | tuple) for item in items):
        return _rows(items, edit)
    if values:
        return _with_values(items, values, edit), values
    for cls, _, arm in _PLAIN:
        if all(isinstance(item, cls) and not (cls is int and isinstance(item, bool)) for item in items):
            return _of_arm(arm, list(items)), []
    if all(isinstance(item, int | float) for item in items):
        return Argument(as_floats=[float(item) for item in items]), []
    raise GraphError(f"{edit}: expected a list of one kind of values, got {quote(repr(list(items)))}")


def _optional_tensors(items: Sequence[Any], edit: str) -> Argument:
    if not all(item is None or isinstance(item, Operand) for item in items):
        raise GraphError(f"{edit}: expected a list of tensors and None, got {quote(repr(list(items)))}")
    return Argument(
        as_optional_tensors=[
            schema.OptionalTensorArgument(as_none=True)
            if item is None
            else schema.OptionalTensorArgument(as_tensor=schema.TensorArgument(item.name))
            for item in items
        ]
    )


def _with_values(items: Sequence[Any], values: Sequence[Operand], edit: str) -> Argument:
    kinds = {value.kind for value in values}
    if kinds == {"tensor"} and len(values) == len(items):
        return Argument(as_tensors=[schema.TensorArgument(value.name) for value in values])
    if len(kinds) == 1 and (kind := next(iter(kinds))) in _SYMBOLIC:
        arm, cls, plain = _SYMBOLIC[kind]
        arguments = [cls(as_name=item.name) if isinstance(item, Operand) else cls(**{plain: item}) for item in items]
        return _of_arm(f"{arm}s", arguments)
    raise GraphError(f"{edit}: expected a list of values of one kind, got {quote(repr(list(items)))}")


def _rows(items: Sequence[Any], edit: str) -> tuple[Argument, list[Operand]]:
    flat = [one for row in items if isinstance(row, list | tuple) for one in row]
    if all(isinstance(row, list | tuple) for row in items):
        if flat and all(isinstance(one, Operand) and one.kind == "tensor" for one in flat):
            rows = [[schema.TensorArgument(one.name) for one in row] for row in items]
            return Argument(as_nested_tensors=rows), flat
        if all(isinstance(one, int) for one in flat):
            return Argument(as_int_lists=[list(row) for row in items]), []
        if all(isinstance(one, int | float) for one in flat):
            return Argument(as_float_lists=[[float(one) for one in row] for row in items]), []
    raise GraphError(f"{edit}: expected rows of tensors or of numbers, got {quote(repr(list(items)))}")
