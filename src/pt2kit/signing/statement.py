"""Statement of a signature: names and digests of a package's parts, and how a file differs from the signed ones.

    models/<model>/program                 and graph, signature, constraints, weights, constants, metadata
    models/<model>/weights/<name>          one weight or buffer
    models/<model>/constants/<name>        one constant
    records/<record>                       sha256 of any other record below the root folder, known or not: sample
                                           inputs, extra files, compiled code, payloads that no program uses

Digests are those of `pt2 digest`, so that the packing of the file, and metadata of nodes, make no difference. Other
records than programs may be missing in the verified file, but not differ: PyTorch unpickles or loads some of them.
Names are percent-encoded, so that a slash in one is no separator.

`Verified` is the comparison of a file with its signature.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote as percent_encoded
from urllib.parse import unquote

from pt2kit.checks.safety import safety_findings
from pt2kit.digests.compute import TABLE_OF, digest_parts
from pt2kit.digests.result import DEFINITION, PARTS, PREFIX
from pt2kit.errors import SignatureError, UnsupportedError
from pt2kit.messages import quote
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.release.models import records_of
from pt2kit.zip.source import Progress, no_progress

HARMLESS: Final = "metadata"
"""Part that may differ: it states where a program comes from, and changes nothing that is computed."""
CODE: Final = ("X5", "X6")
"""Rules of code in names of values and in numbers that nothing is computed from, which are in no digest."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One part that is not as signed.

    Args:
        what: its name: "weight 'fc.weight' of 'model'", "record 'extra/note.txt'".
        signed: the digest that was signed, 64 hexadecimal digits; None if nothing of that name was.
        got: the digest of the part in the file; None if it is missing.
    """

    what: str
    signed: str | None
    got: str | None

    def __str__(self) -> str:
        return f"{self.what}: expected {_shown(self.signed)}, got {_shown(self.got)}"


def statement(package: Package, *, progress: Progress = no_progress, definition: int = DEFINITION) -> dict[str, str]:
    """Compute the name and digest of everything that a signature of a package covers.

    Args:
        package: all of its tensors and other records are read.
        progress: called with the bytes of tensors done and in all, program by program.
        definition: the number of the definition of digests to follow.

    Returns:
        resource name -> 64 hexadecimal digits.

    Raises:
        UnsupportedError: the package holds no program, so that it has no meaning to sign.
        SignatureError: PyTorch would run code in a place that no digest covers.
        Pt2Error: it cannot be read, or a program has no normal form.
    """
    if not package.layout.models:
        raise UnsupportedError(
            f"{package.name}: expected a program to sign, got an archive without one; its bytes can be signed (--bytes)"
        )
    findings = list(safety_findings(package))
    for finding in findings:
        if finding.rule in CODE:
            raise SignatureError(f"{finding.loc}: expected no code where no digest covers it: {finding.message}")
    calling = {finding.loc for finding in findings if finding.rule == "X2" and finding.kind != "note"}
    stated: dict[str, str] = {}
    for model in package.layout.models:
        digests = digest_parts(package, PARTS, model, progress=progress, definition=definition)
        stated |= {resource("models", model, part): digests[part] for part in PARTS}
        for kind, table in TABLE_OF.items():
            stated |= {resource("models", model, kind, name): one for name, one in digests[table].items()}
    stated = {name: one.removeprefix(PREFIX) for name, one in stated.items()}
    return stated | {resource("records", name): one for name, one in _other_records(package, calling)}


def differences(signed: Mapping[str, str], found: Mapping[str, str]) -> Iterator[Difference]:
    """Yield the parts of a package that are not as signed.

    A changed tensor is named itself; the part that contains it is named only if no tensor explains it.
    """
    for name in sorted({*signed, *found}):
        one, other = signed.get(name), found.get(name)
        parts = split(name)
        if one == other or (parts[0] == "records" and other is None) or parts[-1:] == (HARMLESS,):
            continue
        if len(parts) == 3 and parts[0] == "models" and _explained(parts, signed, found):
            continue
        yield Difference(described(parts), one, other)


def left_out(signed: Mapping[str, str], found: Mapping[str, str]) -> tuple[str, ...]:
    """Return the signed records that a package lacks, and metadata that is missing or changed."""
    missing = [described(split(name)) for name in sorted(signed) if name not in found and split(name)[0] == "records"]
    metadata = [name for name in signed if len(split(name)) == 3 and split(name)[2] == HARMLESS]
    return (*missing, *(described(split(name)) for name in metadata if found.get(name) not in (None, signed[name])))


def not_covered(package: Package) -> tuple[str, ...]:
    """Return the parts of a package that no statement covers: sample inputs that are no pickle, which nothing runs."""
    has_any = any(map(names.is_samples_storage, map(package.relative, package.records)))
    return ("sample inputs without a pickle",) if has_any else ()


def resource(*parts: str) -> str:
    """Return a name for a statement; `split` returns the parts."""
    return "/".join(_encoded(part) for part in parts)


def split(name: str) -> tuple[str, ...]:
    """Return the parts of a resource's name."""
    return tuple("" if part == "%" else unquote(part, errors="surrogatepass") for part in name.split("/"))


