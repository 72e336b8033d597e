"""Types and enums of the current schema, in the order of the format: the JSON of a `.pt2` as Python objects.

Each field has its wire id and the version that introduced it; for the values of enums, the frozen tables have it.
Frozen: change with `msgspec.structs.replace`. Unions (`Union`) hold exactly one field. A file holds the numbers of
enums. The frozen tables of all versions are in `history/`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, Any

from msgspec import UNSET, UnsetType, field
from msgspec.structs import astuple, force_setattr

from pt2kit.front_door import registered
from pt2kit.messages import count_text
from pt2kit.schema.wire import (
    Float,
    FloatUnion,
    FrozenDict,
    FrozenList,
    Holder,
    Object,
    Union,
    as_float,
    as_floats,
    wire,
)


class ScalarType(IntEnum):
    """The element type of a tensor."""

    UNKNOWN = 0
    BYTE = 1
    CHAR = 2
    SHORT = 3
    INT = 4
    LONG = 5
    HALF = 6
    FLOAT = 7
    DOUBLE = 8
    COMPLEXHALF = 9
    COMPLEXFLOAT = 10
    COMPLEXDOUBLE = 11
    BOOL = 12
    BFLOAT16 = 13
    UINT16 = 28
    FLOAT8E4M3FN = 29
    FLOAT8E5M2 = 30
    FLOAT8E4M3FNUZ = 31
    FLOAT8E5M2FNUZ = 32
    FLOAT8E8M0FNU = 33
    UINT32 = 34
    UINT64 = 35


class Layout(IntEnum):
    """Memory layout of a tensor's elements."""

    Unknown = 0
    SparseCoo = 1
    SparseCsr = 2
    SparseCsc = 3
    SparseBsr = 4
    SparseBsc = 5
    _mkldnn = 6
    Strided = 7


class MemoryFormat(IntEnum):
    """The order of the dimensions in memory."""

    Unknown = 0
    ContiguousFormat = 1
    ChannelsLast = 2
    ChannelsLast3d = 3
    PreserveFormat = 4


class Device(Object, frozen=True):
    """A device as the program names it: its type ("cpu", "cuda", …) and, where it has one, its index."""

    type: Annotated[str, wire(10, since="1")]
    index: Annotated[int | None, wire(20, since="1")] = None


class SymExprHint(FloatUnion, frozen=True):
    """The value a symbolic expression had in the example that was exported."""

    as_int: Annotated[int | UnsetType, wire(10, since="2")] = UNSET
    as_bool: Annotated[bool | UnsetType, wire(20, since="2")] = UNSET
    as_float: Annotated[Float | UnsetType, wire(30, since="2")] = UNSET


class SymExpr(Object, frozen=True):
    """A symbolic expression as text (`pt2kit.symbols` reads both of its dialects) and its value in the example."""

    expr_str: Annotated[str, wire(10, since="1")]
    hint: Annotated[SymExprHint | None, wire(20, since="1")] = None


class SymInt(Union, frozen=True):
    """An integer, known or symbolic."""

    as_expr: Annotated[SymExpr | UnsetType, wire(10, since="1")] = UNSET
    as_int: Annotated[int | UnsetType, wire(20, since="1")] = UNSET

    # Programs hold tens of thousands of these; the general check takes twice as long.
    def __post_init__(self) -> None:
        if (self.as_int is UNSET) is (self.as_expr is UNSET):
            self._refuse()


class SymFloat(FloatUnion, frozen=True):
    """A float, known or symbolic."""

    as_expr: Annotated[SymExpr | UnsetType, wire(10, since="8.2")] = UNSET
    as_float: Annotated[Float | UnsetType, wire(20, since="8.2")] = UNSET


class SymBool(Union, frozen=True):
    """A truth value, known or symbolic."""

    as_expr: Annotated[SymExpr | UnsetType, wire(10, since="1")] = UNSET
    as_bool: Annotated[bool | UnsetType, wire(20, since="1")] = UNSET


class TensorMeta(Holder, frozen=True):
    """Description of a tensor without its bytes; `sizes`, `strides` and `storage_offset` count elements."""

    dtype: Annotated[ScalarType, wire(10, since="1")]
    sizes: Annotated[list[SymInt], wire(20, since="1")]
    requires_grad: Annotated[bool, wire(30, since="1")]
    device: Annotated[Device, wire(40, since="1")]
    strides: Annotated[list[SymInt], wire(50, since="1")]
    storage_offset: Annotated[SymInt, wire(60, since="1")]
    layout: Annotated[Layout, wire(70, since="1")]


