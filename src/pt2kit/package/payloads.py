"""The records of a program's weights or constants -> views by name, compared with what the graph says of them.

Reads the config, no tensor bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from pt2kit import codec, schema
from pt2kit.errors import UnsupportedError
from pt2kit.jsontext import path_text
from pt2kit.package import record_names as names
from pt2kit.package.layout import Layout
from pt2kit.package.lazy import Named
from pt2kit.package.parts import parts, program_record
from pt2kit.package.stored import Kind, Payload, ReadContext, StoredPayloads, StoredProgram
from pt2kit.tensors.payload import check_against, views_from_config
from pt2kit.tensors.view import TensorView
from pt2kit.zip.reader import Archive

if TYPE_CHECKING:
    pass


def read_payloads(
    archive: Archive,
    layout: Layout,
    model: str,
    kind: Kind,
    stored: Callable[[], StoredProgram],
    context: ReadContext | None = None,
) -> StoredPayloads:
    """Describe the weights or the constants of one program; no tensor is read.

    Args:
        archive, layout: where they are.
        model: whose they are.
        kind: which of the two.
        stored: gives the program, whose graph states type and sizes of what it takes in.
        context: where to look for what is stored beside a file.

    Raises:
        ArchiveError: a record is missing or damaged.
        JsonError, SchemaError: a config that is none.
        PayloadError, UnsupportedError, LimitError: metadata that contradicts its record or the graph.
    """
    if parts(archive, layout, model).stored_as == "records":
        return _read_records(archive, layout, model, kind, lambda: stored().program)
    from pt2kit.package.legacy_payloads import read_older_payloads

    older_payloads = read_older_payloads(archive, layout, model, kind, stored(), context)
    _check_all(older_payloads.payloads, stored().program, layout, archive, model)
    return older_payloads


def _read_records(
    archive: Archive, layout: Layout, model: str, kind: Kind, program: Callable[[], schema.ExportedProgram]
) -> StoredPayloads:
    """Weights or constants that a config lists."""
    weights = kind == "weights"
    config = names.weights_config(model) if weights else names.constants_config(model)
    folder = names.WEIGHTS if weights else names.CONSTANTS
    decoded = codec.decode(archive.read(layout.record(config)), schema.PayloadConfig, config)
    views = views_from_config(decoded.value, archive, folder=layout.record(folder), where=config)
    _check_all(views, program(), layout, archive, model)
    return StoredPayloads(Named(views, "tensor"), config, decoded.unknown)


def _check_all(
    found: Mapping[str, Payload], program: schema.ExportedProgram, layout: Layout, archive: Archive, model: str
) -> None:
    """Compare dense tensors with what the graph says of them; others are compared where their kind can be."""
    record = program_record(archive, layout, model).removeprefix(layout.root)
    table = f"{record}: $.graph_module.graph.tensor_values"
    for name, meta, value in stated_metas(program):
        view = found.get(name)
        if isinstance(view, TensorView):
            _check_stated(view, meta, f"{table}{path_text((value,))[1:]}")


def _check_stated(view: TensorView, meta: schema.TensorMeta, where: str) -> None:
    if meta.layout is not view.layout:
        raise UnsupportedError(
            f"{where}: layout: expected {view.layout.name}, as payload {view.name!r} is stored, got {meta.layout.name}",
            rule="P5",
        )
    check_against(view, meta, where)


def stated_metas(program: schema.ExportedProgram) -> Iterator[tuple[str, schema.TensorMeta, str]]:
    """For each input that is taken from the payloads: its name there, what the graph says of the tensor, and its name
    in the graph.
    """
    values = program.graph_module.graph.tensor_values
    for spec in program.graph_module.signature.input_specs:
        match spec.value:
            case (
                schema.InputToParameterSpec(arg, target)
                | schema.InputToBufferSpec(arg, target)
                | schema.InputToTensorConstantSpec(arg, target)
            ) if arg.name in values:
                yield target, values[arg.name], arg.name
