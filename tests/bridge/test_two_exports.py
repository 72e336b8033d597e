"""Two exports of one model, in two processes: no difference, one metadata digest, and one file from `pt2kit.save`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pt2kit

ROOT = Path(__file__).parents[2]
NAMES = ["mlp__strict", "mlp__decomp", "cond__strict", "sym_float__strict", "preserve_module_call__strict", "scan"]
EXPORT = """
import sys, warnings
from pathlib import Path
import torch
import pt2kit
from tests.bridge.zoo import zoo

warnings.simplefilter("ignore")
folder, names = Path(sys.argv[1]), sys.argv[2:]
unrelated = [object() for _ in range(int(folder.name) * 1000)]
for program in zoo.programs():
    if program.name in names:
        live = zoo.exported(program)
        torch.export.save(live, str(folder / f"{program.name}.pt2"))
        pt2kit.save(live, str(folder / f"{program.name}.ours.pt2"))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folders of files that two processes wrote."""
    pair = []
    for seed in ("1", "2"):
        folder = tmp_path_factory.mktemp("exports") / seed
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-c", EXPORT, str(folder), *NAMES]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        pair.append(folder)
    return pair[0], pair[1]


@pytest.mark.parametrize("name", NAMES)
def test_two_exports_are_equal(folders: tuple[Path, Path], name: str, tmp_path: Path) -> None:
    """`diff` finds nothing, all digests agree, and the files that save and normalize write are the same bytes."""
    one, two = (folder / f"{name}.pt2" for folder in folders)
    assert one.read_bytes() != two.read_bytes() or name == "scan"
    assert pt2kit.diff(one, two).same
    assert pt2kit.digest(one) == pt2kit.digest(two)
    ours = [(folder / f"{name}.ours.pt2").read_bytes() for folder in folders]
    assert ours[0] == ours[1]
    assert pt2kit.diff(one, folders[0] / f"{name}.ours.pt2").same
    normal = [tmp_path / folder / "model.pt2" for folder in ("1", "2", "again")]  # it names the root folder
    for target in normal:
        target.parent.mkdir()
    for source, target in ((one, normal[0]), (two, normal[1]), (normal[0], normal[2])):
        pt2kit.convert(source, target, normalize=True)
    assert normal[0].read_bytes() == normal[1].read_bytes() == normal[2].read_bytes()
