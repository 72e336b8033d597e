"""A program -> digests: of each part, of each tensor, and of all that it means. `docs/digest.md` defines every byte.

- `digest`: all of them. `pt2kit.digest(…)` calls it, too: the room can be called by the name of what it does.
- `digest_parts`: some of them; `digest_program`: those that need no tensors, of a program alone.
- `verify`: what differs from expected digests; all of them, some parts, or single tensors.
"""

import sys
from types import ModuleType
from typing import Any

from pt2kit.digest.compute import digest, digest_parts, digest_program, payloads_of, verify
from pt2kit.digest.result import FORMAT, PARTS, TABLES, Digest, Mismatch, check_digest, read_expected

__all__ = [
    "FORMAT",
    "PARTS",
    "TABLES",
    "Digest",
    "Mismatch",
    "check_digest",
    "digest",
    "digest_parts",
    "digest_program",
    "payloads_of",
    "read_expected",
    "verify",
]


class _Callable(ModuleType):
    """Importing a room makes it an attribute of the package, where the function of the same name would be."""

    def __call__(self, *args: Any, **kwargs: Any) -> Digest:
        return digest(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
