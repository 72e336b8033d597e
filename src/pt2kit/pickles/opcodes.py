"""Pickle interpreter: opcodes of protocols 0 to 5 over an explicit stack and memo, with hooks for calls and globals.

Nothing here resolves a class or a function. Scalars, strings, tuples, lists and plain stack moves are decoded; whatever
unpickling would look up, call, or change goes to `Hooks`, which decide its meaning. Nothing recurses.

Where this is stricter than Python's unpickler: exactly one value may be left at STOP; strings must be valid UTF-8
without lone surrogates; out-of-band buffers are refused; integers and texts are limited in length.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeAlias

from pt2kit.errors import LimitError, UnsupportedError
from pt2kit.messages import count_text, printable
from pt2kit.pickles.budget import MAX_NAME, PickleLimits, describe
from pt2kit.pickles.machine import Hooks, Machine

HIGHEST_PROTOCOL = 5

Step: TypeAlias = Callable[[Machine], object]

_BIN_FLOAT = struct.Struct(">d")
_INTEGER = re.compile(rb"[+-]?[0-9]+")


def run(stream: bytes, where: str, hooks: Hooks, limits: PickleLimits, start: int = 0) -> tuple[Any, int]:
    """Interpret one pickle and return its value, as the hooks made it, and the position after its STOP.

    Args:
        stream: the pickle, possibly followed by more bytes.
        where: the record it comes from, for messages.
        hooks: interpret globals, calls and state.
        limits: bounds on the stream.
        start: index of the pickle's first byte in `stream`.

    Raises:
        PayloadError: a malformed or truncated stream.
        LimitError: a limit was passed.
        UnsupportedError: a stream with out-of-band buffers, or whatever the hooks refuse.
    """
    machine = Machine(stream, start, where, hooks, limits)
    for _ in range(limits.opcodes):
        at = machine.at = machine.pos
        if at >= len(stream):
            raise machine.error("another opcode or STOP", "nothing (the stream is cut off)")
        step = _STEPS[stream[at]]
        if step is None:
            raise machine.error("a pickle opcode", f"byte 0x{stream[at]:02x}")
        machine.pos = at + 1
        step(machine)
        if machine.done:
            return _result(machine), machine.pos
    raise LimitError(f"{where}: expected a pickle of at most {limits.opcodes} opcodes, got more")


def _result(m: Machine) -> Any:
    value = m.pop()
    left = len(m.stack) + sum(map(len, m.outer))
    if left or m.outer:
        raise m.error(
            "nothing but the result on the stack at STOP",
            f"{count_text(left, 'more value')} and {count_text(len(m.outer), 'mark')}",
        )
    return value


# Scalars and strings


def _proto(m: Machine) -> None:
    protocol = m.unsigned(1)
    if protocol > HIGHEST_PROTOCOL:
        raise m.error(f"protocol 0 to {HIGHEST_PROTOCOL}", str(protocol))


def _frame(m: Machine) -> None:
    size = m.unsigned(8)
    if size > len(m.stream) - m.pos:
        raise m.error(f"a frame of {size} bytes", f"{len(m.stream) - m.pos} (the stream is cut off)")


def _long(width: int) -> Step:
    def step(m: Machine) -> None:
        count = m.unsigned(width)
        if count > m.limits.integer_bytes:
            raise m.limit("an integer length", m.limits.integer_bytes, count)
        m.push(int.from_bytes(m.take(count), "little", signed=True))

    return step


def _decimal(m: Machine, digits: bytes) -> int:
    # A byte of an integer is at most 2.41 decimal digits.
    allowed = m.limits.integer_bytes * 5 // 2
    if len(digits) > allowed:
        raise m.limit("an integer's digits", allowed, len(digits))
    if not _INTEGER.fullmatch(digits):
        raise m.error("a decimal integer", repr(printable(digits.decode("latin-1"), 60)))
    return int(digits)


def _int_line(m: Machine) -> None:
    digits = m.line()
    m.push(digits == b"01" if digits in (b"00", b"01") else _decimal(m, digits))


def _float_line(m: Machine) -> None:
    text = m.line()
    try:
        m.push(float(text))
    except ValueError:
        raise m.error("a float", repr(printable(text[:60].decode("latin-1")))) from None


def _quoted_line(m: Machine) -> None:
    text = m.line().strip()
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in (b"'", b'"'):
        raise m.error("a string in quotes", repr(printable(text[:60].decode("latin-1"))))
    try:
        # As Python's unpickler reads it. Unknown escapes warn; with `-W error` the warning is raised.
        raw: bytes = codecs.escape_decode(text[1:-1])[0]
    except (ValueError, DeprecationWarning) as bad:
        raise m.error("a string without broken escapes", str(bad)) from None
    m.push(m.text(raw))


def _unicode_line(m: Machine) -> None:
    try:
        text = m.line().decode("raw-unicode-escape")
        text.encode("utf-8")
    except UnicodeError as bad:
        raise m.error("a string without broken escapes or lone surrogates", str(bad.__class__.__name__)) from None
    m.push(text)


def _refuse_buffer(m: Machine) -> None:
    where = f"{m.where}: pickle byte {m.at}"
    raise UnsupportedError(f"{where}: expected a self-contained pickle, got one that takes buffers from outside")


# Stack, memo, containers


def _mark(m: Machine) -> None:
    m.outer.append(m.stack)
    m.stack = []


def _stop(m: Machine) -> None:
    m.done = True


def _pop(m: Machine) -> None:
    if m.stack:
        m.stack.pop()
    else:
        m.pop_mark()


def _put_line(m: Machine) -> None:
    index = _decimal(m, m.line())
    if index < 0:
        raise m.error("a memo index of 0 or more", str(index))
    m.put(index)


def _change(hook: str, take: Callable[[Machine], Any]) -> Step:
    """Return the step that takes something from the stack and changes the value below it."""

    def step(m: Machine) -> None:
        taken = take(m)
        getattr(m.hooks, hook)(m.top(), taken)

    return step


def _pairs(m: Machine) -> list[Any]:
    items = m.pop_mark()
    if len(items) % 2:
        raise m.error("keys and values in pairs", count_text(len(items), "value"))
    return items


def _dict_marked(m: Machine) -> None:
    made: dict[Any, Any] = {}
    m.hooks.update(made, _pairs(m))
    m.push(made)


# Opcodes by which unpickling would look up, call or change something


def _global(m: Machine) -> Any:
    module = m.name(m.line())
    return m.hooks.find(module, m.name(m.line()))


def _stack_global(m: Machine) -> None:
    module, name = m.pop_tuple(2)
    if not isinstance(module, str) or not isinstance(name, str):
        raise m.error("two strings that name a global", f"{describe(module)} and {describe(name)}")
    if len(module) > MAX_NAME or len(name) > MAX_NAME:
        raise m.limit("a global's name", MAX_NAME, max(len(module), len(name)))
    m.push(m.hooks.find(module, name))


def _extension(m: Machine, code: int) -> None:
    # A code represents whatever global the reading process has registered: never something a file can count on.
    m.push(m.hooks.find("copyreg", f"_inverted_registry[{code}]"))


def _call(opcode: str) -> Step:
    def step(m: Machine) -> None:
        callee, args = m.pop_tuple(2)
        m.push(m.hooks.call(callee, _arguments(m, args), {}, opcode))

    return step


def _newobj_ex(m: Machine) -> None:
    callee, args, kwargs = m.pop_tuple(3)
    if not isinstance(kwargs, dict):
        raise m.error("a dict of keyword arguments", describe(kwargs))
    m.push(m.hooks.call(callee, _arguments(m, args), kwargs, "NEWOBJ_EX"))


def _arguments(m: Machine, args: Any) -> tuple[Any, ...]:
    if not isinstance(args, tuple):
        raise m.error("a tuple of arguments", describe(args))
    return args


def _inst(m: Machine) -> None:
    callee = _global(m)
    m.push(m.hooks.call(callee, tuple(m.pop_mark()), {}, "INST"))


def _obj(m: Machine) -> None:
    items = m.pop_mark()
    if not items:
        raise m.error("a class and its arguments after the mark", "nothing")
    m.push(m.hooks.call(items[0], tuple(items[1:]), {}, "OBJ"))


_BY_CODE: MappingProxyType[bytes, Step] = MappingProxyType(
    {
        b"\x80": _proto,
        b"\x95": _frame,
        b".": _stop,
        b"(": _mark,
        b"0": _pop,
        b"1": lambda m: m.pop_mark(),
        b"2": lambda m: m.push(m.top()),
        b"N": lambda m: m.push(None),
        b"\x88": lambda m: m.push(True),
        b"\x89": lambda m: m.push(False),
        b"I": _int_line,
        b"L": lambda m: m.push(_decimal(m, m.line().removesuffix(b"L"))),
        b"J": lambda m: m.push(int.from_bytes(m.take(4), "little", signed=True)),
        b"K": lambda m: m.push(m.unsigned(1)),
        b"M": lambda m: m.push(m.unsigned(2)),
        b"\x8a": _long(1),
        b"\x8b": _long(4),
        b"F": _float_line,
        b"G": lambda m: m.push(_BIN_FLOAT.unpack(m.take(8))[0]),
        b"S": _quoted_line,
        b"T": lambda m: m.push(m.text(m.sized(4))),
        b"U": lambda m: m.push(m.text(m.sized(1))),
        b"V": _unicode_line,
        b"\x8c": lambda m: m.push(m.text(m.sized(1))),
        b"X": lambda m: m.push(m.text(m.sized(4))),
        b"\x8d": lambda m: m.push(m.text(m.sized(8))),
        b"C": lambda m: m.push(m.sized(1)),
        b"B": lambda m: m.push(m.sized(4)),
        b"\x8e": lambda m: m.push(m.sized(8)),
        b"\x96": lambda m: m.push(bytearray(m.sized(8))),
        b"\x97": _refuse_buffer,
        b"\x98": _refuse_buffer,
        b"p": _put_line,
        b"q": lambda m: m.put(m.unsigned(1)),
        b"r": lambda m: m.put(m.unsigned(4)),
        b"\x94": lambda m: m.put(len(m.memo)),
        b"g": lambda m: m.get(_decimal(m, m.line())),
        b"h": lambda m: m.get(m.unsigned(1)),
        b"j": lambda m: m.get(m.unsigned(4)),
        b")": lambda m: m.push(()),
        b"\x85": lambda m: m.push(m.pop_tuple(1)),
        b"\x86": lambda m: m.push(m.pop_tuple(2)),
        b"\x87": lambda m: m.push(m.pop_tuple(3)),
        b"t": lambda m: m.push(tuple(m.pop_mark())),
        b"]": lambda m: m.push([]),
        b"l": lambda m: m.push(m.pop_mark()),
        b"a": _change("extend", lambda m: [m.pop()]),
        b"e": _change("extend", Machine.pop_mark),
        b"}": lambda m: m.push({}),
        b"d": _dict_marked,
        b"s": _change("update", lambda m: list(m.pop_tuple(2))),
        b"u": _change("update", _pairs),
        b"\x8f": lambda m: m.push(set()),
        b"\x90": _change("add", Machine.pop_mark),
        b"\x91": lambda m: m.push(m.hooks.freeze(m.pop_mark())),
        b"c": lambda m: m.push(_global(m)),
        b"\x93": _stack_global,
        b"\x82": lambda m: _extension(m, m.unsigned(1)),
        b"\x83": lambda m: _extension(m, m.unsigned(2)),
        b"\x84": lambda m: _extension(m, m.unsigned(4)),
        b"R": _call("REDUCE"),
        b"\x81": _call("NEWOBJ"),
        b"\x92": _newobj_ex,
        b"i": _inst,
        b"o": _obj,
        b"b": _change("build", Machine.pop),
        b"P": lambda m: m.push(m.hooks.persistent(m.text(m.line()))),
        b"Q": lambda m: m.push(m.hooks.persistent(m.pop())),
    }
)

_STEPS: tuple[Step | None, ...] = tuple(_BY_CODE.get(bytes([code])) for code in range(256))
