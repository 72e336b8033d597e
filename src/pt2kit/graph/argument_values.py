"""Arguments of calls: as plain Python values, the values that they name, the subgraphs that they carry.

Every analysis of a graph reads arguments through here. What a value is, is up to the caller: `lookup` returns the fact,
array or name that it has for the name of a value, and everything else of the 31 arms of `schema.Argument` becomes plain
data:

    as_int, as_ints, as_string, as_bool …      the numbers and texts themselves; lists as tuples
    as_tensor, as_sym_int with a name …        lookup(name)
    as_scalar_type, as_device, as_layout …     the objects of the schema
    as_graph, as_operator                      `schema.GraphArgument`, `OperatorName`
    as_none                                    None

`ARMS` has a row for each of the 31 arms of `schema.Argument`; nothing else in this subpackage depends on the
arms. A subgraph names no value of the graph around it: everything it uses comes in through its own inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import UNSET

from pt2kit import schema
from pt2kit.errors import GraphError, LimitError

LIMIT_RULE: Final = "G11"

MAX_ARGUMENT_DEPTH: Final = 32
"""Levels of dicts inside dicts of arguments; programs use one or two."""

ValueKind = Literal["tensor", "sym_int", "sym_float", "sym_bool", "custom_obj"]
SYMBOLIC: Final[tuple[ValueKind, ...]] = ("sym_int", "sym_float", "sym_bool")
"""The kinds of values that are numbers."""


class Reference(NamedTuple):
    """A value that an argument names.

    Args:
        name: the name of the value.
        kind: what the argument takes it for.
        certain: False in lists of tensors, into which torch also puts symbolic values and custom objects.
    """

    name: str
    kind: ValueKind
    certain: bool = True


Lookup: TypeAlias = Callable[[str], Any]
"""The name of a value -> what stands for the value."""

Subgraphs: TypeAlias = Iterator[schema.GraphArgument]


class OperatorName(str):
    """The name of an operator that is passed as an argument."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm of `schema.Argument`: functions of what it holds.

    Args:
        plain: the plain value: numbers and texts as they are, lists as tuples, values by a lookup of their names.
        renamed: the same with other names of values; None if it names none.
        kind: the kind of the values that it names; None if it names none.
        certain: False in lists of tensors, as in `Reference`.
    """

    plain: Callable[[Any, Lookup], Any]
    renamed: Callable[[Any, Callable[[str], str]], Any] | None = None
    kind: ValueKind | None = None
    certain: bool = True


def _optional_plain(value: schema.OptionalTensorArgument, lookup: Lookup) -> Any:
    return None if value.as_tensor is UNSET else lookup(value.as_tensor.name)


def _optional(value: schema.OptionalTensorArgument, name: Lookup) -> schema.OptionalTensorArgument:
    if value.as_tensor is UNSET:
        return value
    return schema.OptionalTensorArgument(as_tensor=schema.TensorArgument(name(value.as_tensor.name)))


def _number(value: Any, lookup: Lookup) -> Any:
    return value.value if value.as_name is UNSET else lookup(value.as_name)


def _symbolic(value: Any, name: Lookup) -> Any:
    return value if value.as_name is UNSET else value.__class__(as_name=name(value.as_name))


def _list_of(one: Arm) -> Arm:
    """Return the arm of a list whose items are read and renamed as what another arm holds."""
    rename = one.renamed
    assert rename is not None  # Lists of constants have arms of their own, which rename nothing.
    return Arm(
        lambda values, lookup: tuple([one.plain(value, lookup) for value in values]),
        lambda values, name: [rename(value, name) for value in values],
        one.kind,
        certain=one.kind != "tensor",
    )


_CONSTANT: Final = Arm(lambda value, lookup: value)
_CONSTANTS: Final = Arm(lambda values, lookup: tuple(values))
_ROWS: Final = Arm(lambda rows, lookup: tuple([tuple(row) for row in rows]))
_TENSOR: Final = Arm(
    lambda value, lookup: lookup(value.name), lambda value, name: schema.TensorArgument(name(value.name)), "tensor"
)
_OPTIONAL: Final = Arm(_optional_plain, _optional, "tensor")
_NUMBERS: Final = {kind: Arm(_number, _symbolic, kind) for kind in SYMBOLIC}

ARMS: Final[Mapping[str, Arm]] = MappingProxyType(
    {
        "as_none": Arm(lambda value, lookup: None),
        **dict.fromkeys(("as_int", "as_float", "as_bool", "as_string", "as_graph"), _CONSTANT),
        **dict.fromkeys(("as_scalar_type", "as_memory_format", "as_layout", "as_device"), _CONSTANT),
        **dict.fromkeys(("as_ints", "as_floats", "as_bools", "as_strings"), _CONSTANTS),
        **dict.fromkeys(("as_int_lists", "as_float_lists"), _ROWS),
        "as_complex": Arm(lambda value, lookup: complex(value.real, value.imag)),
        "as_operator": Arm(lambda value, lookup: OperatorName(value)),
        "as_tensor": _TENSOR,
        "as_tensors": _list_of(_TENSOR),
        "as_nested_tensors": _list_of(_list_of(_TENSOR)),
        "as_optional_tensor": _OPTIONAL,
        "as_optional_tensors": _list_of(_OPTIONAL),
        "as_custom_obj": Arm(
            lambda value, lookup: lookup(value.name),
            lambda value, name: schema.CustomObjArgument(name(value.name), value.class_fqn),
            "custom_obj",
        ),
        **{f"as_{kind}": arm for kind, arm in _NUMBERS.items()},
        **{f"as_{kind}s": _list_of(arm) for kind, arm in _NUMBERS.items()},
        "as_string_to_argument": Arm(
            lambda entries, lookup: {key: plain(held, lookup) for key, held in entries.items()},
        ),
    }
)
"""Arm of `schema.Argument` -> how it is read and renamed."""


ONE_VALUE: Final = frozenset({"as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool", "as_custom_obj"})
"""The arms that hold one value, always."""

ONE_CONSTANT: Final = frozenset({"as_none", "as_int", "as_float", "as_bool", "as_string", "as_complex"})
"""The arms that hold one constant of the calling convention."""

ARGUMENTS_TOO_DEEP: Final = f"expected dicts of arguments nested at most {MAX_ARGUMENT_DEPTH} levels deep, got more"


def references(argument: schema.Argument) -> list[Reference]:
    """List the values that an argument names, in the order they are written; dicts of arguments are searched.

    Raises:
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    if (tensor := argument.as_tensor) is not UNSET:  # most arguments that name something: this is asked fast
        return [Reference(tensor.name, "tensor")]
    name = argument.type
    arm = ARMS[name]
    if (kind := arm.kind) is None:
        is_dict = argument.as_string_to_argument is not UNSET
        return [reference for _, leaf in leaves(argument) for reference in references(leaf)] if is_dict else []
    names: list[str] = []
    arm.plain(getattr(argument, name), names.append)
    return [Reference(one, kind, arm.certain) for one in names]


