"""A release of torch -> everything that it has otherwise than the one before, and what to do about each.

    python -m tools.new_release 2.16.0                          installs it in a temporary folder, compares, removes it
    python -m tools.new_release 2.16.0 --environment FOLDER     in an environment that has it already
    python -m tools.new_release 2.16.0 --zoo                    also the bridge's tests and the zoo (half an hour)
    python -m tools.new_release 2.16.0 --write                  also puts its operators into the table

Compared are the schema (field by field, with the frozen tables), operators and their arguments, the records of a file
that it saves, the names of torch that the bridge lists, and with --zoo what the bridge does. docs/new-release.md is the
page for it. Exits with 1 if there is anything to do.
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
from tools import operator_schemas

from pt2kit.schema import LOG, parse_version
from pt2kit.schema.operator_text import operator_name
from pt2kit.schema.operators import RELEASES, known_releases
from pt2kit.zip.reader import open_archive

ROOT = Path(__file__).parents[1]
HISTORY = ROOT / "src" / "pt2kit" / "schema" / "history"
NAMES = ROOT / "src" / "pt2kit" / "bridge" / "torch_names.py"
CORPUS = ROOT / "tests" / "data" / "corpus"
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
"""
MISSING = """
import importlib, json, sys
def there(path):
    parts = ["torch", *path.split(".")]
    for split in range(len(parts), 0, -1):
        try:
            held = importlib.import_module(".".join(parts[:split]))
        except ImportError:
            continue
        try:
            for part in parts[split:]:
                held = getattr(held, part)
        except AttributeError:
            return False
        return True
    return False
print(json.dumps([path for path in json.loads(sys.argv[1]) if not there(path)]))
"""


@dataclass(frozen=True)
class Finding:
    """What one comparison found.

    Args:
        what: was compared.
        lines: the differences; none where both releases are alike.
        todo: what to do about them.
    """

    what: str
    lines: tuple[str, ...]
    todo: str


def install(release: str, folder: Path) -> Path:
    """Make an environment with a release (about 5 GB with its libraries, some minutes)."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-cache-dir")
    subprocess.run([*pip, f"torch=={release}", "numpy"], check=True)
    return folder


def run(environment: Path, *arguments: str) -> str:
    """What Python prints in an environment.

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
    before = known_releases()[-1] if release not in known_releases() else _previous(release)
    old = operator_schemas.lines_of_table(before)
    lines = [f"- {line}" for line in old - new] + [f"+ {line}" for line in new - old]
    lines.sort(key=lambda line: (operator_name(line[2:]), line[0] == "+"))
    if release in known_releases() and operator_schemas.lines_of_table(release) >= new:
        lines = []  # the table has them
    todo = "run this with --write once LOG names the release; a renamed argument is found, a new one with a default too"
    if write:
        operator_schemas.put_in([dump])
        todo = "written into schema/history/operators.txt; look at what is gone: does anything replace it?"
    return Finding(f"operators, against torch {before}", tuple(lines), todo)


def _previous(release: str) -> str:
    return known_releases()[known_releases().index(release) - 1]


def compare_layout(saved: Path, release: str) -> Finding:
    """The records of a file that it saves, without numbers, against one of the release before."""
    corpus = sorted((path for path in CORPUS.iterdir() if path.is_dir()), key=_numbers)
    before = [path for path in corpus if _numbers(path)[:2] < [int(part) for part in release.split(".")[:2]]][-1]
    old = set().union(*(_records(path) for path in before.glob("*.pt2")))
    lines = tuple(f"+ {name}" for name in sorted(_records(saved) - old))
    return Finding(
        f"records of a file, against {before.name}", lines, "see archive/layout.py and docs/format/archive.md"
    )


def _records(path: Path) -> set[str]:
    with open_archive(path) as archive:
        names = {name.partition("/")[2] or name for name in archive.records}
    return {re.sub(r"extra/.*", "extra/", re.sub(r"\d+", "0", name)) for name in names}


def _numbers(path: Path) -> list[int]:
    return [int(part) for part in path.name.split(".")]


def compare_names(environment: Path) -> Finding:
    """The private names of torch that the bridge lists and the release does not have."""
    if not NAMES.exists():
        return Finding("names of torch", (), "")
    table = NAMES.read_text(encoding="utf-8").partition('_TABLE: Final = """')[2].partition('"""')[0]
    rows = [row.split("|") for row in re.sub(r",\s*\n\s*", ", ", table).splitlines() if row.strip()]
    always = [name.strip() for row in rows if len(row) < 4 for name in row[0].split(",")]
    missing = json.loads(run(environment, "-c", MISSING, json.dumps(always)))
    return Finding("names of torch", tuple(f"- torch.{name}" for name in missing), f"see {NAMES.relative_to(ROOT)}")


def findings(options: argparse.Namespace, environment: Path, folder: Path) -> Iterator[Finding]:
    """Every comparison, in the order in which to act on them."""
    release = ".".join(options.release.split(".")[:2])
    saved = folder / "saved.pt2"
    written = run(environment, "-c", SAVE, str(saved)).splitlines()[-1]
    yield compare_version(release, written)
    yield compare_schema(environment, written)
    yield compare_layout(saved, release)
    yield compare_operators(environment, release, folder, write=options.write and release in RELEASES)
    yield compare_names(environment)
    if options.zoo:
        code = subprocess.run(["make", "test-torch", f"TORCH={options.release}"], cwd=ROOT, check=False).returncode
        yield Finding("the bridge: tests, sample files, zoo", ("it fails",) if code else (), "see what it printed")


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
        environment = options.environment or install(options.release, folder / "environment")
        for found in findings(options, environment, folder):
            is_alike &= not found.lines
            print(f"{found.what}: {f'{len(found.lines)} differences' if found.lines else 'alike'}", flush=True)
            print("".join(f"    {line}\n" for line in found.lines), end="")
            if found.lines:
                print(f"  to do: {found.todo}")
    return int(not is_alike)


if __name__ == "__main__":
    sys.exit(main())
