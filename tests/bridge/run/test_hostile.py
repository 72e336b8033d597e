"""Every hostile file is refused by load_module as by load, with the same words; nothing of it runs."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest
import torch
from tests.bridge.read.test_hostile import CASES, COSTLY, ONLY_REPORTED, _marker_folders, outcome  # noqa: F401

import pt2kit
from pt2kit.errors import Pt2Error


def refusal(load: Any, path: Any) -> str:
    """Return the error of a refused file; "" if it loads."""
    try:
        load(path)
    except Pt2Error as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("case", [case for case in CASES if case not in COSTLY], ids=lambda case: case["file"][:-4])
def test_hostile(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same refusal, or a module that gives what the program gives."""
    monkeypatch.setattr(logging.getLogger("pt2kit"), "disabled", True)
    theirs = refusal(pt2kit.load, case["path"])
    assert refusal(pt2kit.load_module, case["path"]) == theirs
    assert not os.path.exists(case["marker"])
    if theirs or case["name"] in ONLY_REPORTED:
        return
    module, program = pt2kit.load_module(case["path"]), pt2kit.load(case["path"])
    if not any(tensor.is_meta for tensor in program.state_dict.values()):
        assert torch.equal(module(torch.ones(5, 8)), program.module()(torch.ones(5, 8)))
        assert not os.path.exists(case["marker"])
