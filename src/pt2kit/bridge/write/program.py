"""Write a live ExportedProgram as `schema.ExportedProgram`: everything but its tensors.

Pytree specs become the texts `in_spec` and `out_spec`, with the fields of the named tuples in them.
Torch's graph signature becomes a `GraphSignature`, its argument specs `Argument`s.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import sympy
import torch
from torch.export import graph_signature as live

from pt2kit import treespec
from pt2kit.bridge.placeholder_types import Placeholder, stand_in_name
from pt2kit.bridge.torch_export_names import int_oo
from pt2kit.bridge.torch_names import (
    SpecViolationError,
    child_specs,
    guards_code,
    is_functorch_tensor,
    operator_version,
    pytree,
)
from pt2kit.bridge.write.nodes import write_node
from pt2kit.bridge.write.scope import Scope, Shared, of_graph_module
from pt2kit.errors import GraphError, LimitError, UnsupportedError, placed
from pt2kit.schema import (
    CURRENT,
    Argument,
    ExportedProgram,
    Graph,
    GraphModule,
    GraphSignature,
    ModuleCallEntry,
    ModuleCallSignature,
    NamedTupleDef,
    RangeConstraint,
    SchemaVersion,
)
from pt2kit.schema import InputSpec as SchemaInputSpec
from pt2kit.schema import OutputSpec as SchemaOutputSpec
from pt2kit.signature.specs import (
    NAMED,
    ArgumentSpec,
    ConstantArgument,
    CustomObjArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    schema_argument,
    schema_input_spec,
    schema_output_spec,
)
from pt2kit.treespec.spec import TreeSpec

_TRACED_INPUT = re.compile(r"arg(\d{1,9})_1", re.ASCII)
_WITHOUT_TARGET = frozenset(("USER_INPUT", "USER_OUTPUT", "LOSS_OUTPUT", "TOKEN"))
_OWN: Mapping[type, Callable[..., ArgumentSpec]] = {vars(live)[kind.__name__]: kind for kind in NAMED}
"""Class of torch for an argument that stands for a value -> the class of its name here."""


def write_signature(signature: live.ExportGraphSignature, scope: Scope) -> GraphSignature:
    """Return the signature: the kind of each input and output of the graph.

    Args:
        signature: of the live program.
        scope: the outer graph, already written.

    Raises:
        GraphError: a spec that lacks what its kind needs, with its place.
        UnsupportedError: a kind or a constant that the format does not have.

    Source: `serialize_signature` in torch/_export/serde/serialize.py, 2.13.
    """
    inputs: Sequence[live.InputSpec] = signature.input_specs
    return GraphSignature(
        [_input_spec(index, spec, scope) for index, spec in enumerate(inputs)],
        [_output_spec(index, spec, scope, inputs) for index, spec in enumerate(signature.output_specs)],
    )


def write_argument_spec(spec: Any, scope: Scope) -> Argument:
    """Return an argument of the calling convention; a name for the same result as another becomes that one.

    Raises:
        UnsupportedError: a kind that the format does not have.

    Source: `serialize_argument_spec` in torch/_export/serde/serialize.py, 2.13.
    """
    if isinstance(spec, live.TokenArgument):
        raise UnsupportedError("expected a tensor, a number, a constant or an object, got a token")
    return schema_argument(_argument(spec, scope))


def _argument(spec: Any, scope: Scope) -> ArgumentSpec:
    """Return torch's description of an argument as one of `pt2kit.signature`."""
    if isinstance(spec, live.ConstantArgument):
        return ConstantArgument(spec.name, spec.value)
    name = scope.renamed.get(spec.name, spec.name)
    if isinstance(spec, live.CustomObjArgument):
        return CustomObjArgument(name, spec.class_fqn)
    if type(spec) not in _OWN:
        raise UnsupportedError(f"expected a kind of argument that the format has, got {type(spec).__name__}")
    return _OWN[type(spec)](name)


def _input_spec(index: int, spec: live.InputSpec, scope: Scope) -> SchemaInputSpec:
    with placed(f"graph signature: input {index} ({spec.kind.name})"):
        kind = _kind(InputKind, "input", spec)
        return schema_input_spec(InputSpec(kind, _argument(spec.arg, scope), _target(spec), spec.persistent))


def _output_spec(index: int, spec: live.OutputSpec, scope: Scope, inputs: Sequence[live.InputSpec]) -> SchemaOutputSpec:
    with placed(f"graph signature: output {index} ({spec.kind.name})"):
        kind = _kind(OutputKind, "output", spec)
        target = _gradient_target(spec, inputs) if kind is OutputKind.GRADIENT_TO_USER_INPUT else _target(spec)
        return schema_output_spec(OutputSpec(kind, _argument(spec.arg, scope), target))


