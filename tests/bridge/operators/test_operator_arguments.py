"""Names of positional arguments for the design draft: the file in the package, compared with torch."""

from __future__ import annotations

import subprocess
import sys

from tools.generated import CHECK
from tools.operator_arguments import TARGET


def test_arguments_are_those_of_torch() -> None:
    """Each operator has the names that torch states; in a process of its own, as other tests register operators."""
    command = [sys.executable, "-m", "tools.operator_arguments", CHECK]
    done = subprocess.run(command, cwd=TARGET.parents[3], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
