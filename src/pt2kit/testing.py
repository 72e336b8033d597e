"""Assertions for tests: two programs are the same, or the error lists what differs, as `pt2 diff` does."""

from __future__ import annotations

import io
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from typing import Any

from pt2kit.diffs.compute import diff
from pt2kit.package.open import Package, open_package
from pt2kit.text.diff_report import diff_lines
from pt2kit.zip.listing import FileLike

__all__ = ["assert_same_program"]


def assert_same_program(
    actual: Package | FileLike | Any,
    expected: Package | FileLike | Any,
    *,
    tensors: bool = True,
    metadata: bool = False,
    names: bool = False,
    order: bool = False,
    records: bool = False,
) -> None:
    """Assert that two files hold the same programs, however they are packed and whatever their values are called.

    Args:
        actual, expected: open packages, files (a path, bytes, a file object, a URL), or live programs
            (`torch.export.ExportedProgram`), which are serialized for it.
        tensors: compare the values of weights and constants, exactly; their types and shapes are in any case.
        metadata: compare stack traces and the like.
        names: compare the names of nodes, values and symbols.
        order: compare the order of nodes.
        records: compare sample inputs and extra files.

    Raises:
        AssertionError: they differ; the message is what `pt2 diff` prints, expected first.
        OSError, Pt2Error: a file cannot be read.
    """
    with ExitStack() as stack:
        new, old = (
            one if isinstance(one, Package) else stack.enter_context(_opened(one)) for one in (actual, expected)
        )
        difference = diff(old, new, tensors=tensors, metadata=metadata, names=names, order=order)
        left_out = {area for area, wanted in (("record", records), ("metadata", metadata)) if not wanted}
        shown = replace(
            difference, changes=tuple(change for change in difference.changes if change.area not in left_out)
        )
        if shown.changes:
            raise AssertionError("expected the same program\n" + "\n".join(diff_lines(shown)))


def _opened(given: Any) -> Package:
    if type(given).__module__.startswith("torch.export"):
        buffer = io.BytesIO()
        import_module("pt2kit.bridge.save").save(given, buffer)
        return open_package(buffer.getvalue())
    return open_package(given)
