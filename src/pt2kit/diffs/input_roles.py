"""Matching of inputs and outputs of two programs, and the roles that both then have.

By what the signature calls them: parameters, buffers, constants and objects by the module's name for them. User inputs
correspond by position, as their names are values' names; only if one was added or removed the names decide. What is
left over corresponds in order, if there are equally many of one kind and the same is known of each: all parameters have
new names when a module moved.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeAlias

from pt2kit import codec, schema
from pt2kit.canonical.canonical_labeling import grouped
from pt2kit.schema.names import target_of

GONE: Final = "\0gone"
"""Marker of an old value that corresponds to no new one; no file has such a name."""

Pairs: TypeAlias = list[tuple[int, int]]
"""(old position, new position)."""


def match_inputs(old: schema.GraphModule, new: schema.GraphModule) -> Pairs:
    """Return the graph inputs of two programs that correspond.

    Args:
        old, new: graph modules with as many input specs as graph inputs.
    """
    named = _user_inputs(old) != _user_inputs(new)
    before = [_role(old, position, named) for position in range(len(old.graph.inputs))]
    after = [_role(new, position, named) for position in range(len(new.graph.inputs))]
    pairs = _by_role(before, after)
    taken_old, taken_new = {one for one, _ in pairs}, {other for _, other in pairs}
    for kind in dict.fromkeys(kind for kind, _ in before):
        left = [position for position, role in enumerate(before) if role[0] == kind and position not in taken_old]
        right = [position for position, role in enumerate(after) if role[0] == kind and position not in taken_new]
        known_old = [_known(old.graph, position) for position in left]
        known_new = [_known(new.graph, position) for position in right]
        if len(left) == len(right) and (kind == "user_input" or known_old == known_new):
            pairs += zip(left, right, strict=True)
    return sorted(pairs, key=lambda pair: pair[1])


def renamed_payloads(old: schema.GraphModule, new: schema.GraphModule) -> dict[str, str]:
    """Return new name -> old name of the parameters, buffers and constants that correspond under other names.

    Args:
        old, new: graph modules with as many input specs as graph inputs.
    """
    new_to_old = {}
    for one, other in match_inputs(old, new):
        before, after = target_of(old.signature.input_specs[one]), target_of(new.signature.input_specs[other])
        if before is not None and after is not None and before != after:
            new_to_old[after] = before
    return new_to_old


def match_outputs(old: schema.GraphModule, new: schema.GraphModule, pairs: Pairs) -> Pairs:
    """Return the graph outputs of two programs that correspond, for matched inputs."""
    renamed = {_name(old.graph.inputs[one]): _name(new.graph.inputs[other]) for one, other in pairs}
    before = _output_roles(old, lambda name: renamed.get(name, GONE))
    after = _output_roles(new, lambda name: name)
    return _by_role(before, after)


def input_role(module: schema.GraphModule, position: int) -> tuple[str, str]:
    """Return the kind of a graph input and its name: the module's, the graph's if it is the user's, or none."""
    spec = module.signature.input_specs[position]
    if spec.type == "user_input":
        return spec.type, _name(module.graph.inputs[position])
    return spec.type, target_of(spec) or str(getattr(spec.value, "name", ""))  # A constant input has a name of its own.


def _user_inputs(module: schema.GraphModule) -> int:
    return sum(spec.type == "user_input" for spec in module.signature.input_specs)


def _role(module: schema.GraphModule, position: int, named: bool) -> tuple[str, str]:
    kind, name = input_role(module, position)
    return kind, name if named or kind != "user_input" else ""


def _output_roles(module: schema.GraphModule, rename: Callable[[str], str]) -> list[tuple[str, str]]:
    roles = [(spec.type, target_of(spec) or "") for spec in module.signature.output_specs]
    return [(kind, rename(name) if "user_input" in kind else name) for kind, name in roles]


def _name(argument: schema.Argument) -> str:
    value: Any = argument.value
    return str(getattr(value, "name", "") or getattr(value, "as_name", "") or "")


def _by_role(before: Sequence[Hashable], after: Sequence[Hashable]) -> Pairs:
    """Pair what has one role, in order where several have it."""
    places = grouped(reversed(range(len(after))), after.__getitem__)
    return [(position, places[role].pop()) for position, role in enumerate(before) if places.get(role)]


def _known(graph: schema.Graph, position: int) -> bytes:
    """Return the known facts of a graph input, except its name."""
    argument = graph.inputs[position]
    meta = graph.tensor_values.get(_name(argument))
    return argument.type.encode() + (codec.encode(meta) if meta is not None else b"")