def described(parts: tuple[str, ...]) -> str:
    """Return the name of a resource in messages."""
    if parts[0] == "models" and len(parts) == 4:
        return f"{parts[2].removesuffix('s')} {quote(parts[3])} of {quote(parts[1])}"
    if parts[0] == "models" and len(parts) == 3:
        return f"{parts[2]} of {quote(parts[1])}"
    return f"record {quote('/'.join(parts[1:]))}" if parts[0] == "records" else quote("/".join(parts))


def _encoded(part: str) -> str:
    """Return a part without a slash, never empty, and none of those that are special in paths (`.`, `..`)."""
    text = percent_encoded(part, safe="", errors="surrogatepass")
    return text.replace(".", "%2E") if text in (".", "..") else text or "%"


def _explained(parts: tuple[str, ...], signed: Mapping[str, str], found: Mapping[str, str]) -> bool:
    """Return whether a part of a program differs because parts or tensors of it do, which are named themselves."""
    _, model, part = parts
    if part == "program":
        below = [resource("models", model, one) for one in PARTS if one not in ("program", HARMLESS)]
    else:
        folder = resource("models", model, part) + "/"
        below = [name for name in {*signed, *found} if name.startswith(folder)]
    return any(signed.get(name) != found.get(name) for name in below)


def _other_records(package: Package, calling: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield name and sha256 of each record that no digest of a program covers.

    Empty ones are none, and so are sample inputs that were moved out of their pickle.

    Args:
        package: the package.
        calling: records whose pickle calls something: a digest covers its tensors alone.
    """
    layout = package.layout
    digested = {record for model in layout.models for record in records_of(package, model)}
    for parts in map(layout.parts, layout.models):
        digested -= {parts.sample_inputs, *(one for one in parts.pickles if package.relative(one) in calling)}
    for name, record in package.records.items():
        relative = package.relative(name)
        if name in digested or names.kind(relative) == "header" or names.is_samples_storage(relative):
            continue
        if (names.samples_index_model(relative) in layout.models) or not record.size:
            continue
        yield names.in_archive(relative), hashlib.sha256(package.archive.read(name)).hexdigest()


def _shown(found: str | None) -> str:
    return "nothing" if found is None else f"{PREFIX}{found}"


@dataclass(frozen=True, slots=True)
class Verified:
    """Comparison of a file with its authentic signature. True if the file is as signed.

    Args:
        signed: "meaning", the programs and other records, or "bytes", the file itself.
        differences: the parts that are not as signed, by name; empty if there are none.
        left_out: signed parts that are missing in the file, without changing its meaning: records that are no programs.
        not_covered: parts of the file that a statement over the meaning does not cover.
    """

    signed: Literal["meaning", "bytes"]
    differences: tuple[Difference, ...] = ()
    left_out: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Return whether the file is as signed."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok
