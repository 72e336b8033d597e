"""Settings of the whole suite: property tests explore on a developer's machine and repeat themselves in CI."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("explore", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")