class SymIntArgument(Union, frozen=True):
    """An integer argument: a constant, or the name of a value."""

    as_name: Annotated[str | UnsetType, wire(10, since="1")] = UNSET
    as_int: Annotated[int | UnsetType, wire(20, since="1")] = UNSET

    def __post_init__(self) -> None:
        if (self.as_int is UNSET) is (self.as_name is UNSET):
            self._refuse()


class SymFloatArgument(FloatUnion, frozen=True):
    """A float argument: a constant, or the name of a value."""

    as_name: Annotated[str | UnsetType, wire(10, since="8.2")] = UNSET
    as_float: Annotated[Float | UnsetType, wire(20, since="8.2")] = UNSET


class SymBoolArgument(Union, frozen=True):
    """A truth-value argument: a constant, or the name of a value."""

    as_name: Annotated[str | UnsetType, wire(10, since="1")] = UNSET
    as_bool: Annotated[bool | UnsetType, wire(20, since="1")] = UNSET


class TensorArgument(Object, frozen=True):
    """A tensor value, by name."""

    name: Annotated[str, wire(10, since="1")]


class TokenArgument(Object, frozen=True):
    """An effect token, by name; it orders side effects and holds no data."""

    name: Annotated[str, wire(10, since="5.3")]


class OptionalTensorArgument(Union, frozen=True):
    """One entry of a list that may hold tensors and None."""

    as_tensor: Annotated[TensorArgument | UnsetType, wire(20, since="1")] = UNSET
    as_none: Annotated[bool | UnsetType, wire(10, since="1")] = UNSET


class GraphArgument(Object, frozen=True):
    """A subgraph, carried whole, and the attribute name it has in its owner."""

    name: Annotated[str, wire(10, since="1")]
    graph: Annotated[Graph, wire(20, since="1")]


class CustomObjArgument(Object, frozen=True):
    """A custom object (torchbind or opaque), by name, and the qualified name of its class."""

    name: Annotated[str, wire(10, since="2")]
    class_fqn: Annotated[str, wire(20, since="5.1")]


class ComplexValue(Object, frozen=True):
    """A complex constant."""

    real: Annotated[Float, wire(10, since="8.14")]
    imag: Annotated[Float, wire(20, since="8.14")]

    def __post_init__(self) -> None:
        for name in ("real", "imag"):
            force_setattr(self, name, as_float(getattr(self, name)))


