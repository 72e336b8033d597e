"""The version: what the installed package says of itself. It is made from the tags of the repository when it is built."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("pt2kit")
except PackageNotFoundError:  # a checkout on the path, not installed
    __version__ = "0+unknown"
