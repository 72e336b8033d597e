"""The engine of jax: its tests (`jax_cases.py`) run in a process of their own.

jax starts threads in the process that imports it, and tests of commands fork theirs.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("jax_cases.py")


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed (pip install 'pt2kit[jax]')")
@pytest.mark.slow
@pytest.mark.timeout(1200)  # One process runs what would be two hundred tests.
def test_jax(request: pytest.FixtureRequest) -> None:
    """All tests of `jax_cases.py` pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(CASES)]
    command += ["--all-samples"] if request.config.getoption("--all-samples") else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=CASES.parents[2])
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-4000:]
    assert " passed" in done.stdout
