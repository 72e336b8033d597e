"""Building blocks of the schema's types: objects, unions, frozen lists, floats, and the wire id of each field.

`types.py` declares the format with these four. Nothing here depends on a type of the format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from msgspec import UNSET, Struct
from msgspec.structs import astuple, force_setattr


@dataclass(frozen=True, slots=True)
class Wire:
    """The identity of a field across releases.

    Args:
        id: the permanent number of the field, as in the generated definitions for other languages.
        since: the schema version that introduced the field ("8.2"); "1" for the oldest.
    """

    id: int
    since: str


def wire(id: int, *, since: str) -> Wire:
    """Declare the wire id and the first version of a field, for use inside `Annotated`."""
    return Wire(id, since)


Float = float | Literal["Infinity", "-Infinity", "NaN"]
"""A float as JSON carries it: the three values that JSON has no number for are strings there. In memory: a `float`."""


class SpelledFloat(float):
    """A float that the JSON encoder must not spell itself.

    Infinities and nan, which JSON has no number for, and numbers that Python, and so torch, writes with an exponent:
    they are written back exactly as they were read.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return SpelledFloat, (float.__repr__(self),)


def as_float(value: Float) -> float:
    """Turn a float of a file or a caller into the one form that the schema's objects hold."""
    text = repr(number := float(value))
    return SpelledFloat(number) if "e" in text or "n" in text else number


class _Frozen:
    """Base class that refuses the methods that change a list or dict, with advice on what to do instead."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        kind = type(self).__mro__[2].__name__
        raise TypeError(
            f"expected a {kind} that can change, got one of a frozen object of the schema: "
            f"make a new object with a new {kind} (msgspec.structs.replace), or change the program by pt2kit.edit"
        )

    __setitem__ = __delitem__ = _refuse


class FrozenList(_Frozen, list[Any]):
    """A list that cannot be changed in place; it equals a list of the same entries, and a copy of it is a plain one.

    Raises (from whatever would change it):
        TypeError: explains how to change the object that it belongs to.
    """

    __slots__ = ()
    append = extend = insert = pop = remove = clear = sort = reverse = __iadd__ = __imul__ = _Frozen._refuse

    def __reduce_ex__(self, _: Any) -> tuple[type[list[Any]], tuple[list[Any]]]:
        return list, (list(self),)


class FrozenDict(_Frozen, dict[str, Any]):
    """A dict that cannot be changed in place; it equals a dict of the same entries, and a copy of it is a plain one.

    Raises (from whatever would change it):
        TypeError: explains how to change the object that it belongs to.
    """

    __slots__ = ()
    pop = popitem = clear = update = setdefault = __ior__ = _Frozen._refuse

    def __reduce_ex__(self, _: Any) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def as_floats(values: Iterable[Float]) -> FrozenList:
    """Apply `as_float` to each entry of a list; return a new list."""
    return FrozenList(map(as_float, values))


class Object(Struct, frozen=True, gc=False):
    """A record of the schema: named fields, all of them present in a file of the current version."""


class Holder(Object, frozen=True):
    """Record with lists or dicts among its fields: it stores frozen copies of them.

    Cost: a copy of each that is not frozen already.
    """

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is list:
                force_setattr(self, name, FrozenList(value))
            elif type(value) is dict:
                force_setattr(self, name, FrozenDict(value))


class Union(Struct, frozen=True, forbid_unknown_fields=True, gc=False, kw_only=True):
    """Exactly one of several fields; the others are `UNSET`.

    Reads well in a `match`: `case Argument(as_tensor=TensorArgument(name))`.

    Raises:
        ValueError: none or more than one field is set (the decoder turns this into a `SchemaError` with its place).
    """

    def __post_init__(self) -> None:
        if astuple(self).count(UNSET) + 1 != len(self.__struct_fields__):
            self._refuse()

    def _refuse(self) -> NoReturn:
        names = [name for name in self.__struct_fields__ if getattr(self, name) is not UNSET]
        shown = f"{len(names)} ({', '.join(names)})" if names else "none"
        raise ValueError(f"expected exactly one key, got {shown}")

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.type}={self.value!r})"

    @property
    def type(self) -> str:
        """Return the name of the field that is set ("as_tensor")."""
        for name in self.__struct_fields__:
            if getattr(self, name) is not UNSET:
                return name
        raise AssertionError("a union is never empty")

    @property
    def value(self) -> Any:
        """Return the value of the field that is set."""
        return getattr(self, self.type)

    @classmethod
    def create(cls, **one: Any) -> Any:
        """Build a union from its one field, by name: `Argument.create(as_int=3)`.

        Raises:
            TypeError: the field does not belong to this union.
            ValueError: none or more than one field was passed.
        """
        return cls(**one)
