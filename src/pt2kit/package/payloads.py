"""The weights or constants of a program as views by name, compared with what the graph states of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from pt2kit import codec, schema
from pt2kit.errors import UnsupportedError
from pt2kit.jsontext import path_text
from pt2kit.package import record_names as names
from pt2kit.package.programs import read_json
from pt2kit.package.stored import Kind, Named, Payload, StoredPayloads, StoredProgram
from pt2kit.tensors.payload import check_against, views_from_config
from pt2kit.tensors.view import TensorView

if TYPE_CHECKING:
    from pt2kit.package.layouts.base import Layout
    from pt2kit.pickles.values import TensorKind


def read_listed(layout: Layout, model: str, kind: Kind, stored: Callable[[], StoredProgram]) -> StoredPayloads:
    """Describe weights or constants that a config lists. Reads the config, no tensor bytes.

    Raises: as `Layout.read_payloads`.
    """
    config, folder = names.payload_config(model, kind), names.payload_folder(kind)
    decoded = codec.decode(read_json(layout.archive, layout.record(config), config), schema.PayloadConfig, config)
    views = views_from_config(decoded.value, layout.archive, folder=layout.record(folder), where=config)
    _check_stated(views, stored().program, layout.relative(layout.program_record(model)))
    return StoredPayloads(Named(views, "tensor"), config, decoded.unknown)


def view_all(
    layout: Layout, model: str, payloads: Mapping[str, Payload], record: str, stored: StoredProgram
) -> StoredPayloads:
    """Return payloads that no config lists, after comparing them with what the graph states.

    Args:
        layout: what they were read from.
        model: the program's name.
        payloads: name -> view.
        record: full name of the record that holds them.
        stored: the program.

    Raises:
        PayloadError, UnsupportedError: they contradict the graph.
    """
    _check_stated(payloads, stored.program, layout.relative(layout.program_record(model)))
    return StoredPayloads(Named(payloads, "tensor"), layout.relative(record), ())


def payload_inputs(program: schema.ExportedProgram) -> Iterator[tuple[str, str, TensorKind | None]]:
    """Yield the inputs that are payloads: target name, name of the value, and kind; None for a custom object."""
    for spec in program.graph_module.signature.input_specs:
        match spec.value:
            case schema.InputToParameterSpec(arg, target):
                yield target, arg.name, "parameter"
            case schema.InputToBufferSpec(arg, target):
                yield target, arg.name, "buffer"
            case schema.InputToTensorConstantSpec(arg, target):
                yield target, arg.name, "tensor"
            case schema.InputToCustomObjSpec(arg, target):
                yield target, arg.name, None


def stated_metas(program: schema.ExportedProgram) -> Iterator[tuple[str, schema.TensorMeta, str]]:
    """Yield the inputs that are tensors: target name, `TensorMeta` of the graph, name of the value."""
    values = program.graph_module.graph.tensor_values
    for target, name, kind in payload_inputs(program):
        if kind is not None and name in values:
            yield target, values[name], name


def _check_stated(views: Mapping[str, Payload], program: schema.ExportedProgram, record: str) -> None:
    """Compare dense tensors with what the graph states of them; others are compared if their kind can be."""
    table = f"{record}: $.graph_module.graph.tensor_values"
    for name, meta, value in stated_metas(program):
        view = views.get(name)
        if not isinstance(view, TensorView):
            continue
        where = f"{table}{path_text((value,))[1:]}"
        if meta.layout is not view.layout:
            raise UnsupportedError(
                f"{where}: layout: expected {view.layout.name}, as payload {view.name!r} is stored, got "
                f"{meta.layout.name}",
                rule="P5",
            )
        check_against(view, meta, where)
