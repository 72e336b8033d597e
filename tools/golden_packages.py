"""Sample files and field tables -> `tests/golden/packages/`: per version, packages in its layout, types around them.

    python -m tools.golden_packages          write the files and their manifest

    <version>/shared_weights.pt2   tied weights and views; <version>/constants.pt2: constants (.json for the draft)
    <version>/types.json           values of every type of the version that is no part of a program

A file is never edited once its version is released. Deflated records differ between versions of zlib, so packages are
compared record by record.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any, Final

from tools.golden_maker import Maker

import pt2kit
from pt2kit.errors import ConversionError
from pt2kit.schema.fieldtable import NAMES, DictOf, ListOf, Ref, Type, frozen_table, references
from pt2kit.versions import encoding
from pt2kit.zip.reader import open_archive

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "tests" / "golden" / "packages"
SAMPLES: Final = ROOT / "tests" / "data" / "corpus" / "2.13.0"
SOURCES: Final = ("shared_weights", "constants__decomp")
ALLOWED: Final = ("extra_files", "persistent")


def packages(version: str) -> dict[str, bytes]:
    """Name -> content of the packages of a version; without those that it cannot express."""
    found = {}
    for name in SOURCES:
        buffer = io.BytesIO()
        try:
            pt2kit.convert(SAMPLES / f"{name}.pt2", buffer, target=version, allow=ALLOWED)
        except ConversionError:
            continue
        found[f"{name}.{'json' if version == 'draft' else 'pt2'}"] = buffer.getvalue()
    return found


def other_types(version: str) -> dict[str, list[Any]]:
    """Values of the types that no program of a version holds: each type that stands in no other of them, by name."""
    types = frozen_table(version).definitions
    inside = _reachable(version, [frozen_table(version).root])
    rest = [name for name in types if name not in inside]
    tops = [name for name in rest if not any(name in _reachable(version, [other]) for other in rest if other != name)]
    maker = Maker(version)
    values = {name: _filled(maker, name) for name in tops}
    return {
        name: [encoding.to_wire(value, version, name, root=name) for value in held] for name, held in values.items()
    }


def records(data: bytes) -> dict[str, str]:
    """Name of each record -> SHA-256 of its content."""
    with open_archive(data) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.records}


def files() -> dict[str, bytes]:
    """Path below the folder -> content of every golden file."""
    found: dict[str, bytes] = {}
    for version in NAMES:
        found |= {f"{version}/{name}": data for name, data in packages(version).items()}
        if types := other_types(version):
            found[f"{version}/types.json"] = json.dumps(types, indent=1).encode() + b"\n"
    manifest = {
        name: records(data) if name.endswith(".pt2") else {"": hashlib.sha256(data).hexdigest()}
        for name, data in found.items()
    }
    found["manifest.json"] = json.dumps(manifest, indent=1).encode() + b"\n"
    return found


def _filled(maker: Maker, name: str) -> list[Any]:
    """Values of a type in which lists and dicts hold something; programs in it are the golden one."""
    program = maker.program() if maker.version != "draft" else None
    [whole, *_] = maker.every(name)
    return [_with_program(whole, Ref(name), maker.version, program)]


def _with_program(value: Any, kind: Type, version: str, program: Any) -> Any:
    """A value with a sensible program wherever it holds one."""
    match kind:
        case Ref("ExportedProgram"):
            return program
        case Ref(name) if isinstance(value, dict):
            fields = frozen_table(version).definitions[name].fields
            return {key: _with_program(held, fields[key].type, version, program) for key, held in value.items()}
        case ListOf(item):
            return [_with_program(held, item, version, program) for held in value]
        case DictOf(item):
            return {key: _with_program(held, item, version, program) for key, held in value.items()}
    return value


def _reachable(version: str, names: list[str]) -> set[str]:
    """The types that values of some types hold, themselves among them."""
    found: set[str] = set()
    types = frozen_table(version).definitions
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found and name in types:
            found.add(name)
            waiting += [held for field in types[name].fields.values() for held in references(field.type)]
    return found


def main() -> None:
    """Write the files."""
    for name, data in files().items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_bytes(data)


def same(path: Path, data: bytes) -> bool:
    """Return whether a file has the expected records, whatever deflated them."""
    if not path.exists():
        return False
    there = path.read_bytes()
    return there == data or (path.suffix == ".pt2" and records(there) == records(data))


if __name__ == "__main__":
    main()