def _kind(kinds: Any, side: str, spec: Any) -> Any:
    """Return the kind of an input or output, which torch and this package call the same."""
    if spec.kind.name not in kinds.__members__:
        raise UnsupportedError(f"expected a kind of {side} that the format has, got {spec.kind}")
    return kinds[spec.kind.name]


def _target(spec: Any) -> str | None:
    return None if spec.target is None or spec.kind.name in _WITHOUT_TARGET else str(spec.target)


def _gradient_target(spec: live.OutputSpec, inputs: Sequence[live.InputSpec]) -> str:
    """Return the name of the user input that a gradient is for.

    A joint graph made by export itself names it as tracing did, "arg<position>_1", and not as its placeholder.

    Raises:
        GraphError: no such input.

    Source: the code after `joint_loss_index` in torch/export/exported_program.py, 2.13.
    """
    target = str(spec.target)
    names = [one.arg.name if one.kind is live.InputKind.USER_INPUT else None for one in inputs]
    if target in names:
        return target
    traced = _TRACED_INPUT.fullmatch(target)
    name = names[int(traced[1])] if traced and int(traced[1]) < len(names) else None
    if name is not None:
        return str(name)
    raise GraphError(f"expected the name of a user input as target, got {target!r}")


def write_program(live: Any, opset_version: Mapping[str, int] | None = None) -> tuple[ExportedProgram, Shared]:
    """Turn a live program into objects of the schema.

    Args:
        live: a torch.export.ExportedProgram; it is validated, and not changed.
        opset_version: operator namespace -> version, in addition to the version of aten.

    Returns:
        The program without its tensors; and what its graphs share: objects in them, and the metas of tensors.

    Raises:
        GraphError: the program is not valid.
        Pt2Error: something that the format cannot hold, with its place.

    Cost: linear in the number of nodes, about 50 µs each.

    Source: `ExportedProgramSerializer` in torch/_export/serde/serialize.py, 2.13.
    """
    try:
        live.validate()
    except (SpecViolationError, RuntimeError, AssertionError, TypeError) as error:
        raise GraphError(f"expected a valid program, got one that breaks its rules: {error}") from error
    for spec in live.graph_signature.input_specs:
        constant = live.constants.get(spec.target)
        if isinstance(constant, torch.Tensor) and is_functorch_tensor(constant):
            raise UnsupportedError(
                f"node {spec.arg.name}: expected a constant with memory, got {spec.target!r}, a tensor of "
                "torch.func.grad that export took for a constant; call torch.autograd.grad in the model instead"
            )
    shared, specs = Shared(write_graph, live.constants), TreeSpecs()
    scope = write_scope(live.graph_module, shared)
    major, minor = CURRENT.pair
    opsets = opset_version or {}
    program = ExportedProgram(
        GraphModule(
            scope.graph(),
            write_signature(live.graph_signature, scope),
            write_module_calls(live.module_call_graph, specs, scope),
            of_graph_module(live.graph_module.meta),
            specs.fields,
        ),
        {**opsets, "aten": opsets.get("aten", operator_version())},
        write_range_constraints(live.range_constraints),
        SchemaVersion(major, minor),
        [verifier.dialect for verifier in live.verifiers],
        str(torch.__version__),
        guards_code(live),
    )
    return program, shared


_INFINITIES = (sympy.oo, -sympy.oo, int_oo, -int_oo)


def write_range_constraints(ranges: Mapping[Any, Any]) -> dict[str, RangeConstraint]:
    """Return the ranges by symbol name, in their order.

    Args:
        ranges: sympy symbol -> torch's ValueRanges, inclusive.

    Source: `serialize_range_constraints` in torch/_export/serde/serialize.py, 2.13.
    """
    return {
        str(symbol): RangeConstraint(_bound(span.lower, math.ceil), _bound(span.upper, math.floor))
        for symbol, span in ranges.items()
    }


def _bound(value: Any, whole: Any) -> int | None:
    """Return one end of a range: a whole number, or None if it is open. A fraction is rounded to the inside."""
    if isinstance(value, (int, sympy.Integer)):
        return int(value)
    return None if value in _INFINITIES else int(whole(value))


def write_graph(module: Any, shared: Shared, depth: int = 0) -> Graph:
    """Write a graph and the graphs inside it.

    Args:
        module: an fx GraphModule.
        shared: what the program's graphs share.
        depth: how many graphs this one is inside of.

    Raises:
        Pt2Error: something that the format cannot hold, with its place.
    """
    return write_scope(module, shared, depth).graph()


def write_scope(module: Any, shared: Shared, depth: int = 0) -> Scope:
    """Write a graph as `write_graph`, and return its scope."""
    scope = Scope(module, shared, depth)
    for node in module.graph.nodes:
        write_node(node, scope)
    return scope