class Argument(Union, frozen=True):
    """One value that goes into or comes out of a node, a graph or a module call."""

    as_none: Annotated[bool | UnsetType, wire(10, since="1")] = UNSET
    as_tensor: Annotated[TensorArgument | UnsetType, wire(20, since="1")] = UNSET
    as_tensors: Annotated[list[TensorArgument] | UnsetType, wire(30, since="1")] = UNSET
    as_int: Annotated[int | UnsetType, wire(50, since="1")] = UNSET
    as_ints: Annotated[list[int] | UnsetType, wire(70, since="1")] = UNSET
    as_float: Annotated[Float | UnsetType, wire(80, since="1")] = UNSET
    as_floats: Annotated[list[Float] | UnsetType, wire(90, since="1")] = UNSET
    as_string: Annotated[str | UnsetType, wire(100, since="1")] = UNSET
    as_strings: Annotated[list[str] | UnsetType, wire(101, since="1")] = UNSET
    as_sym_int: Annotated[SymIntArgument | UnsetType, wire(110, since="1")] = UNSET
    as_sym_ints: Annotated[list[SymIntArgument] | UnsetType, wire(120, since="1")] = UNSET
    as_scalar_type: Annotated[ScalarType | UnsetType, wire(130, since="1")] = UNSET
    as_memory_format: Annotated[MemoryFormat | UnsetType, wire(140, since="1")] = UNSET
    as_layout: Annotated[Layout | UnsetType, wire(150, since="1")] = UNSET
    as_device: Annotated[Device | UnsetType, wire(160, since="1")] = UNSET
    as_bool: Annotated[bool | UnsetType, wire(170, since="1")] = UNSET
    as_bools: Annotated[list[bool] | UnsetType, wire(180, since="1")] = UNSET
    as_sym_bool: Annotated[SymBoolArgument | UnsetType, wire(182, since="1")] = UNSET
    as_sym_bools: Annotated[list[SymBoolArgument] | UnsetType, wire(184, since="1")] = UNSET
    as_graph: Annotated[GraphArgument | UnsetType, wire(200, since="1")] = UNSET
    as_optional_tensors: Annotated[list[OptionalTensorArgument] | UnsetType, wire(190, since="1")] = UNSET
    as_custom_obj: Annotated[CustomObjArgument | UnsetType, wire(210, since="1")] = UNSET
    as_operator: Annotated[str | UnsetType, wire(220, since="5.1")] = UNSET
    as_sym_float: Annotated[SymFloatArgument | UnsetType, wire(230, since="8.2")] = UNSET
    as_sym_floats: Annotated[list[SymFloatArgument] | UnsetType, wire(240, since="8.2")] = UNSET
    as_optional_tensor: Annotated[OptionalTensorArgument | UnsetType, wire(250, since="8.8")] = UNSET
    as_complex: Annotated[ComplexValue | UnsetType, wire(260, since="8.14")] = UNSET
    as_nested_tensors: Annotated[list[list[TensorArgument]] | UnsetType, wire(270, since="8.17")] = UNSET
    as_int_lists: Annotated[list[list[int]] | UnsetType, wire(280, since="8.15")] = UNSET
    as_string_to_argument: Annotated[dict[str, Argument] | UnsetType, wire(290, since="8.15")] = UNSET
    as_float_lists: Annotated[list[list[Float]] | UnsetType, wire(300, since="8.20")] = UNSET

    def __post_init__(self) -> None:
        if astuple(self).count(UNSET) != _OTHER_ARMS:
            self._refuse()
        # Most arguments are tensors, then ints; each further look costs a tenth of the check.
        if self.as_tensor is not UNSET or self.as_int is not UNSET:
            return
        for name, own in _OWN_FORMS:
            value = getattr(self, name)
            if value is not UNSET:
                force_setattr(self, name, own(value))
                return


def _rows(values: list[list[Any]]) -> FrozenList:
    return FrozenList(map(FrozenList, values))


_OTHER_ARMS = len(Argument.__struct_fields__) - 1
_OWN_FORMS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("as_ints", FrozenList),
    ("as_sym_ints", FrozenList),
    ("as_tensors", FrozenList),
    ("as_float", as_float),
    ("as_floats", as_floats),
    ("as_strings", FrozenList),
    ("as_bools", FrozenList),
    ("as_sym_bools", FrozenList),
    ("as_sym_floats", FrozenList),
    ("as_optional_tensors", FrozenList),
    ("as_nested_tensors", _rows),
    ("as_int_lists", _rows),
    ("as_float_lists", lambda rows: FrozenList(map(as_floats, rows))),
    ("as_string_to_argument", FrozenDict),
)
"""Conversion of arms that an argument does not hold as they are passed, the frequent ones first."""


class ArgumentKind(IntEnum):
    """Way of passing an argument."""

    UNKNOWN = 0
    POSITIONAL = 1
    KEYWORD = 2


class NamedArgument(Object, frozen=True):
    """An argument with its parameter name in the operator's schema; the name is empty if there is none."""

    name: Annotated[str, wire(10, since="1")]
    arg: Annotated[Argument, wire(20, since="1")]
    kind: Annotated[ArgumentKind | None, wire(30, since="8.6")] = None

    @property
    def is_placed(self) -> bool:
        """Return whether an operator without a schema gets the argument by place, also if it has a name."""
        return self.kind is ArgumentKind.POSITIONAL or not self.name


class Node(Holder, frozen=True):
    """One call: the operator's name, its arguments, and the values it defines."""

    target: Annotated[str, wire(10, since="1")]
    inputs: Annotated[list[NamedArgument], wire(20, since="1")]
    outputs: Annotated[list[Argument], wire(30, since="1")]
    metadata: Annotated[dict[str, str], wire(40, since="1")]
    is_hop_single_tensor_return: Annotated[bool | None, wire(50, since="8.6")] = None
    name: Annotated[str | None, wire(60, since="8.17")] = None

    # Programs hold thousands of these; the general way takes three times as long.
    def __post_init__(self) -> None:
        force_setattr(self, "inputs", FrozenList(self.inputs))
        force_setattr(self, "outputs", FrozenList(self.outputs))
        force_setattr(self, "metadata", FrozenDict(self.metadata))


