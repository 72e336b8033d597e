"""A release of torch -> everything that it has otherwise than the one before, and what to do about each.

    python -m tools.new_release 2.16.0                          installs it in a temporary folder, compares, removes it
    python -m tools.new_release 2.16.0 --environment FOLDER     in an environment that stays; made if it is not there
    python -m tools.new_release 2.16.0 --zoo                    also the bridge's tests and the zoo (half an hour)
    python -m tools.new_release 2.16.0 --write                  also puts its operators into the table

Compared are the schema (field by field, with the frozen tables), operators and their arguments, the records of a file
that it saves, the names of torch that the bridge lists, with --zoo what the bridge does, and the project's own lists of
releases. docs/new-release.md is the page for it. Exits with 1 if there is anything to do.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.samples import CORPUS, numbers, release_folders
from tools import operator_schemas, operator_tags, torches

from pt2kit.schema import LOG, parse_version
from pt2kit.schema.operators import RELEASES, known_releases
from pt2kit.versions.opset_changes import EXPECTED
from pt2kit.zip.reader import open_archive

ROOT = Path(__file__).parents[1]
HISTORY = ROOT / "src" / "pt2kit" / "schema" / "history"
SAVE = """
import sys, torch, torch.export
from torch._export.serde import schema
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("offset", torch.ones(4))
        self.constant = torch.arange(4.0)
    def forward(self, x):
        return self.linear(x) + self.offset * self.constant
torch.export.save(torch.export.export(M(), (torch.ones(2, 4),)), sys.argv[1], extra_files={"note.txt": "n"})
print(*schema.SCHEMA_VERSION, sep=".")
print(torch._C._get_max_operator_version())
"""


@dataclass(frozen=True)
class Finding:
    """The result of a comparison.

    Args:
        what: was compared.
        lines: the differences; none where both releases are alike.
        todo: what to do about them.
    """

    what: str
    lines: tuple[str, ...]
    todo: str


def run(environment: Path, *arguments: str) -> str:
    """Return the output of Python in an environment.

    Raises:
        RuntimeError: it fails; with the end of what it says.
    """
    command = [str(environment / "bin" / "python"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]}: expected it to run, got {done.stderr[-1000:]}")
    return done.stdout


def compare_version(release: str, written: str) -> Finding:
    """The schema that the release writes, and whether the log has both."""
    todo = f"add {release!r} to the releases of {written} in LOG (schema/versions.py)"
    if written not in {version.number for version in LOG}:
        todo = f"{written} is new: follow docs/changing-the-schema.md from step 1, then log {release!r} under it"
    has = any(version.number == written and release in version.releases for version in LOG)
    return Finding("schema version", () if has else (f"torch {release} writes {written}",), todo)


def compare_operator_set(number: str) -> Finding:
    """The number that the release gives the meaning of aten's operators."""
    lines = () if int(number) == EXPECTED["aten"] else (f"aten {number}, not {EXPECTED['aten']}",)
    todo = "add the changes of its operators to versions/opset_changes.py, then the number to EXPECTED (changes.py)"
    return Finding("operator set", lines, todo)


def compare_schema(environment: Path, written: str) -> Finding:
    """The fields that torch's own definition has and the frozen table has not, and the other way round."""
    where = "import torch._export.serde as s; print(s.__path__[0])"
    theirs = _fields(yaml.safe_load((Path(run(environment, "-c", where).strip()) / "schema.yaml").read_text()))
    frozen = HISTORY / f"{written}.yaml"
    if not frozen.exists():
        newest = max((v.number for v in LOG), key=parse_version)
        frozen = HISTORY / f"{newest}.yaml"
    ours = _fields(yaml.safe_load(frozen.read_text())["types"])
    lines = [f"- {line}" for line in sorted(ours - theirs)] + [f"+ {line}" for line in sorted(theirs - ours)]
    return Finding(f"schema, against {frozen.name}", tuple(lines), "change the classes: docs/changing-the-schema.md")


def _fields(types: dict[str, dict[str, object]]) -> set[str]:
    """The fields of a definition, a line each: "Node.name: Optional[str]"; torch's type names are Python's of old."""
    found = set()
    for name, row in types.items():
        fields = row.get("fields", {}) if isinstance(row, dict) else {}
        if not isinstance(fields, dict):
            continue
        for key, field in fields.items():
            kind = field.get("type") if isinstance(field, dict) else field
            found.add(f"{name}.{key}: {_plain(str(kind))}")
    return found


def _plain(kind: str) -> str:
    """A type as the frozen tables write it."""
    kind = kind.replace("List[", "list[").replace("Dict[", "dict[").replace("Tuple[", "tuple[").replace(" ", "")
    while match := re.search(r"Optional\[((?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*)\]", kind):
        kind = f"{kind[: match.start()]}{match[1]}|None{kind[match.end() :]}"
    return kind


