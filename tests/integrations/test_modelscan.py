"""modelscan with `Pt2Scan` in its settings finds what a `.pt2` would run, and nothing in a sound one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from tests import samples

pytest.importorskip("modelscan", reason="modelscan is tried in an environment of its own: pip install modelscan")

HOSTILE = {
    "000_pickle_sample_inputs": "X1",
    "003_pickle_tensor_constant": "X2",
    "015_eval_expr_os_exit": "X5",
    "039_op_torch_os_mkdir": "X7",
}


def scan(path: Path) -> dict[str, Any]:
    """Return what modelscan reports of a file."""
    from modelscan.modelscan import ModelScan
    from modelscan.settings import DEFAULT_SETTINGS

    settings = copy.deepcopy(DEFAULT_SETTINGS)
    settings["scanners"]["pt2kit.integrations.modelscan.Pt2Scan"] = {"enabled": True, "supported_extensions": [".pt2"]}
    return ModelScan(settings).scan(path)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_have_issues(name: str) -> None:
    """Critical, with the rule and the place."""
    found = scan(samples.DATA / "hostile" / f"{name}.pt2")
    ours = [row for row in found["issues"] if row["scanner"] == "pt2kit.integrations.modelscan.Pt2Scan"]
    assert [row for row in ours if row["severity"] == "CRITICAL" and row["module"].startswith(f"{HOSTILE[name]} ")]


@pytest.mark.parametrize("release", ["2.1.2", "2.8.0", "2.13.0"])
def test_a_sound_file_has_none(release: str) -> None:
    """Sample inputs that are plain data are no issue."""
    found = scan(samples.sample(release, "mlp"))
    assert found["issues"] == []
    assert [row for row in found["errors"] if "pt2kit" in str(row)] == []


def test_a_broken_file_is_an_error(tmp_path: Path) -> None:
    """A file that is no archive is reported as an error, and the scan goes on."""
    (tmp_path / "x.pt2").write_bytes(b"PK nothing")
    found = scan(tmp_path)
    assert [row["description"] for row in found["errors"] if row["source"] == "x.pt2" and "[A2]" in row["description"]]