def share_arguments(nodes: list[Node], known: dict[str, Argument]) -> None:
    """Make equal tensor arguments of nodes one object: programs name each value once for each of its uses.

    Args:
        nodes: some nodes of a program that nobody else has yet.
        known: value -> its argument, of the nodes before; added to.
    """
    for node in nodes:
        for named in node.inputs:
            tensor = named.arg.as_tensor
            if tensor is not UNSET and (one := known.setdefault(tensor.name, named.arg)) is not named.arg:
                force_setattr(named, "arg", one)
        for argument in node.outputs:
            if argument.as_tensor is not UNSET:
                known.setdefault(argument.as_tensor.name, argument)


class Graph(Holder, frozen=True):
    """A flat list of calls in execution order, and descriptions of all values in it."""

    inputs: Annotated[list[Argument], wire(10, since="1")]
    outputs: Annotated[list[Argument], wire(20, since="1")]
    nodes: Annotated[list[Node], wire(30, since="1")]
    tensor_values: Annotated[dict[str, TensorMeta], wire(40, since="1")]
    sym_int_values: Annotated[dict[str, SymInt], wire(50, since="1")]
    sym_bool_values: Annotated[dict[str, SymBool], wire(60, since="1")]
    is_single_tensor_return: Annotated[bool, wire(70, since="1")] = False
    custom_obj_values: Annotated[dict[str, CustomObjArgument], wire(80, since="5.1")] = field(default_factory=dict)
    sym_float_values: Annotated[dict[str, SymFloat], wire(90, since="8.2")] = field(default_factory=dict)


class UserInputSpec(Object, frozen=True):
    """A graph input that the caller passes."""

    arg: Annotated[Argument, wire(10, since="2")]


class ConstantValue(FloatUnion, frozen=True):
    """A constant of the calling convention."""

    as_none: Annotated[bool | UnsetType, wire(10, since="5.3")] = UNSET
    as_int: Annotated[int | UnsetType, wire(20, since="5.3")] = UNSET
    as_float: Annotated[Float | UnsetType, wire(30, since="5.3")] = UNSET
    as_string: Annotated[str | UnsetType, wire(40, since="5.3")] = UNSET
    as_bool: Annotated[bool | UnsetType, wire(50, since="5.3")] = UNSET


class InputToConstantInputSpec(Object, frozen=True):
    """An input that was a constant at export: its placeholder and the value it must have."""

    name: Annotated[str, wire(10, since="8.2")]
    value: Annotated[ConstantValue, wire(20, since="8.2")]


class InputToParameterSpec(Object, frozen=True):
    """A graph input that is a parameter of the module."""

    arg: Annotated[TensorArgument, wire(10, since="2")]
    parameter_name: Annotated[str, wire(20, since="2")]


class InputToBufferSpec(Object, frozen=True):
    """A graph input that is a buffer of the module; persistent ones are in the state dict."""

    arg: Annotated[TensorArgument, wire(10, since="2")]
    buffer_name: Annotated[str, wire(20, since="2")]
    persistent: Annotated[bool, wire(30, since="5.1")]


class InputToTensorConstantSpec(Object, frozen=True):
    """A graph input that is a tensor constant lifted out of the code."""

    arg: Annotated[TensorArgument, wire(10, since="2")]
    tensor_constant_name: Annotated[str, wire(20, since="2")]


class InputToCustomObjSpec(Object, frozen=True):
    """A graph input that is a custom object."""

    arg: Annotated[CustomObjArgument, wire(10, since="5.1")]
    custom_obj_name: Annotated[str, wire(20, since="5.1")]


class InputTokenSpec(Object, frozen=True):
    """A graph input that is an effect token."""

    arg: Annotated[TokenArgument, wire(10, since="5.3")]


