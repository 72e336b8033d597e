"""Matching of symbols of two programs from values that correspond, and expressions as texts that are equal in both.

A program names its symbols as it likes: what is `s0` in one export is `s77` in the next. Symbols correspond where the
sizes of values that correspond are nothing but a symbol each; where such sizes disagree, most of them decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pt2kit import schema
from pt2kit.canonical.symbol_names import renamed_expression, renamed_words

_LONE: Final = re.compile(r"(?:Symbol\('(\w+)'[^()]*\))|([A-Za-z_]\w*)")
_PREFIX: Final = re.compile(r"[A-Za-z_]*")


class Symbols:
    """Old symbols -> new symbols, learned from values that correspond."""

    def __init__(self) -> None:
        self._to_new: dict[str, str] = {}
        self._taken: set[str] = set()
        self._lone: dict[str, str] = {}
        self._forms: dict[str, str] = {}

    @property
    def renamed(self) -> dict[str, str]:
        """Return old symbol -> new symbol, of those whose name is another one."""
        return {one: other for one, other in self._to_new.items() if one != other}

    def learn(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Add the symbols of some more values; known ones are kept.

        Args:
            pairs: what is known of values that correspond: descriptions of tensors, numbers or objects.

        Cost: linear in their dimensions.
        """
        votes = Counter(vote for old, new in pairs for vote in self._votes(old, new))
        for one, other in sorted(votes, key=lambda pair: (-votes[pair], min(pair), max(pair))):
            if one not in self._to_new and other not in self._taken:
                self._to_new[one] = other
                self._taken.add(other)
        self._forms.clear()

    def _votes(self, old: Any, new: Any) -> Iterator[tuple[str, str]]:
        for one, other in zip(_numbers(old), _numbers(new), strict=False):
            before, after = self._lone_symbol(one), self._lone_symbol(other)
            if before and after:
                yield before, after

    def _lone_symbol(self, number: Any) -> str:
        """Return the name of a number that is one symbol, in either dialect; "" of any other."""
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
        """Return the new name of an old symbol; its own if none is known."""
        return self._to_new.get(symbol, symbol)

    def old_form(self, text: str) -> str:
        """Return an old expression, in normal form, under the new names; equal to a new one if both are the same."""
        if text not in self._forms:
            self._forms[text] = renamed_expression(text, self.renamed)
        return self._forms[text]

    def guard(self, text: str) -> str:
        """Return an old guard under the new names; texts in quotes name inputs."""
        return renamed_words(text, self.renamed) if self.renamed else text


def is_of_another_kind(old: str, new: str) -> bool:
    """Return whether two symbols are of different kinds, as sizes (`s0`) and data-dependent numbers (`u0`) are."""
    return _PREFIX.match(old)[0] != _PREFIX.match(new)[0]  # type: ignore[index]  # It matches everything.


def _numbers(known: Any) -> list[Any]:
    """Return the numbers of a description that may be symbols: the sizes of a tensor, or a number itself."""
    return known.sizes if isinstance(known, schema.TensorMeta) else [known]
