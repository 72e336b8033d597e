"""Warning for versions of torch that the bridge was not tested with.

Nothing else depends on the number of a release: missing features are found by looking for them (`torch_names.py`).
"""

from __future__ import annotations

import re
import warnings
from typing import Final

OLDEST: Final = (2, 9)
NEWEST: Final = (2, 15)


def warn_if_untested(version: str) -> None:
    """Warn, once per process, that a release is older or newer than all tested ones (`make test-torches`).

    Args:
        version: `torch.__version__`: "2.16.0a0+git1234"; one that is no number causes no warning.
    """
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None or OLDEST <= (int(match[1]), int(match[2])) <= NEWEST:
        return
    tested = " to ".join(".".join(map(str, pair)) for pair in (OLDEST, NEWEST))
    warnings.warn(
        f"pt2kit was tried with torch {tested}, got torch {version}; saving and loading may fail, or be refused",
        UserWarning,
        stacklevel=2,
    )
