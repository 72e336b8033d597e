"""The words with brackets in the text form of programs -> the arguments that they stand for: `sym_ints(%s, 3)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pt2kit import schema
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH
from pt2kit.schema import Argument, TensorArgument
from pt2kit.tensors.dtypes import DTYPES

if TYPE_CHECKING:
    from pt2kit.text.source_reader import Reader

SHORT: Final = {row.short: number for number, row in DTYPES.items()}
"""Short name of an element type -> the type."""


def _in_brackets(read: Callable[[Reader], Argument]) -> Callable[[Reader], Argument]:
    def parse_word(reader: Reader) -> Argument:
        reader.sign("(")
        argument = read(reader)
        reader.sign(")")
        return argument

    return parse_word


def _symbolic_item(cls: type[Any], arm: str) -> Callable[[Reader], Any]:
    def read(reader: Reader) -> Any:
        if reader.kinds[reader.at] == "value":
            return cls(as_name=reader.name())
        return cls(**{arm: reader.constant()})

    return read


def _items(arm: str, one: Callable[[Reader], Any]) -> Callable[[Reader], Argument]:
    return lambda reader: Argument.create(**{arm: reader.listed("(", ")", lambda: one(reader))})


def _single(arm: str, one: Callable[[Reader], Any]) -> Callable[[Reader], Argument]:
    return _in_brackets(lambda reader: Argument.create(**{arm: one(reader)}))


def _member(cls: Any, names: Mapping[str, Any] | None = None) -> Callable[[Reader], Any]:
    def read(reader: Reader) -> Any:
        word = reader.next("word")
        member = (names or {}).get(word, cls.__members__.get(word))
        if member is None:
            reader.fail(f"one of {', '.join([*(names or {}), *cls.__members__])}", back=1)
        return member

    return read


def _optional(reader: Reader) -> schema.OptionalTensorArgument:
    if reader.take("none"):
        return schema.OptionalTensorArgument(as_none=True)
    return schema.OptionalTensorArgument(as_tensor=TensorArgument(reader.name()))


def _device(reader: Reader) -> schema.Device:
    kind = reader.string()
    return schema.Device(kind, reader.integer() if reader.take(",") else None)


def _object(reader: Reader) -> schema.CustomObjArgument:
    name = reader.name()
    reader.sign(",")
    return schema.CustomObjArgument(name, reader.string())


def _complex(reader: Reader) -> schema.ComplexValue:
    real = float(reader.constant())
    reader.sign(",")
    return schema.ComplexValue(real, float(reader.constant()))


def _graph(reader: Reader) -> schema.GraphArgument:
    name = reader.string()
    return schema.GraphArgument(name, reader.block()[0])


def _dict(reader: Reader) -> Argument:
    def one() -> tuple[str, Argument]:
        key = reader.string()
        reader.sign(":")
        return key, reader.argument()

    reader.depth += 1
    if reader.depth > MAX_SUBGRAPH_DEPTH:
        reader.fail("dicts nested less deeply")
    entries = dict(reader.listed("(", ")", one))
    reader.depth -= 1
    return Argument(as_string_to_argument=entries)


def _row(one: Callable[[Reader], Any]) -> Callable[[Reader], list[Any]]:
    return lambda reader: reader.listed("[", "]", lambda: one(reader))


def _tensor_item(reader: Reader) -> TensorArgument:
    return TensorArgument(reader.name())


def _constant_item(reader: Reader) -> Any:
    return reader.constant()


ARMS: Final[Mapping[type, str]] = MappingProxyType(
    {bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}
)
_INT = _symbolic_item(schema.SymIntArgument, "as_int")
_FLOAT = _symbolic_item(schema.SymFloatArgument, "as_float")
_BOOL = _symbolic_item(schema.SymBoolArgument, "as_bool")
WORDS: Final[Mapping[str, Callable[[Reader], Argument]]] = MappingProxyType(
    {
        "none": _single("as_none", _constant_item),
        "tensors": _items("as_tensors", _tensor_item),
        "ints": _items("as_ints", _constant_item),
        "floats": _items("as_floats", _constant_item),
        "strings": _items("as_strings", _constant_item),
        "bools": _items("as_bools", _constant_item),
        "sym_int": _single("as_sym_int", _INT),
        "sym_ints": _items("as_sym_ints", _INT),
        "sym_float": _single("as_sym_float", _FLOAT),
        "sym_floats": _items("as_sym_floats", _FLOAT),
        "sym_bool": _single("as_sym_bool", _BOOL),
        "sym_bools": _items("as_sym_bools", _BOOL),
        "dtype": _single("as_scalar_type", _member(schema.ScalarType, SHORT)),
        "memory_format": _single("as_memory_format", _member(schema.MemoryFormat)),
        "layout": _single("as_layout", _member(schema.Layout)),
        "device": _single("as_device", _device),
        "optional_tensor": _single("as_optional_tensor", _optional),
        "optional_tensors": _items("as_optional_tensors", _optional),
        "nested_tensors": _items("as_nested_tensors", _row(_tensor_item)),
        "object": _single("as_custom_obj", _object),
        "operator": _single("as_operator", lambda reader: reader.string()),
        "complex": _single("as_complex", _complex),
        "int_lists": _items("as_int_lists", _row(_constant_item)),
        "float_lists": _items("as_float_lists", _row(_constant_item)),
        "graph": _single("as_graph", _graph),
        "dict": _dict,
    }
)
"""Word with brackets -> what reads the argument that it stands for."""
