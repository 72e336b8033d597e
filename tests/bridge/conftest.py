"""Fixtures of the tests of the bridge."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from tests.bridge.quicker_torch import keep_results
from tests.bridge.zoo.program import Program

keep_results()
# An optional package of torch, which jax brings: with it, exports of einsum have other products and fixed sizes.
torch.backends.opt_einsum.enabled = False

ONE_VERDICT = ("test_one_verdict.py", "test_hostile_verdicts.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of a program of the zoo one after the other: one process then exports it, and does so once."""
    programs: dict[Program, list[pytest.Item]] = {}
    others: list[pytest.Item] = []
    for item in items:
        call = getattr(item, "callspec", None)
        program = call.params.get("program") if call is not None else None
        (programs.setdefault(program, []) if isinstance(program, Program) else others).append(item)
    items[:] = [item for same in programs.values() for item in same] + others


@pytest.fixture(autouse=True)
def own_errors_of_building(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let errors of building a program through as they are.

    `load` and `load_module` replace them by the problem of `check` that explains them (`checks.refusals.explained`),
    which two files are about. All other tests look at the check that building makes by itself, so that it
    cannot be lost behind the explanation.
    """
    if request.node.path.name not in ONE_VERDICT:

        def unexplained(*_: Any) -> nullcontext[None]:
            return nullcontext()

        monkeypatch.setattr("pt2kit.bridge.stored.explained", unexplained)


@pytest.fixture
def quiet() -> Iterator[None]:
    """Drop what torch and pt2kit log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
