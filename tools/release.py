"""A checkout -> dist/: an sdist and a wheel, checked, and tried in fresh environments.

    python -m tools.release [--dist FOLDER]

1. builds the sdist, and the wheel from the sdist, so that what is published can be built from what is published;
2. `twine check --strict`;
3. weighs the wheel: 2 MB at most without the viewer's page;
4. installs the wheel and runs `tools/smoke.py`, in a fresh environment of every Python from 3.10 to 3.13 that is here,
   and in the oldest of them with the lowest versions of all dependencies that pyproject.toml allows.

Nothing is uploaded: .github/workflows/publish.yml does that, from a tag, with provenance.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.lowest import lowest_versions

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "tests" / "data" / "corpus" / "2.13.0" / "dynamic_batch.pt2"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MAX_WHEEL = 2_000_000
PAGE = "pt2kit/viewing/page/"


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command, show it, and end where it fails."""
    print("$", *(Path(word).name if index == 0 else word for index, word in enumerate(command)), flush=True)
    done = subprocess.run(list(map(str, command)), cwd=cwd, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}exit code {done.returncode}")
    return done.stdout


def interpreter(version: str) -> str | None:
    """An interpreter of a release of Python that runs: on the PATH, or among pyenv's."""
    on_path = shutil.which(f"python{version}")
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in [on_path, *map(str, installed)]:
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    return None


def wheel_bytes(wheel: Path) -> tuple[int, int]:
    """The size of a wheel without the viewer's page, and that page's part of it."""
    with zipfile.ZipFile(wheel) as archive:
        page = sum(entry.compress_size for entry in archive.infolist() if entry.filename.startswith(PAGE))
    return wheel.stat().st_size - page, page


def tried(python: str, wheel: Path, *pins: str) -> str:
    """Run the smoke test of the wheel in a fresh environment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", folder / "env")
        inside = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, *pins)
        shutil.copy(ROOT / "tools" / "smoke.py", folder / "smoke.py")
        shutil.copy(SAMPLE, folder / "model.pt2")
        version = wheel.name.split("-")[1]
        return run(inside, "-I", "smoke.py", version, "model.pt2", cwd=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    dist = parser.parse_args().dist
    shutil.rmtree(dist, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", dist, ROOT)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(dist.iterdir()))
    [wheel] = dist.glob("*.whl")
    size, page = wheel_bytes(wheel)
    print(f"{wheel.name}: {size:,} bytes, and {page:,} of the viewer's page")
    if size > MAX_WHEEL:
        raise SystemExit(f"{wheel.name}: expected at most {MAX_WHEEL:,} bytes without the viewer, got {size:,}")
    here = {version: found for version in PYTHONS if (found := interpreter(version))}
    if not here:
        raise SystemExit(f"expected a Python of {', '.join(PYTHONS)}, got none")
    for python in here.values():
        print(tried(python, wheel), end="")
    print("with the lowest versions:", *lowest_versions())
    print(tried(next(iter(here.values())), wheel, *lowest_versions()), end="")
    print(f"not here: {', '.join(sorted(set(PYTHONS) - set(here))) or 'none'}")


if __name__ == "__main__":
    main()
