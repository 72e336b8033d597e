"""Call signature of a program as readable Python, with types, shapes and dynamic sizes."""

from __future__ import annotations

from dataclasses import dataclass

from pt2kit import treespec
from pt2kit.errors import GraphError
from pt2kit.schema import Argument, ExportedProgram, InputSpec, ModuleCallSignature, OutputSpec
from pt2kit.text.arguments import constant_text
from pt2kit.text.columns import WIDTH
from pt2kit.text.values import ValueTexts


@dataclass(frozen=True, slots=True)
class CallParameter:
    """One parameter of the call: its name, "positional" or "keyword", and its type as text."""

    name: str
    kind: str
    type: str


@dataclass(frozen=True, slots=True)
class CallSummary:
    """How a program is called.

    Args:
        text: all of it as a Python signature.
        parameters: in the order of the call.
        returns: the type of the result, as text.
    """

    text: str
    parameters: tuple[CallParameter, ...]
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
    inputs = [_leaf(spec, program, texts) for spec in module.signature.input_specs]
    outputs = [_result(spec, program, texts) for spec in module.signature.output_specs]
    signature = treespec.call_signature(
        treespec.parse(root.in_spec, "in_spec"),
        treespec.parse(root.out_spec, "out_spec"),
        [text for text in inputs if text is not None],
        [text for text in outputs if text is not None],
        root.forward_arg_names,
        where="call",
        fields={key: row.field_names for key, row in module.treespec_namedtuple_fields.items()},
    )
    parameters = tuple(CallParameter(row.name, row.kind, row.annotation) for row in signature.parameters)
    return CallSummary(treespec.render(signature, width=WIDTH), parameters, signature.returns)


def _leaf(spec: InputSpec, program: ExportedProgram, texts: ValueTexts) -> str | None:
    """Return the description of a leaf of the call's arguments; None for inputs that the caller does not pass."""
    if spec.type == "user_input":
        return _described(spec.value.arg, program, texts)
    if spec.type == "constant_input":
        return constant_text(spec.value.value)
    return None


def _result(spec: OutputSpec, program: ExportedProgram, texts: ValueTexts) -> str | None:
    """Return the description of a leaf of the call's result; None for outputs that the caller does not get."""
    if spec.type == "user_output":
        return _described(spec.value.arg, program, texts)
    if spec.type == "loss_output":
        return f"loss {texts.named(program.graph_module.graph, spec.value.arg.name)}"
    return None


def _described(argument: Argument, program: ExportedProgram, texts: ValueTexts) -> str:
    name = getattr(argument.value, "name", None) or getattr(argument.value, "as_name", None)
    if isinstance(name, str):
        return texts.named(program.graph_module.graph, name) or "?"
    return constant_text(argument)
