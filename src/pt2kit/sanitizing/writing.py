"""Writing of a sanitized file, which replaces the target only if it is proven to mean the same and carry no code.

It is verified by digests: the new file has the meaning of the original.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import IO, Any, Final

from pt2kit.digests.compute import digest_parts
from pt2kit.digests.result import PARTS
from pt2kit.errors import Problem, UnsupportedError
from pt2kit.front_door import registered
from pt2kit.messages import count_text
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package, opened
from pt2kit.package.pickle_free_inputs import PickleFreeInputs, leaf_tree
from pt2kit.package.plan import write_records
from pt2kit.sanitizing.options import make_options
from pt2kit.sanitizing.plan import Plan, make_plan
from pt2kit.sanitizing.programs import find_code, read_samples
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.export import new_file
from pt2kit.tensors.view import TensorView
from pt2kit.zip.listing import FileLike
from pt2kit.zip.source import Progress, is_source, no_progress
from pt2kit.zip.target import spooled
from pt2kit.zip.writer import ArchiveWriter

MEANING: Final = tuple(part for part in PARTS if part != "metadata")
"""The parts that must not change."""

_ALLOWED: Final = frozenset(
    ("header", "program", "weights config", "constants config", "weight", "tensor constant", "extra file")
)

_SHOWN = 50


def _digests(package: Package, model: str, progress: Progress) -> dict[str, str]:
    """Return the digests of a program's parts; pickled tensors are digested as the tensors that they are."""
    digests = digest_parts(package, PARTS, model, progress=progress)
    return {part: digests[part] for part in PARTS}


