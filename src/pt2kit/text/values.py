"""Text of a graph's values: types (`f32[s77, 8]`), node arguments (`%x`), and the call signature of a program.

Types are also those of numbers, `SymInt(2*s77)`. Node arguments are `%x`, `[1, 2]`, `dtype.f32`, `@true_graph`. The
call signature is readable Python, with types, shapes and dynamic sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pt2kit import symbols, treespec
from pt2kit.errors import GraphError, attempt
from pt2kit.graph.argument_values import ARMS, OperatorName
from pt2kit.messages import printable
from pt2kit.schema import (
    Argument,
    ConstantValue,
    CustomObjArgument,
    Device,
    ExportedProgram,
    Graph,
    GraphArgument,
    InputSpec,
    Layout,
    MemoryFormat,
    ModuleCallSignature,
    NamedArgument,
    OutputSpec,
    ScalarType,
    SymBool,
    SymExpr,
    SymFloat,
    SymInt,
    TensorMeta,
)
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.text.format import WIDTH, value_name
from pt2kit.treespec.callsig import show_name

MAX_DEPTH = 32
MAX_STRING = 80
_PLAIN = {"as_int": "int", "as_float": "float", "as_bool": "bool", "as_string": "str"}


class ValueTexts:
    """Describes the values of one program; each distinct expression is parsed once.

    Args:
        program: whose values are described.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self._expressions: dict[str, str] = {}

    def expression(self, text: str) -> str:
        """Return a symbolic expression, in any stored dialect, as people write it; unchanged if it does not parse."""
        known = self._expressions.get(text)
        if known is None:
            tree = attempt(symbols.parse, text)
            known = f"<{printable(text)}>" if tree is None else symbols.to_str(tree)
            self._expressions[text] = known
        return known

    def size(self, value: SymInt) -> str:
        """Return one size, stride or offset."""
        return self._number(value.value)

    def meta(self, meta: TensorMeta) -> str:
        """Return the type of a tensor: dtype and sizes, and anything unusual (device, layout)."""
        text = f"{dtype_text(meta.dtype)}[{', '.join(map(self.size, meta.sizes))}]"
        if meta.layout is not Layout.Strided:
            text += f" {meta.layout.name}"
        return text if meta.device.type == "cpu" else f"{text} on {device_text(meta.device)}"

    def symbolic(self, value: SymInt | SymFloat | SymBool) -> str:
        """Return a symbolic number and its expression: `SymInt(2*s77)`."""
        return f"{type(value).__name__}({self._number(value.value)})"

    def _number(self, content: bool | int | float | SymExpr) -> str:
        return self.expression(content.expr_str) if isinstance(content, SymExpr) else str(content)

    def named(self, graph: Graph, name: str) -> str:
        """Return the type of a value of a graph, by its name; "" if the graph has none."""
        if (meta := graph.tensor_values.get(name)) is not None:
            return self.meta(meta)
        for values in (graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values):
            if (value := values.get(name)) is not None:
                return self.symbolic(value)
        custom = graph.custom_obj_values.get(name)
        return custom_object_text(custom) if custom is not None else ""

    def ranges(self) -> tuple[tuple[str, str], ...]:
        """Return (symbol, range) for each dynamic symbol, in the file's order: ("s77", "2 … 1,024")."""
        constraints = self.program.range_constraints
        return tuple(
            (self.expression(name), bounds_text(row.min_val, row.max_val)) for name, row in constraints.items()
        )


def dtype_text(dtype: ScalarType) -> str:
    """Return the short name of an element type: `f32`."""
    return DTYPES[dtype].short if dtype in DTYPES else dtype.name.lower()


def bounds_text(low: int | None, high: int | None) -> str:
    """Return the text of an inclusive range; an unbounded end is named as such."""
    if low is None:
        return "any" if high is None else f"at most {high:,}"
    if high is None:
        return f"at least {low:,}"
    return f"{low:,} … {high:,}" if low != high else f"{low:,}"


def device_text(device: Device) -> str:
    """Return a device as torch writes it: `cuda:0`."""
    name = show_name(device.type)
    return name if device.index is None else f"{name}:{device.index}"


def custom_object_text(custom: CustomObjArgument) -> str:
    """Return the class of a custom object."""
    return f"object {printable(custom.class_fqn)}"


