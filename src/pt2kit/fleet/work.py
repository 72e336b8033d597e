"""Commands of a run and their options, validated before any file is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pt2kit.digests.result import PARTS
from pt2kit.errors import UnsupportedError
from pt2kit.version import __version__

DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "show": {"model": None, "oldest": False},
    "check": {"payloads": False, "strict": False},
    "digest": {"model": None, "only": ()},
    "convert": {"target": None, "allow": (), "opset": {}, "namedtuples": {}},
    "sanitize": {"drop": (), "strip": (), "scrub_paths": False},
}
"""Work -> its options, by the names of the single command, and their defaults."""
WORKS: Final = tuple(DEFAULTS)
WRITING: Final = ("convert", "sanitize")
"""Works that write a file for each that they read."""


@dataclass(frozen=True, slots=True)
class Work:
    """A command and its options, run on each file.

    Args:
        name: one of `WORKS`.
        options: those of the single command, by the names of its function; all of them, as JSON has them.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Return whether a file is written for each that is read."""
        return self.name in WRITING


def installed() -> str:
    """Return the version of pt2kit in this process."""
    return __version__


def make_work(name: str, options: Mapping[str, Any]) -> Work:
    """Validate the name and options of a command.

    Raises:
        UnsupportedError: no such work or option, or a value that the single command would refuse.
        VersionError: no such target of a conversion (M4).
        TypeError: a value of another type than the single function takes.
    """
    if name not in DEFAULTS:
        raise UnsupportedError(f"work: expected one of {', '.join(WORKS)}, got {name[:80]!r}")
    defaults = DEFAULTS[name]
    if unknown := sorted(options.keys() - defaults.keys()):
        raise UnsupportedError(f"{name}: expected one of {', '.join(defaults)}, got {unknown[0][:80]!r}")
    chosen = {key: _plain(options.get(key, default), key, default) for key, default in defaults.items()}
    _check(name, chosen)
    return Work(name, chosen)


def _plain(value: Any, key: str, default: Any) -> Any:
    """Return an option as JSON stores it."""
    if isinstance(default, tuple):
        if isinstance(value, str):
            raise TypeError(f"{key}: expected a collection of names, got one text; write {key}=[{value[:80]!r}]")
        return sorted(value)
    return dict(value) if isinstance(default, Mapping) else value


def _check(name: str, options: Mapping[str, Any]) -> None:
    if name == "digest":
        for part in options["only"]:
            if part not in PARTS:
                raise UnsupportedError(f"only: expected one of {', '.join(PARTS)}, got {part[:80]!r}")
    elif name == "sanitize":
        from pt2kit.sanitizing.options import make_options

        make_options(options["drop"], options["strip"], options["scrub_paths"])
    elif name == "convert":
        from pt2kit.release.destinations import find_destination

        if not isinstance(options["target"], str):
            raise UnsupportedError("convert: expected target, such as 'torch==2.13', got none")
        find_destination(options["target"])
