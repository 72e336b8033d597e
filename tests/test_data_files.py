"""Files of data: of a package in a folder, and in a zip file."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.samples import DATA

import pt2kit
from pt2kit.data_files import data_file

SOURCE = Path(pt2kit.__file__).parent


def test_files_and_folders_are_below_the_package():
    assert data_file("operators/data/rows") == SOURCE / "operators/data/rows"
    assert data_file("rules.txt").read_text(encoding="utf-8") == (SOURCE / "rules.txt").read_text(encoding="utf-8")


def test_a_package_in_a_zip_file_checks_a_program(tmp_path):
    archive = tmp_path / "pt2kit.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in SOURCE.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                packed.write(path, Path("pt2kit") / path.relative_to(SOURCE))
    code = (
        "import sys; path, file = sys.argv[1:]; sys.path.insert(0, path); import pt2kit;"
        "assert pt2kit.__file__.startswith(path); print(pt2kit.check(file))"
    )
    file = DATA / "corpus/2.13.0/convnet.pt2"
    done = subprocess.run(
        [sys.executable, "-c", code, str(archive), str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout == f"{pt2kit.check(file)}\n"
