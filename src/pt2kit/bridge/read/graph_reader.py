"""Read a `schema.Graph` step by step: inputs, subgraphs, calls with their arguments and results, outputs.

`GraphReader` resolves names and arguments, and refuses what contradicts itself. What it reads is emitted by a subclass:
as nodes of torch.fx (`read/graph.py`), or as steps of a function (`run/build.py`).

Arguments are checked against the operator's schema. `READERS` has an entry for each arm of `schema.Argument`; nothing
else in this subpackage interprets an arm as an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.operators import DTYPES, LAYOUTS, MEMORY_FORMATS, Operator
from pt2kit.bridge.read.names import check_value_names, check_variable
from pt2kit.bridge.read.tensors import Devices
from pt2kit.checks.calls import singles
from pt2kit.checks.operators import (
    INT64,
    argument_problems,
    exceeds,
    function_problems,
    is_by_place,
    misfit,
    result_problems,
)
from pt2kit.errors import GraphError, LimitError, OperatorError, Pt2Error, UnsupportedError
from pt2kit.graph.argument_values import ARMS, MAX_ARGUMENT_DEPTH, ONE_VALUE, ValueKind, arguments
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH, node_label
from pt2kit.messages import printable, quote
from pt2kit.schema.names import MODULE_ATTRIBUTES
from pt2kit.schema.operators import Operator as Signature

CONSTANTS: Final = frozenset(("as_int", "as_float", "as_bool", "as_none", "as_string"))
"""Arms of inputs that are constants of the calling convention."""
_NAMED: Final = ONE_VALUE | {"as_optional_tensor"}
_NO_INPUTS: Final = frozenset(("as_optional_tensor",))
_NO_OUTPUTS: Final = frozenset(("as_graph", "as_operator", "as_string_to_argument"))
_LISTS: Final[Mapping[str, str]] = MappingProxyType({f"{arm}s": arm for arm in _NAMED if f"{arm}s" in ARMS})
"""Arm of a result that is a list -> arm of its entries."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Tables that the graphs of one program share.

    Args:
        operators: target -> operator, for every target in the program.
        devices: where its tensors go.
        constants: name -> live object, for custom objects that are in the graph itself.
        inner: names of the constants that were found in the graph itself; grows.
    """

    operators: Mapping[str, Operator]
    devices: Devices
    constants: Mapping[str, Any]
    inner: set[str] = field(default_factory=set, kw_only=True)


class GraphReader:
    """Reads one graph. Subclasses emit each step, and choose what represents a value.

    Args:
        source: the graph to read.
        shared: what the program's graphs share.
        where: its place, for messages.
        depth: 0 for the root.

    Raises:
        GraphError: a name that is no variable, or that has two descriptions.
        LimitError: subgraphs nest too deep.
    """

    value_type: ClassVar[type]
    """Class of the objects that represent values."""

    def __init__(self, source: schema.Graph, shared: Shared, where: str, depth: int) -> None:
        if depth > MAX_SUBGRAPH_DEPTH:
            raise LimitError(f"{where}: expected subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep, got more")
        self.source = source
        self.shared = shared
        self.where = where
        self.depth = depth
        self.place = where
        """Position of the reader, for messages; set before each step."""
        self.kinds = check_value_names(source, where)
        self.nodes: dict[str, Any] = {}
        """Values by name: nodes of a live graph, or whatever the subclass makes of them."""
        self.subgraphs: dict[str, tuple[schema.Graph, Any]] = {}

    def read(self) -> list[Any]:
        """Emit the inputs and calls in order, and return the outputs: values and constants.

        Raises:
            GraphError: the graph contradicts itself.
            OperatorError: a node calls its operator wrongly.
            UnsupportedError: something that torch has no live form of.
            LimitError: subgraphs nest too deep.
        """
        for index, argument in enumerate(self.source.inputs):
            self.place = f"{self.where}.inputs[{index}]"
            arm = argument.type
            name = None if arm in _NO_INPUTS else value_name(argument)
            if name is not None:
                self.define(name, self.add_input(name, index))
            elif arm in CONSTANTS:
                self.add_constant_input(argument, index)
            else:
                raise GraphError(f"{self.place}: expected a named value or a constant, got {arm}")
        operators = self.shared.operators
        for number, node in enumerate(self.source.nodes):
            label = printable(node_label(node, number))
            self.place = f"{self.where}.nodes[{number}]: node {label} ({node.target})"
            if node.name and not node.name.isidentifier():
                message = f"expected an identifier, got {quote(node.name)}"
                raise GraphError(f"{self.where}.nodes[{number}].name: {message}", rule="G15")
            operator = operators[node.target]
            args, kwargs = read_call(node, operator, self)
            self.add_call(node, label, operator, args, kwargs)
        return self._outputs()

    def _outputs(self) -> list[Any]:
        results = []
        for index, argument in enumerate(self.source.outputs):
            self.place = f"{self.where}.outputs[{index}]"
            arm = argument.type
            if arm in _NO_OUTPUTS:
                raise GraphError(f"{self.place}: expected a value or a constant, got {arm}")
            results.append(read_argument(argument, self))
        if self.source.is_single_tensor_return and (len(results) != 1 or not isinstance(results[0], self.value_type)):
            raise GraphError(f"{self.where}.outputs: expected one value, as is_single_tensor_return says")
        return results

    def use(self, name: str, kind: ValueKind | None = None) -> Any:
        """Return a value by its name.

        Args:
            name: the name.
            kind: what the value has to be; None for any.

        Raises:
            GraphError: no graph input and no earlier node defines it, or it is none.
        """
        if name not in self.nodes:
            raise GraphError(f"{self.place}: expected a value that is defined before, got {name[:80]!a}")
        if kind is not None and self.kinds[name] != kind:
            raise GraphError(f"{self.place}: expected a {kind} value, got {name}, which is a {self.kinds[name]} value")
        return self.nodes[name]

    def subgraph(self, value: schema.GraphArgument) -> Any:
        """Return a reference to a subgraph; one that several calls share is stored with each of them, and built once.

        Raises:
            GraphError: the name is taken.
            OperatorError: it is no name of an attribute.
        """
        name = value.name
        known = self.subgraphs.get(name)
        if known is None:
            check_variable(name, f"{self.place}: name of a subgraph", OperatorError, rule="G15")
            if name in MODULE_ATTRIBUTES:
                message = f"expected a free name for a subgraph, got {name}, which modules have"
                raise GraphError(f"{self.place}: {message}", rule="G15")
            known = value.graph, self.build_subgraph(value, f"{self.place}: subgraph {name}")
            self.subgraphs[name] = known
        elif known[0] is not value.graph and known[0] != value.graph:
            raise GraphError(f"{self.place}: expected one subgraph of the name {name}, got two that differ")
        return self.refer(name, known[1])

    def define(self, name: str, value: Any) -> None:
        """Define a value.

        Raises:
            GraphError: the name is taken, or the graph does not describe the value.
        """
        if name in self.nodes:
            raise GraphError(f"{self.place}: expected a value that is defined once, got {name[:80]!a} again")
        if name not in self.kinds:
            raise GraphError(f"{self.place}: expected a value that the graph describes, got {name[:80]!a}")
        self.nodes[name] = value

    def define_results(self, made: Any, outputs: Sequence[schema.Argument], *, is_tuple: bool) -> None:
        """Define the outputs that a node declares: as the result of its call, or as parts of it.

        Args:
            made: the value of the call.
            outputs: what the node declares.
            is_tuple: its one output is inside a tuple.

        Raises:
            GraphError: an output that names no value, or one that is taken or not described.
        """
        if len(outputs) == 1 and not is_tuple:
            [output] = outputs
            name = value_name(output)
            if name is not None:
                self.define(name, made)
                return
            if output.as_none is not UNSET:
                self.add_none(made)
                return
            if output.type in _LISTS:
                outputs = result_entries(output)
        self.add_parts(made, tuple(self._parts(made, outputs)))

    def _parts(self, made: Any, outputs: Sequence[schema.Argument]) -> list[Any]:
        """Return the parts of a result, defined if they have names; those without a value are left to the subclass."""
        parts = []
        for index, output in enumerate(outputs):
            name = value_name(output)
            if output.type in _LISTS:
                part = self.add_item(made, index, None)
                self.add_parts(part, self._parts(part, result_entries(output)))
            elif name is not None:
                part = self.add_item(made, index, name)
                self.define(name, part)
            elif output.as_none is not UNSET:
                part = self.add_none_item(made, index)
            else:
                raise GraphError(f"{self.place}: outputs[{index}]: expected a named value, got {output.type}")
            parts.append(part)
        return parts

    # Methods that subclasses implement. Those that do nothing by default return nothing that is used.

    def add_input(self, name: str, index: int) -> Any:
        """Emit an input, and return its value."""
        raise NotImplementedError

    def add_constant_input(self, argument: schema.Argument, index: int) -> None:
        """Emit an input that is a constant, to which nothing refers."""
        raise NotImplementedError

    def add_call(
        self, node: schema.Node, label: str, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Emit a call, and define its results."""
        raise NotImplementedError

    def add_item(self, made: Any, index: int, name: str | None) -> Any:
        """Emit a part of a result, and return its value."""
        raise NotImplementedError

    def build_subgraph(self, value: schema.GraphArgument, where: str) -> Any:
        """Build a subgraph."""
        raise NotImplementedError

    def refer(self, name: str, made: Any) -> Any:
        """Return the argument for a subgraph that was built."""
        return made

    def add_none(self, made: Any) -> None:
        """Complete a call whose result is None."""

    def add_none_item(self, made: Any, index: int) -> Any:
        """Emit a part of a result that is None."""

    def add_parts(self, made: Any, parts: Sequence[Any]) -> None:
        """Complete a call or a list whose parts were emitted."""


