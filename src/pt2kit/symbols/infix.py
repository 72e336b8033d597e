"""Parser of infix text by a grammar given as data: the engine of the str dialect and of guards.

Operator precedence with two explicit stacks, one pass, no recursion. It knows operators, brackets, calls and
`a if c else b`; which tokens, operators, names and functions exist, and what they build, the grammar says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from pt2kit.errors import LimitError
from pt2kit.symbols.expr import TRUE, Call, Expr, Integer, Limits, check_size, fail, measure, quote
from pt2kit.symbols.order import float_from, float_of
from pt2kit.symbols.srepr import whole_number

Build = Callable[[Sequence[str], Sequence[Expr], str, Limits], Expr]
"""Builds the expression of a row of operators: (the operators, their operands, place, limits) -> expression."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """Operators, names and literals that an infix text may contain.

    Args:
        token: a pattern (ASCII) with the groups `float`, `int`, `name` and `op`, tried at every position after spaces.
        binary: operator -> (precedence, how it groups with another one of that precedence to its left, what it builds).
            Operators in a row that group from the left and build the same are built together: `a + b - c`.
        unary: operator -> (precedence, what it builds).
        name: what a name that no bracket follows stands for.
        call: what a name and its bracketed arguments build.
        conditional: whether `a if c else b` exists.
    """

    token: str
    binary: Mapping[str, tuple[int, Literal["left", "right", "none"], Build]]
    unary: Mapping[str, tuple[int, Build]]
    name: Callable[[str, str], Expr]
    call: Callable[[str, Sequence[Expr], str], Expr]
    conditional: bool


@dataclass(slots=True)
class _Frame:
    """An operator or an opening bracket that waits for what is right of it; only its reader holds it.

    Args:
        kind: "operator", "bracket", "call", "if" or "else".
        precedence: how tightly it binds; -1 for brackets and conditionals.
        first: the number of operands before its own.
        text: the function before the bracket.
        build: what operators build.
        signs: the operators, as written.
    """

    kind: str
    precedence: int
    first: int
    text: str = ""
    build: Build | None = None
    signs: list[str] = field(default_factory=list)


def parse_infix(text: str, grammar: Grammar, where: str, limits: Limits) -> Expr:
    """Parse one expression.

    Raises:
        ExpressionError: the text does not follow the grammar.
        LimitError: longer, larger or deeper than `limits` allow.
    """
    if len(text) > limits.text:
        fail(where, f"expected at most {limits.text} characters, got {len(text)}", LimitError)
    expr = _Reader(text, grammar, where, limits).read()
    if 3 * len(text) > min(limits.depth, limits.nodes):  # a shorter text cannot make a larger tree
        check_size(*measure(expr), where, limits)
    return expr


class _Reader:
    """The two stacks of one reading."""

    __slots__ = ("at", "frames", "grammar", "limits", "match", "operands", "text", "where")

    def __init__(self, text: str, grammar: Grammar, where: str, limits: Limits) -> None:
        self.text = text
        self.grammar = grammar
        self.where = where
        self.limits = limits
        self.match = re.compile(grammar.token, re.ASCII).match
        self.at = 0
        self.frames: list[_Frame] = []
        self.operands: list[Expr] = []

    def read(self) -> Expr:
        wants_operand = True
        token = self._next()
        while token is not None:
            if len(self.operands) + len(self.frames) > self.limits.nodes:
                fail(self.where, f"expected at most {self.limits.nodes} parts, got more", LimitError)
            wants_operand = self._operand(token) if wants_operand else self._operator(token)
            token = self._next()
        if wants_operand:
            self._refuse("a value", self.at)
        self._reduce(-1)
        if self.frames:
            self._refuse("'else'" if self.frames[-1].kind == "if" else "')'", self.at)
        return self.operands[0]

    def _next(self) -> re.Match[str] | None:
        text = self.text
        while self.at < len(text) and text[self.at] == " ":
            self.at += 1
        if self.at == len(text):
            return None
        token = self.match(text, self.at)
        if token is None:
            self._refuse("a number, a name or an operator", self.at)
        self.at = token.end()
        return token

    def _operand(self, token: re.Match[str]) -> bool:
        """Consume a token if a value is due; return whether a value is still due."""
        written = token[0]
        match token.lastgroup:
            case "float":
                self.operands.append(float_from(float(float_of(written, where=self.where).text)))
            case "int":
                self.operands.append(Integer(whole_number(written, self.where, self.limits)))
            case "op" if written in self.grammar.unary:
                precedence, build = self.grammar.unary[written]
                if written == "not" and self.frames and self.frames[-1].precedence > precedence:
                    self._refuse("brackets around 'not'", token.start())
                self.frames.append(_Frame("operator", precedence, len(self.operands), build=build, signs=[written]))
                return True
            case "op" if written == "(":
                self.frames.append(_Frame("bracket", -1, len(self.operands)))
                return True
            case "op" if written == ")" and self._is_open_call():
                self._close_bracket(())
            case "op":
                self._refuse("a value", token.start())
            case _ if self.text.startswith("(", self.at):
                self.at += 1
                self.frames.append(_Frame("call", -1, len(self.operands), written))
                return True
            case _:
                self.operands.append(self.grammar.name(written, self.where))
        return False

    def _is_open_call(self) -> bool:
        return bool(self.frames) and self.frames[-1].kind == "call" and self.frames[-1].first == len(self.operands)

    def _operator(self, token: re.Match[str]) -> bool:
        """Consume a token after a value; return whether a value is due."""
        written = token[0]
        if written in self.grammar.binary:
            self._binary(written, token.start())
            return True
        if written in (",", ")"):
            self._reduce(-1)
            if not (self.frames and self.frames[-1].kind in ("call", "bracket")):
                self._refuse("the end", token.start())
            if written == ",":
                return True
            first = self.frames[-1].first
            args = tuple(self.operands[first:])
            del self.operands[first:]
            self._close_bracket(args)
            return False
        if not (self.grammar.conditional and written in ("if", "else")):
            self._refuse("an operator", token.start())
        return self._conditional(written, token.start())

    def _binary(self, written: str, at: int) -> None:
        """Let an operator wait for its right operand, in the frame of those of its row if there is one."""
        precedence, grouping, build = self.grammar.binary[written]
        self._reduce(precedence + 1)
        if self.frames and self.frames[-1].precedence == precedence:
            if grouping == "none":
                self._refuse(f"brackets around one of two comparisons, not {written!r}", at)
            if grouping == "left":
                if self.frames[-1].build is build:
                    self.frames[-1].signs.append(written)
                    return
                self._reduce(precedence)
        self.frames.append(_Frame("operator", precedence, len(self.operands) - 1, build=build, signs=[written]))

    def _close_bracket(self, args: tuple[Expr, ...]) -> None:
        frame = self.frames.pop()
        outer = self.frames[-1] if self.frames else None
        if frame.kind == "call":
            self.operands.append(self.grammar.call(frame.text, args, self.where))
        elif len(args) == 1:
            self.operands.append(args[0])
        elif len(args) == 2 and outer is not None and outer.kind == "call" and outer.text == "Piecewise":
            self.operands.append(Call("ExprCondPair", args))
        else:
            self._refuse("one value in brackets", self.at - 1)

    def _conditional(self, written: str, at: int) -> bool:
        self._reduce(0)
        if written == "else":
            if not (self.frames and self.frames[-1].kind == "if"):
                self._refuse("'if' before 'else'", at)
            self.frames[-1].kind = "else"
        else:
            self.frames.append(_Frame("if", -1, 0))
        return True

    def _reduce(self, precedence: int) -> None:
        """Build every waiting operator that binds at least that tightly; -1 also finishes conditionals."""
        frames, operands = self.frames, self.operands
        while frames:
            frame = frames[-1]
            if frame.build is not None and frame.precedence >= precedence:
                built = frame.build(frame.signs, operands[frame.first :], self.where, self.limits)
                operands[frame.first :] = [built]
            elif frame.kind == "else" and precedence < 0:
                otherwise, condition, value = (operands.pop() for _ in range(3))
                operands.append(_choice(value, condition, otherwise))
            else:
                return
            frames.pop()

    def _refuse(self, expected: str, at: int) -> NoReturn:
        got = quote(self.text[at:]) if at < len(self.text) else "the end"
        fail(self.where, f"expected {expected} at character {at}, got {got} in {quote(self.text)}")


def _choice(value: Expr, condition: Expr, otherwise: Expr) -> Expr:
    first = Call("ExprCondPair", (value, condition))
    if isinstance(otherwise, Call) and otherwise.function == "Piecewise":
        return Call("Piecewise", (first, *otherwise.args))
    return Call("Piecewise", (first, Call("ExprCondPair", (otherwise, TRUE))))
