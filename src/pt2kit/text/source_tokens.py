"""Tokenizer of the text form of programs, with the basic steps of its grammar: accept, expect or refuse a token."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from pt2kit.errors import SchemaError

STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
_TYPE = r"[A-Za-z]\w*\[[^\]\n]*\](?: (?:strides|offset|on|layout|grad)\[[^\]\n]*\])*"
_SPACE = r"[ \t\r\n]*(?://[^\n]*[ \t\r\n]*)*"
_BLANK: Final = re.compile(_SPACE)
_TOKENS: Final = re.compile(
    rf"{_SPACE}(?:(?P<string>{STRING})|(?P<value>%(?:[A-Za-z_]\w*|{STRING}))"
    rf"|(?P<type>{_TYPE})|(?P<number>-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf))|(?P<word>[A-Za-z_][\w.]*)"
    r"|(?P<expr>#\w+)|(?P<sign>[()\[\]{}=:,*!?])|(?P<end>\Z))",
    re.ASCII,
)
CONSTANTS: Final = {"none": None, "true": True, "false": False, "inf": float("inf"), "nan": float("nan")}


class Tokens:
    """The tokens of one text; `at` is the number of the one at hand.

    Args:
        text: the text.
        where: what messages call it.

    Raises:
        SchemaError: something that is no token.
    """

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self.tokens: list[str] = []
        self.kinds: list[str] = []
        self._starts: list[int] = []
        self._cut()
        self.at = 0
        self._strings: dict[str, str] = {}

    def _cut(self) -> None:
        """Cut the text into tokens.

        Raises:
            SchemaError: something that is no token.
        """
        position, text, match = 0, self._text, _TOKENS.match
        tokens, kinds, starts = self.tokens, self.kinds, self._starts
        while True:
            token_match = match(text, position)
            if token_match is None:
                start = _BLANK.match(text, position).end()  # type: ignore[union-attr]  # It matches everything.
                raise SchemaError(
                    f"{self._where}: {self._place(start)}: expected a token, got {text[start : start + 40]!r}"
                )
            kind = token_match.lastgroup or "end"
            kinds.append(kind)
            tokens.append(token_match[kind])
            starts.append(token_match.start(kind))
            position = token_match.end()
            if kind == "end":
                tokens.append("")  # a look-ahead by one token sees the end twice
                kinds.append("end")
                starts.append(position)
                return

    def listed(self, first: str, last: str, one: Callable[[], Any]) -> list[Any]:
        """Return the items between two brackets, separated by commas."""
        self.sign(first)
        items: list[Any] = []
        tokens = self.tokens
        while tokens[self.at] != last or self.kinds[self.at] != "sign":
            if items:
                self.sign(",")
            items.append(one())
        self.at += 1
        return items

    def constant(self) -> Any:
        """Parse a number, a text, true, false or none."""
        kind, token = self.kinds[self.at], self.tokens[self.at]
        if kind == "string":
            return self.string()
        self.at += 1
        if kind == "number":
            return self.whole(token) if token.removeprefix("-").isdecimal() else float(token)
        if kind == "word" and token in CONSTANTS:
            return CONSTANTS[token]
        return self.fail("a number, a text, true, false or none", back=1)

    def number(self, arm: str) -> Any:
        """Parse the number or truth value of an arm: as_int, as_float (also a whole number) or as_bool."""
        kinds = {"as_int": ("an int", int), "as_float": ("a float", float, int), "as_bool": ("true or false", bool)}
        expected, *types = kinds[arm]
        value = self.constant()
        return value if type(value) in types else self.fail(str(expected), back=1)

    def whole(self, digits: str) -> int:
        """Return the number that digits of the token before are."""
        try:
            return int(digits)
        except ValueError:  # Python converts at most 4,300 digits
            self.fail("an int of fewer digits", back=1)

    def integer(self) -> int:
        """Parse a whole number."""
        value = self.constant()
        if type(value) is not int:
            self.fail("an int", back=1)
        return value

    def name(self) -> str:
        """Parse the name of a value: `%x`."""
        return self.unquoted(self.next("value")[1:])

    def string(self) -> str:
        """Parse a text."""
        return self.unquoted(self.next("string"))

    def unquoted(self, token: str) -> str:
        """Return the content of a token in quotes, or a token without quotes unchanged."""
        if token[0] != '"':
            return token
        text = self._strings.get(token)
        if text is None:
            try:
                text = json.loads(token)
                text.encode()
            except ValueError:  # a broken escape, or a lone surrogate, which no file can hold
                self.fail("a text as JSON writes it, without lone surrogates", back=1)
            self._strings[token] = text
        return text

    def strings(self) -> list[str]:
        """Parse a list of texts."""
        return self.listed("[", "]", self.string)

    def is_at(self, token: str) -> bool:
        """Return whether the current token is a certain word or sign."""
        return self.tokens[self.at] == token and self.kinds[self.at] != "string"

    def take(self, token: str) -> bool:
        """Consume a word or sign if it is the next token; return whether it was."""
        if not self.is_at(token):
            return False
        self.at += 1
        return True

    def word(self, word: str) -> None:
        """Consume an expected word or sign."""
        if not self.take(word):
            self.fail(repr(word))

    sign = word

    def next(self, kind: str) -> str:
        """Consume a token of some kind, and return it."""
        if self.kinds[self.at] != kind:
            self.fail({"end": "the end of the text", "value": "the name of a value, %x"}.get(kind, f"a {kind}"))
        self.at += 1
        return self.tokens[self.at - 1]

    def fail(self, expected: str, back: int = 0) -> NoReturn:
        """Refuse the token at hand, or one before it.

        Raises:
            SchemaError: always.
        """
        number = max(self.at - back, 0)
        got = self.tokens[number][:60] or "the end"
        raise SchemaError(f"{self._where}: {self.place_of(number)}: expected {expected}, got {got!r}")

    def place_of(self, number: int) -> str:
        """Return the line and column of a token, by its number."""
        return self._place(self._starts[number])

    def _place(self, position: int) -> str:
        """Return the line and column of a character, both from 1."""
        line = self._text.count("\n", 0, position) + 1
        return f"line {line}, column {position - self._text.rfind(chr(10), 0, position)}"
