"""Read programs of torch 2.8 and older, or of no release, as `StoredProgram`s, through `versions`.

A container of schema 8.6 holds several programs; each becomes one of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pt2kit import codec, schema
from pt2kit.errors import JsonError, SchemaError
from pt2kit.package.programs import from_current, is_current_shape, version_error
from pt2kit.package.stored import Lazy, ReadContext, StoredModel, StoredProgram
from pt2kit.schema.versions import stated_pair
from pt2kit.versions.containers import METHOD, container_of, read_model
from pt2kit.versions.conversion_log import read_folder
from pt2kit.versions.identify import TRACES, find_version, is_draft
from pt2kit.versions.program import Upgraded, upgrade_program


def read_older(
    data: memoryview,
    where: str,
    context: ReadContext,
    method: str | None = None,
    refusal: SchemaError | JsonError | None = None,
) -> StoredProgram:
    """Read a program of any version.

    Args:
        data: its JSON.
        where: the record's name, for messages.
        context: data that it may need.
        method: which program of a container is meant; None for the one there is, or "forward".
        refusal: why it does not have the current form, if that was tried before.

    Raises:
        JsonError: no JSON document.
        VersionError: a version that no table describes.
        Pt2Error: as `versions.program.upgrade_program`.
    """
    try:
        tree = codec.parse(data, where, bare_literals=True)
    except JsonError:
        if refusal is not None:
            raise refusal from None
        raise
    stated = tree.get("schema_version") if isinstance(tree, dict) else None
    if is_current_shape(stated):
        return _read_typed(data, tree, where, refusal)
    if container_of(tree) is not None:
        return _read_method(tree, method, where)
    is_older = isinstance(tree, dict) and (stated_pair(stated) is not None or is_draft(tree))
    if refusal is not None and not is_older:
        raise refusal
    external = None if context.folder is None else read_folder(context.folder)
    raised = upgrade_program(tree, where, namedtuples=context.namedtuples, read_external=external)
    return _stored(raised, where)


def list_programs(data: memoryview, where: str, model: str) -> Mapping[str, str | None]:
    """Name the programs of a record: one, or the methods of a container.

    Args:
        data: its JSON.
        where: the record's name, for messages.
        model: the name of a program alone, and the first part of the names of methods.

    Returns:
        name of a program -> method of the container; None for a program alone.

    Raises:
        JsonError, LimitError: no JSON document.
        SchemaError, VersionError: it is no program of a version that is read (M4, M5).

    Cost: of a current program only the top level is read, and decoding it reports errors inside; others are
        parsed whole.
    """
    if _is_program_of_today(data):
        return {model: None}
    tree = codec.parse(data, where, bare_literals=True)
    if (kind := container_of(tree)) is None:
        find_version(tree, where)
        return {model: None}
    program_tree = tree["program"] if kind == "Model" else tree
    methods = program_tree.get("methods") if isinstance(program_tree, dict) else None
    if not isinstance(methods, dict) or not methods:
        return {model: None}  # reading it reports what is wrong
    if len(methods) == 1:
        return {model: next(iter(methods))}
    return {model if method == METHOD else f"{model}.{method}": method for method in methods}


class _Top(msgspec.Struct):
    """Fields that the top level of a program has and that of a container has not."""

    graph_module: msgspec.Raw
    schema_version: schema.SchemaVersion


def _is_program_of_today(data: memoryview) -> bool:
    """Return whether JSON is a program that the typed pass is for, by its top level."""
    try:
        return is_current_shape(msgspec.json.decode(data, type=_Top).schema_version)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _read_typed(data: memoryview, tree: Any, where: str, refusal: SchemaError | JsonError | None) -> StoredProgram:
    """Return a program of the current form in an older layout, or one that was refused."""
    if isinstance(refusal, SchemaError):
        raise version_error(tree, where, refusal) or refusal
    if refusal is not None:
        raise refusal
    try:
        return from_current(codec.decode(data, schema.ExportedProgram, where), where)
    except SchemaError as error:
        raise version_error(tree, where, error) or error from None


def _stored(raised: Upgraded, where: str, model: StoredModel | None = None) -> StoredProgram:
    decoded = codec.convert(raised.tree, schema.ExportedProgram, where)
    version = TRACES if raised.found.table == TRACES else raised.found.number
    side_inputs = (raised.notes, raised.weights, raised.constants, model)
    return StoredProgram(decoded.value, version, decoded.unknown, *side_inputs, is_raised=True)


def _read_method(tree: dict[str, Any], method: str | None, where: str) -> StoredProgram:
    """Return one method of a container; the others are not upgraded, and delegates only on access."""
    model = read_model(tree, where)
    delegates = tree.get("delegates", {})
    if not isinstance(delegates, dict):
        raise SchemaError(f"{where}: $.delegates: expected an object, got {type(delegates).__name__}", rule="M1")

    def read_delegate(name: str) -> Mapping[str, schema.ExportedProgram]:
        place = f"{where}: delegate {name!a}"
        methods = read_model(delegates[name], place).methods
        return {key: _stored(upgrade(), place).program for key, upgrade in methods.items()}

    name = _chosen(model.methods, method, where)
    lazy: Lazy[Mapping[str, schema.ExportedProgram]] = Lazy(tuple(delegates), read_delegate)
    side_inputs = StoredModel(model.name, name, lazy, model.weight_paths, model.constant_paths, model.devices)
    return _stored(model.methods[name](), where, side_inputs)


def _chosen(methods: Mapping[str, Any], method: str | None, where: str) -> str:
    wanted = method if method is not None else METHOD if METHOD in methods or len(methods) != 1 else next(iter(methods))
    if wanted not in methods:
        shown = ", ".join(map(ascii, list(methods)[:20])) or "none"
        raise SchemaError(f"{where}: expected a method {wanted!a}, got {shown}", rule="M5")
    return wanted
