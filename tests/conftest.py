"""Settings of the whole suite: property tests repeat themselves; `EXPLORE=1` lets them look for new cases."""

from __future__ import annotations

import os

from hypothesis import settings

# Workers of pytest-xdist are told of 80 columns, which commands would fit what they print into.
os.environ.pop("COLUMNS", None)

settings.register_profile("explore", deadline=None)
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.load_profile("explore" if os.environ.get("EXPLORE") else "repeat")
