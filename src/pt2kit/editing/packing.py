"""Packing of several programs into one archive, and unpacking; extra files of the user.

Equal weights are stored once in a packed archive.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pt2kit.editing.assembly import Parts, parts_of
from pt2kit.editing.weights import KINDS
from pt2kit.errors import ArchiveError
from pt2kit.messages import quote
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package, opened
from pt2kit.package.plan import PlannedRecord
from pt2kit.package.write import write_package
from pt2kit.zip.chosen_names import name_problem, paths_below
from pt2kit.zip.listing import FileLike
from pt2kit.zip.writer import DEFAULT_ROOT


def pack(
    sources: Mapping[str, Package | FileLike] | Sequence[Package | FileLike],
    *,
    extra_files: Mapping[str, bytes | str] | None = None,
) -> Package:
    """Pack the programs of several packages into one; weights whose bytes are equal are stored once.

    Args:
        sources: name -> package or file; a package of several programs gives `<name>.<model>`. In a list, each program
            keeps its name, and a file whose program is called "model" gives it its own.
        extra_files: files to add to the archive: name -> bytes or text.

    Returns:
        The package, with the extra files of all sources. Payloads of equal sizes are read once to compare them.

    Raises:
        ArchiveError: two programs, or two different extra files, of one name.
        Pt2Error: a source cannot be read.
        TypeError: one file instead of several.
    """
    if isinstance(sources, str | bytes):
        raise TypeError("sources: expected a mapping or a list of files and packages, got one file; write [file]")
    parts = Parts("packed", DEFAULT_ROOT, {}, ())
    known: dict[tuple[Any, ...], str] = {}
    named = sources.items() if isinstance(sources, Mapping) else [(None, source) for source in sources]
    for name, source in named:
        package = source if isinstance(source, Package) else open_package(source)
        _add(parts, package, name, known)
    for name, data in (extra_files or {}).items():
        _put_extra(parts, name, data)
    return parts.package()


def unpack(
    source: Package | FileLike, folder: str | os.PathLike[str], *, force: bool = False, rename: bool = False
) -> dict[str, Path]:
    """Write each program of a package to a file of its own, with the weights that it uses and all extra files.

    Args:
        source: an open package or a file.
        folder: where `<model>.pt2` go; created if it does not exist.
        force: replace existing files.
        rename: change names of programs that are hidden or odd as names of files; else they are refused.

    Returns:
        model -> file.

    Raises:
        ArchiveError: a name that is odd, or a file that exists already; nothing was written.
        OSError, Pt2Error: the source cannot be read, or a file not written.
    """
    with opened(source) as package:
        models = {f"{model}.pt2": model for model in package.layout.models}
        paths = {models[name]: path for name, path in paths_below(folder, models, force=force, rename=rename).items()}
        for model, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_package(only(package, model), path)
        os.makedirs(folder, exist_ok=True)
    return paths


def only(package: Package, model: str) -> Package:
    """Return one program of a package, as a package of its own.

    Raises:
        ArchiveError: no such program.
        Pt2Error: it cannot be read.
    """
    model = package.choose(model)
    old = parts_of(package)
    gone = {record for other in old.models if other != model for record in _records_of(other)}
    records = {name: part for name, part in old.records.items() if name not in gone}
    parts = Parts(package.name, old.root, records, (model,), old.origins)
    parts.drop_unused()
    return parts.package()


def with_extra_files(
    package: Package, add: Mapping[str, bytes | str] | None = None, drop: Collection[str] = ()
) -> Package:
    """Return a package with extra files of the user.

    Args:
        package: not changed.
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
        _put_extra(parts, name, data)
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
            _put_extra(parts, extra, part.read())
        elif names.kind(record) in ("other", "compiled code") and record not in parts.records:
            parts.records[record] = part


def _add_payloads(parts: Parts, source: Parts, model: str, new: str, known: dict[tuple[Any, ...], str]) -> None:
    def same(parts: Parts, record: str, part: PlannedRecord, kind: str) -> str:
        """Return the record of a payload among the packed ones: one with the same bytes, or a new one."""
        key = (kind, names.kind(record), part.size, hashlib.sha256(part.read()).digest())
        if key not in known:
            known[key] = parts.add_payload(record, part, kind)
        return known[key]

    for kind in KINDS:
        config = source.config(model, kind)
        parts.set_config(
            new, kind, {name: parts.copy_payload(meta, source, kind, same) for name, meta in config.items()}
        )


def _records_of(model: str) -> tuple[str, ...]:
    """Return the names of the records that belong to one program alone."""
    parts = (names.model_json, names.weights_config, names.constants_config, names.sample_inputs, names.samples_index)
    return tuple(name(model) for name in parts)


def _put_extra(parts: Parts, name: str, content: bytes | str) -> None:
    record, data = names.extra(name), content.encode() if isinstance(content, str) else bytes(content)
    there = parts.records.get(record)
    if there is not None and bytes(there.read()) != data:
        raise ArchiveError(f"pack: expected one extra file {quote(name)}, got two that differ")
    if problem := name_problem(record):
        raise ArchiveError(f"pack: expected a name that a record can have, got {quote(name)}, which {problem}")
    parts.put(record, data)


def _stem(package: Package) -> str:
    """Return a package's file name without folder and suffix; "" if a program cannot have that name."""
    stem = os.path.splitext(os.path.basename(package.name))[0]
    return "" if package.name.startswith("<") or name_problem(f"{stem}.json") else stem
