"""Names of symbols in the normal form of a program, and expressions under these names.

Names of symbols are arbitrary: the symbol `s0` of one export is `s77` in the next. Those in the sizes
of inputs, or are inputs themselves, become `_s0`, `_s1`, … in the order in which they come there, those that are a size
by themselves first. The letters that a name begins with denote the kind of symbol, and are kept. Others, such as those
of data-dependent numbers, keep their names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.canonical.expressions import UNORDERED
from pt2kit.errors import Pt2Error
from pt2kit.graph.values import Meta
from pt2kit.symbols.dialects import parse
from pt2kit.symbols.expr import Call, Expr, Symbol, fold, free_symbols
from pt2kit.symbols.srepr import to_srepr

_LETTERS: Final = re.compile(r"[A-Za-z_]*")
"""Prefix of a name, without the normal form's own `_`."""
_WORD: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[A-Za-z_]\w*")


def input_symbols(described: Iterable[Meta]) -> dict[str, str]:
    """Return the new names of the symbols that inputs have.

    Args:
        described: what is known of the inputs, in normal order.

    Returns:
        old name -> new name.
    """
    texts = [text for meta in described for text in _texts(meta)]
    trees = [tree for text in texts if (tree := _parsed(text)) is not None]
    alone = [tree.name for tree in trees if isinstance(tree, Symbol)]
    others = [symbol.name for tree in trees for symbol in free_symbols(tree)]
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for name in dict.fromkeys((*alone, *others)):
        letters = _LETTERS.match(name.lstrip("_"))[0]  # type: ignore[index]  # It matches everything.
        names[name] = f"_{letters}{counts[letters]}"
        counts[letters] += 1
    return names


def _parsed(text: str) -> Expr | None:
    try:
        return parse(text)
    except Pt2Error:
        return None


def _texts(meta: Meta) -> Iterable[str]:
    """Yield the expressions of a tensor's sizes, or of a number."""
    numbers: list[Any] = list(meta.sizes) if isinstance(meta, schema.TensorMeta) else [meta]
    for number in numbers:
        expression = getattr(number, "as_expr", UNSET)
        if expression is not UNSET:
            yield expression.expr_str


def renamed_tables(graph: schema.Graph, names: Mapping[str, str]) -> schema.Graph:
    """Return a graph whose value tables use other names of symbols; its subgraphs are unchanged.

    Args:
        graph: not changed.
        names: old name -> new name.
    """
    if not names:
        return graph
    texts: dict[str, str] = {}

    def number(value: Any) -> Any:
        if value.as_expr is UNSET:
            return value
        text = value.as_expr.expr_str
        if text not in texts:
            texts[text] = renamed_expression(text, names)
        return type(value)(as_expr=replace(value.as_expr, expr_str=texts[text]))

    tensors = {
        name: replace(
            meta,
            sizes=[number(size) for size in meta.sizes],
            strides=[number(stride) for stride in meta.strides],
            storage_offset=number(meta.storage_offset),
        )
        for name, meta in graph.tensor_values.items()
    }
    return replace(
        graph,
        tensor_values=tensors,
        sym_int_values={name: number(value) for name, value in graph.sym_int_values.items()},
        sym_bool_values={name: number(value) for name, value in graph.sym_bool_values.items()},
        sym_float_values={name: number(value) for name, value in graph.sym_float_values.items()},
    )


def renamed_expression(text: str, names: Mapping[str, str]) -> str:
    """Return an expression under other names, its unordered arguments sorted; one without names is returned
    unchanged."""
    try:
        tree = parse(text)
        if not any(symbol.name in names for symbol in free_symbols(tree)):
            return text

        def leaf(held: Any) -> Any:
            is_renamed = isinstance(held, Symbol) and held.name in names
            return Symbol(names[held.name], held.assumptions) if is_renamed else held

        def call(held: Call, arguments: list[Any]) -> Any:
            ordered = sorted(arguments, key=to_srepr) if held.function in UNORDERED else arguments
            return Call(held.function, tuple(ordered))

        return to_srepr(fold(tree, leaf, call))
    except Pt2Error:  # No expression: a text like any other.
        return renamed_words(text, names)


def renamed_words(text: str, names: Mapping[str, str]) -> str:
    """Return a guard, or any other text, under other names; texts in quotes are unchanged."""
    return _WORD.sub(lambda match: names.get(match[0], match[0]), text)


def words(text: str) -> set[str]:
    """Return the names in a guard, or in any other text, except in quotes."""
    return {word for word in _WORD.findall(text) if word[0] not in "'\""}