def argument_text(argument: Argument | ConstantValue, depth: int = 0) -> str:
    """Return one argument as text; nesting deeper than `MAX_DEPTH` is shown as `…`."""
    if depth > MAX_DEPTH:
        return "…"
    kind, value = argument.type, argument.value
    if kind == "as_string_to_argument":
        return f"{{{', '.join(f'{_quoted(key)}: {argument_text(item, depth + 1)}' for key, item in value.items())}}}"
    return _plain_text(ARMS[kind].plain(value, ValueName))


def named_text(named: NamedArgument) -> str:
    """Return an argument with its parameter's name: `dim=1`."""
    text = argument_text(named.arg)
    return f"{show_name(named.name)}={text}" if named.name else text


def constant_text(constant: Argument | ConstantValue) -> str:
    """Return a constant of the calling convention with its type: `int = 3`."""
    text = argument_text(constant)
    return text if constant.type == "as_none" else f"{_PLAIN.get(constant.type, constant.type)} = {text}"


def _quoted(text: str) -> str:
    shown = text if len(text) <= MAX_STRING else f"{text[:MAX_STRING]}…"
    return printable(repr(shown), 4 * MAX_STRING)


class ValueName(str):
    """The name of a value in a plain argument."""

    __slots__ = ()


def _plain_text(value: Any) -> str:
    """Return an argument as `graph.argument_values` reads it as text."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_plain_text, value))}]"
    return _TEXTS.get(type(value), str)(value)


_TEXTS: Final[Mapping[type[Any], Callable[[Any], str]]] = {
    ValueName: value_name,
    OperatorName: lambda name: f"operator({printable(name)})",
    str: _quoted,
    ScalarType: lambda dtype: f"dtype.{dtype_text(dtype)}",
    MemoryFormat: lambda form: f"memory_format.{form.name}",
    Layout: lambda layout: f"layout.{layout.name}",
    Device: lambda device: f"device({device_text(device)})",
    GraphArgument: lambda subgraph: f"@{show_name(subgraph.name)}",
}
"""Class of a plain value -> its text; that of all others is Python's."""


@dataclass(frozen=True, slots=True)
class CallSummary:
    """How a program is called.

    Args:
        text: all of it as a Python signature.
        parameters: in the order of the call.
        returns: the type of the result, as text.
    """

    text: str
    parameters: tuple[treespec.Parameter, ...]
    returns: str


def summarize_call(program: ExportedProgram, texts: ValueTexts) -> CallSummary:
    """Describe how a program is called.

    Raises:
        GraphError, SchemaError, JsonError, LimitError: its tree specs are missing, or contradict themselves or the
            graph's signature.
    """
    module = program.graph_module
    root = next((entry.signature for entry in module.module_call_graph if entry.fqn == ""), None)
    if not isinstance(root, ModuleCallSignature):
        raise GraphError("$.graph_module.module_call_graph: expected a signature of the root module, got none")
    inputs, outputs = (
        [text for spec in specs if (text := _leaf(spec, program, texts)) is not None]
        for specs in (module.signature.input_specs, module.signature.output_specs)
    )
    signature = treespec.call_signature(
        treespec.parse(root.in_spec, "in_spec"),
        treespec.parse(root.out_spec, "out_spec"),
        inputs,
        outputs,
        root.forward_arg_names,
        where="call",
        fields={key: row.field_names for key, row in module.treespec_namedtuple_fields.items()},
    )
    return CallSummary(treespec.render(signature, width=WIDTH), signature.parameters, signature.returns)


def _leaf(spec: InputSpec | OutputSpec, program: ExportedProgram, texts: ValueTexts) -> str | None:
    """Return the description of a leaf of the call's arguments or result; None for all other inputs and outputs."""
    match spec.type:
        case "user_input" | "user_output":
            return _described(spec.value.arg, program, texts)
        case "constant_input":
            return constant_text(spec.value.value)
        case "loss_output":
            return f"loss {texts.named(program.graph_module.graph, spec.value.arg.name)}"
    return None


def _described(argument: Argument, program: ExportedProgram, texts: ValueTexts) -> str:
    name = getattr(argument.value, "name", None) or getattr(argument.value, "as_name", None)
    if isinstance(name, str):
        return texts.named(program.graph_module.graph, name) or "?"
    return constant_text(argument)
