"""Lazy read-only mappings: names known immediately, values computed on first access, unknown names refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

from pt2kit.messages import suggestion

V = TypeVar("V")

_SHOWN = 8


class Lazy(Mapping[str, V]):
    """A read-only mapping that computes its values. Safe to use from several threads.

    Args:
        names: the keys, in order.
        compute: key -> value; what it raises comes through, and nothing is kept then.
        what: the kind of things named, for messages.
    """

    def __init__(self, names: tuple[str, ...], compute: Callable[[str], V], what: str = "name") -> None:
        self._names = dict.fromkeys(names)
        self._compute = compute
        self._what = what
        self._kept: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name in self._kept:
            return self._kept[name]
        if name not in self._names:
            raise unknown_name(self._what, name, self._names)
        # Two threads may both compute; the first result is the one everybody gets.
        return self._kept.setdefault(name, self._compute(name))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<Lazy: {', '.join(map(repr, self._names)) or 'empty'}>"


class Named(dict[str, V]):
    """Dict that must not be changed, whose errors list the existing names, and whose repr is short.

    Args:
        values: name -> value.
        what: the kind of things named, for messages.

    Raises (from whatever would change it):
        TypeError: advises to make a new dict.
    """

    __slots__ = ("_what",)

    def __init__(self, values: Mapping[str, V], what: str) -> None:
        super().__init__(values)
        self._what = what

    def __missing__(self, name: str) -> NoReturn:
        raise unknown_name(self._what, name, self)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"expected to read a {self._what} of a package, which does not change; make a new dict of it")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __repr__(self) -> str:
        shown = ", ".join(f"{name!r}: {self[name]!r}" for name in list(self)[:_SHOWN])
        more = f", … {len(self) - _SHOWN:,} more" if len(self) > _SHOWN else ""
        return f"{{{shown}{more}}}"

    def __reduce__(self) -> tuple[type, tuple[dict[str, V], str]]:
        return Named, (dict(self), self._what)


def unknown_name(what: str, name: object, names: Iterable[str]) -> KeyError:
    """Return the error for an unknown name: those that are close to it, and the first of the existing ones."""
    there = list(names)
    listed = ", ".join(map(repr, there[:_SHOWN])) + (f", … {len(there) - _SHOWN:,} more" if there[_SHOWN:] else "")
    meant = suggestion(str(name), there)
    article = "an" if what[0] in "aeiou" else "a"
    return KeyError(f"expected {article} {what}, one of {listed or 'none'}, got {str(name)[:200]!r}{meant}")
