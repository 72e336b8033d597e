"""One browser for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.viewing.browser import launched


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A running browser."""
    with launched() as browser:
        yield browser
