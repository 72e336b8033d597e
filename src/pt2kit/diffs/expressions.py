"""Values of two programs that correspond -> which symbols do; an expression -> a text that is the same in both.

A program names its symbols as it likes: what is `s0` in one export is `s77` in the next. Symbols correspond where the
sizes of values that correspond are nothing but a symbol each; where such sizes disagree, most of them decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pt2kit import schema
from pt2kit.errors import Pt2Error

_LONE: Final = re.compile(r"(?:Symbol\('(\w+)'[^()]*\))|([A-Za-z_]\w*)")
_WORD: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[A-Za-z_]\w*")
_PREFIX: Final = re.compile(r"[A-Za-z_]*")
_UNORDERED: Final = frozenset(("Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equality", "Unequality"))
"""Functions whose arguments have no order of their own: expressions are written sorted by the names in them."""


class Symbols:
    """Old symbols -> new symbols, learned from values that correspond."""

    def __init__(self) -> None:
        self._to_new: dict[str, str] = {}
        self._taken: set[str] = set()
        self._lone: dict[str, str] = {}
        self._forms: tuple[dict[str, str], dict[str, str]] = ({}, {})

    @property
    def renamed(self) -> dict[str, str]:
        """Old symbol -> new symbol, of those whose name is another one."""
        return {one: other for one, other in self._to_new.items() if one != other}

    def learn(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Add the symbols of some more values; what is known stays as it is.

        Args:
            pairs: what is known of values that correspond: descriptions of tensors, numbers or objects.

        Cost: linear in their dimensions.
        """
        votes = Counter(vote for old, new in pairs for vote in self._votes(old, new))
        for one, other in sorted(votes, key=lambda pair: (-votes[pair], min(pair), max(pair))):
            if one not in self._to_new and other not in self._taken:
                self._to_new[one] = other
                self._taken.add(other)
        for forms in self._forms:
            forms.clear()

    def _votes(self, old: Any, new: Any) -> Iterator[tuple[str, str]]:
        for one, other in zip(_numbers(old), _numbers(new), strict=False):
            before, after = self._lone_symbol(one), self._lone_symbol(other)
            if before and after:
                yield before, after

    def _lone_symbol(self, number: Any) -> str:
        """The name of a number that is one symbol, in either dialect; "" of any other."""
        expression = getattr(number, "as_expr", None)
        if not isinstance(expression, schema.SymExpr):
            return ""
        text = expression.expr_str
        name = self._lone.get(text)
        if name is None:
            match = _LONE.fullmatch(text)
            name = self._lone[text] = (match[1] or match[2]) if match else ""
        return name

    def new_name(self, symbol: str) -> str:
        """The new name of an old symbol; its own where none is known."""
        return self._to_new.get(symbol, symbol)

    def old_form(self, text: str) -> str:
        """What an old expression is, under the new names."""
        return self._form(text, 0)

    def new_form(self, text: str) -> str:
        """What a new expression is: equal to `old_form` of another one where both are the same."""
        return self._form(text, 1)

    def _form(self, text: str, side: int) -> str:
        forms = self._forms[side]
        if text not in forms:
            forms[text] = self._computed(text, self.renamed if side == 0 else {})
        return forms[text]

    def _computed(self, text: str, names: dict[str, str]) -> str:
        from pt2kit.symbols.dialects import parse
        from pt2kit.symbols.expr import Call, Symbol, fold

        def leaf(held: Any) -> str:
            known = isinstance(held, Symbol) and held.name in names
            return repr(Symbol(names[held.name], held.assumptions) if known else held)

        def call(held: Call, arguments: list[str]) -> str:
            ordered = sorted(arguments) if held.function in _UNORDERED else arguments
            return f"{held.function}({', '.join(ordered)})"

        try:
            return fold(parse(text), leaf, call)
        except Pt2Error:  # No expression: a text like any other.
            return _WORD.sub(lambda match: names.get(match[0], match[0]), text)

    def guard(self, text: str) -> str:
        """An old guard under the new names; what stands in quotes names inputs."""
        renamed = self.renamed
        return _WORD.sub(lambda match: renamed.get(match[0], match[0]), text) if renamed else text


def is_of_another_kind(old: str, new: str) -> bool:
    """Whether two symbols are of different kinds, as sizes (`s0`) and data-dependent numbers (`u0`) are."""
    return _PREFIX.match(old)[0] != _PREFIX.match(new)[0]  # type: ignore[index]  # It matches everything.


def _numbers(known: Any) -> list[Any]:
    """The numbers of a description that may be symbols: the sizes of a tensor, or a number itself."""
    return known.sizes if isinstance(known, schema.TensorMeta) else [known]
