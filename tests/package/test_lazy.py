"""Names known at once, values computed when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pt2kit.package.stored import Lazy


def test_values_are_computed_once() -> None:
    """A value is computed when it is first asked for, and the same object is given from then on."""
    asked: list[str] = []

    def compute(name: str) -> list[str]:
        asked.append(name)
        return [name]

    lazy = Lazy(("a", "b"), compute)
    assert (list(lazy), len(lazy), "a" in lazy, "c" in lazy, asked) == (["a", "b"], 2, True, False, [])
    assert lazy["b"] is lazy["b"]
    assert asked == ["b"]
    assert dict(lazy.items()) == {"a": ["a"], "b": ["b"]}


def test_unknown_names() -> None:
    """A name that is not there is a KeyError, and computes nothing."""
    lazy = Lazy(("a",), lambda name: 1 / 0)
    with pytest.raises(KeyError, match="nope"):
        lazy["nope"]
    assert lazy.get("nope") is None


def test_errors_are_not_kept() -> None:
    """Errors of computing are raised, each time anew."""
    found: Iterator[str | Exception] = iter([ValueError("first"), "second"])

    def compute(name: str) -> str:
        value = next(found)
        if isinstance(value, Exception):
            raise value
        return value

    lazy = Lazy(("a",), compute)
    with pytest.raises(ValueError, match="first"):
        lazy["a"]
    assert lazy["a"] == "second"


def test_threads_get_one_value() -> None:
    """Threads that ask at once all get the same object."""
    lazy = Lazy(("a",), lambda name: object())
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: lazy["a"], range(200)))
    assert len({id(value) for value in found}) == 1


def test_repr_names_the_keys() -> None:
    """The names show, the values are not computed for it."""
    assert repr(Lazy(("a", "b"), lambda name: 1 / 0)) == "<Lazy: 'a', 'b'>"
    assert repr(Lazy((), lambda name: None)) == "<Lazy: empty>"
