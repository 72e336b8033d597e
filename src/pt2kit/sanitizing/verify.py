"""Verification of a sanitized package by digests: it has the meaning of the original, and carries no code."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from pt2kit.digests.compute import digest_parts
from pt2kit.digests.hashing import PREFIX, hash_value, text
from pt2kit.digests.payloads import Hasher, digest_payloads
from pt2kit.digests.result import PARTS
from pt2kit.errors import UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.sanitizing.plan import Plan
from pt2kit.sanitizing.programs import find_code
from pt2kit.sanitizing.samples import Samples, read_samples
from pt2kit.tensors.output import AnyView, Progress

MEANING: Final = tuple(part for part in PARTS if part != "metadata")
"""The parts that must not change."""

_ALLOWED: Final = frozenset(
    ("header", "program", "weights config", "constants config", "weight", "tensor constant", "extra file")
)


def digests_of(
    package: Package, model: str, views: Mapping[str, Mapping[str, AnyView]], unpickled: bool, progress: Progress
) -> dict[str, str]:
    """Return the digests of a program's parts; pickled tensors are digested as the tensors that they are.

    Args:
        package: an open package.
        model: which program.
        views: kind -> name -> tensor.
        unpickled: whether these are other ones than the package's own.
        progress: called with the bytes of tensors done and in all.

    Raises:
        Pt2Error: as `digests.digest`.
    """
    if not unpickled:
        digests = digest_parts(package, PARTS, model, progress=progress)
        return {part: digests[part] for part in PARTS}
    digests = digest_parts(package, ("graph", "signature", "constraints", "metadata"), model)
    hasher = Hasher([view for payloads in views.values() for view in payloads.values()], progress)
    for kind, payloads in views.items():
        digests[kind] = text(digest_payloads(payloads, hasher).digest)
    raw = {part: bytes.fromhex(digests[part].removeprefix(PREFIX)) for part in MEANING if part != "program"}
    digests["program"] = text(hash_value("program", raw))
    return {part: digests[part] for part in PARTS}


def prove(
    result: Package, plan: Plan, before: Mapping[str, Mapping[str, str]], progress: Progress
) -> dict[str, dict[str, str]]:
    """Check that a package that was written is what its plan says.

    Args:
        result: what was written, opened again.
        plan: what was to be written.
        before: model -> digests of what it comes from.
        progress: called with the bytes of tensors done and in all.

    Returns:
        model -> digests of its parts.

    Raises:
        UnsupportedError: it means something else, or has a finding that the plan does not have.
        Pt2Error: it cannot be read.
    """
    _check_records(result)
    after = {}
    for model, old in before.items():
        after[model] = digests_of(result, model, {}, False, progress)
        same = MEANING if plan.changes_metadata else PARTS
        if changed := [part for part in same if after[model][part] != old[part]]:
            rows = "; ".join(f"{part}: expected {old[part]}, got {after[model][part]}" for part in changed)
            raise UnsupportedError(f"{model}: expected the same digests as before: {rows}")
        _check_samples(read_samples(result, model, None), plan.samples.get(model), model)
    refused, kept = find_code(result)
    known = {finding.rule for finding in plan.kept}
    if odd := refused + [finding for finding in kept if finding.rule not in known]:
        raise UnsupportedError(f"{result.name}: expected a file without code, got: {odd[0]}")
    return after


def _check_records(result: Package) -> None:
    for record, row in result.records.items():
        name = result.relative(record)
        kind = names.kind(name)
        is_empty = kind == "sample inputs" and row.size == 0
        if kind not in _ALLOWED and not names.is_samples_storage(name) and not is_empty:
            raise UnsupportedError(f"{result.name}: expected no {kind} record, got {name}")


def _check_samples(found: Samples | None, wanted: Samples | None, model: str) -> None:
    if found is None and wanted is None:
        return
    if found is None or wanted is None or found.index(0) != wanted.index(0):
        raise UnsupportedError(f"{model}: expected the sample inputs as they were, got others")
    for new, old in zip(found.storages, wanted.storages, strict=True):
        if hashlib.sha256(new.data).digest() != hashlib.sha256(old.data).digest():
            raise UnsupportedError(f"{model}: expected the numbers of the sample inputs as they were, got others")