def compare_operators(environment: Path, release: str, folder: Path, *, write: bool) -> Finding:
    """Operators that came, went or changed their arguments."""
    dump = folder / "operators.json"
    dump.write_text(run(environment, str(ROOT / "tools" / "registered_operators.py")))
    _, new = operator_schemas.lines_of_dump(dump)
    before = operator_schemas.previous(release)
    lines = operator_schemas.differences(operator_schemas.lines_of_table(before), new)
    if release in known_releases() and operator_schemas.lines_of_table(release) >= new:
        lines = []  # the table has them
    todo = "run this with --write once LOG names the release; a renamed argument is found, a new one with a default too"
    if write:
        operator_schemas.put_in([dump])
        operator_tags.put_in([dump])
        todo = "written into the tables of schemas and tags; look at what is gone: does anything replace it?"
    return Finding(f"operators, against torch {before}", tuple(lines), todo)


def compare_layout(saved: Path, release: str) -> Finding:
    """The records of a file that it saves, without numbers, that sample files of the release before do not have.

    Those of its own sample files are known, too.
    """
    minor = numbers(release)[:2]
    folders = release_folders(CORPUS)
    before = [folder for folder in folders if numbers(folder.name)[:2] < minor][-1]
    known = [before, *(folder for folder in folders if numbers(folder.name)[:2] == minor)]
    old = set().union(*(_records(path) for folder in known for path in folder.glob("*.pt2")))
    lines = tuple(f"+ {name}" for name in sorted(_records(saved) - old))
    what = f"records of a file, against {before.name}"
    return Finding(what, lines, "see package/layout.py and docs/format/archive.md")


def _records(path: Path) -> set[str]:
    with open_archive(path) as archive:
        names = {name.partition("/")[2] or name for name in archive.records}
    return {re.sub(r"extra/.*", "extra/", re.sub(r"\d+", "0", name)) for name in names}


def compare_names(environment: Path, release: str) -> Finding:
    """The private and moving names of torch that the bridge lists, and the release does not have any more."""
    missing = json.loads(run(environment, str(ROOT / "tools" / "names_in_release.py")))
    lines = [
        f"- torch.{name['path']}: {name['gives']}; instead: {name['instead'] or 'NOTHING'}"
        for name in missing
        if numbers(name["since"]) <= numbers(release)
    ]
    todo = "find in bridge/torch_names.py what replaces them, or say what stands in"
    return Finding("names of torch", tuple(lines), todo)


def compare_lists(release: str) -> Finding:
    """The places where the project names the releases that it is tried with."""
    minor = numbers(release)[:2]
    has = {
        "RELEASES in tools/torches.py": minor in [numbers(name)[:2] for name in torches.RELEASES],
        f"its figures in docs/{torches.FIGURES.name}": release in json.loads(torches.FIGURES.read_text()),
        "sample files in tests/data/corpus": minor in [numbers(path.name)[:2] for path in CORPUS.iterdir()],
    }
    todo = "name it there; --zoo writes the figures, tools/sample_files.py the sample files"
    return Finding("lists of releases", tuple(f"not there: {place}" for place, there in has.items() if not there), todo)


def findings(options: argparse.Namespace, environment: Path, folder: Path) -> Iterator[Finding]:
    """Every comparison, in the order in which to act on them."""
    release = ".".join(options.release.split(".")[:2])
    saved = folder / "saved.pt2"
    written, operator_set = run(environment, "-c", SAVE, str(saved)).splitlines()[-2:]
    yield compare_version(release, written)
    yield compare_operator_set(operator_set)
    yield compare_schema(environment, written)
    yield compare_layout(saved, release)
    yield compare_operators(environment, release, folder, write=options.write and release in RELEASES)
    yield compare_names(environment, release)
    if options.zoo:
        trial = [sys.executable, "tools/torches.py", options.release, "--environment", environment.absolute()]
        code = subprocess.run(trial, cwd=ROOT, check=False).returncode
        yield Finding("the bridge: tests, sample files, zoo", ("it fails",) if code else (), "see what it printed")
    yield compare_lists(options.release)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release")
    parser.add_argument("--environment", type=Path)
    parser.add_argument("--zoo", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    is_alike = True
    with tempfile.TemporaryDirectory(prefix=f"torch-{options.release}-") as temporary:
        folder = Path(temporary)
        environment = options.environment or folder / "environment"
        if not (environment / "bin" / "python").exists() and not torches.install(options.release, environment):
            sys.exit(f"torch {options.release}: expected pip to install it, got what it said; nothing was compared")
        for found in findings(options, environment, folder):
            is_alike &= not found.lines
            print(f"{found.what}: {f'{len(found.lines)} differences' if found.lines else 'alike'}", flush=True)
            print("".join(f"    {line}\n" for line in found.lines), end="")
            if found.lines:
                print(f"  to do: {found.todo}")
    return int(not is_alike)


if __name__ == "__main__":
    sys.exit(main())