def result_entries(output: schema.Argument) -> list[schema.Argument]:
    """Return the entries of a list of results, as outputs of their own."""
    arm = output.type
    if arm == "as_optional_tensors":
        return [
            schema.Argument(as_none=True) if item.as_tensor is UNSET else schema.Argument(as_tensor=item.as_tensor)
            for item in output.as_optional_tensors  # type: ignore[union-attr]
        ]
    return [schema.Argument(**{_LISTS[arm]: item}) for item in getattr(output, arm)]


def value_name(output: schema.Argument) -> str | None:
    """Return the name of the value that an output is, or None if it names none."""
    if output.as_tensor is not UNSET:
        return output.as_tensor.name
    return next(arguments(output), None) if output.type in _NAMED else None


Reader: TypeAlias = "Callable[[Any, GraphReader], Any]"


def read_argument(argument: schema.Argument, scope: GraphReader) -> Any:
    """Return the live form of a node's argument.

    Raises:
        GraphError: a value that is not defined.
        UnsupportedError: something that torch has no live form of.
    """
    arm = argument.type
    return READERS[arm](getattr(argument, arm), scope)


def _tensors(values: list[schema.TensorArgument], scope: GraphReader) -> list[Any]:
    return [scope.use(value.name) for value in values]  # Numbers that a while_loop carries are written so, too.