def prove(
    result: Package, plan: Plan, before: Mapping[str, Mapping[str, str]], progress: Progress
) -> dict[str, dict[str, str]]:
    """Check that a written package is the one that was planned.

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
        after[model] = _digests(result, model, progress)
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


def _check_samples(found: PickleFreeInputs | None, wanted: PickleFreeInputs | None, model: str) -> None:
    if found is None and wanted is None:
        return
    if found is None or wanted is None or list(map(_shown, found.leaves)) != list(map(_shown, wanted.leaves)):
        raise UnsupportedError(f"{model}: expected the sample inputs as they were, got others")
    pairs = {
        (new.storage, old.storage)
        for new, old in zip(found.leaves, wanted.leaves, strict=True)
        if isinstance(new, TensorView)
    }
    for new, old in pairs:
        if hashlib.sha256(new.read(keep=False)).digest() != hashlib.sha256(old.read(keep=False)).digest():
            raise UnsupportedError(f"{model}: expected the numbers of the sample inputs as they were, got others")


def _shown(leaf: Any) -> Any:
    """Return what is compared of a leaf besides its numbers."""
    if isinstance(leaf, TensorView | MetaView):
        return leaf.meta(), leaf.is_param
    return repr(leaf_tree(leaf, ""))


@dataclass(frozen=True, slots=True)
class Sanitized:
    """The result of sanitizing a package.

    Args:
        digests: model -> part -> digest of what was written; but for "metadata" where that was to change, they are
            those of the package.
        metadata_before: model -> digest of its metadata before.
        moved: the models whose sample inputs are no pickle any more.
        unpickled: tensors that were pickles and are raw records now.
        dropped: what was left out, by name.
        raised: what changed when programs of older versions became current ones.
        kept: safety findings about plain data that stock torch needs.
    """

    digests: Mapping[str, Mapping[str, str]]
    metadata_before: Mapping[str, str]
    moved: tuple[str, ...]
    unpickled: tuple[str, ...]
    dropped: tuple[str, ...]
    raised: tuple[str, ...]
    kept: tuple[Problem, ...]

    def to_tree(self) -> dict[str, Any]:
        """Return the result as JSON has it."""
        return {
            "models": {
                model: {"digests": dict(digests), "metadata_before": self.metadata_before[model]}
                for model, digests in self.digests.items()
            },
            "moved": list(self.moved),
            "unpickled": list(self.unpickled),
            "dropped": list(self.dropped),
            "raised": list(self.raised),
            "kept": [asdict(problem) for problem in self.kept],
        }


def sanitize(
    src: Package | FileLike,
    dst: str | os.PathLike[str] | IO[bytes],
    *,
    drop: Collection[str] = (),
    strip: Collection[str] = (),
    scrub_paths: bool = False,
    fsync: bool = False,
    progress: Progress = no_progress,
    prove: bool = False,
) -> Sanitized:
    """Write a package as a file that means the same and carries no pickle and no code; stock torch loads it.

    Sample inputs become raw records with an index; `Package.sample_inputs` and `pt2kit.load` give them as before. The
    new file has the current layout. It is compared with the package before it replaces the target.

    Args:
        src: an open package, or a file, which is opened and closed.
        dst: a path, replaced whole or not at all, or a binary file object; either may be the package's own file.
        drop: what may be left out: "compiled", "sample-inputs", "extra", "unused", or the record of one extra file,
            such as "extra/note.txt". Nothing else is.
        strip: metadata to leave out: "traces", "provenance" (traces and where nodes come from), or "metadata" (all).
        scrub_paths: leave of absolute paths in metadata only what is the same on every machine.
        fsync: wait for the disk also where no file is replaced; replacing one always does.
        progress: called with the bytes of tensors done and in all, once for each time they are read.
        prove: run the program before and after on random inputs, and write nothing if results differ.

    Raises:
        ProofError: with `prove`, results differ.
        UnsupportedError: what cannot be expressed as data, all of it by name; an unknown name in `drop` or `strip`.
        OSError: a file cannot be read or written.
        Pt2Error: the package cannot be read.

    Cost: every tensor is read three times: digested, written, digested again.
    """
    options = make_options(drop, strip, scrub_paths)
    with opened(src) as package:
        plan = make_plan(package, options)
        if plan.problems:
            raise refusal(package, plan)
        return execute(package, plan, dst, fsync=fsync, progress=progress, run=prove)


def refusal(package: Package, plan: Plan) -> UnsupportedError:
    """Return the error that lists the obstacles."""
    shown = "".join(f"\n  {problem}" for problem in plan.problems[:_SHOWN])
    more = f"\n  … and {len(plan.problems) - _SHOWN:,} more" if len(plan.problems) > _SHOWN else ""
    others = count_text(len(plan.problems), "other thing")
    return UnsupportedError(f"{package.name}: expected data alone, got {others}:{shown}{more}")


def execute(
    package: Package,
    plan: Plan,
    dst: str | os.PathLike[str] | IO[bytes],
    *,
    fsync: bool = False,
    progress: Progress = no_progress,
    run: bool = False,
) -> Sanitized:
    """Carry out a plan without problems, and prove the result.

    Raises:
        UnsupportedError: the new file would mean something else; nothing was written.
        OSError, Pt2Error: as `sanitize`.
    """
    before = {model: _digests(package, model, progress) for model in package.layout.models}
    with new_file(dst, fsync=fsync) if isinstance(dst, str | os.PathLike) else spooled(dst) as file:
        with ArchiveWriter(file, root=plan.root) as writer:
            write_records(writer, plan.records)
        file.seek(0)
        with open_package(file) as result:
            if run:
                registered("prove")(package, result)
            after = prove(result, plan, before, progress)
    if not isinstance(dst, str | os.PathLike) and is_source(package.archive.source, dst):
        dst.truncate()
    return Sanitized(
        digests=after,
        metadata_before={model: digests["metadata"] for model, digests in before.items()},
        moved=tuple(plan.samples),
        unpickled=tuple(plan.unpickled),
        dropped=tuple(plan.dropped),
        raised=tuple(plan.raised),
        kept=tuple(plan.kept),
    )
