"""Settings of the whole suite: property tests repeat themselves; what the fast suite (`make test-fast`) leaves out.

`EXPLORE=1` lets property tests look for new cases; `--hypothesis-profile=fast` gives each of them a few.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# Workers of pytest-xdist are told of 80 columns, which commands would fit what they print into.
os.environ.pop("COLUMNS", None)

settings.register_profile("explore", deadline=None)
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("fast", deadline=None, derandomize=True, max_examples=10)
settings.load_profile("explore" if os.environ.get("EXPLORE") else "repeat")

FAST_CASES = 4
"""Cases of one test that the fast suite runs; of those that go over every file or example there are hundreds."""
STARTS_PROCESSES = tuple(
    f"tests/{name}.py::"
    for name in (
        *(
            f"cli/test_{name}"
            for name in ("compose", "convert", "diff", "edit", "extract", "main", "manners", "models")
        ),
        *(f"cli/test_{name}" for name in ("pack", "several", "show", "sign", "unpack", "weights")),
        *(
            f"project/test_{name}"
            for name in ("ci", "compatibility", "docs", "pages", "reprs", "typing", "without_posix")
        ),
        *("idl/test_cpp", "idl/test_thrift", "idl/test_typescript", "idl/test_generated", "project/test_golden"),
        *("fleet/test_window", "fleet/test_run", "fleet/test_remote"),
    )
)
"""Files whose tests each start commands, compilers, servers or type checkers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts processes as slow, and all but a few cases of each test: the same ones each time, far apart."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, same in cases.items():
        step = -(-len(same) // FAST_CASES)
        for number, item in enumerate(same):
            if number % step or name.startswith(STARTS_PROCESSES):
                item.add_marker(pytest.mark.slow)
