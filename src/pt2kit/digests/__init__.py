"""A program -> digests: of each part, of each tensor, and of all that it means. `docs/digest.md` defines every byte.

- `digest`: all of them.
- `digest_parts`: some of them; `digest_program`: those that need no tensors, of a program alone.
- `verify`: what differs from expected digests; all of them, some parts, or single tensors.
"""

from pt2kit.digests.compute import digest, digest_parts, digest_program, payloads_of, verify
from pt2kit.digests.result import FORMAT, PARTS, TABLES, Digest, Mismatch, check_digest, read_expected

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
