"""Building blocks of the schema's types (objects, unions, frozen lists, floats, wire ids) and spelling of their JSON.

`types.py` declares the format with these building blocks; each field has a wire id. Nothing here depends on a type of
the format.

`SPELLINGS` has the spelling of JSON in each schema version, where the field tables don't define it.

    union            1, 2: every arm is written, null but for one; later the one arm alone
    None             5.1 to 8.2: a field that may be left out and is None is left out; else written as null
    inf, nan         up to 8.2: bare Infinity and NaN; later strings (of 8.6 to 8.8 only "-Infinity" is known)
    open range       2, 5.1, 7.3: Infinity; 1, 5.3: 9223372036854775806; later null
    constant bool    5.3, 7.3: {"as_int": true}

Source: files of torch 2.1 to 2.14, for the spelling.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal, NoReturn

from msgspec import UNSET, Struct
from msgspec.structs import astuple, force_setattr

from pt2kit.schema.fieldtable import AnyOf, Scalar, Table, Type

MAX_RANGE: Final = 9223372036854775806
"""Value that versions 1 and 5.3 write for a range without an upper end."""
MIN_RANGE: Final = -9223372036854775808
"""Likewise for the lower end; no file with one is known."""

SPELLED_FLOATS: Final = frozenset({"Infinity", "-Infinity", "NaN"})
"""Floats that JSON has no number for, as later versions write them: strings."""

_INT_OR_FLOAT: Final = AnyOf((Scalar("int"), Scalar("float")))
_INT_OR_BOOL: Final = AnyOf((Scalar("int"), Scalar("bool")))


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


class FloatUnion(Union, frozen=True):
    """Union with a float among its fields, `as_float`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.type == "as_float":
            force_setattr(self, "as_float", as_float(self.value))


@dataclass(frozen=True, slots=True)
class Spelling:
    """The spelling of one version.

    Args:
        padded_unions: unions hold every arm, null except for one; else exactly one arm.
        left_out_nones: fields that are None by default and in fact are left out.
        bare_floats: Infinity and NaN are written without quotes, which is no JSON.
        lowest, highest: the values written for the open ends of a range.
        infinite_ranges: files hold infinities in ranges, which the field table declares as integers.
        bools_as_ints: a constant that is a truth value is under `as_int`.
    """

    padded_unions: bool = False
    left_out_nones: bool = False
    bare_floats: bool = False
    lowest: float | None = None
    highest: float | None = None
    infinite_ranges: bool = False
    bools_as_ints: bool = False


_INFINITE: Final = Spelling(bare_floats=True, lowest=-math.inf, highest=math.inf, infinite_ranges=True)
_NUMBERED: Final = Spelling(bare_floats=True, lowest=MIN_RANGE, highest=MAX_RANGE)
_CURRENT: Final = Spelling()

SPELLINGS: Final[Mapping[str, Spelling]] = MappingProxyType(
    {
        "1": replace(_NUMBERED, padded_unions=True),
        "2": replace(_INFINITE, padded_unions=True),
        "5.1": replace(_INFINITE, left_out_nones=True),
        "5.3-traces": replace(_NUMBERED, left_out_nones=True, infinite_ranges=True),
        "5.3": replace(_NUMBERED, left_out_nones=True, infinite_ranges=True, bools_as_ints=True),
        "7.3": replace(_INFINITE, left_out_nones=True, bools_as_ints=True),
        "8.2": Spelling(bare_floats=True, left_out_nones=True),
    }
)
"""Version -> its spelling, where it is not that of the current one."""


def spelling(version: str) -> Spelling:
    """Return the JSON spelling of a version's releases; that of the current version for an unknown one."""
    return SPELLINGS.get(version, _CURRENT)


def as_written(table: Table) -> Table:
    """Return the table with fields that files of its version hold in addition, for generators.

    Wire ids if there are none yet: ten times the position, which is stable because released tables never change, but
    means nothing across versions. And the types of fields where writers did not keep to the table.
    """
    spelled = spelling(table.version)
    types: dict[tuple[str, str], Type] = {}
    if spelled.infinite_ranges:
        types |= {("RangeConstraint", end): _INT_OR_FLOAT for end in ("min_val", "max_val")}
    if spelled.bools_as_ints:
        types |= {("ConstantValue", "as_int"): _INT_OR_BOOL}
    has_ids = table.has_ids
    definitions = {}
    for name, definition in table.definitions.items():
        fields = {
            key: replace(field, id=field.id if has_ids else 10 * position, type=types.get((name, key), field.type))
            for position, (key, field) in enumerate(definition.fields.items(), 1)
        }
        definitions[name] = replace(definition, fields=MappingProxyType(fields))
    return Table(table.version, MappingProxyType(definitions))
