"""Random programs over core operators with dynamic shapes: the same tree as torch's, and the same outputs."""

from __future__ import annotations

import io
import warnings

import torch
from hypothesis import HealthCheck, given, settings
from tests.bridge.write.trees import RECORDS, addressless, find_differences, our_file, torch_file, tree
from tests.bridge.zoo.random_programs import EXAMPLES, Example
from torch._export.verifier import SpecViolationError
from torch.export import ExportedProgram


def _load(file: bytes) -> ExportedProgram | None:
    """The program, unless torch cannot read its own file: it fails on a region whose results nothing takes."""
    try:
        return torch.export.load(io.BytesIO(file))
    except SpecViolationError:
        return None


@given(EXAMPLES)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_random(example: Example) -> None:
    """pt2kit writes what torch writes; torch reads it back and runs it at other sizes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        live = example.export()
        theirs, ours = torch_file(live), our_file(live)
        for record in RECORDS:
            one, other = (addressless(tree(file, record)) for file in (theirs, ours))  # addresses are numbered (T10)
            found = next(find_differences(one, other, f"{record}: $"), None)
            assert found is None, str(found)
        if (reference := _load(theirs)) is None:
            return
        read = torch.export.load(io.BytesIO(ours))
        for batch in (5, 9) if example.dynamic else (5,):
            want, got = reference.module()(*example.inputs(batch)), read.module()(*example.inputs(batch))
            for a, b in zip(got, want, strict=True):
                assert torch.equal(a, b) or torch.allclose(a, b, equal_nan=True)