def write_module_calls(entries: Iterable[Any], specs: TreeSpecs, scope: Scope) -> list[ModuleCallEntry]:
    """Write the module call graph; named tuples in its specs are noted in `specs`.

    Raises:
        Pt2Error: an argument or a spec that the format cannot hold, with its module.

    Source: `serialize_module_call_graph` in torch/_export/serde/serialize.py, 2.13.
    """
    return [ModuleCallEntry(entry.fqn, _signature(entry, specs, scope)) for entry in entries]


def _signature(entry: Any, specs: TreeSpecs, scope: Scope) -> ModuleCallSignature | None:
    live = entry.signature
    if not live:
        return None
    with placed(f"module call graph: {entry.fqn or 'the root'}"):
        return ModuleCallSignature(
            [write_argument_spec(spec, scope) for spec in live.inputs],
            [write_argument_spec(spec, scope) for spec in live.outputs],
            specs.text(live.in_spec),
            specs.text(live.out_spec),
            list(live.forward_arg_names) if live.forward_arg_names else None,
        )


class TreeSpecs:
    """Writes specs and collects the named-tuple field table of the program.

    Attributes:
        fields: registered type name of each named tuple seen so far -> its field names.
    """

    def __init__(self) -> None:
        self.fields: dict[str, NamedTupleDef] = {}

    def text(self, live: pytree.TreeSpec) -> str:
        """Return the text of a spec, as torch writes it.

        Raises:
            UnsupportedError: a container type that is not registered with a name to serialize it by, or whose context
                is not JSON.
            GraphError: two classes of one registered name with different fields.
            LimitError: nested too deeply.

        Source: `treespec_dumps` in torch/utils/_pytree.py and `serialize_treespec` in torch/_export/serde/serialize.py,
        2.13.
        """
        return treespec.dump(self._convert(live, 0))

    def _convert(self, live: pytree.TreeSpec, depth: int) -> TreeSpec:
        if live.type is None:
            return treespec.LEAF
        if depth > treespec.MAX_DEPTH:
            raise LimitError(f"expected at most {treespec.MAX_DEPTH} containers inside each other, got more")
        name, context = _describe(live.type, live.context)
        if live.type is pytree.namedtuple or pytree.is_namedtuple_class(live.type):
            self._note_fields(live.context)
        children = tuple(self._convert(child, depth + 1) for child in child_specs(live))
        return TreeSpec(name, context, children)

    def _note_fields(self, cls: Any) -> None:
        name = stand_in_name(cls) or pytree.SUPPORTED_SERIALIZED_TYPES[cls].serialized_type_name
        fields = list(cls._fields)
        known = self.fields.setdefault(name, NamedTupleDef(fields))
        if known.field_names != fields:
            raise GraphError(
                f"named tuple {name!r}: expected one set of fields, "
                f"got ({', '.join(known.field_names)}) and ({', '.join(fields)})"
            )


def _describe(kind: Any, context: Any) -> tuple[str, str]:
    """Return the registered name of a container type, and its context as JSON text."""
    if kind is Placeholder:
        return context[0].type, context[0].context
    known = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
    if kind is pytree.namedtuple and known is not None and (name := stand_in_name(context)):
        return known.serialized_type_name, json.dumps(name)
    if known is None and isinstance(kind, type) and issubclass(kind, torch.nn.Module):
        # A module as an input: torch registers its class while it saves and writes the names of its tensors.
        return f"{kind.__module__}.{kind.__qualname__}", json.dumps(json.dumps([context[0], None]))
    if known is None or known.serialized_type_name == pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
        raise UnsupportedError(
            f"expected container types that are registered with a serialized_type_name, got {_name(kind)}"
        )
    try:
        if known.to_dumpable_context is None:
            dumpable: Any = json.dumps(context, default=_plain)
        else:
            dumpable = known.to_dumpable_context(context)
        return known.serialized_type_name, json.dumps(dumpable, default=_plain)
    except NotImplementedError:
        raise UnsupportedError(
            "expected named tuples that are registered with a serialized_type_name "
            f"(torch.utils._pytree._register_namedtuple), got {_name(context)}"
        ) from None
    except (TypeError, ValueError, AttributeError, RecursionError) as error:  # a defaultdict without a factory, too
        raise UnsupportedError(f"expected a context of {_name(kind)} that JSON can hold, got {error}") from error


def _plain(value: Any) -> Any:
    """Return an enum member in a context (a key of a dict, mostly) as JSON."""
    if isinstance(value, Enum):
        kind = type(value)
        return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": value.name}
    raise TypeError(f"a value of type {_name(type(value))}")


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else repr(kind)
