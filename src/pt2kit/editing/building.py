"""Calls that are built: checked against the signatures of operators, with arguments from plain Python values.

Signatures are those that ship with `checks`. An operator that is not among them (of a library, or a higher-order one)
is taken at the caller's word: its arguments by name, its results by their metas. A text as an argument is what the
parameter's type makes of it: a device, an element type, or a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

from pt2kit import schema
from pt2kit.checks.operators import argument_problem, argument_problems, function_problems, result_problems
from pt2kit.editing.metas import Operand, device_of, entry, scalar_type
from pt2kit.errors import GraphError, Pt2Error
from pt2kit.graph.argument_values import ARMS
from pt2kit.graph.reading import MEMORY_FORMATS
from pt2kit.graph.traversal import is_custom, operator_namespace
from pt2kit.messages import count_text, kind_of, quote
from pt2kit.operators import schemas
from pt2kit.schema import Argument
from pt2kit.schema.names import HIGHER_ORDER_OPS, OPS
from pt2kit.schema.operators import COMPLETE, Operator, ValueType, nearest
from pt2kit.symbols.functions import TARGETS

_PLAIN_NAMES: Final = ("a", "b", "c")
"""Names that export gives to the arguments of functions over numbers."""

_CHOICE_NAMES: Final = ("b", "t", "f")


def full_target(operator: str, edit: str) -> str:
    """Return the full name of an operator: "aten::relu" -> "torch.ops.aten.relu.default".

    Raises:
        GraphError: an operator of torch that does not exist, or several overloads and none called "default".
    """
    if not isinstance(operator, str):
        raise GraphError(f"{edit}: expected the name of an operator, such as 'aten.relu', got {kind_of(operator)}")
    name = operator.replace("::", ".")
    if name in TARGETS or name.startswith("#"):
        return name
    name = name.removeprefix(OPS)
    known = schemas.operators("").schemas
    for whole in (name, f"{name}.default"):
        if whole in known:
            return f"{OPS}{whole}"
    parts = name.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise GraphError(f"{edit}: expected an operator as 'aten.add.Tensor' or '_operator.mul', got {quote(operator)}")
    target = f"{OPS}{name}"
    if operator_namespace(target) == "higher_order" or is_custom(target):
        return target if len(parts) > 2 or parts[0] == "higher_order" else f"{target}.default"
    if len(parts) > 2 and operator_namespace(target) not in COMPLETE:
        return target
    there = [one for one in known if one.startswith(f"{name}.")]
    if len(there) == 1:
        return f"{OPS}{there[0]}"
    problem = (
        f"expected an operator with its overload, got {name}" if there else f"no operator {name} in torch {nearest('')}"
    )
    raise GraphError(f"{edit}: {problem}{schemas.similar(name, known)}", rule="T1")


def check_call(node: schema.Node, edit: str, *, has_results: bool) -> None:
    """Refuse a call that the rules of `checks` refuse; one of an operator without a signature is not checked.

    Args:
        node: the call.
        edit: what messages call the edit.
        has_results: whether its results are defined already.

    Raises:
        GraphError: an argument, or a result, that the operator does not have (T3 to T6, T10).
    """
    signature = signature_of(node.target)
    problems = function_problems(node, edit)
    if signature is not None and not signature.is_open:
        results = result_problems(node, edit, signature) if has_results else ()
        problems = chain(argument_problems(node, edit, signature, lambda name: True), results)
    for problem in problems:
        raise GraphError(f"{edit}: {problem.message}", rule=problem.rule)


def check_argument(target: str, argument: schema.NamedArgument, edit: str) -> None:
    """Refuse an argument that an operator does not have (T3), or that does not fit its parameter (T5)."""
    signature = signature_of(target)
    if signature is not None and not signature.is_open:
        problem = argument_problem(target.removeprefix(OPS), argument, edit, signature, lambda name: True)
        if problem is not None:
            raise GraphError(f"{edit}: {problem.message}", rule=problem.rule)


def signature_of(target: str) -> Operator | None:
    """Return the signature of an operator; None if none ships."""
    return schemas.find(target, "") if target.startswith(OPS) else None


def bound_arguments(target: str, args: Sequence[Any], kwargs: Mapping[str, Any], edit: str) -> dict[str, Any]:
    """Return the arguments by parameter, in the order of the schema if there is one."""
    signature = signature_of(target)
    if target in TARGETS:
        names: Sequence[str] = _CHOICE_NAMES if target == "torch.sym_ite" else _PLAIN_NAMES
    elif signature is not None:
        names = [parameter.name for parameter in signature.parameters.values() if not parameter.is_keyword_only]
    elif target.startswith(HIGHER_ORDER_OPS):
        names = [str(position) for position in range(len(args))]
    else:
        names = ()
    if len(args) > len(names):
        why = "by name, as no signature of it ships" if not names else f"at most {len(names)} without a name"
        raise GraphError(f"{edit}: expected arguments {why}, got {len(args)}", rule="T3")
    by_parameter = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key in by_parameter:
            raise GraphError(f"{edit}: expected {quote(key)} once, got it twice", rule="T3")
        by_parameter[key] = value
    if signature is None:
        return by_parameter
    order = list(signature.parameters)
    return dict(sorted(by_parameter.items(), key=lambda row: order.index(row[0]) if row[0] in order else len(order)))


def result_metas(meta: Any, found: Operator | None, edit: str) -> list[Any]:
    """Return the metas of the results, one for each; a list for a result that is a list."""
    if found is None or found.is_open:
        results = list(meta) if isinstance(meta, tuple) else [meta]
    elif len(found.results) == 1:
        results = [meta]
        if found.results[0].is_list and not isinstance(meta, list | tuple):
            raise GraphError(f"{edit}: expected a list of metas for {found.results[0]}, got one meta")
    else:
        results = list(meta) if isinstance(meta, list | tuple) else [meta]
        if len(results) != len(found.results):
            raise GraphError(
                f"{edit}: expected {count_text(len(found.results), 'meta')}, one for each result, got {len(results)}"
            )
    return [
        [entry(one, edit) for one in result] if isinstance(result, list | tuple) else entry(result, edit)
        for result in results
    ]


_SYMBOLIC: Final[Mapping[str, tuple[type[Any], type[Any], tuple[str, ...]]]] = {
    "as_sym_int": (schema.SymIntArgument, int, ("as_int",)),
    "as_sym_float": (schema.SymFloatArgument, float, ("as_float", "as_int")),
    "as_sym_bool": (schema.SymBoolArgument, bool, ("as_bool",)),
}
"""Arm of an argument that names a number -> its class; type and arms of the constants that lists mix with it, the first
of which they are written as."""
_ROWS: Final = {"as_ints": "as_int_lists", "as_floats": "as_float_lists", "as_tensors": "as_nested_tensors"}
"""Arm of a list -> the arm of a list of such lists. A list of other items has their arm with an "s"."""
_EMPTY: Final = {"Tensor": "as_tensors", "float": "as_floats", "bool": "as_bools", "str": "as_strings"}


def to_argument(value: Any, kind: ValueType | None, edit: str) -> Argument:
    """Write a plain value as an argument.

    Args:
        value: a value of a graph, a node with one result, None, a number, a text, an enum or device of the schema, a
            list or dict of these, or a `schema.GraphArgument`.
        kind: the type of the parameter; None where it is not known.
        edit: what messages call the edit.

    Raises:
        GraphError: a value that the format has no kind for.
    """
    try:
        return _write(value, kind, edit)
    except Pt2Error as error:
        raise error if str(error).startswith(edit) else GraphError(f"{edit}: {error}") from None


def operands_of(value: Any) -> list[Operand]:
    """Return the values in a plain value, in the order in which its argument names them."""
    value = _result(value)
    if isinstance(value, Operand):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [one for item in items for one in operands_of(item)]


def argument_of(value: Operand) -> Argument:
    """Return the argument that names one value."""
    if value.kind == "tensor":
        return Argument(as_tensor=schema.TensorArgument(value.name))
    if value.kind == "custom_obj":
        return Argument(as_custom_obj=schema.CustomObjArgument(value.name, value.meta.class_fqn if value.meta else ""))
    arm = f"as_{value.kind}"
    return _of_arm(arm, _SYMBOLIC[arm][0](as_name=value.name))


def _of_arm(arm: str, held: Any) -> Argument:
    return Argument(**{arm: held})


def _write(value: Any, kind: ValueType | None, edit: str) -> Argument:
    base = kind.base if kind is not None else ""
    value = _result(value)
    if isinstance(value, Operand):
        if kind is not None and kind.is_list and value.kind == "tensor" and base == "Tensor":
            raise GraphError(
                f"{edit}: expected a list of tensors, got the value {quote(value.name)}; write it as a list"
            )
        return argument_of(value)
    if isinstance(value, list | tuple):
        return _list([_result(item) for item in value], kind, edit)
    if isinstance(value, dict):
        return Argument(as_string_to_argument={str(key): _write(item, None, edit) for key, item in value.items()})
    return _constant(value, base, edit)


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
    if isinstance(value, str):
        if base in ("Layout", "MemoryFormat"):
            return _named(value.removeprefix("torch."), base, edit)
        return Argument(as_string=str(value))
    if isinstance(value, bool):
        return Argument(as_bool=value)
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
    members: Mapping[str, Any] = MEMORY_FORMATS if base == "MemoryFormat" else schema.Layout.__members__
    member = members.get("Strided" if name == "strided" else name)
    if member is None:
        raise GraphError(f"{edit}: expected one of {', '.join(members)}, got {quote(name)}")
    return Argument(as_layout=member) if base == "Layout" else Argument(as_memory_format=member)


def _list(items: Sequence[Any], kind: ValueType | None, edit: str) -> Argument:
    """Write a list by the arms of its items: they have one, or are numbers of several types."""
    base = kind.base if kind is not None else ""
    takes_none = kind is not None and base == "Tensor" and kind.suffix.startswith("?[")
    if takes_none or any(item is None for item in items):
        return _optional_tensors(items, edit)
    if not items:
        return _of_arm(_EMPTY.get(base, "as_ints"), [])
    written = [_write(item, None, edit) for item in items]
    held = [one.value for one in written]
    arms = {one.type for one in written}
    if arms == {"as_tensors", "as_ints"} and not any(one.as_ints for one in written):
        arms = {"as_tensors"}  # An empty row is one of ints by itself.
    one = next(iter(arms))
    if len(arms) == 1 and (arm := _ROWS.get(one, f"{one}s")) in ARMS:
        return _of_arm(arm, held)
    if arms <= {"as_bool", "as_int", "as_float"}:
        return Argument(as_floats=list(map(float, held)))
    if arms <= {"as_ints", "as_floats"}:
        return Argument(as_float_lists=[list(map(float, row)) for row in held])
    for arm, (cls, number, plain) in _SYMBOLIC.items():
        if arm in arms and arms <= {arm, *plain}:
            named = [one if isinstance(one, cls) else cls(**{plain[0]: number(one)}) for one in held]
            return _of_arm(f"{arm}s", named)
    expected = "a list of values of one kind" if operands_of(items) else "a list of one kind of values"
    if any(isinstance(one, list) for one in held):
        expected = "rows of tensors or of numbers"
    raise GraphError(f"{edit}: expected {expected}, got {quote(repr(list(items)))}")


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