def _optional_tensor(value: schema.OptionalTensorArgument, scope: GraphReader) -> Any:
    return None if value.as_tensor is UNSET else scope.use(value.as_tensor.name, "tensor")


def _symbolic(kind: ValueKind) -> Reader:
    def read(value: Any, scope: GraphReader) -> Any:
        if value.as_name is not UNSET:
            return scope.use(value.as_name, kind)
        constant = value.value
        return float(constant) if isinstance(constant, float) else constant

    return read


def _enum(table: Mapping[Any, Any]) -> Reader:
    def read(value: Any, scope: GraphReader) -> Any:
        if value not in table:
            raise UnsupportedError(f"{scope.place}: expected a {type(value).__name__} that torch has, got {value.name}")
        return table[value]

    return read


def _operator(value: str, scope: GraphReader) -> Any:
    operator = scope.shared.operators.get(value)
    if operator is None:
        raise OperatorError(f"{scope.place}: expected an operator, got {value[:80]!a}")
    return operator.target


def _custom_object(value: schema.CustomObjArgument, scope: GraphReader) -> Any:
    if value.name in scope.nodes:
        return scope.use(value.name, "custom_obj")
    if value.name not in scope.shared.constants:
        raise GraphError(f"{scope.place}: expected a custom object of the constants, got {value.name[:80]!a}")
    scope.shared.inner.add(value.name)
    return scope.shared.constants[value.name]


def _entries(values: dict[str, schema.Argument], scope: GraphReader, depth: int = 1) -> dict[str, Any]:
    if depth > MAX_ARGUMENT_DEPTH:
        raise LimitError(f"{scope.place}: expected dicts nested at most {MAX_ARGUMENT_DEPTH} levels deep, got more")
    entries = {}
    for key, argument in values.items():
        inner = argument.as_string_to_argument
        entries[key] = read_argument(argument, scope) if inner is UNSET else _entries(inner, scope, depth + 1)
    return entries


def _each(read: Reader) -> Reader:
    return lambda values, scope: [read(value, scope) for value in values]


_SINGLE: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "as_none": lambda value, scope: None,
        "as_tensor": lambda value, scope: scope.use(value.name, "tensor"),
        "as_int": lambda value, scope: value,
        "as_float": lambda value, scope: float(value),
        "as_string": lambda value, scope: value,
        "as_sym_int": _symbolic("sym_int"),
        "as_scalar_type": _enum(DTYPES),
        "as_memory_format": _enum(MEMORY_FORMATS),
        "as_layout": _enum(LAYOUTS),
        "as_device": lambda value, scope: scope.shared.devices.find(value, scope.place),
        "as_bool": lambda value, scope: value,
        "as_sym_bool": _symbolic("sym_bool"),
        "as_graph": lambda value, scope: scope.subgraph(value),
        "as_custom_obj": _custom_object,
        "as_operator": _operator,
        "as_sym_float": _symbolic("sym_float"),
        "as_optional_tensor": _optional_tensor,
        "as_complex": lambda value, scope: complex(value.real, value.imag),
        "as_string_to_argument": _entries,
    }
)
READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        **_SINGLE,
        **{f"{arm}s": _each(read) for arm, read in _SINGLE.items() if f"{arm}s" in ARMS},
        **{f"{arm}_lists": _each(_each(read)) for arm, read in _SINGLE.items() if f"{arm}_lists" in ARMS},
        "as_tensors": _tensors,
        "as_nested_tensors": _each(_tensors),
    }
)
"""Reader for each arm of `schema.Argument`: makes the live argument of the arm's value."""


