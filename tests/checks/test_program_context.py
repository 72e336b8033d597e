"""Which release of torch a program is of."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests import samples
from tests.checks.mutations import MLP

import pt2kit
from pt2kit.checks.findings import context_of


@pytest.mark.parametrize(
    ("torch_version", "stored", "release"),
    [
        ("2.13.0+cpu", "8.20", "2.13"),
        ("2.9.0a0+git1", "8.14", "2.9"),
        ("2.12", "8.20", "2.12"),
        ("<=2.4", "5.3", "2.4"),
        ("<=2.4", "1", "2.1"),
        ("<=2.4", "draft", ""),
        ("latest", "8.20", ""),
        ("2.13x", "7.3", "2.5"),
    ],
)
def test_release(torch_version: str, stored: str, release: str) -> None:
    """The program says it itself, or the schema version that it was stored in does."""
    with pt2kit.open(MLP) as package:
        program = replace(package.programs["model"], torch_version=torch_version)
    assert context_of(program, "r", stored).release == release


def test_real_files() -> None:
    """The release of a real file is the one that wrote it."""
    for release in samples.RELEASES:
        with pt2kit.open(samples.sample(release, "mlp")) as package:
            stored = package.stored["model"]
            assert context_of(stored.program, "r", stored.version).release == release.rpartition(".")[0]
