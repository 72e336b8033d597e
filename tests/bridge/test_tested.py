"""The warning about releases of torch that nobody tried."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from pt2kit.bridge.operators import NEWEST, OLDEST, warn_if_untested

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("version", ["2.9.0", "2.10.1+cpu", "2.13.0", "2.15.0+cu132", "a git hash"])
def test_tested(version: str) -> None:
    """Releases in the range say nothing, and neither does what is no number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untested(version)


@pytest.mark.parametrize("version", ["2.8.0", "1.13.1", "2.16.0a0+git12", "3.0.0"])
def test_untested(version: str) -> None:
    """The warning names the range and the release."""
    with pytest.warns(UserWarning, match=rf"tried with torch 2\.9 to 2\.15, got torch {re.escape(version)};"):
        warn_if_untested(version)


def test_then_it_tries() -> None:
    """With a torch that calls itself newer, there is one warning, and saving and loading work."""
    source = """
import io, json, warnings
import torch
torch.__version__ = "2.99.0"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import pt2kit
    live = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
    for _ in range(2):
        file = io.BytesIO()
        pt2kit.save(live, file)
        same = torch.equal(pt2kit.load(file.getvalue()).module()(torch.ones(1, 2)), live.module()(torch.ones(1, 2)))
texts = [str(one.message) for one in caught if "pt2kit" in str(one.message)]
print(json.dumps([same, len(texts), "2.9 to 2.15" in texts[0]]))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout.splitlines()[-1]) == [True, 1, True]


def test_the_range_is_what_is_tried() -> None:
    """The ends are those of the list of releases that `make test-torches` tries, and of the packaging's extra."""
    from tools.torches import RELEASES

    pairs = [tuple(map(int, release.split(".")[:2])) for release in RELEASES]
    assert (min(pairs), max(pairs)) == (OLDEST, NEWEST)
    assert f'torch = ["torch>={OLDEST[0]}.{OLDEST[1]}"]' in (ROOT / "pyproject.toml").read_text()
