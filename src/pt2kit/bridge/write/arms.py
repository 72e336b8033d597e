"""Arguments made from the name of their arm, and the one that says None."""

from __future__ import annotations

from typing import Any

from pt2kit.schema import Argument

NONE = Argument(as_none=True)


def make(arm: str, value: Any) -> Argument:
    """An argument of the kind `arm` ("as_ints")."""
    argument: Argument = Argument.create(**{arm: value})
    return argument
