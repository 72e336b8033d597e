"""Dump the operators, tags included, of releases of torch: install each, ask it, remove it.

    python -m tools.operator_dumps --out dumps                   all releases that pt2kit knows
    python -m tools.operator_dumps --out dumps 2.4.1 2.5.1       some of them

Each release becomes `dumps/<release>.json`, as `tools/registered_operators.py` prints it; a release whose file exists
is skipped. `python -m tools.operator_schemas dumps/*.json` and `python -m tools.operator_tags dumps/*.json` put them
into the tables that ship.

A wheel of torch from PyPI needs 3 GB of CUDA libraries to be imported. None of their code runs when operators are
registered, so empty libraries with the same symbols replace them here. Needs Linux, binutils and a C compiler.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tools import torches

RELEASES = ("2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", *torches.RELEASES)
"""A patch release of each minor release."""
NEEDED = ("numpy<2", "typing_extensions", "sympy", "networkx", "jinja2", "filelock", "fsspec", "setuptools<81")
"""Packages that torch imports, in versions that every release accepts."""
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-compile")
PRELOADED = "libsymbols.so"
ASK = Path(__file__).with_name("registered_operators.py")


def make_environment(folder: Path) -> Path:
    """Make an environment with what torch imports, but without torch; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "python", *PIP, *NEEDED], check=True)
    return folder / "bin" / "python"


def replace_missing_libraries(torch_libraries: Path, target: Path) -> dict[str, str]:
    """Compile empty libraries for those that torch's libraries need and this machine lacks.

    All symbols are in one library that is loaded before: the loader accepts a symbol without a version from any library
    but the one that the version names.

    Args:
        torch_libraries: the folder `torch/lib`.
        target: existing folder of the new libraries.

    Returns:
        The variables of an environment in which torch finds them.
    """
    libraries = sorted(path for path in torch_libraries.iterdir() if ".so" in path.name)
    needed = {name for path in libraries for name in _needed(path)} - {path.name for path in libraries}
    system = {name: path for name in needed if (path := _system_library(name))}
    wanted = {name for path in libraries for name in _symbols(path, "--undefined-only")}
    defined = {name for path in [*libraries, *system.values()] for name in _symbols(path, "--defined-only")}
    # The interpreter itself has the symbols of Python.
    missing = sorted(name for name in wanted - defined if not name.startswith(("Py", "_Py")) and name.isidentifier())
    for name in needed - system.keys():
        _compile("", target / name)
    _compile("".join(f"int {name}(void) {{ return 0; }}\n" for name in missing), target / PRELOADED)
    return {"LD_LIBRARY_PATH": str(target), "LD_PRELOAD": str(target / PRELOADED)}


def _compile(source: str, target: Path) -> None:
    """Compile C into a shared library."""
    options = ("-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{target.name}")
    subprocess.run(["cc", *options, "-o", target, "-x", "c", "-"], input=source, text=True, check=True)


def _needed(library: Path) -> list[str]:
    """Return the names of the libraries that a library is linked with."""
    lines = _output("readelf", "-d", library)
    return [line.partition("[")[2].rstrip("]") for line in lines if "(NEEDED)" in line]


def _symbols(library: Path, which: str) -> Iterable[str]:
    """Return names of dynamic symbols, without their versions."""
    for line in _output("nm", "-D", which, library):
        kind, _, name = line.strip().rpartition(" ")
        if kind.rpartition(" ")[2] not in ("w", "v"):
            yield name.partition("@")[0]


def _system_library(name: str) -> Path | None:
    """Return the path of a library that the loader finds by itself."""
    for line in _output("/sbin/ldconfig", "-p"):
        known, _, path = line.strip().partition(" ")
        if known == name:
            return Path(path.rpartition("=> ")[2])
    return None


def _output(*command: str | Path) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def dump(python: Path, release: str, target: Path) -> None:
    """Install a release without its CUDA libraries in a temporary folder, and write what it registers.

    Args:
        python: of an environment with what torch imports.
        release: "2.4.1".
        target: the file.
    """
    with tempfile.TemporaryDirectory(prefix=f"torch-{release}-") as folder:
        packages, empty = Path(folder) / "packages", Path(folder) / "empty"
        empty.mkdir()
        subprocess.run([python, *PIP, "--no-deps", "--target", packages, f"torch=={release}"], check=True)
        found = replace_missing_libraries(packages / "torch" / "lib", empty)
        environment = {**os.environ, **found, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
        text = subprocess.run([python, ASK], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    target.write_text(text, encoding="utf-8")


def main() -> int:
    """Dump the releases that have no file yet; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", help="such as 2.4.1; all if none is named")
    parser.add_argument("--out", type=Path, required=True, help="folder of the dumps")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory(prefix="torch-environment-") as folder:
        python = make_environment(Path(folder))
        for release in options.releases or RELEASES:
            target = options.out / f"{release}.json"
            if target.exists():
                continue
            print(f"torch {release}", flush=True)
            try:
                dump(python, release, target)
            except subprocess.CalledProcessError as error:
                print(f"torch {release}: {error}", file=sys.stderr, flush=True)
                failed.append(release)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
