"""`Digest`: SHA-256 digests of a program's parts, of its tensors, and of all of it; to and from JSON; differences.

program ─┬─ graph          operators, arguments, descriptions of values; operator set, verifiers
         ├─ signature      what inputs and outputs are, how the program is called, calls of modules
         ├─ constraints    ranges of symbols, guards
         ├─ weights  ───── a digest per tensor
         └─ constants ──── a digest per tensor or object
metadata                   what the program says about where it came from; not part of `program`

Values and bytes are hashed with a prefix for the kind of data, so that no kind can be mistaken for another.

    digest of a value     SHA-256( "pt2kit " kind " 1" NUL encoding )
    digest of bytes       SHA-256( "pt2kit bytes 1" NUL bytes )

"1" numbers the encoding, which is that of all versions of the definition; `docs/digest.md` is normative.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pt2kit.canonical.encoding import encode_value
from pt2kit.errors import UnsupportedError
from pt2kit.messages import count_text

PREFIX: Final = "sha256:"
BLOCK: Final = 1 << 24
"""Bytes hashed together, between two reports of progress."""

DEFINITION: Final = 3
"""The number of the definition in `docs/digest.md`."""
OLDER: Final = (2,)
"""The definitions whose digests can still be verified."""
_FORMATS: Final = {f"pt2kit digest {number}": number for number in (DEFINITION, *OLDER)}
FORMAT: Final = f"pt2kit digest {DEFINITION}"
PARTS: Final = ("program", "graph", "signature", "constraints", "weights", "constants", "metadata")
"""The digests of a program, from the whole to its parts."""

TABLES: Final = ("tensors", "constant_tensors")
"""The tables with a digest per name, of weights and of constants."""


def hash_value(kind: str, value: Any) -> bytes:
    """Return the digest of a value of some kind, 32 bytes.

    Raises:
        LimitError, UnsupportedError: as `encode_value`.
    """
    return hashlib.sha256(_tag(kind) + encode_value(value)).digest()


def hash_bytes(pieces: Iterable[bytes | memoryview]) -> bytes:
    """Return the digest of bytes that come in pieces, 32 bytes."""
    hasher = hashlib.sha256(_tag("bytes"))
    for piece in pieces:
        hasher.update(piece)
    return hasher.digest()


def text(digest: bytes) -> str:
    """Return a digest as it is written: "sha256:" and 64 hexadecimal digits."""
    return PREFIX + digest.hex()


def _tag(kind: str) -> bytes:
    return f"pt2kit {kind} 1\0".encode()


@dataclass(frozen=True, slots=True, repr=False)
class Digest:
    """Digests of one program, each as "sha256:" and 64 hexadecimal digits.

    Args:
        program: all that the program means.
        graph, signature, constraints, weights, constants: its parts.
        metadata: node metadata and the like; no part of `program`.
        tensors: name -> digest of one weight.
        constant_tensors: name -> digest of one constant, tensor or object.
    """

    program: str
    graph: str
    signature: str
    constraints: str
    weights: str
    constants: str
    metadata: str
    tensors: Mapping[str, str]
    constant_tensors: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<Digest {self.program}: {count_text(len(self.tensors) + len(self.constant_tensors), 'tensor')}>"

    def to_tree(self) -> dict[str, Any]:
        """Return the digests as JSON has them."""
        parts = {part: getattr(self, part) for part in PARTS}
        return {"format": FORMAT, **parts, **{table: dict(getattr(self, table)) for table in TABLES}}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One digest that is not what was expected.

    Args:
        what: "graph", "weights", …, or the name of a tensor in quotes after its table: `tensors['fc.weight']`.
        expected: the digest that was expected; None where nothing of that name was.
        got: the digest of what is there; None where nothing is.
    """

    what: str
    expected: str | None
    got: str | None

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected or 'nothing'}, got {self.got or 'nothing'}"


def read_expected(tree: Any, where: str) -> dict[str, Any]:
    """Check that a tree is a result of `Digest.to_tree`, or a part of it.

    Args:
        tree: a plain tree, as from JSON.
        where: where it comes from, for messages.

    Returns:
        the digests that are there: parts by name, tables of digests by name.

    Raises:
        UnsupportedError: another format, an unknown key, or something that is no digest.
    """
    if not isinstance(tree, Mapping):
        raise UnsupportedError(f"{where}: expected an object of digests, got {type(tree).__name__}")
    digests: dict[str, Any] = {}
    for key, value in tree.items():
        if key == "format":
            definition_of(tree, where)
        elif key in TABLES and isinstance(value, Mapping):
            digests[key] = {name: check_digest(one, f"{where}: {key}[{name!r}]") for name, one in value.items()}
        elif key in PARTS:
            digests[key] = check_digest(value, f"{where}: {key}")
        else:
            raise UnsupportedError(f"{where}: expected {', '.join((*PARTS, *TABLES))}, got {str(key)[:60]!r}")
    return digests


def read_programs(tree: Any, where: str) -> dict[str, Any] | None:
    """Return the expected digests of each program if a tree has those of several; None if it is of one.

    Raises:
        UnsupportedError: another format, or programs that are no object.
    """
    if not isinstance(tree, Mapping) or "programs" not in tree:
        return None
    programs = tree["programs"]
    definition_of(tree, where)
    if not isinstance(programs, Mapping) or len(tree) > 2:
        raise UnsupportedError(f"{where}: expected format {FORMAT!r} and programs, got {str(list(tree))[:80]}")
    found = {"format": tree["format"]} if "format" in tree else {}
    return {name: {**found, **one} if isinstance(one, Mapping) else one for name, one in programs.items()}


def definition_of(tree: Mapping[str, Any], where: str) -> int | None:
    """Return the number of the definition that digests follow; None if they do not state it.

    Raises:
        UnsupportedError: a definition that this build does not know.
    """
    if "format" not in tree:
        return None
    if (number := _FORMATS.get(str(tree["format"]))) is None:
        known = " or ".join(map(repr, _FORMATS))
        raise UnsupportedError(f"{where}: format: expected {known}, got {str(tree['format'])[:60]!r}")
    return number


def check_digest(value: Any, where: str) -> str:
    """Check that a text is a digest.

    Raises:
        UnsupportedError: it is not.
    """
    digits = value.removeprefix(PREFIX) if isinstance(value, str) else ""
    if value != PREFIX + digits or len(digits) != 64 or not set(digits) <= set("0123456789abcdef"):
        raise UnsupportedError(f"{where}: expected {PREFIX} and 64 hexadecimal digits, got {str(value)[:80]!r}")
    return PREFIX + digits


def compare(expected: Mapping[str, Any], got: Mapping[str, Any]) -> list[Mismatch]:
    """List the digests in which two trees differ; digests that `expected` lacks are ignored.

    Args:
        expected: parts and tables, as `read_expected` gives them.
        got: parts and tables; it has all parts and tables that `expected` has.
    """
    mismatches = []
    for key, value in expected.items():
        if key in PARTS:
            if value != got[key]:
                mismatches.append(Mismatch(key, value, got[key]))
        else:
            mismatches += [
                Mismatch(f"{key}[{name!r}]", value.get(name), got[key].get(name))
                for name in sorted(value.keys() | got[key].keys())
                if value.get(name) != got[key].get(name)
            ]
    return mismatches
