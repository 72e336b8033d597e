"""What following memory finds: each program has its own, and nothing is shared between two."""

from __future__ import annotations

from pt2kit.checks.memory_findings import Assumed, Findings, Use


def test_apart() -> None:
    """Findings of two programs are two."""
    one, other = Findings(), Findings()
    one.uses.append(Use(None, 0, "relu", "empty"))
    one.assumed.setdefault(1, Assumed()).sizes.add("relu")
    assert (other.uses, other.cells, other.assumed) == ([], 0, {})
    assert one.assumed[1].strides == set()
