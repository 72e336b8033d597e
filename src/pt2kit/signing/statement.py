"""A package -> the names and digests that a signature states, and what of a package differs from signed ones.

    models/<model>/program                 and graph, signature, constraints, weights, constants, metadata
    models/<model>/weights/<name>          one weight or buffer
    models/<model>/constants/<name>        one constant
    records/<record>                       sha256 of a record beside programs: sample inputs, extra files, compiled code

Digests are those of `pt2 digest`, so that how the file is packed, and metadata of nodes, make no difference. Records
beside the programs may be missing in what is verified, but not be others: PyTorch unpickles or loads some of them.
Names are percent-encoded, so that a slash in one is no separator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote as percent_encoded
from urllib.parse import unquote

from pt2kit.digests.compute import digest
from pt2kit.digests.hashing import PREFIX
from pt2kit.digests.result import PARTS
from pt2kit.errors import UnsupportedError
from pt2kit.messages import quote
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.package.pickle_free_inputs.names import index_model, is_storage_record
from pt2kit.tensors.output import Progress, no_progress

BESIDE: Final = frozenset(("sample inputs", "extra file", "compiled code", "other"))
"""The kinds of records whose bytes are signed; all others hold what digests speak of."""
TABLES: Final = (("weights", "tensors"), ("constants", "constant_tensors"))
HARMLESS: Final = "metadata"
"""The part that may differ: it says where a program comes from, and changes nothing that is computed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as signed.

    Args:
        what: its name: "weight 'fc.weight' of 'model'", "record 'extra/note.txt'".
        signed: the digest that was signed, 64 hexadecimal digits; None where nothing of that name was.
        got: the digest of what is there; None where nothing is.
    """

    what: str
    signed: str | None
    got: str | None

    def __str__(self) -> str:
        return f"{self.what}: expected {_shown(self.signed)}, got {_shown(self.got)}"


def statement(package: Package, *, progress: Progress = no_progress) -> dict[str, str]:
    """Name and digest all that a signature of a package speaks of.

    Args:
        package: reads all of its tensors and the records beside its programs.
        progress: told the bytes of tensors done and in all, program by program.

    Returns:
        resource name -> 64 hexadecimal digits.

    Raises:
        UnsupportedError: the package holds no program, so that it has no meaning to sign.
        Pt2Error: it cannot be read, or a program has no normal form.
    """
    if not package.layout.models:
        raise UnsupportedError(
            f"{package.name}: expected a program to sign, got an archive without one; its bytes can be signed (--bytes)"
        )
    stated: dict[str, str] = {}
    for model in package.layout.models:
        digests = digest(package, model, progress=progress)
        stated |= {resource("models", model, part): getattr(digests, part) for part in PARTS}
        for kind, table in TABLES:
            stated |= {resource("models", model, kind, name): one for name, one in getattr(digests, table).items()}
    stated = {name: one.removeprefix(PREFIX) for name, one in stated.items()}
    return stated | {resource("records", name): one for name, one in _beside(package)}


def differences(signed: Mapping[str, str], found: Mapping[str, str]) -> Iterator[Difference]:
    """What of a package is not as signed; a tensor by its name, and its whole only where no tensor explains it."""
    for name in sorted({*signed, *found}):
        one, other = signed.get(name), found.get(name)
        parts = split(name)
        if one == other or (parts[0] == "records" and other is None) or parts[-1:] == (HARMLESS,):
            continue
        if len(parts) == 3 and parts[0] == "models" and _explained(parts, signed, found):
            continue
        yield Difference(described(parts), one, other)


def left_out(signed: Mapping[str, str], found: Mapping[str, str]) -> tuple[str, ...]:
    """The signed records that a package does not have, and metadata that it has no longer, or otherwise."""
    missing = [described(split(name)) for name in sorted(signed) if name not in found and split(name)[0] == "records"]
    metadata = [name for name in signed if len(split(name)) == 3 and split(name)[2] == HARMLESS]
    return (*missing, *(described(split(name)) for name in metadata if found.get(name) not in (None, signed[name])))


def not_covered(package: Package) -> tuple[str, ...]:
    """What a package has that no statement speaks of: sample inputs that are no pickle, which nothing runs."""
    return tuple(name for name in map(package.relative, package.records) if is_storage_record(name))[:1] and (
        "sample inputs without a pickle",
    )


def resource(*parts: str) -> str:
    """A name for a statement; `split` gives the parts back."""
    return "/".join(_encoded(part) for part in parts)


def split(name: str) -> tuple[str, ...]:
    """The parts of a resource's name."""
    return tuple("" if part == "%" else unquote(part, errors="surrogatepass") for part in name.split("/"))


def described(parts: tuple[str, ...]) -> str:
    """A resource, as messages call it."""
    if parts[0] == "models" and len(parts) == 4:
        return f"{parts[2].removesuffix('s')} {quote(parts[3])} of {quote(parts[1])}"
    if parts[0] == "models" and len(parts) == 3:
        return f"{parts[2]} of {quote(parts[1])}"
    return f"record {quote('/'.join(parts[1:]))}" if parts[0] == "records" else quote("/".join(parts))


def _encoded(part: str) -> str:
    """A part without a slash, never empty, and none of those that paths give a meaning (`.`, `..`)."""
    text = percent_encoded(part, safe="", errors="surrogatepass")
    return text.replace(".", "%2E") if text in (".", "..") else text or "%"


def _explained(parts: tuple[str, ...], signed: Mapping[str, str], found: Mapping[str, str]) -> bool:
    """Whether a part of a program differs because parts or tensors of it do, which are named themselves."""
    _, model, part = parts
    if part == "program":
        below = [resource("models", model, one) for one in PARTS if one not in ("program", HARMLESS)]
    else:
        folder = resource("models", model, part) + "/"
        below = [name for name in {*signed, *found} if name.startswith(folder)]
    return any(signed.get(name) != found.get(name) for name in below)


def _beside(package: Package) -> Iterator[tuple[str, str]]:
    """Name and sha256 of each record beside the programs; empty ones, and indexes of moved sample inputs, are none."""
    for name, record in package.records.items():
        relative = package.relative(name)
        if names.kind(relative) not in BESIDE or is_storage_record(relative):
            continue
        if (index_model(relative) in package.layout.models) or not record.size:
            continue
        yield names.in_archive(relative), hashlib.sha256(package.archive.read(name)).hexdigest()


def _shown(found: str | None) -> str:
    return "nothing" if found is None else f"{PREFIX}{found}"
