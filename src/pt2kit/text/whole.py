"""A whole file -> lines that can be compared line by line, as git compares texts: programs, tensors, other records.

What depends on how the file is packed is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from pt2kit.archive import names
from pt2kit.digests import digest_parts, payloads_of
from pt2kit.package import Package
from pt2kit.text.names import dotted, printable
from pt2kit.text.program import program_lines


def whole_lines(package: Package) -> Iterator[str]:
    """Everything in a package, a line at a time; of each tensor its type and its digest.

    Raises:
        Pt2Error: a part of it cannot be read.

    Cost: reads every tensor once.
    """
    for model in package.layout.models:
        yield f"model {printable(model)}"
        yield from (f"  {line}" for line in program_lines(package.programs[model]))
        found = digest_parts(package, ("weights", "constants"), model)
        for kind, table in (("weights", "tensors"), ("constants", "constant_tensors")):
            payloads = payloads_of(package, model, kind)
            if payloads:
                yield f"  {kind}"
            for name in sorted(payloads):
                yield f"    {dotted(name)}: {payloads[name].describe()} {found[table][name]}"
    yield from _records(package)


def _records(package: Package) -> Iterator[str]:
    kinds = ("sample inputs", "extra file", "compiled code", "other")
    rows = {package.relative(name): record for name, record in package.records.items()}
    shown = sorted(name for name in rows if names.kind(name) in kinds)
    if shown:
        yield "records"
    for name in shown:
        yield f"  {printable(name)}: {rows[name].size:,} bytes, crc32 {rows[name].crc32:08x}"
