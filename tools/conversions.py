"""A folder of files by release -> how many convert to which release, and how many come back byte for byte.

python -m tools.conversions                 the sample files of the tests
python -m tools.conversions FOLDER          another folder with a folder per release
python -m tools.conversions FOLDER --why    and what keeps the others from it

Of each release: its files, those that convert to the current version, those whose JSON comes back from there byte for
byte, and those that every older release can express. Without torch.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path

from tests.samples import CORPUS, release_folders

import pt2kit
from pt2kit.errors import ConversionError
from pt2kit.schema import CURRENT, LOG

RELEASES = tuple(release for version in LOG for release in version.releases[:1])
"""The first release of each version: the others write the same."""


def convert(source: bytes, target: str, allow: tuple[str, ...] = ()) -> bytes:
    """Return a converted file."""
    buffer = io.BytesIO()
    pt2kit.convert(source, buffer, target=target, allow=allow)
    return buffer.getvalue()


def programs(data: bytes) -> list[bytes]:
    """The JSON of every program of a file."""
    with pt2kit.open(data) as package:
        layout = package.layout
        return [bytes(package.archive.read(layout.program_record(name))) for name in layout.models]


def count(folder: Path, why: Counter[str]) -> dict[str, int]:
    """The numbers of one release."""
    release = ".".join(folder.name.split(".")[:2])
    files = sorted(folder.glob("*.pt2"))
    found = Counter({"files": len(files)})
    for path in files:
        data = path.read_bytes()
        up = convert(data, CURRENT.number)
        found["up"] += 1
        found["same"] += programs(convert(up, f"torch=={release}", ("unreadable",))) == programs(data)
        for target in RELEASES:
            try:
                convert(data, f"torch=={target}")
            except ConversionError as error:
                why[f"{path.stem} -> {target}: {str(error).splitlines()[1].strip()[:160]}"] += 1
            else:
                found[target] += 1
    return found


def main() -> int:
    given = [arg for arg in sys.argv[1:] if not arg.startswith("-")]
    root = Path(given[0]) if given else CORPUS
    columns = ("files", "up", "same", *RELEASES)
    print(f"| from | {' | '.join(('files', 'up', 'byte for byte', *(f'to {release}' for release in RELEASES)))} |")
    print("|---" * (len(columns) + 1) + "|")
    why: Counter[str] = Counter()
    for folder in release_folders(root):
        found = count(folder, why)
        print(f"| {folder.name} | {' | '.join(str(found.get(column, 0)) for column in columns)} |", flush=True)
    if "--why" in sys.argv:
        for text, times in why.most_common():
            print(f"{times:4}  {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
