"""`python -m tools.compatibility`: the table of releases."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import samples
from tools.compatibility import COLUMNS, table


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)


def test_table(tmp_path: Path) -> None:
    """A row per release, a reason per file and column; a file without recorded outputs is passed over."""
    for release, name in (("2.1.2", "mlp"), ("2.7.1", "sym_ops"), ("2.7.1", "multi_output"), ("2.13.0", "mlp")):
        (tmp_path / release).mkdir(exist_ok=True)
        for path in samples.sample(release, name).parent.glob(f"{name}.*"):
            shutil.copy(path, tmp_path / release)
    (tmp_path / "2.7.1" / "multi_output.pt2").write_bytes(b"no zip")
    rows, failures = table(tmp_path)
    assert rows == {
        "2.1.2": dict.fromkeys(COLUMNS, 1) | {"random": 0},
        "2.7.1": dict.fromkeys(COLUMNS, 0) | {"files": 2, "opens": 1, "loads": 1},
    }
    assert list(failures) == ["2.7.1/multi_output", "2.7.1/sym_ops"]
    assert list(failures["2.7.1/sym_ops"]) == ["runs", "converted"]
    assert failures["2.7.1/multi_output"]["opens"].startswith("ArchiveError: ")
