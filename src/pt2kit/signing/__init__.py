"""Sign packages and verify signatures over the meaning of a program: is a package the one that was signed?

- `sign`: a file and a key, a certificate or an identity -> a signature next to it.
- `verify`: a file, its signature and a trust anchor -> `Verified`: the unchanged and the changed parts, by name.

    statement.py   a package -> names and digests, and differences from signed ones
    bundle.py      names and digests <-> a signed sigstore bundle, by OpenSSF's model-signing; only here is it imported

docs/signing.md describes what a signature covers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.signing.bundle import sign as sign
    from pt2kit.signing.bundle import verify as verify
    from pt2kit.signing.statement import Difference as Difference
    from pt2kit.signing.statement import Verified as Verified

__getattr__, __dir__, __all__ = front_door(__name__)
