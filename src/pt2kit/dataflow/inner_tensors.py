"""Programs with weights that torchao quantized, whose calls take the inner tensors of one, as programs of dense ones.

Export writes such a weight as one input, and a call for each inner tensor that is used: `qdata`, `scale`, `zero_point`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from pt2kit import schema
from pt2kit.graph.argument_values import arguments
from pt2kit.schema.names import free_name, target_of
from pt2kit.signature.specs import TensorArgument, input_spec, schema_input_spec
from pt2kit.tensors.compound import SubclassView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.view import TensorView

_ACCESS: Final = "torch.ops.export.access_subclass_inner_tensor.default"
_ALIAS: Final = "torch.ops.aten.alias.default"

Parts: TypeAlias = dict[str, dict[str, TensorView]]
"""Weight -> its inner tensors by the names that they have as weights: "lin.weight" -> "lin.weight.qdata"."""


def in_parts(program: schema.ExportedProgram, payloads: Mapping[str, Any]) -> tuple[schema.ExportedProgram, Parts]:
    """Return a program that takes the inner tensors of its weights as inputs, and these tensors.

    A weight that is used as a whole, too, stays. Nodes keep their numbers and names: calls for inner tensors become
    aliases of inputs.

    Args:
        program: the program; the same one is returned if it has no such weights.
        payloads: weights and constants by name.

    Raises:
        Pt2Error: a weight cannot be read.
    """
    graph = program.graph_module.graph
    calls: dict[str, dict[int, str]] = {}
    for number, node in enumerate(graph.nodes):
        if node.target == _ACCESS and [one.arg.type for one in node.inputs] == ["as_tensor", "as_string"]:
            whole, part = (one.arg.value for one in node.inputs)
            calls.setdefault(whole.name, {})[number] = part
    if not calls:
        return program, {}
    used = [*(named.arg for node in graph.nodes for named in node.inputs), *graph.outputs]
    uses = Counter(name for argument in used for name in arguments(argument))
    inputs: list[schema.Argument] = []
    specs: list[schema.InputSpec] = []
    nodes, metas, found = [*graph.nodes], {**graph.tensor_values}, Parts()
    for argument, spec in zip(graph.inputs, program.graph_module.signature.input_specs, strict=True):
        name, target = next(arguments(argument), ""), str(target_of(spec))
        own = calls.get(name, {})
        inner = _inner(payloads.get(target)) if len(own) == uses[name] else {}
        if not own or not inner.keys() >= {*own.values()}:
            inputs.append(argument)
            specs.append(spec)
            continue
        held = {part: f"{name}_{part}" for part in own.values()}
        held = {part: one if one not in metas else free_name(one, metas.__contains__) for part, one in held.items()}
        del metas[name]
        metas |= {held[part]: inner[part].meta() for part in held}
        found[target] = {f"{target}.{part}": inner[part] for part in held}
        for part, new in held.items():
            inputs.append(_tensor(new))
            changed = dataclasses.replace(input_spec(spec), arg=TensorArgument(new), target=f"{target}.{part}")
            specs.append(schema_input_spec(changed))
        for number, part in own.items():
            of = replace(nodes[number].inputs[0], name="self", arg=_tensor(held[part]))
            nodes[number] = replace(nodes[number], target=_ALIAS, inputs=[of])
    signature = replace(program.graph_module.signature, input_specs=specs)
    graph = replace(graph, inputs=inputs, nodes=nodes, tensor_values=metas)
    return replace(program, graph_module=replace(program.graph_module, graph=graph, signature=signature)), found


def _tensor(name: str) -> schema.Argument:
    return schema.Argument(as_tensor=schema.TensorArgument(name))


def _inner(payload: Any) -> Mapping[str, TensorView]:
    """Return the inner tensors of a weight; {} of one that is a tensor of its own."""
    view = payload.meaning() if isinstance(payload, OpaquePayload) else payload
    if not isinstance(view, SubclassView):
        return {}
    return {name: dataclasses.replace(part, is_param=payload.is_param) for name, part in view.parts.items()}
