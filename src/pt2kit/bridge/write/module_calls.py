"""torch's module call graph -> `ModuleCallEntry`: which modules were called, and how, where that was kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pt2kit.bridge.write.places import at
from pt2kit.bridge.write.scope import Scope
from pt2kit.bridge.write.signature import write_argument_spec
from pt2kit.bridge.write.treespecs import TreeSpecs
from pt2kit.errors import Pt2Error
from pt2kit.schema import ModuleCallEntry, ModuleCallSignature


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
    try:
        return ModuleCallSignature(
            [write_argument_spec(spec, scope) for spec in live.inputs],
            [write_argument_spec(spec, scope) for spec in live.outputs],
            specs.text(live.in_spec),
            specs.text(live.out_spec),
            list(live.forward_arg_names) if live.forward_arg_names else None,
        )
    except Pt2Error as error:
        raise at(f"module call graph: {entry.fqn or 'the root'}", error) from error
