"""A flat table of JSON values: what writes its entries and what reads them, whatever kinds of entries there are.

    {"values": [{"tensor": {"storage": 0, …}}, {"tuple": [{"ref": 0}, 2, {"float": 0.5}]}, {"dict": []},
                {"tuple": [{"ref": 1}, {"ref": 2}]}], "value": {"ref": 3}}

A value is null, a truth value, an integer, a text, or an object with one key that says what kind it is. Containers and
tensors are entries of the table, which others refer to by their numbers; an entry refers to earlier ones only, so that
nothing can contain itself, and what was shared is shared again. `kinds` has the kinds.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.messages import printable
from pt2kit.pickles.argument_checks import check_count
from pt2kit.pickles.budget import Budget, describe
from pt2kit.pickles.values import Global, Opaque, PickledStorage


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value, in both directions.

    Args:
        write: (value, writer) -> what stands under the kind's key.
        read: (what stands there, its place) -> the value, every part of it checked.
        parts: value -> the values in it that may be entries of the table.
        is_entry: whether such values are entries themselves; others stand where they are used.
    """

    write: Callable[[Any, Writer], Any]
    read: Callable[[Any, Place], Any]
    parts: Callable[[Any], Sequence[Any]] = lambda value: ()
    is_entry: bool = False


@dataclass(slots=True)
class Writer:
    """The table in the making.

    Args:
        where: the record that the values come from, for messages.
        kinds: key -> kind.
        key_of: value -> the key of its kind; None where there is none.
        values: the entries so far.
        storages: storage -> its number.
        numbers: id of a value -> the number of its entry.
    """

    where: str
    kinds: Mapping[str, Kind]
    key_of: Callable[[Any], str | None]
    values: list[Any] = field(default_factory=list)
    storages: dict[PickledStorage, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)

    def write(self, root: Any) -> Any:
        """Add the entries of a value, inner ones first; returns what refers to it."""
        stack = [(root, False)]
        while stack:
            value, parts_done = stack.pop()
            key = self.key_of(value)
            if key is None or not self.kinds[key].is_entry or id(value) in self.numbers:
                continue
            if parts_done:
                self.values.append({key: self.kinds[key].write(value, self)})
                self.numbers[id(value)] = len(self.values) - 1
            else:
                stack.append((value, True))
                stack += [(part, False) for part in reversed(self.kinds[key].parts(value))]
        return self.inline(root)

    def inline(self, value: Any) -> Any:
        """A value as it stands inside an entry: itself, an object with one key, or the number of its entry."""
        if value is None or type(value) in (bool, int, str):
            return value
        key = self.key_of(value)
        if key is None:
            raise self.refuse(value)
        if self.kinds[key].is_entry:
            return {"ref": self.numbers[id(value)]}
        return {key: self.kinds[key].write(value, self)}

    def refuse(self, value: Any) -> UnsupportedError:
        """The error for a value that is no data."""
        what = f"an object of {value.cls.path}" if isinstance(value, Opaque) else f"a {type(value).__name__}"
        if isinstance(value, Global):
            what = f"the global {value.path}"
        return UnsupportedError(f"{self.where}: expected plain data, got {what[:200]!a}")

    def inlines(self, values: Iterable[Any]) -> list[Any]:
        """Several values as they stand inside an entry."""
        return [self.inline(value) for value in values]

    def items(self, value: Mapping[Any, Any]) -> list[Any]:
        """The pairs of a dict."""
        return [[self.inline(key), self.inline(item)] for key, item in value.items()]

    def storage(self, storage: PickledStorage) -> int:
        """The number of a storage."""
        return self.storages.setdefault(storage, len(self.storages))


@dataclass(slots=True)
class Reader:
    """The values made of a table so far.

    Args:
        budget: what reading may cost, and the record for messages.
        storages: what numbers of storages mean.
        kinds: key -> kind.
        made: the values of the entries so far.
    """

    budget: Budget
    storages: Sequence[PickledStorage]
    kinds: Mapping[str, Kind]
    made: list[Any] = field(default_factory=list)

    def entry(self, written: Any) -> None:
        """Read the next entry."""
        path = f"values[{len(self.made)}]"
        self.made.append(self._read(written, path, "a container or a tensor", is_entry=True))

    def value(self, written: Any, path: str) -> Any:
        """A value as it stands inside an entry."""
        if written is None or isinstance(written, bool | int | str):
            return written
        return self._read(written, path, "a kind of value", is_entry=False)

    def _read(self, written: Any, path: str, expected: str, *, is_entry: bool) -> Any:
        if not isinstance(written, dict) or len(written) != 1:
            raise self.budget.error(path, "an object with one key", describe(written))
        [(key, body)] = written.items()
        if key == "ref" and not is_entry:
            return self._referred(body, f"{path}.ref")
        kind = self.kinds.get(key)
        if kind is None or kind.is_entry is not is_entry:
            raise self.budget.error(path, expected, repr(printable(key, 40)))
        return kind.read(body, Place(self, f"{path}.{key}"))

    def _referred(self, number: Any, path: str) -> Any:
        if check_count(self.budget, path, number) >= len(self.made):
            raise self.budget.error(path, f"an entry before this one, below {len(self.made)}", str(number))
        return self.made[number]


@dataclass(frozen=True, slots=True)
class Place:
    """One place in the table: what checks the values there, and what messages call it."""

    reader: Reader
    path: str

    @property
    def budget(self) -> Budget:
        """What reading may cost."""
        return self.reader.budget

    def error(self, expected: str, got: Any) -> PayloadError:
        """The error for what stands here."""
        return self.budget.error(self.path, expected, describe(got))

    def at(self, name: str) -> Place:
        """A place inside this one."""
        return replace(self, path=f"{self.path}.{name}")

    def field(self, body: Any, name: str) -> Any:
        """What an object has under a name, as it is written."""
        if not isinstance(body, dict) or name not in body:
            raise self.error(f"an object with the key {name}", body)
        return body[name]

    def text(self, body: Any) -> str:
        """A text."""
        if not isinstance(body, str):
            raise self.error("a text", body)
        return body

    def list(self, body: Any) -> builtins.list[Any]:
        """A list of anything."""
        if not isinstance(body, builtins.list):
            raise self.error("a list", body)
        return body

    def bytes(self, body: Any) -> builtins.bytes:
        """Bytes, of hexadecimal digits."""
        text = self.text(body)
        self.budget.spend(len(text))
        try:
            return builtins.bytes.fromhex(text)
        except ValueError:
            raise self.error("bytes as hexadecimal digits", body) from None

    def value(self, body: Any) -> Any:
        """A value as it stands inside an entry."""
        return self.reader.value(body, self.path)

    def values(self, body: Any) -> tuple[Any, ...]:
        """A list of such values."""
        self.budget.spend(64 * len(self.list(body)))
        return tuple(self.value(item) for item in body)

    def items(self, body: Any, into: dict[Any, Any]) -> Any:
        """Fill a dict with pairs; equal keys are refused, as one of the values would be lost."""
        for pair in self.list(body):
            if not isinstance(pair, builtins.list) or len(pair) != 2:
                raise self.error("pairs of key and value", pair)
            key = self.value(pair[0])
            self.budget.check_key(key)
            if key in into:
                raise self.error("each key once", key)
            into[key] = self.value(pair[1])
        return into
