"""State of a pickle interpreter (position, stack, memo), and the hooks it calls.

`pickles.opcodes` has the opcodes themselves. Every length is compared with the rest of the stream before it is used;
the memo, strings and names are limited here.
"""

from __future__ import annotations

from typing import Any, Protocol

from pt2kit.errors import LimitError, PayloadError
from pt2kit.messages import count_text
from pt2kit.pickles.budget import MAX_NAME, PickleLimits

MAX_LINE = 65_536
"""Bytes of one text argument (protocol 0) with its newline; binary protocols use lines for names only."""


class Hooks(Protocol):
    """Hooks of the machine, implemented by its caller. Each may raise a `Pt2Error`."""

    def find(self, module: str, name: str, /) -> Any:
        """Return the value that replaces a global."""

    def call(self, callee: Any, args: tuple[Any, ...], kwargs: dict[Any, Any], opcode: str, /) -> Any:
        """Return the value that replaces the result of a call, made by the opcode of that name."""

    def build(self, target: Any, state: Any, /) -> None:
        """Set the state of an object."""

    def persistent(self, persistent_id: Any, /) -> Any:
        """Return the value of a persistent id."""

    def extend(self, target: Any, values: list[Any], /) -> None:
        """Append to a list-like object."""

    def update(self, target: Any, items: list[Any], /) -> None:
        """Set items of a dict-like object: `[key, value, key, value, …]`."""

    def add(self, target: Any, values: list[Any], /) -> None:
        """Add to a set-like object."""

    def freeze(self, values: list[Any], /) -> Any:
        """Return a frozen set."""


class Machine:
    """The state of one run: position, stack (cut at marks, as Python's unpickler does), memo."""

    __slots__ = ("at", "done", "hooks", "limits", "memo", "outer", "pos", "stack", "stream", "where")

    def __init__(self, stream: bytes, start: int, where: str, hooks: Hooks, limits: PickleLimits) -> None:
        self.stream = stream
        self.pos = start
        self.at = start
        self.where = where
        self.hooks = hooks
        self.limits = limits
        self.stack: list[Any] = []
        self.outer: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.done = False

    def error(self, expected: str, got: str) -> PayloadError:
        """Return the error for a malformed stream, with the position of the current opcode."""
        return PayloadError(f"{self.where}: pickle byte {self.at}: expected {expected}, got {got}")

    def limit(self, what: str, allowed: int, got: int) -> LimitError:
        """Return the error for a passed limit, with the position of the current opcode."""
        return LimitError(f"{self.where}: pickle byte {self.at}: expected {what} of at most {allowed}, got {got}")

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes of the stream."""
        end = self.pos + count
        if end > len(self.stream):
            raise self.error(count_text(count, "more byte"), f"{len(self.stream) - self.pos} (the stream is cut off)")
        chunk = self.stream[self.pos : end]
        self.pos = end
        return chunk

    def unsigned(self, width: int) -> int:
        """Return the next `width` bytes as a little-endian unsigned integer."""
        return int.from_bytes(self.take(width), "little")

    def line(self) -> bytes:
        """Return the bytes up to the next newline, which is consumed too."""
        end = self.stream.find(b"\n", self.pos, self.pos + MAX_LINE)
        if end < 0:
            left = len(self.stream) - self.pos
            if left >= MAX_LINE:
                raise self.limit("a text line", MAX_LINE, left)
            raise self.error(
                "a line ending in a newline", f"{count_text(left, 'byte')} without one (the stream is cut off)"
            )
        text = self.stream[self.pos : end]
        self.pos = end + 1
        return text

    def sized(self, width: int) -> bytes:
        """Return a byte string after a length of `width` bytes, limited by `PickleLimits.string_bytes`."""
        count = self.unsigned(width)
        if count > self.limits.string_bytes:
            raise self.limit("a string length", self.limits.string_bytes, count)
        return self.take(count)

    def text(self, data: bytes) -> str:
        """Return `data` as UTF-8 text."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as bad:
            raise self.error("valid UTF-8", f"{bad.reason} at byte {bad.start} of the string") from None

    def name(self, data: bytes) -> str:
        """Return `data` as the name of a module or global."""
        if len(data) > MAX_NAME:
            raise self.limit("a global's name", MAX_NAME, len(data))
        return self.text(data)

    def push(self, value: Any) -> None:
        """Put `value` on the stack."""
        self.stack.append(value)

    def pop(self) -> Any:
        """Pop the top value; values below the last mark are out of reach."""
        value = self.top()
        del self.stack[-1]
        return value

    def top(self) -> Any:
        """Return the top value without popping it."""
        if not self.stack:
            raise self.error("a value on the stack", "an empty stack")
        return self.stack[-1]

    def pop_mark(self) -> list[Any]:
        """Pop all values above the last mark, and the mark."""
        if not self.outer:
            raise self.error("a mark on the stack", "none")
        items = self.stack
        self.stack = self.outer.pop()
        return items

    def pop_tuple(self, count: int) -> tuple[Any, ...]:
        """Pop the top `count` values, lowest first."""
        if len(self.stack) < count:
            raise self.error(f"{count_text(count, 'value')} on the stack", str(len(self.stack)))
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        return items

    def put(self, index: int) -> None:
        """Remember the top value as memo entry `index`; an entry may be overwritten."""
        if len(self.memo) >= self.limits.memo_entries and index not in self.memo:
            raise self.limit("a memo", self.limits.memo_entries, len(self.memo) + 1)
        self.memo[index] = self.top()

    def get(self, index: int) -> None:
        """Push memo entry `index`."""
        if index not in self.memo:
            raise self.error("a memo entry that was stored before", f"entry {index}")
        self.push(self.memo[index])
