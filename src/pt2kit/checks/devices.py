"""Check of the devices that a program names, in values and calls: those that torch does not have (rule P6)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.findings import problem_of
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.traversal import graphs
from pt2kit.jsontext import path_text
from pt2kit.messages import cut
from pt2kit.tensors.bounds import check_device


def device_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate the devices that torch does not have, each once, at the first place where it is named.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    known: set[tuple[str, int | None]] = set()
    for scope in graphs(context.program, context.graph_place):
        for name, meta in scope.graph.tensor_values.items():
            if (meta.device.type, meta.device.index) not in known:
                place = f"{scope.where}.tensor_values{path_text((cut(name),))[1:]}"
                yield from _check(meta.device, place, known)
    for step in context.steps():
        for position, named in enumerate(step.node.inputs):
            if named.arg.as_device is not UNSET:
                yield from _check(named.arg.as_device, f"{step.where}.inputs[{position}].arg", known)


def _check(device: schema.Device, place: str, known: set[tuple[str, int | None]]) -> Iterator[Problem]:
    key = (device.type, device.index)
    if key in known:
        return
    known.add(key)
    try:
        check_device(place, device)
    except Pt2Error as error:
        yield problem_of(error, place)