def arguments(argument: schema.Argument) -> Iterator[str]:
    """Yield the names of the values that an argument uses; a value used twice comes twice.

    A subgraph uses nothing of the graph around it; `walk` visits what is inside.

    Raises:
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    return (reference.name for reference in references(argument))


def argument_names(spec: schema.InputSpec | schema.OutputSpec) -> list[str]:
    """Return the names of the values that the argument of a spec uses; a constant has no value in the graph."""
    argument: Any = getattr(spec.value, "arg", None)
    if isinstance(argument, schema.Argument):
        return list(arguments(argument))
    return [] if argument is None else [argument.name]


def defined(argument: schema.Argument) -> Iterator[str]:
    """Yield the names of the values that an output of a node, or an input of a graph, defines.

    Constants and None define nothing.

    Raises:
        GraphError: the argument carries a subgraph, which is no value (G10).
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    if graph_arguments(argument):
        raise GraphError("argument: expected values or constants, got a subgraph", rule="G10")
    return arguments(argument)


def leaves(argument: schema.Argument, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], schema.Argument]]:
    """Yield the arguments that contain no others, each with the keys that lead to it; () for the argument itself.

    Args:
        argument: any argument.
        keys: those that lead to it, if it is in a dict.

    Raises (on iteration):
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    entries = argument.as_string_to_argument
    if entries is UNSET:
        yield keys, argument
        return
    if len(keys) == MAX_ARGUMENT_DEPTH:
        raise LimitError(f"argument: {ARGUMENTS_TOO_DEEP}", rule=LIMIT_RULE)
    for key, inner in entries.items():
        yield from leaves(inner, (*keys, key))


def graph_arguments(argument: schema.Argument) -> list[tuple[tuple[str, ...], schema.GraphArgument]]:
    """List the subgraphs that an argument carries, each with the keys of the dicts that lead to it.

    Raises:
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    if argument.as_graph is not UNSET:
        return [((), argument.as_graph)]
    if argument.as_string_to_argument is UNSET:
        return []
    return [(keys, leaf.as_graph) for keys, leaf in leaves(argument) if leaf.as_graph is not UNSET]


def renamed(
    argument: schema.Argument, name: Callable[[str], str], subgraphs: Subgraphs, *, by_key: bool = False
) -> schema.Argument:
    """Return an argument with other names and subgraphs; the same one if it has neither.

    Args:
        argument: any argument, with dicts of at most `MAX_ARGUMENT_DEPTH` levels.
        name: old name -> new name, called in the order of `references`.
        subgraphs: the replacement of each subgraph, in the order of `graph_arguments`.
        by_key: read dicts in the order of their keys, and return them so.
    """
    arm = argument.type
    if arm == "as_graph":
        return schema.Argument(as_graph=next(subgraphs))
    if arm == "as_string_to_argument":
        entries: dict[str, schema.Argument] = argument.value
        keys = sorted(entries) if by_key else entries
        return schema.Argument(
            as_string_to_argument={key: renamed(entries[key], name, subgraphs, by_key=by_key) for key in keys}
        )
    change = ARMS[arm].renamed
    return argument if change is None else schema.Argument(**{arm: change(getattr(argument, arm), name)})


FUNCTION_MODULES: Final = ("_operator.", "math.", "builtins.", "torch.sym_", "torch._sym_")
"""Prefixes of the targets of functions over numbers, whose arguments are known by position."""


def arguments_of(node: schema.Node, lookup: Lookup) -> dict[str, Any]:
    """Return the arguments of a call by parameter.

    Args:
        node: the call. Arguments of functions over numbers are named by their position: "0", "1".
        lookup: returns what stands for a value.

    Raises:
        Whatever `lookup` raises.
    """
    if node.target.startswith(FUNCTION_MODULES):
        return {str(position): plain(named.arg, lookup) for position, named in enumerate(node.inputs)}
    return {named.name or str(position): plain(named.arg, lookup) for position, named in enumerate(node.inputs)}


def plain(argument: schema.Argument, lookup: Lookup) -> Any:
    """Return an argument as a plain value.

    Args:
        argument: the argument.
        lookup: returns what stands for a value.
    """
    arm = argument.type
    return ARMS[arm].plain(getattr(argument, arm), lookup)


def results_of(node: schema.Node, lookup: Lookup) -> list[Any]:
    """Return what a node declares for each result: one entry per output; a list for an output that is a list."""
    held = [plain(output, lookup) for output in node.outputs]
    return [list(one) if isinstance(one, tuple) else one for one in held]