class InputSpec(Union, frozen=True):
    """Kind and name of one graph input; in the order of `Graph.inputs`."""

    user_input: Annotated[UserInputSpec | UnsetType, wire(10, since="2")] = UNSET
    parameter: Annotated[InputToParameterSpec | UnsetType, wire(20, since="2")] = UNSET
    buffer: Annotated[InputToBufferSpec | UnsetType, wire(30, since="2")] = UNSET
    tensor_constant: Annotated[InputToTensorConstantSpec | UnsetType, wire(40, since="2")] = UNSET
    custom_obj: Annotated[InputToCustomObjSpec | UnsetType, wire(50, since="5.1")] = UNSET
    token: Annotated[InputTokenSpec | UnsetType, wire(70, since="5.3")] = UNSET
    constant_input: Annotated[InputToConstantInputSpec | UnsetType, wire(60, since="5.3")] = UNSET


class UserOutputSpec(Object, frozen=True):
    """A graph output that is returned to the caller."""

    arg: Annotated[Argument, wire(10, since="2")]


class LossOutputSpec(Object, frozen=True):
    """The graph output that is the loss of a joint graph."""

    arg: Annotated[TensorArgument, wire(10, since="2")]


class BufferMutationSpec(Object, frozen=True):
    """A graph output that is the new value of a buffer."""

    arg: Annotated[TensorArgument, wire(10, since="2")]
    buffer_name: Annotated[str, wire(20, since="2")]


class ParameterMutationSpec(Object, frozen=True):
    """A graph output that is the new value of a parameter."""

    arg: Annotated[TensorArgument, wire(10, since="8.14")]
    parameter_name: Annotated[str, wire(20, since="8.14")]


class GradientToParameterSpec(Object, frozen=True):
    """A graph output that is the gradient of a parameter."""

    arg: Annotated[TensorArgument, wire(10, since="2")]
    parameter_name: Annotated[str, wire(20, since="2")]


class GradientToUserInputSpec(Object, frozen=True):
    """A graph output that is the gradient of a user input."""

    arg: Annotated[TensorArgument, wire(10, since="2")]
    user_input_name: Annotated[str, wire(20, since="2")]


class UserInputMutationSpec(Object, frozen=True):
    """A graph output that is the new value of a user input."""

    arg: Annotated[TensorArgument, wire(10, since="5.1")]
    user_input_name: Annotated[str, wire(20, since="5.1")]


class OutputTokenSpec(Object, frozen=True):
    """A graph output that is an effect token."""

    arg: Annotated[TokenArgument, wire(10, since="5.3")]


class OutputSpec(Union, frozen=True):
    """Kind and name of one graph output; in the order of `Graph.outputs`."""

    user_output: Annotated[UserOutputSpec | UnsetType, wire(10, since="2")] = UNSET
    loss_output: Annotated[LossOutputSpec | UnsetType, wire(20, since="2")] = UNSET
    buffer_mutation: Annotated[BufferMutationSpec | UnsetType, wire(30, since="2")] = UNSET
    gradient_to_parameter: Annotated[GradientToParameterSpec | UnsetType, wire(40, since="2")] = UNSET
    gradient_to_user_input: Annotated[GradientToUserInputSpec | UnsetType, wire(50, since="2")] = UNSET
    user_input_mutation: Annotated[UserInputMutationSpec | UnsetType, wire(60, since="5.1")] = UNSET
    token: Annotated[OutputTokenSpec | UnsetType, wire(70, since="5.3")] = UNSET
    parameter_mutation: Annotated[ParameterMutationSpec | UnsetType, wire(80, since="8.14")] = UNSET


class GraphSignature(Holder, frozen=True):
    """Kinds of all inputs and outputs of the graph."""

    input_specs: Annotated[list[InputSpec], wire(10, since="2")]
    output_specs: Annotated[list[OutputSpec], wire(20, since="2")]


class RangeConstraint(Object, frozen=True):
    """The inclusive range of a symbol; None is unbounded."""

    min_val: Annotated[int | None, wire(10, since="1")]
    max_val: Annotated[int | None, wire(20, since="1")]


class ModuleCallSignature(Holder, frozen=True):
    """Call signature of a module: arguments and results, flattened, and the trees they came from.

    `in_spec` and `out_spec` are JSON text that `pt2kit.treespec` reads.
    """

    inputs: Annotated[list[Argument], wire(10, since="1")]
    outputs: Annotated[list[Argument], wire(20, since="1")]
    in_spec: Annotated[str, wire(30, since="1")]
    out_spec: Annotated[str, wire(40, since="1")]
    forward_arg_names: Annotated[list[str] | None, wire(50, since="8.2")] = None


