"""Writing of a sanitized file, which replaces the target only if it is proven to mean the same."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import IO, Any

from pt2kit.errors import Problem, UnsupportedError
from pt2kit.package.open import Package, open_package
from pt2kit.package.plan import write_records
from pt2kit.registry import registered
from pt2kit.sanitizing.options import make_options
from pt2kit.sanitizing.plan import Plan, make_plan
from pt2kit.sanitizing.verify import digests_of, prove
from pt2kit.tensors.output import Progress, new_file, no_progress
from pt2kit.zip.opening import FileLike
from pt2kit.zip.source import is_source
from pt2kit.zip.target import spooled
from pt2kit.zip.writer import ArchiveWriter

_SHOWN = 50


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
    with nullcontext(src) if isinstance(src, Package) else open_package(src) as package:
        plan = make_plan(package, options)
        if plan.problems:
            raise refusal(package, plan)
        return execute(package, plan, dst, fsync=fsync, progress=progress, run=prove)


def refusal(package: Package, plan: Plan) -> UnsupportedError:
    """Return the error that lists the obstacles."""
    shown = "".join(f"\n  {problem}" for problem in plan.problems[:_SHOWN])
    more = f"\n  … and {len(plan.problems) - _SHOWN:,} more" if len(plan.problems) > _SHOWN else ""
    return UnsupportedError(
        f"{package.name}: expected data alone, got {len(plan.problems):,} other things:{shown}{more}"
    )


def execute(
    package: Package,
    plan: Plan,
    dst: str | os.PathLike[str] | IO[bytes],
    *,
    fsync: bool = False,
    progress: Progress = no_progress,
    run: bool = False,
) -> Sanitized:
    """Write what a plan without problems says, and prove it.

    Raises:
        UnsupportedError: the new file would mean something else; nothing was written.
        OSError, Pt2Error: as `sanitize`.
    """
    before = {
        model: digests_of(package, model, plan.views[model], bool(plan.unpickled), progress)
        for model in package.layout.models
    }
    if isinstance(dst, str | os.PathLike):
        with new_file(dst, fsync=fsync) as file:
            after = _write_and_prove(file, plan, before, progress, package if run else None)
    else:
        with spooled(dst) as file:
            after = _write_and_prove(file, plan, before, progress, package if run else None)
        if is_source(package.archive.source, dst):
            dst.truncate()
    return Sanitized(
        digests=after,
        metadata_before={model: digests["metadata"] for model, digests in before.items()},
        moved=tuple(plan.samples),
        unpickled=plan.unpickled,
        dropped=plan.dropped,
        raised=plan.raised,
        kept=plan.kept,
    )


def _write_and_prove(
    file: IO[bytes],
    plan: Plan,
    before: Mapping[str, Mapping[str, str]],
    progress: Progress,
    source: Package | None,
) -> dict[str, dict[str, str]]:
    with ArchiveWriter(file, root=plan.root) as writer:
        write_records(writer, plan.records)
    file.seek(0)
    with open_package(file) as result:
        if source is not None:
            registered("prove")(source, result)
        return prove(result, plan, before, progress)
