"""Packages -> one archive of several programs, with equal weights stored once; and back; the user's own files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pt2kit import schema
from pt2kit.editing.assembly import Part, Parts, folder_of, parts_of
from pt2kit.editing.weights import KINDS
from pt2kit.errors import ArchiveError
from pt2kit.messages import quote
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package
from pt2kit.package.write import write_package
from pt2kit.zip.opening import FileLike
from pt2kit.zip.record_name import name_problem
from pt2kit.zip.writer import DEFAULT_ROOT


def pack(
    sources: Mapping[str, Package | FileLike] | Sequence[Package | FileLike],
    *,
    extra_files: Mapping[str, bytes | str] | None = None,
) -> Package:
    """Put the programs of several packages into one; weights whose bytes are equal are stored once.

    Args:
        sources: name -> package or file; a package of several programs gives `<name>.<model>`. In a list, each program
            keeps its name, and a file whose program is called "model" gives it its own.
        extra_files: files to put beside the programs: name -> bytes or text.

    Returns:
        The package, with the extra files of all sources. Payloads of equal sizes are read once to compare them.

    Raises:
        ArchiveError: two programs, or two different extra files, of one name.
        Pt2Error: a source cannot be read.
    """
    parts = Parts("packed", DEFAULT_ROOT, {}, ())
    known: dict[tuple[Any, ...], str] = {}
    named = sources.items() if isinstance(sources, Mapping) else [(None, source) for source in sources]
    for name, source in named:
        package = source if isinstance(source, Package) else open_package(source)
        _add(parts, package, name, known)
    for name, data in (extra_files or {}).items():
        _put_extra(parts, name, data.encode() if isinstance(data, str) else bytes(data))
    return parts.package()


def unpack(source: Package | FileLike, folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Write each program of a package to a file of its own, with the weights that it uses and all extra files.

    Args:
        source: an open package or a file.
        folder: where `<model>.pt2` go; made where it is not there.

    Returns:
        model -> file.

    Raises:
        OSError, Pt2Error: the source cannot be read, or a file not written.
    """
    os.makedirs(folder, exist_ok=True)
    paths = {}
    with nullcontext(source) if isinstance(source, Package) else open_package(source) as package:
        for model in package.layout.models:
            paths[model] = Path(folder) / f"{model}.pt2"
            write_package(only(package, model), paths[model])
    return paths


def only(package: Package, model: str) -> Package:
    """One program of a package, as a package of its own.

    Raises:
        KeyError: no such program.
        Pt2Error: it cannot be read.
    """
    if model not in package.layout.models:
        raise KeyError(model)
    old = parts_of(package)
    gone = {record for other in old.models if other != model for record in _records_of(other)}
    records = {name: part for name, part in old.records.items() if name not in gone}
    parts = Parts(package.name, old.root, records, (model,), old.origins)
    parts.drop_unused()
    return parts.package()


def with_extra_files(
    package: Package, add: Mapping[str, bytes | str] | None = None, drop: Collection[str] = ()
) -> Package:
    """A package with other files of the user's beside its programs.

    Args:
        package: left as it is.
        add: name -> bytes or text; a file of that name is replaced.
        drop: names of files to leave out.

    Raises:
        ArchiveError: a file to leave out that is not there, or a name that no record can have.
    """
    parts = parts_of(package)
    for name in drop:
        if parts.records.pop(names.extra(name), None) is None:
            raise ArchiveError(f"{package.name}: expected an extra file to leave out, got {quote(name)}, which is none")
    for name, data in (add or {}).items():
        parts.records.pop(names.extra(name), None)
        _put_extra(parts, name, data.encode() if isinstance(data, str) else bytes(data))
    return parts.package()


def _add(parts: Parts, package: Package, name: str | None, known: dict[tuple[Any, ...], str]) -> None:
    source = parts_of(package)
    parts.origins.append(package)
    several = len(source.models) > 1
    for model in source.models:
        new = model if name is None else f"{name}.{model}" if several else name
        if name is None and model == "model" and (stem := _stem(package)):
            new = stem
        if new in parts.models or name_problem(f"{new}.json"):
            raise ArchiveError(
                f"pack: expected a name of its own for each program, got {quote(new)} again or one that no record can "
                "have; pass a mapping from names to packages"
            )
        parts.models = (*parts.models, new)
        _add_payloads(parts, source, model, new, known)
        for old_name, new_name in zip(_records_of(model), _records_of(new), strict=True):
            if old_name in source.records and new_name not in parts.records:
                parts.records[new_name] = source.records[old_name]
    for record, part in source.records.items():
        if (extra := names.extra_name(record)) is not None:
            _put_extra(parts, extra, bytes(part.read()))
        elif names.kind(record) in ("other", "compiled code") and record not in parts.records:
            parts.records[record] = part


def _add_payloads(parts: Parts, source: Parts, model: str, new: str, known: dict[tuple[Any, ...], str]) -> None:
    for kind in KINDS:
        config = {}
        for name, meta in source.config(model, kind).items():
            record = folder_of(kind) + meta.path_name
            place = _place(parts, source.records[record], record, kind, known)
            config[name] = schema.PayloadMeta(
                place.rpartition("/")[2], meta.is_param, meta.use_pickle, meta.tensor_meta
            )
        parts.set_config(new, kind, config)


def _place(parts: Parts, part: Part, record: str, kind: str, known: dict[tuple[Any, ...], str]) -> str:
    """The record of a payload among those that are packed: one that has its bytes, or a new one."""
    what = names.kind(record)
    key = (kind, what, part.size, hashlib.sha256(part.read()).digest())
    if key not in known:
        known[key] = _free(parts, record, kind)
        parts.records[known[key]] = part
    return known[key]


def _free(parts: Parts, record: str, kind: str) -> str:
    stem = record.rpartition("_")[0]
    if names.kind(record) in ("weight", "tensor constant"):
        return parts.next_record(kind)
    number = 0
    while f"{stem}_{number}" in parts.records:
        number += 1
    return f"{stem}_{number}"


def _records_of(model: str) -> tuple[str, ...]:
    from pt2kit.package.pickle_free_inputs.names import index_record

    return (
        names.model_json(model),
        names.weights_config(model),
        names.constants_config(model),
        names.sample_inputs(model),
        index_record(model),
    )


def _put_extra(parts: Parts, name: str, data: bytes) -> None:
    record = names.extra(name)
    there = parts.records.get(record)
    if there is not None and bytes(there.read()) != data:
        raise ArchiveError(f"pack: expected one extra file {quote(name)}, got two that differ")
    if problem := name_problem(record):
        raise ArchiveError(f"pack: expected a name that a record can have, got {quote(name)}, which {problem}")
    parts.put(record, data)


def _stem(package: Package) -> str:
    """The name of a package's file without folder and ending; "" where it has none that a program can have."""
    stem = os.path.splitext(os.path.basename(package.name))[0]
    return "" if package.name.startswith("<") or name_problem(f"{stem}.json") else stem