class ModuleCallEntry(Object, frozen=True):
    """A module that was called, by its path ("" for the root), and its signature where that was kept."""

    fqn: Annotated[str, wire(10, since="1")]
    signature: Annotated[ModuleCallSignature | None, wire(30, since="1")] = None


class NamedTupleDef(Holder, frozen=True):
    """The field names a named-tuple class had at export."""

    field_names: Annotated[list[str], wire(10, since="8.6")]


class GraphModule(Holder, frozen=True):
    """A graph, its signature, and the modules it came from."""

    graph: Annotated[Graph, wire(10, since="1")]
    signature: Annotated[GraphSignature, wire(50, since="1")]
    module_call_graph: Annotated[list[ModuleCallEntry], wire(60, since="1")]
    metadata: Annotated[dict[str, str], wire(40, since="7.3")] = field(default_factory=dict)
    treespec_namedtuple_fields: Annotated[dict[str, NamedTupleDef], wire(70, since="8.6")] = field(default_factory=dict)


class SchemaVersion(Object, frozen=True):
    """The version of this schema that a file was written in."""

    major: Annotated[int, wire(10, since="5.1")]
    minor: Annotated[int, wire(20, since="5.1")]


class ExportedProgram(Holder, frozen=True):
    """A whole program without its tensors: the root of `models/<name>.json`."""

    graph_module: Annotated[GraphModule, wire(10, since="1")]
    opset_version: Annotated[dict[str, int], wire(20, since="1")]
    range_constraints: Annotated[dict[str, RangeConstraint], wire(30, since="1")]
    schema_version: Annotated[SchemaVersion, wire(60, since="1")]
    verifiers: Annotated[list[str], wire(70, since="7.3")] = field(default_factory=list)
    torch_version: Annotated[str, wire(80, since="7.3")] = "<=2.4"
    guards_code: Annotated[list[str], wire(90, since="8.14")] = field(default_factory=list)

    def __repr__(self) -> str:
        graph, version = self.graph_module.graph, self.schema_version
        counts = {"input": len(graph.inputs), "node": len(graph.nodes), "output": len(graph.outputs)}
        sizes = ", ".join(count_text(count, noun) for noun, count in counts.items())
        return f"<ExportedProgram of schema {version.major}.{version.minor}: {sizes}>"

    def _repr_html_(self) -> str:
        return str(registered("notebook view of a program")(self))


class PayloadMeta(Object, frozen=True):
    """Location of a weight or constant in the archive and how to read it."""

    path_name: Annotated[str, wire(10, since="8.14")]
    is_param: Annotated[bool, wire(20, since="8.14")]
    use_pickle: Annotated[bool, wire(30, since="8.14")]
    tensor_meta: Annotated[TensorMeta | None, wire(40, since="8.14")]


class PayloadConfig(Holder, frozen=True):
    """The payloads of one model: name to place; the root of the two `_config.json` records."""

    config: Annotated[dict[str, PayloadMeta], wire(10, since="8.14")]


class AOTInductorModelPickleData(Holder, frozen=True):
    """Facts that a compiled package records of its library; kept for completeness, never loaded."""

    library_basename: Annotated[str, wire(1, since="8.7")]
    input_names: Annotated[list[str], wire(2, since="8.7")]
    output_names: Annotated[list[str], wire(3, since="8.7")]
    floating_point_input_dtype: Annotated[int | None, wire(4, since="8.7")] = None
    floating_point_output_dtype: Annotated[int | None, wire(5, since="8.7")] = None
    aot_inductor_model_is_cpu: Annotated[bool | None, wire(6, since="8.7")] = None


class ExternKernelNode(Object, frozen=True):
    """A call that compiled code makes back into an operator."""

    name: Annotated[str, wire(10, since="8.7")]
    node: Annotated[Node, wire(20, since="8.7")]


class ExternKernelNodes(Holder, frozen=True):
    """All such calls of one compiled model."""

    nodes: Annotated[list[ExternKernelNode], wire(10, since="8.7")]
