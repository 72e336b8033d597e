"""Errors <- where they happened: each level that knows more puts its place in front of the message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pt2kit.errors import Pt2Error


def at(place: str, error: Pt2Error) -> Pt2Error:
    """The same error with a place in front; raise it `from` the one that was caught."""
    placed = type(error)(f"{place}: {error}")
    placed.rule = error.rule
    return placed


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Put a place in front of the errors that the block raises."""
    try:
        yield
    except Pt2Error as error:
        raise at(place, error) from error
