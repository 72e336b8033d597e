"""Container types of schema 8.6: `Program` (methods by name) and `Model` (a program, its payloads, its delegates).

    Model   {name, tensorPaths, program, delegates, deviceAllocationMap, constantPaths}
    Program {methods: {name: ExportedProgram}}

A JSON record that is one of them holds several programs. `tensorPaths` and `constantPaths` say which record of the
archive each weight and each constant is; `deviceAllocationMap` says for a device of the graph which one to use. Later
schemas have no such types: a package with several programs took their place. They are read at any minor of schema 8
that the programs inside have, and not written.

A payload record is either a torch.save file of one tensor, or its raw little-endian bytes, which the graph describes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal

from pt2kit.errors import PayloadError, SchemaError
from pt2kit.jsontext import Path, path_text
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import PickledTensor, TensorKind
from pt2kit.schema import CURRENT
from pt2kit.versions.conversion_log import Tree
from pt2kit.versions.line.constants import TORCH_NAMES, described
from pt2kit.versions.program import Upgraded, upgrade_program
from pt2kit.versions.rewrite import rewrite
from pt2kit.zip.reader import Storage

VERSION: Final = "8.6"
"""The version whose table has the container types."""
METHOD: Final = "forward"
"""The name of the method of a program that has one."""

_ZIP: Final = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Model:
    """A model with several programs, without its delegates.

    Args:
        name: of the model; "" for a bare `Program`.
        methods: method name -> function that upgrades its program to the current version.
        weight_paths: weight name -> path of its record, relative to the root of the archive.
        constant_paths: constant name -> likewise.
        devices: device of the graph ("cuda:0") -> device to use ("cuda:1").
    """

    name: str
    methods: Mapping[str, Callable[[], Upgraded]]
    weight_paths: Mapping[str, str] = field(default_factory=dict)
    constant_paths: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)


def container_of(raw: Any) -> Literal["Model", "Program"] | None:
    """Return the container type of a parsed record, by its keys; None for a program alone, or anything else."""
    if not isinstance(raw, dict) or "graph_module" in raw:
        return None
    if {"program", "tensorPaths"} <= raw.keys():
        return "Model"
    return "Program" if "methods" in raw else None


def read_model(raw: Any, where: str) -> Model:
    """Read a container; its programs are upgraded on demand, and its delegates are containers as well.

    Args:
        raw: the record, as `codec.parse(data, where, bare_literals=True)` gives it.
        where: the record's name, for messages.

    Raises:
        SchemaError: no container (M5), or one without its parts (M1).
    """
    kind = container_of(raw)
    if kind is None:
        raise SchemaError(f"{where}: $: expected a Model or a Program of schema {VERSION}, got neither", rule="M5")
    if kind == "Program":
        return Model("", _methods(raw, (), where))
    if not isinstance(raw.get("name"), str):
        got = type(raw.get("name")).__name__
        raise SchemaError(f"{where}: $.name: expected the name of a model, got {got}", rule="M1")
    tables = (_texts(raw, key, where) for key in ("tensorPaths", "constantPaths", "deviceAllocationMap"))
    return Model(raw["name"], _methods(raw["program"], ("program",), where), *tables)


def read_model_payload(
    storage: Storage, meta: Mapping[str, Any], name: str, where: str, *, kind: TensorKind = "tensor"
) -> PickledTensor:
    """Describe the record that a model names for one tensor; nothing of it is copied.

    Args:
        storage: the record.
        meta: what the graph says of the tensor (a `TensorMeta` of the current version).
        name: the tensor's name.
        where: the record's name, for messages.
        kind: what the tensor is for its module.

    Raises:
        PayloadError: not one tensor, symbolic sizes, or fewer bytes than the tensor takes.
        Pt2Error: as `pickles.reader.read_payload`.
    """
    data = storage.read()
    if bytes(data[:4]) == _ZIP:
        value = read_payload(data, where)
        if not isinstance(value, PickledTensor):
            raise PayloadError(f"{where}: expected one tensor for {name!r}, got {type(value).__name__}")
        return value
    dtype = TORCH_NAMES.get(meta["dtype"])
    if dtype is None:
        raise PayloadError(f"{where}: expected a dtype of schema {VERSION} for {name!r}, got {meta['dtype']}")
    device = meta["device"]
    place = device["type"] if device.get("index") is None else f"{device['type']}:{device['index']}"
    return described(storage, dtype, place, meta, kind, f"{where}: {name!r}")


def map_devices(tree: Tree, devices: Mapping[str, str], where: str) -> Tree:
    """Return a program whose values are on other devices.

    Args:
        tree: of the current version; not changed.
        devices: as in `Model`; a type alone stands for its devices without an index.
        where: the record's name, for messages.

    Raises:
        SchemaError: a device that is not type or type:index.
    """
    parsed = {key: _device(key, where) for key in (*devices, *devices.values())}

    def device(value: Any, _: Path) -> Any:
        for source, target in devices.items():
            if parsed[source] == {"type": value["type"], "index": value["index"]}:
                return {**value, **parsed[target]}
        return value

    return rewrite(tree, CURRENT.number, {"Device": device})


def _methods(raw: Any, path: Path, where: str) -> Mapping[str, Callable[[], Upgraded]]:
    methods = raw.get("methods") if isinstance(raw, dict) else None
    if not isinstance(methods, dict):
        raise SchemaError(f"{where}: {path_text(path)}: expected an object with methods, got none", rule="M1")
    places = {name: f"{where}: {path_text((*path, 'methods', name))}" for name in methods}
    return MappingProxyType({name: partial(upgrade_program, one, places[name]) for name, one in methods.items()})


def _texts(model: Mapping[str, Any], key: str, where: str) -> Mapping[str, str]:
    texts = model.get(key, {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise SchemaError(f"{where}: $.{key}: expected an object of texts, got {type(texts).__name__}", rule="M1")
    return MappingProxyType(dict(texts))


def _device(text: str, where: str) -> dict[str, Any]:
    kind, colon, index = text.partition(":")
    if not kind.isidentifier() or (colon and not (index.isdecimal() and index.isascii() and len(index) < 4)):
        raise SchemaError(
            f"{where}: deviceAllocationMap: expected a device such as cuda:0, got {text[:40]!r}", rule="M1"
        )
    return {"type": kind, "index": int(index) if colon else None}
