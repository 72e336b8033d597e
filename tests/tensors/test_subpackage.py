"""The subpackage as a whole: its names, its imports, its rules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pt2kit import tensors
from pt2kit.rules import RULES

SOURCES = {path: path.read_text() for path in Path(tensors.__file__).parent.glob("*.py")}


def test_every_public_name_is_there() -> None:
    """Names that load late are found, and stay what they are."""
    for name in tensors.__all__:
        assert getattr(tensors, name) is getattr(tensors, name)
    assert callable(tensors.statistics)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        tensors.nothing  # noqa: B018


def test_importing_costs_little() -> None:
    """Describing tensors loads neither numpy nor anything that only exports need."""
    script = (
        "import sys, pt2kit.tensors;"
        "print([m for m in ('numpy', 'ml_dtypes', 'torch', 'safetensors', 'zipfile', 'tempfile') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_rules_are_documented_and_tested() -> None:
    """Each rule that an error carries stands in the table, and some test asks for it."""
    used = {rule for text in SOURCES.values() for rule in re.findall(r'rule="(P\d+)"', text)}
    table = [rule for rule in RULES if rule[0] == "P"]
    assert used <= set(table)
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [rule for rule in sorted(used) if not re.search(rf"\b{rule}\b", tests)] == []
