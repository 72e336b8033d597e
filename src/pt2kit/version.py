"""The version: what the installed package says of itself, which is made from the repository's tags when it is built."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("pt2kit")
except PackageNotFoundError:  # a checkout on the path, not installed
    __version__ = "0+unknown"
