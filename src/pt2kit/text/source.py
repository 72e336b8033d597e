"""Lossless text form of a program: every field of the schema, a line for each node (`source_reader` parses it).

`docs/text.md` has the grammar. What the text leaves out is what its reader puts in: strides of row-major tensors, the
device "cpu", names of nodes that are those of their results, the kind of arguments that are positional.

The vocabulary of the text form is shared by printer and parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from pt2kit import codec, schema
from pt2kit.graph.argument_values import arguments, plain
from pt2kit.graph.traversal import kinds, tables
from pt2kit.schema.reflection import field_classes
from pt2kit.tensors.bounds import contiguous_strides
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.text.values import ValueName

VERSION: Final = 1
"""Of the text form: the first line says it."""

PLAIN_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
PLAIN_TARGET: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+", re.ASCII)

KIND_MARKS: Final[Mapping[schema.ArgumentKind | None, str]] = {
    schema.ArgumentKind.POSITIONAL: "",
    schema.ArgumentKind.KEYWORD: "*",
    schema.ArgumentKind.UNKNOWN: "!",
    None: "?",
}
"""How an argument is passed -> the prefix of its text."""


INPUT_SPECS: Final = field_classes(schema.InputSpec)
"""Field of `schema.InputSpec` -> the class of its value."""
OUTPUT_SPECS: Final = field_classes(schema.OutputSpec)
"""Field of `schema.OutputSpec` -> the class of its value."""
WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {"tensor_constant": "constant", "custom_obj": "object", "scalar_type": "dtype", "string_to_argument": "dict"}
)
"""Words of specs and of arms of arguments that differ from the names of the fields."""
LITERALS: Final = frozenset(("tensor", "int", "float", "string", "bool"))
"""Arms of arguments whose text tells their type; that of an empty list does not."""
PLAIN_ARMS: Final[Mapping[type, str]] = {bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}
"""Type of a number or text -> the arm of arguments that has it."""

_INDENT: Final = "  "


def spec_value(cls: type[Any], argument: schema.Argument, rest: Sequence[Any]) -> Any:
    """Return the value of a spec of an input or output of the graph.

    Args:
        cls: its class.
        argument: the input or output.
        rest: the other fields, in order: the target, and for buffers whether they are persistent; for a constant its
            placeholder and value.
    """
    if cls is schema.InputToConstantInputSpec:
        name, value = rest
        return cls(name, constant_value(value))
    if cls in (schema.UserInputSpec, schema.UserOutputSpec):
        return cls(argument, *rest)
    if cls is schema.InputToCustomObjSpec:
        return cls(argument.value, *rest)
    kind = schema.TokenArgument if cls in (schema.InputTokenSpec, schema.OutputTokenSpec) else schema.TensorArgument
    return cls(kind(getattr(argument.value, "name", "")), *rest)


def constant_value(value: Any) -> schema.ConstantValue:
    """Return a constant of the calling convention."""
    arms = {"as_none": True} if value is None else {plain_arm(value): value}
    made: schema.ConstantValue = schema.ConstantValue.create(**arms)
    return made


def plain_arm(value: bool | int | float | str) -> str:
    """Return the arm of arguments that has a number or text; a float keeps its spelling in a class of its own."""
    return PLAIN_ARMS[float if isinstance(value, float) else type(value)]


def print_program(program: schema.ExportedProgram) -> str:
    """Write a program as text; `parse` returns an equal program, in the same order.

    Cost: linear; a program of 2,700 nodes takes about 0.1 s.
    """
    return "".join(f"{line}\n" for line in _Printer(program).lines())


class _Printer:
    """Writes one program; expressions are written once, and used by name."""

    def __init__(self, program: schema.ExportedProgram) -> None:
        self._program = program
        self._expressions: dict[tuple[str, str], str] = {}
        self._declared: list[str] = []
        self._types: dict[int, str] = {}

    def lines(self) -> Iterator[str]:
        program, module = self._program, self._program.graph_module
        body = list(self._graph(module.graph, 1, module.signature))
        yield f"pt2 {VERSION}"
        yield f"schema {program.schema_version.major}.{program.schema_version.minor}"
        yield f"torch {_text(program.torch_version)}"
        yield from (f"opset {_text(name)} {number}" for name, number in program.opset_version.items())
        yield from (f"verifier {_text(name)}" for name in program.verifiers)
        for name, limits in program.range_constraints.items():
            yield f"range {_text(name)} {_constant(limits.min_val)} {_constant(limits.max_val)}"
        yield from (f"guard {_text(guard)}" for guard in program.guards_code)
        yield from (f"metadata {_text(key)} {_text(value)}" for key, value in module.metadata.items())
        for name, row in module.treespec_namedtuple_fields.items():
            yield f"namedtuple {_text(name)} {_texts(row.field_names)}"
        yield from map(self._module, module.module_call_graph)
        yield from self._declared
        yield "graph {"
        yield from body
        yield "}"

    def _module(self, entry: schema.ModuleCallEntry) -> str:
        signature = entry.signature
        if signature is None:
            return f"module {_text(entry.fqn)}"
        ins, outs = (", ".join(map(self._argument, side)) for side in (signature.inputs, signature.outputs))
        names = "" if signature.forward_arg_names is None else f" names {_texts(signature.forward_arg_names)}"
        return (
            f"module {_text(entry.fqn)} takes ({ins}) gives ({outs}) in_spec {_text(signature.in_spec)} "
            f"out_spec {_text(signature.out_spec)}{names}"
        )

    def _graph(self, graph: schema.Graph, depth: int, signature: schema.GraphSignature | None = None) -> Iterator[str]:
        indent = _INDENT * depth
        metas = {name: meta for table in tables(graph).values() for name, meta in table.items()}
        defined = [name for argument in graph.inputs for name in arguments(argument)]
        defined += [name for node in graph.nodes for output in node.outputs for name in arguments(output)]
        ins, outs, in_words = _roles(graph, signature)
        if graph.is_single_tensor_return:
            yield f"{indent}single"
        for argument, role in zip(graph.inputs, ins, strict=True):
            yield f"{indent}input {self._argument(argument)}{self._typed(metas, [argument])}{role}"
        for node in graph.nodes:
            yield f"{indent}{self._node(metas, node, depth)}"
        for argument, role in zip(graph.outputs, outs, strict=True):
            yield f"{indent}output {self._argument(argument)}{role}"
        yield from (f"{indent}{line}" for line in self._rest(graph, defined))
        if signature is not None and not in_words:
            yield f"{indent}signature {_text(codec.encode(signature).decode())}"

    def _rest(self, graph: schema.Graph, defined: list[str]) -> Iterator[str]:
        """Yield entries of the value tables that no definition implies, and tables in another order."""
        kind_of = kinds(graph)
        for kind, table in tables(graph).items():
            own = dict.fromkeys(name for name in defined if kind_of.get(name) == kind and name in table)
            for name, meta in table.items():
                if name not in own:
                    yield f"entry {kind} {_text(name)} {self._type(meta)}"
                    own[name] = None
            if list(own) != list(table):
                yield f"order {kind} {_texts(table)}"

    def _node(self, metas: Mapping[str, Any], node: schema.Node, depth: int) -> str:
        results = ", ".join(map(self._argument, node.outputs))
        target = node.target if PLAIN_TARGET.fullmatch(node.target) else _text(node.target)
        inputs = ", ".join(self._named(named, depth) for named in node.inputs)
        types = self._typed(metas, node.outputs)
        own = node.outputs[0].value.name if len(node.outputs) == 1 and node.outputs[0].type == "as_tensor" else None
        name = " unnamed" if node.name is None else f" named {_text(node.name)}"
        if node.name == own and own is not None:
            name = ""
        single = {None: "", True: " single true", False: " single false"}[node.is_hop_single_tensor_return]
        metadata = f" {json.dumps(node.metadata, ensure_ascii=False)}" if node.metadata else ""
        head = f"{results} = " if results else ""
        return f"{head}{target}({inputs}){types}{name}{single}{metadata}"

    def _named(self, named: schema.NamedArgument, depth: int) -> str:
        mark = KIND_MARKS[named.kind]
        name = named.name if PLAIN_WORD.fullmatch(named.name) else _text(named.name) if named.name else ""
        return f"{mark}{name}{'=' if name else ''}{self._argument(named.arg, depth)}"

    def _typed(self, metas: Mapping[str, Any], defining: list[schema.Argument]) -> str:
        """Return the types of the values that some arguments define; "?" for one that no table has."""
        names = [name for argument in defining for name in arguments(argument)]
        if not names:
            return ""
        return " : " + ", ".join("?" if name not in metas else self._type(metas[name]) for name in names)

    def _type(self, meta: Any) -> str:
        """Return the type of a value; shared parts are written once."""
        known = self._types.get(id(meta))
        if known is None:
            known = self._types[id(meta)] = self._fresh_type(meta)
        return known

    def _fresh_type(self, meta: Any) -> str:
        match meta:
            case schema.TensorMeta():
                return self._tensor(meta)
            case schema.SymInt() | schema.SymFloat() | schema.SymBool():
                return f"{type(meta).__name__[3:].lower()} {self._symbolic(meta)}"
        return f"object({_object(meta)})"

    def _tensor(self, meta: schema.TensorMeta) -> str:
        text = f"{_dtype(meta.dtype)}[{', '.join(map(self._symbolic, meta.sizes))}]"
        sizes = [size.as_int for size in meta.sizes if isinstance(size.as_int, int)]
        plain = tuple(stride.as_int for stride in meta.strides)
        if len(sizes) != len(meta.sizes) or min(sizes, default=0) < 0 or contiguous_strides(sizes) != plain:
            text += f" strides[{', '.join(map(self._symbolic, meta.strides))}]"
        if meta.storage_offset.as_int != 0:
            text += f" offset[{self._symbolic(meta.storage_offset)}]"
        if meta.device != schema.Device("cpu"):
            text += f" on[{_device(meta.device)}]"
        if meta.layout is not schema.Layout.Strided:
            text += f" layout[{meta.layout.name}]"
        return f"{text} grad[true]" if meta.requires_grad else text

    def _symbolic(self, value: Any) -> str:
        content = value.value
        if not isinstance(content, schema.SymExpr):
            return _constant(content)
        hint = "" if content.hint is None else f" hint {_constant(content.hint.value)}"
        key = (content.expr_str, hint)
        if key not in self._expressions:
            self._expressions[key] = name = f"#{len(self._expressions)}"
            self._declared.append(f"expr {name} {_text(content.expr_str)}{hint}")
        return self._expressions[key]

    def _argument(self, argument: schema.Argument, depth: int = 0) -> str:
        arm = argument.type
        value = argument.value
        if arm == "as_graph":
            lines = "\n".join(self._graph(value.graph, depth + 1))
            body = f"\n{lines}\n{_INDENT * depth}" if lines else ""
            return f"graph({_text(value.name)} {{{body}}})"
        if arm == "as_string_to_argument":
            return f"dict({', '.join(f'{_text(key)}: {self._argument(one, depth)}' for key, one in value.items())})"
        if arm == "as_none":
            return "none" if value else "none(false)"
        if arm == "as_custom_obj":
            return f"object({_object(value)})"
        return _arm_text(arm.removeprefix("as_"), plain(argument, ValueName))


def _roles(graph: schema.Graph, signature: schema.GraphSignature | None) -> tuple[list[str], list[str], bool]:
    """Return the text after each input and output, its spec in words, and whether all of them have words."""
    nothing = [""] * len(graph.inputs), [""] * len(graph.outputs), False
    if signature is None:
        return nothing
    if (len(signature.input_specs), len(signature.output_specs)) != (len(graph.inputs), len(graph.outputs)):
        return nothing
    ins = [_role(INPUT_SPECS, *pair) for pair in zip(graph.inputs, signature.input_specs, strict=True)]
    outs = [_role(OUTPUT_SPECS, *pair) for pair in zip(graph.outputs, signature.output_specs, strict=True)]
    return (ins, outs, True) if all([*ins, *outs]) else nothing


def _role(
    classes: Mapping[str, type[Any]], argument: schema.Argument, spec: schema.InputSpec | schema.OutputSpec
) -> str:
    """Return the words of a spec; "" if they would not parse to exactly this spec."""
    rest = [_plain(getattr(spec.value, name)) for name in spec.value.__struct_fields__ if name != "arg"]
    try:
        is_same = codec.encode(spec_value(classes[spec.type], argument, rest)) == codec.encode(spec.value)
    except (TypeError, ValueError):
        is_same = False
    return " ".join(["", "=", WORDS.get(spec.type, spec.type), *map(_constant, rest)]) if is_same else ""


def _plain(value: Any) -> Any:
    if not isinstance(value, schema.ConstantValue):
        return value
    return None if value.type == "as_none" else value.value


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _texts(texts: Any) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _constant(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float.__repr__(value)
    return _text(value) if isinstance(value, str) else str(value)


def _name(name: str) -> str:
    return f"%{name}" if PLAIN_WORD.fullmatch(name) else f"%{_text(name)}"


def _device(device: schema.Device) -> str:
    return _text(device.type) if device.index is None else f"{_text(device.type)}, {device.index}"


def _dtype(value: schema.ScalarType) -> str:
    return DTYPES[value].short if value in DTYPES else value.name


def _object(value: schema.CustomObjArgument) -> str:
    return f"{_name(value.name)}, {_text(value.class_fqn)}"


def _arm_text(arm: str, value: Any) -> str:
    """Return an argument, from its plain value: as it is if its text tells the arm, else in brackets after a word."""
    text = ", ".join(map(_item, value)) if isinstance(value, tuple) else _item(value)
    if arm in LITERALS:
        return text
    return f"[{text}]" if text and arm.removesuffix("s") in LITERALS else f"{WORDS.get(arm, arm)}({text})"


def _item(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_item, value))}]"
    return _TEXTS.get(type(value), _constant)(value)


_TEXTS: Final[Mapping[type[Any], Callable[[Any], str]]] = {
    ValueName: _name,
    schema.ScalarType: _dtype,
    **dict.fromkeys((schema.MemoryFormat, schema.Layout), attrgetter("name")),
    schema.Device: _device,
    complex: lambda value: f"{_constant(value.real)}, {_constant(value.imag)}",
}
"""Class of a plain value -> its text; all others are constants."""