def read_call(node: schema.Node, operator: Operator, scope: GraphReader) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a node's call.

    Args:
        node: the node.
        operator: what it calls.
        scope: the reader of its graph; its place is that of the node.

    Raises:
        GraphError: it uses what is not defined.
        OperatorError: it calls its operator wrongly, or names another number of results.
        UnsupportedError: an argument that torch has no live form of.
    """
    if operator.signature is not None:
        return _by_schema(node, operator, operator.signature, scope)
    for problem in function_problems(node, scope.place):
        raise OperatorError(f"{scope.place}: {problem.message}", rule=problem.rule)
    if operator.kind == "symbolic":  # All by place, regardless of their names.
        for named in filter(lambda one: one.name and not one.name.isidentifier(), node.inputs):
            raise GraphError(f"{scope.place}: expected an identifier, got {named.name[:80]!a}", rule="G15")
        return tuple(_live(named, index, scope) for index, named in enumerate(node.inputs)), {}
    return _without_schema(node, scope)


def is_unpacked(node: schema.Node, operator: Operator) -> bool:
    """Return whether the one output that a node declares is inside a tuple."""
    if operator.kind != "higher_order" or node.is_hop_single_tensor_return:
        return False
    return len(node.outputs) == 1 and node.outputs[0].as_none is UNSET


def _by_schema(
    node: schema.Node, operator: Operator, signature: Signature, scope: GraphReader
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of an operator with a schema.

    An argument is passed as the file states. Files before 8.6 do not state it: then required ones are positional,
    the others keyword arguments. A name that is a keyword of Python can only be passed by position.
    """
    by_name = {named.name: named for named in node.inputs}
    fits = len(by_name) == len(node.inputs) and by_name.keys() <= signature.parameters.keys()
    fits = fits and len(node.outputs) == len(operator.result_arms)
    fits = fits and all(
        arms is None or output.type in arms for output, arms in zip(node.outputs, operator.result_arms, strict=True)
    )
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        named = by_name.get(name)
        if named is None:
            fits = fits and not parameter.is_required
            continue
        is_placed, arms, arm = is_by_place(parameter, named.kind), operator.arms[name], named.arg.type
        fits = fits and (arms is None or arm in arms)
        is_element = parameter.type.base != "Tensor" and arm in ("as_tensor", "as_tensors")
        if is_element or exceeds(named.arg, INT64):
            fits = fits and misfit(named.arg, parameter.type, singles(scope.source), numbers_as_tensors=True) is None
        if not fits or (is_placed and (parameter.is_keyword_only or len(args) < index)):
            raise _misfit(node, signature, scope)
        value = _live(named, index, scope)
        if is_placed:
            args.append(value)
        else:
            kwargs[name] = value
    if not fits:
        raise _misfit(node, signature, scope)
    return tuple(args), kwargs


def _misfit(node: schema.Node, signature: Signature, scope: GraphReader) -> OperatorError:
    """Return the error of a call that the schema of its operator does not allow, as `check` words it."""
    found = chain(
        argument_problems(node, scope.place, signature, singles(scope.source)),
        result_problems(node, scope.place, signature),
    )
    for problem in found:
        return OperatorError(f"{scope.place}: {problem.message}", rule=problem.rule)
    return OperatorError(f"{scope.place}: expected arguments and results that fit {signature.name}, got others")


def _live(named: schema.NamedArgument, index: int, scope: GraphReader) -> Any:
    """Return the live form of an argument; an error names it after the node, unless it is in a subgraph."""
    try:
        return read_argument(named.arg, scope)
    except Pt2Error as error:
        before, place, rest = error.message.partition(f"{scope.place}: ")
        if before or not place:
            raise
        label = repr(named.name) if named.name else index
        raise type(error)(f"{place}argument {label}: {rest}", rule=error.rule) from error


def _without_schema(node: schema.Node, scope: GraphReader) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a higher-order operator or a function: unnamed ones, or marked so, are positional.

    `function_problems` has checked their order, and that no name stands twice.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for index, named in enumerate(node.inputs):
        value = _live(named, index, scope)
        if named.is_placed:
            args.append(value)
            continue
        check_variable(named.name, f"{scope.place}: name of an argument", OperatorError)
        kwargs[named.name] = value
    return tuple(args), kwargs
