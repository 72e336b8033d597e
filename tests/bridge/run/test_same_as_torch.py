"""load_module returns the same module as torch's `torch.export.load(f).module()`, if torch loads a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import samples
from tests.bridge.run.torch_oracle import compare_with_torch, quiet

# Files that work here but not in the installed torch -> the difference then.
ONLY_HERE = {
    "2.7.1/invoke_subgraph_hop": "invoke_subgraph operands must be a list of tensors",
    "2.13.0/strided_weights": "parameters: [2]: requires_grad False, not True",  # torch 2.9 forgets that one is frozen
}


@pytest.mark.parametrize("path", samples.corpus(), ids=samples.release_id)
def test_corpus(path: Path) -> None:
    """Names of tensors, outputs, mutations and gradients are the same bits, and the same calls are refused."""
    with quiet():
        found = compare_with_torch(path, few=True)
    if found.word in ("not loaded", "no module", "no inputs"):
        pytest.skip(f"torch: {found.word} {found.details}")
    said = ONLY_HERE.get(samples.release_id(path))
    if said is not None and found.word == "differs":
        assert said in found.details
        return
    assert found.word == "same", found.details
