"""A value of several possible types -> the same value as the one type that a test expects, or a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import UNSET, UnsetType

from pt2kit.tensors import TensorView

T = TypeVar("T")


def instance(cls: type[T], value: object) -> T:
    """A value that is of a class."""
    assert isinstance(value, cls), f"expected a {cls.__name__}, got {value!r}"
    return value


def present(value: T | UnsetType | None) -> T:
    """A value that is there: neither None nor unset."""
    assert value is not None
    assert value is not UNSET
    return value


def dense(payloads: Mapping[str, object]) -> dict[str, TensorView]:
    """Payloads that are all dense tensors, by name."""
    return {name: instance(TensorView, payload) for name, payload in payloads.items()}


def numbers(payloads: Mapping[str, object]) -> dict[str, bytes]:
    """The bytes of payloads that are all dense tensors, by name."""
    return {name: view.tobytes() for name, view in dense(payloads).items()}


def records(payloads: Iterable[object]) -> list[str]:
    """Return where the bytes of payloads that are all dense tensors are."""
    return [instance(TensorView, payload).record for payload in payloads]
