"""The harness that calls operators with arguments that lie finds what is known of some."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import kernels
from tools.kernels.lines import read

GUARD = Path(kernels.__file__).with_name("guard.c")
ROOT = Path(__file__).parents[2]
RUN = """
import sys, torch
from tools.kernels import runner
torch.set_num_threads(1)
with open(sys.argv[1], "a") as out:
    runner.run(sys.argv[2:], {}, out, 60)
runner.exit_hard(0)
"""


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler")
def test_a_dangerous_operator_dies(tmp_path: Path) -> None:
    """One that takes sizes on trust dies of a list whose tensors are too small; one that looks at them does not."""
    evidence = tmp_path / "evidence"
    evidence.write_text('{"release": "any"}\n')
    names = ("aten._fused_sgd_.tensor_lr", "aten.relu.default")
    library = tmp_path / "guard.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, GUARD, "-ldl"], check=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", RUN, str(evidence), *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    _, found = read(evidence)
    assert any("SIGSEGV" in death for death in found[names[0]].deaths), found
    assert found[names[1]].succeeded
    assert not found[names[1]].deaths
