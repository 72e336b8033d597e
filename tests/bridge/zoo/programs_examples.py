"""torch's own examples of what export supports."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch
from tests.bridge.zoo.program import Program
from torch._export.db.case import ExportCase, SupportLevel


def _export(case: ExportCase, strict: bool) -> torch.export.ExportedProgram:
    return torch.export.export(
        case.model, case.example_args, case.example_kwargs, dynamic_shapes=case.dynamic_shapes, strict=strict
    )


def _calls(case: ExportCase) -> list[Any]:
    calls = [(case.example_args, case.example_kwargs)]
    return [*calls, (case.extra_args, {})] if case.extra_args else calls


def programs() -> list[Program]:
    """Each supported example, as plain and as strict export."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch._export.db.examples import all_examples
    found = []
    for name, case in sorted(all_examples().items()):
        if case.support_level is not SupportLevel.SUPPORTED:
            continue
        for kind, strict in (("", False), ("__strict", True)):
            found.append(
                Program(
                    f"example_{name}{kind}", functools.partial(_export, case, strict), functools.partial(_calls, case)
                )
            )
    return found
