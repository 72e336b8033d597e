"""Digests of a program: of each part, of each tensor, and of all that it means. `docs/digest.md` defines every byte.

- `digest`: all of them.
- `digest_parts`: some of them; `digest_program`: those that need no tensors, of a program alone.
- `verify`: what differs from expected digests; all of them, some parts, or single tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.digests.compute import digest as digest
    from pt2kit.digests.compute import digest_parts as digest_parts
    from pt2kit.digests.compute import digest_program as digest_program
    from pt2kit.digests.compute import payloads_of as payloads_of
    from pt2kit.digests.compute import verify as verify
    from pt2kit.digests.result import FORMAT as FORMAT
    from pt2kit.digests.result import PARTS as PARTS
    from pt2kit.digests.result import TABLES as TABLES
    from pt2kit.digests.result import Digest as Digest
    from pt2kit.digests.result import Mismatch as Mismatch
    from pt2kit.digests.result import check_digest as check_digest
    from pt2kit.digests.result import read_expected as read_expected

__getattr__, __dir__, __all__ = front_door(__name__)
