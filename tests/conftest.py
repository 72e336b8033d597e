"""Settings of the whole suite: profiles of property tests, and which cases run.

`EXPLORE=1` lets property tests look for new cases; `--hypothesis-profile=fast` gives each of them a few.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from tests import samples

# Workers of pytest-xdist are told of 80 columns, which commands would fit what they print into.
os.environ.pop("COLUMNS", None)

settings.register_profile("explore", deadline=None)
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("fast", deadline=None, derandomize=True, max_examples=10)
settings.load_profile("explore" if os.environ.get("EXPLORE") else "repeat")

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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose how many cases run."""
    parser.addoption("--all-samples", action="store_true", help="read every sample file, not only tests/data/cover.txt")
    parser.addoption("--cases", type=int, metavar="N", help="run at most N cases of each test, the same ones each time")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what `--all-samples` alone runs, and cases beyond `--cases`; mark what starts processes as slow."""
    left_out: set[str] = set()
    if not config.getoption("--all-samples"):
        cover = set(samples.COVER_LIST.read_text().split())
        left_out |= {item.nodeid for item in items if item.get_closest_marker("whole") or not _covered(item, cover)}
        seen: Counter[str] = Counter()
        for item in items:
            if (mark := item.get_closest_marker("sampled")) is not None:
                name = item.nodeid.partition("[")[0]
                step, first = (*mark.args, 0)[:2]
                if seen[name] % step != first:
                    left_out.add(item.nodeid)
                seen[name] += 1
    if most := config.getoption("--cases"):
        cases: dict[str, list[str]] = {}
        for item in items:
            if item.nodeid not in left_out:
                cases.setdefault(item.nodeid.partition("[")[0], []).append(item.nodeid)
        for same in cases.values():
            left_out |= set(same) - set(same[:: -(-len(same) // most)])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]
    for item in items:
        if item.nodeid.startswith(STARTS_PROCESSES):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Keep what collecting made, some 40,000 tests, out of every later garbage collection."""
    gc.collect()
    gc.freeze()


def _covered(item: pytest.Item, cover: set[str]) -> bool:
    """Return whether a test's parameters name no sample file, or one of the cover."""
    call = getattr(item, "callspec", None)
    paths = [value for value in call.params.values() if isinstance(value, Path)] if call is not None else []
    read = [path for path in paths if samples.CORPUS in path.parents]
    return not read or any(samples.release_id(path) in cover for path in read)
