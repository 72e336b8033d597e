"""Parts of an archive as they were read: a program, its container, its weights or constants, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from pt2kit import codec, schema
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.view import TensorView

if TYPE_CHECKING:
    from pt2kit.pickles.values import PickledTensor
    from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView, SubclassView
    from pt2kit.versions.conversion_log import Note

Payload: TypeAlias = "TensorView | SparseView | QuantizedView | NestedView | MetaView | SubclassView | OpaquePayload"
"""Whatever a weight or constant may be. Raw records are dense; torch.save files also hold the other kinds."""
Kind = Literal["weights", "constants"]


@dataclass(frozen=True, slots=True)
class StoredPayloads:
    """The weights or the constants of one program.

    Args:
        payloads: name -> view, in the file's order; read-only.
        config: the record that lists them.
        unknown: keys of that record that this build's schema does not have.
    """

    payloads: Mapping[str, Payload]
    config: str
    unknown: tuple[codec.Unknown, ...]


@dataclass(frozen=True, slots=True)
class StoredModel:
    """The container of schema 8.6 that a program is one method of.

    Args:
        name: of the model, as it states itself; "" if it states none.
        method: the program's name in it.
        delegates: name of a delegate -> its methods.
        weight_paths: weight name -> path of its record below the root of the archive, or next to the JSON file.
        constant_paths: constant name -> likewise.
        devices: device of the graph ("cuda:0") -> device to use; `pt2kit.load` applies it.
    """

    name: str
    method: str
    delegates: Mapping[str, Mapping[str, schema.ExportedProgram]] = field(default_factory=dict)
    weight_paths: Mapping[str, str] = field(default_factory=dict)
    constant_paths: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program as it was read.

    Args:
        program: upgraded to the current schema version.
        version: the version it was stored in ("8.14"); "draft" for the design draft, "5.3-traces" for the development
            state with tables of source files, whose number is that of another version.
        unknown: keys that this build's schema does not have, with their values.
        notes: what changed on the way to the current version.
        weights: name -> tensor, for versions that keep parameters and buffers inside the program (the draft).
        constants: name -> tensor, or bytes of a torch.save file or custom object, for versions that keep them there.
        model: the container it was in.
        is_raised: whether it was stored in an older form, and not in the current one with fields left out.
    """

    program: schema.ExportedProgram
    version: str
    unknown: tuple[codec.Unknown, ...]
    notes: tuple[Note, ...] = ()
    weights: Mapping[str, PickledTensor] = field(default_factory=dict)
    constants: Mapping[str, bytes | PickledTensor] = field(default_factory=dict)
    model: StoredModel | None = None
    is_raised: bool = False


@dataclass(frozen=True, slots=True)
class ReadContext:
    """Data that reading programs of older versions may need.

    Args:
        folder: the file's folder, for payloads stored next to it; None if it is no local file.
        namedtuples: class name -> name under which it is registered, for versions that have the class name only.
    """

    folder: str | None = None
    namedtuples: Mapping[str, str] = field(default_factory=dict)
